//! What an adapter knows so far, and the events that follow from changes of it.

use crate::model::{Event, FindMark, JobChange, Phase, PhaseChange, Progress};

use super::tqdm::Bar;

/// Whether a job is in flight, as far as the console tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Job {
    /// Nothing has shown a job yet: a server that is not up, a script before its first sign
    /// of a generation.
    NotYet,
    InFlight,
    /// A server that waits for its user.
    Waiting,
    /// A script whose job has ended.
    Over,
}

/// Where a server that does not tell the end of its jobs stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Behind {
    /// Not behind a bar, or nothing to be told of it.
    NoBar,
    /// The bar has ended, and with it the job, as far as known.
    Bar,
    /// The job in flight is the one whose bar has ended.
    Decoding,
}

/// What runs on the CPU by right.
#[derive(Debug, Default)]
pub(super) struct OnCpu {
    /// Everything, because the user asked for it.
    pub(super) all: bool,
    /// The VAE: by our rung, or by the program's own word at its start.
    pub(super) vae: bool,
    /// The step at hand, by the program's word.
    announced: bool,
}

impl OnCpu {
    pub(super) const fn new(all: bool, vae: bool) -> Self {
        Self {
            all,
            vae,
            announced: false,
        }
    }

    fn covers(&self, phase: Phase) -> bool {
        let vae = matches!(phase, Phase::VaeDecode | Phase::VaeEncode);
        self.all || self.announced || (vae && self.vae)
    }
}

#[derive(Debug)]
pub(super) struct Narrator {
    out: Vec<Event>,
    now: Option<PhaseChange>,
    pub(super) job: Job,
    pub(super) server: bool,
    pub(super) section: Option<u32>,
    pub(super) sections: Option<u32>,
    pub(super) on_cpu: OnCpu,
    /// The job in flight was announced by a program that tells its end as well.
    pub(super) announced: bool,
    /// What is known of the job of a server that does not tell its end.
    pub(super) behind: Behind,
    /// Jobs that wait behind the one in flight.
    pub(super) queued: u32,
}

impl Narrator {
    pub(super) const fn new(server: bool, on_cpu: OnCpu) -> Self {
        Self {
            out: Vec::new(),
            now: None,
            job: Job::NotYet,
            server,
            section: None,
            sections: None,
            on_cpu,
            announced: false,
            behind: Behind::NoBar,
            queued: 0,
        }
    }

