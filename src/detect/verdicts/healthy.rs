use super::Definition;

pub(super) const DEFINITION: Definition = Definition {
    meaning: "A job is in flight and advances at a plausible pace, or just ended well.",
    ..Definition::no_fault()
};
