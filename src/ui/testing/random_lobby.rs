//! Random lobbies.

use super::Dice;
use crate::model::{CardMemory, FoundProcess, GpuId, Outcome};
use crate::profile::{Condition, Fit, Holds, Owner, ShelfEntry};
use crate::ui::lobby::{Lobby, RunLine, RunState};

impl Dice {
    fn many<T>(&mut self, f: impl Fn(&mut Self) -> T) -> Vec<T> {
        let n = self.pick(&[0, 1, 2, 5, 40]);
        (0..n).map(|_| f(self)).collect()
    }

    fn short(&mut self) -> u32 {
        u32::try_from(self.below(5)).unwrap()
    }

    /// Any lobby.
    pub(in crate::ui) fn lobby(&mut self) -> Lobby {
        let s = self.snapshot();
        let gpus = s.gpus.clone();
        Lobby {
            found: self.some(|d| {
                d.many(|d| d.found(&gpus.iter().map(|g| g.id.clone()).collect::<Vec<_>>()))
            }),
            runs: self.some(|d| d.many(Self::run_line)),
            runs_at: self.text(),
            runs_trouble: self.some(Self::text),
            profiles: self.many(Self::shelf_entry),
            gpus: s.gpus,
            host: s.host,
            sources: s.sources,
        }
    }

    fn found(&mut self, gpus: &[GpuId]) -> FoundProcess {
        FoundProcess {
            pid: self.pick(&[0, 1, 41, u32::MAX]),
            start: self.int(),
            kind: self.some(Self::text),
            name: self.text(),
            argv: self.many(Self::text),
            memory: self.many(|d| CardMemory {
                gpu: gpus.first().cloned().unwrap_or(GpuId(String::new())),
                vram: d.some(Self::bytes),
                gtt: d.some(Self::bytes),
            }),
            hidden: self.some(Self::text),
            cpu_percent: self.some(Self::real),
            age_ms: self.some(Self::int),
            others: self.short(),
            supervisor: self.some(Self::short),
        }
    }

    fn run_line(&mut self) -> RunLine {
        let why = self.text();
        RunLine {
            id: self.text(),
            began: self.some(Self::text),
            state: self.pick(&[
                RunState::Running,
                RunState::Ended {
                    outcome: Outcome::Finished { restarts: 1 },
                    exit_code: 10,
                },
                RunState::Ended {
                    outcome: Outcome::Unkillable { pids: Vec::new() },
                    exit_code: 255,
                },
                RunState::Broken { why },
            ]),
            argv: self.many(Self::text),
            supervisor: self.some(Self::short),
        }
    }

    fn shelf_entry(&mut self) -> ShelfEntry {
        ShelfEntry {
            id: self.text(),
            title: self.some(Self::text),
            description: self.some(Self::text),
            version: self.some(Self::text),
            owner: Owner::User,
            path: self.text(),
            extends: self.some(Self::text),
            fit: self.pick(&[Fit::Best, Fit::Fits, Fit::Other]),
            why: self.some(Self::text),
            conditions: self.many(|d| Condition {
                what: "maker",
                wanted: d.text(),
                have: d.some(Self::text),
                holds: d.pick(&[Holds::Yes, Holds::No, Holds::Unknown]),
            }),
            problems: self.many(Self::text),
            broken: self.some(Self::text),
            profile: None,
        }
    }
}
