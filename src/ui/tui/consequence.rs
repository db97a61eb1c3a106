//! What an answer to a question does: which processes end, what stays.

use ratatui::text::Line;

use crate::model::RungId;
use crate::model::time::clock;
use crate::model::worker::is_own_decode;
use crate::run::Snapshot;
use crate::run::snapshot::Freshness;
use crate::ui::text::{ago, fit};
use crate::ui::words::{self, Tone};

use super::choices::Overlay;
use super::panel::profile::rung_changes;
use super::parts::{paragraph, shed};
use super::profile_choices::{changes, rung_of};
use super::view::ViewOptions;

/// Rows of one fact.
const ROWS: usize = 2;

/// What the question that is open is about, at most so many columns wide.
pub(super) fn lines(s: &Snapshot, o: &ViewOptions, columns: usize) -> Vec<Line<'static>> {
    let mut rows = Vec::new();
    let mut put = |label: &str, tone, text: &str| {
        rows.extend(paragraph(o.theme, label, tone, text, columns, ROWS, 0));
    };
    match o.choices.overlay {
        Overlay::Kill => {
            put("ends", Tone::Strong, &who(s));
            put(
                "how",
                Tone::Plain,
                "by SIGKILL, at once; the run ends with it",
            );
            put("lost", Tone::Plain, lost(s));
        }
        Overlay::Stop => {
            put("ends", Tone::Strong, &who(s));
            put(
                "how",
                Tone::Plain,
                &format!("by {}; the run ends with it", how(s)),
            );
        }
        Overlay::AfterStep => {
            put("ends", Tone::Strong, &attempt(s));
            put(
                "how",
                Tone::Plain,
                "by an exception after its step; a script ends with it, a server goes on",
            );
            put("lost", Tone::Plain, lost(s));
        }
        Overlay::Quit => {
            put("now", Tone::Strong, &format!("{} is watched", who(s)));
            put(
                "1",
                Tone::Plain,
                &format!("{}; the run ends with it", how(s)),
            );
            put(
                "2",
                Tone::Plain,
                "goes on, is watched and restarted as before, without a countdown; `framepack-tui follow` attaches to it",
            );
        }
        Overlay::Apply => {
            put("ends", Tone::Strong, &attempt(s));
            put("starts", Tone::Strong, &next(s, o));
            put("lost", Tone::Plain, lost(s));
        }
        Overlay::TakeRung => {
            put("ends", Tone::Strong, &attempt(s));
            put("starts", Tone::Strong, &rung(s, o));
            put("lost", Tone::Plain, lost(s));
        }
        _ => {}
    }
    put("stays", Tone::Plain, &stays(s));
    if let Some(record) = &o.record {
        let room = columns.saturating_sub(super::parts::LABEL) * ROWS;
        put(
            "record",
            Tone::Plain,
            &fit(record, room, o.theme.ellipsis()),
        );
    }
    shed(rows, usize::MAX)
}

/// What ends with the process.
fn lost(s: &Snapshot) -> &'static str {
    if is_own_decode(&s.argv) {
        "the frames in work"
    } else {
        "what the program has not written yet"
    }
}

/// The attempt and how far it is.
fn attempt(s: &Snapshot) -> String {
    let number = s.attempt.as_ref().map_or_else(
        || "the attempt".to_owned(),
        |a| format!("attempt {} on {}", a.number, a.rung),
    );
    let pid = s.pid.map_or_else(String::new, |pid| format!(", pid {pid}"));
    let section = match (s.section, s.sections) {
        (Some(n), Some(of)) => format!(" section {n}/{of}"),
        (Some(n), None) => format!(" section {n}"),
        _ => String::new(),
    };
    let done = s.progress.as_ref();
    let done = done.map_or_else(String::new, |p| format!(" {}", words::progress(p).done));
    let running = clock(s.now.since(s.attempt_since));
    let phase = s.phase.as_str();
    format!("{number}{pid}, after {running}, in {phase}{section}{done}")
}

/// The attempt that follows, with what was chosen.
fn next(s: &Snapshot, o: &ViewOptions) -> String {
    // another profile's ladder may lack it
    let stays = |id: &RungId| s.ladder.iter().any(|e| e.id == *id);
    let rung = s.attempt.as_ref().map(|a| &a.rung).filter(|r| stays(r));
    let rung = rung.map_or_else(String::new, |r| format!(" on {r}"));
    match changes(s, o.theme.pick("→", "->")).as_slice() {
        [] => format!("the next attempt{rung}, the same again: nothing was chosen"),
        list => format!("the next attempt{rung}: {}", list.join(", ")),
    }
}

/// The attempt on the rung that is marked.
fn rung(s: &Snapshot, o: &ViewOptions) -> String {
    let picked = o.choices.picked.min(s.ladder.len().saturating_sub(1));
    let id = s.ladder.get(picked).map_or("", |e| e.id.0.as_str());
    let changes =
        rung_of(s, &o.profiles, id).map_or_else(String::new, |r| format!(": {}", rung_changes(r)));
    format!("the next attempt on rung {picked} {id}{changes}")
}

/// The processes of the run.
fn who(s: &Snapshot) -> String {
    if matches!(s.freshness, Freshness::CatchingUp { .. }) {
        return "the processes of the run (this screen is behind it)".to_owned();
    }
    let Some(pid) = s.pid else {
        return "no process (none lives now)".to_owned();
    };
    // the end of a long command is what tells it from others less than its begin
    let command = fit(&s.argv.join(" "), 60, "...");
    let others = s
        .process
        .as_ref()
        .map_or(0, |p| p.processes.saturating_sub(1));
    match others {
        0 => format!("pid {pid} ({command})"),
        1 => format!("pid {pid} ({command}) and 1 more process"),
        n => format!("pid {pid} ({command}) and {n} more processes"),
    }
}

/// How a stop goes.
fn how(s: &Snapshot) -> String {
    format!(
        "{}, SIGKILL after {}",
        s.kill.first.name(),
        ago(s.kill.grace)
    )
}

/// What is kept whatever is answered.
fn stays(s: &Snapshot) -> String {
    let results = match s.results {
        0 if is_own_decode(&s.argv) => {
            "finished frames beside the output: the same command goes on after them".to_owned()
        }
        0 => "no result is on disk yet".to_owned(),
        1 => "1 result on disk".to_owned(),
        n => format!("{n} results on disk"),
    };
    let evidence = match s.evidence.len() {
        0 => "no evidence was taken".to_owned(),
        1 => "1 bundle of evidence".to_owned(),
        n => format!("{n} bundles of evidence"),
    };
    format!("{results}; {evidence}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decode_of_ours_says_that_its_frames_stay() {
        let mut s = crate::ui::testing::healthy();
        s.results = 0;
        let words = "/bin/framepack-tui worker decode a --output o.mp4";
        s.argv = words.split(' ').map(str::to_owned).collect();
        assert!(stays(&s).starts_with("finished frames beside the output: the same command"));
        assert_eq!(lost(&s), "the frames in work");
        s.results = 1;
        assert!(stays(&s).starts_with("1 result on disk"));
        // an encode begins anew
        s.argv[2] = "encode".to_owned();
        s.results = 0;
        assert!(stays(&s).starts_with("no result is on disk yet"));
        assert_eq!(lost(&s), "what the program has not written yet");
    }
}
