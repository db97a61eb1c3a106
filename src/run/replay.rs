//! Today's rules over what was recorded, beside what was said then.
//!
//! The events of a record are folded again, all but what the fold itself had said:
//! verdicts, decisions, attempts and the end are made anew and compared with those in
//! the record. Of the other effects a record holds the answers: `signal_sent` for a
//! signal, `evidence_taken` for a capture. Once today's rules decide otherwise, the rest
//! of the record no longer answers what they do: [`Comparison::parted`] says when.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::time::Duration;

use crate::model::event::{Choice, EvidenceReport, RunStarted, TURN_MS};
use crate::model::time::millis;
use crate::model::{
    Effect, Envelope, Event, Mono, ResendWord, RungId, Scope, Signal, TimeScale, VerdictId,
};

use super::log::words;
use super::reduce;
use super::state::RunState;
use super::ticks::Ticks;

/// Said at the same time: within one turn of the clock.
const SAME_MS: u64 = TURN_MS;
/// An effect is answered by another thread, and a capture takes a while. On the machine's clock, as
/// the next one: at a time scale the machine works no faster.
const ANSWERED: Duration = Duration::from_secs(2);
/// An effect that is younger than this at the end of a record may not be answered yet.
const UNANSWERED: Duration = Duration::from_secs(10);

/// What the rules said or did, without its words and numbers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Deed {
    /// A judgement.
    Verdict(VerdictId, &'static str),
    /// A decision: the verdict that it answers, what, and on which rung.
    Decision(VerdictId, &'static str, Option<RungId>),
    /// An attempt was begun: its number and rung.
    Attempt(u32, RungId),
    /// Evidence was asked for: number of the bundle.
    Evidence(u32),
    /// A signal was sent: attempt, which, whom.
    Signal(u32, &'static str, &'static str),
    /// A lost job: attempt, what was decided about it, which.
    Resend(u32, &'static str, Option<String>),
    /// The end, with our exit code.
    End(u8),
}

impl Deed {
    /// `verdicts`, `decisions` or `effects`.
    pub const fn group(&self) -> &'static str {
        match self {
            Self::Verdict(..) => "verdicts",
            Self::Decision(..) => "decisions",
            Self::Attempt(..)
            | Self::Evidence(_)
            | Self::Signal(..)
            | Self::Resend(..)
            | Self::End(_) => "effects",
        }
    }

    /// What an event of a stream says was said or done.
    fn of_event(event: &Event) -> Option<Self> {
        Some(match event {
            Event::Verdict(v) => Self::Verdict(v.id, v.health.word()),
            Event::Decision(d) => {
                let (what, rung) = match &d.choice {
                    Choice::Restart { rung, .. } => ("restart", Some(rung.clone())),
                    Choice::GiveUp => ("give up", None),
                    Choice::Advise => ("advice only", None),
                    Choice::Hold => ("held", None),
                    Choice::Resume => ("go on", None),
                };
                Self::Decision(d.verdict, what, rung)
            }
            Event::AttemptStarted(a) => Self::Attempt(a.number, a.rung.clone()),
            Event::EvidenceTaken(e) => Self::Evidence(e.number),
            Event::SignalSent {
                attempt,
                signal,
                scope,
                ..
            } => Self::signal(*attempt, *signal, *scope),
            Event::Resend(r) => {
                let (what, job) = match &r.word {
                    ResendWord::Sending { job, .. } => ("send again", Some(job.clone())),
                    ResendWord::GivenUp { job, .. } => ("do not send again", job.clone()),
                    ResendWord::Waiting { .. } => ("ask for the queue", None),
                    _ => return None,
                };
                Self::Resend(r.attempt, what, job)
            }
            Event::RunFinished { exit_code, .. } => Self::End(*exit_code),
            _ => return None,
        })
    }

    const fn signal(attempt: u32, signal: Signal, scope: Scope) -> Self {
        let whom = match scope {
            Scope::Group => "group",
            Scope::Tree => "tree",
        };
        Self::Signal(attempt, signal.name(), whom)
    }

    /// Milliseconds within which it counts as the same time.
    fn tolerance(&self, scale: TimeScale) -> u64 {
        match self {
            Self::Evidence(_) | Self::Signal(..) => millis(scale.run_time(ANSWERED)),
            _ => SAME_MS,
        }
    }
}

impl fmt::Display for Deed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Verdict(id, health) => write!(f, "{health} {id}"),
            Self::Decision(id, what, None) => write!(f, "{what} ({id})"),
            Self::Decision(id, what, Some(rung)) => write!(f, "{what} on {rung} ({id})"),
            Self::Attempt(n, rung) => write!(f, "attempt {n} on {rung}"),
            Self::Evidence(n) => write!(f, "evidence {n}"),
            Self::Signal(_, name, whom) => write!(f, "{name} to the {whom}"),
            Self::Resend(_, what, job) => {
                write!(f, "{what}")?;
                job.as_ref().map_or(Ok(()), |job| write!(f, " {job}"))
            }
            Self::End(code) => write!(f, "end with exit code {code}"),
        }
    }
}

