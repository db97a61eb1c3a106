//! A diagnosis as text: the verdict in a sentence, what to do, and what it rests on.

use std::time::Duration;

use super::page::{Layout, Page};
use super::questions::asked;
use super::text::{clean, fit, pad};
use super::words::unasked;
use crate::diagnose::report::{Change, Cited, Found, Report, SourceKind, Words};
use crate::model::time::clock;
use crate::model::{Considered, Health, RuleState, Severity};

/// Width of the labels.
const LABEL: usize = 12;
/// Findings, citations of each, changes and notes that are printed; JSON has them all.
const FINDINGS: usize = 8;
const CITES: usize = 3;
const CHANGES: usize = 24;
const NOTES: usize = 12;

/// The whole report.
pub fn text(report: &Report, layout: Layout) -> String {
    let mut page = Page::new(layout);
    page.verdict(report);
    page.action(report);
    page.findings(&report.findings);
    page.ruled_out(report);
    page.history(&report.history);
    page.words(&report.last_words);
    page.notes(&report.notes);
    page.out
}

impl Page {
    fn row(&mut self, label: &str, value: &str) {
        self.value(&format!("  {label}"), LABEL, value);
    }

    fn verdict(&mut self, report: &Report) {
        let section = report
            .section
            .map_or_else(String::new, |s| format!(", section {s}"));
        self.line(&self.headline(report));
        self.value("", 2, &report.sentence);
        self.line("");
        let what = match (report.source, report.stats.duration_s) {
            (SourceKind::Log, _) => {
                format!("{} lines of text without readings", report.stats.lines)
            }
            (kind, Some(s)) => format!(
                "{} of {}, {} lines, {} readings",
                kind.word(),
                seconds(s),
                report.stats.lines,
                report.stats.rows
            ),
            (kind, None) => kind.word().to_owned(),
        };
        self.row("judged", &what);
        let w = &report.workload;
        let card = w
            .gpu
            .as_ref()
            .map_or_else(String::new, |g| format!(" on {g}"));
        self.row("program", &format!("{}{card}", w.adapter));
        self.row("where", &format!("{}{section}", report.phase));
        if let Some(onset) = report.onset_s {
            self.row("began", &seconds(onset));
        }
        if let Some(told) = report.detected_at_s {
            let sure = report
                .confidence
                .map_or_else(String::new, |c| format!(", {:.0} % sure", c * 100.0));
            self.row("told", &format!("{}{sure}", seconds(told)));
        }
        if let Some(ended) = &report.ended {
            self.row("ended", ended);
        }
        for q in report.questions.iter().flat_map(asked) {
            self.row(q.name, &q.words());
        }
        if let Some(find) = &report.find {
            let solver = find.solver.as_deref().unwrap_or("not named yet");
            let line = find
                .line
                .map_or_else(String::new, |l| format!(", line {l}"));
            self.row("open Find", &format!("{}, solver {solver}{line}", find.key));
        }
    }

    fn action(&mut self, report: &Report) {
        let action = &report.action;
        let ours = report.workload.watch.is_none();
        let restart = match (action.auto_restart, action.tier) {
            // nothing runs that could be restarted
            _ if report.source == SourceKind::Log => String::new(),
            (false, 0) => String::new(),
            (auto, _) => format!("; {}", unasked(auto, ours)),
        };
        self.row(
            "do",
            &format!(
                "{}, tier {} ({}){restart}",
                action.id,
                action.tier,
                tier(action.tier)
            ),
        );
        if !action.why.is_empty() {
            self.row("", &action.why);
        }
        if let Some(cause) = &report.cause {
            self.row("cause", &cause.id);
            self.row("see", &cause.source);
        }
        if !action.env.is_empty() {
            // one line, whatever its length: it is to be copied
            let set = action
                .env
                .iter()
                .map(|(name, value)| format!("{name}={}", shell_words::quote(value)));
            let set: Vec<String> = set.collect();
            let text = clean(&set.join(" "), self.layout.ascii);
            self.line(&format!("{}{text}", pad("  set", LABEL, "")));
        }
    }

