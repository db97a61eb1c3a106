//! Plays a recording: bytes, rows and happenings in the order of their times, through the
//! parts that a run is made of. Time is data; nothing is waited for.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use crate::detect::{Thresholds, culprit, kernel_fault};
use crate::model::event::{Decision, EvidenceReport, RunStarted, Standstill};
use crate::model::{
    AttemptSpec, Effect, Envelope, Event, ExitReport, ExitStatus, JobChange, Line, Mono, Phase,
    Stream, Verdict,
};
use crate::run::{RunState, reduce, rejudge};
use crate::workload::adapter::{self, Adapter, AdapterKind, LaunchInfo};
use crate::workload::lines::LineSplitter;

use super::head;
use super::meta::Meta;
use super::readings::{Counters, Row, Step};
use super::tail::Tail;

/// Readings before the launch, as a run takes them.
const BEFORE: Duration = Duration::from_secs(2);
/// As the program that drains the child's output: unfinished text waits this long.
const PENDING_S: f64 = 0.3;
/// Evidence comes back after this time.
const EVIDENCE_S: f64 = 1.0;
/// Process of the recording where it does not say which.
const PID: u32 = 4242;
/// Places of evidence that are remembered.
const MOST_PLACES: usize = 20_000;
/// Pauses of the machine that are remembered.
const MOST_LEAPS: usize = 1000;

/// What the supervisor itself saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happening {
    /// The process ended.
    Exit(ExitStatus),
    /// It was stopped (SIGSTOP).
    Stopped,
    /// It goes on.
    Continued,
}

/// The next thing of a recording.
#[derive(Debug, Clone, Copy)]
pub enum Item<'a> {
    /// The machine slept for so many seconds, until now.
    Slept(f64),
    /// Bytes of the console.
    Output(&'a [u8]),
    /// A line of the kernel log.
    Kernel(&'a str),
    /// What the supervisor saw.
    Happened(Happening),
    /// Readings; `Step` is the time until the next.
    Sample(&'a Row, Step),
    /// Time passed.
    Tick,
}

/// What is done about a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fold {
    /// As a supervised run: decisions are made, and told.
    Live,
    /// As a diagnosis: judged to the end.
    Judge,
}

/// What the core told.
#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    /// A judgement.
    Verdict(Box<Verdict>),
    /// A decision; only of [`Fold::Live`].
    Decision(Box<Decision>),
    /// The workload entered a phase.
    Phase(Phase),
    /// A job began or ended.
    Job(JobChange),
}

/// Where in the recording something stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// File of the recording.
    pub file: &'static str,
    /// Line, from 1.
    pub line: u64,
}

/// See the module.
pub struct Player {
    meta: Meta,
    fold: Fold,
    state: RunState,
    adapter: Box<dyn Adapter + Send>,
    splitter: LineSplitter,
    last_piece: f64,
    /// Pieces of output are told apart by their times in the recording, not by a clock.
    clock: Instant,
    pid: u32,
    seq: u64,
    /// Time in the recording, and how much of it the machine slept.
    t: f64,
    slept: f64,
    /// (time of the stream, time slept until then), in order.
    leaps: Vec<(Mono, f64)>,
    counters: Counters,
    /// State letter of the root process.
    letter: char,
    gone: bool,
    evidence: Vec<(f64, u32)>,
    told: Vec<(f64, Told)>,
    places: BTreeMap<u64, Place>,
    tail: Tail,
}

impl std::fmt::Debug for Player {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Player")
            .field("t", &self.t)
            .finish_non_exhaustive()
    }
}

