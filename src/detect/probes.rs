//! What the probes of an attempt say: bytes and faults of single threads, bytes to and from
//! peers, and signs that a generation is under way.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::model::{Mono, Probe, ProbedProcess, ProbedThread, Wait, WaitTarget};

use super::threads::ThreadId;
use super::thresholds::{Thresholds, secs};

/// A probe older than this says nothing about the present. One comes every two seconds; of a
/// job that has rested for minutes, for a few seconds out of each half minute.
const RECENT: Duration = Duration::from_secs(40);
/// One that is older does not tell what moves at this moment.
const FRESH: Duration = Duration::from_secs(10);
/// Totals of traffic that are remembered.
const MOST_TOTALS: usize = 64;

/// The last two probes, and totals of traffic over a window.
#[derive(Debug, Clone, Default)]
pub(crate) struct Probes {
    last: Option<(Mono, Arc<Probe>)>,
    before: Option<(Mono, Arc<Probe>)>,
    traffic: VecDeque<(Mono, u64)>,
    /// A probe has come in this attempt.
    ever: bool,
    /// Since when the holder has been seen in the same wait, and its run time then.
    wait: Option<(ThreadId, Wait, u64, Mono)>,
    /// The longest time limit of that wait.
    limit: Option<Duration>,
    /// The wait of each thread in which a time limit was seen, and the longest of them.
    limits: BTreeMap<ThreadId, (Wait, Duration)>,
    /// The same of threads that ended between the last two probes.
    limits_of_ended: BTreeMap<ThreadId, (Wait, Duration)>,
}

impl Probes {
    /// Takes a probe.
    pub(super) fn observe(&mut self, now: Mono, probe: &Probe) {
        let total = probe
            .network
            .fresh()
            .map(|t| t.received.saturating_add(t.sent));
        match total {
            Some(total) => {
                self.traffic.push_back((now, total));
                if self.traffic.len() > MOST_TOTALS {
                    self.traffic.pop_front();
                }
            }
            None => self.traffic.clear(),
        }
        self.follow_limits(probe);
        self.before = self.last.take();
        self.last = Some((now, Arc::new(probe.clone())));
        self.ever = true;
    }

    /// R7: readings before a standstill are not compared with those after it.
    pub(super) fn cut(&mut self) {
        self.before = None;
        self.traffic.clear();
        self.wait = None;
    }

    /// Whether a probe has come in this attempt.
    pub(crate) const fn came(&self) -> bool {
        self.ever
    }

    /// The last probe, where it speaks for the present.
    pub(crate) fn recent(&self, now: Mono) -> Option<&Probe> {
        self.recent_at(now).map(|(_, probe)| &**probe)
    }

    /// The same with its time.
    fn recent_at(&self, now: Mono) -> Option<&(Mono, Arc<Probe>)> {
        let recent = |(at, _): &&(Mono, Arc<Probe>)| now.since(*at) <= RECENT;
        self.last.as_ref().filter(recent)
    }

    /// Whether a probe tells what moves at this moment.
    pub(crate) fn is_fresh(&self, now: Mono) -> bool {
        self.last
            .as_ref()
            .is_some_and(|(at, _)| now.since(*at) <= FRESH)
    }

    /// The probe before the last one, where it speaks for the present as well.
    pub(crate) fn recent_before(&self, now: Mono) -> Option<&Probe> {
        let (at, probe) = self.before.as_ref()?;
        (now.since(*at) <= RECENT).then_some(probe)
    }

    /// A thread in the last probe.
    pub(crate) fn thread(
        &self,
        now: Mono,
        id: ThreadId,
    ) -> Option<(&ProbedProcess, &ProbedThread)> {
        thread_of(self.recent(now)?, id)
    }

    /// The share of a core that a thread used between the last two probes; absent: not known.
    pub(crate) fn load(&self, id: ThreadId) -> Option<f64> {
        self.rate(id, |t| Some(t.run_ns)).map(|ns| ns / 1e9)
    }

