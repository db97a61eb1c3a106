//! What each event means for the three questions: which movement belongs to the job, and
//! which thread holds it.

use crate::model::{Envelope, Event, JobChange, Mono, Phase, Probe, Sample, Waits, WaitsFor};

use super::Detector;
use super::helpers::{self, Helpers};
use super::movement::Source;
use super::threads::{Credit, ThreadId};
use super::thresholds::secs;
use super::waits::{self, HolderContext};

/// Mean load, 100 = one core, below which a thread only helps, however crowded the machine.
const LEAST_LOAD: f64 = 30.0;
/// The same above which a thread takes over the job of one that has ended.
const TAKES_OVER: f64 = 20.0;
/// Probes are taken all the time for this long after the job was last seen to move, in
/// seconds; later on for a few seconds out of every half minute, because a server may wait
/// for days.
const PROBED_S: u64 = 180;
const PROBED_EVERY_S: u64 = 30;
const PROBED_FOR_S: u64 = 6;

impl Detector {
    /// Movement that an event other than a sample or a probe shows. `says_something`: it is a
    /// line that is neither an error nor a request of a page.
    pub(super) fn observe_movement(&mut self, env: &Envelope, says_something: bool) {
        let now = env.at;
        match &env.event {
            Event::Line(line) if says_something && self.shapes.is_new(&line.text) => {
                self.new_words.get_or_insert(now);
            }
            Event::Progress(p) => self.movement.bar(now, p),
            Event::Phase(p) => self.movement.phase(now, p.phase, p.section),
            Event::Job(JobChange::Started) => self.movement.begin_job(now),
            Event::Job(_) => self.movement.stamp(Source::Begin, now),
            Event::Artefact(_) => {
                self.movement.stamp(Source::Result, now);
                self.context.result_at = Some(now);
            }
            Event::Agent(_) => {
                if let Some(at) = self.agent.last_move() {
                    self.movement.stamp(Source::Operation, at);
                }
                if let Some(at) = self.agent.stack_changed() {
                    self.movement.stamp(Source::Stack, at);
                }
            }
            _ => {}
        }
        if let Some(find) = &self.context.find {
            self.movement.stamp(Source::Counter, find.state.advanced);
        }
    }

    /// Movement that a sample shows.
    pub(super) fn observe_readings(&mut self, now: Mono, sample: &Sample) {
        let Some(process) = &sample.process else {
            return;
        };
        if self.channels.gpu.active == now {
            self.movement.stamp(Source::Card, now);
        }
        if self.channels.memory.active == now {
            self.movement.stamp(Source::CardMemory, now);
        }
        if process.per_thread.is_empty() {
            if !self.channels.threads.recent(now) {
                self.observe_totals(now);
            }
        } else {
            self.observe_round(now);
        }
        // bytes of the tree stand in where no probe tells those of the job's thread
        if !self.probes.is_fresh(now) && self.moves_bytes() {
            let c = &self.channels;
            if c.io.active == now || c.faults.active == now {
                self.movement.stamp(Source::Bytes, now);
            }
        }
        if !self.probes.came() && self.channels.net.active == now {
            self.movement.stamp(Source::Network, now);
        }
        self.observe_words(now);
    }

    /// What the work of a thread at this moment says: that it is the job's where a job is in a
    /// phase that computes, and moved a moment ago. Imports and loads are done by any thread,
    /// most often by that of the job.
    pub(super) fn credit(&self) -> Credit {
        let phase = self.context.phase;
        let computes = phase.says_something()
            && !matches!(
                phase,
                Phase::Idle | Phase::Done | Phase::Download | Phase::ModelLoad
            );
        if !computes || !self.job_answer.job.in_flight() {
            return Credit::Early;
        }
        // since the round before: a helper that works after the last step does not work for the job
        let before = self.rounds.unwrap_or(self.attempt_since);
        if self.movement.last_but_cpu() >= before {
            Credit::Job
        } else {
            Credit::None
        }
    }

    /// Without thread data the totals of the tree are those of the job.
    fn observe_totals(&mut self, now: Mono) {
        let c = &self.channels;
        if c.cpu.active == now {
            self.movement.stamp(Source::Cpu, now);
        }
        if c.faults.active == now {
            self.movement.stamp(Source::Bytes, now);
        }
        if c.cpu.active == now && self.helpers != Helpers::None {
            self.movement.stamp(Source::Helper, now);
        }
    }

