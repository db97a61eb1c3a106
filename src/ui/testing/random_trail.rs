//! What a diagnosis shows, at random.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::Dice;
use crate::model::{
    ActionId, Cite, CiteKind, Considered, ExitStatus, Finding, Health, Mono, Remedy, RuleState,
    Signal, VerdictId,
};
use crate::run::snapshot::{Lack, Lapse, Mark, MarkKind, Quantity, Raised, ShownState, Trail};
use crate::ui::testing::base::evidence;

impl Dice {
    pub(super) fn finding(&mut self) -> Finding {
        let cite = |d: &mut Self| Cite {
            seq: d.int(),
            at: d.mono(),
            kind: d.pick(&[
                CiteKind::Console,
                CiteKind::Kernel,
                CiteKind::Event,
                CiteKind::Telemetry,
            ]),
            line: d.some(Self::int),
            text: d.text(),
        };
        Finding {
            verdict: self.pick(VerdictId::ALL),
            text: self.text(),
            seqs: self.list(4, Self::int),
            cites: self.list(4, cite),
            count: self.int(),
        }
    }

    pub(super) fn considered(&mut self) -> Considered {
        Considered {
            verdict: self.pick(VerdictId::ALL),
            state: self.pick(&[RuleState::Clear, RuleState::NotYet, RuleState::Match]),
            why: self.text(),
        }
    }

    pub(super) fn remedy(&mut self) -> Remedy {
        Remedy {
            action: self.pick(ActionId::ALL),
            tier: self.pick(&[0, 4, u8::MAX]),
            auto_restart: self.below(2) == 0,
            env: BTreeMap::new(),
            why: self.text(),
        }
    }

    fn time_span(&mut self) -> Duration {
        Duration::from_millis(self.int())
    }

    fn mark(&mut self) -> Mark {
        let kind = match self.below(13) {
            0 => MarkKind::Attempt { number: u32::MAX },
            1 => MarkKind::LastLine,
            2 => MarkKind::Health {
                health: self.pick(&[Health::Healthy, Health::Hung, Health::Suspect]),
                verdict: self.pick(VerdictId::ALL),
                after: self.time_span(),
            },
            3 => MarkKind::Kernel { words: self.text() },
            4 => MarkKind::JobFailed,
            5 => MarkKind::Evidence(evidence(1, 1)),
            6 => MarkKind::Signal {
                signal: self.pick(&[Signal::Int, Signal::Term, Signal::Kill]),
                reached: u32::MAX,
            },
            7 => MarkKind::Exit {
                status: self.pick(&[ExitStatus::Code(i32::MIN), ExitStatus::Unknown]),
            },
            8 => MarkKind::Vram {
                used: self.some(Self::bytes),
                took: self.time_span(),
                complete: self.below(2) == 0,
            },
            9 => MarkKind::Held,
            10 => MarkKind::Resumed,
            11 => MarkKind::Wait,
            _ => MarkKind::FalseAlarm,
        };
        Mark {
            at: self.mono(),
            kind,
        }
    }

    fn lapse(&mut self) -> Lapse {
        let failed = Lack::Failed { why: self.text() };
        Lapse {
            what: self.pick(&Quantity::ALL),
            from: self.mono(),
            to: self.some(Self::mono),
            since: self.mono(),
            lack: self.pick(&[Lack::Absent, Lack::Stale, failed]),
        }
    }

    pub(super) fn trail(&mut self) -> Trail {
        let states = self.list(9, |d| ShownState {
            at: d.mono(),
            verdict: Arc::new(d.verdict()),
        });
        Trail {
            states: Arc::new(states.into()),
            marks: Arc::new(self.list(40, Self::mark).into()),
            output: Arc::new(VecDeque::<Mono>::from(self.list(90, Self::mono))),
            lapses: Arc::new(self.list(9, Self::lapse).into()),
            why_rung: self.some(Self::text),
            raised: self.list(4, |d| Raised {
                at: d.mono(),
                verdict: d.pick(VerdictId::ALL),
                limit: d.some(|d| (d.time_span(), d.time_span())),
            }),
        }
    }
}
