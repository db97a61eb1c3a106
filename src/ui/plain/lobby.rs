//! What is there before anything was started, as text.

use crate::model::Bytes;
use crate::ui::card;
use crate::ui::lobby::{self, HOW_TO_START, Lobby, RunState};
use crate::ui::text::{clean, number};
use crate::ui::words::{self, Tone, reading};

/// The state of the machine and of what was kept on it, in lines for people and screen
/// readers. With `ascii`, nothing outside ASCII.
pub fn lobby_text(l: &Lobby, ascii: bool) -> String {
    let mut out = machine(l);
    out.extend(processes(l));
    out.extend(runs(l));
    out.push("profiles:".to_owned());
    for p in &l.profiles {
        let (word, why, _) = lobby::fit(p);
        let why = why.map_or_else(String::new, |why| format!(": {why}"));
        let title = p.title.as_deref().unwrap_or("-");
        out.push(format!("  {}  {title} ({word}{why})", p.id));
    }
    out.push("to start:".to_owned());
    out.push("  framepack-tui run -- COMMAND, or framepack-tui alone in a terminal:".to_owned());
    out.push(format!("  press r and {HOW_TO_START}"));
    let mut text = String::new();
    for line in out {
        text.push_str(&clean(&line, ascii));
        text.push('\n');
    }
    text
}

/// Cards, host, and the sources that are not well.
fn machine(l: &Lobby) -> Vec<String> {
    let mut out = vec!["cards:".to_owned()];
    if l.gpus.is_empty() {
        out.push(format!("  {}", lobby::no_card(l)));
    }
    for g in &l.gpus {
        let arch = g.arch.as_deref().unwrap_or("architecture --");
        let mut levels: Vec<_> = lobby::levels(l, g)
            .into_iter()
            .map(|(label, r)| {
                let words = match r.note {
                    Some(note) if r.tone != Tone::Dim => format!("{} ({note})", r.text),
                    _ => r.text,
                };
                [label, &words].join(" ").trim_start().to_owned()
            })
            .collect();
        levels.extend(card::held_back(g));
        levels.extend(lobby::read_ago(l, g));
        out.push(format!(
            "  GPU {}  {}  {arch} at {}: {}",
            g.index,
            g.name,
            g.id,
            levels.join(", ")
        ));
    }
    let show = |b: &Bytes| b.to_string();
    out.push(format!(
        "host: {} of {} memory available, load {}",
        reading(&l.host.mem_available, show).short(),
        reading(&l.host.mem_total, show).short(),
        reading(&l.host.load1, |v| number(*v, 1)).short(),
    ));
    let ill = l
        .sources
        .iter()
        .map(|s| (s, words::source(s)))
        .filter(|(_, (_, tone))| matches!(tone, Tone::Warn | Tone::Bad));
    out.extend(ill.map(|(s, (words, _))| format!("  source {} {words}", s.name)));
    out
}

fn processes(l: &Lobby) -> Vec<String> {
    let mut out = vec!["found running:".to_owned()];
    if l.found().is_empty() {
        out.push(format!("  {}", lobby::nothing_runs(l)));
    }
    for p in l.found() {
        let by = match (l.run_of(p), p.supervisor) {
            (Some(run), _) => format!(", supervised as run {}", run.id),
            (None, Some(pid)) => format!(", supervised by process {pid}"),
            (None, None) => String::new(),
        };
        out.push(format!(
            "  {}  pid {}, GPU memory: {}, {}{by}: {}",
            lobby::kind_word(p),
            p.pid,
            lobby::memory(p, &l.gpus).0,
            lobby::lives(p),
            lobby::process_command(p)
        ));
    }
    out
}

fn runs(l: &Lobby) -> Vec<String> {
    let mut out = vec!["recent runs:".to_owned()];
    if l.runs().is_empty() {
        out.push(format!("  {}", lobby::no_runs(l)));
    }
    for r in l.runs() {
        let why = match &r.state {
            RunState::Broken { why } => format!(" ({why})"),
            _ => String::new(),
        };
        out.push(format!(
            "  {}  {}, {}{why}: {}",
            r.id,
            lobby::began(r),
            lobby::run_state(&r.state).0,
            lobby::run_command(r)
        ));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::testing;

    #[test]
    fn everything_that_the_screen_tells_is_told() {
        let text = lobby_text(&testing::lobby::two_cards(), false);
        for words in [
            "GPU 0  Radeon RX 7900 XTX  gfx1100 at 0000:0c:00.0: vram 17.8/24.0 GiB, busy 98 %",
            "ComfyUI  pid 4123, GPU memory: GPU 0 9.1 GiB, GPU 1 0.4 GiB, for 1 h 02 min, supervised as run 20260714-1400-7f3a: python main.py",
            "FramePack  pid 990, GPU memory: n/a: another user's",
            "20260713-2210-41aa  2026-07-13 22:10, finished 10: python demo_gradio.py",
            "rx7900xtx-safe  RX 7900 XTX, 24 GB, completes first (best match)",
            "(does not fit: architecture is gfx1100, wanted gfx1151)",
        ] {
            assert!(text.contains(words), "no `{words}` in:\n{text}");
        }
        let bad = lobby_text(&testing::lobby::bad_sensors(), true);
        assert!(
            bad.contains("power failed (for 12 s: power1_average"),
            "{bad}"
        );
        assert!(bad.contains("busy 98 % (stale 4 s)"), "{bad}");
        assert!(bad.contains("source processes stale"), "{bad}");
        assert!(bad.is_ascii());
        let none = lobby_text(&testing::lobby::nothing(), false);
        assert!(none.contains("no GPU was found") && none.contains("no run is recorded yet"));
    }
}
