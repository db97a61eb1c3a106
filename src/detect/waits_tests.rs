use super::call::sleep;
use super::*;
use crate::detect::threads::Credit;
use crate::model::{Bytes, Metric, Probe, ThreadSample};

const LIMIT: Duration = Duration::from_secs(45);

fn call(call: &str, timeout_ms: Option<u64>, on: Vec<WaitTarget>) -> Wait {
    Wait::Call {
        call: call.to_owned(),
        timeout_ms,
        on,
        channel: None,
    }
}

fn thread(tid: u32, wait: Wait) -> ProbedThread {
    ProbedThread {
        tid,
        name: "python".to_owned(),
        state: 'S',
        run_ns: 0,
        read: Some(Bytes(0)),
        written: Some(Bytes(0)),
        major_faults: 0,
        minor_faults: 0,
        wait,
    }
}

fn process(pid: u32, threads: Vec<ProbedThread>) -> ProbedProcess {
    ProbedProcess {
        pid,
        threads,
        ..ProbedProcess::default()
    }
}

/// A holder in an operation, in a phase that works, or in neither: between phases.
fn holder(id: ThreadId, operates: bool, works: bool) -> HolderContext {
    HolderContext {
        id,
        operates,
        works,
        between: !works && !operates,
        bereft: false,
        owes_answer: false,
        moved: Mono::ZERO,
        limit: LIMIT,
    }
}

/// A probe of these processes.
fn probe(processes: &[ProbedProcess]) -> Probe {
    Probe {
        processes: processes.to_vec(),
        network: Metric::Unsupported,
        ..Probe::default()
    }
}

/// The answer for thread 7 of process 7 after `seconds` of probes.
fn asked(processes: &[ProbedProcess], operates: bool, works: bool, seconds: u64) -> Waits {
    let (holder, probe) = (holder((7, 7), operates, works), probe(processes));
    let (mut probes, mut threads) = (Probes::default(), ThreadTracker::default());
    let samples: Vec<ThreadSample> = probe
        .threads()
        .map(|(p, t)| ThreadSample {
            pid: p.pid,
            tid: t.tid,
            name: t.name.clone(),
            state: t.state,
            run_ns: 0,
            switches: 0,
            wchan: None,
        })
        .collect();
    threads.observe(Mono(0), &samples, Credit::None);
    for s in (0..=seconds).step_by(2) {
        probes.observe(Mono::from_secs(s), &probe);
        probes.follow(Mono::from_secs(s), (7, 7));
    }
    waits(Mono::from_secs(seconds), holder, &probes, &threads)
}

fn alone(wait: Wait) -> WaitsFor {
    asked(&[process(7, vec![thread(7, wait)])], false, true, 4).answer
}

fn peer(network: &str, inside: Option<u32>, accepted: bool) -> WaitTarget {
    WaitTarget::Peer {
        network: network.to_owned(),
        address: "203.0.113.9:443".to_owned(),
        inside,
        accepted,
    }
}

fn listener() -> WaitTarget {
    WaitTarget::Listener {
        address: "tcp 127.0.0.1:7860".to_owned(),
    }
}

#[test]
fn each_row_of_the_table() {
    let card = || WaitTarget::Card {
        device: "/dev/kfd".to_owned(),
    };
    let event = |what: &str| WaitTarget::Event {
        what: what.to_owned(),
    };
    let lock = WaitTarget::Lock {
        path: "/x/the.lock".to_owned(),
        holder: Some(9),
        holder_is_dead: false,
    };
    let pipe = |ends: &[u32]| WaitTarget::Pipe {
        ends: ends.to_vec(),
    };
    for (wait, want) in [
        (call("ioctl", None, vec![card()]), WaitsFor::Card),
        (
            call("poll", None, vec![card(), event("eventfd")]),
            WaitsFor::Card,
        ),
        (call("pause", None, vec![]), WaitsFor::Card),
        (call("rt_sigsuspend", None, vec![]), WaitsFor::Card),
        (call("sched_yield", None, vec![]), WaitsFor::Itself),
        (call("futex", None, vec![]), WaitsFor::Process),
        (
            call("wait4", None, vec![WaitTarget::Process { pid: None }]),
            WaitsFor::Process,
        ),
        (call("read", None, vec![pipe(&[8])]), WaitsFor::Process),
        (call("read", None, vec![pipe(&[])]), WaitsFor::Unknown),
        (
            call("recvfrom", None, vec![peer("unix", Some(8), false)]),
            WaitsFor::Process,
        ),
        (call("clock_nanosleep", Some(5000), vec![]), WaitsFor::Time),
        (call("select", Some(1000), vec![]), WaitsFor::Time),
        (call("accept4", None, vec![listener()]), WaitsFor::Client),
        (
            call("epoll_wait", None, vec![event("eventfd"), listener()]),
            WaitsFor::Client,
        ),
        (
            call("recvfrom", None, vec![peer("tcp", None, true)]),
            WaitsFor::Client,
        ),
        (
            call("recvfrom", None, vec![peer("tcp", None, false)]),
            WaitsFor::Peer,
        ),
        (
            call("connect", None, vec![peer("tcp", None, false)]),
            WaitsFor::Peer,
        ),
        (
            call(
                "epoll_wait",
                None,
                vec![event("eventfd"), peer("tcp", None, false)],
            ),
            WaitsFor::Peer,
        ),
        (
            call("epoll_wait", None, vec![event("eventfd")]),
            WaitsFor::Process,
        ),
        (call("read", None, vec![event("timerfd")]), WaitsFor::Time),
        (call("flock", None, vec![lock]), WaitsFor::Lock),
        (
            call("read", None, vec![WaitTarget::Terminal]),
            WaitsFor::Person,
        ),
        (call("syscall_999", None, vec![]), WaitsFor::Unknown),
    ] {
        let words = format!("{wait:?}");
        assert_eq!(alone(wait), want, "{words}");
    }
}

