//! The supervised process, the host, and how the sources of the readings are doing.

use std::time::Duration;

use crate::model::{Bytes, GpuSample, HostSample, Metric, SourceState, SourceStatus};
use crate::run::Snapshot;
use crate::ui::card;
use crate::ui::text::{ago, number, width};
use crate::ui::tui::parts::{LABEL, Parts, Row, paragraph, shortened};
use crate::ui::tui::theme::Theme;
use crate::ui::words::{self, Tone, gib, reading};

use super::{holding, rank};

/// Bytes a second; `--` while they are not known.
fn rate(bps: Option<f64>) -> String {
    let Some(bps) = bps.filter(|v| v.is_finite() && *v >= 0.0) else {
        return "--".to_owned();
    };
    let units = [
        (1024.0 * 1024.0 * 1024.0, "GiB"),
        (1024.0 * 1024.0, "MiB"),
        (1024.0, "KiB"),
    ];
    match units.into_iter().find(|(size, _)| bps >= *size) {
        Some((size, unit)) => format!("{} {unit}/s", number(bps / size, 1)),
        None => format!("{} B/s", number(bps, 0)),
    }
}

/// Process, activity, host, sources, what was dropped.
pub(in crate::ui::tui) fn rows(s: &Snapshot, theme: Theme, columns: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    if s.outcome.is_none() {
        rows.push(process(s, theme, columns));
        rows.extend(work(s, theme, columns));
        rows.extend(in_flight(s, theme, columns));
        rows.extend(holding::on_card(s, theme, columns));
    }
    // the output of a process that is not ours is not seen
    if !s.is_foreign() {
        rows.push(activity(s, theme, columns));
    }
    rows.extend(left_running(s, theme, columns));
    rows.extend(survivors(s, theme, columns));
    rows.extend(sources(&s.sources, &s.gpus, theme, columns));
    rows.extend(dropped(s, theme, columns));
    let host = host_words(&s.host, theme);
    let host = match s.outcome {
        Some(_) => host.put(1, Tone::Dim, words::AT_THE_END),
        None => host,
    };
    rows.push(host.row(columns, rank::HOST));
    rows
}

fn process(s: &Snapshot, theme: Theme, columns: usize) -> Row {
    let row = Parts::labelled(theme, "proc");
    let Some(p) = &s.process else {
        let why = if words::not_live(s).is_some() {
            "-- not read up to here"
        } else if s.pid.is_none() {
            "-- no process lives"
        } else {
            "-- no reading of the process yet"
        };
        return row.put(0, Tone::Dim, why).row(columns, rank::PROCESS);
    };
    let state = reading(&p.state, ToString::to_string);
    let cpu = s
        .cpu_percent
        .map_or_else(|| "--".to_owned(), |c| format!("{} %", number(c, 0)));
    let rss = reading(&p.rss, ToString::to_string);
    let mut row = row
        .put(0, state.tone, format!("pid {} {}", p.pid, state.short()))
        .put(1, Tone::Plain, format!("cpu {cpu}"))
        .put(3, rss.tone, format!("rss {}", rss.short()))
        .put(4, Tone::Plain, format!("read {}", rate(s.read_bps)))
        .put(4, Tone::Plain, format!("write {}", rate(s.write_bps)));
    if let Some(n) = p.d_state.last().filter(|n| **n > 0) {
        row = row.put(2, Tone::Warn, format!("{n} in D state"));
    }
    if p.traced {
        row = row.put(2, Tone::Warn, "traced");
    }
    if let Some((tone, words)) = words::agent(s) {
        row = row.put(2, tone, words);
    }
    row.row(columns, rank::PROCESS)
}

/// The operation that the agent sees in flight, and the tiers that stand in for the native
/// one.
fn in_flight(s: &Snapshot, theme: Theme, columns: usize) -> Option<Row> {
    let (op, tiers) = (words::in_flight(s), words::tiers(s));
    if op.is_none() && tiers.is_empty() {
        return None;
    }
    let mut row = Parts::labelled(theme, "op");
    if let Some((op, age)) = &op {
        row = row.put(0, Tone::Plain, op.short());
        row = row.put(1, Tone::Plain, age.clone());
    }
    for (rank, tier) in (2..).zip(tiers.into_iter().take(4)) {
        row = row.put(rank, Tone::Warn, tier);
    }
    if let Some((op, _)) = op {
        row = row.put(6, Tone::Dim, format!("{} on {}", op.dtype, op.device));
    }
    Some(row.row(columns, rank::PROCESS + 1))
}

