use super::Definition;

pub(super) const DEFINITION: Definition = Definition {
    meaning: "The child ended by itself with code 0.",
    ..Definition::no_fault()
};