    /// Remembers the longest limits of the waits of all threads.
    fn follow_limits(&mut self, probe: &Probe) {
        let mut before = std::mem::take(&mut self.limits);
        for (process, thread) in probe.threads() {
            let id = (process.pid, thread.tid);
            let same = before.remove(&id);
            let same = same.filter(|(wait, _)| same_call(wait, &thread.wait));
            if let Some(limit) = limit_of(&thread.wait).max(same.map(|(_, limit)| limit)) {
                self.limits.insert(id, (thread.wait.clone(), limit));
            }
        }
        self.limits_of_ended = before;
    }

    /// The longest time limit that was seen in the present kind of wait of a thread: of one
    /// wait less and less is left, and a poll begins it again.
    pub(crate) fn longest_limit(&self, id: ThreadId) -> Option<Duration> {
        let ended = || self.limits_of_ended.get(&id);
        Some(self.limits.get(&id).or_else(ended)?.1)
    }

    /// Remembers since when the holder has been in its wait.
    pub(super) fn follow(&mut self, now: Mono, id: ThreadId) {
        let thread = self.thread(now, id);
        let Some((wait, run_ns)) = thread.map(|(_, t)| (t.wait.clone(), t.run_ns)) else {
            self.wait = None;
            return;
        };
        // a thread that ran in between began another sleep
        let same = |was: &(ThreadId, Wait, u64, Mono)| {
            was.0 == id && same_call(&was.1, &wait) && (!is_sleep(&wait) || was.2 == run_ns)
        };
        let limit = limit_of(&wait);
        if self.wait.as_ref().is_some_and(same) {
            self.limit = self.limit.max(limit);
        } else {
            self.limit = limit;
            self.wait = Some((id, wait, run_ns, now));
        }
    }

    /// The longest time limit that was seen in that wait: what is left of one gets less.
    pub(crate) fn limit(&self, id: ThreadId) -> Option<Duration> {
        let (of, ..) = self.wait.as_ref()?;
        self.limit.filter(|_| *of == id)
    }

    /// How long that has been so.
    pub(crate) fn waited(&self, now: Mono, id: ThreadId) -> Option<Duration> {
        let (of, _, _, since) = self.wait.as_ref()?;
        (*of == id).then(|| now.since(*since))
    }

    /// Bytes a second that a thread reads and writes; absent: not readable, or one probe only.
    pub(crate) fn bytes_per_s(&self, id: ThreadId) -> Option<f64> {
        self.rate(id, |t| Some(t.read?.0.saturating_add(t.written?.0)))
    }

    /// Major and minor faults a second of a thread.
    pub(crate) fn faults_per_s(&self, id: ThreadId) -> Option<(f64, f64)> {
        let major = self.rate(id, |t| Some(t.major_faults))?;
        let minor = self.rate(id, |t| Some(t.minor_faults))?;
        Some((major, minor))
    }

    /// Threads of the last two probes that read or write at least this many bytes a second.
    pub(crate) fn heavy(&self, bps: f64) -> impl Iterator<Item = ThreadId> {
        let threads = self.last.iter().flat_map(|(_, p)| p.threads());
        threads
            .map(|(p, t)| (p.pid, t.tid))
            .filter(move |id| self.bytes_per_s(*id).is_some_and(|b| b >= bps))
    }

    #[expect(clippy::cast_precision_loss, reason = "rates for thresholds")]
    fn rate(&self, id: ThreadId, of: impl Fn(&ProbedThread) -> Option<u64>) -> Option<f64> {
        let find = |probe: &Arc<Probe>| {
            let threads = &probe.process(id.0)?.threads;
            of(threads.iter().find(|t| t.tid == id.1)?)
        };
        let (before_at, before) = self.before.as_ref()?;
        let (at, now) = self.last.as_ref()?;
        let seconds = at.since(*before_at).as_secs_f64();
        let more = find(now)?.checked_sub(find(before)?)?;
        (seconds > 0.0).then(|| more as f64 / seconds)
    }

