//! Whether the program is stopped or traced, since when, and by whom.

use std::time::Duration;

use crate::model::{Mono, Probe, ProcSample, Tracer};

use super::rule::span;

/// See the module.
#[derive(Debug, Clone, Default)]
pub(super) struct Pause {
    now: Option<Paused>,
    /// The process that traces is one of our collectors.
    tracer_is_ours: bool,
}

/// A pause that lasts.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Paused {
    since: Mono,
    by: By,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum By {
    /// A debugger or tracer; absent: it has not been looked up, or cannot be read.
    Tracer(Option<Tracer>),
    /// A signal that stopped this process.
    Signal(u32),
}

impl Pause {
    /// Takes a sample of the tree. `holder`: process of the thread that the job hangs on, while
    /// the job moves; absent: not known, or the job rests, perhaps for a process that is stopped.
    pub(super) fn observe(&mut self, now: Mono, tree: &ProcSample, holder: Option<u32>) {
        let by = self.paused_by(tree, holder);
        self.now = by.map(|by| match self.now.take() {
            Some(before) => before.go_on(by),
            None => Paused { since: now, by },
        });
    }

    fn paused_by(&self, tree: &ProcSample, holder: Option<u32>) -> Option<By> {
        if self.tracer_is_ours {
            return None;
        }
        if tree.traced {
            return Some(By::Tracer(None));
        }
        match tree.state.fresh() {
            Some('t') => return Some(By::Tracer(None)),
            Some('T') => return Some(By::Signal(tree.pid)),
            _ => {}
        }
        let is_jobs = |pid: &&u32| holder.is_none_or(|holder| holder == **pid);
        tree.stopped
            .iter()
            .find(is_jobs)
            .map(|pid| By::Signal(*pid))
    }

    /// Takes a probe, which tells who traces.
    pub(super) fn observe_probe(&mut self, probe: &Probe) {
        let tracer = probe.processes.iter().find_map(|p| p.tracer.as_ref());
        if let (Some(paused), Some(tracer)) = (&mut self.now, tracer)
            && matches!(paused.by, By::Tracer(_))
        {
            paused.by = By::Tracer(Some(tracer.clone()));
        }
    }

    /// While evidence is taken a collector may stop and trace the program; the user does not
    /// pause it then.
    pub(super) const fn ignore_tracer(&mut self, ignore: bool) {
        self.tracer_is_ours = ignore;
    }

    /// A new process begins.
    pub(super) fn end(&mut self) {
        self.now = None;
    }

    /// Whether the program is paused.
    pub(super) const fn lasts(&self) -> bool {
        self.now.is_some()
    }

    /// For how long it has been paused; absent: it is not.
    pub(super) fn span(&self, now: Mono) -> Option<Duration> {
        self.now.as_ref().map(|paused| now.since(paused.since))
    }

    /// Who pauses it, for how long, and what ends that; absent: it is not paused.
    pub(super) fn sentence(&self, now: Mono) -> Option<String> {
        let paused = self.now.as_ref()?;
        let lasts = span(now.since(paused.since));
        Some(match &paused.by {
            By::Tracer(Some(t)) if !t.name.is_empty() => format!(
                "{} (process {}) has traced the program for {lasts}; nothing is judged until it detaches",
                t.name, t.pid
            ),
            By::Tracer(Some(t)) => format!(
                "process {} has traced the program for {lasts}; nothing is judged until it detaches",
                t.pid
            ),
            By::Tracer(None) => format!(
                "a debugger or tracer has held the program for {lasts}; nothing is judged until it detaches"
            ),
            By::Signal(pid) => format!(
                "a signal (SIGSTOP, or Ctrl-Z) stopped process {pid} {lasts} ago; nothing is judged until \
                 `kill -CONT {pid}` continues it"
            ),
        })
    }
}

impl Paused {
    /// The same pause by what the last sample says; a tracer that was looked up stays known.
    fn go_on(self, by: By) -> Self {
        match (&self.by, &by) {
            (By::Tracer(Some(_)), By::Tracer(None)) => self,
            _ => Self { by, ..self },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Metric, ProbedProcess};

    fn tree(state: char, stopped: &[u32], traced: bool) -> ProcSample {
        ProcSample {
            pid: 7,
            state: Metric::Fresh(state),
            stopped: stopped.to_vec(),
            traced,
            ..ProcSample::default()
        }
    }

    fn sentence(tree: &ProcSample, holder: Option<u32>) -> Option<String> {
        let mut pause = Pause::default();
        pause.observe(Mono(1000), tree, holder);
        pause.sentence(Mono(61_000))
    }

    #[test]
    fn a_stopped_process_names_itself_and_its_cure() {
        let root = sentence(&tree('T', &[], false), None).unwrap();
        assert!(root.contains("process 7 60 s ago"), "{root}");
        assert!(root.contains("kill -CONT 7"), "{root}");
        let worker = sentence(&tree('S', &[9], false), Some(9)).unwrap();
        assert!(worker.contains("kill -CONT 9"), "{worker}");
        assert!(sentence(&tree('S', &[9], false), None).is_some());
    }

    #[test]
    fn a_stopped_helper_is_no_pause_of_the_job() {
        assert_eq!(sentence(&tree('S', &[9], false), Some(8)), None);
        assert_eq!(sentence(&tree('S', &[], false), None), None);
    }

    #[test]
    fn a_tracer_is_named_once_it_was_looked_up() {
        let mut pause = Pause::default();
        let traced = tree('S', &[], true);
        pause.observe(Mono(0), &traced, None);
        let unnamed = pause.sentence(Mono(5000)).unwrap();
        assert!(unnamed.starts_with("a debugger or tracer"), "{unnamed}");
        let gdb = Tracer {
            pid: 42,
            name: "gdb".to_owned(),
        };
        let process = ProbedProcess {
            tracer: Some(gdb),
            ..ProbedProcess::default()
        };
        pause.observe_probe(&Probe {
            processes: vec![process],
            ..Probe::default()
        });
        pause.observe(Mono(6000), &traced, None);
        let named = pause.sentence(Mono(9000)).unwrap();
        assert!(
            named.starts_with("gdb (process 42) has traced the program for 9 s"),
            "{named}"
        );
    }

    #[test]
    fn our_own_collector_is_no_pause() {
        let mut pause = Pause::default();
        pause.ignore_tracer(true);
        pause.observe(Mono(0), &tree('t', &[7], true), None);
        assert!(!pause.lasts());
        pause.ignore_tracer(false);
        pause.observe(Mono(0), &tree('T', &[], false), None);
        assert_eq!(pause.span(Mono(2000)), Some(Duration::from_secs(2)));
        pause.end();
        assert!(!pause.lasts());
    }
}
