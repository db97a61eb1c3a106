//! Is it alive, why do we think so, what happens next and when.

use crate::model::time::clock;
use crate::model::{Health, VerdictId};
use crate::run::Snapshot;
use crate::run::snapshot::{Freshness, Stage};
use crate::ui::text::number;
use crate::ui::tui::parts::{LABEL, Parts, Row, gauge, paragraph};
use crate::ui::tui::theme::Theme;
use crate::ui::words::{self, Tone};

use super::rank;

/// What the panel may take.
#[derive(Debug, Clone, Copy)]
pub(in crate::ui::tui) struct Room {
    /// Columns.
    pub(in crate::ui::tui) columns: usize,
    /// Rows of a sentence.
    pub(in crate::ui::tui) sentence: usize,
    /// Whether the path of the result is shown here.
    pub(in crate::ui::tui) result: bool,
}

/// The health word with its symbol, since when, and the verdict.
fn head(s: &Snapshot, theme: Theme) -> Parts {
    let v = &s.verdict;
    let shown = words::health(s);
    let word = format!("{} {}", theme.health(shown.symbol), shown.word);
    let mut row = Parts::new(theme).symbol(0, shown.tone, word);
    if !shown.judged {
        return row;
    }
    row = row.put(
        3,
        Tone::Plain,
        format!("for {}", clock(s.now.since(s.verdict_since))),
    );
    // The health word says these already, and of what is not ours nothing is found out.
    if !s.is_foreign() && !matches!(v.id, VerdictId::Healthy | VerdictId::Finished) {
        row = row.put(1, Tone::Strong, v.id.as_str());
    }
    if crate::ui::diagnosis::is_fault(v.health) && !s.is_foreign() {
        row = row.put(2, Tone::Plain, "d: why");
    }
    if !v.id.is_no_fault() {
        row = row.put(
            4,
            Tone::Dim,
            format!("confidence {}", number(v.confidence, 2)),
        );
    }
    row
}

/// Health, what is done now, phase, reason, next limit, decision; after the end
/// the outcome and the result.
pub(in crate::ui::tui) fn rows(s: &Snapshot, theme: Theme, room: Room) -> Vec<Row> {
    let columns = room.columns;
    // the rows of an open Find say the rest
    let most = if s.find.is_some() { 2 } else { room.sentence };
    let sentence = room.sentence.min(most);
    let mut rows = vec![head(s, theme).row(columns, rank::KEEP)];
    if s.outcome.is_some() {
        rows.extend(ending(s, theme, room));
    } else if matches!(s.freshness, Freshness::CatchingUp { .. }) {
        // of an earlier state nothing is said as if it were so now
        rows.extend(now(s, theme, columns));
        return rows;
    } else if !s.is_foreign() {
        rows.extend(now(s, theme, columns));
        rows.push(phase(s, theme, columns));
        rows.extend(bar(s, theme, columns));
    }
    let reason = &s.verdict.sentence;
    rows.extend(paragraph(
        theme,
        "reason",
        Tone::Plain,
        reason,
        columns,
        sentence,
        rank::CORE,
    ));
    rows.extend(next(s, theme, columns));
    rows.extend(super::find::rows(s, theme, columns));
    if let Some(why) = &s.decision {
        rows.extend(paragraph(
            theme,
            "why",
            Tone::Plain,
            why,
            columns,
            sentence,
            rank::LADDER,
        ));
    }
    rows
}

/// What the supervisor does besides watching, and the key that matters.
fn now(s: &Snapshot, theme: Theme, columns: usize) -> Vec<Row> {
    let live = words::not_live(s).is_none();
    if live && matches!(s.stage, Stage::Watching) && !words::needs_start_again(s) {
        return Vec::new();
    }
    let (head, text, tone) = words::stage(s);
    // what matters first: the rest may be cut
    let words = match s.stage {
        _ if !live => format!("{head}  {text}"),
        Stage::Countdown { held: true, .. } => format!("{head}  (h releases)  {text}"),
        Stage::Countdown { .. } => format!("{head}  {text}  (h holds it)"),
        _ => format!("{head}  {text}"),
    };
    paragraph(theme, "now", tone, &words, columns, 3, rank::KEEP)
}

