use super::{Definition, advice};

pub(super) const DEFINITION: Definition = Definition {
    meaning: "A module that the job needs is missing (optional ones are noise).",
    may_be_survived: true,
    failure: "something that the program needs is not installed",
    advice: |verdict, _, _| {
        Some(match advice::missing_module(verdict) {
            Some(name) => format!("install `{name}` into the environment of the program"),
            None => "install what the program's last lines name as missing".to_owned(),
        })
    },
    ..Definition::fault()
};
