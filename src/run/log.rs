//! The log pane: the child's lines and our own words in one order.

use crate::detect::kernel_fault;
use crate::model::event::{Choice, Decision, GUARDIAN_LOST};
use crate::model::{
    AttemptSpec, EnvOrigin, Event, Flood, Health, Line, Mono, Phase, SourceState, SourceStatus,
    Stream, Verdict, VerdictId, gap_words, looks_like_bar,
};

use super::launcher::name_processes;
use super::log_lines::LogLines;
use super::snapshot::{LogKind, LogLine};

/// The log as it grows.
#[derive(Debug, Clone, Default)]
pub(super) struct Log {
    pub(super) lines: LogLines,
    /// Lines folded away because we asked for them ourselves.
    pub(super) chatter: u64,
    /// Our word for the phase that the attempt is in.
    phase: Option<String>,
    /// The gap that stands last: its stream, its lines, those that are lost.
    gap: Option<(LogKind, u64, u64)>,
}

impl Log {
    /// A line of the child. A bar that rewrites itself, or the same text again, is
    /// one line with a counter.
    pub(super) fn child(&mut self, at: Mono, phase: Phase, line: &Line) {
        if line.chatter {
            self.chatter += 1;
            return;
        }
        let kind = match line.stream {
            Stream::Stdout => LogKind::Stdout,
            Stream::Stderr => LogKind::Stderr,
        };
        self.gap = None;
        let is_continued = |before: &LogLine| {
            // the final state of a bar ends with a newline and still belongs to it
            let same_bar = before.bar && (line.bar || looks_like_bar(&line.text));
            before.kind == kind && (same_bar || before.text == line.text)
        };
        // our own words may have come between two states of a bar
        let continued = {
            let mut newest = self.lines.iter().rev().enumerate();
            newest
                .find(|(_, l)| l.kind != LogKind::Own)
                .filter(|(_, before)| is_continued(before))
                .map(|(nth, _)| nth)
        };
        if let Some(nth) = continued
            && let Some(earlier) = self.lines.remove_from_end(nth)
        {
            // it moves to the end, so that the times of the log never run backwards
            return self.lines.push(LogLine {
                at,
                kind,
                text: line.text.clone(),
                phase,
                bar: line.bar,
                folded: earlier.folded + 1,
            });
        }
        if line.text.trim().is_empty() {
            return;
        }
        self.push(LogLine {
            at,
            kind,
            text: line.text.clone(),
            phase,
            bar: line.bar,
            folded: 0,
        });
    }

    /// Lines that are not shown, marked where they would stand. Stretches that follow each other
    /// are one gap.
    pub(super) fn gap(&mut self, at: Mono, phase: Phase, flood: &Flood) {
        let kind = match flood.stream {
            Stream::Stdout => LogKind::Stdout,
            Stream::Stderr => LogKind::Stderr,
        };
        let (mut lines, mut lost) = (flood.lines, flood.lost());
        if let Some((_, before, lost_before)) = self.gap.filter(|(of, ..)| *of == kind) {
            lines = lines.saturating_add(before);
            lost = lost.saturating_add(lost_before);
            self.lines.remove_from_end(0);
        }
        self.push(LogLine {
            at,
            kind,
            text: format!("... {}", gap_words(lines, lost)),
            phase,
            bar: false,
            folded: 0,
        });
        self.gap = Some((kind, lines, lost));
    }

    /// What is told of another event than a line. A phase that console and agent both tell of is told once.
    pub(super) fn event(&mut self, at: Mono, phase: Phase, event: &Event, text: String) {
        match event {
            Event::AttemptStarted(_) => self.phase = None,
            Event::Phase(_) if self.phase.as_ref() == Some(&text) => return,
            Event::Phase(_) => self.phase = Some(text.clone()),
            _ => {}
        }
        self.own(at, phase, text);
    }

    /// Our own word.
    pub(super) fn own(&mut self, at: Mono, phase: Phase, text: String) {
        self.push(LogLine {
            at,
            kind: LogKind::Own,
            text,
            phase,
            bar: false,
            folded: 0,
        });
    }

    fn push(&mut self, line: LogLine) {
        self.gap = None;
        self.lines.push(line);
    }
}

