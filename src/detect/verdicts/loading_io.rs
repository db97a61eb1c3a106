use super::{Definition, steps};

pub(super) const DEFINITION: Definition = Definition {
    meaning: "Weights are being read from storage, bytes are flowing.",
    wait: Some("weights were read from storage"),
    steps: |_, _| steps::WAIT,
    ..Definition::no_fault()
};
