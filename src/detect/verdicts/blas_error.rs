use super::{Definition, Restart, Scope, steps};

pub(super) const DEFINITION: Definition = Definition {
    meaning: "cuBLAS, hipBLAS or hipBLASLt call failed.",
    restart: Restart::Always,
    wants_rung: Some(Scope::Gpu),
    failure: "a call of the matrix library failed",
    steps: |_, _| steps::RETRY,
    ..Definition::fault()
};
