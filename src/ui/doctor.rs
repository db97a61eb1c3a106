//! The doctor's report as text: worst first, each finding with its cure.

use super::text::{clean, pad, width, wrap};
use crate::doctor::facts::{Facts, Look};
use crate::doctor::finding::{Finding, Group, Severity};
use crate::doctor::report::Report;

/// Narrowest and widest text.
const NARROWEST: usize = 40;
/// Longer lines are hard to read.
const WIDEST: usize = 100;
/// Lines of one value.
const MOST_LINES: usize = 12;

/// How the text is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Columns that there are.
    pub columns: usize,
    /// ASCII characters only.
    pub ascii: bool,
    /// The terminal's own colours for the words of severity.
    pub color: bool,
    /// Leave out what is in order, and the facts.
    pub quiet: bool,
}

/// The whole report.
pub fn text(report: &Report, layout: Layout) -> String {
    let mut page = Page {
        layout: Layout {
            columns: layout.columns.clamp(NARROWEST, WIDEST),
            ..layout
        },
        out: String::new(),
    };
    page.summary(report);
    let bad = |f: &&Finding| f.severity != Severity::Ok;
    for finding in report.findings.iter().filter(bad) {
        page.finding(finding);
    }
    if !layout.quiet {
        page.in_order(report);
        page.facts(&report.facts);
    }
    page.out
}

struct Page {
    layout: Layout,
    out: String,
}

impl Page {
    fn line(&mut self, text: &str) {
        self.out.push_str(text.trim_end());
        self.out.push('\n');
    }

    fn summary(&mut self, report: &Report) {
        let s = report.summary;
        let count = |n: usize, word: &str| match n {
            0 => format!("no {word}s"),
            1 => format!("1 {word}"),
            n => format!("{n} {word}s"),
        };
        let counts = [
            count(s.errors, "error"),
            count(s.warnings, "warning"),
            count(s.notes, "note"),
        ];
        let text = format!("doctor: {}, {} in order", counts.join(", "), s.ok);
        for line in wrap(&text, self.layout.columns, MOST_LINES, "") {
            self.line(&line);
        }
    }

    /// A finding is a paragraph: severity and name, then what, why and cure.
    fn finding(&mut self, finding: &Finding) {
        let word = self.severity(finding.severity);
        let name = format!("{} ({})", finding.id.word(), finding.group.word());
        self.line("");
        self.line(&format!("{word} {name}"));
        self.value("", &finding.what);
        if let Some(why) = &finding.why {
            self.value("why", why);
        }
        if let Some(cure) = &finding.cure {
            self.value("cure", cure);
        }
    }

    /// The word of a severity with its symbol, in six columns more than the symbol.
    fn severity(&self, severity: Severity) -> String {
        let Layout { ascii, color, .. } = self.layout;
        let (symbol, plain, code) = match severity {
            Severity::Error => ("✖", "X", "31"),
            Severity::Warning => ("▲", "!", "33"),
            Severity::Note => ("•", "-", "36"),
            Severity::Ok => ("●", "o", "32"),
        };
        let symbol = if ascii { plain } else { symbol };
        let word = format!("{symbol} {}", severity.word());
        if color {
            format!("\u{1b}[1;{code}m{word}\u{1b}[0m")
        } else {
            word
        }
    }

    /// `  label  value`, the value wrapped beside its label.
    fn value(&mut self, label: &str, value: &str) {
        const LABEL: usize = 8;
        let indent = if label.is_empty() { 2 } else { LABEL };
        let columns = self.layout.columns - indent;
        let ellipsis = if self.layout.ascii { "~" } else { "…" };
        let value = clean(value, self.layout.ascii);
        let lines = wrap(&value, columns, MOST_LINES, ellipsis);
        for (i, line) in lines.iter().enumerate() {
            let head = if i == 0 && !label.is_empty() {
                pad(&format!("  {label}"), indent, ellipsis)
            } else {
                " ".repeat(indent)
            };
            self.line(&format!("{head}{line}"));
        }
    }

    fn in_order(&mut self, report: &Report) {
        let ok = |f: &&Finding| f.severity == Severity::Ok;
        if report.summary.ok == 0 {
            return;
        }
        self.line("");
        let word = self.severity(Severity::Ok);
        self.line(&format!("{word}, in order"));
        for group in Group::ALL {
            let of_group = report.findings.iter().filter(ok);
            for (i, finding) in of_group.filter(|f| f.group == *group).enumerate() {
                self.row(if i == 0 { group.word() } else { "" }, &finding.what);
            }
        }
    }

    /// `  label        value`.
    fn row(&mut self, label: &str, value: &str) {
        const LABEL: usize = 15;
        let ellipsis = if self.layout.ascii { "~" } else { "…" };
        let value = clean(value, self.layout.ascii);
        let columns = self.layout.columns - LABEL;
        for (i, line) in wrap(&value, columns, MOST_LINES, ellipsis)
            .iter()
            .enumerate()
        {
            let label = if i == 0 { label } else { "" };
            let head = pad(&format!("  {label}"), LABEL, ellipsis);
            self.line(&format!("{head}{line}"));
        }
    }

