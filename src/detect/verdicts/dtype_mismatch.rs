use super::{Definition, Restart, Scope};
use crate::model::ActionId;

pub(super) const DEFINITION: Definition = Definition {
    meaning: "Half / BFloat16 / float mixed in one operation.",
    restart: Restart::Always,
    wants_rung: Some(Scope::Anywhere),
    failure: "numbers of different precision were mixed",
    steps: |_, _| &[(ActionId::Fp32Upcast, 2)],
    ..Definition::fault()
};
