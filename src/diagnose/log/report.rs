//! The report about a text.

use crate::model::{Cite, CiteKind, ExitStatus, Mono, Verdict, VerdictId};
use crate::workload::lines::MAX_TEXT;

use super::judge::not_asked;
use super::reader::Reader;
use crate::diagnose::case;
use crate::diagnose::meta::Meta;
use crate::diagnose::notes::Notes;
use crate::diagnose::report::{Cited, Report, SourceKind, Stats};
use crate::diagnose::story::{Names, Story};

impl Reader {
    pub(super) fn report(
        mut self,
        name: &str,
        mut notes: Notes,
        meta: &Meta,
        exit: Option<ExitStatus>,
    ) -> Report {
        let before = self.tail.clone();
        let ends = exit.is_some() || self.ended.is_some();
        let mut fault = self.judge(exit).or_else(|| self.silent_end());
        fault = fault.or_else(|| self.on_the_processor());
        if let Some(stood) = self.stood(fault.as_ref()) {
            self.earlier.extend(fault.replace(stood));
        } else if let Some(ended) = fault.as_mut().filter(|f| f.id == VerdictId::Killed) {
            self.explain_interrupt(ended, &before);
        }
        let fault = fault.map(not_asked);
        let names = InLog { name };
        let same = |v: &Verdict| fault.as_ref().is_some_and(|f| f.id == v.id);
        let mut earlier = std::mem::take(&mut self.earlier);
        earlier.retain(|v| !same(v));
        let told = fault.is_some() || !earlier.is_empty();
        if self.cut > 0 {
            notes.say(format!(
                "{} longer than {} KiB: the middle is cut and not judged",
                if self.cut == 1 {
                    "one line is".to_owned()
                } else {
                    format!("{} lines are", self.cut)
                },
                MAX_TEXT / 1024
            ));
        }
        notes.say(
            "text without readings: no reading of the card was judged; silence shows only where the lines have times, and slowness does not",
        );
        if !ends && fault.is_none() {
            notes.say("whether and how the program ended is not known");
        }
        let end = fault.unwrap_or_else(|| self.nothing(&before));
        let mut story = Story::default();
        for verdict in earlier.into_iter().map(not_asked) {
            story.tell(0.0, &verdict, &names);
        }
        story.tell(0.0, &end, &names);
        let mut report = story.report(SourceKind::Log, (&end, 0.0), &names, notes);
        report.history.clear();
        (report.onset_s, report.detected_at_s) = (None, None);
        report.confidence = report.confidence.filter(|_| told);
        name.clone_into(&mut report.path);
        report.find.clone_from(&self.tail.find);
        report.last_words = self.tail.words();
        report.read = self.paste.parts(self.adapter.kind().as_str());
        report.workload = case::workload(meta, self.adapter.kind());
        report.stats = Stats {
            lines: self.tail.lines,
            rows: 0,
            kernel_lines: self.kernel_lines,
            dropped: 0,
            duration_s: None,
        };
        report
    }
}

struct InLog<'a> {
    name: &'a str,
}

impl Names for InLog<'_> {
    fn cited(&self, cite: &Cite) -> Cited {
        let of_text = matches!(cite.kind, CiteKind::Console | CiteKind::Kernel);
        Cited {
            kind: cite.kind,
            file: of_text.then(|| self.name.to_owned()),
            line: cite.line,
            t_s: None,
            text: cite.text.clone(),
        }
    }

    fn seconds(&self, _at: Mono) -> f64 {
        0.0
    }
}