/// A round of threads is due every five seconds; one that is older is said to be.
const THREADS_FRESH: Duration = Duration::from_secs(6);
/// An attempt this old has been read twice, unless its threads cannot be read.
const THREADS_DUE: Duration = Duration::from_secs(15);

/// The threads that do something, most busy first.
fn work(s: &Snapshot, theme: Theme, columns: usize) -> Option<Row> {
    let all = s.process.as_ref()?.threads;
    let mut row = Parts::labelled(theme, "work");
    match &s.working {
        None if s.now.since(s.attempt_since) < THREADS_DUE => {
            row = row.put(0, Tone::Dim, "-- threads not read yet");
        }
        None => row = row.put(0, Tone::Dim, "-- the threads cannot be read"),
        Some(w) if w.threads.is_empty() => row = row.put(0, Tone::Plain, "no thread works"),
        Some(w) => {
            for (rank, (name, share)) in (0..).zip(&w.threads) {
                row = row.put(rank, Tone::Plain, format!("{name} {} %", number(*share, 0)));
            }
        }
    }
    let age = s.working.as_ref().map(|w| s.now.since(w.at));
    if let Some(age) = age.filter(|age| *age >= THREADS_FRESH) {
        row = row.put(0, Tone::Warn, format!("{} ago", ago(age)));
    }
    let row = row.put(3, Tone::Dim, format!("of {all} threads"));
    Some(row.row(columns, rank::PROCESS + 1))
}

/// When anything was last heard of the program.
fn activity(s: &Snapshot, theme: Theme, columns: usize) -> Row {
    let over = s.outcome.is_some();
    let since = |t: Option<crate::model::Mono>| match (t, over) {
        (None, false) => "none yet".to_owned(),
        (None, true) => "none".to_owned(),
        (Some(t), false) => format!("{} ago", ago(s.now.since(t))),
        // the clock of the run stands still
        (Some(t), true) => ago(s.now.since(t)),
    };
    let before = if over { "before the end: " } else { "" };
    Parts::labelled(theme, "last")
        .put(
            0,
            Tone::Plain,
            format!("{before}output {}", since(s.last_output)),
        )
        .put(
            1,
            Tone::Plain,
            format!("progress {}", since(s.last_progress)),
        )
        .put(2, Tone::Dim, words::job(s))
        .row(columns, rank::PROCESS - 1)
}

/// Memory, pressure and load of the host.
pub(in crate::ui::tui) fn host(h: &HostSample, theme: Theme, columns: usize) -> Row {
    host_words(h, theme).row(columns, rank::HOST)
}

fn host_words(h: &HostSample, theme: Theme) -> Parts {
    let total = h
        .mem_total
        .last()
        .map_or_else(|| "--".to_owned(), |b| gib(*b));
    let used = h.mem_available.clone().map(|free| {
        h.mem_total
            .last()
            .map_or(Bytes(0), |total| total.saturating_sub(free))
    });
    // Without the total, what is used cannot be told.
    let used = if h.mem_total.last().is_some() {
        used
    } else {
        Metric::Unsupported
    };
    let ram = reading(&used, |b| format!("{}/{total} GiB", gib(*b)));
    let swap = reading(&h.swap_used, ToString::to_string);
    let mut row = Parts::labelled(theme, "host")
        .put(0, ram.tone, format!("ram {}", ram.short()))
        .put(2, swap.tone, format!("swap {}", swap.short()));
    for (rank, name, metric) in [
        (3, "mem", &h.psi_mem),
        (3, "io", &h.psi_io),
        (4, "cpu", &h.psi_cpu),
    ] {
        let r = reading(metric, |v| number(*v, 1));
        row = row.put(rank, r.tone, format!("psi {name} {}", r.short()));
    }
    let load = reading(&h.load1, |v| number(*v, 1));
    row.put(5, load.tone, format!("load {}", load.short()))
}

