use super::Definition;

pub(super) const DEFINITION: Definition = Definition {
    meaning: "The child is up, no job is in flight, it waits for a user or client.",
    ..Definition::no_fault()
};
