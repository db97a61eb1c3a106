use super::{Definition, Restart, Scope};
use crate::model::ActionId;

pub(super) const DEFINITION: Definition = Definition {
    meaning: "MIOpen's cache or database is locked, unreadable or malformed.",
    restart: Restart::Always,
    wants_rung: Some(Scope::Amd),
    failure: "a database of MIOpen cannot be used",
    steps: |_, _| &[(ActionId::ResetMiopenDb, 1)],
    advice: |_, _, _| {
        Some(
        "start with a fresh folder for MIOpen's databases (MIOPEN_USER_DB_PATH, MIOPEN_CUSTOM_CACHE_DIR); nothing is deleted".to_owned()
    )
    },
    ..Definition::fault()
};
