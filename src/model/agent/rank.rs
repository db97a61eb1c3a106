//! Whose word counts: while the agent of the process that generates tells phases, guesses
//! from the console do not.

use crate::model::event::{Envelope, Event, Speaker};
use crate::model::vocab::Phase;

use super::AgentWord;

/// What the process that counts has told of so far in an attempt.
#[derive(Debug, Clone, Default)]
pub struct AgentRank {
    main: Option<u32>,
    phase: Option<Phase>,
    progress: bool,
    job: bool,
}

impl AgentRank {
    /// Folds one event in.
    pub fn observe(&mut self, env: &Envelope) {
        let by_agent = env.from == Some(Speaker::Agent);
        match &env.event {
            Event::AttemptStarted(_) => *self = Self::default(),
            Event::Agent(note) => match note.word {
                AgentWord::Main => {
                    *self = Self {
                        main: Some(note.pid),
                        ..Self::default()
                    };
                }
                AgentWord::Ended | AgentWord::Lost if self.main == Some(note.pid) => {
                    *self = Self::default();
                }
                _ => {}
            },
            Event::Phase(p) if by_agent => self.phase = Some(p.phase),
            Event::Progress(_) if by_agent => self.progress = true,
            Event::Job(_) if by_agent => self.job = true,
            _ => {}
        }
    }

    /// The process that counts.
    pub const fn main(&self) -> Option<u32> {
        self.main
    }

    /// Whether this is a guess from the console about what the agent itself tells. What the
    /// console knows more of the agent's own phase (section, a step on the CPU) is none.
    pub fn outranks(&self, env: &Envelope) -> bool {
        if env.from.is_some() || self.main.is_none() {
            return false;
        }
        let Some(phase) = self.phase else {
            return false;
        };
        match &env.event {
            Event::Phase(p) => {
                let more = p.section.is_some() || p.on_cpu;
                !(more && p.phase == phase)
            }
            Event::Progress(_) => self.progress,
            Event::Job(_) => self.job,
            _ => false,
        }
    }
}
