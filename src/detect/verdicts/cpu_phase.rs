use super::{Definition, steps};

pub(super) const DEFINITION: Definition = Definition {
    meaning: "A step that legitimately runs on the CPU (encode, mesh work, announced CPU fallback).",
    wait: Some("a step worked on the CPU"),
    steps: |_, _| steps::WAIT,
    ..Definition::no_fault()
};