#[test]
fn an_uninterruptible_sleep_is_the_kernels() {
    let mut t = thread(7, call("read", None, vec![]));
    t.state = 'D';
    assert_eq!(
        asked(&[process(7, vec![t])], false, true, 4).answer,
        WaitsFor::Kernel
    );
}

#[test]
fn a_futex_within_an_operation_is_a_lock_of_its_library() {
    let all = [process(7, vec![thread(7, call("futex", None, vec![]))])];
    assert_eq!(asked(&all, true, true, 4).answer, WaitsFor::Card);
}

#[test]
fn a_long_sleep_is_a_hang_only_where_something_computes() {
    let long = call("clock_nanosleep", Some(100_000_000), vec![]);
    let all = [process(7, vec![thread(7, long)])];
    assert_eq!(asked(&all, true, false, 4).answer, WaitsFor::Itself);
    assert_eq!(asked(&all, false, true, 4).answer, WaitsFor::Itself);
    assert_eq!(asked(&all, false, false, 4).answer, WaitsFor::Time);
    // where its time cannot be read, it is long once it has lasted
    let unread = call("clock_nanosleep", None, vec![]);
    let all = [process(7, vec![thread(7, unread)])];
    assert_eq!(asked(&all, false, true, 40).answer, WaitsFor::Time);
    assert_eq!(asked(&all, false, true, 46).answer, WaitsFor::Itself);
}

#[test]
fn a_wait_for_a_process_is_asked_there() {
    let waits_for_8 = || {
        let pipe = WaitTarget::Pipe { ends: vec![8] };
        process(7, vec![thread(7, call("read", None, vec![pipe]))])
    };
    let of_8 = |wait| {
        asked(
            &[waits_for_8(), process(8, vec![thread(8, wait)])],
            false,
            true,
            4,
        )
    };
    let stuck = of_8(call("pause", None, vec![]));
    assert_eq!((stuck.answer, stuck.tid), (WaitsFor::Card, Some(8)));
    let remote = of_8(call("recvfrom", None, vec![peer("tcp", None, false)]));
    assert_eq!(remote.answer, WaitsFor::Peer);
    assert_eq!(remote.detail.as_deref(), Some("tcp 203.0.113.9:443"));
    // two that wait for each other
    let back = WaitTarget::Pipe { ends: vec![7] };
    let circle = of_8(call("read", None, vec![back]));
    assert_eq!((circle.answer, circle.tid), (WaitsFor::Process, Some(7)));
}

#[test]
fn without_the_right_to_look_the_kernel_function_tells() {
    for (channel, want) in [
        (Some("futex_wait_queue"), WaitsFor::Process),
        (Some("hrtimer_nanosleep"), WaitsFor::Time),
        (Some("inet_csk_accept"), WaitsFor::Client),
        (Some("amdgpu_cs_wait_any_fence"), WaitsFor::Card),
        (Some("kfd_wait_on_events"), WaitsFor::Card),
        (Some("pipe_read"), WaitsFor::Process),
        (Some("do_epoll_wait"), WaitsFor::Unknown),
        (None, WaitsFor::Unknown),
    ] {
        let wait = Wait::Unreadable {
            why: "EPERM".to_owned(),
            channel: channel.map(str::to_owned),
        };
        assert_eq!(alone(wait), want, "{channel:?}");
    }
}

