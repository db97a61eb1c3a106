use super::Definition;

pub(super) const DEFINITION: Definition = Definition {
    meaning: "A weight file is truncated or damaged.",
    failure: "a file of weights is damaged or not whole",
    advice: |_, _, _| {
        Some(
            "a weight file is damaged or not whole: fetch it again and compare its size".to_owned(),
        )
    },
    ..Definition::fault()
};
