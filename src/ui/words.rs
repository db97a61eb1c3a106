//! The words for what the run is doing, the same on screen and in plain text.

use std::time::Duration;

use crate::model::{
    AgentOp, Bytes, GpuSample, Health, Metric, Mono, NextStep, Outcome, Progress, RungId,
    SourceState, SourceStatus,
};
use crate::run::Snapshot;
use crate::run::snapshot::{AgentState, Freshness, JobState, LadderEntry, RungState, Stage};

use super::text::{ago, count, left, number, percent, width};

/// Of the last readings of a run that is over: nothing is read any more, and they are not those of now.
pub(super) const AT_THE_END: &str = "at the end";

/// How a statement is meant; always carried by a word too, never by colour alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    /// As it is.
    Plain,
    /// Of second rank.
    Dim,
    /// To be found first.
    Strong,
    /// Goes well.
    Good,
    /// Being found out.
    Info,
    /// Not as it should be.
    Warn,
    /// Has failed.
    Bad,
}

/// A reading in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reading {
    /// The value, or the word that stands for it.
    pub(super) text: String,
    /// What is wrong with it.
    pub(super) note: Option<String>,
    /// How it is meant.
    pub(super) tone: Tone,
}

impl Reading {
    /// Value and a short note (`98 % stale 4 s`); the reason of a failure is left out.
    pub(super) fn short(&self) -> String {
        match &self.note {
            Some(note) if self.tone == Tone::Warn => format!("{} {note}", self.text),
            _ => self.text.clone(),
        }
    }

    /// Without its age, where that is told once for all values.
    pub(super) fn ageless(self) -> Self {
        if self.tone == Tone::Warn && self.note.is_some() {
            Self {
                text: self.text,
                note: None,
                tone: Tone::Plain,
            }
        } else {
            self
        }
    }
}

/// A reading with its state: stale, failed and missing values say so.
pub(super) fn reading<T>(metric: &Metric<T>, show: impl Fn(&T) -> String) -> Reading {
    let (text, note, tone) = match metric {
        Metric::Fresh(v) => (show(v), None, Tone::Plain),
        Metric::Stale { value, age_ms } => {
            let age = ago(Duration::from_millis(*age_ms));
            (show(value), Some(format!("stale {age}")), Tone::Warn)
        }
        Metric::Failed { why, for_ms } => {
            let since = ago(Duration::from_millis(*for_ms));
            (
                "failed".to_owned(),
                Some(format!("for {since}: {why}")),
                Tone::Bad,
            )
        }
        Metric::Unsupported => ("--".to_owned(), Some("not offered".to_owned()), Tone::Dim),
    };
    Reading { text, note, tone }
}

/// A number with unit of a metric.
pub(super) fn quantity(metric: &Metric<f64>, decimals: usize, unit: &str) -> Reading {
    reading(metric, |v| format!("{} {unit}", number(*v, decimals)))
}

/// The memory pool that counts for models (see [`GpuSample::pool`]), with its
/// state kept: name, in use, size.
pub(super) fn pool(gpu: &GpuSample) -> (&'static str, &Metric<Bytes>, &Metric<Bytes>) {
    let gtt_counts = gpu.apu
        && match (gpu.vram_total.last(), gpu.gtt_total.last()) {
            (Some(vram), Some(gtt)) => gtt > vram,
            (None, Some(_)) => true,
            _ => false,
        };
    if gtt_counts {
        ("gtt", &gpu.gtt_used, &gpu.gtt_total)
    } else {
        ("vram", &gpu.vram_used, &gpu.vram_total)
    }
}

/// Gibibytes with one decimal, without the unit.
pub(super) fn gib(b: Bytes) -> String {
    number(b.as_gib_f64(), 1)
}

/// How a health is meant.
pub(super) const fn health_tone(health: Health) -> Tone {
    match health {
        Health::Starting | Health::Quiet => Tone::Info,
        Health::Healthy | Health::Finished => Tone::Good,
        Health::Slow | Health::Suspect | Health::Blind | Health::Paused => Tone::Warn,
        Health::Hung | Health::Failing | Health::Failed => Tone::Bad,
    }
}

