//! Figures of a benchmark and the JSON file that the report is made from.

use std::error::Error;
use std::fs;
use std::path::PathBuf;

use serde::Serialize;

/// One measured figure.
#[derive(Debug, Serialize)]
pub(crate) struct Figure {
    /// Heading in the report under which it stands.
    pub(crate) group: &'static str,
    /// What was measured.
    pub(crate) what: String,
    /// `ms`, `% of a core`, …
    pub(crate) unit: &'static str,
    /// The figure itself; absent: it could not be measured, `note` says why.
    pub(crate) value: Option<f64>,
    /// Largest value that is good, where a target was set.
    pub(crate) at_most: Option<f64>,
    /// More about it: spread, number of repeats.
    pub(crate) note: String,
    /// Whose figure: `framepack-tui`, or a peer.
    pub(crate) program: String,
}

impl Figure {
    /// A figure of ours.
    pub(crate) fn ours(group: &'static str, what: impl Into<String>, unit: &'static str) -> Self {
        Self {
            group,
            what: what.into(),
            unit,
            value: None,
            at_most: None,
            note: String::new(),
            program: "framepack-tui".to_owned(),
        }
    }

    /// With this value.
    pub(crate) fn value(mut self, value: f64) -> Self {
        self.value = Some(value);
        self
    }

    /// With a target.
    pub(crate) fn at_most(mut self, limit: f64) -> Self {
        self.at_most = Some(limit);
        self
    }

    /// With more words.
    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }
}

/// Whether only a trial run is wanted (`FPT_BENCH_QUICK=1`): everything is done, but
/// less of it, and the figures are marked.
pub(crate) fn quick() -> bool {
    std::env::var_os("FPT_BENCH_QUICK").is_some_and(|v| v == "1")
}

/// Writes the figures to `target/bench/NAME.json`, and in words to standard output.
pub(crate) fn write(name: &str, figures: &[Figure]) -> Result<(), Box<dyn Error>> {
    use std::io::Write;

    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target"),
        PathBuf::from,
    );
    let dir = target.join("bench");
    fs::create_dir_all(&dir)?;
    let whole = serde_json::json!({ "bench": name, "quick": quick(), "figures": figures });
    fs::write(
        dir.join(format!("{name}.json")),
        serde_json::to_string_pretty(&whole)?,
    )?;
    let mut out = std::io::stdout().lock();
    for f in figures {
        let value = f
            .value
            .map_or_else(|| "-".to_owned(), |v| format!("{v:.3}"));
        writeln!(
            out,
            "{:<10} {:<14} {:<58} {value:>12} {:<14} {}",
            name, f.program, f.what, f.unit, f.note
        )?;
    }
    Ok(())
}
