use super::{Definition, Restart, Scope, advice};
use crate::model::ActionId;

pub(super) const DEFINITION: Definition = Definition {
    meaning: "HSA `MemoryRegion::BlockAllocator::alloc failed`, alive or dead afterwards.",
    restart: Restart::AfterEnd,
    wants_rung: Some(Scope::Amd),
    failure: "ROCm's allocator found no room on the card",
    steps: |_, _| &[(ActionId::FullUnload, 1)],
    advice: |_, facts, _| Some(advice::unload_all(facts)),
    ..Definition::fault()
};