    fn findings(&mut self, findings: &[Found]) {
        if findings.is_empty() {
            return;
        }
        self.head("rests on");
        for (n, found) in findings.iter().take(FINDINGS).enumerate() {
            let times = format!(" ({} x)", found.count);
            // some texts end with their number
            let times = if found.count > 1 && !found.text.ends_with(&times) {
                times
            } else {
                String::new()
            };
            self.value("", 2, &format!("{}: {}{times}", found.verdict, found.text));
            // findings that rest on the same evidence stand above it
            let next = findings.iter().take(FINDINGS).nth(n + 1);
            if next.is_some_and(|next| next.cites == found.cites) {
                continue;
            }
            for cite in found.cites.iter().take(CITES) {
                self.cite(cite);
            }
            self.more(found.cites.len(), CITES, "more places");
        }
        self.more(findings.len(), FINDINGS, "more findings");
    }

    fn cite(&mut self, cite: &Cited) {
        let line = cite.line.map_or_else(String::new, |l| format!(":{l}"));
        let place = cite
            .file
            .as_ref()
            .map_or_else(String::new, |f| format!("{f}{line}"));
        let at = cite
            .t_s
            .map_or_else(String::new, |t| format!(" at {t:.1} s"));
        self.value("", 4, &format!("{place}{at}: {}", cite.text));
    }

    fn more(&mut self, there: usize, shown: usize, what: &str) {
        if there > shown {
            self.line(&format!("    {} {what}", there - shown));
        }
    }

    fn ruled_out(&mut self, report: &Report) {
        let no = report.considered.iter().filter(|c| {
            c.state != RuleState::Match && !c.why.is_empty() && c.verdict != report.verdict
        });
        let (unasked, asked): (Vec<_>, Vec<_>) = no.partition(|c| c.is_not_asked());
        // one reason may clear many
        let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
        for rule in asked {
            match reasons.iter_mut().find(|(why, _)| *why == rule.why) {
                Some((_, cleared)) if cleared.contains(&rule.verdict.as_str()) => {}
                Some((_, cleared)) => cleared.push(rule.verdict.as_str()),
                None => reasons.push((&rule.why, vec![rule.verdict.as_str()])),
            }
        }
        let considered = reasons
            .iter()
            .map(|(why, of)| format!("{}: {why}", of.join(", ")));
        let all: Vec<String> = report.ruled_out.iter().cloned().chain(considered).collect();
        if !all.is_empty() {
            self.head("ruled out");
        }
        for text in all.iter().take(NOTES) {
            self.value("  - ", 4, text);
        }
        self.more(all.len(), NOTES, "more");
        if let Some(first) = unasked.first() {
            let why = first.why.trim_start_matches(Considered::NOT_ASKED);
            self.head("not checked");
            self.value("  - ", 4, &format!("{} rules: {why}", unasked.len()));
        }
    }

    fn history(&mut self, history: &[Change]) {
        if history.is_empty() {
            return;
        }
        self.head("shown, from each time on");
        let skipped = history.len().saturating_sub(CHANGES);
        if skipped > 0 {
            self.line(&format!("  {skipped} earlier changes"));
        }
        for change in history.iter().skip(skipped) {
            let at = format!("{:9.1} s", change.t_s);
            let word = change.health.word().to_lowercase();
            let text = format!("{at}  {:<16} {word:<9} {}", change.verdict, change.phase);
            let text = fit(&text, self.layout.columns, self.ellipsis());
            self.line(&text);
        }
    }

    fn words(&mut self, words: &[Words]) {
        if words.is_empty() {
            return;
        }
        self.head("last words of the console");
        for said in words {
            let line = said.line.map_or_else(|| "-".to_owned(), |l| l.to_string());
            let text = clean(&said.text, self.layout.ascii);
            let text = format!("{line:>9}  {text}");
            let text = fit(&text, self.layout.columns, self.ellipsis());
            self.line(&text);
        }
    }

    fn notes(&mut self, notes: &[String]) {
        if notes.is_empty() {
            return;
        }
        self.head("not known, or repaired");
        for note in notes.iter().take(NOTES) {
            self.value("  - ", 4, note);
        }
        self.more(notes.len(), NOTES, "more notes");
    }