    /// A round of threads: what the holder did, and the helpers of the tree.
    fn observe_round(&mut self, now: Mono) {
        let threads = &self.channels.threads;
        let round = self.rounds.replace(now).unwrap_or(now);
        let holder = self.holder(now);
        let worked = holder.and_then(|id| threads.worked(id));
        // a poll of a thread that has ended may take a moment longer on a busy machine
        let polls = self.is_bereft(now) && !threads.busy(TAKES_OVER).any(|id| Some(id) == holder);
        if worked == Some(now) && !polls {
            self.movement.stamp(Source::Cpu, now);
        }
        let helps = threads
            .worked_since(round.max(Mono(now.0.saturating_sub(1))))
            .any(helpers::works_for_the_job);
        let budget = self
            .limits
            .spin_limit
            .mul_f64(self.thresholds.spin_factor * self.thresholds.spin_explained_factor);
        if helps && now.since(self.movement.last_but_helpers()) <= budget {
            self.movement.stamp(Source::Helper, now);
        }
        // the job may have gone on in another thread; what that waits for is not asked while
        // the holder works
        if worked != Some(now)
            && let Some(holder) = holder
        {
            let waits = self.waits(now).answer;
            let handed_over = matches!(
                waits,
                WaitsFor::Process | WaitsFor::Unknown | WaitsFor::Time
            );
            let bound = self
                .channels
                .core
                .crowded(self.thresholds.handed_over_pct, &self.thresholds)
                .max(LEAST_LOAD);
            let other = self.channels.threads.busy(bound).any(|id| id != holder);
            if handed_over && other {
                self.movement.stamp(Source::Thread, now);
            }
        }
    }

    /// What the program said counts once its thread has run: a line of a helper moves no
    /// job. Without thread data it counts at once.
    fn observe_words(&mut self, now: Mono) {
        let Some(said) = self.new_words else {
            return;
        };
        let threads = &self.channels.threads;
        if !threads.recent(now) {
            self.new_words = None;
            self.movement.stamp(Source::Words, said);
            return;
        }
        let ran = self.holder(now).and_then(|id| threads.ran(id));
        if ran.is_some_and(|at| at >= said) {
            self.new_words = None;
            self.movement.stamp(Source::Words, said);
        } else if self.rounds.is_some_and(|at| at > said) {
            self.new_words = None;
        }
    }

    /// Whether what is read and written in this phase is weights, latents or results.
    const fn moves_bytes(&self) -> bool {
        matches!(
            self.context.phase,
            Phase::Startup
                | Phase::Download
                | Phase::ModelLoad
                | Phase::TextEncode
                | Phase::Offload
                | Phase::Save
                | Phase::Unknown
        )
    }

    /// A probe: bytes of the holder, bytes of peers.
    pub(super) fn observe_probe(&mut self, now: Mono, probe: &Probe) {
        self.probes.observe(now, probe);
        self.pause.observe_probe(probe);
        if let Some(sign) = self.probes.sign(now) {
            self.signs.note(now, sign);
        }
        let Some(holder) = self.holder(now) else {
            return;
        };
        self.probes.follow(now, holder);
        let t = &self.thresholds;
        let own = self.probes.bytes_per_s(holder);
        let reads = own.is_some_and(|bps| bps >= t.io_active_bps);
        let faults = self.probes.faults_per_s(holder);
        let fills = faults.is_some_and(|(major, minor)| {
            major >= t.major_faults_count || minor >= t.minor_faults_count
        });
        let waits = self.waits(now).answer;
        // another thread or process may read the weights for it
        let for_it = matches!(
            waits,
            WaitsFor::Process | WaitsFor::Unknown | WaitsFor::Time | WaitsFor::None
        );
        let others = for_it
            && self.moves_bytes()
            && self.probes.heavy(t.heavy_read_bps).any(|id| id != holder);
        if reads || fills || others {
            self.movement.stamp(Source::Bytes, now);
        }
        let flows = self
            .probes
            .network_bps(t)
            .is_some_and(|bps| bps >= t.network_job_bps);
        let not_its = matches!(waits, WaitsFor::Card | WaitsFor::Itself | WaitsFor::Kernel);
        if flows && !not_its {
            self.movement.stamp(Source::Network, now);
        }
    }