impl Player {
    /// A player for a recording of which this is known; `kernel`: its kernel log, or the
    /// lines of it that may name our process. `before`: readings of the card from two seconds
    /// before the launch on, half a second apart.
    pub fn new<'a>(
        meta: &Meta,
        kind: AdapterKind,
        fold: Fold,
        kernel: impl Iterator<Item = &'a str>,
        before: &[Row],
    ) -> Self {
        let started = head::started(meta, kind);
        let mut player = Self {
            meta: meta.clone(),
            fold,
            state: RunState::new(&started),
            adapter: adapter::new(
                kind,
                &LaunchInfo {
                    argv: meta.argv.clone(),
                    on_cpu: false,
                },
            ),
            splitter: LineSplitter::new(1, Stream::Stderr),
            last_piece: 0.0,
            clock: Instant::now(),
            pid: victim(&meta.argv, kernel).unwrap_or(PID),
            seq: 0,
            t: -BEFORE.as_secs_f64(),
            slept: 0.0,
            leaps: Vec::new(),
            counters: Counters::default(),
            letter: 'S',
            gone: false,
            evidence: Vec::new(),
            told: Vec::new(),
            places: BTreeMap::new(),
            tail: Tail::default(),
        };
        player.launch(started, before);
        player
    }

    /// Other numbers in the rules from here on: for tests of the numbers.
    pub const fn set_thresholds(&mut self, thresholds: &Thresholds) {
        self.state.set_thresholds(thresholds);
    }

    /// The card is read before the program is launched: that is its idle level.
    fn launch(&mut self, started: RunStarted, before: &[Row]) {
        let plan = started.plan.clone();
        self.post(Event::RunStarted(Box::new(started)));
        // a recording without readings has a sample of nothing
        let readings = before.iter().map(Some);
        for row in readings.chain(before.is_empty().then_some(None)) {
            let mut sample = crate::model::Sample::default();
            sample.gpus.extend(row.and_then(|r| r.card(&self.meta)));
            self.post(Event::Sample(Box::new(sample)));
            self.t = (self.t + 0.5).min(0.0);
        }
        // a card that cannot be read is not waited for any longer than this
        self.t = 0.0;
        if self.fold == Fold::Judge {
            self.post(Event::AttemptStarted(Box::new(AttemptSpec {
                number: 1,
                rung: crate::model::RungId::as_given(),
                action: crate::model::ActionId::None,
                tier: crate::model::Tier::T0,
                argv: plan.argv,
                env: plan.env,
                settings: plan.settings,
                on_cpu: false,
            })));
            for event in self.spawned() {
                self.post(event);
            }
        }
        self.post(Event::Tick);
    }

    fn spawned(&mut self) -> Vec<Event> {
        let mut events = vec![Event::Spawned {
            attempt: 1,
            pid: self.pid,
            pgid: self.pid,
        }];
        events.extend(self.adapter.start());
        events
    }

    /// Takes the next thing at its time, which must not be before the last one's; `place`:
    /// where it stands (bytes of the console count their own lines).
    pub fn play(&mut self, t: f64, place: Option<Place>, item: Item<'_>) {
        self.t = t;
        let before = self.seq;
        self.item(item);
        if let Some(place) = place {
            for seq in before + 1..=self.seq {
                self.places.insert(seq, place);
            }
            while self.places.len() > MOST_PLACES {
                self.places.pop_first();
            }
        }
    }

    fn item(&mut self, item: Item<'_>) {
        match item {
            Item::Slept(seconds) => {
                self.slept += seconds;
                self.post(Event::Standstill {
                    cause: Standstill::MachineSuspended,
                    for_ms: millis(seconds),
                });
                if self.leaps.len() < MOST_LEAPS {
                    self.leaps.push((self.now(), self.slept));
                }
            }
            Item::Output(bytes) => {
                self.last_piece = self.t;
                let mut lines = Vec::new();
                self.splitter.feed(bytes, self.clock, &mut lines);
                self.take_lines(lines);
            }
            Item::Kernel(text) => self.post(Event::Kernel {
                text: text.to_owned(),
            }),
            Item::Happened(Happening::Stopped) => self.letter = 'T',
            Item::Happened(Happening::Continued) => self.letter = 'S',
            Item::Happened(Happening::Exit(status)) => self.exit(status),
            Item::Sample(row, step) => {
                self.evidence_comes_back();
                self.counters.pass(row, step);
                let alive = (row.alive && !self.gone).then_some((self.pid, self.letter));
                let sample = self.counters.sample(row, &self.meta, alive);
                self.post(Event::Sample(Box::new(sample)));
            }
            Item::Tick => {
                let waits = self.splitter.pending_since().is_some();
                if waits && self.t - self.last_piece >= PENDING_S {
                    let mut lines = Vec::new();
                    self.splitter.flush_pending(&mut lines);
                    self.take_lines(lines);
                }
                self.post(Event::Tick);
            }
        }
    }

    /// The recording ends here: what is unfinished is passed on.
    pub fn end(&mut self) {
        let mut lines = Vec::new();
        self.splitter.flush(&mut lines);
        self.take_lines(lines);
    }

    /// What was told since this was last asked, with its time.
    pub fn take(&mut self) -> Vec<(f64, Told)> {
        std::mem::take(&mut self.told)
    }

    /// The state that the recording has led to.
    pub const fn state(&self) -> &RunState {
        &self.state
    }

    /// The family whose wording is read.
    pub fn adapter(&self) -> AdapterKind {
        self.adapter.kind()
    }

    /// What the console said last.
    pub(super) const fn tail(&self) -> &Tail {
        &self.tail
    }

    /// Where an event of the stream stands in the recording, if it is remembered.
    pub fn place(&self, seq: u64) -> Option<Place> {
        self.places.get(&seq).copied()
    }

    /// A moment of the stream as a time of the recording, in seconds.
    pub fn seconds(&self, at: Mono) -> f64 {
        let slept = self.leaps.iter().rev().find(|(since, _)| at > *since);
        seconds(at) - BEFORE.as_secs_f64() + slept.map_or(0.0, |(_, s)| *s)
    }

    fn take_lines(&mut self, lines: Vec<Line>) {
        for line in lines {
            let events = self.adapter.feed(&line);
            self.post(Event::Line(line));
            for e in events {
                self.post(e);
            }
        }
    }

    fn exit(&mut self, status: ExitStatus) {
        self.end();
        for e in self.adapter.finish(status == ExitStatus::Code(0)) {
            self.post(e);
        }
        self.gone = true;
        self.post(Event::Exited(ExitReport { attempt: 1, status }));
        self.post(Event::GroupGone { attempt: 1 });
    }

    fn evidence_comes_back(&mut self) {
        let due: Vec<_> = self.evidence.drain(..).collect();
        for (at, number) in due {
            if self.t - at < EVIDENCE_S {
                self.evidence.push((at, number));
                continue;
            }
            self.post(Event::EvidenceTaken(EvidenceReport {
                number,
                attempt: 1,
                dir: "/evidence".to_owned(),
                items: Vec::new(),
                took_ms: 1000,
                asked: None,
            }));
        }
    }

    fn now(&self) -> Mono {
        Mono(millis(self.t - self.slept + BEFORE.as_secs_f64()))
    }

    fn post(&mut self, event: Event) {
        let mut queue = VecDeque::from([event]);
        while let Some(event) = queue.pop_front() {
            self.note(&event);
            self.seq += 1;
            let env = Envelope {
                seq: self.seq,
                at: self.now(),
                from: None,
                event,
            };
            match self.fold {
                Fold::Judge => {
                    for verdict in rejudge(&mut self.state, &env) {
                        queue.push_back(Event::Verdict(Box::new(verdict)));
                    }
                }
                Fold::Live => self.live(&env, &mut queue),
            }
        }
    }

    fn live(&mut self, env: &Envelope, queue: &mut VecDeque<Event>) {
        for effect in reduce(&mut self.state, env) {
            match effect {
                Effect::Emit(e) => queue.push_back(*e),
                Effect::Launch(spec) if spec.number == 1 => queue.extend(self.spawned()),
                Effect::Capture { number, .. } => self.evidence.push((self.t, number)),
                _ => {}
            }
        }
    }

    fn note(&mut self, event: &Event) {
        self.tail.observe(event);
        let told = match event {
            Event::Verdict(v) => Told::Verdict(v.clone()),
            Event::Decision(d) => Told::Decision(d.clone()),
            Event::Phase(p) => Told::Phase(p.phase),
            Event::Job(change) => Told::Job(change.clone()),
            _ => return,
        };
        self.told.push((self.t, told));
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates; no recording is that long"
)]
fn millis(seconds: f64) -> u64 {
    (seconds * 1000.0).max(0.0).round() as u64
}