    pub(super) fn take(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.out)
    }

    pub(super) fn phase(&self) -> Phase {
        self.now.as_ref().map_or(Phase::Unknown, |p| p.phase)
    }

    pub(super) fn in_flight(&self) -> bool {
        self.job == Job::InFlight
    }

    /// Whether words about the steps of a job count: during a job, and in a script that has
    /// not shown one yet.
    pub(super) fn reads_steps(&self) -> bool {
        self.in_flight() || self.is_script_before_job()
    }

    fn is_script_before_job(&self) -> bool {
        self.job == Job::NotYet && !self.server
    }

    /// A sign that exists only within a generation: the job of a script begins with it. A
    /// server tells of its jobs in other ways.
    pub(super) fn begin_script_job(&mut self) {
        if self.is_script_before_job() {
            self.start_job();
        }
    }

    /// A bar of steps is full: what follows is not known. Where the rung decodes on the CPU
    /// it may be that decode.
    pub(super) fn enter_after_steps(&mut self) {
        if self.in_flight() {
            self.on_cpu.announced &= self.phase() == Phase::Unknown;
            let on_cpu = self.on_cpu.covers(Phase::Unknown) || self.on_cpu.vae;
            self.set_with(Phase::Unknown, on_cpu);
        }
    }

    /// Enters a phase of a job or of the start-up; nothing while no job is in flight.
    pub(super) fn enter(&mut self, phase: Phase) {
        if matches!(self.job, Job::InFlight | Job::NotYet) {
            self.set(phase);
        }
    }

    fn set(&mut self, phase: Phase) {
        if self.phase() != phase {
            self.on_cpu.announced = false;
        }
        let on_cpu = self.on_cpu.covers(phase);
        self.set_with(phase, on_cpu);
    }

    fn set_with(&mut self, phase: Phase, on_cpu: bool) {
        let next = PhaseChange {
            phase,
            section: self.section,
            sections: self.sections,
            on_cpu,
        };
        if self.now.as_ref() != Some(&next) {
            self.now = Some(next.clone());
            self.out.push(Event::Phase(next));
        }
    }

    /// The program said that the step at hand runs on the CPU (or on the card again).
    pub(super) fn announce_cpu(&mut self, on_cpu: bool) {
        if self.reads_steps() && self.on_cpu.announced != on_cpu {
            self.on_cpu.announced = on_cpu;
            let phase = self.phase();
            self.set(phase);
        }
    }

    pub(super) fn start_job(&mut self) {
        if self.job != Job::InFlight {
            self.job = Job::InFlight;
            self.behind = Behind::NoBar;
            (self.section, self.sections) = (None, None);
            self.out.push(Event::Job(JobChange::Started));
        }
    }

    /// The job that counted as done at the end of its bar goes on: its result is decoded.
    pub(super) fn resume(&mut self) {
        self.start_job();
        self.behind = Behind::Decoding;
        self.enter(Phase::VaeDecode);
    }

    /// A job is in flight whose beginning was not seen.
    pub(super) fn assume_job(&mut self) {
        if self.job != Job::InFlight {
            self.job = Job::InFlight;
            self.out.push(Event::Job(JobChange::Started));
        }
    }

    /// Whether a phase was entered that there is only within a job, and no job began.
    pub(super) fn in_the_middle(&self) -> bool {
        let within = matches!(
            self.phase(),
            Phase::TextEncode
                | Phase::Sampling
                | Phase::Offload
                | Phase::VaeEncode
                | Phase::VaeDecode
                | Phase::Delight
                | Phase::Texture
                | Phase::MeshPost
                | Phase::Save
        );
        within && self.job == Job::NotYet
    }

    /// A server is up, or its job is over without a word about success.
    pub(super) fn wait(&mut self) {
        self.server = true;
        self.announced = false;
        (self.section, self.sections) = (None, None);
        if self.job != Job::Waiting {
            self.job = Job::Waiting;
            self.out.push(Event::Job(JobChange::Waiting));
        }
        self.set(Phase::Idle);
    }

    pub(super) fn done(&mut self) {
        if !self.in_flight() {
            return;
        }
        self.set(Phase::Done);
        self.out.push(Event::Job(JobChange::Done));
        self.after_job();
    }

    /// `why`: the program's own words, where it gave any.
    pub(super) fn fail(&mut self, why: Option<&str>) {
        if !self.in_flight() {
            return;
        }
        self.out.push(Event::Job(JobChange::Failed {
            why: why.map(str::to_owned),
        }));
        self.after_job();
    }

    /// The process ended with an error: its job failed. A script that has shown no job yet
    /// failed as a whole, and its last exception is the reason.
    pub(super) fn fail_at_exit(&mut self, why: Option<&str>) {
        if self.is_script_before_job() {
            self.job = Job::InFlight;
        }
        self.fail(why);
    }

    /// The job that counted as done failed in its last step.
    pub(super) fn fail_after_done(&mut self, phase: Phase, why: &str) {
        self.set(phase);
        self.out.push(Event::Job(JobChange::Failed {
            why: Some(why.to_owned()),
        }));
        self.after_job();
    }

    fn after_job(&mut self) {
        self.announced = false;
        self.job = Job::Over;
        if self.server {
            self.wait();
        }
    }

    pub(super) fn progress(&mut self, bar: &Bar, sampling: bool) {
        self.out.push(Event::Progress(Progress {
            what: bar.desc.clone(),
            done: bar.done,
            total: bar.total,
            seconds_per_step: bar.seconds_per_step,
            sampling,
            closed: false,
        }));
    }

    /// The bar that the line at hand shows was closed before it was full.
    pub(super) fn close_bar(&mut self) {
        let bars = self.out.iter_mut().filter_map(|event| match event {
            Event::Progress(p) => Some(p),
            _ => None,
        });
        for bar in bars {
            bar.closed = true;
        }
    }

    pub(super) fn find(&mut self, mark: FindMark) {
        self.out.push(Event::Find(mark));
    }

    /// Whether the line at hand began a job.
    pub(super) fn begins_job(&self) -> bool {
        self.out
            .iter()
            .any(|e| matches!(e, Event::Job(JobChange::Started)))
    }

    /// Whether the line at hand moved something that a search in progress forbids.
    pub(super) fn moved_on(&self) -> bool {
        self.out.iter().any(|e| match e {
            Event::Phase(_) | Event::Job(_) => true,
            Event::Progress(p) => p.sampling,
            _ => false,
        })
    }
}
