//! The run as plain text: one line per change, one line of status a minute.
//!
//! For screen readers, CI logs and everything that is no terminal: no cursor
//! movement, no colour, no line that is rewritten. The child's own lines are passed
//! on behind `out| ` and `err| `.

mod cards;
mod child;
mod find;
mod lobby;
mod story;
mod trouble;

pub use cards::cards_text;
pub use lobby::lobby_text;

use std::io::{self, Write};
use std::time::Duration;

use crate::model::event::{Choice, Decision, RunStarted};
use crate::model::time::clock;
use crate::model::{
    AgentRank, AgentWay, Envelope, Event, GpuId, Health, JobChange, Mono, Phase, Progress, RungId,
    Sample, Verdict, VerdictId,
};

use super::diagnosis;
use super::text::{ago, clean, left, number, percent};
use super::words::{self, gib};
use child::ChildLines;
use find::Finds;
use trouble::Trouble;

/// Time between two lines of status.
const STATUS: Duration = Duration::from_mins(1);
/// Shortest time between two lines about the same wait.
const WAIT: Duration = Duration::from_secs(10);

/// Writes the stream of a run as plain text.
///
/// The last line of a run that wrote a result is the path of that file, alone.
#[derive(Debug)]
pub struct PlainWriter<W: Write> {
    out: W,
    /// The supervising process, for `kill -USR1`; absent: it cannot be told what to do.
    pid: Option<u32>,
    child: ChildLines,
    state: State,
}

/// What has to be remembered to tell changes and the status.
#[derive(Debug, Default)]
struct State {
    gpu: Option<GpuId>,
    cap: Option<crate::model::Bytes>,
    attempt: u32,
    /// The process was not started by us.
    attached: Option<u32>,
    /// A lost job is sent again by itself, and told of.
    resends: bool,
    rung: Option<RungId>,
    health: Option<(Health, VerdictId)>,
    health_since: Mono,
    /// Every process of the attempt is gone.
    ended: bool,
    phase: Option<Phase>,
    section: (Option<u32>, Option<u32>),
    progress: Option<Progress>,
    /// A job was told to have begun, and no end of it.
    in_flight: bool,
    /// Whose phases and bars count.
    agent: AgentRank,
    find: Finds,
    sample: Option<Sample>,
    last_output: Option<Mono>,
    last_status: Mono,
    last_wait: Option<Mono>,
    /// Readings of the card that fail or are disputed, as last told.
    trouble: Trouble,
}

impl<W: Write> PlainWriter<W> {
    /// A writer to `out`; `pid` is our own process id, which the user needs to
    /// send us signals.
    pub fn new(out: W, pid: u32) -> Self {
        Self::following(out, Some(pid))
    }

    /// A writer of another process's run; `pid` is that process, if it can be reached.
    pub fn following(out: W, pid: Option<u32>) -> Self {
        Self {
            out,
            pid,
            child: ChildLines::default(),
            state: State::default(),
        }
    }

    /// The writer underneath.
    pub fn into_inner(self) -> W {
        self.out
    }

    /// Takes the next envelope of the stream.
    ///
    /// # Errors
    ///
    /// Whatever writing gives; the reader behind `out` is then gone.
    pub fn accept(&mut self, envelope: &Envelope) -> io::Result<()> {
        let at = envelope.at;
        let due = self.child.due(at);
        self.pass_on(due)?;
        if let Some(heard) = self.state.agent.heed(envelope) {
            self.event(at, &heard.event)?;
        }
        self.state.agent.observe(envelope);
        if let Event::Sample(sample) = &envelope.event
            && let Some(text) = self.state.trouble.news(at, self.state.gpu.as_ref(), sample)
        {
            self.say(at, "readings", &text)?;
        }
        if let Some(text) = self.state.find.due(at) {
            self.say(at, "find", &text)?;
        }
        let over = matches!(envelope.event, Event::RunFinished { .. });
        if !over && at.since(self.state.last_status) >= STATUS {
            self.state.last_status = at;
            let status = self.state.status(at);
            self.say(at, "status", &status)?;
        }
        Ok(())
    }

    /// The stream ends here, with or without an end of the run: writes what is held back.
    ///
    /// # Errors
    ///
    /// Whatever writing gives.
    pub fn finish(&mut self) -> io::Result<()> {
        let rest = self.child.rest();
        self.pass_on(rest)?;
        self.out.flush()
    }

    /// Lines of the child.
    fn pass_on(&mut self, lines: Vec<String>) -> io::Result<()> {
        for line in lines {
            writeln!(self.out, "{line}")?;
        }
        Ok(())
    }

    /// One line of ours: when, about what, what.
    fn say(&mut self, at: Mono, about: &str, text: &str) -> io::Result<()> {
        let counts = self.child.counts();
        self.pass_on(counts)?;
        writeln!(self.out, "{} {about}: {}", at.clock(), clean(text, false))
    }

