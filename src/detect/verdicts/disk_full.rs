use super::Definition;

pub(super) const DEFINITION: Definition = Definition {
    meaning: "No space left, or a file is as large as one may be (`ulimit -f`).",
    failure: "no room is left where the program writes",
    advice: |_, _, _| {
        Some(
        "make room where the program writes (`df -h` shows which disk is full; outputs, caches and temporary files may lie on different ones)".to_owned()
    )
    },
    ..Definition::fault()
};
