//! A launcher: a command that returns while processes that it started still run.
//!
//! From then on those processes are the attempt (decision 15). A process that shows no sign
//! of a job for [`NO_SIGN`] is ended; whatever cannot be read is not held against it.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use crate::detect::{Job, Presence};
use crate::model::event::{Level, Survivor};
use crate::model::{
    AgentNote, AgentWord, Effect, Event, ExitStatus, Mono, Outcome, Probe, Sample, Scope, Signal,
};

use super::reduce::emit;
use super::state::{Purpose, RunState, Stage, Step};

/// Time without any sign of a job after which processes that a launcher left are ended.
const NO_SIGN: Duration = Duration::from_mins(1);
/// CPU time is measured over this time.
const CPU_WINDOW: Duration = Duration::from_secs(10);
/// Percent of a core from which a tree uses CPU.
const CPU_PERCENT: f64 = 1.0;
/// A probe says how it stands for this long.
const PROBE_HOLDS: Duration = Duration::from_secs(30);
/// What the job told before a process of it ended may be read this long after the end.
const READ_LATE: Duration = Duration::from_secs(2);
/// Processes that a sentence names.
const MOST_NAMED: usize = 6;

/// What is known of a launcher and of the processes that it left.
#[derive(Debug, Clone, Default)]
pub(super) struct Launcher {
    returned: Option<Returned>,
    /// Processes in which the agent has seen work of a job, and those in which it sees some now.
    workers: BTreeSet<u32>,
    at_work: BTreeSet<u32>,
    /// The job was over when the command ended: what ends after it is a helper.
    job_was_over: bool,
    /// A worker that ended badly, and the last process that ended.
    failed_worker: Option<ExitStatus>,
    /// Processes that the job hung on when one of its steps ended.
    of_job: BTreeSet<u32>,
    /// The first bad end of a process with which the job may have ended, and when: nothing
    /// has shown since that the job goes on.
    failed_in_job: Option<(Mono, ExitStatus)>,
    last_ended: Option<ExitStatus>,
    cpu: VecDeque<(Mono, u64)>,
    probe: Option<(Mono, ProbeSigns)>,
}

/// The command has returned.
#[derive(Debug, Clone)]
struct Returned {
    status: ExitStatus,
    processes: Vec<Survivor>,
    /// When a sign of a job was last seen, or something that could be one was not readable.
    sign_at: Mono,
}

/// Signs of a job in a probe.
#[derive(Debug, Clone, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "signs of one process, independent of each other"
)]
struct ProbeSigns {
    weights: bool,
    listens: bool,
    /// The descriptors of a process, or some processes, were not read.
    unread: bool,
    card: bool,
    processes: Vec<(u32, String)>,
}

impl ProbeSigns {
    fn of(probe: &Probe) -> Self {
        let any = |sign: fn(&crate::model::ProbedProcess) -> bool| probe.processes.iter().any(sign);
        Self {
            weights: any(|p| p.weights.is_some()),
            listens: any(|p| !p.listens.is_empty()),
            unread: probe.left_out > 0 || any(|p| p.unreadable.is_some()),
            card: any(|p| p.card),
            processes: probe
                .processes
                .iter()
                .map(|p| (p.pid, p.name.clone()))
                .collect(),
        }
    }
}

/// A process with its number.
pub(super) fn name_processes<'a>(
    processes: impl ExactSizeIterator<Item = (u32, &'a str)>,
) -> String {
    let all = processes.len();
    let mut list: Vec<String> = processes
        .take(MOST_NAMED)
        .map(|(pid, name)| format!("{name} (pid {pid})"))
        .collect();
    if all > MOST_NAMED {
        list.push(format!("{} more", all - MOST_NAMED));
    }
    list.join(", ")
}

/// Whether a process ended by a signal with which programs ask others to end.
const fn is_request(status: ExitStatus) -> bool {
    // SIGHUP, SIGINT, SIGPIPE, SIGTERM
    matches!(status, ExitStatus::Signal(1 | 2 | 13 | 15))
}

impl Launcher {
    fn observe_sample(&mut self, now: Mono, sample: &Sample) {
        let cpu = sample.process.as_ref().and_then(|p| p.cpu_ns.fresh());
        let Some(cpu) = cpu.copied() else {
            return;
        };
        self.cpu.push_back((now, cpu));
        while self
            .cpu
            .get(1)
            .is_some_and(|(at, _)| now.since(*at) >= CPU_WINDOW)
        {
            self.cpu.pop_front();
        }
    }

    /// The agent alone makes no worker: every Python that a program starts has it.
    fn observe_agent(&mut self, note: &AgentNote) {
        match &note.word {
            AgentWord::Beat(beat) if beat.shows_work() => {
                self.at_work.insert(note.pid);
                self.workers.insert(note.pid);
            }
            AgentWord::Beat(_) | AgentWord::Ended => {
                self.at_work.remove(&note.pid);
            }
            _ => {}
        }
    }