/// The health of a run as it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ShownHealth {
    /// In capitals.
    pub(super) word: &'static str,
    /// Whose symbol stands before the word.
    pub(super) symbol: Health,
    /// How it is meant.
    pub(super) tone: Tone,
    /// It is the verdict's own word.
    pub(super) judged: bool,
}

/// The health of a run: that of its verdict, but nothing that is said of a process holds for
/// one that has ended.
pub(super) fn health(s: &Snapshot) -> ShownHealth {
    if let Some((_, word, tone)) = not_live(s) {
        return ShownHealth {
            word,
            symbol: Health::Starting,
            tone,
            judged: false,
        };
    }
    let health = s.verdict.health;
    let over = s.ended || (s.outcome.is_some() && s.pid.is_none());
    let names_the_end = matches!(
        health,
        Health::Hung | Health::Failing | Health::Failed | Health::Finished
    );
    if !over || names_the_end || s.is_foreign() {
        return ShownHealth {
            word: health.word(),
            symbol: health,
            tone: health_tone(health),
            judged: true,
        };
    }
    let restarts = matches!(s.stage, Stage::WaitingVram { .. } | Stage::Delay { .. });
    let (word, tone) = match &s.outcome {
        Some((Outcome::Interrupted { .. }, ..)) => ("STOPPED", Tone::Plain),
        Some(_) => ("ENDED", Tone::Plain),
        None if restarts => ("RESTARTING", Tone::Info),
        None => ("ENDING", Tone::Info),
    };
    ShownHealth {
        word,
        symbol: Health::Starting,
        tone,
        judged: false,
    }
}

/// What stands in the place of `LIVE` and of the health word, with its tone, where the state is
/// not the present one; absent: it is, or the run is over.
pub(super) fn not_live(s: &Snapshot) -> Option<(String, &'static str, Tone)> {
    match s.freshness {
        _ if s.outcome.is_some() => None,
        Freshness::Live => None,
        Freshness::CatchingUp { percent } => {
            Some((format!("BEHIND {percent} %"), "CATCHING UP", Tone::Info))
        }
        Freshness::CutOff => Some(("CUT OFF".to_owned(), "UNKNOWN", Tone::Warn)),
    }
}

/// How a source is doing, in a word and its reason.
pub(super) fn source(status: &SourceStatus) -> (String, Tone) {
    let age = ago(Duration::from_millis(status.age_ms));
    let (word, tone) = match status.state {
        SourceState::Starting => ("starting".to_owned(), Tone::Info),
        SourceState::Ok => ("ok".to_owned(), Tone::Plain),
        SourceState::Failing => (format!("failed {age}"), Tone::Bad),
        SourceState::Stale => (format!("stale {age}"), Tone::Warn),
        SourceState::Lost => (format!("LOST {age}"), Tone::Bad),
        SourceState::Absent => ("absent".to_owned(), Tone::Dim),
    };
    match &status.why {
        Some(why) if status.state != SourceState::Ok => (format!("{word}: {why}"), tone),
        _ => (word, tone),
    }
}

/// How a rung stands: a word, and more about it.
pub(super) fn rung(entry: &LadderEntry) -> (&'static str, Option<&str>, Tone) {
    match &entry.state {
        RungState::Tried { result } => ("tried", Some(result), Tone::Dim),
        RungState::Running => ("running", None, Tone::Strong),
        RungState::Next => ("next", None, Tone::Warn),
        RungState::Untried => ("untried", None, Tone::Plain),
        RungState::Unavailable { why } => ("not available", Some(why), Tone::Dim),
    }
}

/// What a bar says: `step 17/25`, its percent, its pace.
pub(super) struct ProgressWords {
    /// `step 17/25`.
    pub(super) done: String,
    /// Share in percent, where the total is known.
    pub(super) percent: Option<f64>,
    /// `6.80 s/step`.
    pub(super) pace: Option<String>,
    /// Time to the end of this bar at this pace.
    pub(super) left: Option<String>,
}