fn verdict_words(v: &Verdict) -> String {
    match v.health {
        Health::Starting | Health::Healthy if v.id == VerdictId::Healthy => {
            v.health.word().to_lowercase()
        }
        Health::Starting | Health::Healthy => {
            format!("{}: {}", v.health.word().to_lowercase(), v.id)
        }
        Health::Quiet | Health::Paused => {
            format!("{}: {}", v.health.word().to_lowercase(), v.sentence)
        }
        // a rule that found nothing says nothing beside another health
        _ if v.id == VerdictId::Healthy => format!("{}: {}", v.health.word(), v.sentence),
        _ => format!("{} {}: {}", v.health.word(), v.id, v.sentence),
    }
}

/// How a source is doing, in the words of the screen.
const fn source_word(state: SourceState) -> &'static str {
    match state {
        SourceState::Starting => "starting",
        SourceState::Ok => "ok",
        SourceState::Failing => "failed",
        SourceState::Stale => "stale",
        SourceState::Lost => "LOST",
        SourceState::Absent => "absent",
    }
}

fn source_words(s: &SourceStatus) -> String {
    let head = format!("source {} {}", s.name, source_word(s.state));
    match &s.why {
        Some(why) if s.state != SourceState::Ok => format!("{head}: {why}"),
        _ => head,
    }
}

/// Our own words about an event; `None`: it is not for the log.
pub(super) fn words(event: &Event) -> Option<String> {
    Some(match event {
        Event::Notice { text, .. } => text.clone(),
        Event::AttemptStarted(a) => attempt_words(a),
        Event::SpawnFailed { why, .. } => format!("could not be started: {why}"),
        Event::Phase(p) => match (p.section, p.sections) {
            (Some(k), Some(n)) => format!("-- {} section {k}/{n}", p.phase),
            (Some(k), None) => format!("-- {} section {k}", p.phase),
            _ => format!("-- {}", p.phase),
        },
        Event::Artefact(a) => format!("wrote {} ({})", a.path, a.extent()),
        Event::Dropped { what, n } if what == "lines" => format!("... {}", gap_words(*n, *n)),
        Event::Kernel { text } => match kernel_fault(text) {
            Some(fault) => format!("kernel: {}: {text}", fault.words()),
            None => format!("kernel: {text}"),
        },
        Event::Verdict(v) => verdict_words(v),
        Event::Decision(d) => decision_words(d),
        Event::EvidenceTaken(e) => format!("evidence {} in {} ({})", e.number, e.dir, e.counts()),
        Event::SignalSent {
            signal, reached, ..
        } => format!("{} sent, reached {reached}", signal.name()),
        Event::Exited(e) => format!("the process ended: {}", e.status),
        Event::CommandReturned { processes, .. } => format!(
            "the command has returned; what it started is watched as the job: {}",
            name_processes(processes.iter().map(|p| (p.pid, p.name.as_str())))
        ),
        Event::Survivors { processes, .. } if !processes.is_empty() => {
            let list: Vec<String> = processes
                .iter()
                .map(|p| format!("{} {} ({})", p.pid, p.name, p.state))
                .collect();
            format!("still there: {}", list.join(", "))
        }
        Event::GuardianLost { .. } => GUARDIAN_LOST.to_owned(),
        Event::CardHeld(held) => {
            format!(
                "waiting for card {}: {}; {}",
                held.gpu,
                held.holders(),
                held.cure()
            )
        }
        Event::CardFree { gpu, took_ms } => {
            format!("card {gpu} is free after {:.1} s", millis_s(*took_ms))
        }
        Event::VramWaiting { used, before } => {
            format!("waiting until VRAM falls: {used} in use, {before} before the run")
        }
        Event::VramReclaimed {
            used: Some(used),
            took_ms,
            complete: true,
        } => format!("VRAM is back: {used} after {:.1} s", millis_s(*took_ms)),
        Event::VramReclaimed {
            complete: false, ..
        } => "VRAM did not come back in time".to_owned(),
        Event::Standstill { cause, for_ms } => {
            format!(
                "no judgement for {:.1} s: {}",
                millis_s(*for_ms),
                cause.words()
            )
        }
        Event::Agent(note) => format!("agent: {}", note.words()?),
        Event::Source(s) => source_words(s),
        Event::Replanned(r) => format!("for the next attempt: {}", r.what),
        Event::Resend(r) => r.word.words(),
        Event::ProfileSaved { id, path } => format!("profile {id} saved as {path}"),
        Event::RunFinished { summary, .. } => summary.clone(),
        _ => return None,
    })
}

