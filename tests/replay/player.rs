//! Plays a case as a supervised run would have seen it, until the run is decided.

use std::cell::Cell;
use std::ops::ControlFlow;

use framepack_tui::detect::Thresholds;
use framepack_tui::diagnose::head;
use framepack_tui::diagnose::play as play_folder;
use framepack_tui::diagnose::player::{Fold, Item, Player, Told};
use framepack_tui::model::event::{Choice, Decision};
use framepack_tui::model::{Health, Phase, Verdict, VerdictId};

use crate::case::Case;

/// Time in one row, and what a clock may deviate before it is a jump.
const ROW_S: f64 = 1.0;
const JUMP_S: f64 = 2.5;

thread_local! {
    /// Numbers of the rules for what is played in this thread.
    static NUMBERS: Cell<Thresholds> = const { Cell::new(Thresholds::DEFAULT) };
}

/// Plays with other numbers in the rules, whatever `f` plays in this thread.
pub(crate) fn with_numbers<R>(numbers: &Thresholds, f: impl FnOnce() -> R) -> R {
    let before = NUMBERS.replace(*numbers);
    let result = f();
    NUMBERS.set(before);
    result
}

/// Those that are in force in this thread.
pub(crate) fn numbers() -> Thresholds {
    NUMBERS.get()
}

/// What came out.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Each verdict that was told, at its time in the case.
    pub(crate) verdicts: Vec<(f64, Verdict)>,
    pub(crate) decisions: Vec<(f64, Decision)>,
    /// Phases, for messages of failing tests.
    pub(crate) phases: Vec<(f64, Phase)>,
    pub(crate) phase: Option<Phase>,
}

/// Plays the whole case, or until the run is decided.
pub(crate) fn play(case: &Case) -> Outcome {
    let mut out = Outcome::default();
    let player = match &case.folder {
        Some(folder) => {
            let mut fresh = true;
            let whole = play_folder(folder, Fold::Live, |p| {
                if std::mem::take(&mut fresh) {
                    p.set_thresholds(&NUMBERS.get());
                }
                out.hear(p)
            });
            let (player, notes) = whole.unwrap().expect("a console with times");
            assert_eq!(notes, Vec::<String>::new(), "{}", case.name);
            player
        }
        None => scripted(case, &mut out),
    };
    out.phase = Some(player.state().phase());
    out
}

fn scripted(case: &Case, out: &mut Outcome) -> Player {
    let kernel = case.kernel.iter().map(|(_, text)| text.as_str());
    let kind = head::kind(&case.meta);
    let fold = if case.to_the_end {
        Fold::Judge
    } else {
        Fold::Live
    };
    let before = match case.before.as_slice() {
        [] => case.rows.first().map_or(&[][..], std::slice::from_ref),
        given => given,
    };
    let mut player = Player::new(&case.meta, kind, fold, kernel, before);
    player.set_thresholds(&NUMBERS.get());
    let mut goes_on = out.hear(&mut player);
    for (t, item) in timeline(case) {
        if goes_on.is_break() {
            break;
        }
        player.play(t, None, item);
        goes_on = out.hear(&mut player);
    }
    player
}

fn timeline(case: &Case) -> Vec<(f64, Item<'_>)> {
    let mut items = Vec::new();
    let mut last = None;
    for row in &case.rows {
        // else the clock of the run leaps
        if let Some(last) = last.filter(|l| row.t - l > JUMP_S && !case.sleep_untold) {
            items.push((row.t, 0, Item::Slept(row.t - last - ROW_S)));
        }
        last = Some(row.t);
        for half in [0.0, 0.5] {
            items.push((row.t + half, 2, Item::Sample(row, ROW_S)));
            items.push((row.t + half + 0.25, 2, Item::Tick));
        }
    }
    let console = case.console.iter();
    items.extend(console.map(|(t, bytes)| (*t, 1, Item::Output(bytes.as_slice()))));
    items.extend(case.kernel.iter().map(|(t, s)| (*t, 1, Item::Kernel(s))));
    items.extend(case.events.iter().map(|(t, h)| (*t, 1, Item::Happened(*h))));
    items.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    items.into_iter().map(|(t, _, item)| (t, item)).collect()
}

impl Outcome {
    /// Takes what was told, until the run is decided.
    fn hear(&mut self, player: &mut Player) -> ControlFlow<()> {
        let mut over = player.state().is_over();
        for (t, told) in player.take() {
            match told {
                Told::Verdict(v) => self.verdicts.push((t, *v)),
                Told::Decision(d) => {
                    over |= matches!(d.choice, Choice::Restart { .. } | Choice::GiveUp);
                    self.decisions.push((t, *d));
                }
                Told::Phase(p) => self.phases.push((t, p)),
                Told::Job(_) => {}
            }
        }
        if over {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    /// The verdicts that stand: a suspicion is no verdict yet.
    pub(crate) fn shown(&self) -> impl Iterator<Item = (f64, &Verdict)> {
        let told = self.verdicts.iter().map(|(t, v)| (*t, v));
        told.filter(|(_, v)| v.health != Health::Suspect)
    }

    /// What stood at a time.
    pub(crate) fn at(&self, t: f64) -> Option<VerdictId> {
        let before = self.shown().take_while(|(at, _)| *at <= t);
        before.last().map(|(_, v)| v.id)
    }

    /// The main answer: the most severe verdict that stood, among the harmless ones the
    /// last.
    pub(crate) fn main(&self) -> Option<(f64, &Verdict)> {
        let fault = self
            .shown()
            .filter(|(_, v)| !v.id.is_no_fault())
            .min_by_key(|(_, v)| std::cmp::Reverse(v.id.severity()));
        fault.or_else(|| self.shown().last())
    }

    /// One line a change, for messages.
    pub(crate) fn story(&self) -> String {
        let mut lines: Vec<(f64, String)> = self
            .verdicts
            .iter()
            .map(|(t, v)| {
                let word = v.health.word();
                (
                    *t,
                    format!("{word} {} in {}: {}", v.id, v.phase, v.sentence),
                )
            })
            .collect();
        lines.extend(self.phases.iter().map(|(t, p)| (*t, format!("-- {p}"))));
        let decided = self.decisions.iter();
        lines.extend(decided.map(|(t, d)| (*t, format!("{:?}: {}", d.choice, d.why))));
        lines.sort_by(|a, b| a.0.total_cmp(&b.0));
        let text = lines.iter().map(|(t, l)| format!("    {t:7.2} {l}\n"));
        text.collect()
    }
}
