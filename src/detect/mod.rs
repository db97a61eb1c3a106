//! Detection: a window of samples, lines and phases becomes a verdict.
//!
//! Pure: time comes in with each envelope. One [`Detector`] serves a whole run;
//! [`Detector::begin_attempt`] starts afresh but keeps what was learned.

mod after_bar;
mod agent;
mod alarm;
mod assess;
mod card;
mod chain;
mod channels;
mod context;
mod core_busy;
mod end;
mod errors;
mod explain;
mod facts;
mod find;
mod frame_phase;
mod grant;
mod helpers;
mod job;
mod kernel;
mod learn;
mod line_shape;
mod movement;
mod observe;
mod pace;
mod pause;
mod placement;
mod pressure;
mod probes;
mod questions;
mod rates;
mod rest;
mod rule;
mod signature;
mod threads;
mod thresholds;
mod traceback;
mod trouble;
mod trust;
mod verdict;
pub mod verdicts;
mod waits;
mod wake;
mod warning;
mod watch;

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::forecast::Card;
use crate::model::{
    AgentBeat, AgentOp, Baselines, BusyTrust, Envelope, Event, GpuId, IdleBaseline, JobChange,
    Limits, MiopenRelease, Mono, Speaker, Vendor, VerdictId, Waits,
};

use agent::Agent;
pub use agent::Presence;
use alarm::Alarm;
use card::CardLevels;
use channels::Channels;
use context::Context;
use facts::Facts;
pub(crate) use frame_phase::of_line as phase_of_frame;
use grant::Grant;
use helpers::Helpers;
pub use job::Job;
use job::{JobAnswer, Signs};
pub use kernel::{culprit, read as kernel_fault};
use learn::Learned;
use line_shape::LineShapes;
use movement::Movement;
use pace::Pace;
use pause::Pause;
use placement::Placement;
use pressure::Pressure;
use probes::Probes;
pub(crate) use rule::span;
pub use threads::Working;
use thresholds::secs;
pub use thresholds::{Field, Thresholds};
pub use trouble::says_that_the_card_comes_back;
use trust::Doing;
use warning::Warning;
use watch::Watches;

/// Events of one change of phase come within this time.
const SETTLED: std::time::Duration = std::time::Duration::from_secs(1);

/// Where the process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    NotLaunched,
    Running,
    Over,
}

/// What is known of the program by its command.
#[derive(Debug, Clone, Copy, Default)]
struct Program {
    /// It is a server, which has a job only between the words that begin and end one.
    serves: bool,
    /// An adapter knows it, so what it reads are weights.
    is_known: bool,
}

/// Judges one run.
#[derive(Debug, Clone)]
pub struct Detector {
    limits: Limits,
    thresholds: Thresholds,
    gpu: Option<GpuId>,
    /// What the forecast of a convolution needs to know of it.
    card: Card,
    /// Whose it is: MIOpen runs on AMD's alone.
    vendor: Option<Vendor>,
    channels: Channels,
    agent: Agent,
    context: Context,
    pace: Pace,
    pressure: Pressure,
    watches: Watches,
    placement: Placement,
    movement: Movement,
    probes: Probes,
    signs: Signs,
    job_answer: JobAnswer,
    /// What is known of the program before it says anything.
    program: Program,
    /// Lines that the program has said before.
    shapes: LineShapes,
    /// When it last said something new that no round of threads has explained yet.
    new_words: Option<Mono>,
    /// When threads were last read.
    rounds: Option<Mono>,
    learned: Learned,
    attempt_since: Mono,
    life: Life,
    /// When the last attempt ended.
    over_since: Mono,
    helpers: Helpers,
    pause: Pause,
    ratchets: BTreeMap<VerdictId, f64>,
    alarm: Alarm,
    warning: Warning,
    /// What the user granted last.
    grant: Grant,
    /// `seq` of the envelope with the last activity, and of the last envelope.
    active_seq: u64,
    last_seq: u64,
    last_at: Mono,
}