/// A bar in words.
pub(super) fn progress(p: &Progress) -> ProgressWords {
    let what = match (&p.what, p.sampling) {
        (Some(what), false) => what.as_str(),
        (_, true) => "step",
        (None, false) => "bar",
    };
    let done = match p.total {
        Some(total) => format!("{what} {}/{}", count(p.done), count(total)),
        None => format!("{what} {}", count(p.done)),
    };
    let unit = if p.sampling { "step" } else { "item" };
    let pace = p.seconds_per_step.filter(|s| s.is_finite() && *s >= 0.0);
    let left = pace
        .zip(p.total)
        .map(|(pace, total)| (total - p.done).max(0.0) * pace)
        .and_then(|s| Duration::try_from_secs_f64(s).ok())
        .map(left);
    ProgressWords {
        done,
        percent: p.total.and_then(|total| percent(p.done, total)),
        pace: pace.map(|s| format!("{} s/{unit}", number(s, if s < 10.0 { 2 } else { 1 }))),
        left,
    }
}

/// Steps without an advance after which a bar stands still, and the shortest such time: the
/// pace of a bar is a mean.
const STANDS_AFTER_STEPS: f64 = 3.0;
const STANDS_AFTER: Duration = Duration::from_secs(10);

/// Whether the job moves now, as far as is seen: the end of what stands still cannot be estimated.
pub(super) fn moves(s: &Snapshot) -> bool {
    let well = matches!(
        s.verdict.health,
        Health::Starting | Health::Healthy | Health::Quiet | Health::Slow | Health::Blind
    );
    let watched = matches!(s.stage, Stage::Watching);
    well && watched && !s.ended && s.outcome.is_none() && not_live(s).is_none()
}

/// Time to the end of the last bar at its pace; absent where it does not move.
pub(super) fn bar_left(s: &Snapshot) -> Option<String> {
    let p = s.progress.as_ref()?;
    let step = p.seconds_per_step.unwrap_or_default() * STANDS_AFTER_STEPS;
    let patience = Duration::try_from_secs_f64(step).unwrap_or_default();
    let still = s.now.since(s.last_progress?) > patience.max(STANDS_AFTER);
    progress(p).left.filter(|_| moves(s) && !still)
}

/// A restarted server that waits for a job which nobody sends (the first attempt
/// had one).
pub(super) fn needs_start_again(s: &Snapshot) -> bool {
    s.outcome.is_none()
        && not_live(s).is_none()
        && matches!(s.job, JobState::Waiting(_))
        && s.attempt.as_ref().is_some_and(|a| a.number >= 2)
        && (s.resend.failed || !s.resend.by_itself)
}

/// When a limit is reached and which, in so many columns: where there are few, what the
/// limit is comes without where it holds.
pub(super) fn limit(n: &NextStep, now: Mono, columns: usize) -> String {
    let when = if n.at <= now {
        "due now".to_owned()
    } else {
        format!("in {}", left(n.at.since(now)))
    };
    let whole = format!("{when}: {}", n.what);
    match n.what.split_once(" in ") {
        Some((what, _)) if width(&whole) > columns => format!("{when}: {what}"),
        _ => whole,
    }
}

/// The next limit as [`limit`] says it; of a suspicion also what follows its verdict.
pub(super) fn next_limit(s: &Snapshot, n: &NextStep, columns: usize) -> String {
    let then = Some(s).filter(|s| s.verdict.health == Health::Suspect && !s.attached);
    match then.and_then(follows) {
        Some(then) => format!("{}, then {then}", limit(n, s.now, usize::MAX)),
        None => limit(n, s.now, columns),
    }
}

/// What would follow the verdict that is suspected; absent: the ladder does not say.
fn follows(s: &Snapshot) -> Option<String> {
    let next = s.ladder.iter().find(|e| e.state == RungState::Next);
    match next {
        _ if s.is_foreign() => None,
        Some(e) if s.restarts_left > 0 => Some(after(&e.id)),
        _ => Some(after(&RungId::give_up())),
    }
}

/// Whether a program may be started again without a word of the user; `ours`: it was
/// started by us.
pub(super) const fn unasked(auto_restart: bool, ours: bool) -> &'static str {
    match (ours, auto_restart) {
        (false, _) => "not ours: it is up to you to start it again",
        (true, true) => "it may be restarted unasked",
        (true, false) => "not restarted unasked",
    }
}

