//! What was told over a recording, put together: the main answer and how it came to it.

use std::cmp::Reverse;
use std::time::Duration;

use crate::causes::catalogue;
use crate::detect::verdicts::Depth;
use crate::model::{
    ActionId, Cause, Cite, Health, JobChange, Mono, Phase, Questions, Severity, Verdict, VerdictId,
};

use super::notes::Notes;
use super::remedy;
use super::report::{
    Change, Cited, Found, Report, SCHEMA, SourceKind, Stats, Workload, sentence_case,
};

/// Changes that are kept.
const MOST_CHANGES: usize = 10_000;
/// Suspicions that are kept.
const MOST_SUSPICIONS: usize = 100;
/// A wait that lasts this long could be taken for a hang: the answer is to wait.
const LONG_WAIT_S: f64 = 90.0;
/// And this is said.
const LONG_WAIT: &str = "a long wait that is no fault: keep waiting";
/// Findings of a verdict that are kept.
const MOST_FINDINGS: usize = 20;

/// How evidence and moments are named in a recording.
pub(super) trait Names {
    /// Where a piece of evidence stands.
    fn cited(&self, cite: &Cite) -> Cited;
    /// A moment of the stream in seconds of the recording.
    fn seconds(&self, at: Mono) -> f64;
}

/// A verdict that held, from its first moment on.
#[derive(Debug, Clone)]
struct Held {
    t: f64,
    onset: f64,
    verdict: Verdict,
    findings: Vec<Found>,
    /// A job came to its result afterwards.
    resolved: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Story {
    /// One of each verdict that is a fault, in the order in which they came.
    faults: Vec<Held>,
    last: Option<Held>,
    /// What was shown last.
    shown: Option<VerdictId>,
    /// The last job ended with an error: that the program ends well after it resolves nothing.
    job_failed: bool,
    history: Vec<Change>,
    suspicions: Vec<Change>,
    more: u64,
}

impl Story {
    /// Takes the begin or the end of a job.
    pub(super) fn observe_job(&mut self, change: &JobChange) {
        match change {
            JobChange::Started => self.job_failed = false,
            JobChange::Failed { .. } => self.job_failed = true,
            JobChange::Done => self.resolve(),
            JobChange::Waiting => {}
        }
    }

    /// A success: what was wrong before it is past.
    fn resolve(&mut self) {
        for fault in &mut self.faults {
            fault.resolved = true;
        }
    }

    /// Takes a judgement that is news.
    pub(super) fn tell(&mut self, t: f64, verdict: &Verdict, names: &impl Names) {
        let change = Change {
            t_s: round(t.max(0.0)),
            verdict: verdict.id,
            health: verdict.health,
            phase: verdict.phase,
            sentence: verdict.sentence.clone(),
        };
        if verdict.health == Health::Suspect {
            if self.suspicions.len() < MOST_SUSPICIONS {
                self.suspicions.push(change);
            }
            return;
        }
        let same = |c: &Change| (c.verdict, c.health) == (verdict.id, verdict.health);
        if !self.history.last().is_some_and(same) {
            if self.history.len() < MOST_CHANGES {
                self.history.push(change);
            } else {
                self.more += 1;
            }
        }
        let held = Held {
            t: round(t.max(0.0)),
            onset: round(names.seconds(verdict.onset).max(0.0)),
            verdict: verdict.clone(),
            findings: found(verdict, names),
            resolved: false,
        };
        self.shown = Some(verdict.id);
        if verdict.id == VerdictId::Finished && !self.job_failed {
            self.resolve();
        }
        if verdict.id.is_no_fault() {
            self.last = Some(held);
        } else if let Some(known) = self.known(verdict.id) {
            known.more(held);
        } else {
            self.faults.push(held);
        }
    }

    /// The judgement in force, which may know more about a fault than when it was told.
    pub(super) fn refine(&mut self, verdict: &Verdict, names: &impl Names) {
        if verdict.id.is_no_fault() || verdict.health == Health::Suspect {
            return;
        }
        if let Some(known) = self.known(verdict.id)
            && known.verdict.phase == verdict.phase
            && (known.verdict.remedy != verdict.remedy
                || known.verdict.considered.len() < verdict.considered.len())
        {
            let findings = found(verdict, names);
            known.more(Held {
                verdict: verdict.clone(),
                findings,
                ..*known
            });
        }
    }