impl Detector {
    /// A detector for a run with these limits that supervises this card.
    pub fn new(limits: Limits, gpu: Option<GpuId>) -> Self {
        Self {
            channels: Channels::new(Mono::ZERO, CardLevels::default(), false),
            limits,
            thresholds: Thresholds::DEFAULT,
            gpu,
            card: Card::default(),
            vendor: None,
            agent: Agent::default(),
            context: Context::new(Mono::ZERO, false, BTreeMap::new()),
            pace: Pace::default(),
            pressure: Pressure::default(),
            watches: Watches::default(),
            placement: Placement::default(),
            movement: Movement::new(Mono::ZERO),
            probes: Probes::default(),
            signs: Signs::default(),
            job_answer: JobAnswer::unknown(Mono::ZERO),
            program: Program::default(),
            shapes: LineShapes::default(),
            new_words: None,
            rounds: None,
            learned: Learned::default(),
            attempt_since: Mono::ZERO,
            life: Life::NotLaunched,
            over_since: Mono::ZERO,
            helpers: Helpers::None,
            pause: Pause::default(),
            ratchets: BTreeMap::new(),
            alarm: Alarm::Quiet,
            warning: Warning::default(),
            grant: Grant::default(),
            active_seq: 0,
            last_seq: 0,
            last_at: Mono::ZERO,
        }
    }

    /// Other numbers from here on: for tests of the numbers.
    pub(crate) const fn set_thresholds(&mut self, thresholds: &Thresholds) {
        self.thresholds = *thresholds;
    }

    /// The same with other numbers: for tests of the numbers.
    #[must_use]
    pub const fn with_thresholds(mut self, thresholds: Thresholds) -> Self {
        self.thresholds = thresholds;
        self
    }

    /// The same with what earlier runs have learned.
    #[must_use]
    pub fn with_baselines(mut self, known: Baselines) -> Self {
        self.learned = Learned::new(known);
        self
    }

    /// What phases and steps usually take, earlier runs included.
    pub const fn baselines(&self) -> &Baselines {
        &self.learned.known
    }

    /// A new process: windows empty, learned levels and limits kept.
    pub fn begin_attempt(&mut self, now: Mono, on_cpu: bool) {
        let mut levels = std::mem::take(&mut self.channels.levels);
        levels.begin();
        self.channels = Channels::new(now, levels, self.channels.gpu_expected);
        let longest = std::mem::take(&mut self.context.longest);
        self.context = Context::new(now, on_cpu, longest);
        self.context.serves = self.program.serves;
        self.agent = Agent::default();
        self.movement = Movement::new(now);
        self.probes = Probes::default();
        self.signs = Signs::default();
        self.job_answer = JobAnswer::unknown(now);
        self.shapes = LineShapes::default();
        self.new_words = None;
        self.rounds = None;
        self.pace = self.pace.begin();
        self.pressure = self.pressure.begin();
        self.watches = Watches::default();
        self.placement = self.placement.begin();
        self.learned.begin(now);
        self.attempt_since = now;
        self.grant = Grant::default();
        self.life = Life::Running;
        self.helpers = Helpers::None;
        self.pause.end();
        self.calm_down();
    }

    /// Limits from the next assessment on; what was raised for false alarms stays raised.
    pub fn set_limits(&mut self, limits: &Limits) {
        self.limits.clone_from(limits);
    }

    /// While evidence is taken, a collector may stop and trace the process; that is
    /// no pause of the user's.
    pub const fn ignore_tracer(&mut self, ignore: bool) {
        self.pause.ignore_tracer(ignore);
    }

    /// What the command says of the program: whether it is a server, and whether an adapter
    /// knows it.
    pub const fn set_program(&mut self, serves: bool, is_known: bool) {
        self.program = Program { serves, is_known };
        self.context.serves |= serves;
    }