#[test]
fn a_thread_that_is_not_in_the_probe_is_unknown() {
    let got = asked(&[process(8, vec![])], false, true, 4);
    assert_eq!((got.answer, got.tid), (WaitsFor::Unknown, Some(7)));
}

/// Probes of thread 7, two seconds apart, each with the CPU time it had used by then.
fn asked_in_turn(looks: &[(Wait, u64)], then_s: u64) -> Waits {
    let (mut probes, threads) = (Probes::default(), ThreadTracker::default());
    let mut now = Mono::ZERO;
    for (wait, run_ms) in looks {
        now += Duration::from_secs(2);
        let run_ns = run_ms * 1_000_000;
        let looked = ProbedThread {
            run_ns,
            ..thread(7, wait.clone())
        };
        let probe = Probe {
            processes: vec![process(7, vec![looked])],
            network: Metric::Unsupported,
            ..Probe::default()
        };
        probes.observe(now, &probe);
        probes.follow(now, (7, 7));
    }
    let holder = HolderContext {
        id: (7, 7),
        operates: false,
        works: true,
        between: false,
        bereft: false,
        owes_answer: false,
        moved: Mono::ZERO,
        limit: LIMIT,
    };
    let later = now + Duration::from_secs(then_s);
    waits(later, holder, &probes, &threads)
}

#[test]
fn only_a_thread_that_uses_a_core_waits_for_itself() {
    let spins = [(Wait::Running, 0), (Wait::Running, 1900)];
    assert_eq!(asked_in_turn(&spins, 0).answer, WaitsFor::Itself);
    let wakes_up = [(Wait::Running, 0), (Wait::Running, 3)];
    assert_eq!(asked_in_turn(&wakes_up, 0).answer, WaitsFor::Unknown);
}

#[test]
fn one_look_between_two_naps_is_no_hang() {
    let nap = || call("clock_nanosleep", Some(5000), vec![]);
    let futex = || call("futex", None, vec![]);
    let met_awake = [(nap(), 0), (Wait::Running, 3)];
    assert_eq!(asked_in_turn(&met_awake, 0).answer, WaitsFor::Time);
    let first = [(nap(), 0), (futex(), 0)];
    assert_eq!(asked_in_turn(&first, 0).answer, WaitsFor::Time);
    let twice = [(nap(), 0), (futex(), 0), (futex(), 0)];
    assert_eq!(asked_in_turn(&twice, 0).answer, WaitsFor::Process);
}

#[test]
fn an_answer_holds_until_the_next_looks_half_a_minute_later() {
    let peer = || call("recvfrom", None, vec![peer("tcp", None, false)]);
    let looks = [(peer(), 0), (peer(), 0)];
    assert_eq!(asked_in_turn(&looks, 30).answer, WaitsFor::Peer);
    assert_eq!(asked_in_turn(&looks, 60).answer, WaitsFor::Unknown);
}

/// Between phases what comes from outside the tree is the next order; within one that
/// computes nothing is expected from there.
#[test]
fn an_order_from_outside_is_awaited_between_phases_alone() {
    let event = |what: &str| WaitTarget::Event {
        what: what.to_owned(),
    };
    let datagram = WaitTarget::Other {
        what: "udp socket without a peer".to_owned(),
    };
    for wait in [
        call("read", None, vec![event("inotify")]),
        call("poll", None, vec![event("fanotify"), event("eventfd")]),
        call("read", None, vec![event("signalfd")]),
        call("recvfrom", None, vec![datagram]),
        call("rt_sigtimedwait", None, vec![]),
        call("msgrcv", None, vec![]),
        call("mq_timedreceive", None, vec![]),
        call("openat", None, vec![]),
    ] {
        let tree = [process(7, vec![thread(7, wait.clone())])];
        let between = asked(&tree, false, false, 4).answer;
        assert_eq!(between, WaitsFor::Client, "{wait:?}");
        let within = asked(&tree, false, true, 4).answer;
        assert!(!is_harmless(within), "{wait:?}: {within:?}");
    }
    for wait in ["openat", "semop"] {
        let tree = [process(7, vec![thread(7, call(wait, None, vec![]))])];
        assert_eq!(asked(&tree, false, true, 4).answer, WaitsFor::Process);
    }
    // a pause is what a library does that has lost its signal
    let pause = [process(7, vec![thread(7, call("pause", None, vec![]))])];
    assert_eq!(asked(&pause, false, false, 4).answer, WaitsFor::Card);
}

