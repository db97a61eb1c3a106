//! What the program says: its lines, and marks that are read from them.

use crate::model::{Backend, Cite, CiteKind, FindMark, Line, Mono, VerdictId};

use super::Context;
use crate::detect::facts::OpenFind;
use crate::detect::signature::{self, Hint, Reported};

/// Lines after which an error that nothing followed from is no failure of the job.
const LONG_AFTER: u32 = 25;

impl Context {
    pub(super) fn observe_words(
        &mut self,
        now: Mono,
        seq: u64,
        line: &Line,
        error: Option<Reported>,
    ) {
        let text = line.text.as_str();
        self.same_words_again(now, seq, line);
        let mut error = error;
        if !line.bar && !line.chatter {
            let cite = line_cite(now, seq, line);
            let words = self.frames.dedent(text);
            let reports = |start| signature::reports(words, start);
            self.evidence.observe(words, &cite, reports);
            error = signature::with_decided(words, error, self.evidence.decided(words));
        }
        let said = self.frames.refine(text, error);
        let reported = self.of_our_card(text, said);
        match reported {
            Some(r) => {
                if r.verdict == VerdictId::NanOutput && self.errors.spoilt().is_none() {
                    self.spoilt_in = Some((self.phase, self.section));
                }
                self.errors.note(r, line_cite(now, seq, line));
            }
            None if !signature::is_request(text) => self.errors.plain_line(),
            None => {}
        }
        let ends = self.frames.line(text);
        if !line.bar {
            self.frame_phases.observe(seq, text, ends);
        }
        if ends {
            self.errors.exception(now, reported.is_some());
            let cite = line_cite(now, seq, line);
            self.chain.exception(&cite);
            self.printed = Some(cite);
        } else if !line.bar {
            self.chain.line(|| line_cite(now, seq, line), text);
            self.observe_level(now, seq, line);
        }
        match signature::hint(text) {
            Some(Hint::KeptOnCard) => self.kept_on_card = Some(line_cite(now, seq, line)),
            Some(Hint::TakenOff) => self.kept_on_card = None,
            Some(Hint::CpuOnly) => self.runs_on_cpu(now, seq, line),
            Some(Hint::PartOnCpu) => {
                self.part_on_cpu
                    .get_or_insert_with(|| line_cite(now, seq, line));
            }
            None => {}
        }
        // a release without code for cards computes on the processor by its user's choice
        let for_cards = self.evidence.facts().is_card_build();
        if for_cards && Backend::of_line(text) == Some(Backend::Cpu) {
            self.runs_on_cpu(now, seq, line);
        }
    }

    fn runs_on_cpu(&mut self, now: Mono, seq: u64, line: &Line) {
        self.cpu_only
            .get_or_insert_with(|| line_cite(now, seq, line));
    }

    /// A program without tracebacks tells of its failure by the level of a line.
    fn observe_level(&mut self, now: Mono, seq: u64, line: &Line) {
        if signature::is_result(&line.text) {
            self.delivered = true;
            self.level_error = None;
        } else if signature::is_error(&line.text) {
            if self.delivered {
                // updates, statistics, thumbnails: no error of the job, whose result is there
                return;
            }
            // the first of several is the cause
            self.level_error
                .get_or_insert_with(|| (line_cite(now, seq, line), 0));
        } else if signature::is_success(&line.text) {
            self.level_error = None;
        } else if let Some((_, after)) = &mut self.level_error {
            *after += 1;
            if *after > LONG_AFTER {
                self.level_error = None;
            }
        }
    }

    /// The line by whose level the program told of a failure, where it has no other words.
    pub(in crate::detect) fn level_error(&self) -> Option<&Cite> {
        self.level_error.as_ref().map(|(cite, _)| cite)
    }

    /// The line in which the program itself says what was heard from its agent before.
    fn same_words_again(&mut self, now: Mono, seq: u64, line: &Line) {
        let heard = self.exception.as_mut().filter(|cite| cite.line.is_none());
        if let Some(cite) = heard.filter(|cite| line.text.contains(&cite.text)) {
            *cite = line_cite(now, seq, line);
        }
    }

    /// A lack of memory is one of the GTT where the card has that for its memory.
    pub(super) fn of_our_card(&self, text: &str, said: Option<Reported>) -> Option<Reported> {
        match said {
            Some(r) if r.verdict == VerdictId::GpuOom && self.cards.runs_out_of_gtt(text) => {
                Some(Reported {
                    verdict: VerdictId::GttExhausted,
                    rank: r.rank,
                })
            }
            other => other,
        }
    }

    pub(super) fn observe_find(&mut self, now: Mono, seq: u64, mark: &FindMark) {
        // a mark is read from the line before it
        let cite = self
            .last_line
            .clone()
            .unwrap_or_else(|| event_cite(now, seq, ""));
        if let FindMark::Release(told) = mark {
            self.release.learn(*told);
        }
        OpenFind::fold(&mut self.find, now, cite, mark);
    }

    /// Words of the program: the last line, where it has them.
    pub(super) fn said(&self, at: Mono, seq: u64, text: &str) -> Cite {
        match &self.last_line {
            Some(line) if line.text.contains(text) => line.clone(),
            _ => Cite {
                kind: CiteKind::Console,
                ..event_cite(at, seq, text)
            },
        }
    }

    /// Whether the program's last words announce that a model is moved to the card or off it.
    pub(in crate::detect) fn last_words_move_a_model(&self) -> bool {
        let last = self.last_line.as_ref();
        last.is_some_and(|l| signature::announces_a_move(&l.text))
    }
}

pub(super) fn line_cite(at: Mono, seq: u64, line: &Line) -> Cite {
    Cite {
        kind: CiteKind::Console,
        line: Some(line.row).filter(|row| *row != 0),
        ..event_cite(at, seq, &line.text)
    }
}

pub(super) fn event_cite(at: Mono, seq: u64, text: &str) -> Cite {
    Cite {
        seq,
        at,
        kind: CiteKind::Event,
        line: None,
        text: text.chars().take(Cite::MOST).collect(),
    }
}
