//! The order in which things happened.

use std::fmt::Write;

use framepack_tui::model::{Event, Verdict, VerdictId};

use super::run::Heard;

/// Reads a stream forwards: each step is looked for after the one before it.
pub(crate) struct Story<'a> {
    events: &'a [Heard],
    at: usize,
}

impl<'a> Story<'a> {
    /// From the beginning.
    pub(crate) const fn new(events: &'a [Heard]) -> Self {
        Self { events, at: 0 }
    }

    /// The next event that `pick` maps to something; fails when there is none.
    pub(crate) fn next<T>(
        &mut self,
        what: &str,
        pick: impl Fn(&Event) -> Option<T>,
    ) -> (&'a Heard, T) {
        let rest = &self.events[self.at..];
        let found = rest
            .iter()
            .enumerate()
            .find_map(|(i, h)| pick(&h.envelope.event).map(|t| (i, h, t)));
        let Some((i, heard, picked)) = found else {
            let after = self
                .at
                .checked_sub(1)
                .map(|i| &self.events[i].envelope.event);
            panic!(
                "no {what} after {}{}",
                after.map_or("the beginning".into(), brief),
                digest(self.events)
            );
        };
        self.at += i + 1;
        (heard, picked)
    }

    /// The next event for which `is_it` holds.
    pub(crate) fn then(&mut self, what: &str, is_it: impl Fn(&Event) -> bool) -> &'a Heard {
        self.next(what, |e| is_it(e).then_some(())).0
    }

    /// The next judgement of this kind.
    pub(crate) fn verdict(&mut self, id: VerdictId) -> (&'a Heard, Verdict) {
        self.next(&format!("verdict {id}"), |e| match e {
            Event::Verdict(v) if v.id == id => Some(Verdict::clone(v)),
            _ => None,
        })
    }
}

/// The stream without samples, ticks and console lines: what a person needs to see
/// why an assertion failed.
pub(crate) fn digest(events: &[Heard]) -> String {
    let mut text = String::from("\nthe stream, in short:\n");
    let mut lines = Vec::new();
    for heard in events {
        if let Event::Line(line) = &heard.envelope.event {
            lines.push(&line.text);
        }
        let short = brief(&heard.envelope.event);
        if !short.is_empty() {
            let (seq, at) = (heard.envelope.seq, heard.envelope.at.clock());
            // Writing to a string cannot fail.
            let _written = writeln!(text, "  {seq:>6} {at} {short}");
        }
    }
    text.push_str("last lines of the console:\n");
    for line in lines.iter().skip(lines.len().saturating_sub(12)) {
        let _written = writeln!(text, "  | {line}");
    }
    text
}

/// One event in a line; empty for the frequent ones.
fn brief(event: &Event) -> String {
    match event {
        Event::Sample(_) | Event::Line(_) | Event::Tick | Event::Progress(_) => String::new(),
        Event::Verdict(v) => format!(
            "verdict {} {} in {}, onset {}: {}",
            v.id,
            v.health.word(),
            v.phase,
            v.onset.clock(),
            v.sentence
        ),
        other => {
            let mut text = format!("{other:?}");
            if let Some((cut, _)) = text.char_indices().nth(300) {
                text.truncate(cut);
            }
            text
        }
    }
}
