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

/// The answer for thread 7 of process 7 after `seconds` of probes.
fn asked(processes: &[ProbedProcess], operates: bool, works: bool, seconds: u64) -> Waits {
    let holder = HolderContext {
        id: (7, 7),
        operates,
        works,
        limit: LIMIT,
    };
    let probe = Probe {
        processes: processes.to_vec(),
        network: Metric::Unsupported,
        ..Probe::default()
    };
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

#[test]
fn each_row_of_the_table() {
    let card = || WaitTarget::Card {
        device: "/dev/kfd".to_owned(),
    };
    let listener = || WaitTarget::Listener {
        address: "tcp 127.0.0.1:7860".to_owned(),
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
