//! What keys make of the diagnosis. Pure.

use crate::model::{Cite, CiteKind, Mono};
use crate::run::Snapshot;
use crate::run::snapshot::LogKind;
use crate::ui::diagnosis;

use super::choices::{Overlay, Screen};
use super::diagnose_choices::{Item, cites, items, marked, shown, timeline};
use super::keymap::Action;
use super::log_choices::Pane;
use super::state::{Effect, PAGE, UiState};

impl UiState {
    /// What only changes which part of the diagnosis is seen. `false`: the action is none
    /// of these.
    pub(super) fn look_at_diagnose(
        &mut self,
        action: Action,
        snapshot: Option<&Snapshot>,
        pane: Pane,
    ) -> bool {
        if action == Action::ShowDiagnose {
            self.choices.screen = Screen::Diagnose;
            return true;
        }
        if self.choices.screen != Screen::Diagnose {
            return false;
        }
        match (action, snapshot) {
            (Action::LeaveDiagnose, _) => self.leave_diagnose(),
            (Action::OpenCites, Some(s)) => self.open_cites(s),
            (Action::ToCite, Some(s)) => self.go_to_cite(s, pane),
            (Action::RuleUp | Action::RuleDown | Action::LogUp | Action::LogDown, Some(s)) => {
                self.move_rule(s, action);
            }
            (Action::Earlier | Action::Later, Some(s)) => {
                let mut charts = timeline(s, &self.choices.charts);
                charts.move_cursor(s, action == Action::Later);
                self.choices.charts.cursor = charts.cursor;
            }
            (Action::Shorter | Action::Longer, Some(s)) => {
                self.choices.charts.range = timeline(s, &self.choices.charts).range;
                self.choices.charts.stretch(s, action == Action::Longer);
            }
            (Action::NextMark | Action::PreviousMark, Some(s)) => {
                self.go_to_mark(s, action == Action::NextMark);
            }
            (Action::CursorFirst, Some(s)) => {
                let charts = timeline(s, &self.choices.charts);
                let picture = charts.picture(s);
                let (ms, _) = charts.span(&picture);
                self.put_cursor(s, Mono(picture.now.0.saturating_sub(ms)));
            }
            (Action::LogEnd, _) => self.choices.charts.cursor = None,
            _ => return false,
        }
        true
    }

    fn say_here(&mut self, what: impl Into<String>) {
        self.toast = Some(what.into());
    }

    fn leave_diagnose(&mut self) {
        let charts = &mut self.choices.charts;
        if charts.cursor.take().is_none() && charts.paused.take().is_none() {
            self.choices.screen = Screen::Dashboard;
        }
    }

    fn open_cites(&mut self, s: &Snapshot) {
        let (v, _) = shown(s, &self.choices.charts);
        let c = &self.choices.diagnose;
        if !cites(v, c).is_empty() {
            self.open(Overlay::Cites);
            return;
        }
        // what is cut on a narrow screen can be read here at least
        let words = match marked(v, c) {
            None => "no finding and no rule speaks".to_owned(),
            Some(Item::Rule(rule)) if !rule.why.is_empty() => {
                format!("{}, no event behind it: {}", rule.verdict, rule.why)
            }
            Some(Item::Question(asked)) => {
                format!("{}: {}", asked.name, asked.words())
            }
            Some(_) => "no event is behind this row".to_owned(),
        };
        self.say_here(words);
    }

    /// To the line in the log, or to the moment on the timeline.
    fn go_to_cite(&mut self, s: &Snapshot, pane: Pane) {
        let (v, _) = shown(s, &self.choices.charts);
        let list = cites(v, &self.choices.diagnose);
        let at = self.choices.picked.min(list.len().saturating_sub(1));
        let cite = list.get(at).map(|c| (*c).clone());
        self.open(Overlay::None);
        let Some(cite) = cite else {
            self.say_here("the verdict has changed meanwhile");
            return;
        };
        if matches!(cite.kind, CiteKind::Console | CiteKind::Kernel) && !s.log.is_empty() {
            self.go_to_line(s, &cite, pane);
        } else {
            self.put_cursor(s, cite.at);
            self.say_here(format!("at {}", cite.at.clock()));
        }
    }

    fn go_to_line(&mut self, s: &Snapshot, cite: &Cite, pane: Pane) {
        let own = cite.kind == CiteKind::Kernel;
        let is_it = |l: &crate::run::snapshot::LogLine| {
            let kind = (l.kind == LogKind::Own) == own;
            kind && if own {
                l.text.contains(&cite.text)
            } else {
                l.text.starts_with(cite.text.as_str())
            }
        };
        // the nearest in time of those that have these words
        let found = s.log.iter().filter(|l| is_it(l));
        let found = found.min_by_key(|l| l.at.0.abs_diff(cite.at.0));
        let to = found.map_or(cite.at, |l| l.at);
        let log = &mut self.choices.log;
        log.hidden = [false; 3];
        log.goto(&s.log, pane, to);
        let place = s.log.iter().position(|l| found.is_some_and(|f| f == l));
        if place.is_some() {
            log.cursor = place;
        }
        self.choices.screen = Screen::Log;
        self.say_here(match found {
            Some(_) => format!("{} at {}", diagnosis::source(cite), to.clock()),
            None => format!(
                "the log no longer keeps this line; nearest to {}",
                cite.at.clock()
            ),
        });
    }

    fn move_rule(&mut self, s: &Snapshot, action: Action) {
        let (v, _) = shown(s, &self.choices.charts);
        let rows = items(v);
        let last = rows.len().saturating_sub(1);
        let at = self.choices.diagnose.marked_row(&rows);
        self.choices.diagnose.row = Some(match action {
            Action::RuleUp => at.saturating_sub(1),
            Action::RuleDown => (at + 1).min(last),
            Action::LogUp => at.saturating_sub(PAGE),
            _ => (at + PAGE).min(last),
        });
    }

    fn go_to_mark(&mut self, s: &Snapshot, later: bool) {
        let from = self.choices.charts.cursor.unwrap_or(s.now);
        let Some(mark) = s.trail.mark_from(from, later) else {
            let where_to = if later { "later" } else { "earlier" };
            self.say_here(format!("no {where_to} mark"));
            return;
        };
        let (at, words) = (mark.at, diagnosis::mark(mark));
        self.put_cursor(s, at);
        self.say_here(format!("{} {words}", at.clock()));
    }

    /// Puts the time cursor somewhere, and that into sight.
    fn put_cursor(&mut self, s: &Snapshot, t: Mono) {
        let mut charts = timeline(s, &self.choices.charts);
        let before = charts.range;
        charts.goto(s, t);
        // a range that was only worked out is no choice of the user's
        if charts.range != before {
            self.choices.charts.range = charts.range;
        }
        self.choices.charts.cursor = charts.cursor;
    }

    /// The verdict that is looked at, as text.
    pub(super) fn copy_verdict(&mut self, s: &Snapshot) -> Effect {
        let (v, since) = shown(s, &self.choices.charts);
        Effect::Copy(diagnosis::text(s, v, since))
    }

    /// Says how a bundle is made: this screen starts no other program.
    pub(super) fn tell_export(&mut self, s: &Snapshot) {
        self.say_here(format!("in a shell: {}", diagnosis::export_command(s)));
    }
}
