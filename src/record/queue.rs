//! A bounded queue of envelopes in which important ones have reserved room.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::model::{Envelope, Event, Finding};

/// How much an envelope matters when there is no room for all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Ticks, samples and lines: many, and the next one says nearly the same.
    Expendable,
    /// Everything between.
    Ordinary,
    /// What the story of a run cannot be told without: head and end, verdicts,
    /// decisions, evidence, signals, exits, attempts, commands.
    Important,
}

impl Class {
    /// The class of an event.
    pub const fn of(event: &Event) -> Self {
        match event {
            Event::Tick | Event::Sample(_) | Event::Line(_) | Event::Flood(_) => Self::Expendable,
            Event::RunStarted(_)
            | Event::AttemptStarted(_)
            | Event::Spawned { .. }
            | Event::SpawnFailed { .. }
            | Event::Verdict(_)
            | Event::Decision(_)
            | Event::EvidenceTaken(_)
            | Event::SignalSent { .. }
            | Event::Exited(_)
            | Event::CommandReturned { .. }
            | Event::ProcessEnded { .. }
            | Event::GroupGone { .. }
            | Event::GuardianLost { .. }
            | Event::CardHeld(_)
            | Event::CardFree { .. }
            | Event::Survivors { .. }
            | Event::Command(_)
            | Event::Replanned(_)
            | Event::ProfileSaved { .. }
            | Event::LostJobs(_)
            | Event::Resend(_)
            | Event::RunFinished { .. } => Self::Important,
            Event::Notice { .. }
            | Event::Phase(_)
            | Event::Progress(_)
            | Event::Job(_)
            | Event::Find(_)
            | Event::Artefact(_)
            | Event::Agent(_)
            | Event::Kernel { .. }
            | Event::VramWaiting { .. }
            | Event::VramReclaimed { .. }
            | Event::Source(_)
            | Event::Probe(_)
            | Event::Standstill { .. }
            | Event::Dropped { .. } => Self::Ordinary,
        }
    }
}

/// The word under which a dropped event is counted.
const fn counted_as(event: &Event) -> &'static str {
    match event {
        Event::Tick => "ticks",
        Event::Sample(_) => "samples",
        Event::Line(_) | Event::Flood(_) => "lines",
        _ => "events",
    }
}

/// Bounds of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueLimits {
    /// Most envelopes that wait.
    pub envelopes: usize,
    /// Most bytes that wait, by estimate.
    pub bytes: usize,
}

impl Default for QueueLimits {
    fn default() -> Self {
        Self {
            envelopes: 65_536,
            bytes: 16 << 20,
        }
    }
}

impl QueueLimits {
    /// The part of the queue that a class may fill: expendable ones three
    /// quarters, ordinary ones seven eighths, important ones all of it.
    const fn share(self, class: Class) -> (usize, usize) {
        let (n, d) = match class {
            Class::Expendable => (3, 4),
            Class::Ordinary => (7, 8),
            Class::Important => (1, 1),
        };
        (self.envelopes / d * n, self.bytes / d * n)
    }
}

/// Rough size of an envelope in memory and as JSON. An estimate is enough: the
/// bound guards against growth without end, not against a byte too many.
fn weight(envelope: &Envelope) -> usize {
    const BASE: usize = 256;
    BASE + match &envelope.event {
        Event::Line(line) => line.text.len(),
        Event::Flood(flood) => flood.kept.iter().map(|line| line.text.len() + 48).sum(),
        Event::Sample(s) => {
            let threads = s.process.as_ref().map_or(0, |p| p.per_thread.len());
            1024 + s.gpus.len() * 1024 + threads * 192 + s.sources.len() * 128
        }
        Event::Verdict(v) => {
            let findings = v.findings.iter();
            let cites = |f: &Finding| f.cites.iter().map(|c| c.text.len() + 128).sum::<usize>();
            1024 + v.considered.len() * 128
                + findings
                    .map(|f| f.text.len() + f.seqs.len() * 8 + 64 + cites(f))
                    .sum::<usize>()
        }
        Event::AttemptStarted(_) | Event::RunStarted(_) | Event::EvidenceTaken(_) => 4096,
        Event::Kernel { text } | Event::Notice { text, .. } => text.len(),
        _ => 0,
    }
}

/// The queue itself; the lock around it is the sink thread's.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: VecDeque<Arc<Envelope>>,
    bytes: usize,
    dropped: BTreeMap<&'static str, u64>,
}

impl Queue {
    /// Takes the envelope in, or counts it as dropped.
    pub(super) fn offer(&mut self, envelope: Arc<Envelope>, limits: QueueLimits) {
        let (envelopes, bytes) = limits.share(Class::of(&envelope.event));
        let weight = weight(&envelope);
        if self.waiting.len() >= envelopes || self.bytes.saturating_add(weight) > bytes {
            let lines = match &envelope.event {
                Event::Flood(flood) => flood.lines,
                _ => 1,
            };
            *self.dropped.entry(counted_as(&envelope.event)).or_default() += lines;
            return;
        }
        self.bytes += weight;
        self.waiting.push_back(envelope);
    }

    pub(super) fn pop(&mut self) -> Option<Arc<Envelope>> {
        let envelope = self.waiting.pop_front()?;
        self.bytes = self.bytes.saturating_sub(weight(&envelope));
        Some(envelope)
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.bytes = 0;
    }

    pub(super) fn take_dropped(&mut self) -> Vec<(String, u64)> {
        std::mem::take(&mut self.dropped)
            .into_iter()
            .map(|(what, n)| (what.to_owned(), n))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Line, Mono, Outcome, Stream};

    fn envelope(seq: u64, event: Event) -> Arc<Envelope> {
        Arc::new(Envelope {
            seq,
            at: Mono(seq),
            from: None,
            event,
        })
    }

    fn line(text: String) -> Event {
        Event::Line(Line {
            attempt: 1,
            row: 0,
            stream: Stream::Stdout,
            text,
            bar: false,
            truncated: false,
            chatter: false,
        })
    }

    #[test]
    fn a_full_queue_drops_expendable_ones_and_keeps_room_for_the_end() {
        let limits = QueueLimits {
            envelopes: 16,
            bytes: 1 << 20,
        };
        let mut q = Queue::default();
        for seq in 0..100 {
            q.offer(envelope(seq, Event::Tick), limits);
        }
        assert_eq!(q.len(), 12);
        let notice = Event::Kernel {
            text: "amdgpu: ring timeout".into(),
        };
        for seq in 100..110 {
            q.offer(envelope(seq, notice.clone()), limits);
        }
        assert_eq!(q.len(), 14);
        let end = Event::RunFinished {
            outcome: Outcome::GaveUp,
            exit_code: 21,
            result: None,
            summary: String::new(),
        };
        q.offer(envelope(200, end), limits);
        assert_eq!(q.len(), 15);
        assert_eq!(
            q.take_dropped(),
            [("events".to_owned(), 8), ("ticks".to_owned(), 88)]
        );
        assert_eq!(q.take_dropped(), []);
    }

    #[test]
    fn bytes_are_bounded_too_and_given_back() {
        let limits = QueueLimits {
            envelopes: 1000,
            bytes: 64 << 10,
        };
        let mut q = Queue::default();
        for seq in 0..100 {
            q.offer(envelope(seq, line("x".repeat(8192))), limits);
        }
        let kept = q.len();
        assert!((4..=6).contains(&kept), "{kept}");
        while q.pop().is_some() {}
        assert_eq!(q.bytes, 0);
        q.offer(envelope(101, line("y".repeat(8192))), limits);
        assert_eq!(q.len(), 1);
    }
}