#[test]
fn a_lock_of_the_tree_is_asked_for_at_its_holder() {
    let lock = |holder: Option<u32>| {
        let lock = WaitTarget::Lock {
            path: "/x/the.lock".to_owned(),
            holder,
            holder_is_dead: false,
        };
        call("flock", None, vec![lock])
    };
    let answer = |holder, child: Wait| {
        let tree = [
            process(7, vec![thread(7, lock(holder))]),
            process(8, vec![thread(8, child)]),
        ];
        asked(&tree, false, true, 4).answer
    };
    let forever = || call("pause", None, vec![]);
    assert_eq!(answer(Some(9), forever()), WaitsFor::Lock, "outside");
    assert_eq!(answer(None, forever()), WaitsFor::Lock);
    assert_eq!(answer(Some(8), forever()), WaitsFor::Card);
    let upload = call("recvfrom", None, vec![peer("tcp", None, false)]);
    assert_eq!(answer(Some(8), upload), WaitsFor::Peer);
    assert_eq!(answer(Some(7), forever()), WaitsFor::Process, "by itself");
}

#[test]
fn between_phases_a_thread_that_takes_orders_stands_for_a_worker() {
    let worker = || thread(7, call("futex", None, vec![]));
    let answer = |other: Wait, works: bool| {
        let tree = [process(7, vec![worker(), thread(8, other)])];
        asked(&tree, false, works, 4).answer
    };
    let minutes = Some(280_000);
    // libraries have timers of their own, short ones
    assert_eq!(
        answer(call("futex", Some(30_000), vec![]), false),
        WaitsFor::Process
    );
    assert_eq!(
        answer(call("accept4", None, vec![listener()]), false),
        WaitsFor::Client
    );
    let ping = call("recvfrom", None, vec![peer("tcp", None, false)]);
    assert_eq!(answer(ping.clone(), false), WaitsFor::Peer);
    // the thread that repaints bars, and another one at a queue
    assert_eq!(
        answer(call("futex", Some(9_000), vec![]), false),
        WaitsFor::Process
    );
    assert_eq!(
        answer(call("futex", None, vec![]), false),
        WaitsFor::Process
    );
    for other in [call("futex", minutes, vec![]), ping] {
        assert_eq!(answer(other, true), WaitsFor::Process, "mid-phase");
    }
    // a poll that begins again and again is no pause
    let polls = [process(
        7,
        vec![thread(7, call("futex", Some(5_000), vec![]))],
    )];
    assert_eq!(asked(&polls, false, false, 4).answer, WaitsFor::Process);
    let event_loop = call("epoll_wait", minutes, vec![peer("unix", Some(7), false)]);
    let asleep = |works| {
        asked(
            &[process(7, vec![thread(7, event_loop.clone())])],
            false,
            works,
            4,
        )
    };
    assert_eq!(asleep(false).answer, WaitsFor::Time);
    assert_eq!(asleep(true).answer, WaitsFor::Process);
}

/// An event loop rests in the main thread while the thread that computed for it waits for work.
#[test]
fn between_phases_the_pause_of_the_main_thread_counts() {
    let answer = |limit_ms: Option<u64>, works: bool| {
        let tree = process(
            7,
            vec![
                thread(
                    7,
                    call("epoll_wait", limit_ms, vec![peer("unix", Some(7), false)]),
                ),
                thread(8, call("futex", None, vec![])),
            ],
        );
        let (holder, probe) = (holder((7, 8), false, works), probe(&[tree]));
        let mut probes = Probes::default();
        for s in [0, 2, 4] {
            probes.observe(Mono::from_secs(s), &probe);
            probes.follow(Mono::from_secs(s), holder.id);
        }
        waits(
            Mono::from_secs(4),
            holder,
            &probes,
            &ThreadTracker::default(),
        )
        .answer
    };
    assert_eq!(answer(Some(67_000), false), WaitsFor::Time);
    assert_eq!(answer(Some(67_000), true), WaitsFor::Process, "mid-phase");
    for poll in [None, Some(1_000), Some(3_600_000)] {
        assert_eq!(answer(poll, false), WaitsFor::Process, "{poll:?}");
    }
}