    /// The process is gone: nothing is judged until the next attempt.
    pub fn end_attempt(&mut self) {
        if self.life != Life::Over {
            self.over_since = self.last_at;
        }
        self.life = Life::Over;
        self.calm_down();
    }

    /// Folds one event in.
    pub fn observe(&mut self, env: &Envelope) {
        let before = self.movement.last().0;
        self.last_seq = env.seq;
        let now = env.at;
        if now.since(self.last_at) > secs(self.thresholds.unseen_s) {
            self.cut(now);
        }
        self.last_at = now;
        // what comes with the words of the next phase belongs to that one
        let finished = self.movement.last_finished();
        if now.since(finished) >= SETTLED {
            self.context.finished_at = finished;
        }
        let error = match &env.event {
            Event::Line(line) => signature::of_line(self.context.words(&line.text)),
            _ => None,
        };
        let says_something = match &env.event {
            Event::Line(line) => error.is_none() && !signature::is_request(&line.text),
            _ => false,
        };
        match &env.event {
            Event::Sample(sample) => self.observe_sample(now, sample),
            Event::Probe(probe) => self.observe_probe(now, probe),
            // a request of a page, or one more copy of an error, is no sign of life
            Event::Line(_) if says_something => self.channels.output(now),
            Event::Progress(p) => {
                self.channels.progress(now);
                let numbered = self.context.section.is_some();
                let phase = self.context.phase;
                if let Some(took) = self
                    .pace
                    .progress(now, (p, phase), numbered, &self.thresholds)
                {
                    self.learned.step(self.context.phase, p.total, took);
                }
                if p.sampling && p.done > 0.0 {
                    self.channels.step();
                }
            }
            Event::Phase(p) => {
                self.channels.progress(now);
                if p.phase != self.context.phase || p.section != self.context.section {
                    self.pace.phase(now);
                    let in_flight = self.job_answer.job.in_flight();
                    self.learned.left(now, self.context.phase, in_flight);
                }
            }
            Event::Job(_) => {
                self.channels.progress(now);
                self.pace.job(now);
            }
            Event::Artefact(_) => self.channels.progress(now),
            Event::Standstill { .. } => self.cut(now),
            _ => {}
        }
        self.agent.observe(env);
        self.placement.observe(now, env.seq, &env.event);
        self.context
            .observe((now, env.seq), env.from, &env.event, error);
        if env.from == Some(Speaker::Agent)
            && let Event::Job(JobChange::Failed { why: Some(why) }) = &env.event
        {
            self.context.failed_by_agent(now, why);
        }
        self.observe_movement(env, says_something);
        if !matches!(env.event, Event::Line(_) | Event::Flood(_) | Event::Tick) {
            self.answer_job(now);
        }
        let active = self.movement.last().0;
        if active > before {
            self.learned.moved(active.since(before));
            self.active_seq = env.seq;
        }
    }

    fn observe_sample(&mut self, now: Mono, sample: &crate::model::Sample) {
        self.context.observe_cards(&sample.gpus, self.gpu.as_ref());
        if let Some(card) = self.card(sample) {
            (self.card, self.vendor) = (find::card(card), Some(card.vendor));
        }
        if self.life != Life::Running {
            self.observe_rest(now, sample);
            return;
        }
        if let Some(p) = &sample.process {
            let holder = self.job_process().filter(|_| !self.rests(now));
            self.pause.observe(now, p, holder);
            self.helpers = Helpers::of(&p.children);
            self.context.observe_tree(p);
        }
        if self.pause.lasts() {
            self.cut(now);
        }
        let net_counts = self.context.may_fetch(self.job_answer.job.in_flight());
        let doing = match self.job_answer.job {
            _ if self.pause.lasts() => Doing::Unknown,
            // the work that the card itself claims must not vouch for its counter
            Job::InFlight(_) if self.context.goes_on_unsaid() => Doing::Waiting,
            Job::InFlight(_) => Doing::Job,
            Job::Waiting(_) => Doing::Waiting,
            Job::Unknown => Doing::Starting,
            Job::Ended => Doing::Unknown,
        };
        self.channels.observe(
            now,
            sample,
            self.gpu.as_ref(),
            net_counts,
            doing,
            self.credit(),
            &self.thresholds,
        );
        self.observe_signs(now, sample);
        self.observe_readings(now, sample);
        self.observe_pressure(now, sample);
        self.observe_watches(now, sample);
        let hard = self.channels.card_state.is_some_and(|s| s.hard);
        self.context
            .observe_after_bar(now, hard && !self.pause.lasts());
    }