    fn known(&mut self, id: VerdictId) -> Option<&mut Held> {
        self.faults.iter_mut().find(|h| h.verdict.id == id)
    }

    /// The answer: the most severe error that no later success resolved; a warning only
    /// if it still holds at the end; else the last that was no fault.
    fn main(&self) -> Option<&Held> {
        let key = |h: &&Held| place(h.verdict.id);
        let stands = |h: &&Held| {
            let error = h.verdict.id.severity() >= Severity::Error
                || matches!(
                    h.verdict.health,
                    Health::Failed | Health::Failing | Health::Hung
                );
            let holds = self.shown == Some(h.verdict.id);
            holds || (error && !h.resolved)
        };
        let standing = self.faults.iter().filter(stands);
        standing.min_by_key(key).or(self.last.as_ref())
    }

    /// The longest wait that is no fault: when it began, how long it took.
    fn longest_wait(&self, end: f64) -> Option<(&Change, f64)> {
        let mut longest: Option<(&Change, f64)> = None;
        let mut since: Option<&Change> = None;
        let ends = self.history.iter().map(|c| (c.t_s, Some(c)));
        for (t, next) in ends.chain([(end, None)]) {
            if let Some(wait) = since.filter(|w| w.verdict.definition().wait.is_some()) {
                let took = t - wait.t_s;
                if longest.is_none_or(|(_, most)| took > most) {
                    longest = Some((wait, took));
                }
            }
            match (since, next) {
                (Some(s), Some(n)) if s.verdict == n.verdict => {}
                _ => since = next,
            }
        }
        longest.filter(|(_, took)| *took >= LONG_WAIT_S)
    }