    /// Bytes a second to and from peers outside the tree, over the window of
    /// [`Thresholds::network_window_s`]; absent: not readable, or not long enough.
    #[expect(clippy::cast_precision_loss, reason = "rates for thresholds")]
    pub(crate) fn network_bps(&self, t: &Thresholds) -> Option<f64> {
        let (now, total) = self.traffic.back()?;
        let window = secs(t.network_window_s);
        let long_ago = |(at, _): &&(Mono, u64)| now.since(*at) >= window;
        let (at, before) = self.traffic.iter().rev().find(long_ago)?;
        // a connection that closed took its bytes along
        Some(total.saturating_sub(*before) as f64 / now.since(*at).as_secs_f64())
    }

    /// What shows that a program that is no server generates: a device of a card in a
    /// process with PyTorch, or a large weight file.
    pub(crate) fn sign(&self, now: Mono) -> Option<&'static str> {
        let probe = self.recent(now)?;
        let any = |is: fn(&ProbedProcess) -> bool| probe.processes.iter().any(is);
        if any(|p| p.weights.is_some()) {
            return Some("a weight file is open");
        }
        any(|p| p.torch && p.card).then_some("PyTorch has a device of the card open")
    }

    /// When each request came that a client outside the tree has had no byte of an answer to.
    pub(crate) fn unanswered(&self, now: Mono) -> impl Iterator<Item = Mono> {
        self.recent_at(now).into_iter().flat_map(|(at, probe)| {
            let traffic = probe.network.fresh().into_iter();
            let ages = traffic.flat_map(|t| &t.unanswered_ms);
            ages.map(|age| Mono(at.0.saturating_sub(*age)))
        })
    }

    /// A result that is open for writing.
    pub(crate) fn written(&self, now: Mono) -> Option<&str> {
        let probe = self.recent(now)?;
        let all = probe.processes.iter().flat_map(|p| &p.writes);
        all.map(String::as_str).next()
    }

    /// Whether a process listens on a socket for clients.
    pub(crate) fn listens(&self, now: Mono) -> bool {
        let Some(probe) = self.recent(now) else {
            return false;
        };
        let mut addresses = probe.processes.iter().flat_map(|p| &p.listens);
        addresses.any(|address| !is_internal(address))
    }

    /// A thread of the process that waits on a listening socket of it for clients.
    pub(crate) fn server_thread(process: &ProbedProcess) -> Option<&ProbedThread> {
        let serves =
            |t: &&ProbedThread| waits_for_client(&t.wait) && !serves_the_job(process.pid, t);
        process.threads.iter().find(serves)
    }
}

/// A thread of a probe, with its process.
pub(crate) fn thread_of(probe: &Probe, id: ThreadId) -> Option<(&ProbedProcess, &ProbedThread)> {
    let process = probe.process(id.0)?;
    let thread = process.threads.iter().find(|t| t.tid == id.1)?;
    Some((process, thread))
}

/// Whether a wait ends when a client comes.
pub(crate) fn waits_for_client(wait: &Wait) -> bool {
    match wait {
        Wait::Call { call, on, .. } => {
            let listener = |t: &WaitTarget| matches!(t, WaitTarget::Listener { .. });
            matches!(call.as_str(), "accept" | "accept4") || on.iter().any(listener)
        }
        Wait::Running | Wait::Blocked { .. } | Wait::Unreadable { .. } => false,
    }
}

/// Whether who is waited for there is a process of the job or of a library, and no client.
pub(crate) fn serves_the_job(own: u32, thread: &ProbedThread) -> bool {
    connects_ranks(own, thread) || serves_its_library(&thread.wait)
}

/// Whether a thread listens for processes of its own library alone.
pub(crate) fn serves_its_library(wait: &Wait) -> bool {
    let Wait::Call { on, .. } = wait else {
        return false;
    };
    let listens = |internal: bool| {
        on.iter().any(|target| match target {
            WaitTarget::Listener { address } => is_internal(address) == internal,
            _ => false,
        })
    };
    listens(true) && !listens(false)
}