/// In the place of what the supervisor does, where the state is not the present one.
fn earlier(s: &Snapshot) -> Option<(&'static str, String, Tone)> {
    let (_, _, tone) = not_live(s)?;
    let at = s.now.clock();
    match s.freshness {
        Freshness::Live => None,
        Freshness::CatchingUp { percent } => {
            let text = format!("{percent} % of the record is read; shown is the run at {at}");
            Some(("READING", text, tone))
        }
        Freshness::CutOff => {
            let text = format!("the record ends at {at} without an end of the run");
            Some(("CUT OFF", text, tone))
        }
    }
}

/// What the supervisor does now and when that ends: a head word and a sentence.
pub(super) fn stage(s: &Snapshot) -> (&'static str, String, Tone) {
    let until = |t: crate::model::Mono| left(t.since(s.now));
    if let Some(earlier) = earlier(s) {
        return earlier;
    }
    match &s.stage {
        Stage::Preparing => ("PREPARING", "nothing launched yet".to_owned(), Tone::Info),
        Stage::CardHeld { held, until: end } => (
            "CARD IN USE",
            format!(
                "{}; waits {} more; {}",
                held.holders(),
                until(*end),
                held.cure()
            ),
            Tone::Warn,
        ),
        Stage::Watching if needs_start_again(s) => (
            "PRESS START AGAIN",
            "the restarted server waits for a job; its page still has your settings".to_owned(),
            Tone::Warn,
        ),
        Stage::Watching => ("WATCHING", job(s), Tone::Plain),
        Stage::Countdown {
            rung, held: true, ..
        } => (
            "HELD",
            format!("the kill {} waits for you", before(rung)),
            Tone::Warn,
        ),
        Stage::Countdown { rung, kill_at, .. } => (
            "KILL",
            format!("in {}, then {}", until(*kill_at), after(rung)),
            Tone::Bad,
        ),
        Stage::TakingEvidence { since } => (
            "TAKING EVIDENCE",
            format!(
                "for {}; no signal before it is on disk",
                ago(s.now.since(*since))
            ),
            Tone::Warn,
        ),
        Stage::Terminating { kill_at } => (
            "TERMINATING",
            format!("first signal sent; SIGKILL in {}", until(*kill_at)),
            Tone::Warn,
        ),
        Stage::Killing { since } => (
            "KILLING",
            format!(
                "SIGKILL sent {} ago; not all processes are gone",
                ago(s.now.since(*since))
            ),
            Tone::Bad,
        ),
        Stage::WaitingVram {
            used,
            before,
            until: end,
        } => (
            "WAITING",
            format!(
                "waits until VRAM falls: {} -> {} GiB, at most {}",
                used.map_or_else(|| "-- (unreadable)".to_owned(), gib),
                gib(*before),
                until(*end)
            ),
            Tone::Warn,
        ),
        Stage::Delay { until: end } => ("PAUSE", format!("restart in {}", until(*end)), Tone::Info),
        Stage::Ended => ("ENDED", String::new(), Tone::Strong),
    }
}

/// Which kill is counted down to: one that a rung follows, or none.
fn before(rung: &RungId) -> String {
    if *rung == RungId::give_up() {
        return "that ends the run".to_owned();
    }
    format!("before rung {rung}")
}

/// What follows a countdown.
fn after(rung: &RungId) -> String {
    if *rung == RungId::give_up() {
        return "the run is given up".to_owned();
    }
    format!("restart on rung {rung}")
}

/// How it stands with the agent inside the program; nothing where nothing is known.
pub(super) fn agent(s: &Snapshot) -> Option<(Tone, String)> {
    let tone = match s.agent.state {
        AgentState::None => return None,
        AgentState::Off | AgentState::Awaited => Tone::Dim,
        AgentState::Connected => Tone::Plain,
        AgentState::Silent | AgentState::Lost => Tone::Warn,
    };
    Some((tone, format!("agent {}", s.agent.state.word())))
}

/// An operation that has been in flight for long enough to be read, and for how long.
pub(super) fn in_flight(s: &Snapshot) -> Option<(&AgentOp, String)> {
    let (op, age) = s.agent.op.as_ref()?;
    let long = *age >= Duration::from_secs(2);
    long.then(|| (op, format!("for {}", ago(*age))))
}