/// Sources that are not well, each with its reason; else one word for all, with how many
/// readings of the cards fail.
pub(in crate::ui::tui) fn sources(
    sources: &[SourceStatus],
    gpus: &[GpuSample],
    theme: Theme,
    columns: usize,
) -> Vec<Row> {
    let ill = sources
        .iter()
        .filter(|src| !matches!(src.state, SourceState::Ok | SourceState::Absent));
    let mut ill: Vec<_> = ill.map(|src| (words::source(src), src)).collect();
    // the worst must not be cut off
    ill.sort_by_key(|((_, tone), _)| *tone != Tone::Bad);
    if ill.is_empty() {
        let count = |state| sources.iter().filter(|src| src.state == state).count();
        let (ok, absent) = (count(SourceState::Ok), count(SourceState::Absent));
        let away = sources
            .iter()
            .filter(|src| src.state == SourceState::Absent);
        let names: Vec<_> = away.map(|src| src.name.as_str()).collect();
        let failing = gpus.iter().map(card::failing).sum();
        let (fails, tone) = match failing {
            0 => (String::new(), Tone::Dim),
            1 => (", 1 reading fails".to_owned(), Tone::Warn),
            n => (format!(", {n} readings fail"), Tone::Warn),
        };
        let text = format!("{ok} ok, absent: {}{fails}", names.join(" "));
        let text = match (ok, absent) {
            (0, 0) => "none has answered yet".to_owned(),
            (ok, 0) if failing == 0 => format!("all {ok} ok"),
            (ok, 0) => format!("{ok} ok{fails}"),
            _ if width(&text) + LABEL <= columns => text,
            (ok, absent) => format!("{ok} ok, {absent} absent{fails}"),
        };
        let row = Parts::labelled(theme, "source").put(0, tone, text);
        return vec![row.row(columns, rank::HOST)];
    }
    let worst = ill.iter().any(|((_, tone), _)| *tone == Tone::Bad);
    let tone = if worst { Tone::Bad } else { ill[0].0.1 };
    let list: Vec<_> = ill
        .iter()
        .map(|((text, _), src)| format!("{} {text}", src.name))
        .collect();
    let words = list.join("; ");
    let rows = paragraph(theme, "source", tone, &words, columns, 2, rank::TROUBLE);
    shortened(rows, rank::STRIP)
}

fn dropped(s: &Snapshot, theme: Theme, columns: usize) -> Option<Row> {
    let list: Vec<_> = s
        .dropped
        .iter()
        .filter(|(_, n)| *n > 0)
        .map(|(what, n)| format!("{n} {what}"))
        .collect();
    if list.is_empty() {
        return None;
    }
    let row =
        Parts::labelled(theme, "data").put(0, Tone::Warn, format!("dropped {}", list.join(", ")));
    Some(row.row(columns, rank::TROUBLE + 1))
}

fn left_running(s: &Snapshot, theme: Theme, columns: usize) -> Vec<Row> {
    if s.left_running.is_empty() || !s.survivors.is_empty() {
        return Vec::new();
    }
    let each = s
        .left_running
        .iter()
        .map(|p| format!("{} {}", p.pid, p.name));
    let list = format!(
        "the command has returned; still runs: {}",
        each.collect::<Vec<_>>().join(", ")
    );
    paragraph(theme, "job", Tone::Plain, &list, columns, 2, rank::CORE)
}

fn survivors(s: &Snapshot, theme: Theme, columns: usize) -> Vec<Row> {
    if s.survivors.is_empty() {
        return Vec::new();
    }
    let each = s.survivors.iter().map(|p| {
        let wait = p
            .wchan
            .as_ref()
            .map_or_else(String::new, |w| format!(" in {w}"));
        format!("{} {} {}{wait}", p.pid, p.name, p.state)
    });
    let list = format!("survive SIGKILL: {}", each.collect::<Vec<_>>().join(", "));
    paragraph(theme, "alive", Tone::Bad, &list, columns, 2, rank::CORE)
}

/// Time since the last snapshot in the header's words; `None` while it is fresh.
pub(in crate::ui::tui) fn silence(silent_for: Duration) -> Option<String> {
    (silent_for >= Duration::from_secs(2)).then(|| format!("NO NEWS FOR {}", ago(silent_for)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_rate_is_not_zero() {
        assert_eq!(rate(None), "--");
        assert_eq!(rate(Some(f64::NAN)), "--");
        assert_eq!(rate(Some(0.0)), "0 B/s");
        assert_eq!(rate(Some(1_258_291.0)), "1.2 MiB/s");
    }
}