/// Whether a library listens there for its own processes, so that no client ever comes: the
/// memory service of the CUDA driver, Python's multiprocessing (its manager, fork server and
/// sharer of descriptors) and the shared memory of PyTorch.
fn is_internal(address: &str) -> bool {
    let Some(path) = address.strip_prefix("unix ") else {
        return false;
    };
    path.starts_with("@cuda-")
        || path.contains("/pymp-") && path.contains("/listener-")
        || path.contains("/torch-shm-dir-")
        || path.contains("/torch_shm_")
}

/// Whether a thread listens so that the processes of one job find each other: by the name
/// that PyTorch and NCCL give it, or since it waits for its listener together with a
/// connection that it made itself to another process of the tree (an event loop has one to
/// its own process, by which it is woken).
fn connects_ranks(own: u32, thread: &ProbedThread) -> bool {
    const NAMES: [&str; 4] = ["gloo", "pt_tcpstore", "pt_gloo", "nccl"];
    let name = thread.name.to_ascii_lowercase();
    let made = |t: &WaitTarget| {
        matches!(
            t,
            WaitTarget::Peer {
                inside: Some(pid),
                accepted: false,
                ..
            } if *pid != own
        )
    };
    let joins = matches!(&thread.wait, Wait::Call { on, .. } if on.iter().any(made));
    joins || NAMES.iter().any(|n| name.starts_with(n))
}

/// Whether a wait ends by itself after some time.
fn is_sleep(wait: &Wait) -> bool {
    match wait {
        Wait::Call {
            call, timeout_ms, ..
        } => call.contains("nanosleep") || timeout_ms.is_some(),
        Wait::Unreadable { channel, .. } => {
            channel.as_deref().is_some_and(|c| c.contains("nanosleep"))
        }
        Wait::Running | Wait::Blocked { .. } => false,
    }
}

/// The time limit of a wait.
fn limit_of(wait: &Wait) -> Option<Duration> {
    match wait {
        Wait::Call { timeout_ms, .. } => timeout_ms.map(Duration::from_millis),
        Wait::Running | Wait::Blocked { .. } | Wait::Unreadable { .. } => None,
    }
}

