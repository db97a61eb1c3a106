//! The recent past, kept ready for a bundle.

use std::collections::VecDeque;
use std::time::Duration;

use crate::model::{Envelope, Event, Mono, Stream};

use super::EvidenceRequest;

/// How far back samples are kept.
const SAMPLES_FOR: Duration = Duration::from_mins(10);
/// Bytes of samples.
const SAMPLES_BYTES: usize = 4 << 20;
/// Lines of each stream.
const LINES: usize = 500;
/// Lines of the kernel.
const KERNEL: usize = 500;

/// Follows the stream of events and keeps the last ten minutes of samples, the
/// last 500 lines of each output stream and what the kernel said. Bounded.
#[derive(Debug, Default)]
pub struct EvidenceRing {
    samples: VecDeque<(Mono, String)>,
    sample_bytes: usize,
    stdout: VecDeque<(u64, String)>,
    stderr: VecDeque<(u64, String)>,
    kernel: VecDeque<String>,
}

impl EvidenceRing {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes note of an envelope; most kinds are none of its business.
    pub fn observe(&mut self, envelope: &Envelope) {
        match &envelope.event {
            Event::Sample(_) => self.sample(envelope),
            Event::Line(line) => {
                let ring = match line.stream {
                    Stream::Stdout => &mut self.stdout,
                    Stream::Stderr => &mut self.stderr,
                };
                if let Ok(json) = serde_json::to_string(envelope) {
                    push(ring, (envelope.seq, json), LINES);
                }
            }
            Event::Kernel { text } => push(&mut self.kernel, text.clone(), KERNEL),
            _ => {}
        }
    }

    fn sample(&mut self, envelope: &Envelope) {
        let Ok(json) = serde_json::to_string(envelope) else {
            return;
        };
        self.sample_bytes += json.len();
        self.samples.push_back((envelope.at, json));
        while let Some((at, json)) = self.samples.front()
            && (envelope.at.since(*at) > SAMPLES_FOR || self.sample_bytes > SAMPLES_BYTES)
        {
            self.sample_bytes -= json.len();
            self.samples.pop_front();
        }
    }

    /// Puts what is kept into a request: samples, log in the order of the
    /// stream, kernel lines.
    pub fn fill(&self, request: &mut EvidenceRequest) {
        request.samples = self.samples.iter().map(|(_, json)| json.clone()).collect();
        let mut log: Vec<_> = self.stdout.iter().chain(&self.stderr).collect();
        log.sort_by_key(|(seq, _)| *seq);
        request.log = log.into_iter().map(|(_, json)| json.clone()).collect();
        request.kernel_lines = self.kernel.iter().cloned().collect();
    }
}

fn push<T>(ring: &mut VecDeque<T>, item: T, max: usize) {
    if ring.len() >= max {
        ring.pop_front();
    }
    ring.push_back(item);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Line;

    #[test]
    fn the_recent_past_is_bounded_and_in_order() {
        let mut ring = EvidenceRing::new();
        for n in 0..2000_u64 {
            let stream = if n % 2 == 0 {
                Stream::Stdout
            } else {
                Stream::Stderr
            };
            ring.observe(&Envelope {
                seq: n * 2,
                at: Mono(n * 1000),
                from: None,
                event: Event::Sample(Box::default()),
            });
            ring.observe(&Envelope {
                seq: n * 2 + 1,
                at: Mono(n * 1000),
                from: None,
                event: Event::Line(Line {
                    attempt: 1,
                    row: 0,
                    stream,
                    text: format!("line {n}"),
                    bar: false,
                    truncated: false,
                    chatter: false,
                }),
            });
        }
        let mut request = EvidenceRequest::default();
        ring.fill(&mut request);
        assert_eq!(request.samples.len(), 601);
        assert_eq!(request.log.len(), 1000);
        let seqs: Vec<u64> = request
            .log
            .iter()
            .map(|j| serde_json::from_str::<Envelope>(j).unwrap().seq)
            .collect();
        assert!(seqs.is_sorted());
        assert_eq!(seqs.last(), Some(&3999));
    }
}