    fn facts(&mut self, facts: &Facts) {
        self.line("");
        self.line("facts");
        for (label, value) in rows(facts) {
            self.row(label, &value);
        }
    }
}

/// What was looked at, in words.
fn rows(facts: &Facts) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    match &facts.system {
        Look::Known(s) => {
            rows.push(("kernel", s.kernel.clone()));
            let driver = match (&s.amdgpu_version, s.amdgpu_loaded) {
                (Some(version), _) => format!("amdgpu {version}, built by DKMS"),
                (None, true) => "amdgpu, the kernel's own".to_owned(),
                (None, false) => "amdgpu is not loaded".to_owned(),
            };
            rows.push(("driver", driver));
            let rocm = s.rocm.as_ref().zip(s.rocm_path.as_ref());
            let none = || "no installation found (wheels bring their own)".to_owned();
            rows.push((
                "ROCm",
                rocm.map_or_else(none, |(v, p)| format!("{v} in {p}")),
            ));
        }
        Look::Unknown(why) => rows.push(("system", format!("not known: {why}"))),
    }
    if let Some(user) = facts.user.known() {
        let name = user.name.clone().unwrap_or_else(|| user.uid.to_string());
        rows.push(("user", format!("{name}, groups {}", user.groups.join(", "))));
    }
    if let Some(answer) = facts.python.answer() {
        let torch = answer.torch.as_ref().map_or_else(
            || "none".to_owned(),
            |t| {
                let hip = t.hip.as_ref().map(|v| format!(", HIP {v}"));
                let cuda = t.cuda.as_ref().map(|v| format!(", CUDA {v}"));
                let built = hip.or(cuda).unwrap_or_else(|| ", CPU".to_owned());
                format!("{}{built}", t.version)
            },
        );
        rows.push(("torch", torch));
        let packages: Vec<String> = answer
            .packages
            .iter()
            .filter(|(name, _)| *name != "torch")
            .map(|(name, version)| format!("{name} {version}"))
            .collect();
        rows.push(("packages", packages.join(", ")));
    }
    let set: Vec<&str> = facts.environment.keys().map(String::as_str).collect();
    if !set.is_empty() {
        rows.push(("environment", set.join(", ")));
    }
    rows.retain(|(_, value)| width(value) > 0);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::judge::testing::healthy;

    /// A machine with something of everything.
    fn ill() -> Report {
        let mut facts = healthy()
            .with("MIOPEN_FIND_MODE", "1")
            .with("MIOPEN_FIND_TIME_LIMIT", "30")
            .with("HSA_OVERRIDE_GFX_VERSION", "11.0.0");
        if let Look::Known(devices) = &mut facts.devices {
            devices[0].accessible = false;
            devices[0].why = Some("permission denied".to_owned());
        }
        if let Look::Known(user) = &mut facts.user {
            user.groups = vec!["ada".to_owned()];
        }
        Report::of(facts)
    }

    fn layout(columns: usize, ascii: bool) -> Layout {
        Layout {
            columns,
            ascii,
            color: false,
            quiet: false,
        }
    }

    #[test]
    fn worst_first_with_its_cure() {
        insta::assert_snapshot!("ill", text(&ill(), layout(80, false)));
    }

    #[test]
    fn narrow_and_ascii() {
        let shown = text(&ill(), layout(48, true));
        assert!(shown.is_ascii(), "{shown}");
        insta::assert_snapshot!("ill_48_ascii", shown);
    }

    #[test]
    fn quiet_says_only_what_is_wrong() {
        let quiet = Layout {
            quiet: true,
            ..layout(80, false)
        };
        let clean = text(&Report::of(healthy()), quiet);
        assert!(clean.starts_with("doctor: no errors, no warnings, no notes, "));
        assert_eq!(clean.lines().count(), 1, "{clean}");
    }

    #[test]
    fn no_line_is_wider_than_it_may_be_and_none_steers() {
        let mut facts = healthy();
        facts.broken_profiles = vec!["x\u{1b}[2J".repeat(60)];
        let report = Report::of(facts);
        for columns in [0, 40, 61, 80, 300] {
            let shown = text(&report, layout(columns, false));
            assert!(!shown.contains('\u{1b}'));
            let widest = shown.lines().map(width).max().unwrap();
            assert!(
                widest <= columns.clamp(NARROWEST, WIDEST),
                "{columns}: {widest}"
            );
        }
        let color = Layout {
            color: true,
            ..layout(80, false)
        };
        assert!(text(&report, color).contains("\u{1b}[1;33m▲ warning\u{1b}[0m"));
    }
}