    /// Severity and verdict; a recording in which nothing could be judged is not called
    /// healthy.
    fn headline(&self, report: &Report) -> String {
        let blind = report.health == Health::Blind && report.verdict.is_no_fault();
        let symbol = if self.layout.ascii { "?" } else { "○" };
        match (blind, report.source) {
            (true, SourceKind::Log) => format!("{symbol} no fault in the text"),
            (true, _) => format!("{symbol} not judged"),
            (false, _) => format!("{} {}", self.severity(report.severity), report.verdict),
        }
    }

    /// The word of a severity with its symbol.
    fn severity(&self, severity: Severity) -> String {
        let (symbol, code, word) = match severity {
            Severity::Critical => (("✖", "X"), "31", "critical"),
            Severity::Error => (("✖", "X"), "31", "error"),
            Severity::Warn => (("▲", "!"), "33", "warning"),
            Severity::Info => (("●", "o"), "32", "no fault"),
        };
        self.word(symbol, code, word)
    }
}

/// What a tier gives up.
const fn tier(tier: u8) -> &'static str {
    match tier {
        0 => "no change",
        1 => "a change without loss",
        2 => "slower or smaller, on the GPU",
        3 => "a part of the work on the CPU",
        _ => "needs you or the host",
    }
}

/// `194.2 s (00:03:14)`.
fn seconds(s: f64) -> String {
    let whole = Duration::try_from_secs_f64(s.max(0.0)).unwrap_or_default();
    format!("{s:.1} s ({})", clock(whole))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::page::{NARROWEST, WIDEST};
    use crate::ui::text::width;

    fn layout(columns: usize, ascii: bool) -> Layout {
        Layout {
            columns,
            ascii,
            color: false,
        }
    }

    #[test]
    fn a_hang_with_its_evidence() {
        let shown = text(&crate::diagnose::testing(), layout(80, false));
        insta::assert_snapshot!("diagnosis", shown);
    }

    #[test]
    fn what_was_not_judged_is_not_called_healthy() {
        let mut report = crate::diagnose::testing();
        report.verdict = crate::model::VerdictId::Healthy;
        report.severity = Severity::Info;
        report.health = Health::Blind;
        let head = |report: &Report| {
            let shown = text(report, layout(80, true));
            shown.lines().next().unwrap().to_owned()
        };
        assert_eq!(head(&report), "? not judged");
        report.source = SourceKind::Log;
        assert_eq!(head(&report), "? no fault in the text");
        report.health = Health::Healthy;
        assert_eq!(head(&report), "o no fault healthy");
    }

    #[test]
    fn a_number_is_said_once_and_one_reason_clears_many() {
        let mut report = crate::diagnose::testing();
        report.findings[0].text = "seen (2 x)".to_owned();
        let mut other = report.considered[0].clone();
        other.verdict = crate::model::VerdictId::Throttled;
        report.considered.push(other);
        let shown = text(&report, layout(80, false));
        assert!(!shown.contains("(2 x) (2 x)"), "{shown}");
        assert!(shown.contains("- thrash, throttled: no swap"), "{shown}");
    }

    #[test]
    fn narrow_and_ascii() {
        let shown = text(&crate::diagnose::testing(), layout(48, true));
        assert!(shown.is_ascii(), "{shown}");
        insta::assert_snapshot!("diagnosis_48_ascii", shown);
    }

    #[test]
    fn only_what_is_to_be_copied_is_wider_than_it_may_be_and_nothing_steers() {
        let mut report = crate::diagnose::testing();
        report.notes = vec!["x\u{1b}[2J".repeat(60)];
        report.sentence = "y\u{202e}".repeat(300);
        for columns in [0, 40, 61, 80, 300] {
            let shown = text(&report, layout(columns, false));
            assert!(!shown.contains(['\u{1b}', '\u{202e}']));
            let lines = shown.lines().filter(|l| !l.starts_with("  set"));
            let widest = lines.map(width).max().unwrap();
            assert!(widest <= columns.clamp(NARROWEST, WIDEST), "{columns}");
        }
        let color = Layout {
            color: true,
            ..layout(80, false)
        };
        assert!(text(&report, color).contains("\u{1b}[1;31m✖ error\u{1b}[0m"));
    }
}
