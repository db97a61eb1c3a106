use super::{Definition, steps};

pub(super) const DEFINITION: Definition = Definition {
    meaning: "Files are being fetched and bytes are flowing, short dips included.",
    wait: Some("files were fetched"),
    steps: |_, _| steps::WAIT,
    ..Definition::no_fault()
};