/// The tiers of the convolution fallback that stand in for the native one, most used first:
/// `split 312, failed 1` of conv3d, `conv2d nocudnn 3` of another.
pub(super) fn tiers(s: &Snapshot) -> Vec<String> {
    let mut tiers: Vec<(String, u64, u64)> = Vec::new();
    for (name, n) in &s.agent.tiers {
        let Some((tier, how)) = name.rsplit_once('.') else {
            continue;
        };
        let tier = tier.trim_start_matches("conv3d.").replace('.', " ");
        if tiers.last().is_none_or(|(last, ..)| *last != tier) {
            tiers.push((tier, 0, 0));
        }
        let Some((_, ok, failed)) = tiers.last_mut() else {
            continue;
        };
        match how {
            "ok" => *ok = *n,
            "failed" => *failed = *n,
            // tried is the sum of both
            _ => {}
        }
    }
    tiers.sort_by_key(|(_, ok, failed)| std::cmp::Reverse(ok.saturating_add(*failed)));
    let words = tiers.into_iter().map(|(tier, ok, failed)| match failed {
        0 => format!("{tier} {ok}"),
        _ => format!("{tier} {ok}, failed {failed}"),
    });
    words.collect()
}

/// Whether a job is in flight, in words.
pub(super) fn job(s: &Snapshot) -> String {
    match s.job {
        JobState::Unknown => "whether a job runs is not known yet".to_owned(),
        JobState::InFlight(since) => format!("job in flight for {}", ago(s.now.since(since))),
        JobState::Waiting(since) => {
            format!(
                "no job; the server waits for its user for {}",
                ago(s.now.since(since))
            )
        }
        JobState::Ended => "the job is over".to_owned(),
    }
}

/// Graphs of a lost queue that wait for the user.
pub(crate) fn waiting_prompts(n: u32) -> String {
    match n {
        1 => "1 prompt was lost with the server: r sends it again".to_owned(),
        n => format!("{n} prompts were lost with the server: r sends them again"),
    }
}

/// The user's word for them was given.
pub(crate) fn prompts_sent(n: u32) -> String {
    match n {
        1 => "1 prompt is being sent again".to_owned(),
        n => format!("{n} prompts are being sent again"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Mono;
    use crate::ui::testing;

    #[test]
    fn absent_failed_stale_and_zero_are_four_things() {
        let q = |m| quantity(&m, 0, "%").short();
        assert_eq!(q(Metric::Fresh(0.0)), "0 %");
        assert_eq!(
            q(Metric::Stale {
                value: 98.0,
                age_ms: 4_000
            }),
            "98 % stale 4 s"
        );
        assert_eq!(
            q(Metric::Failed {
                why: "EIO".to_owned(),
                for_ms: 0
            }),
            "failed"
        );
        assert_eq!(q(Metric::Unsupported), "--");
    }

    #[test]
    fn waiting_for_vram_says_from_where_to_where_and_how_long() {
        let s = testing::waiting_vram();
        let (_, text, _) = stage(&s);
        assert_eq!(
            text,
            "waits until VRAM falls: 17.2 -> 0.9 GiB, at most 48 s"
        );
    }

    #[test]
    fn only_a_restarted_server_asks_for_a_press() {
        let mut s = testing::healthy();
        s.job = JobState::Waiting(Mono::ZERO);
        assert!(needs_start_again(&s), "attempt 2");
        s.resend.by_itself = true;
        assert!(!needs_start_again(&s), "the lost job is sent again");
        s.resend.failed = true;
        assert!(needs_start_again(&s), "it could not be");
        s.resend.by_itself = false;
        if let Some(a) = &mut s.attempt {
            a.number = 1;
        }
        assert!(!needs_start_again(&s));
    }

    #[test]
    fn a_bar_tells_what_it_knows() {
        let p = progress(&Progress {
            what: None,
            done: 17.0,
            total: Some(25.0),
            seconds_per_step: Some(6.8),
            sampling: true,
            closed: false,
        });
        assert_eq!(
            (p.done.as_str(), p.pace.as_deref()),
            ("step 17/25", Some("6.80 s/step"))
        );
        assert_eq!(p.left.as_deref(), Some("55 s"));
        let p = progress(&Progress {
            what: Some("Loading shards".to_owned()),
            done: 2.0,
            total: None,
            seconds_per_step: None,
            sampling: false,
            closed: false,
        });
        assert_eq!(
            (p.done.as_str(), p.percent, p.left),
            ("Loading shards 2", None, None)
        );
    }
}
