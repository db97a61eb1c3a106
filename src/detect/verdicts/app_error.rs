use super::{Definition, Depth, rule};
use crate::detect::rule::error_storm;

pub(super) const DEFINITION: Definition = Definition {
    meaning: "The program failed by an exception or a non-zero exit of its own that no other verdict explains.",
    depth: Depth::Ending,
    advice: |_, _, _| {
        Some(
        "no known cause has these words: search for them together with the program's name; where the last files of a traceback lie under custom_nodes or extensions, update that pack or switch it off".to_owned()
    )
    },
    rules: &[rule(20, error_storm::check)],
    ..Definition::fault()
};