    fn event(&mut self, at: Mono, event: &Event) -> io::Result<()> {
        let news = self.state.remember(at, event);
        if matches!(
            event,
            Event::Exited(_)
                | Event::GroupGone { .. }
                | Event::AttemptStarted(_)
                | Event::RunFinished { .. }
        ) {
            let rest = self.child.rest();
            self.pass_on(rest)?;
        }
        match event {
            _ if !news => Ok(()),
            Event::RunStarted(r) => self.started(at, r),
            Event::Line(line) => {
                let lines = self.child.line(at, line);
                self.pass_on(lines)
            }
            Event::AttemptStarted(a) => match self.state.attached {
                Some(pid) => self.say(at, "watch", &story::watched(pid)),
                None => self.say(at, "attempt", &story::attempt(a)),
            },
            // of a process that is not ours there are no attempts, and one end
            Event::Spawned { .. } | Event::GroupGone { .. } if self.state.attached.is_some() => {
                Ok(())
            }
            Event::Exited(e) if let Some(pid) = self.state.attached => {
                self.say(at, "exited", &format!("process {pid}: {}", e.status))
            }
            Event::Phase(p) => self.say(at, "phase", &story::phase(p)),
            Event::Verdict(v) => {
                self.say(at, "health", &story::verdict(at, v))?;
                self.diagnosis(at, v)
            }
            Event::Decision(d) => self.decision(at, d),
            Event::Job(JobChange::Waiting) if self.state.attempt >= 2 && !self.state.resends => {
                let text = "press Start again: the restarted server waits for a job";
                self.say(at, "job", text)
            }
            Event::Find(mark) => match self.state.find.take(at, mark) {
                Some(text) => self.say(at, "find", &text),
                None => Ok(()),
            },
            Event::VramWaiting { used, before } => {
                let text = format!(
                    "waits until VRAM falls: {} -> {} GiB",
                    gib(*used),
                    gib(*before)
                );
                self.say(at, "vram", &text)
            }
            Event::RunFinished {
                outcome,
                exit_code,
                result,
                summary,
            } => {
                self.say(at, "end", &story::end(outcome, *exit_code, summary))?;
                match result {
                    Some(a) => writeln!(self.out, "{}", clean(&a.path, false))?,
                    None => self.say(at, "result", "none was written")?,
                }
                self.out.flush()
            }
            other => match story::line(other) {
                Some((about, text)) => self.say(at, about, &text),
                None => Ok(()),
            },
        }
    }

    /// Why a fault is one: verdict, evidence, what was ruled out, what follows.
    fn diagnosis(&mut self, at: Mono, v: &Verdict) -> io::Result<()> {
        if !diagnosis::is_fault(v.health) {
            return Ok(());
        }
        let mut lines = diagnosis::lines(v, at, self.state.attached.is_none());
        // the line before says it
        lines.retain(|(about, _)| *about != "reason");
        // what was ruled out is many and short
        for part in lines.chunk_by(|a, b| a.0 == b.0 && a.0 == "ruled out") {
            let about = part.first().map_or("", |(about, _)| about);
            let texts: Vec<_> = part.iter().map(|(_, text)| text.as_str()).collect();
            let text = format!("{about}: {}", texts.join("; "));
            self.say(at, "diagnosis", &text)?;
        }
        Ok(())
    }

    fn decision(&mut self, at: Mono, d: &Decision) -> io::Result<()> {
        self.say(
            at,
            "decision",
            &story::decision(at, d, self.state.attached.is_none()),
        )?;
        for s in &d.skipped {
            self.say(at, "not available", &format!("rung {}: {}", s.rung, s.why))?;
        }
        match &d.choice {
            Choice::Restart { kill_at, .. } if *kill_at > at => self.choices(at, *kill_at),
            _ => Ok(()),
        }
    }

    fn started(&mut self, at: Mono, r: &RunStarted) -> io::Result<()> {
        self.say(
            at,
            "run",
            &format!("{} in {}: {}", r.run, r.cwd, r.argv.join(" ")),
        )?;
        let gpu = r.gpu.as_ref().map_or_else(
            || "no GPU is watched".to_owned(),
            |gpu| format!("GPU {gpu}"),
        );
        let cap = r
            .vram_cap
            .map_or_else(String::new, |c| format!(", VRAM cap {c}"));
        let text = format!(
            "{} ({}), adapter {}, {gpu}{cap}",
            r.profile, r.profile_why, r.adapter
        );
        self.say(at, "profile", &text)
    }

    /// What can be done about an announced kill, by number and by signal.
    fn choices(&mut self, at: Mono, kill_at: Mono) -> io::Result<()> {
        let Some(pid) = self.pid else { return Ok(()) };
        let choices = [
            format!(
                "1. do nothing: the kill begins in {}",
                left(kill_at.since(at))
            ),
            format!("2. hold it: kill -USR1 {pid}"),
            format!("3. take evidence now: kill -USR2 {pid}"),
            format!("4. end the run: kill -TERM {pid}"),
        ];
        for choice in choices {
            self.say(at, "choice", &choice)?;
        }
        self.out.flush()
    }
}