    /// The thread of the job: that of the operation or pipeline call by the agent, else the one
    /// that counts its steps, else the one that worked most while the job moved.
    pub(super) fn holder(&self, now: Mono) -> Option<ThreadId> {
        let threads = &self.channels.threads;
        match self.agent.holder() {
            Some(holder) => {
                let main = (holder.pid, holder.pid);
                Some(match holder.tid {
                    Some(tid) => (holder.pid, tid),
                    None => threads.most_worked_of(holder.pid).unwrap_or(main),
                })
            }
            None => self
                .counting_thread(now)
                .or_else(|| threads.most_worked())
                .or_else(|| {
                    let root = self.probes.recent(now)?.processes.first()?;
                    root.main().map(|t| (root.pid, t.tid))
                }),
        }
    }

    /// The thread that counts the steps of the bar at hand, as the agent sees it, however
    /// little work that is. One that only polls may show what another one does.
    fn counting_thread(&self, now: Mono) -> Option<ThreadId> {
        let (pid, steps) = self.counted_steps().filter(|_| !self.pace.is_closed())?;
        let id = (pid, steps.tid.filter(|_| steps.left != Some(true))?);
        let thread = self.probes.thread(now, id);
        let polls = thread.is_some_and(|(_, t)| waits::is_poll(&t.wait));
        (!polls).then_some(id)
    }

    /// The process of the thread that the job hangs on, where the agent or the work of the
    /// threads shows it.
    pub(crate) fn job_process(&self) -> Option<u32> {
        let by_agent = self.agent.holder().map(|holder| holder.pid);
        let counts = || self.counted_steps().map(|(pid, _)| pid);
        let works = || self.channels.threads.most_worked().map(|id| id.0);
        by_agent.or_else(counts).or_else(works)
    }

    /// What the holder waits for.
    pub(super) fn waits(&self, now: Mono) -> Waits {
        let Some(id) = self.holder(now) else {
            return Waits::UNKNOWN;
        };
        let phase = self.phase_in_flight(now);
        let operates = self.agent.op(now).is_some() || self.agent.stopped(now).is_some();
        let works =
            phase.says_something() && !matches!(phase, Phase::Idle | Phase::Done | Phase::Download);
        let holder = HolderContext {
            id,
            operates,
            works,
            between: !works && !operates && self.is_between_phases(now),
            bereft: self.is_bereft(now),
            owes_answer: self.owes_answer(now),
            moved: self.movement.last().0,
            limit: self.view(now).silence_limit(),
        };
        waits::waits(now, holder, &self.probes, &self.channels.threads)
    }

    /// Whether the thread that did the job has ended before its bar was full, in a program
    /// that serves nobody or whose client still waits for its answer; or has left its steps
    /// while that client waits.
    fn is_bereft(&self, now: Mono) -> bool {
        let goes_on = !self.pace.is_closed() && !self.probes.listens(now);
        let owes_answer = self.owes_answer(now);
        let ended = self.channels.threads.job_thread_ended() && self.pace.is_unfilled();
        (self.steps_returned() && owes_answer) || (ended && (goes_on || owes_answer))
    }

    /// Whether a loaded model is all that there is of a job: no step and no pipeline call
    /// has been seen, and the holder waits for another thread.
    pub(super) fn is_only_loaded(&self, waits: &Waits) -> bool {
        let unread = waits.answer == WaitsFor::Unknown && self.probes.came();
        let within = waits.within.as_deref();
        let in_futex = within.is_some_and(|call| call.starts_with("futex"));
        // a bar of files that stopped half-way is a load that goes on
        let loads = self.context.phase == Phase::ModelLoad && self.pace.is_open();
        self.job_answer.by_sign_alone
            && !loads
            && (waits.answer == WaitsFor::Process && in_futex || unread)
    }

    /// Whether threads should be read with each sample and probes be taken: the job was not
    /// seen to move for a while.
    pub fn wants_probes(&self, now: Mono) -> bool {
        if self.life != super::Life::Running {
            return false;
        }
        if let Some(paused) = self.pause.span(now) {
            // who stops or traces the program is looked up once
            return paused < secs(self.thresholds.probe_after_s);
        }
        if self.alarm != super::Alarm::Quiet {
            return true;
        }
        let quiet = now.since(self.movement.last_by_job());
        if quiet < secs(self.thresholds.probe_after_s) {
            return false;
        }
        let waits_for_user = matches!(self.job_answer.job, super::Job::Waiting(_));
        let often = if waits_for_user { 30 } else { PROBED_S };
        let s = quiet.as_secs();
        s < often || s % PROBED_EVERY_S < PROBED_FOR_S
    }
}
