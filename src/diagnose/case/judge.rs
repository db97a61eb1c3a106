//! A case to its report.

use std::ops::ControlFlow;
use std::path::Path;

use crate::diagnose::meta::Meta;
use crate::diagnose::notes::Notes;
use crate::diagnose::player::{Fold, Player, Told};
use crate::diagnose::report::{Cited, Report, SourceKind, Stats, Workload};
use crate::diagnose::story::{Names, Story, round};
use crate::diagnose::{InputError, head, log};
use crate::model::{Cite, CiteKind, Health, Mono};
use crate::workload::adapter::AdapterKind;

use super::{CONSOLE, Case, Opened};

/// Judges a case folder.
pub(in crate::diagnose) fn judge(dir: &Path) -> Result<Report, InputError> {
    let mut notes = Notes::default();
    let case = match Case::open(dir, &mut notes)? {
        Opened::Timed(case) => case,
        Opened::Text(meta, exit) => return log::of_case(&dir.join(CONSOLE), &meta, exit, notes),
    };
    let meta = case.meta.clone();
    let kind = kind(&meta, dir);
    let mut player = case.player(kind, Fold::Judge);
    let mut story = Story::default();
    hear(&mut story, &mut player);
    let amount = case.play(&mut player, &mut notes, |p| {
        hear(&mut story, p);
        ControlFlow::Continue(())
    })?;
    let state = player.state();
    let mut end = state.verdict().clone();
    end.phase = state.phase();
    let mut report = story.report(
        SourceKind::Case,
        (&end, amount.end),
        &InCase(&player),
        notes,
    );
    if report.verdict.is_no_fault() && report.health != Health::Finished {
        report.phase = state.phase();
    }
    report.path = dir.display().to_string();
    report.find.clone_from(&player.tail().find);
    report.last_words = player.tail().words();
    report.workload = workload(&meta, player.adapter());
    report.stats = Stats {
        lines: player.tail().lines,
        rows: amount.rows,
        kernel_lines: amount.kernel,
        dropped: 0,
        duration_s: Some(round(amount.end)),
    };
    Ok(report)
}

/// Plays a case folder as a supervised run would have seen it, for tests of what is decided;
/// `each` is called after every step and may end it. Gives the player at its end, and what
/// was missing. None: the console has no times.
pub fn play(
    dir: &Path,
    fold: Fold,
    each: impl FnMut(&mut Player) -> ControlFlow<()>,
) -> Result<Option<(Player, Vec<String>)>, InputError> {
    let mut notes = Notes::default();
    let Opened::Timed(case) = Case::open(dir, &mut notes)? else {
        return Ok(None);
    };
    let mut player = case.player(kind(&case.meta, dir), fold);
    case.play(&mut player, &mut notes, each)?;
    Ok(Some((player, notes.into_list())))
}

/// The family by the command line; without one by the lines.
fn kind(meta: &Meta, dir: &Path) -> AdapterKind {
    if meta.argv.is_empty() {
        log::kind_of(&Case::beginning(dir))
    } else {
        head::kind(meta)
    }
}

fn hear(story: &mut Story, player: &mut Player) {
    for (t, told) in player.take() {
        match told {
            Told::Verdict(verdict) => story.tell(t, &verdict, &InCase(player)),
            Told::Job(change) => story.observe_job(&change),
            Told::Decision(_) | Told::Phase(_) => {}
        }
    }
    story.refine(player.state().verdict(), &InCase(player));
}

pub(in crate::diagnose) fn workload(meta: &Meta, kind: AdapterKind) -> Workload {
    let known = |s: &String| Some(s.clone()).filter(|s| !s.is_empty());
    Workload {
        adapter: kind.to_string(),
        argv: meta.argv.clone(),
        gpu: known(&meta.gpu),
        arch: known(&meta.arch),
        watch: None,
    }
}

struct InCase<'a>(&'a Player);

impl Names for InCase<'_> {
    fn cited(&self, cite: &Cite) -> Cited {
        let place = self.0.place(cite.seq);
        let (file, line) = match cite.kind {
            CiteKind::Console => (Some(CONSOLE), cite.line),
            _ => (place.map(|p| p.file), place.map(|p| p.line)),
        };
        Cited {
            kind: cite.kind,
            file: file.map(str::to_owned),
            line,
            t_s: Some(self.seconds(cite.at).max(0.0)),
            text: cite.text.clone(),
        }
    }

    fn seconds(&self, at: Mono) -> f64 {
        round(self.0.seconds(at))
    }
}
