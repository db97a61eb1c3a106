//! What is there before anything was started, and the words for it, the same on
//! screen and in plain text.

use std::time::Duration;

use crate::model::worker::{is_own_worker, listed};
use crate::model::{
    Bytes, FoundProcess, GpuId, GpuSample, HostSample, Metric, Outcome, SourceState, SourceStatus,
};
use crate::profile::{Condition, Fit, Holds, NO_GPU, ShelfEntry};
use crate::workload::adapter::title_of;

use super::card;
use super::text::{ago, number};
use super::words::{self, Reading, Tone, gib, pool, quantity, reading};

/// The present state of the machine and of what was kept on it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Lobby {
    /// Every card.
    pub gpus: Vec<GpuSample>,
    /// Host.
    pub host: HostSample,
    /// Sources of the readings, the search for processes among them.
    pub sources: Vec<SourceStatus>,
    /// Generations and other users of the cards; absent: not looked yet.
    pub found: Option<Vec<FoundProcess>>,
    /// Recorded runs, newest first; absent: not looked yet.
    pub runs: Option<Vec<RunLine>>,
    /// Where runs are kept.
    pub runs_at: String,
    /// Why the recorded runs cannot be listed, as a fragment.
    pub runs_trouble: Option<String>,
    /// Every profile with how it suits this machine.
    pub profiles: Vec<ShelfEntry>,
}

/// How a recorded run stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunState {
    /// Somebody watches it.
    Running,
    /// It has its end.
    Ended {
        /// How.
        outcome: Outcome,
        /// Exit code of the program.
        exit_code: u8,
    },
    /// Nobody writes its record, and that has no end.
    Broken {
        /// Why, as a fragment.
        why: String,
    },
}

/// A recorded run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunLine {
    /// Id.
    pub id: String,
    /// When it began, RFC 3339; absent where the manifest cannot be read.
    pub began: Option<String>,
    /// How it stands.
    pub state: RunState,
    /// Its command; empty where the manifest cannot be read.
    pub argv: Vec<String>,
    /// Process that supervises it, while it runs.
    pub supervisor: Option<u32>,
}

impl Lobby {
    /// The processes that were found.
    pub(super) fn found(&self) -> &[FoundProcess] {
        self.found.as_deref().unwrap_or_default()
    }

    /// The runs that are recorded.
    pub(super) fn runs(&self) -> &[RunLine] {
        self.runs.as_deref().unwrap_or_default()
    }

    /// The running run that a process belongs to.
    pub(super) fn run_of(&self, process: &FoundProcess) -> Option<&RunLine> {
        let supervisor = process.supervisor?;
        self.runs()
            .iter()
            .find(|r| r.state == RunState::Running && r.supervisor == Some(supervisor))
    }

    /// Whether the search for cards has not come to an answer yet.
    pub(crate) fn looks_for_cards(&self) -> bool {
        let search = |s: &&SourceStatus| s.name.starts_with("sysfs") || s.name == "nvml";
        let mut searches = self.sources.iter().filter(search).peekable();
        searches.peek().is_none() || searches.any(|s| s.state == SourceState::Starting)
    }
}

/// What a process looks like.
pub fn kind_word(process: &FoundProcess) -> &str {
    process.kind.as_deref().map_or("other", title_of)
}

/// A command as people write it: without the folder of the program.
pub(super) fn command(argv: &[String]) -> String {
    let Some((program, rest)) = argv.split_first() else {
        return String::new();
    };
    let program = program.rsplit('/').next().unwrap_or(program);
    std::iter::once(program)
        .chain(rest.iter().map(String::as_str))
        .collect::<Vec<_>>()
        .join(" ")
}

/// The command of a found process, or what is known instead.
pub(super) fn process_command(process: &FoundProcess) -> String {
    if process.argv.is_empty() {
        format!("{} (its command cannot be read)", process.name)
    } else {
        command(&process.argv)
    }
}

