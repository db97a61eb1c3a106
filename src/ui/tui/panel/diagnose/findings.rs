//! The rules that were asked, what they rest on, and the events behind that.

use ratatui::text::Line;

use crate::model::{Finding, Health, RuleState, Verdict, VerdictId};
use crate::run::Snapshot;
use crate::ui::diagnosis::{self, cited, source};
use crate::ui::questions::Asked;
use crate::ui::text;
use crate::ui::tui::chart_choices::ChartChoices;
use crate::ui::tui::diagnose_choices::{DiagnoseChoices, Item, cites as events, items, shown};
use crate::ui::tui::parts::Parts;
use crate::ui::tui::theme::Theme;
use crate::ui::words::Tone;

/// Columns of a rule's name where there is room for all of them.
const NAME: usize = 18;
/// Below this width nothing stands below each other.
const NARROW: usize = 50;
/// Columns of the name of a question.
const QUESTION: usize = 5;
/// Columns of the word for what a rule said, and for an answer.
const WORD: usize = 7;

/// How many rules matched, and the place of the marked row.
pub(in crate::ui::tui) fn title(
    s: &Snapshot,
    charts: &ChartChoices,
    choices: &DiagnoseChoices,
) -> String {
    let (v, _) = shown(s, charts);
    let list = items(v);
    let all = list.len();
    let at = choices.marked_row(&list) + 1;
    let asked = v.considered.len();
    let matched = (v.considered.iter()).filter(|rule| rule.state == RuleState::Match);
    let rules = match asked {
        0 => String::new(),
        n => format!("  {} of {n} rules matched", matched.count()),
    };
    match all {
        0 => format!("Findings and rules{rules}"),
        all => format!("Findings and rules{rules}  {at}/{all}"),
    }
}

/// The marked row in sight.
pub(in crate::ui::tui) fn rows(
    s: &Snapshot,
    charts: &ChartChoices,
    choices: &DiagnoseChoices,
    theme: Theme,
    (columns, height): (usize, usize),
) -> Vec<Line<'static>> {
    let (v, _) = shown(s, charts);
    let list = items(v);
    if list.is_empty() {
        let words = text::fit(nothing(s, v), columns, theme.ellipsis());
        return vec![Line::styled(words, theme.style(Tone::Dim))];
    }
    let marked = choices.marked_row(&list);
    let row = |(at, item): (usize, &Item<'_>)| {
        let is_marked = at == marked;
        match item {
            Item::Question(asked) => question_row(asked, theme, columns, is_marked),
            Item::Rule(c) => rule_row((c.verdict, c.state, &c.why), theme, columns, is_marked),
            Item::Unasked(id, state) => rule_row((*id, *state, ""), theme, columns, is_marked),
            Item::Finding(f) => finding_row(f, theme, columns, is_marked),
            Item::RuledOut(words) => Parts::new(theme)
                .symbol(0, Tone::Strong, format!("{}  ", mark(theme, is_marked)))
                .put(0, Tone::Dim, "is not")
                .put(0, Tone::Plain, words)
                .line(columns),
        }
    };
    // one row of what comes after the marked one stays in sight
    let first = (marked + 2).saturating_sub(height).min(marked);
    let first = first.min(list.len().saturating_sub(height));
    (list.iter().enumerate().skip(first).take(height))
        .map(row)
        .collect()
}

fn nothing(s: &Snapshot, v: &Verdict) -> &'static str {
    if s.is_foreign() {
        "nothing of a process that is not ours is judged"
    } else if v.health == Health::Blind {
        "no finding: too little is seen"
    } else if v.id.is_no_fault() {
        "no finding: nothing speaks against this run"
    } else {
        "the record tells no rule and no finding"
    }
}

const fn mark(theme: Theme, marked: bool) -> &'static str {
    if marked { theme.pick("▶", ">") } else { " " }
}

