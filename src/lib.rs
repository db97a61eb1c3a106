//! Runs a video generation, sees what the GPU really does, tells a silent hang
//! from honest work, and brings a dead run home on a fallback.
//!
//! # Theory of operation
//!
//! Everything that happens becomes one [`model::Envelope`] in one ordered stream.
//! The pure core (`run`, over `detect` and `policy`) folds the stream into a state
//! and effects; the shell (`cli`, `supervise`, `workload`, `telemetry`) feeds it and
//! carries the effects out, and every outcome comes back as an event. Screen,
//! headless output, plain text and the record on disk are readers of that stream.
//!
//! # Layers
//!
//! | layer | may use | must not use |
//! | --- | --- | --- |
//! | `model` | std, serde | anything of ours, clocks, I/O |
//! | `forecast` | `model` | anything else of ours, I/O, clocks, threads |
//! | `causes` | `model`, the names in `workload::adapter` | anything else of ours, I/O, clocks, threads |
//! | `detect`, `policy` | `model`, `forecast`, `causes` (`policy` also `profile`'s types and `detect::verdicts`) | each other, I/O, clocks, threads |
//! | `profile` | `model`, `detect::verdicts` | clocks; I/O only in `catalog` |
//! | `run` | `model`, `forecast`, `causes`, `detect`, `policy`, `profile`'s types | I/O, clocks, threads |
//! | `agent` | `model`, `profile` | anything else of ours |
//! | `telemetry`, `workload`, `supervise`, `record`, `doctor`, `vault` | `model`, `profile`; `supervise` also `workload`, `doctor` its `AdapterKind` | `run`, `ui`, `detect`, `policy` |
//! | `ui` | `model`, `forecast`'s views, `run::snapshot`, `profile`, the reports of `doctor` and `diagnose`, the names of programs in `workload::adapter` | `telemetry`, `supervise`, the rest of `workload` |
//! | `diagnose` | all but `ui`, `cli` | |
//! | `cli` | all | |
//!
//! `tests/layering.rs` enforces the table.

pub mod agent;
pub mod causes;
pub mod cli;
pub mod detect;
pub mod diagnose;
pub mod doctor;
pub mod forecast;
pub mod model;
pub mod policy;
pub mod profile;
pub mod record;
pub mod run;
pub mod supervise;
pub mod telemetry;
pub mod ui;
pub mod vault;
pub mod workload;