/// GPU memory card by card; what cannot be read is not nothing.
pub(super) fn memory(process: &FoundProcess, gpus: &[GpuSample]) -> (String, Tone) {
    let one = |gpu: &GpuId, vram: Option<Bytes>, gtt: Option<Bytes>| {
        let card = gpus.iter().find(|g| g.id == *gpu);
        let counts = card.map_or("vram", |g| pool(g).0);
        let held = if counts == "gtt" { gtt } else { vram };
        let name = card.map_or_else(|| gpu.to_string(), |g| format!("GPU {}", g.index));
        match held {
            Some(held) => format!("{name} {} GiB", gib(held)),
            None => format!("{name} n/a: not told"),
        }
    };
    let list: Vec<String> = process
        .memory
        .iter()
        .map(|m| one(&m.gpu, m.vram, m.gtt))
        .collect();
    match (&process.hidden, list.is_empty()) {
        (_, false) => (list.join(", "), Tone::Plain),
        (Some(why), true) => (format!("n/a: {why}"), Tone::Dim),
        (None, true) => ("no GPU memory".to_owned(), Tone::Dim),
    }
}

/// `cpu 104 %`.
pub(super) fn cpu(process: &FoundProcess) -> String {
    let value = process
        .cpu_percent
        .map_or_else(|| "--".to_owned(), |c| format!("{} %", number(c, 0)));
    format!("cpu {value}")
}

/// A long time in short words: `45 s`, `12 min`, `3 h 05 min`, `2 d 4 h`.
pub(super) fn age(d: Duration) -> String {
    match d.as_secs() {
        s @ 0..60 => format!("{s} s"),
        s @ 60..3600 => format!("{} min", s / 60),
        s @ 3600..86_400 => format!("{} h {:02} min", s / 3600, s / 60 % 60),
        s => format!("{} d {} h", s / 86_400, s / 3600 % 24),
    }
}

/// `for 12 min`.
pub(super) fn lives(process: &FoundProcess) -> String {
    let age = process
        .age_ms
        .map_or_else(|| "--".to_owned(), |ms| age(Duration::from_millis(ms)));
    format!("for {age}")
}

/// How a run stands, in words.
pub(super) fn run_state(state: &RunState) -> (String, Tone) {
    let (outcome, exit_code) = match state {
        RunState::Running => return ("running".to_owned(), Tone::Good),
        RunState::Broken { .. } => return ("broken".to_owned(), Tone::Bad),
        RunState::Ended { outcome, exit_code } => (outcome, *exit_code),
    };
    let tone = match outcome {
        Outcome::Finished { .. } | Outcome::Left | Outcome::Ended | Outcome::ResultKept => {
            Tone::Plain
        }
        Outcome::Interrupted { .. } => Tone::Dim,
        Outcome::Failed
        | Outcome::GaveUp
        | Outcome::Unkillable { .. }
        | Outcome::LeftoversEnded { .. }
        | Outcome::CardHeld { .. }
        | Outcome::NotLaunched { .. } => Tone::Warn,
    };
    match exit_code {
        0 => (outcome.short().to_owned(), tone),
        code => (format!("{} {code}", outcome.short()), tone),
    }
}

/// `2026-11-27 22:31`.
pub(super) fn began(run: &RunLine) -> String {
    run.began.as_ref().map_or_else(
        || "time unknown".to_owned(),
        |t| t.get(..16).unwrap_or(t).replace('T', " "),
    )
}

/// The command of a run, or that it is not known.
pub(super) fn run_command(run: &RunLine) -> String {
    if run.argv.is_empty() {
        "its manifest cannot be read".to_owned()
    } else if is_own_worker(&run.argv) {
        listed(&run.argv)
    } else {
        command(&run.argv)
    }
}

/// How a profile suits the machine, in a word and why.
pub(super) fn fit(entry: &ShelfEntry) -> (&'static str, Option<String>, Tone) {
    if let Some(why) = &entry.broken {
        return ("broken", Some(why.clone()), Tone::Bad);
    }
    match entry.fit {
        Fit::Best => ("best match", None, Tone::Good),
        Fit::Fits => ("fits", None, Tone::Plain),
        Fit::Other => (
            "does not fit",
            entry
                .conditions
                .iter()
                .find(|c| c.holds != Holds::Yes)
                .map(condition),
            Tone::Dim,
        ),
    }
}

fn condition(c: &Condition) -> String {
    let have = c.have.as_deref().unwrap_or("unknown");
    if have == NO_GPU {
        return "no GPU here".to_owned();
    }
    format!("{} is {have}, wanted {}", c.what, c.wanted)
}

/// Nobody's work is supervised here, so a card may be read no more often than every ten
/// seconds, that it can fall asleep. Up to this age its readings are as they should be.
const PLANNED_MS: u64 = 12_000;

