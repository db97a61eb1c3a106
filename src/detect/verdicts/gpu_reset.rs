use super::{Definition, Restart};
use crate::model::{ActionId, Severity};

pub(super) const DEFINITION: Definition = Definition {
    meaning: "Ring timeout, GPU reset, GPU hang exception, Xid, card lost.",
    severity: Severity::Critical,
    restart: Restart::AfterRecovery,
    failure: "the card was reset or lost",
    steps: |_, facts| match facts.recovered {
        Some(true) => &[(ActionId::RetrySame, 2)],
        Some(false) | None => &[(ActionId::RebootHost, 4)],
    },
    advice: |_, _, action| {
        let words = if action == ActionId::RetrySame {
            "the driver says that the card came back: start once more, at lower settings; stop after a second reset"
        } else {
            "the driver does not say that the card came back: only a reboot helps for certain"
        };
        Some(words.to_owned())
    },
    ..Definition::fault()
};