/// Something that was said or done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// When.
    pub at: Mono,
    /// What.
    pub deed: Deed,
    /// In words; empty where there are none.
    pub words: String,
    /// Of the whole event, its time left out.
    print: u64,
}

impl Told {
    fn event(at: Mono, event: &Event, scale: TimeScale) -> Option<Self> {
        let at = match event {
            Event::EvidenceTaken(EvidenceReport {
                asked: Some(asked), ..
            }) => *asked,
            Event::EvidenceTaken(e) => {
                let took = scale.run_time(Duration::from_millis(e.took_ms));
                Mono(at.0.saturating_sub(millis(took)))
            }
            _ => at,
        };
        Some(Self {
            at,
            deed: Deed::of_event(event)?,
            words: words(event).unwrap_or_default(),
            print: print(event),
        })
    }

    fn effect(at: Mono, effect: &Effect, scale: TimeScale) -> Option<Self> {
        let deed = match effect {
            // its capture stands for it
            Effect::Emit(event) if matches!(**event, Event::EvidenceTaken(_)) => return None,
            Effect::Emit(event) => return Self::event(at, event, scale),
            Effect::Capture { number, .. } => Deed::Evidence(*number),
            Effect::Signal {
                attempt,
                signal,
                scope,
            } => Deed::signal(*attempt, *signal, *scope),
            _ => return None,
        };
        Some(Self {
            at,
            deed,
            words: String::new(),
            print: 0,
        })
    }
}

/// A fingerprint of all that an event says.
fn print(event: &Event) -> u64 {
    let mut hasher = DefaultHasher::new();
    // an event without a JSON form is in no record
    let text = serde_json::to_string(event).unwrap_or_default();
    text.hash(&mut hasher);
    hasher.finish()
}

/// How today's word stands to that of then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Difference {
    /// The same at the same time.
    Same,
    /// The same, earlier than then.
    Earlier,
    /// The same, later than then.
    Later,
    /// Not said then.
    New,
    /// Not said today.
    Lost,
}

impl Difference {
    /// Its word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Earlier => "earlier",
            Self::Later => "later",
            Self::New => "new",
            Self::Lost => "lost",
        }
    }
}

/// One thing of either side, or of both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// What the record says.
    pub then: Option<Told>,
    /// What today's rules say.
    pub now: Option<Told>,
    /// How fast the clock of the record goes.
    pub scale: TimeScale,
}

impl Pair {
    /// How they differ.
    pub fn difference(&self) -> Difference {
        match (&self.then, &self.now) {
            (Some(then), Some(now)) => {
                let apart = then.at.0.abs_diff(now.at.0);
                if apart <= then.deed.tolerance(self.scale) {
                    Difference::Same
                } else if now.at < then.at {
                    Difference::Earlier
                } else {
                    Difference::Later
                }
            }
            (None, _) => Difference::New,
            (_, None) => Difference::Lost,
        }
    }

    /// The word in question: today's, or that of then where it is lost.
    pub fn told(&self) -> Option<&Told> {
        self.now.as_ref().or(self.then.as_ref())
    }

    /// The same at the same time, in other words or with other numbers.
    pub fn is_reworded(&self) -> bool {
        match (&self.then, &self.now) {
            (Some(then), Some(now)) => {
                self.difference() == Difference::Same && now.print != 0 && then.print != now.print
            }
            _ => false,
        }
    }
}

/// Everything of both sides, in the order of time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparison {
    /// What was said and done.
    pub pairs: Vec<Pair>,
    /// When the first decision, attempt or signal came out differently: from here on the
    /// record answers other decisions than today's.
    pub parted: Option<Mono>,
    /// The record holds ticks: those of `--headless` do not, and they are put back where
    /// its numbers leave room.
    pub has_ticks: bool,
}

impl Comparison {
    /// How many of a group differ in each way.
    pub fn counts(&self, group: &str) -> BTreeMap<Difference, usize> {
        let mut counts = BTreeMap::new();
        for pair in &self.pairs {
            if pair.told().is_some_and(|t| t.deed.group() == group) {
                *counts.entry(pair.difference()).or_default() += 1;
            }
        }
        counts
    }