/// The age of a card's readings, where they are only as old as is planned: all of one
/// reading, from a source that is well. Absent: fresh, or older than they should be.
fn planned_age(l: &Lobby, g: &GpuSample) -> Option<Duration> {
    const fn age_ms<T>(metric: &Metric<T>) -> Option<u64> {
        match metric {
            Metric::Fresh(_) => Some(u64::MAX),
            Metric::Stale { age_ms, .. } => Some(*age_ms),
            Metric::Failed { .. } | Metric::Unsupported => None,
        }
    }
    let ages = [
        age_ms(&g.busy),
        age_ms(&g.power_w),
        age_ms(pool(g).1),
        age_ms(&g.temp_edge),
        age_ms(&g.temp_junction),
    ];
    let oldest = ages.into_iter().flatten().max()?;
    let mut sources = l.sources.iter();
    let well = sources.any(|s| {
        let of_card = s.name == g.source || s.name.ends_with(&g.id.0);
        of_card && s.state == SourceState::Ok
    });
    (well && oldest <= PLANNED_MS).then(|| Duration::from_millis(oldest))
}

/// Whether the age of a card's readings is no news.
pub(super) fn is_as_planned(l: &Lobby, g: &GpuSample) -> bool {
    planned_age(l, g).is_some()
}

/// `read 8 s ago`, once for all readings of a card.
pub(super) fn read_ago(l: &Lobby, g: &GpuSample) -> Option<String> {
    let old = planned_age(l, g).filter(|age| *age > Duration::from_secs(2))?;
    Some(format!("read {} ago", ago(old)))
}

/// Memory, busy, power and the hottest place of a card, or what stands in their place.
pub(super) fn levels(l: &Lobby, g: &GpuSample) -> Vec<(&'static str, Reading)> {
    if let Some(instead) = card::unread(g) {
        return vec![("", instead)];
    }
    let values = values(g).into_iter();
    if planned_age(l, g).is_none() {
        return values.collect();
    }
    values.map(|(label, r)| (label, r.ageless())).collect()
}

/// The hottest place that a card tells of.
pub(super) fn hottest(g: &GpuSample) -> (&'static str, &Metric<f64>) {
    if g.temp_junction.is_supported() {
        ("junction", &g.temp_junction)
    } else {
        ("edge", &g.temp_edge)
    }
}

fn values(g: &GpuSample) -> [(&'static str, Reading); 4] {
    let (label, used, total) = pool(g);
    let tail = total
        .last()
        .map_or_else(|| " GiB".to_owned(), |t| format!("/{} GiB", gib(*t)));
    let hot = hottest(g);
    [
        (label, reading(used, |b| format!("{}{tail}", gib(*b)))),
        ("busy", card::busy(g)),
        (card::power_label(g), quantity(&g.power_w, 0, "W")),
        (hot.0, quantity(hot.1, 0, "C")),
    ]
}

/// What is said where there is no card.
pub(super) fn no_card(lobby: &Lobby) -> String {
    let ill = lobby.sources.iter().find(|s| {
        let looks = s.name.starts_with("sysfs") || s.name == "nvml";
        looks
            && !matches!(
                s.state,
                SourceState::Absent | SourceState::Starting | SourceState::Ok
            )
    });
    match ill {
        Some(s) => format!(
            "no GPU could be read: {} {}",
            s.name,
            words::source(s).0
        ),
        None if lobby.looks_for_cards() => "looking for cards".to_owned(),
        None => "no GPU was found, neither of AMD (amdgpu) nor of NVIDIA (NVML); a run without one is judged by its process, its output and its progress"
            .to_owned(),
    }
}

/// What is said where nothing runs.
pub(super) fn nothing_runs(lobby: &Lobby) -> &'static str {
    if lobby.found.is_none() {
        "looking at the processes of this machine"
    } else {
        "no generation was found: no FramePack, no ComfyUI, no diffusers script, and no other process whose GPU memory can be seen"
    }
}

/// What is said where no run is recorded.
pub(super) fn no_runs(lobby: &Lobby) -> String {
    match (&lobby.runs_trouble, &lobby.runs) {
        (Some(why), _) => format!("the recorded runs cannot be listed: {why}"),
        (None, None) => "looking for recorded runs".to_owned(),
        (None, Some(_)) => format!(
            "no run is recorded yet; each will be kept in {}",
            lobby.runs_at
        ),
    }
}

/// How to begin.
pub(super) const HOW_TO_START: &str =
    "type the command of your generation, such as: python demo_gradio.py";
