//! What the console said last: phase, job, open search, last words.

use std::collections::VecDeque;

use crate::model::{Event, FindMark, JobChange, Line, Phase, Progress};

use super::report::{OpenSearch, Words};

/// Lines that are kept.
const WORDS: usize = 8;
/// Characters of a line that are kept.
const WIDTH: usize = 300;

/// See the module.
#[derive(Debug, Clone)]
pub(super) struct Tail {
    words: VecDeque<Words>,
    /// The last of them is a bar, which the next state rewrites.
    bar: bool,
    row: Option<u64>,
    pub(super) lines: u64,
    pub(super) phase: Phase,
    pub(super) section: Option<u32>,
    pub(super) job: Option<JobChange>,
    pub(super) progress: Option<Progress>,
    pub(super) find: Option<OpenSearch>,
}

impl Default for Tail {
    fn default() -> Self {
        Self {
            words: VecDeque::with_capacity(WORDS),
            bar: false,
            row: None,
            lines: 0,
            phase: Phase::Unknown,
            section: None,
            job: None,
            progress: None,
            find: None,
        }
    }
}

impl Tail {
    /// Takes the next event, a line before what follows from it.
    pub(super) fn observe(&mut self, event: &Event) {
        match event {
            Event::Line(line) => self.line(line),
            Event::Phase(p) => {
                if (p.phase, p.section) != (self.phase, self.section) {
                    self.find = None;
                    self.progress = None;
                }
                (self.phase, self.section) = (p.phase, p.section);
            }
            Event::Progress(p) => {
                self.find = None;
                self.progress = Some(p.clone());
            }
            Event::Job(job) => {
                if matches!(job, JobChange::Started) {
                    self.find = None;
                }
                self.job = Some(job.clone());
            }
            Event::Find(mark) => self.find(mark),
            Event::AttemptStarted(_) => {
                *self = Self {
                    lines: self.lines,
                    ..Self::default()
                };
            }
            _ => {}
        }
    }

    /// The log of another program begins in the same text.
    pub(super) fn next_program(&mut self) {
        *self = Self {
            words: std::mem::take(&mut self.words),
            lines: self.lines,
            ..Self::default()
        };
    }

    /// The last lines, oldest first.
    pub(super) fn words(&self) -> Vec<Words> {
        self.words.iter().cloned().collect()
    }

    fn line(&mut self, line: &Line) {
        self.lines += 1;
        self.row = Some(line.row).filter(|r| *r != 0);
        if line.chatter {
            return;
        }
        let text: String = line.text.chars().take(WIDTH).collect();
        if text.trim().is_empty() {
            return;
        }
        let rewrites = self.bar && self.words.back().is_some_and(|w| w.line == self.row);
        if rewrites || self.words.len() == WORDS {
            if rewrites {
                self.words.pop_back();
            } else {
                self.words.pop_front();
            }
        }
        self.bar = line.bar;
        self.words.push_back(Words {
            line: self.row,
            text,
        });
    }

    fn find(&mut self, mark: &FindMark) {
        match mark {
            FindMark::Opened { key } => {
                self.find = Some(OpenSearch {
                    key: key.clone(),
                    line: self.row,
                    ..OpenSearch::default()
                });
            }
            FindMark::Closed { key } => {
                let this = |f: &OpenSearch| key.is_empty() || f.key == *key;
                if self.find.as_ref().is_some_and(this) {
                    self.find = None;
                }
            }
            FindMark::Solver { name } => {
                let find = self.find.get_or_insert_with(|| OpenSearch {
                    key: FindMark::UNNAMED.to_owned(),
                    ..OpenSearch::default()
                });
                find.solver = Some(name.clone());
                find.line = self.row;
            }
            FindMark::Advance { detail } => {
                if let Some(find) = &mut self.find {
                    find.detail = Some(detail.clone());
                    find.line = self.row;
                }
            }
            FindMark::Mode { .. }
            | FindMark::Convolution(_)
            | FindMark::Figures(_)
            | FindMark::Workspace(_)
            | FindMark::Release(_) => {}
        }
    }
}