/// A scheduler's thread waits until the next clip is due, while those that made the last one wait
/// for it: `at_s` seconds later the thread of the clip has waited as long.
#[test]
fn between_phases_a_long_timer_of_another_thread_counts_for_some_minutes() {
    let answer = |left_ms: Option<u64>, works: bool, at_s: u64| {
        let tree = process(
            7,
            vec![
                thread(7, call("futex", None, vec![])),
                thread(8, call("futex", None, vec![])),
                thread(9, call("futex", left_ms, vec![])),
            ],
        );
        let (holder, probe) = (holder((7, 8), false, works), probe(&[tree]));
        let mut probes = Probes::default();
        for s in [0, at_s - 2, at_s] {
            probes.observe(Mono::from_secs(s), &probe);
            probes.follow(Mono::from_secs(s), holder.id);
        }
        let threads = ThreadTracker::default();
        waits(Mono::from_secs(at_s), holder, &probes, &threads).answer
    };
    for timer in [55_000, 66_000, 90_000, 300_000, 600_000] {
        assert_eq!(answer(Some(timer), false, 150), WaitsFor::Time, "{timer}");
        assert_eq!(
            answer(Some(timer), true, 150),
            WaitsFor::Process,
            "mid-phase"
        );
        assert_eq!(
            answer(Some(timer), false, 700),
            WaitsFor::Process,
            "{timer}"
        );
    }
    // reports beside a hang, and a stand-in for ever
    for other in [
        None,
        Some(1_000),
        Some(10_000),
        Some(30_000),
        Some(44_000),
        Some(86_400_000),
    ] {
        assert_eq!(answer(other, false, 150), WaitsFor::Process, "{other:?}");
    }
}

/// A timer's thread has ended, and that of the next one is not there yet.
#[test]
fn between_phases_one_probe_between_two_timers_ends_no_rest() {
    let main = || thread(7, call("futex", None, vec![]));
    let timer = |tid: u32, left: u64| thread(tid, call("futex", Some(left), vec![]));
    let rounds = [
        vec![main(), timer(8, 60_000)],
        vec![main(), timer(8, 900)],
        vec![main()],
        vec![main()],
    ];
    let holder = holder((7, 7), false, false);
    let mut probes = Probes::default();
    let mut answers = Vec::new();
    for (round, at) in rounds.into_iter().zip([0, 58, 60, 62]) {
        let now = Mono::from_secs(at);
        probes.observe(now, &probe(&[process(7, round)]));
        probes.follow(now, holder.id);
        answers.push(waits(now, holder, &probes, &ThreadTracker::default()).answer);
    }
    let time = WaitsFor::Time;
    assert_eq!(answers, [time, time, time, WaitsFor::Process]);
}

/// The CUDA driver has a thread at a listening socket in every process that uses a card.
#[test]
fn between_phases_the_socket_of_a_library_is_no_client() {
    let answer = |address: &str| {
        let on = vec![
            WaitTarget::Event {
                what: "eventfd".to_owned(),
            },
            WaitTarget::Listener {
                address: address.to_owned(),
            },
        ];
        let tree = process(
            7,
            vec![
                thread(7, call("futex", None, vec![])),
                thread(8, call("poll", None, on)),
            ],
        );
        asked(&[tree], false, false, 4).answer
    };
    assert_eq!(
        answer("unix @cuda-uvmfd-4026531836-18780@"),
        WaitsFor::Process
    );
    assert_eq!(answer("unix /tmp/pymp-ab/listener-cd"), WaitsFor::Process);
    assert_eq!(answer("tcp 127.0.0.1:7860"), WaitsFor::Client);
}

/// A timer starts as the job rests, and ends the rest; one that has gone on beside the job is
/// a library's.
#[test]
fn between_phases_a_limit_counts_of_a_thread_that_stopped_with_the_holder() {
    assert_eq!(beside_a_timer(40_000, &[30], false), WaitsFor::Time);
    for beside in [4, 58] {
        let answer = beside_a_timer(40_000, &[beside], false);
        assert_eq!(answer, WaitsFor::Process, "{beside}");
    }
    let answer = beside_a_timer(40_000, &[30], true);
    assert_eq!(answer, WaitsFor::Process, "mid-phase");
}

/// A report each minute beside a hang; a scheduler that has not woken since the last clip; one
/// timer that follows another, each in a new thread.
#[test]
fn between_phases_a_long_timer_counts_until_it_fires_without_a_clip() {
    for reports in [&[58][..], &[2, 58], &[44]] {
        let answer = beside_a_timer(60_000, reports, false);
        assert_eq!(answer, WaitsFor::Process, "{reports:?}");
    }
    for scheduler in [&[][..], &[4], &[30], &[4, 36]] {
        let answer = beside_a_timer(60_000, scheduler, false);
        assert_eq!(answer, WaitsFor::Time, "{scheduler:?}");
    }
}

