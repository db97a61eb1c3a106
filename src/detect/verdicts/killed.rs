use super::{Definition, Depth, Restart, steps};

pub(super) const DEFINITION: Definition = Definition {
    meaning: "The child was ended by SIGKILL or SIGTERM from outside, cause not established.",
    restart: Restart::WithKeptJob,
    depth: Depth::Ending,
    steps: |_, _| steps::RETRY,
    advice: |_, _, _| {
        Some(
        "look at `sudo dmesg | grep -i 'killed process'`: if it names the program, the host's memory was short (smaller models, more swap); if not, somebody ended it, and it can be started again".to_owned()
    )
    },
    ..Definition::fault()
};