    /// Percent of a core over the last [`CPU_WINDOW`]; absent: not read for as long.
    fn cpu_percent(&self, now: Mono) -> Option<f64> {
        let (first_at, first) = *self.cpu.front()?;
        let (last_at, last) = *self.cpu.back()?;
        let span = last_at.since(first_at);
        if span < CPU_WINDOW || now.since(last_at) >= CPU_WINDOW {
            return None;
        }
        #[expect(clippy::cast_precision_loss, reason = "nanoseconds of CPU time")]
        let used = last.saturating_sub(first) as f64;
        #[expect(clippy::cast_precision_loss, reason = "seconds in nanoseconds")]
        let span = span.as_nanos() as f64;
        Some(100.0 * used / span)
    }

    /// The job went on: who ended badly before did not end it.
    fn job_goes_on(&mut self, now: Mono) {
        let ended_before = |(at, _): &(Mono, ExitStatus)| now.since(*at) > READ_LATE;
        if self.failed_in_job.as_ref().is_some_and(ended_before) {
            self.failed_in_job = None;
        }
    }

    /// The exit status of the attempt: the launcher's own failure, else that of a worker, else
    /// that of the process with which the job ended, else that of the process that ended last.
    pub(super) fn final_status(&self, own: ExitStatus) -> ExitStatus {
        let in_job = self.failed_in_job.map(|(_, status)| status);
        let later = || self.failed_worker.or(in_job).or(self.last_ended);
        match own {
            ExitStatus::Code(0) => later().unwrap_or(own),
            _ => own,
        }
    }
}

impl RunState {
    /// Whether the attempt is what a launcher left running.
    pub(super) const fn launcher_returned(&self) -> bool {
        self.launcher.returned.is_some()
    }

    /// Processes that a launcher left, as they were when it returned.
    pub(super) fn left_running(&self) -> Vec<Survivor> {
        let returned = self.launcher.returned.as_ref();
        returned.map_or_else(Vec::new, |r| r.processes.clone())
    }

    /// What an event says of a launcher and of its processes.
    pub(super) fn launcher_event(&mut self, event: &Event) {
        let number = self.attempt_number();
        match event {
            Event::Sample(sample) => self.launcher.observe_sample(self.now, sample),
            Event::Probe(probe) => self.launcher.probe = Some((self.now, ProbeSigns::of(probe))),
            Event::Agent(note) => self.launcher.observe_agent(note),
            // the end of the job is told with that of the last process as well
            Event::Progress(bar) if bar.sampling => {
                self.launcher.of_job.extend(self.detector.job_process());
                self.launcher.job_goes_on(self.now);
            }
            Event::Artefact(_) => self.launcher.job_goes_on(self.now),
            Event::Exited(report) if report.attempt == number => {
                let in_flight = matches!(self.detector.job(), Job::InFlight(_));
                self.launcher.job_was_over = self.job_shown.in_attempt && !in_flight;
            }
            Event::ProcessEnded {
                attempt,
                pid,
                status,
            } if *attempt == number => self.process_ended(*pid, *status),
            Event::CommandReturned { attempt, processes } if *attempt == number => {
                self.command_returned(processes);
            }
            Event::GroupGone { attempt } if *attempt == number => self.left_are_gone(),
            _ => {}
        }
    }

    fn process_ended(&mut self, pid: u32, status: ExitStatus) {
        if matches!(
            self.stage,
            Stage::Ending {
                step: Step::Terminating { .. } | Step::Killing { .. },
                ..
            }
        ) {
            // an end that a signal of ours brought about says nothing
            return;
        }
        if self.launcher.workers.contains(&pid) && status != ExitStatus::Code(0) {
            self.launcher.failed_worker = Some(status);
        }
        // right behind the command helpers end as well, which are asked to
        let counts = match self.stage {
            Stage::Draining { .. } => !is_request(status),
            _ => self.launcher_returned(),
        };
        if counts && !self.launcher.job_was_over {
            self.launcher.last_ended = Some(status);
        }
        if self.may_end_the_job(pid, status) {
            self.launcher
                .failed_in_job
                .get_or_insert((self.now, status));
        }
    }

    /// Whether the job in flight may have ended with the bad end of this process, which no
    /// helper that ends well afterwards makes good. Helpers are often asked to end.
    fn may_end_the_job(&self, pid: u32, status: ExitStatus) -> bool {
        // the threads of who has ended may have been missed by a sample before this is told
        let of_job = &self.launcher.of_job;
        let by_the_job = if of_job.is_empty() {
            !is_request(status)
        } else {
            of_job.contains(&pid)
        };
        let in_flight = matches!(self.detector.job(), Job::InFlight(_));
        by_the_job && in_flight && status != ExitStatus::Code(0)
    }

