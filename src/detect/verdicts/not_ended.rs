use super::Definition;

pub(super) const DEFINITION: Definition = Definition {
    meaning: "The result is written, the process stays.",
    ..Definition::no_fault()
};
