//! The supervising loop: everything that happens becomes an envelope, the core
//! folds it, its effects are carried out, and every outcome comes back here.
//!
//! Nothing in this loop blocks: devices, disks and the terminal have threads of
//! their own (R8).

use std::collections::{BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use crate::agent::Heard;
use crate::cli::show::last_words;
use crate::cli::{CliError, log};
use crate::model::attempt::Artefact;
use crate::model::event::{EvidenceReport, Level, TURN_MS};
use crate::model::sample::SourceState;
use crate::model::{
    AttemptSpec, Bytes, Envelope, Event, Mono, Outcome, Request, Scope, Signal, SourceStatus,
    Speaker, TimeScale,
};
use crate::record::RunDir;
use crate::run::{RunState, reduce};
use crate::supervise::control::{Incoming, Server};
use crate::supervise::{
    Clocks, EvidenceRequest, EvidenceRing, GpuLock, Signals, StandstillDetector, Watchdog,
};
use crate::telemetry::Sampler;
use crate::workload::adapter::{Adapter, AdapterKind};
use crate::workload::external::{ChildEvent, Running};

use super::attach::{Asked, Attachment};
use super::audience::Audience;
use super::claim::{Claim, Wait};
use super::front::{Front, Shown};
use super::last_screen::LastScreen;
use super::outputs::Outputs;
use super::planner::Planner;
use super::results::{Finder, Look};
use super::saving::Saved;
use super::setup::{Setup, complain};

/// One turn of the run's clock; a sample is taken every second turn.
const TICK: Duration = Duration::from_millis(TURN_MS);
/// The state of the loop.
pub(super) struct Shell {
    pub(super) state: RunState,
    epoch: Instant,
    scale: TimeScale,
    seq: u64,
    /// Time of the last event.
    last: Mono,
    pub(super) sampler: Sampler,
    pub(super) outputs: Outputs,
    pub(super) ring: EvidenceRing,
    pub(super) watchdog: Watchdog,
    pub(super) dir: RunDir,
    pub(super) lock: Option<GpuLock>,
    /// The card is not ours yet.
    card_wait: Option<Box<Wait>>,
    pub(super) cwd: PathBuf,
    pub(super) kind: AdapterKind,
    pub(super) planner: Planner,
    learned: super::learned::Learned,
    /// Notices about the plan that were posted.
    pub(super) told: BTreeSet<String>,
    /// The process to watch, until it is.
    pub(super) attachment: Option<Attachment>,
    /// It is not ours; whether the user says that a job is in flight.
    pub(super) attached: Option<bool>,
    pub(super) agent: super::agent::Side,
    pub(super) sender: super::resend::Sender,
    /// What every bundle of evidence is asked for.
    pub(super) ask_always: EvidenceRequest,
    pub(super) attempt: Option<AttemptSpec>,
    pub(super) child: Option<Running>,
    pub(super) pgid: Option<u32>,
    pub(super) pid: Option<u32>,
    pub(super) exit_seen: bool,
    /// The root process ended a moment ago.
    pub(super) returned: Option<super::child::Returned>,
    pub(super) left_running: Option<super::child::LeftRunning>,
    /// Who asked for the end of the run last.
    pub(super) ended_by: Option<Asked>,
    /// We have sent it a signal.
    pub(super) ending: bool,
    /// Signals that were asked for and not answered yet, oldest first.
    pub(super) signals_owed: VecDeque<(Signal, Scope)>,
    pub(super) adapter: Option<Box<dyn Adapter + Send>>,
    pub(super) finder: Finder,
    /// The group is gone, but the last look for results is not back.
    pub(super) gone_pending: Option<(u32, Instant)>,
    pub(super) evidence_to: mpsc::UnboundedSender<EvidenceReport>,
    pub(super) saved_to: mpsc::UnboundedSender<Saved>,
    sources: Vec<SourceStatus>,
    /// Threads of the workload in the last round.
    tids: Vec<u32>,
    pub(super) ended: Option<Outcome>,
    /// Who asked for what is being carried out.
    pub(super) answering: Option<Asked>,
    /// Who made the last choice.
    pub(super) chose: Option<Asked>,
    pub(super) control: Server,
    /// Whether a person sees what is announced: changes with the screens that are attached.
    pub(super) audience: Audience,
}

/// What comes in from outside the loop.
pub(super) struct Inbox {
    pub(super) commands: mpsc::UnboundedReceiver<Request>,
    /// From attached screens.
    pub(super) control: Incoming,
    looks: mpsc::Receiver<Look>,
    evidence: mpsc::UnboundedReceiver<EvidenceReport>,
    pub(super) saved: mpsc::UnboundedReceiver<Saved>,
    deadline: mpsc::UnboundedReceiver<String>,
    /// What becomes of lost jobs.
    resent: mpsc::UnboundedReceiver<Event>,
    pub(super) signals: Signals,
    /// What agents say; absent: none is heard.
    agent: Option<mpsc::Receiver<Heard>>,
}

/// Runs until the core says that the run is over; gives the exit code.
pub(super) async fn supervise(setup: Setup, front: Front) -> Result<u8, CliError> {
    let started = setup.started.clone();
    let notices = setup.notices.clone();
    let mut warnings = setup.warnings.clone();
    if let Some(filter) = &setup.log
        && let Err(why) = log::open(setup.dir.path(), filter)
    {
        warnings.push(format!("the supervisor writes no log of its own: {why}"));
    }
    let (mut shell, mut inbox) = open(setup, front)?;
    shell.post(Event::RunStarted(Box::new(started)));
    let notices = notices.into_iter().map(|text| (Level::Info, text));
    let warnings = warnings.into_iter().map(|text| (Level::Warn, text));
    for (level, text) in notices.chain(warnings) {
        shell.post(Event::Notice { level, text });
    }
    if shell.attached.is_some() {
        // it runs already: nothing has to be read before
        shell.post(Event::Tick);
    }
    // before the first reading, upon which an attempt would begin
    shell.look_at_card();
    shell.run(&mut inbox).await;
    // boxed: with the state in it, the future is too large for the stack
    Box::pin(shell.close(&mut inbox)).await
}

fn open(mut setup: Setup, front: Front) -> Result<(Shell, Inbox), CliError> {
    let (lock, card_wait) = setup.claim.take().map(Claim::split).unwrap_or_default();
    let system = |what| move |why| CliError::System { what, why };
    let (agent, heard) = super::agent::Side::open(&mut setup)
        .map_err(|why| system("listen to the agent")(std::io::Error::other(why)))?;
    let (look_to, looks) = mpsc::channel(4);
    let (evidence_to, evidence) = mpsc::unbounded_channel();
    let (saved_to, saved) = mpsc::unbounded_channel();
    let (resent_to, resent) = mpsc::unbounded_channel();
    let (deadline_to, deadline) = mpsc::unbounded_channel();
    let watchdog = watchdog(deadline_to)?;
    let audience = Audience::new(&front.shown, setup.attachment.is_some(), &setup.started);
    let (control, incoming) = serve_screens(&mut setup, &front.shown)?;
    let outputs = Outputs::open(front.shown, &setup.dir)?;
    outputs.show_profiles(&setup.planner);
    outputs.show_record(setup.dir.path());
    let argv = &setup.started.argv;
    let finder = Finder::new(argv, &setup.cwd, setup.own.as_deref(), look_to);
    let shell = Shell {
        state: RunState::new(&setup.started),
        epoch: Instant::now(),
        scale: setup.started.plan.time_scale,
        seq: 0,
        last: Mono::ZERO,
        sampler: setup.sampler,
        outputs,
        ring: EvidenceRing::new(),
        watchdog,
        dir: setup.dir,
        lock,
        card_wait,
        cwd: setup.cwd,
        kind: setup.kind,
        planner: setup.planner,
        learned: setup.learned,
        told: setup.notices.iter().cloned().collect(),
        attached: setup.attachment.as_ref().map(|a| a.job),
        attachment: setup.attachment,
        agent,
        sender: super::resend::Sender::new(resent_to),
        ask_always: EvidenceRequest {
            gdb: setup.gdb,
            ..EvidenceRequest::default()
        },
        attempt: None,
        child: None,
        pgid: None,
        pid: None,
        exit_seen: false,
        returned: None,
        left_running: None,
        ended_by: None,
        ending: false,
        signals_owed: VecDeque::new(),
        adapter: None,
        finder,
        gone_pending: None,
        evidence_to,
        saved_to,
        sources: Vec::new(),
        tids: Vec::new(),
        ended: None,
        answering: None,
        chose: None,
        control,
        audience,
    };
    let inbox = Inbox {
        commands: front.commands,
        control: incoming,
        looks,
        evidence,
        saved,
        deadline,
        resent,
        signals: front.signals,
        agent: heard,
    };
    Ok((shell, inbox))
}

fn watchdog(told: mpsc::UnboundedSender<String>) -> Result<Watchdog, CliError> {
    Watchdog::start(Watchdog::LIMIT, move |fired| {
        // the loop reads it if it ever comes back; the words go out at once as well
        let text = format!(
            "the supervising loop was silent for {} s: process group {} was killed without evidence",
            fired.silent.as_secs(),
            fired.pgid
        );
        complain(&text);
        let _ = told.send(text);
    })
    .map_err(|why| CliError::System {
        what: "start the hard deadline",
        why,
    })
}

/// Opens the control socket. A folder that holds no sockets costs the screens, not the run.
fn serve_screens(setup: &mut Setup, shown: &Shown) -> Result<(Server, Incoming), CliError> {
    let system = |why| CliError::System {
        what: "serve screens",
        why,
    };
    let first = match shown {
        Shown::Viewers(first) => Some(first.try_clone().map_err(system)?),
        Shown::Screen(..) | Shown::Headless | Shown::Plain => None,
    };
    let id = setup.dir.id().to_string();
    let (control, incoming, unreachable) =
        Server::start(&id, setup.dir.path(), first).map_err(system)?;
    let said =
        |why| format!("no screen can attach to this run: its control socket cannot be made: {why}");
    setup.notices.extend(unreachable.map(said));
    Ok((control, incoming))
}

impl Shell {
    /// Appends an event to the stream, folds it, and carries out what follows.
    pub(super) fn post(&mut self, event: Event) {
        self.post_from(None, event);
    }

    /// How fast the run's clock goes.
    pub(super) const fn time_scale(&self) -> TimeScale {
        self.scale
    }

    /// Time since the run began, on its own clock.
    pub(super) fn now(&self) -> Mono {
        Mono(crate::model::time::millis(
            self.scale.run_time(self.epoch.elapsed()),
        ))
    }

    /// The same, told by somebody else than the console and ourselves.
    pub(super) fn post_from(&mut self, from: Option<Speaker>, event: Event) {
        self.post_at(self.now(), from, event);
    }

    /// Appends what the fold has said upon an event of the time `at`. The time is that of the event,
    /// not of the end of the fold: a replay says the same upon the same event, however long its fold
    /// takes.
    pub(super) fn post_said(&mut self, at: Mono, event: Event) {
        self.post_at(at, None, event);
    }

    fn post_at(&mut self, at: Mono, from: Option<Speaker>, event: Event) {
        self.seq += 1;
        // an effect before this one may have been answered meanwhile
        let at = at.max(self.last);
        self.last = at;
        let event = self.at_scale(event);
        let env = Arc::new(Envelope {
            seq: self.seq,
            at,
            from,
            event,
        });
        self.ring.observe(&env);
        self.outputs.accept(&env);
        self.control.accept(&env);
        if let (
            Some(asked),
            Event::Notice {
                level: Level::Warn,
                text,
            },
        ) = (self.answering, &env.event)
        {
            self.answer(asked, text.clone());
        }
        let begun = Instant::now();
        let effects = reduce(&mut self.state, &env);
        tracing::debug!(
            seq = env.seq,
            at_ms = env.at.0,
            fold_us = begun.elapsed().as_micros(),
            "event {}",
            log::variant(&env.event)
        );
        for effect in effects {
            tracing::debug!(upon = env.seq, "effect {}", log::variant(&effect));
            self.carry_out(at, effect);
        }
    }

    /// Readings of the machine on the run's clock.
    fn at_scale(&self, mut event: Event) -> Event {
        match &mut event {
            Event::Sample(sample) => self.scale.apply_to_sample(sample),
            Event::Probe(probe) => self.scale.apply_to_probe(probe),
            _ => {}
        }
        event
    }

    async fn run(&mut self, inbox: &mut Inbox) {
        let mut ticks = tokio::time::interval(self.scale.real_time(TICK));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut standstill = StandstillDetector::new();
        let mut nth = 0_u64;
        while self.ended.is_none() {
            self.watchdog.beat();
            tokio::select! {
                biased;
                command = inbox.signals.next() => {
                    self.command(command, Asked::Signal, &mut inbox.signals);
                }
                Some(request) = inbox.commands.recv() => {
                    self.request(request, Asked::User, &mut inbox.signals);
                }
                Ok(()) = inbox.control.viewers.changed() => {
                    self.screens_changed(&mut inbox.signals);
                }
                Some(heard) = inbox.control.requests.recv() => {
                    let asked = Asked::Viewer(heard.viewer);
                    self.request(heard.request, asked, &mut inbox.signals);
                }
                _ = ticks.tick() => {
                    self.clocks(&mut standstill);
                    self.look_after_return();
                    self.look_at_card();
                    if nth.is_multiple_of(2) {
                        self.take_sample();
                    } else {
                        self.post(Event::Tick);
                    }
                    nth += 1;
                }
                Some(report) = inbox.evidence.recv() => self.post(Event::EvidenceTaken(report)),
                Some(saved) = inbox.saved.recv() => self.saved(saved),
                Some(event) = inbox.resent.recv() => self.resend_heard(event),
                Some(look) = inbox.looks.recv() => self.looked(&look),
                Some(text) = inbox.deadline.recv() => {
                    self.post(Event::Notice { level: Level::Warn, text });
                }
                event = next_of(&mut self.child) => self.child_event(event),
                // last: whoever floods us holds nobody up
                Some(heard) = said(&mut inbox.agent) => self.agent_heard(heard),
            }
            self.outputs.publish(&self.state, Instant::now());
        }
    }

    /// What has become of the wait for the card.
    fn look_at_card(&mut self) {
        let Some(wait) = &mut self.card_wait else {
            return;
        };
        let (event, lock) = wait.turn();
        if lock.is_some() {
            self.lock = lock;
            self.card_wait = None;
        }
        if let Some(event) = event {
            self.post(event);
        }
    }

    fn clocks(&mut self, detector: &mut StandstillDetector) {
        let clocks = Clocks::now();
        if let Some((cause, lost)) = detector.observe(
            clocks.monotonic,
            clocks.boottime,
            self.scale.real_time(TICK),
        ) {
            tracing::warn!(?cause, ?lost, "the loop did not run");
            self.post(Event::Standstill {
                cause,
                for_ms: crate::model::time::millis(self.scale.run_time(lost)),
            });
        }
    }

    fn take_sample(&mut self) {
        for text in self.sampler.kernel_lines() {
            if self.concerns_us(&text) {
                self.post(Event::Kernel { text });
            }
        }
        for event in self.outputs.reports() {
            self.post(event);
        }
        let sample = self.sampler.sample();
        self.tell_sources(&sample.sources);
        if let Some(p) = sample.process.as_ref().filter(|p| !p.per_thread.is_empty()) {
            self.tids = p.per_thread.iter().map(|t| t.tid).collect();
        }
        self.agent_tick(sample.process.as_ref());
        if let Some(probe) = self.sampler.take_probe() {
            self.post(Event::Probe(Box::new(probe)));
        }
        self.post(Event::Sample(Box::new(sample)));
        self.finish_gone(false);
    }

    /// A crash of some other program is not our business: `name[pid]: segfault …`
    /// must name a process or thread of the workload.
    fn concerns_us(&self, text: &str) -> bool {
        if !text.contains("segfault at") {
            return true;
        }
        let named = text
            .split_once('[')
            .and_then(|(_, rest)| rest.split_once(']'))
            .and_then(|(pid, _)| pid.parse::<u32>().ok());
        named.is_none_or(|n| self.pid == Some(n) || self.tids.contains(&n))
    }

    /// Changes of a source's state are events of their own.
    fn tell_sources(&mut self, now: &[SourceStatus]) {
        let changed: Vec<SourceStatus> = now
            .iter()
            .filter(|s| {
                let before = self.sources.iter().find(|b| b.name == s.name);
                let quiet = matches!(s.state, SourceState::Ok | SourceState::Starting);
                match before {
                    Some(b) => b.state != s.state && s.state != SourceState::Starting,
                    None => !quiet,
                }
            })
            .cloned()
            .collect();
        if changed.is_empty() && now.len() == self.sources.len() {
            return;
        }
        self.sources = now.to_vec();
        for status in changed {
            self.post(Event::Source(status));
        }
    }

    /// A look for results is back.
    fn looked(&mut self, look: &Look) {
        if let Some(found) = self.finder.news(look) {
            let (number, rung) = self
                .attempt
                .as_ref()
                .map_or((0, None), |a| (a.number, Some(a.rung.clone())));
            if let Some(rung) = rung {
                self.post(Event::Artefact(Artefact {
                    path: found.path.display().to_string(),
                    size: Bytes(found.size),
                    frames: found.frames,
                    attempt: number,
                    rung,
                }));
            }
        }
        if look.last {
            self.finish_gone(true);
        }
    }

    /// The end. What the run held of the card, of memory and of the disk is given back before
    /// the last screen, which may stand for hours.
    async fn close(mut self, inbox: &mut Inbox) -> Result<u8, CliError> {
        let snapshot = self.state.snapshot();
        if let (Some(Outcome::Unkillable { .. }), Some(lock)) = (&self.ended, self.lock.as_mut())
            && let Err(e) = lock.leave_survivors(&snapshot.survivors)
        {
            complain(&e.to_string());
        }
        // a folder that cannot be written costs what was learned, nothing else
        let _ = self.learned.save(self.state.baselines());
        if let Some(lock) = self.lock.take()
            && let Err(e) = lock.release()
        {
            complain(&e.to_string());
        }
        self.outputs.publish_last(&self.state);
        let complaints = self.outputs.finish_writers();
        // a signal may be of a script or of the system, which wait for our end; who pressed a
        // key still reads
        let stays = match self.ended {
            Some(Outcome::Interrupted { .. }) => self.ended_by != Some(Asked::Signal),
            Some(Outcome::Left) => false,
            _ => true,
        };
        let code = snapshot.outcome.as_ref().map_or(70, |(_, code, _)| *code);
        let folder = self.dir.path().to_owned();
        let outcome = (snapshot.outcome.clone(), snapshot.result.clone());
        // the rest of the run ends here: readings of the card, the agent, what is remembered
        let last = LastScreen::of(self, snapshot);
        let shown_on_screen = last.show(inbox, stays).await;
        for complaint in complaints {
            complain(&complaint);
        }
        if shown_on_screen {
            last_words(outcome.0.as_ref(), outcome.1.as_ref(), &folder);
        }
        Ok(code)
    }
}

/// The next word of an agent, if one is to be heard.
async fn said(agent: &mut Option<mpsc::Receiver<Heard>>) -> Option<Heard> {
    match agent {
        Some(heard) => heard.recv().await,
        None => std::future::pending().await,
    }
}

/// The next word of the child, if there is one to wait for.
async fn next_of(child: &mut Option<Running>) -> ChildEvent {
    match child {
        Some(running) => match running.events.recv().await {
            Some(event) => event,
            // the events end after the group is gone
            None => ChildEvent::Gone,
        },
        None => std::future::pending().await,
    }
}
