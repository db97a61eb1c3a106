use super::{Definition, Restart, Scope};
use crate::model::ActionId;

pub(super) const DEFINITION: Definition = Definition {
    meaning: "Page-locking host memory failed although VRAM is free.",
    restart: Restart::Always,
    wants_rung: Some(Scope::Gpu),
    failure: "host memory could not be page-locked",
    steps: |_, _| &[(ActionId::DisablePinned, 1)],
    ..Definition::fault()
};
