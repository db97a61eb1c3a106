use super::{Definition, Restart, Scope, advice, steps};

pub(super) const DEFINITION: Definition = Definition {
    meaning: "HIP or CUDA out of memory on the device.",
    restart: Restart::Always,
    wants_rung: Some(Scope::Gpu),
    failure: "the card's memory ran out",
    steps: |phase, _| steps::smaller(phase),
    advice: |_, facts, action| advice::smaller_job(facts, action),
    ..Definition::fault()
};
