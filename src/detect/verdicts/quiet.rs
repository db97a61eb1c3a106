use super::Definition;

pub(super) const DEFINITION: Definition = Definition {
    meaning: "Nothing shows that a job is in flight; what moves, if anything, is named.",
    ..Definition::no_fault()
};
