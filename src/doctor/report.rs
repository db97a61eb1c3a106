//! Facts and findings together: what is printed.

use serde::Serialize;

use super::facts::Facts;
use super::finding::{Finding, Severity};
use super::judge;

/// Version of the JSON form: major.minor, as in `docs/doctor.md`.
pub const SCHEMA: &str = "1.2";

/// How many findings of each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// In order.
    pub ok: usize,
    /// Worth knowing.
    pub notes: usize,
    /// Worse than it could be.
    pub warnings: usize,
    /// A generation will fail.
    pub errors: usize,
}

/// The whole report.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Version of this program.
    pub program: &'static str,
    /// 0 clean, 1 warnings, 2 errors.
    pub exit_code: u8,
    /// Counts.
    pub summary: Summary,
    /// Worst first, then in the order of the groups.
    pub findings: Vec<Finding>,
    /// What they were concluded from.
    pub facts: Facts,
}

impl Report {
    /// Judges the facts.
    pub fn of(facts: Facts) -> Self {
        let mut findings = judge::all(&facts);
        findings.sort_by_key(|f| (std::cmp::Reverse(f.severity), f.group));
        let count = |s| findings.iter().filter(|f| f.severity == s).count();
        let summary = Summary {
            ok: count(Severity::Ok),
            notes: count(Severity::Note),
            warnings: count(Severity::Warning),
            errors: count(Severity::Error),
        };
        Self {
            schema: SCHEMA,
            program: env!("CARGO_PKG_VERSION"),
            exit_code: match summary {
                Summary { errors: 1.., .. } => 2,
                Summary { warnings: 1.., .. } => 1,
                Summary { .. } => 0,
            },
            summary,
            findings,
            facts,
        }
    }
}
