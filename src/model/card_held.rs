//! What an earlier run has left on the card that the next one wants.

use serde::{Deserialize, Serialize};

use super::gpu::GpuId;
use super::units::Bytes;

/// What still has the card after the supervisor of an earlier run has ended without a word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CardHeld {
    /// The card.
    pub gpu: GpuId,
    /// The earlier run, where the card's lock names it.
    pub run: Option<String>,
    /// The guardian of that run; it ends the run's processes by itself. Absent: it is gone too,
    /// and nobody ends them.
    pub guardian: Option<u32>,
    /// Processes of that run that hold memory of the card.
    pub processes: Vec<CardHolder>,
}

/// A process that an earlier run left on the card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CardHolder {
    /// Process.
    pub pid: u32,
    /// Name (`comm`).
    pub name: String,
    /// State letter.
    pub state: char,
    /// Memory of the card that it holds; absent where the kernel shows the process as a user of
    /// the card and not how much it holds.
    pub vram: Option<Bytes>,
}

impl CardHeld {
    /// What has the card, in one clause.
    pub fn holders(&self) -> String {
        let run = match &self.run {
            Some(run) => format!("run {run}"),
            None => "an earlier run".to_owned(),
        };
        let each = self.processes.iter().map(CardHolder::words);
        let list = each.collect::<Vec<_>>().join(", ");
        match (self.guardian, self.processes.is_empty()) {
            (Some(pid), true) => {
                format!("the guardian of {run} (pid {pid}) still ends its processes")
            }
            (Some(pid), false) => {
                format!("the guardian of {run} (pid {pid}) still ends its processes: {list}")
            }
            (None, false) => {
                format!("{list}, left by {run}, whose supervisor and guardian were killed")
            }
            (None, true) => format!("{run} has the card's lock"),
        }
    }

    /// What the user can do.
    pub fn cure(&self) -> String {
        if self.guardian.is_some() {
            return "this needs some seconds and nothing from you".to_owned();
        }
        if self.processes.is_empty() {
            return "wait for its end, or stop it".to_owned();
        }
        let pids = self.processes.iter().map(|p| p.pid.to_string());
        format!("to end it: kill -9 {}", pids.collect::<Vec<_>>().join(" "))
    }
}

impl CardHolder {
    fn words(&self) -> String {
        let Self {
            pid,
            name,
            state,
            vram,
        } = self;
        match vram {
            Some(vram) => format!("{name} (pid {pid}, {state}, {vram})"),
            None => format!("{name} (pid {pid}, {state}, memory not known)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(guardian: Option<u32>, processes: &[(u32, Option<u64>)]) -> CardHeld {
        let holder = |(pid, gib): &(u32, Option<u64>)| CardHolder {
            pid: *pid,
            name: "python".to_owned(),
            state: 'S',
            vram: gib.map(Bytes::gib),
        };
        CardHeld {
            gpu: GpuId("0000:0c:00.0".to_owned()),
            run: Some("20261127-2231-7f3a".to_owned()),
            guardian,
            processes: processes.iter().map(holder).collect(),
        }
    }

    #[test]
    fn the_words_name_every_process_and_the_cure_ends_what_nobody_else_ends() {
        let orphans = held(None, &[(41, Some(17)), (42, None)]);
        let words = orphans.holders();
        for part in [
            "python (pid 41, S, 17.0 GiB)",
            "pid 42, S, memory not known",
            "20261127-2231-7f3a",
        ] {
            assert!(words.contains(part), "{words}");
        }
        assert_eq!(orphans.cure(), "to end it: kill -9 41 42");
        let ending = held(Some(7), &[]);
        assert!(
            ending
                .holders()
                .contains("guardian of run 20261127-2231-7f3a (pid 7)")
        );
        assert!(!ending.cure().contains("kill"));
        let unnamed = CardHeld {
            run: None,
            ..orphans
        };
        assert!(unnamed.holders().contains("an earlier run"));
    }
}
