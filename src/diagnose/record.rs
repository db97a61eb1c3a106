//! The record of a run, judged anew by today's rules.

use std::path::Path;

use crate::model::{Cite, CiteKind, Envelope, Event, Health, Mono, Verdict};
use crate::record::Record;
use crate::record::store::EVENTS;
use crate::run::{RunState, rejudge};

use super::input::InputError;
use super::notes::Notes;
use super::report::{Cited, Report, SourceKind, Stats, Workload};
use super::story::{Names, Story, round};
use super::tail::Tail;

/// The record goes on for this long, so that its last words are judged.
const SETTLE_MS: [u64; 3] = [500, 1000, 1500];

/// Judges a run's folder, or its stream as a file.
pub(super) fn judge(path: &Path) -> Result<Report, InputError> {
    let record = Record::open(path)?;
    of(&record, path, SourceKind::Record)
}

/// Judges a record.
pub(super) fn of(record: &Record, path: &Path, source: SourceKind) -> Result<Report, InputError> {
    let started = record.envelopes.iter().find_map(|e| match &e.event {
        Event::RunStarted(head) => Some(head),
        _ => None,
    });
    let Some(started) = started else {
        return Err(InputError::NoHead {
            path: path.to_owned(),
        });
    };
    let mut notes = Notes::default();
    for warning in &record.warnings {
        let line = warning.line.map_or_else(String::new, |l| format!(":{l}"));
        notes.say(format!("{EVENTS}{line}: {}", warning.text));
    }
    if record.more_warnings > 0 {
        notes.say(format!(
            "{EVENTS}: {} further warnings",
            record.more_warnings
        ));
    }
    let mut play = Play {
        state: RunState::new(started),
        story: Story::default(),
        tail: Tail::default(),
        stats: Stats::default(),
        then: None,
        over: false,
    };
    for env in &record.envelopes {
        play.envelope(env);
    }
    let last = record.envelopes.last();
    let (seq, at) = last.map_or((0, Mono::ZERO), |e| (e.seq, e.at));
    for (n, after) in SETTLE_MS.into_iter().enumerate() {
        play.envelope(&Envelope {
            seq: seq + 1 + n as u64,
            at: Mono(at.0.saturating_add(after)),
            event: Event::Tick,
        });
    }
    if !play.over {
        notes.say("the record has no end: the run still goes on, or its supervisor was killed");
    }
    let then = play.then.take();
    let mut end = play.state.verdict().clone();
    end.phase = play.state.phase();
    let mut report = play
        .story
        .report(source, (&end, InRecord.seconds(at)), &InRecord, notes);
    if report.verdict.is_no_fault() && report.health != Health::Finished {
        report.phase = end.phase;
    }
    if let Some(then) = then.filter(|v| v.id != report.verdict) {
        report.notes.push(format!(
            "when it ran, it was judged as {}: {}",
            then.id, then.sentence
        ));
    }
    report.path = path.display().to_string();
    report.find.clone_from(&play.tail.find);
    report.last_words = play.tail.words();
    report.workload = Workload {
        adapter: started.adapter.clone(),
        argv: started.argv.clone(),
        gpu: started.gpu.as_ref().map(|g| g.0.clone()),
        arch: None,
    };
    report.stats = Stats {
        lines: play.tail.lines,
        duration_s: Some(InRecord.seconds(at)),
        ..play.stats
    };
    Ok(report)
}

struct Play {
    state: RunState,
    story: Story,
    tail: Tail,
    stats: Stats,
    /// The fault that was told when it ran.
    then: Option<Box<Verdict>>,
    over: bool,
}

impl Play {
    fn envelope(&mut self, env: &Envelope) {
        match &env.event {
            Event::Verdict(v) if !v.id.is_no_fault() && v.health != Health::Suspect => {
                self.then.get_or_insert_with(|| v.clone());
            }
            Event::Sample(_) => self.stats.rows += 1,
            Event::Kernel { .. } => self.stats.kernel_lines += 1,
            Event::Dropped { n, .. } => self.stats.dropped = self.stats.dropped.saturating_add(*n),
            Event::RunFinished { .. } => self.over = true,
            _ => {}
        }
        self.tail.observe(&env.event);
        for verdict in rejudge(&mut self.state, env) {
            self.story
                .tell(InRecord.seconds(env.at), &verdict, &InRecord);
        }
        self.story.refine(self.state.verdict(), &InRecord);
    }
}

struct InRecord;

impl Names for InRecord {
    fn cited(&self, cite: &Cite) -> Cited {
        // the stream has one event a line, and counts them
        let (file, line) = match (cite.kind, cite.line) {
            (CiteKind::Console, Some(line)) => ("console", line),
            _ => (EVENTS, cite.seq),
        };
        Cited {
            kind: cite.kind,
            file: Some(file.to_owned()),
            line: Some(line),
            t_s: Some(self.seconds(cite.at)),
            text: cite.text.clone(),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "no run is that long")]
    fn seconds(&self, at: Mono) -> f64 {
        round(at.0 as f64 / 1000.0)
    }
}
