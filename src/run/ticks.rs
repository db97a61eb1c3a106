//! Puts the ticks back that a stream of `--headless` leaves out.
//!
//! Such a stream numbers them all the same: a gap in `seq` is where they were, and how
//! many. The supervisor's clock turns each [`TURN_MS`], which says when. What a rule said
//! upon a tick stands right behind it and tells its time.

use crate::model::event::TURN_MS;
use crate::model::{Envelope, Event, Mono};

use super::replay::Replay;

/// What is known of the clock of a stream, as it is read.
#[derive(Debug, Clone, Default)]
pub struct Ticks {
    /// Number and time of the last event.
    last: Option<(u64, Mono)>,
    /// The last turn of the clock: a sample or a tick.
    turn: Option<Mono>,
    seen: bool,
}

impl Ticks {
    /// Whether the stream holds ticks of its own; then none are put back.
    pub const fn seen(&self) -> bool {
        self.seen
    }

    /// Takes the next event; gives the ticks that came between the last one and it.
    pub fn before(&mut self, env: &Envelope) -> Vec<Envelope> {
        self.seen |= env.event == Event::Tick;
        let mut ticks = Vec::new();
        if let (false, Some((seq, at))) = (self.seen, self.last) {
            let gap = env.seq.saturating_sub(seq.saturating_add(1));
            let mut turn = self.turn.unwrap_or(Mono(at.0.saturating_sub(TURN_MS)));
            // where something else was dropped, the clock did not turn more often for that
            let most = env.at.0.saturating_sub(turn.0) / TURN_MS + 1;
            for nth in 1..=gap.min(most) {
                let due = turn.0.saturating_add(TURN_MS);
                turn = Mono(due.max(at.0).min(env.at.0.max(at.0)));
                ticks.push(Envelope {
                    seq: seq + nth,
                    at: turn,
                    from: None,
                    event: Event::Tick,
                });
            }
            if let Some(last) = ticks.last_mut().filter(|_| Replay::is_output(&env.event)) {
                last.at = env.at.max(at);
                turn = last.at;
            }
            if !ticks.is_empty() {
                self.turn = Some(turn);
            }
        }
        if matches!(env.event, Event::Sample(_) | Event::Tick) {
            self.turn = Some(env.at);
        }
        self.last = Some((env.seq, env.at));
        ticks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(seq: u64, at: u64, event: Event) -> Envelope {
        Envelope {
            seq,
            at: Mono(at),
            from: None,
            event,
        }
    }

    fn sample() -> Event {
        Event::Sample(Box::default())
    }

    fn said() -> Event {
        Event::Kernel {
            text: "a word".to_owned(),
        }
    }

    #[test]
    fn they_come_back_where_they_were() {
        let mut ticks = Ticks::default();
        let at = |given: &[Envelope]| -> Vec<_> { given.iter().map(|e| (e.seq, e.at.0)).collect() };
        assert!(ticks.before(&env(1, 0, said())).is_empty());
        assert!(ticks.before(&env(2, 500, sample())).is_empty());
        // halfway to the next reading
        let got = ticks.before(&env(4, 1001, sample()));
        assert_eq!(at(&got), [(3, 750)]);
        // not before a word that came before it, not behind one that came after it
        assert!(ticks.before(&env(5, 1260, said())).is_empty());
        let got = ticks.before(&env(7, 1270, said()));
        assert_eq!(at(&got), [(6, 1260)]);
        assert!(ticks.before(&env(8, 1503, sample())).is_empty());
        // what the rules said upon it tells when it was
        let ended = Event::RunFinished {
            outcome: crate::model::Outcome::Left,
            exit_code: 0,
            result: None,
            summary: String::new(),
        };
        let got = ticks.before(&env(10, 1790, ended));
        assert_eq!(at(&got), [(9, 1790)]);
        // a flood that was dropped is no flood of ticks
        assert_eq!(ticks.before(&env(90_000, 2290, sample())).len(), 3);
    }

    #[test]
    fn a_stream_with_ticks_gets_none() {
        let mut ticks = Ticks::default();
        ticks.before(&env(1, 0, said()));
        ticks.before(&env(2, 10, Event::Tick));
        assert!(ticks.before(&env(9, 2000, sample())).is_empty());
        assert!(ticks.seen());
    }
}