/// What the main thread, which ran until 30 s, waits for at 60 s beside a thread that waits in
/// a timer of this length and ran at these seconds.
fn beside_a_timer(limit_ms: u64, ran_s: &[u64], works: bool) -> WaitsFor {
    let tree = process(
        7,
        vec![
            thread(7, call("futex", None, vec![])),
            thread(8, call("futex", Some(limit_ms), vec![])),
        ],
    );
    let (holder, probe) = (holder((7, 7), false, works), probe(&[tree]));
    let (mut probes, mut threads) = (Probes::default(), ThreadTracker::default());
    for s in (0..=60).step_by(2) {
        let sample = |tid: u32, run_s: u64| ThreadSample {
            pid: 7,
            tid,
            name: format!("thread {tid}"),
            state: 'S',
            run_ns: run_s * 1_000_000_000,
            switches: run_s,
            wchan: None,
        };
        let ran = ran_s.iter().filter(|at| **at <= s).sum();
        let round = [sample(7, s.min(30)), sample(8, ran)];
        threads.observe(Mono::from_secs(s), &round, Credit::None);
        probes.observe(Mono::from_secs(s), &probe);
        probes.follow(Mono::from_secs(s), (7, 7));
    }
    waits(Mono::from_secs(60), holder, &probes, &threads).answer
}

#[test]
fn of_several_that_are_waited_for_one_may_be_harmless() {
    let any = || call("wait4", None, vec![WaitTarget::Process { pid: None }]);
    let child = |pid: u32, wait: Wait| ProbedProcess {
        parent: 7,
        ..process(pid, vec![thread(pid, wait)])
    };
    let answer = |children: Vec<ProbedProcess>| {
        let mut tree = vec![process(7, vec![thread(7, any())])];
        tree.extend(children);
        asked(&tree, false, true, 4).answer
    };
    let forever = || call("pause", None, vec![]);
    let nap = || call("clock_nanosleep", Some(45_000), vec![]);
    assert_eq!(answer(vec![child(8, forever())]), WaitsFor::Card);
    assert_eq!(
        answer(vec![child(8, forever()), child(9, nap())]),
        WaitsFor::Time
    );
    assert_eq!(answer(vec![child(8, Wait::Running)]), WaitsFor::Unknown);
    assert_eq!(answer(vec![]), WaitsFor::Process);
}

#[test]
fn a_request_to_a_server_of_the_tree_is_asked_at_the_thread_that_answers_it() {
    let asks = process(
        7,
        vec![thread(
            7,
            call("recvfrom", None, vec![peer("tcp", Some(8), false)]),
        )],
    );
    let answer = |handler: Wait, takes: Vec<WaitTarget>| {
        let taker = thread(8, call("poll", Some(500), takes));
        let mut agents = thread(10, call("recvfrom", None, vec![peer("unix", None, false)]));
        agents.name = AGENT_THREAD.to_owned();
        let server = process(8, vec![taker, thread(9, handler), agents]);
        asked(&[asks.clone(), server], false, true, 4).answer
    };
    let stuck = || call("futex", None, vec![]);
    assert_eq!(answer(stuck(), vec![listener()]), WaitsFor::Process);
    let outside = || peer("tcp", None, false);
    let remote = call("recvfrom", None, vec![outside()]);
    assert_eq!(answer(remote, vec![listener()]), WaitsFor::Peer);
    // one event loop for both
    assert_eq!(
        answer(stuck(), vec![listener(), outside()]),
        WaitsFor::Client
    );
}

#[test]
fn a_poll_of_a_thread_that_has_ended_is_no_pause() {
    let answer = |bereft, timeout| {
        let holder = HolderContext {
            id: (7, 7),
            operates: false,
            works: true,
            between: false,
            bereft,
            owes_answer: false,
            moved: Mono::ZERO,
            limit: LIMIT,
        };
        sleep(holder, Some(Duration::from_millis(timeout)), None)
    };
    assert_eq!(answer(false, 500), WaitsFor::Time);
    assert_eq!(answer(true, 500), WaitsFor::Process);
    assert_eq!(answer(true, 60_000), WaitsFor::Time, "its end is known");
}

#[test]
fn the_next_client_does_not_go_on_with_the_steps_of_one_that_waits() {
    let answer = |timeout: Option<u64>, on: Vec<WaitTarget>| {
        let holder = HolderContext {
            owes_answer: true,
            ..holder((7, 7), false, true)
        };
        let timeout = timeout.map(Duration::from_secs);
        let tree = probe(&[]);
        by_call(holder, "epoll_wait", timeout, &on, None, &tree, None)
    };
    let client = || peer("tcp", None, true);
    let (waits, detail) = answer(None, vec![listener(), client()]);
    assert_eq!(waits, WaitsFor::Process);
    assert_eq!(detail.as_deref(), Some("a client waits for the answer"));
    assert_eq!(answer(Some(90), vec![listener()]).0, WaitsFor::Time);
    let asks = vec![listener(), client(), peer("tcp", None, false)];
    assert_eq!(answer(None, asks).0, WaitsFor::Peer);
    let encoder = vec![listener(), peer("unix", Some(8), false)];
    assert_eq!(answer(None, encoder).0, WaitsFor::Process);
}