fn attempt_words(a: &AttemptSpec) -> String {
    let mut s = format!("==== attempt {}  rung {} ====", a.number, a.rung);
    for change in a.env.iter().filter(|c| c.origin == EnvOrigin::Rung) {
        s.push(' ');
        s.push_str(&change.name);
        s.push('=');
        s.push_str(change.value.as_deref().unwrap_or("(removed)"));
    }
    s
}

fn decision_words(d: &Decision) -> String {
    let head = match &d.choice {
        Choice::Restart { rung, .. } => format!("restart on rung {rung}"),
        Choice::GiveUp => "give up".to_owned(),
        Choice::Advise => "advice only".to_owned(),
        Choice::Hold => "held".to_owned(),
        Choice::Resume => "go on".to_owned(),
    };
    format!("{head}: {}", d.why)
}

#[expect(clippy::cast_precision_loss, reason = "display only")]
fn millis_s(ms: u64) -> f64 {
    ms as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const P: Phase = Phase::Sampling;

    fn line(text: &str, bar: bool) -> Line {
        Line {
            attempt: 1,
            row: 0,
            stream: Stream::Stderr,
            text: text.to_owned(),
            bar,
            truncated: false,
            chatter: false,
        }
    }

    #[test]
    fn a_bar_is_one_line_across_our_own_words_and_time_goes_forward() {
        let mut log = Log::default();
        log.child(Mono(1), P, &line("0%|   | 0/2 [00:00<?, ?it/s]", true));
        log.own(Mono(2), P, "-- sampling".to_owned());
        log.child(Mono(3), P, &line("50%|#  | 1/2 [00:01<00:01, 1it/s]", true));
        log.child(
            Mono(4),
            P,
            &line("100%|###| 2/2 [00:02<00:00, 1it/s]", false),
        );
        log.child(Mono(5), P, &line("done", false));
        let seen: Vec<_> = log
            .lines
            .iter()
            .map(|l| (l.at.0, l.text.as_str(), l.folded))
            .collect();
        assert_eq!(
            seen,
            [
                (2, "-- sampling", 0),
                (4, "100%|###| 2/2 [00:02<00:00, 1it/s]", 2),
                (5, "done", 0)
            ]
        );
    }

    #[test]
    fn a_phase_that_two_tell_of_is_told_once() {
        use crate::model::progress::PhaseChange;

        let mut log = Log::default();
        let mut tell = |at, phase, section| {
            let event = Event::Phase(PhaseChange {
                phase,
                section,
                sections: section.map(|_| 3),
                on_cpu: false,
            });
            let text = words(&event).unwrap();
            log.event(Mono(at), phase, &event, text);
        };
        // the console, then the agent
        tell(1, Phase::VaeDecode, Some(1));
        tell(2, Phase::VaeDecode, Some(1));
        tell(3, Phase::Save, Some(1));
        tell(4, Phase::VaeDecode, Some(1));
        tell(5, Phase::VaeDecode, Some(2));
        let seen: Vec<_> = log
            .lines
            .iter()
            .map(|l| (l.at.0, l.text.as_str()))
            .collect();
        assert_eq!(
            seen,
            [
                (1, "-- vae_decode section 1/3"),
                (3, "-- save section 1/3"),
                (4, "-- vae_decode section 1/3"),
                (5, "-- vae_decode section 2/3"),
            ]
        );
    }

    #[test]
    fn a_source_is_told_in_the_words_of_the_screen() {
        let told = |state, why: Option<&str>| {
            source_words(&SourceStatus {
                name: "nvml".to_owned(),
                state,
                age_ms: 0,
                why: why.map(str::to_owned),
            })
        };
        assert_eq!(
            told(SourceState::Failing, Some("EIO")),
            "source nvml failed: EIO"
        );
        assert_eq!(told(SourceState::Ok, None), "source nvml ok");
    }

    #[test]
    fn chatter_is_counted_and_kept_out() {
        let mut log = Log::default();
        log.child(
            Mono(1),
            P,
            &Line {
                chatter: true,
                ..line("MIOpen(HIP): Info [x] y", false)
            },
        );
        assert!(log.lines.is_empty());
        assert_eq!(log.chatter, 1);
    }
}
