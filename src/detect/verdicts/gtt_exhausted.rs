use super::Definition;

pub(super) const DEFINITION: Definition = Definition {
    meaning: "APU: GTT limit reached while the host still has memory.",
    failure: "the host memory that the card may use ran out",
    advice: |_, _, _| {
        Some(
        "the share of host memory that the APU may use is full: raise the limit of the kernel (ttm.pages_limit) or the carve-out in the firmware, or use smaller models".to_owned()
    )
    },
    ..Definition::fault()
};