/// Thread 7 looks each second for an event of its process, in the middle of a job.
fn polls_beside(others: Vec<ProbedThread>, more: &[ProbedProcess]) -> Waits {
    let mut all = vec![thread(7, call("futex", Some(900), vec![]))];
    all.extend(others);
    let mut tree = vec![ProbedProcess {
        parent: 6,
        ..process(7, all)
    }];
    tree.extend(more.iter().cloned());
    asked(&tree, false, true, 4)
}

#[test]
fn a_poll_in_mid_job_ends_by_an_order_that_another_thread_takes() {
    let page = || thread(8, call("poll", Some(500), vec![listener()]));
    let on_a_connection = || thread(8, call("recvfrom", None, vec![peer("tcp", None, true)]));
    let keys = || thread(8, call("read", None, vec![WaitTarget::Terminal]));
    let folder = WaitTarget::Event {
        what: "inotify".to_owned(),
    };
    let files = || thread(8, call("read", None, vec![folder.clone()]));
    for (other, want) in [
        (page(), WaitsFor::Client),
        (on_a_connection(), WaitsFor::Client),
        (keys(), WaitsFor::Person),
        (files(), WaitsFor::Client),
    ] {
        let words = format!("{other:?}");
        let idle = thread(9, call("futex", None, vec![]));
        let waits = polls_beside(vec![idle, other], &[]);
        assert_eq!((waits.answer, waits.tid), (want, Some(8)), "{words}");
    }
    // the page is in the process that started this one, or in one of its own children
    let with_page = |pid| {
        process(
            pid,
            vec![thread(pid, call("accept4", None, vec![listener()]))],
        )
    };
    let waits = polls_beside(vec![], &[with_page(6)]);
    assert_eq!(waits.answer, WaitsFor::Client);
    let child = ProbedProcess {
        parent: 7,
        ..with_page(9)
    };
    assert_eq!(polls_beside(vec![], &[child]).answer, WaitsFor::Process);
}

#[test]
fn a_poll_in_mid_job_that_nobody_outside_ends_is_a_hang() {
    let page = || thread(8, call("poll", Some(500), vec![listener()]));
    let kfd = || WaitTarget::Card {
        device: "/dev/kfd".to_owned(),
    };
    assert_eq!(polls_beside(vec![], &[]).answer, WaitsFor::Process);
    let idle = || thread(9, call("futex", None, vec![]));
    assert_eq!(polls_beside(vec![idle()], &[]).answer, WaitsFor::Process);
    // what it looks for is stuck
    for stuck in [
        call("ioctl", None, vec![kfd()]),
        call("pause", None, vec![]),
    ] {
        let waits = polls_beside(vec![page(), thread(9, stuck)], &[]);
        assert_eq!(waits.answer, WaitsFor::Process);
    }
    let child = ProbedProcess {
        parent: 7,
        ..process(9, vec![thread(9, call("pause", None, vec![]))])
    };
    let waits = polls_beside(vec![page()], &[child]);
    assert_eq!(waits.answer, WaitsFor::Process);
    // a wait without a limit is that of an event which never came
    let waits = asked(
        &[process(
            7,
            vec![thread(7, call("futex", None, vec![])), page()],
        )],
        false,
        true,
        4,
    );
    assert_eq!(waits.answer, WaitsFor::Process);
}

#[test]
fn a_poll_while_a_client_waits_for_the_answer_is_a_hang() {
    let tree = probe(&[process(
        7,
        vec![
            thread(7, call("futex", Some(900), vec![])),
            thread(8, call("poll", Some(500), vec![listener()])),
        ],
    )]);
    let answer = |owes_answer, bereft| {
        let holder = HolderContext {
            bereft,
            owes_answer,
            ..holder((7, 7), false, true)
        };
        let mut probes = Probes::default();
        probes.observe(Mono::from_secs(0), &tree);
        probes.observe(Mono::from_secs(2), &tree);
        let threads = ThreadTracker::default();
        waits(Mono::from_secs(2), holder, &probes, &threads).answer
    };
    assert_eq!(answer(false, false), WaitsFor::Client);
    assert_eq!(answer(true, false), WaitsFor::Process);
    assert_eq!(answer(false, true), WaitsFor::Process);
}

