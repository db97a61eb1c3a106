//! `docs/diagnose.md` against the code, and files that are not as they should be.