    /// Whether anything is earlier, later, new or lost.
    pub fn differs(&self) -> bool {
        self.pairs
            .iter()
            .any(|p| p.difference() != Difference::Same)
    }

    /// How many are the same in other words.
    pub fn reworded(&self) -> usize {
        self.pairs.iter().filter(|p| p.is_reworded()).count()
    }
}

/// A record that is folded again.
#[derive(Debug)]
pub struct Replay {
    state: RunState,
    then: Vec<Told>,
    now: Vec<Told>,
    last: Mono,
    ticks: Ticks,
    has_end: bool,
    scale: TimeScale,
}

impl Replay {
    /// Over a record with this head.
    pub fn new(started: &RunStarted) -> Self {
        Self {
            state: RunState::new(started),
            then: Vec::new(),
            now: Vec::new(),
            last: Mono::ZERO,
            ticks: Ticks::default(),
            has_end: false,
            scale: started.plan.time_scale,
        }
    }

    /// Whether the fold says this itself: then it is compared, not folded again.
    pub const fn is_output(event: &Event) -> bool {
        if let Event::Resend(resend) = event {
            return resend.word.is_decided();
        }
        matches!(
            event,
            Event::Verdict(_)
                | Event::Decision(_)
                | Event::AttemptStarted(_)
                | Event::RunFinished { .. }
        )
    }

    /// Takes the next event of the record, the head included; gives what today's rules
    /// do upon it.
    pub fn feed(&mut self, env: &Envelope) -> Vec<Effect> {
        let ticks = self.ticks.before(env);
        let mut effects: Vec<_> = ticks.iter().flat_map(|tick| self.fold(tick)).collect();
        effects.extend(self.fold(env));
        effects
    }

    fn fold(&mut self, env: &Envelope) -> Vec<Effect> {
        self.last = self.last.max(env.at);
        self.has_end |= matches!(env.event, Event::RunFinished { .. });
        self.then
            .extend(Told::event(env.at, &env.event, self.scale));
        if Self::is_output(&env.event) {
            return Vec::new();
        }
        let effects = reduce(&mut self.state, env);
        let scale = self.scale;
        let told = effects
            .iter()
            .filter_map(|e| Told::effect(env.at, e, scale));
        self.now.extend(told);
        effects
    }

    /// Compares.
    pub fn finish(self) -> Comparison {
        let mut pairs = pair(self.then, self.now, self.scale);
        if !self.has_end {
            // asked for, and cut off before the answer; or said, and cut off before it
            // was written
            let last = self.last.0;
            let young = |t: &Told| {
                let at_most = match t.deed {
                    Deed::Evidence(_) | Deed::Signal(..) => millis(self.scale.run_time(UNANSWERED)),
                    _ => SAME_MS,
                };
                last.saturating_sub(t.at.0) <= at_most
            };
            pairs.retain(|p| p.then.is_some() || !p.now.as_ref().is_some_and(young));
        }
        let parted = pairs
            .iter()
            .filter(|p| p.difference() != Difference::Same)
            .filter_map(Pair::told)
            .find(|t| !matches!(t.deed, Deed::Verdict(..)))
            .map(|t| t.at);
        Comparison {
            pairs,
            parted,
            has_ticks: self.ticks.seen(),
        }
    }
}

/// Pairs first what was said at the same time, then the rest of each deed in its order.
fn pair(then: Vec<Told>, now: Vec<Told>, scale: TimeScale) -> Vec<Pair> {
    let mut open: BTreeMap<Deed, VecDeque<Told>> = BTreeMap::new();
    for told in then {
        open.entry(told.deed.clone()).or_default().push_back(told);
    }
    let mut pairs = Vec::new();
    let mut rest = Vec::new();
    for now in now {
        let same = open.get_mut(&now.deed).and_then(|list| {
            let near = |t: &Told| t.at.0.abs_diff(now.at.0) <= now.deed.tolerance(scale);
            let at = list.iter().position(near)?;
            list.remove(at)
        });
        match same {
            Some(then) => pairs.push(Pair {
                then: Some(then),
                now: Some(now),
                scale,
            }),
            None => rest.push(now),
        }
    }
    for now in rest {
        let then = open.get_mut(&now.deed).and_then(VecDeque::pop_front);
        pairs.push(Pair {
            then,
            now: Some(now),
            scale,
        });
    }
    let lost = open.into_values().flatten();
    pairs.extend(lost.map(|then| Pair {
        then: Some(then),
        now: None,
        scale,
    }));
    pairs.sort_by_key(|p| p.told().map(|t| t.at));
    pairs
}