/// Whether two looks saw the same wait: the time left is another at each look.
fn same_call(a: &Wait, b: &Wait) -> bool {
    match (a, b) {
        (
            Wait::Call { call, on, .. },
            Wait::Call {
                call: other,
                on: others,
                ..
            },
        ) => call == other && on == others,
        (Wait::Unreadable { channel, .. }, Wait::Unreadable { channel: other, .. }) => {
            channel == other
        }
        (Wait::Running, Wait::Running) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Bytes, Metric, PeerTraffic};

    fn probe(read: u64, sent: u64) -> Probe {
        Probe {
            processes: vec![ProbedProcess {
                pid: 7,
                threads: vec![ProbedThread {
                    tid: 7,
                    name: "python".to_owned(),
                    state: 'S',
                    run_ns: 0,
                    read: Some(Bytes(read)),
                    written: Some(Bytes(0)),
                    major_faults: 0,
                    minor_faults: 0,
                    wait: Wait::Running,
                }],
                ..ProbedProcess::default()
            }],
            network: Metric::Fresh(PeerTraffic {
                sent,
                ..PeerTraffic::default()
            }),
            ..Probe::default()
        }
    }

    #[test]
    fn rates_need_two_probes_and_a_window() {
        let t = Thresholds::DEFAULT;
        let mut p = Probes::default();
        p.observe(Mono::from_secs(0), &probe(0, 0));
        assert_eq!(p.bytes_per_s((7, 7)), None);
        p.observe(Mono::from_secs(2), &probe(200_000, 20_000));
        assert_eq!(p.bytes_per_s((7, 7)), Some(100_000.0));
        assert_eq!(p.bytes_per_s((7, 8)), None);
        assert_eq!(p.network_bps(&t), None, "two seconds are no window");
        for s in [4, 6, 8, 10] {
            p.observe(Mono::from_secs(s), &probe(200_000, 20_000));
        }
        assert_eq!(p.bytes_per_s((7, 7)), Some(0.0));
        assert_eq!(p.network_bps(&t), Some(2000.0));
        p.cut();
        assert_eq!(p.network_bps(&t), None);
        assert!(p.came() && p.recent(Mono::from_secs(60)).is_none());
        assert!(!p.is_fresh(Mono::from_secs(30)));
    }

    #[test]
    fn a_listener_between_the_ranks_of_a_job_serves_no_client() {
        let thread = |name: &str, peer: Option<(Option<u32>, bool)>| {
            let mut on = vec![WaitTarget::Listener {
                address: "tcp 127.0.0.1:38125".to_owned(),
            }];
            on.extend(peer.map(|(inside, accepted)| WaitTarget::Peer {
                network: "tcp".to_owned(),
                address: "127.0.0.1:38965".to_owned(),
                inside,
                accepted,
            }));
            let mut process = probe(0, 0).processes.remove(0);
            process.threads[0].name = name.to_owned();
            process.threads[0].wait = Wait::Call {
                call: "epoll_wait".to_owned(),
                on,
                timeout_ms: None,
                channel: None,
            };
            Probes::server_thread(&process).is_some()
        };
        assert!(thread("uvicorn", None));
        assert!(thread("uvicorn", Some((None, true))));
        // its client is a process of the tree, or it asks another machine
        assert!(thread("uvicorn", Some((Some(8), true))));
        assert!(thread("uvicorn", Some((None, false))));
        assert!(thread("uvicorn", Some((Some(7), false))), "it wakes itself");
        assert!(!thread("python", Some((Some(8), false))));
        assert!(!thread("gloo_tcp_loop", None));
        assert!(!thread("pt_tcpstore_uv", Some((Some(8), true))));
    }

    #[test]
    fn a_socket_of_a_library_serves_no_client() {
        let serves = |addresses: &[&str]| {
            let mut seen = probe(0, 0);
            let process = &mut seen.processes[0];
            process.listens = addresses.iter().map(|a| (*a).to_owned()).collect();
            process.threads[0].wait = Wait::Call {
                call: "poll".to_owned(),
                on: addresses
                    .iter()
                    .map(|a| WaitTarget::Listener {
                        address: (*a).to_owned(),
                    })
                    .collect(),
                timeout_ms: None,
                channel: None,
            };
            let server = Probes::server_thread(&seen.processes[0]).is_some();
            let mut probes = Probes::default();
            probes.observe(Mono::ZERO, &seen);
            assert_eq!(probes.listens(Mono::ZERO), server, "{addresses:?}");
            server
        };
        for library in [
            "unix @cuda-uvmfd-4026531836-18780@",
            "unix /tmp/pymp-x1k_2b/listener-0zq7ab",
            "unix /var/tmp/job 7/pymp-abc/listener-1",
            "unix /tmp/torch-shm-dir-aZ3k1f/manager.sock",
            "unix @/tmp/torch_shm_12",
        ] {
            assert!(!serves(&[library]), "{library}");
            assert!(serves(&[library, "tcp 127.0.0.1:7860"]), "{library}");
        }
        for program in [
            "unix /run/pymp.sock",
            "unix @cuda",
            "unix /srv/listener-1",
            "tcp [::1]:8188",
            "unix /home/u/torch/app.sock",
        ] {
            assert!(serves(&[program]), "{program}");
        }
    }

    #[test]
    fn a_connection_that_closes_is_no_traffic_backwards() {
        let mut p = Probes::default();
        p.observe(Mono::from_secs(0), &probe(0, 50_000));
        p.observe(Mono::from_secs(10), &probe(0, 0));
        assert_eq!(p.network_bps(&Thresholds::DEFAULT), Some(0.0));
    }
}