/// A question with its answer and what says so.
fn question_row(asked: &Asked, theme: Theme, columns: usize, marked: bool) -> Line<'static> {
    let tone = if marked { Tone::Strong } else { Tone::Plain };
    let room = columns.saturating_sub(5 + QUESTION + WORD + 2);
    let source = text::clean(&asked.source, theme.ascii);
    Parts::new(theme)
        .symbol(0, Tone::Strong, format!("{}  ", mark(theme, marked)))
        .put(0, tone, asked.name)
        .put(0, Tone::Strong, asked.answer)
        .put(1, tone, text::fit(&source, room, theme.ellipsis()))
        .aligned(&[0, QUESTION, WORD])
        .line(columns)
}

/// A rule with its answer and the number that decided.
fn rule_row(
    rule: (VerdictId, RuleState, &str),
    theme: Theme,
    columns: usize,
    marked: bool,
) -> Line<'static> {
    let (id, state, why) = rule;
    let (word, tone) = diagnosis::rule(state);
    let head = format!("{} {}", mark(theme, marked), theme.rule(state));
    let name = match (marked, state) {
        (true, _) | (_, RuleState::Match) => Tone::Strong,
        _ => Tone::Plain,
    };
    Parts::new(theme)
        .symbol(0, if marked { Tone::Strong } else { tone }, head)
        .put(0, name, id.as_str())
        .put(0, tone, word)
        .put(0, Tone::Plain, why)
        .aligned(if columns < NARROW {
            &[]
        } else {
            &[0, NAME, WORD]
        })
        .line(columns)
}

fn finding_row(f: &Finding, theme: Theme, columns: usize, marked: bool) -> Line<'static> {
    let head = format!("{}  ", mark(theme, marked));
    let times = match f.count {
        0 | 1 => String::new(),
        n => format!("{n} times"),
    };
    let behind = cited(f);
    let tone = if marked { Tone::Strong } else { Tone::Plain };
    // the words of the finding before where they stand
    let room = columns.saturating_sub(5);
    let words = text::clean(&f.text, theme.ascii);
    let fitted = text::fit(&words, room, theme.ellipsis());
    Parts::new(theme)
        .symbol(0, Tone::Strong, head)
        .put(0, tone, fitted)
        .put(1, Tone::Plain, times)
        .put(2, Tone::Dim, behind)
        .line(columns)
}

/// The events behind the marked row: where they stand, when they came, their words.
pub(in crate::ui::tui) fn cites(
    s: &Snapshot,
    charts: &ChartChoices,
    choices: &DiagnoseChoices,
    theme: Theme,
    picked: usize,
    (columns, height): (usize, usize),
) -> Vec<Line<'static>> {
    let (v, _) = shown(s, charts);
    let list = events(v, choices);
    if list.is_empty() {
        let words = "the verdict has changed meanwhile";
        return vec![Line::styled(words, theme.style(Tone::Dim))];
    }
    let picked = picked.min(list.len() - 1);
    let mut lines = Vec::new();
    let mut at = (0, 0);
    for (n, cite) in list.iter().enumerate() {
        let marked = n == picked;
        let tone = if marked { Tone::Strong } else { Tone::Plain };
        let head = Parts::new(theme)
            .symbol(0, tone, mark(theme, marked).to_owned())
            .put(0, Tone::Dim, cite.at.clock())
            .put(0, Tone::Info, source(cite))
            .put(2, Tone::Dim, format!("event {}", cite.seq));
        let begin = lines.len();
        lines.push(head.line(columns));
        // the marked one in full
        let rows = if marked { 6 } else { 1 };
        let words = text::clean(&cite.text, theme.ascii);
        let pieces = text::wrap(&words, columns.saturating_sub(3), rows, theme.ellipsis());
        lines.extend(
            pieces
                .into_iter()
                .map(|p| Line::styled(format!("   {p}"), theme.style(tone))),
        );
        if marked {
            at = (begin, lines.len());
        }
    }
    let first = at.1.saturating_sub(height).min(at.0);
    lines.into_iter().skip(first).take(height).collect()
}