    /// The command has returned and processes of it still run. After a success they are the
    /// attempt. After a failure they are stragglers, unless the job itself is seen in one.
    fn command_returned(&mut self, processes: &[Survivor]) {
        let Stage::Draining { status, .. } = self.stage else {
            return;
        };
        let works = processes
            .iter()
            .any(|p| self.launcher.at_work.contains(&p.pid));
        if self.is_attached() || (status != ExitStatus::Code(0) && !works) {
            return;
        }
        self.launcher.returned = Some(Returned {
            status,
            processes: processes.to_vec(),
            sign_at: self.now,
        });
        self.exited = None;
        self.stage = Stage::Watching;
    }

    /// Everything is gone: how did it end?
    fn left_are_gone(&mut self) {
        let Some(returned) = &self.launcher.returned else {
            return;
        };
        let status = self.launcher.final_status(returned.status);
        // also while a kill was only announced: it ended by itself, perhaps well
        if matches!(
            self.stage,
            Stage::Watching
                | Stage::Ending {
                    step: Step::Countdown { .. } | Step::AwaitEvidence { .. },
                    ..
                }
        ) {
            self.exited = Some((status, self.now));
            self.stage = Stage::Draining {
                status,
                since: self.now,
                told: true,
            };
        }
    }

    /// Ends what a launcher left and what shows no sign of a job.
    pub(super) fn advance_launcher(&mut self, out: &mut Vec<Effect>) {
        let shows = self.shows_a_job();
        let now = self.now;
        let Some(returned) = &mut self.launcher.returned else {
            return;
        };
        if shows {
            returned.sign_at = now;
        }
        if now.since(returned.sign_at) < NO_SIGN {
            return;
        }
        let probed = self.launcher.probe.as_ref();
        let listed = probed.map_or(&[][..], |(_, p)| &p.processes);
        let names = name_processes(listed.iter().map(|(pid, name)| (*pid, name.as_str())));
        let pids = listed.iter().map(|(pid, _)| *pid).collect();
        out.push(emit(Event::Notice {
            level: Level::Warn,
            text: format!(
                "the command has returned, and what it left running has shown no sign of a job for {} s (no agent, no memory of the card, no weight file, no open bar, no CPU time): {names} ended by SIGTERM",
                NO_SIGN.as_secs()
            ),
        }));
        self.signal(Signal::Term, Scope::Tree, out);
        self.stage = Stage::Ending {
            purpose: Purpose::EndLeftovers { pids },
            step: Step::Terminating {
                kill_at: now + self.plan.kill.grace,
            },
        };
    }

    /// Whether a process of the tree shows a sign of a job, or one that could show it was not
    /// read: an unread sign is no absent one.
    fn shows_a_job(&self) -> bool {
        if self.detector.is_paused() || self.detector.presence() == Presence::Connected {
            return true;
        }
        let open_bar = self
            .progress
            .as_ref()
            .is_some_and(|p| p.total.is_some_and(|total| p.done < total));
        let cpu = self.launcher.cpu_percent(self.now);
        if open_bar || cpu.is_none_or(|percent| percent >= CPU_PERCENT) {
            return true;
        }
        let Some((at, probe)) = &self.launcher.probe else {
            return true;
        };
        if self.ago(*at) >= PROBE_HOLDS || probe.unread || probe.weights {
            return true;
        }
        self.holds_card_memory(probe.card) || (probe.listens && !self.job_shown.in_run)
    }

    /// Whether the tree holds memory of a card. `opened`: a process has a device node open, so
    /// that memory which cannot be read may be there.
    fn holds_card_memory(&self, opened: bool) -> bool {
        let Some(process) = &self.sample.process else {
            return true;
        };
        let known = process.on_cards.iter().map(|c| c.vram.last());
        let known: Vec<_> = known.collect();
        if known.iter().flatten().any(|vram| vram.0 > 0) {
            return true;
        }
        opened && (known.is_empty() || known.iter().any(Option::is_none))
    }

    /// The processes that were ended are gone.
    pub(super) fn leftovers_ended(&mut self, pids: Vec<u32>, out: &mut Vec<Effect>) {
        self.note_end("left-over processes ended");
        let summary = match pids.len() {
            0 => "the command returned; what it left behind was ended".to_owned(),
            1 => "the command returned; 1 process that it left behind showed no sign of a job and was ended".to_owned(),
            n => format!("the command returned; {n} processes that it left behind showed no sign of a job and were ended"),
        };
        self.finish(Outcome::LeftoversEnded { pids }, summary, out);
    }
}
