//! What was done, what comes next and when, and why that.

use crate::model::{ActionId, Health};
use crate::run::Snapshot;
use crate::run::snapshot::Stage;
use crate::ui::diagnosis::{export_command, is_doubt, is_fault, mark, was_done};
use crate::ui::text::ago;
use crate::ui::tui::panel::rank;
use crate::ui::tui::parts::{Row, paragraph};
use crate::ui::tui::theme::Theme;
use crate::ui::words::{self, Tone};

/// The rows, at most `taken` of what was done.
pub(in crate::ui::tui) fn rows(
    s: &Snapshot,
    theme: Theme,
    columns: usize,
    taken: usize,
) -> Vec<Row> {
    let mut rows = Vec::new();
    if s.is_foreign() {
        let words = "a process that is not ours is only looked at";
        return paragraph(theme, "next", Tone::Dim, words, columns, 2, rank::CORE);
    }
    let mut add = |label: &str, tone, words: &str, lines, rank| {
        rows.extend(paragraph(theme, label, tone, words, columns, lines, rank));
    };
    let (text, tone) = next(s);
    add("next", tone, &text, 2, rank::KEEP);
    // a hold has reasons of its own; why this rung is what one wants to know then
    let held = matches!(s.stage, Stage::Countdown { held: true, .. });
    let why = s.trail.why_rung.as_ref().filter(|_| held);
    if let Some(why) = why.or(s.decision.as_ref()) {
        // what was decided and done is no reason for what comes next
        let label = match s.stage {
            Stage::Watching => "decided",
            _ => "why",
        };
        add(label, Tone::Plain, why, 4, rank::TROUBLE);
    }
    let remedy = s.verdict.remedy.as_ref();
    if let Some(r) = remedy.filter(|r| r.action != ActionId::None && !r.why.is_empty()) {
        let words = format!("{} (tier {}): {}", r.action, r.tier, r.why);
        add("cure", Tone::Plain, &words, 4, rank::TROUBLE);
    }
    let done = s.trail.marks.iter().filter(|m| was_done(m));
    let done: Vec<_> = done.collect();
    let from = done.len().saturating_sub(taken);
    for (n, m) in done.iter().skip(from).enumerate() {
        let label = if n == 0 { "taken" } else { "" };
        let words = format!("{} {}", m.at.clock(), mark(m));
        // the newest stays longest
        let rank = if n + 1 == done.len() - from {
            rank::TROUBLE
        } else {
            rank::PROCESS
        };
        add(label, Tone::Plain, &words, 2, rank);
    }
    if s.outcome.is_none() && s.ladder.len() > 1 && !s.attached {
        let words = format!(
            "{} of {} restarts left ({})",
            s.restarts_left,
            s.budget.restarts,
            ago(s.budget.period)
        );
        add("budget", Tone::Plain, &words, 1, rank::LADDER);
    }
    if let Some(e) = s.evidence.last() {
        add("proof", Tone::Dim, &e.dir, 2, rank::STRIP);
    }
    add("bundle", Tone::Dim, &export_command(s), 2, rank::HOST);
    rows
}

/// What is done now or next, with its countdown and the key that matters.
fn next(s: &Snapshot) -> (String, Tone) {
    // how it ended stands with the verdict
    if s.outcome.is_some() {
        return ("nothing; the run is over".to_owned(), Tone::Plain);
    }
    let (head, text, tone) = words::stage(s);
    match &s.stage {
        _ if words::not_live(s).is_some() => (format!("{head}  {text}"), tone),
        Stage::Countdown { held: true, .. } => (format!("{head}  (h releases)  {text}"), tone),
        Stage::Countdown { .. } => (format!("{head}  {text}  (h holds it, w +60 s)"), tone),
        Stage::Watching if !words::needs_start_again(s) => (watching(s), Tone::Plain),
        _ => (format!("{head}  {text}"), tone),
    }
}

/// While nothing is announced: what would follow.
fn watching(s: &Snapshot) -> String {
    use crate::run::snapshot::RungState as R;
    let is = |state: R| s.ladder.iter().find(|e| e.state == state);
    // which rung answers is known of a doubt only
    let follows = match is(R::Next) {
        _ if s.restarts_left == 0 => "no restart is left".to_owned(),
        Some(e) => format!("rung {} would follow", e.id),
        None if is_doubt(&s.verdict) => "no rung would follow".to_owned(),
        None if is(R::Untried).is_some() => "the rung that answers it follows".to_owned(),
        None => "no rung is left".to_owned(),
    };
    let (then, after_fault) = if s.attached {
        let words = "it is not ours: nothing is done to it";
        (words.to_owned(), words.to_owned())
    } else {
        (
            format!("then {follows}"),
            format!("after a fault {follows}"),
        )
    };
    match &s.verdict.next {
        Some(n) if is_doubt(&s.verdict) && n.at <= s.now => {
            format!("{} is due now; {then}", n.what)
        }
        Some(n) if is_doubt(&s.verdict) => {
            let left = crate::ui::text::left(n.at.since(s.now));
            format!("{} in {left}; {then}", n.what)
        }
        _ if is_fault(s.verdict.health) && s.attached => then,
        _ if is_fault(s.verdict.health) => follows,
        _ if s.verdict.health == Health::Blind => {
            "nothing is done before enough is seen to judge".to_owned()
        }
        _ => format!("nothing is to be done; {after_fault}"),
    }
}
