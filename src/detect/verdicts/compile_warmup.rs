use super::{Definition, steps};

pub(super) const DEFINITION: Definition = Definition {
    meaning: "First-run compilation or tuning that consumes CPU or GPU and advances or is within budget.",
    wait: Some("kernels were compiled or tuned"),
    steps: |_, _| steps::WAIT,
    ..Definition::no_fault()
};
