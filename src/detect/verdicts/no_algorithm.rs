use super::{Definition, Restart, Scope, steps};

pub(super) const DEFINITION: Definition = Definition {
    meaning: "MIOpen found no suitable algorithm (`miopenStatusUnknownError`).",
    restart: Restart::Always,
    wants_rung: Some(Scope::Amd),
    failure: "the library found no algorithm for a convolution",
    steps: |_, _| steps::SMALLER_DECODE,
    advice: |_, _, _| {
        Some(
        "no solver of MIOpen fits this convolution: smaller tiles make one fit; the CPU comes last".to_owned()
    )
    },
    ..Definition::fault()
};