    /// Readings that explain a slow job.
    fn observe_pressure(&mut self, now: Mono, sample: &crate::model::Sample) {
        let t = &self.thresholds;
        let state = self.channels.card_state.unwrap_or_default();
        if let Some(card) = self.card(sample) {
            self.pressure.card(now, card, state, t);
        }
        if let Some(p) = &sample.process {
            let figures = &self.channels.figures;
            self.pressure
                .process(now, p, &sample.host, figures, state.hard, t);
        }
        let figures = &self.channels.figures;
        self.pace.sample(figures.power, figures.busy);
    }

    /// Asks what definitions want asked with every sample of the card.
    fn observe_watches(&mut self, now: Mono, sample: &crate::model::Sample) {
        let Some(card) = self.card(sample) else {
            return;
        };
        let facts = self.view(now);
        let answers: Vec<_> = verdicts::WATCHES
            .iter()
            .map(|(id, watch)| (*id, watch(&facts, card)))
            .collect();
        self.watches.observe(now, &answers);
        self.watches.observe_card(card);
    }

    /// The supervised card in a sample.
    fn card<'a>(&self, sample: &'a crate::model::Sample) -> Option<&'a crate::model::GpuSample> {
        let id = self.gpu.as_ref()?;
        sample.gpus.iter().find(|g| &g.id == id)
    }

    /// Whether the job rests. A pause starts every window again, so it has rested through one
    /// until something is counted or finished.
    fn rests(&self, now: Mono) -> bool {
        let still = now.since(self.movement.last_finished());
        now.since(self.movement.last().0) >= secs(self.thresholds.silence_sign_s)
            || self.pause.span(now).is_some_and(|span| still > span)
    }

    /// R7: every window starts again.
    fn cut(&mut self, now: Mono) {
        self.channels.cut(now);
        self.movement.cut(now);
        self.probes.cut();
        self.pace.cut();
        self.pressure.cut();
        self.learned.cut();
    }

    /// Readings while none of our processes lives. Those that come right after an
    /// attempt are of its end: power and counter are averages.
    fn observe_rest(&mut self, now: Mono, sample: &crate::model::Sample) {
        let over = self.life == Life::Over;
        if sample.process.is_some()
            || (over && now.since(self.over_since) < secs(self.thresholds.settle_s))
        {
            return;
        }
        if let Some(card) = self.card(sample) {
            self.channels.levels.rest(now, card, &self.thresholds);
            let rests = card::CardState::default();
            self.pressure.card(now, card, rests, &self.thresholds);
        }
    }

    /// What counts of an event where the agent and the console both tell of it; to be asked
    /// for each envelope before it is folded in, see [`AgentRank::heed`].
    ///
    /// [`AgentRank::heed`]: crate::model::AgentRank::heed
    pub fn heed<'a>(&mut self, env: &'a Envelope) -> Option<Cow<'a, Envelope>> {
        self.agent.heed(env)
    }

    /// How it stands with the agent inside the program.
    pub fn presence(&self) -> Presence {
        self.agent.presence()
    }

    /// The agent's last heartbeat.
    pub fn beat(&self) -> Option<&AgentBeat> {
        self.agent.last()
    }

    /// The operation in flight, and for how long.
    pub fn op(&self, now: Mono) -> Option<(&AgentOp, std::time::Duration)> {
        self.agent.op(now)
    }

    /// Which ROCm and MIOpen, as far as the program told.
    pub const fn release(&self) -> MiopenRelease {
        self.context.release
    }

    /// Whether the workload is stopped or traced at present.
    pub const fn is_paused(&self) -> bool {
        self.pause.lasts()
    }

    /// Who stops or traces the workload and what ends that, once it has lasted for `least`; absent:
    /// it has not.
    pub fn paused_for(&self, least: std::time::Duration, now: Mono) -> Option<String> {
        self.pause.span(now).filter(|span| *span >= least)?;
        self.pause.sentence(now)
    }

    /// What the supervised card reads at rest, as far as known.
    pub fn idle(&self) -> Option<&IdleBaseline> {
        self.channels.levels.idle()
    }

    /// Whether that was read often enough since the last attempt, or before the first.
    pub fn idle_is_settled(&self) -> bool {
        self.channels.levels.idle_is_settled()
    }

    /// Whether the busy counter of the card is believed.
    pub fn busy_trust(&self) -> &BusyTrust {
        self.channels.levels.trust()
    }

    /// Whether a job is in flight.
    pub const fn job(&self) -> Job {
        self.job_answer.job
    }

    /// (CPU percent of the tree, read bytes a second, written bytes a second), as of
    /// the last sample.
    pub fn rates(&self) -> (Option<f64>, Option<f64>, Option<f64>) {
        let f = self.channels.figures;
        (f.cpu_percent, f.read_bps, f.write_bps)
    }

    /// Threads that did something in the last round; absent: not read yet.
    pub fn working(&self) -> Option<&Working> {
        self.channels.working()
    }

    /// The view that the rules are asked with. What the holder waits for is asked only once
    /// the job does not move.
    fn facts(&self, now: Mono) -> Facts<'_> {
        let mut facts = self.view(now);
        facts.probed = self.probes.recent(now).is_some();
        if facts.silent_for() >= secs(self.thresholds.silence_sign_s) {
            facts.waits = self.waits(now);
            facts.only_loaded = self.is_only_loaded(&facts.waits);
            facts.peer_is_uncounted = self.peer_is_uncounted(now);
            let holder = self.holder(now).and_then(|id| self.probes.thread(now, id));
            facts.between_phases = self.is_between_phases(now);
            facts.lock_is_orphaned = holder.is_some_and(|(_, t)| waits::lock_is_orphaned(&t.wait));
        }
        facts
    }

    /// The same without the third question.
    fn view(&self, now: Mono) -> Facts<'_> {
        // one ratchet for the rules of a dead job: at most one alarm of theirs is up
        let ratchet = self
            .ratchets
            .iter()
            .filter(|(v, _)| !v.definition().job_may_live)
            .map(|(_, r)| *r)
            .fold(1.0, f64::max);
        Facts {
            now,
            channels: &self.channels,
            movement: &self.movement,
            agent: &self.agent,
            pace: &self.pace,
            pressure: &self.pressure,
            watches: &self.watches,
            placement: &self.placement,
            learned: &self.learned,
            card_meant: self.gpu.is_some(),
            granted: self.grant.at(),
            grant: self.grant,
            ratchets: &self.ratchets,
            limits: &self.limits,
            t: &self.thresholds,
            phase: self.context.phase,
            phase_since: self.context.phase_since,
            job: self.job_answer,
            on_cpu: self.context.on_cpu(),
            holds_card_memory: self.signs.holds_memory,
            helpers: self.helpers,
            compiling: self.context.compiling,
            find: self.context.find.as_ref(),
            seen: self.context.seen(now),
            fault: self.context.trouble.page_fault(),
            spoilt: self.context.spoilt(),
            release: self.context.release,
            card: &self.card,
            vendor: self.vendor,
            longest: self.context.longest_stays(),
            ratchet,
            waits: Waits::UNKNOWN,
            probed: false,
            only_loaded: false,
            lock_is_orphaned: false,
            between_phases: false,
            peer_is_uncounted: false,
            attempt_since: self.attempt_since,
        }
    }
}
