use super::Definition;

pub(super) const DEFINITION: Definition = Definition {
    meaning: "No permission on `/dev/kfd` or the render node.",
    failure: "the user is not allowed to open the card",
    advice: |_, _, _| {
        Some(
        "add the user to the groups that own /dev/kfd and /dev/dri/renderD* (mostly render and video), then log in again".to_owned()
    )
    },
    ..Definition::fault()
};
