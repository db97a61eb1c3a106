use super::Definition;

pub(super) const DEFINITION: Definition = Definition {
    meaning: "The child is stopped on purpose or the machine slept.",
    ..Definition::no_fault()
};
