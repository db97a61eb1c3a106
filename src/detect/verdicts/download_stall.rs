use super::{Definition, Depth, Restart, Scope};
use crate::model::ActionId;

pub(super) const DEFINITION: Definition = Definition {
    meaning: "A download in flight receives nothing for a long time.",
    restart: Restart::Always,
    wants_rung: Some(Scope::Anywhere),
    depth: Depth::Standstill,
    steps: |_, _| &[(ActionId::ResumeDownload, 1)],
    ..Definition::fault()
};
