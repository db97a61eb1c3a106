//! The record of a run, or a bundle made of it, judged anew by today's rules.

use std::path::Path;

use crate::model::event::RunStarted;
use crate::model::{Cite, CiteKind, Envelope, Event, Health, Mono, Verdict, gap_words};
use crate::record::reader::Events;
use crate::record::store::PLAIN_EVENTS;
use crate::record::{ReadError, Warning, bundle};
use crate::run::ticks::Ticks;
use crate::run::{RunState, rejudge};

use super::input::InputError;
use super::notes::Notes;
use super::report::{Cited, Report, SourceKind, Stats, Workload};
use super::story::{Names, Story, place, round};
use super::tail::Tail;

/// The record goes on for this long, so that its last words are judged.
const SETTLE_MS: [u64; 3] = [500, 1000, 1500];

/// Judges a run's folder, or its stream as a file.
pub(super) fn judge(path: &Path) -> Result<Report, InputError> {
    let mut events = Events::open(path)?;
    let read = read(path, &mut || match events.next()? {
        Some((envelope, _)) => Ok(Some(envelope)),
        None => events.require_any().map(|()| None),
    })?;
    Ok(read.report(
        SourceKind::Record,
        events.warnings(),
        events.more_warnings(),
    ))
}

/// Judges a bundle.
pub(super) fn bundled(path: &Path) -> Result<Report, InputError> {
    let record = bundle::open(path)?.into_record();
    let mut envelopes = record.envelopes.into_iter();
    let mut read = read(path, &mut || Ok(envelopes.next()))?;
    read.notes
        .say("a bundle is redacted: private texts in it are placeholders");
    Ok(read.report(SourceKind::Bundle, &record.warnings, record.more_warnings))
}

/// Judges the stream that `next` gives, to its end.
fn read(
    path: &Path,
    next: &mut dyn FnMut() -> Result<Option<Envelope>, ReadError>,
) -> Result<Play, InputError> {
    let mut notes = Notes::default();
    let mut lost = 0_u64;
    let (head, started) = loop {
        let Some(envelope) = next()? else {
            return Err(InputError::NoHead {
                path: path.to_owned(),
            });
        };
        match &envelope.event {
            Event::RunStarted(head) => {
                let started = (**head).clone();
                break (envelope, started);
            }
            _ => lost += 1,
        }
    };
    if lost > 0 {
        notes.say(format!(
            "{lost} events before run_started, which holds the plan, are left out"
        ));
    }
    let mut play = Play {
        floods: (0, 0, Mono::ZERO, Mono::ZERO),
        path: path.display().to_string(),
        state: RunState::new(&started),
        started,
        notes,
        story: Story::default(),
        tail: Tail::default(),
        stats: Stats::default(),
        last: (0, Mono::ZERO),
        then: Vec::new(),
        ended: None,
    };
    let mut ticks = Ticks::default();
    ticks.before(&head);
    while let Some(envelope) = next()? {
        for tick in ticks.before(&envelope) {
            play.envelope(&tick);
        }
        play.last = (envelope.seq, play.last.1.max(envelope.at));
        play.envelope(&envelope);
    }
    Ok(play)
}

struct Play {
    path: String,
    started: RunStarted,
    state: RunState,
    notes: Notes,
    story: Story,
    tail: Tail,
    stats: Stats,
    /// Floods: lines, those that are lost, first and last time.
    floods: (u64, u64, Mono, Mono),
    /// Number and time of the last event.
    last: (u64, Mono),
    /// Faults that were told when it ran, the first of each verdict.
    then: Vec<Verdict>,
    /// How the run ended.
    ended: Option<String>,
}

