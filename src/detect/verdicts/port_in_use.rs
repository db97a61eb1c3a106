use super::Definition;

pub(super) const DEFINITION: Definition = Definition {
    meaning: "The server port is taken.",
    failure: "the port is taken",
    advice: |_, _, _| {
        Some("another program has the port: end it, or choose another with --port".to_owned())
    },
    ..Definition::fault()
};
