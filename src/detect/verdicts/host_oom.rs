use super::{Definition, Restart, Scope, advice};
use crate::model::{ActionId, Severity};

pub(super) const DEFINITION: Definition = Definition {
    meaning: "Host memory ran out: kernel killed the child or a host allocation failed.",
    severity: Severity::Critical,
    restart: Restart::AfterEnd,
    wants_rung: Some(Scope::Anywhere),
    failure: "the host's memory ran out",
    steps: |_, _| &[(ActionId::FreeMemory, 2)],
    advice: |_, facts, _| {
        let words = match facts.own {
            Some(work) => advice::smaller_pieces(work),
            None => {
                "free or add host memory (smaller text encoder, fewer copies in RAM, more swap)"
            }
        };
        Some(words.to_owned())
    },
    ..Definition::fault()
};