impl Play {
    fn envelope(&mut self, env: &Envelope) {
        match &env.event {
            Event::Verdict(v) if self.is_news(v) => self.then.push((**v).clone()),
            Event::Sample(_) => self.stats.rows += 1,
            Event::Kernel { .. } => self.stats.kernel_lines += 1,
            Event::Flood(flood) => {
                let (lines, lost, from, to) = &mut self.floods;
                if *lines == 0 {
                    *from = env.at;
                }
                *to = env.at;
                *lines = lines.saturating_add(flood.lines);
                *lost = lost.saturating_add(flood.lost());
            }
            Event::Dropped { n, .. } => self.stats.dropped = self.stats.dropped.saturating_add(*n),
            Event::RunFinished {
                summary, exit_code, ..
            } => self.ended = Some(format!("{summary} (exit code {exit_code})")),
            _ => {}
        }
        self.tail.observe(&env.event);
        for verdict in rejudge(&mut self.state, env) {
            self.story
                .tell(InRecord.seconds(env.at), &verdict, &InRecord);
        }
        self.story.refine(self.state.verdict(), &InRecord);
    }

    /// Whether it is a fault that was told when it ran, for the first time.
    fn is_news(&self, v: &Verdict) -> bool {
        let known = self.then.iter().any(|told| told.id == v.id);
        !known && !v.id.is_no_fault() && v.health != Health::Suspect
    }

    fn report(mut self, source: SourceKind, warnings: &[Warning], more: u64) -> Report {
        let (seq, at) = self.last;
        for (n, after) in SETTLE_MS.into_iter().enumerate() {
            self.envelope(&Envelope {
                seq: seq + 1 + n as u64,
                at: Mono(at.0.saturating_add(after)),
                from: None,
                event: Event::Tick,
            });
        }
        self.tell_gaps(warnings, more);
        let mut end = self.state.verdict().clone();
        end.phase = self.state.phase();
        let last = InRecord.seconds(at);
        let mut report = self
            .story
            .report(source, (&end, last), &InRecord, self.notes);
        if report.verdict.is_no_fault() && report.health != Health::Finished {
            report.phase = end.phase;
        }
        // of several the one that would be the answer today
        let key = |v: &&Verdict| place(v.id);
        let known = self.then.iter().any(|v| v.id == report.verdict);
        if let Some(then) = self.then.iter().min_by_key(key).filter(|_| !known) {
            report.notes.push(format!(
                "when it ran, it was judged as {}: {}",
                then.id, then.sentence
            ));
        }
        report.path = self.path;
        report.ended = self.ended;
        report.last_words = self.tail.words();
        report.find = self.tail.find;
        report.workload = Workload {
            adapter: self.started.adapter,
            argv: self.started.argv,
            gpu: self.started.gpu.map(|g| g.0),
            arch: None,
            watch: self.started.attached.map(|a| a.pid),
        };
        report.stats = Stats {
            lines: self.tail.lines,
            duration_s: Some(last),
            ..self.stats
        };
        report
    }

    fn tell_gaps(&mut self, warnings: &[Warning], more: u64) {
        for warning in warnings {
            self.notes.say(format!("the record: {warning}"));
        }
        if more > 0 {
            self.notes
                .say(format!("the record: {more} further warnings"));
        }
        let (lines, lost, from, to) = self.floods;
        if lines > 0 {
            let (from, to) = (from.clock(), to.clock());
            self.notes.say(format!(
                "a flood of lines from {from} to {to} was not judged line by line: {}",
                gap_words(lines, lost)
            ));
        }
        if self.stats.dropped > 0 {
            self.notes.say(format!(
                "{} events were dropped when it was recorded",
                self.stats.dropped
            ));
        }
        if self.ended.is_none() {
            self.notes
                .say("the record has no end: the run still goes on, or its supervisor was killed");
        }
    }
}

struct InRecord;

impl Names for InRecord {
    fn cited(&self, cite: &Cite) -> Cited {
        // the stream has one event a line, and counts them
        let (file, line) = match (cite.kind, cite.line) {
            (CiteKind::Console, Some(line)) => ("console", line),
            _ => (PLAIN_EVENTS, cite.seq),
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