#[expect(clippy::cast_precision_loss, reason = "no recording is that long")]
fn seconds(at: Mono) -> f64 {
    at.0 as f64 / 1000.0
}

/// Names under which a Python program with torch dies.
const PYTHON_NAMES: &[&str] = &["python", "pt_main_thread"];

/// Recordings do not hold the pid. The kernel's victim is ours if it has the name of our
/// program: on a real machine the pid decides.
pub(super) fn victim<'a>(argv: &[String], kernel: impl Iterator<Item = &'a str>) -> Option<u32> {
    // the kernel keeps 15 bytes of a name
    let words: Vec<&str> = argv
        .iter()
        .take(3)
        .filter_map(|a| a.rsplit('/').next())
        .collect();
    let ours = |name: &str| {
        words.iter().any(|w| w.get(..15).unwrap_or(w) == name)
            || PYTHON_NAMES.iter().any(|p| name.starts_with(p))
    };
    for text in kernel {
        let of_fault = kernel_fault(text).and_then(|f| Some((f.pid?, f.process?)));
        let of_cause = || culprit(text).and_then(|(_, pid, name)| Some((pid, name?)));
        if let Some((pid, name)) = of_fault.or_else(of_cause)
            && ours(&name)
        {
            return Some(pid);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_names_our_process_in_many_forms() {
        let argv = ["/opt/venv/bin/python3".to_owned(), "hv.py".to_owned()];
        for (line, want) in [
            (
                "Out of memory: Killed process 4711 (python3) total-vm:1kB",
                true,
            ),
            (
                "amdgpu 0000:03:00.0: amdgpu:  Process python3 pid 4711 thread python3 pid 4711",
                true,
            ),
            (
                "amdgpu 0000:03:00.0: amdgpu:  for process pt_main_thread pid 4711 thread x pid 4712",
                true,
            ),
            (
                "NVRM: Xid (PCI:0000:01:00): 31, pid=4711, name=python3, Ch 00000008, MMU Fault",
                true,
            ),
            (
                "Out of memory: Killed process 4711 (firefox) total-vm:1kB",
                false,
            ),
            (
                "amdgpu 0000:03:00.0: amdgpu:  Process Xorg pid 4711 thread Xorg:cs0 pid 4712",
                false,
            ),
        ] {
            let got = victim(&argv, std::iter::once(line));
            assert_eq!(got, want.then_some(4711), "{line}");
        }
    }
}