/// A parent looks each second whether its child has ended, which ran until this moment and
/// waits in this call; at 60 s, while the job has not moved since 30 s.
fn looks_after_a_child(ran_until_s: u64, wait: &Wait) -> WaitsFor {
    let child = ProbedProcess {
        parent: 7,
        ..process(8, vec![thread(8, wait.clone())])
    };
    let nap = call("clock_nanosleep", Some(900), vec![]);
    let tree = probe(&[process(7, vec![thread(7, nap)]), child]);
    let holder = HolderContext {
        moved: Mono::from_secs(30),
        ..holder((7, 7), false, false)
    };
    let (mut probes, mut threads) = (Probes::default(), ThreadTracker::default());
    for s in (0..=60).step_by(2) {
        let sample = |pid: u32, run_s: u64| ThreadSample {
            pid,
            tid: pid,
            name: "python".to_owned(),
            state: 'S',
            run_ns: run_s * 1_000_000,
            switches: run_s,
            wchan: None,
        };
        let round = [sample(7, s), sample(8, s.min(ran_until_s))];
        threads.observe(Mono::from_secs(s), &round, Credit::None);
        probes.observe(Mono::from_secs(s), &tree);
        probes.follow(Mono::from_secs(s), (7, 7));
    }
    waits(Mono::from_secs(60), holder, &probes, &threads).answer
}

#[test]
fn a_child_that_stopped_with_the_job_in_a_wait_without_end_is_stuck() {
    for forever in [
        call("pause", None, vec![]),
        call("rt_sigsuspend", None, vec![]),
        call("pselect6", None, vec![]),
    ] {
        assert_eq!(looks_after_a_child(30, &forever), WaitsFor::Card);
        // one that has rested since its start, or that still runs now and then, is a helper
        assert_eq!(looks_after_a_child(0, &forever), WaitsFor::Time);
        assert_eq!(looks_after_a_child(4, &forever), WaitsFor::Time);
        assert_eq!(looks_after_a_child(60, &forever), WaitsFor::Time);
    }
    let takes_orders = call("read", None, vec![WaitTarget::Pipe { ends: vec![7] }]);
    assert_eq!(looks_after_a_child(30, &takes_orders), WaitsFor::Time);
    let nap = call("clock_nanosleep", Some(900), vec![]);
    assert_eq!(looks_after_a_child(30, &nap), WaitsFor::Time);
}

#[test]
fn a_poll_of_nothing_without_a_limit_never_ends() {
    for name in ["poll", "ppoll", "select", "pselect6"] {
        assert_eq!(alone(call(name, None, vec![])), WaitsFor::Card, "{name}");
        assert_eq!(alone(call(name, Some(900), vec![])), WaitsFor::Time);
    }
    // of an epoll others may change what it waits for
    assert_eq!(alone(call("epoll_wait", None, vec![])), WaitsFor::Unknown);
    // the end of a pipe that an idle helper keeps open
    let reads = call("read", None, vec![WaitTarget::Pipe { ends: vec![8] }]);
    let helper = process(8, vec![thread(8, call("pselect6", None, vec![]))]);
    let waits = asked(
        &[process(7, vec![thread(7, reads)]), helper],
        false,
        true,
        4,
    );
    assert_eq!((waits.answer, waits.tid), (WaitsFor::Card, Some(8)));
}

#[test]
fn a_short_poll_of_a_pipe_from_outside_is_no_hang() {
    let outside = || WaitTarget::Pipe { ends: vec![] };
    let polls = call("pselect6", Some(900), vec![outside()]);
    assert_eq!(alone(polls), WaitsFor::Time);
    assert_eq!(
        alone(call("read", None, vec![outside()])),
        WaitsFor::Unknown
    );
}

#[test]
fn a_worker_whose_job_may_be_over_waits_for_the_clients_of_its_page() {
    let answer = |worker_of: u32, works: bool| {
        let orders = call("read", None, vec![peer("unix", Some(6), false)]);
        let worker = ProbedProcess {
            parent: worker_of,
            ..process(7, vec![thread(7, orders)])
        };
        let takes_clients = thread(6, call("poll", Some(500), vec![listener()]));
        let page = process(
            6,
            vec![takes_clients, thread(5, call("futex", None, vec![]))],
        );
        asked(&[page, worker], false, works, 4).answer
    };
    assert_eq!(answer(6, false), WaitsFor::Client);
    assert_eq!(answer(6, true), WaitsFor::Process, "in the middle of a job");
    // it asked a server that it started itself, and that does not answer
    assert_eq!(answer(1, false), WaitsFor::Process);
}