    /// The report; `end`: the judgement in force where the recording ends, `last`: when.
    pub(super) fn report(
        mut self,
        source: SourceKind,
        (end, last): (&Verdict, f64),
        names: &impl Names,
        mut notes: Notes,
    ) -> Report {
        if self.more > 0 {
            notes.say(format!(
                "{} further changes of what is shown are left out of the history",
                self.more
            ));
        }
        if self.main().is_none() {
            self.tell(0.0, end, names);
        }
        let main = self.main().cloned();
        let main = main.unwrap_or_else(|| Held {
            t: 0.0,
            onset: 0.0,
            verdict: end.clone(),
            findings: Vec::new(),
            resolved: false,
        });
        let mut v = main.verdict;
        let fault = !v.id.is_no_fault();
        // what is no fault is the answer as it stands at the end, with the numbers of the end
        if !fault && (v.id, v.health) == (end.id, end.health) {
            v = end.clone();
        } else if !fault && end.health == Health::Suspect {
            // the recording ends before the limit: the last answer holds, its words do not
            v.sentence = format!("suspected, not proven until the end: {}", end.sentence);
            v.ruled_out.clone_from(&end.ruled_out);
            v.considered.clone_from(&end.considered);
        }
        let mut findings = main.findings;
        for other in self.faults.iter().filter(|h| h.verdict.id != v.id) {
            findings.extend(other.findings.iter().cloned());
        }
        let mut action = remedy::action(&v);
        if let Some((wait, took)) = self.longest_wait(last).filter(|_| !fault) {
            findings.push(waited(wait, took));
            // a job that is seen to advance, and a step that the program announced, need
            // no advice
            let advances = wait.verdict == VerdictId::CompileWarmup
                && v.id == VerdictId::Healthy
                && end.phase == Phase::Sampling;
            let explained = advances || wait.verdict == VerdictId::CpuPhase;
            // nothing waits after the end
            let over = end.health == Health::Finished;
            if action.id == ActionId::None && !explained && !over {
                action.id = ActionId::Wait;
                LONG_WAIT.clone_into(&mut action.why);
            }
        }
        from_start(&mut self.history);
        action.why = sentence_case(action.why, v.cause.is_some());
        let written = v.cause.as_deref().is_some_and(has_own_sentence);
        Report {
            schema: SCHEMA,
            program: env!("CARGO_PKG_VERSION"),
            source,
            path: String::new(),
            verdict: v.id,
            health: v.health,
            severity: v.id.severity(),
            confidence: Some(v.confidence),
            phase: v.phase,
            section: v.section,
            action,
            sentence: sentence_case(v.sentence, written),
            cause: v.cause.map(|c| *c),
            onset_s: fault.then_some(main.onset),
            detected_at_s: fault.then_some(main.t),
            ended: None,
            findings,
            questions: v.questions.map(|q| in_recording(*q, names)),
            ruled_out: v.ruled_out,
            considered: v.considered,
            history: self.history,
            suspicions: self.suspicions,
            find: None,
            last_words: Vec::new(),
            read: Vec::new(),
            workload: Workload::default(),
            notes: notes.into_list(),
            stats: Stats::default(),
        }
    }
}

impl Held {
    /// The same verdict once more: what it rests on grows, when it began stays.
    fn more(&mut self, later: Self) {
        self.resolved = later.resolved;
        let first = self.verdict.phase == later.verdict.phase;
        for finding in later.findings {
            let known = |f: &Found| (f.verdict, &f.text) == (finding.verdict, &finding.text);
            if self.findings.len() < MOST_FINDINGS && !self.findings.iter().any(known) {
                self.findings.push(finding);
            }
        }
        if first && later.verdict.remedy.is_some() {
            self.verdict.remedy = later.verdict.remedy;
        }
        if first && self.verdict.considered.len() <= later.verdict.considered.len() {
            self.verdict.considered = later.verdict.considered;
        }
    }
}

/// The order of several faults: the first is the answer.
pub(super) fn place(id: VerdictId) -> Reverse<(Severity, Depth)> {
    Reverse((id.severity(), id.definition().depth))
}

/// Whether the sentence is that of the cause: those begin with a capital or with a name.
fn has_own_sentence(cause: &Cause) -> bool {
    let known = catalogue().causes().iter().find(|c| c.id == cause.id);
    known.is_some_and(|c| c.sentence.is_some())
}

fn waited(wait: &Change, took: f64) -> Found {
    Found {
        verdict: wait.verdict,
        text: format!(
            "from {:.0} s on for {took:.0} s in {}: {}",
            wait.t_s,
            wait.phase,
            wait.verdict.definition().wait.unwrap_or("it waited")
        ),
        count: 1,
        cites: Vec::new(),
    }
}

/// Something is shown from the first moment on.
fn from_start(history: &mut Vec<Change>) {
    let Some(first) = history.first_mut().filter(|c| c.t_s > 0.0) else {
        return;
    };
    if first.verdict.severity() == Severity::Info && first.health != Health::Finished {
        // nothing else was there before it was first told
        first.t_s = 0.0;
    } else {
        let change = Change {
            t_s: 0.0,
            verdict: VerdictId::Healthy,
            health: Health::Starting,
            phase: Phase::Startup,
            sentence: "the program starts".to_owned(),
        };
        history.insert(0, change);
    }
}

fn found(verdict: &Verdict, names: &impl Names) -> Vec<Found> {
    let all = verdict.findings.iter().map(|f| {
        let mut cites: Vec<Cited> = f.cites.iter().map(|c| names.cited(c)).collect();
        // the same line may be the first and the last of its kind
        cites.dedup();
        Found {
            verdict: f.verdict,
            text: f.text.clone(),
            count: f.count,
            cites,
        }
    });
    all.take(MOST_FINDINGS).collect()
}

/// The answers with their times in seconds of the recording.
fn in_recording(mut questions: Questions, names: &impl Names) -> Questions {
    for answered in [&mut questions.job, &mut questions.moves] {
        let since = answered.since_s.map(Duration::try_from_secs_f64);
        answered.since_s = match since {
            Some(Ok(since)) => Some(round(names.seconds(Mono::ZERO + since).max(0.0))),
            _ => None,
        };
    }
    questions
}

/// To milliseconds.
pub(super) fn round(t: f64) -> f64 {
    (t * 1000.0).round() / 1000.0
}
