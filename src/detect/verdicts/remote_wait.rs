use super::{Definition, steps};

pub(super) const DEFINITION: Definition = Definition {
    meaning: "The job waits for another machine or process, which is named.",
    steps: |_, _| steps::WAIT,
    ..Definition::no_fault()
};