/// Phase and section.
fn phase(s: &Snapshot, theme: Theme, columns: usize) -> Row {
    let row = Parts::labelled(theme, "phase").put(0, Tone::Strong, s.phase.as_str());
    let row = match (s.section, s.sections) {
        (Some(n), Some(all)) => row.put(1, Tone::Plain, format!("section {n}/{all}")),
        (Some(n), None) => row.put(1, Tone::Plain, format!("section {n}")),
        (None, _) => row,
    };
    row.put(
        2,
        Tone::Plain,
        format!("for {}", clock(s.now.since(s.phase_since))),
    )
    .row(columns, beside_reason(s))
}

/// Rank of phase and bar: where the run is not well, the reason stays longer.
fn beside_reason(s: &Snapshot) -> u8 {
    match s.verdict.health {
        Health::Starting | Health::Healthy | Health::Quiet | Health::Finished => rank::CORE,
        _ => rank::NEXT,
    }
}

/// The last bar, its pace, and when it ends at that pace.
fn bar(s: &Snapshot, theme: Theme, columns: usize) -> Option<Row> {
    let p = words::progress(s.progress.as_ref()?);
    let mut row = Parts::labelled(theme, "bar").put(0, Tone::Plain, &p.done);
    if let Some(share) = p.percent {
        row = row.symbol(5, Tone::Plain, gauge(theme, share, 16)).put(
            1,
            Tone::Plain,
            format!("{} %", number(share, 0)),
        );
    }
    let row = row
        .put(3, Tone::Plain, p.pace.as_deref().unwrap_or(""))
        .put(
            4,
            Tone::Plain,
            words::bar_left(s).map_or_else(String::new, |l| format!("ends in {l}")),
        )
        .row(columns, beside_reason(s));
    Some(row)
}

/// The next limit with its countdown.
fn next(s: &Snapshot, theme: Theme, columns: usize) -> Vec<Row> {
    let announced = matches!(s.stage, Stage::Countdown { .. });
    let live = words::not_live(s).is_none();
    if s.outcome.is_some() || announced || s.is_foreign() || !live {
        return Vec::new();
    }
    if s.resend.waiting > 0 {
        let text = words::waiting_prompts(s.resend.waiting);
        return paragraph(theme, "queue", Tone::Warn, &text, columns, 2, rank::KEEP);
    }
    let (text, tone) = match &s.verdict.next {
        Some(n) => {
            let room = columns.saturating_sub(LABEL);
            (words::next_limit(s, n, room), Tone::Strong)
        }
        None if !matches!(s.stage, Stage::Watching) => return Vec::new(),
        // a record tells a limit only with a verdict: that of this phase is not known
        None if s.verdict.phase != s.phase => return Vec::new(),
        None => ("no limit is running".to_owned(), Tone::Dim),
    };
    let rank = if s.verdict.next.is_some() {
        rank::NEXT
    } else {
        rank::HOST
    };
    paragraph(theme, "next", tone, &text, columns, 2, rank)
}

/// The last words: outcome, exit code, result, where the evidence is.
fn ending(s: &Snapshot, theme: Theme, room: Room) -> Vec<Row> {
    let Some((_, code, sentence)) = &s.outcome else {
        return Vec::new();
    };
    let columns = room.columns;
    let tone = words::health(s).tone;
    let text = format!("exit code {code}: {sentence}");
    let mut rows = paragraph(
        theme,
        "end",
        tone,
        &text,
        columns,
        room.sentence,
        rank::KEEP,
    );
    if room.result {
        rows.extend(result(s, theme, columns));
    }
    if let Some(a) = &s.result {
        let made = format!(
            "made by attempt {} on rung {}, {}",
            a.attempt,
            a.rung,
            a.extent()
        );
        let row = paragraph(theme, "", Tone::Dim, &made, columns, 1, rank::PROCESS);
        rows.extend(row);
    }
    if let Some(e) = s.evidence.last() {
        rows.extend(paragraph(
            theme,
            "proof",
            Tone::Dim,
            &e.dir,
            columns,
            2,
            rank::TROUBLE,
        ));
    }
    rows
}

/// The path of the result. A path is no sentence: it may break anywhere, but it
/// is not cut as long as four rows hold it.
pub(in crate::ui::tui) fn result(s: &Snapshot, theme: Theme, columns: usize) -> Vec<Row> {
    let (text, tone, lines, rank) = match &s.result {
        Some(a) => (a.path.as_str(), Tone::Strong, 4, rank::KEEP),
        None => ("none was written", Tone::Warn, 1, rank::CORE),
    };
    paragraph(theme, "result", tone, text, columns, lines, rank)
}
