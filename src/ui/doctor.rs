//! The doctor's report as text: worst first, each finding with its cure.

use super::page::{Layout, Page};
use super::text::width;
use crate::doctor::facts::{Facts, Look};
use crate::doctor::finding::{Finding, Group, Severity};
use crate::doctor::report::Report;

/// Width of the labels of a finding, and of the facts.
const REASON: usize = 8;
const FACT: usize = 15;

/// The whole report; `quiet`: without what is in order, and the facts.
pub fn text(report: &Report, layout: Layout, quiet: bool) -> String {
    let mut page = Page::new(layout);
    page.summary(report);
    let bad = |f: &&Finding| f.severity != Severity::Ok;
    for finding in report.findings.iter().filter(bad) {
        page.finding(finding);
    }
    if !quiet {
        page.in_order(report);
        page.facts(&report.facts);
    }
    page.out
}

impl Page {
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
        self.value("", 0, &text);
    }

    /// A finding is a paragraph: severity and name, then what, why and cure.
    fn finding(&mut self, finding: &Finding) {
        let word = self.finding_word(finding.severity);
        let name = format!("{} ({})", finding.id.word(), finding.group.word());
        self.head(&format!("{word} {name}"));
        self.value("", 2, &finding.what);
        if let Some(why) = &finding.why {
            self.value("  why", REASON, why);
        }
        if let Some(cure) = &finding.cure {
            self.value("  cure", REASON, cure);
        }
    }

    /// The word of a severity with its symbol, in six columns more than the symbol.
    fn finding_word(&self, severity: Severity) -> String {
        let (symbol, code) = match severity {
            Severity::Error => (("✖", "X"), "31"),
            Severity::Warning => (("▲", "!"), "33"),
            Severity::Note => (("•", "-"), "36"),
            Severity::Ok => (("●", "o"), "32"),
        };
        self.word(symbol, code, severity.word())
    }

    fn in_order(&mut self, report: &Report) {
        let ok = |f: &&Finding| f.severity == Severity::Ok;
        if report.summary.ok == 0 {
            return;
        }
        let word = self.finding_word(Severity::Ok);
        self.head(&format!("{word}, in order"));
        for group in Group::ALL {
            let of_group = report.findings.iter().filter(ok);
            for (i, finding) in of_group.filter(|f| f.group == *group).enumerate() {
                self.fact(if i == 0 { group.word() } else { "" }, &finding.what);
            }
        }
    }

    fn fact(&mut self, label: &str, value: &str) {
        self.value(&format!("  {label}"), FACT, value);
    }

    fn facts(&mut self, facts: &Facts) {
        self.head("facts");
        for (label, value) in rows(facts) {
            self.fact(label, &value);
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
    use crate::ui::page::{NARROWEST, WIDEST};

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
        }
    }

    #[test]
    fn worst_first_with_its_cure() {
        insta::assert_snapshot!("ill", text(&ill(), layout(80, false), false));
    }

    #[test]
    fn narrow_and_ascii() {
        let shown = text(&ill(), layout(48, true), false);
        assert!(shown.is_ascii(), "{shown}");
        insta::assert_snapshot!("ill_48_ascii", shown);
    }

    #[test]
    fn quiet_says_only_what_is_wrong() {
        let clean = text(&Report::of(healthy()), layout(80, false), true);
        assert!(clean.starts_with("doctor: no errors, no warnings, no notes, "));
        assert_eq!(clean.lines().count(), 1, "{clean}");
    }

    #[test]
    fn no_line_is_wider_than_it_may_be_and_none_steers() {
        let mut facts = healthy();
        facts.broken_profiles = vec!["x\u{1b}[2J".repeat(60)];
        let report = Report::of(facts);
        for columns in [0, 40, 61, 80, 300] {
            let shown = text(&report, layout(columns, false), false);
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
        assert!(text(&report, color, false).contains("\u{1b}[1;33m▲ warning\u{1b}[0m"));
    }
}