impl State {
    /// Takes an event; `false` when it says nothing new.
    fn remember(&mut self, at: Mono, event: &Event) -> bool {
        match event {
            Event::RunStarted(r) => {
                self.gpu.clone_from(&r.gpu);
                self.cap = r.vram_cap;
                self.attached = r.attached.map(|a| a.pid);
                self.resends = r.plan.agent == AgentWay::On;
                self.last_status = at;
            }
            Event::AttemptStarted(a) => {
                // What was said of the attempt before does not hold for this one.
                *self = Self {
                    gpu: self.gpu.take(),
                    cap: self.cap,
                    attached: self.attached,
                    resends: self.resends,
                    sample: self.sample.take(),
                    trouble: std::mem::take(&mut self.trouble),
                    last_status: self.last_status,
                    attempt: a.number,
                    rung: Some(a.rung.clone()),
                    ..Self::default()
                };
            }
            Event::GroupGone { .. } => self.ended = true,
            Event::Line(_) => self.last_output = Some(at),
            Event::Sample(s) => self.sample = Some((**s).clone()),
            Event::Progress(p) => {
                self.find.forget();
                self.progress = Some(p.clone());
            }
            Event::Phase(p) => {
                self.find.forget();
                let section = (p.section, p.sections);
                self.progress = None;
                let same = self.phase.replace(p.phase) == Some(p.phase);
                return std::mem::replace(&mut self.section, section) != section || !same;
            }
            Event::Verdict(v) => {
                let now = (v.health, v.id);
                if self.health.replace(now) == Some(now) {
                    return false;
                }
                self.health_since = at;
            }
            Event::Job(change) => {
                let began = *change == JobChange::Started;
                // that of a program that is started for one is guessed, then its agent tells it
                return !(std::mem::replace(&mut self.in_flight, began) && began);
            }
            Event::VramWaiting { .. } => {
                if self.last_wait.is_some_and(|t| at.since(t) < WAIT) {
                    return false;
                }
                self.last_wait = Some(at);
            }
            Event::VramReclaimed { .. } => self.last_wait = None,
            _ => {}
        }
        true
    }

    /// The present state in one line.
    fn status(&self, at: Mono) -> String {
        let mut parts = Vec::new();
        match self.health {
            Some(_) if self.ended => parts.push("no process lives".to_owned()),
            Some((health, VerdictId::Healthy)) => parts.push(format!(
                "{} for {}",
                health.word(),
                clock(at.since(self.health_since))
            )),
            Some((health, id)) => parts.push(format!(
                "{} {id} for {}",
                health.word(),
                clock(at.since(self.health_since))
            )),
            None => parts.push(Health::Starting.word().to_owned()),
        }
        match (self.attached, &self.rung) {
            (Some(pid), _) => parts.push(format!("process {pid} watched")),
            (None, Some(rung)) => parts.push(format!("attempt {} on {rung}", self.attempt)),
            (None, None) => {}
        }
        if let Some(phase) = self.phase {
            parts.push(match self.section {
                (Some(n), Some(all)) => format!("{phase} section {n}/{all}"),
                (Some(n), None) => format!("{phase} section {n}"),
                (None, _) => phase.to_string(),
            });
        }
        if let Some(p) = self.progress.as_ref().map(words::progress) {
            let share = p
                .percent
                .map_or_else(String::new, |v| format!(" ({} %)", number(v, 0)));
            let pace = p.pace.map_or_else(String::new, |v| format!(", {v}"));
            parts.push(format!("{}{share}{pace}", p.done));
        }
        parts.extend(self.card());
        parts.push(match self.last_output {
            Some(t) => format!("last output {} ago", ago(at.since(t))),
            None => "no output yet".to_owned(),
        });
        parts.join("; ")
    }

    /// Memory, busy and power of the card, each with its state.
    fn card(&self) -> Vec<String> {
        let Some(id) = &self.gpu else {
            return vec!["no GPU".to_owned()];
        };
        let card = self
            .sample
            .as_ref()
            .and_then(|s| s.gpus.iter().find(|g| g.id == *id));
        let Some(g) = card else {
            return vec!["GPU -- (no reading)".to_owned()];
        };
        let (name, used, total) = words::pool(g);
        let whole = self.cap.or(total.last().copied());
        let of = whole.map_or_else(|| "--".to_owned(), gib);
        let share = used
            .last()
            .zip(whole)
            .and_then(|(u, w)| percent(u.as_gib_f64(), w.as_gib_f64()))
            .map_or_else(String::new, |v| format!(" ({} %)", number(v, 0)));
        let used = words::reading(used, |b| format!("{}/{of} GiB{share}", gib(*b)));
        [
            (name, used),
            ("busy", words::quantity(&g.busy, 0, "%")),
            ("power", words::quantity(&g.power_w, 0, "W")),
        ]
        .into_iter()
        .map(|(name, r)| match &r.note {
            Some(note) => format!("{name} {} ({note})", r.text),
            None => format!("{name} {}", r.text),
        })
        .collect()
    }
}

#[cfg(test)]
mod tests;
