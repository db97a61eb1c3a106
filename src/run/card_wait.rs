//! Before the first attempt: the wait for a card that an earlier run has left in use.

use std::time::Duration;

use crate::model::{CardHeld, Effect, Event, Mono, Outcome};

use super::snapshot::Stage as Shown;
use super::state::RunState;

/// The wait is given up after this time: a guardian needs 12 s to end whatever can be ended.
const CARD_WAIT: Duration = Duration::from_mins(1);

/// A wait for the card.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CardWait {
    held: CardHeld,
    since: Mono,
}

impl RunState {
    pub(super) fn card_event(&mut self, event: &Event) {
        match event {
            Event::CardHeld(held) => {
                let since = self.card_wait.as_ref().map_or(self.now, |wait| wait.since);
                let held = held.clone();
                self.card_wait = Some(CardWait { held, since });
            }
            Event::CardFree { .. } | Event::AttemptStarted(_) => self.card_wait = None,
            _ => {}
        }
    }

    /// Starts the first attempt once the card is ours and was read at rest.
    pub(super) fn advance_preparing(&mut self, out: &mut Vec<Effect>) {
        let Some(wait) = &self.card_wait else {
            if self.card_is_read() {
                self.launch(None, out);
            }
            return;
        };
        if self.now.since(wait.since) >= self.of_machine(CARD_WAIT) {
            let held = wait.held.clone();
            self.refuse_card(&held, out);
        }
    }

    fn refuse_card(&mut self, held: &CardHeld, out: &mut Vec<Effect>) {
        let summary = format!(
            "nothing was started: card {} is still in use after {} s by {}; {}, or choose another card with --gpu",
            held.gpu,
            CARD_WAIT.as_secs(),
            held.holders(),
            held.cure(),
        );
        let pids = held.processes.iter().map(|p| p.pid).collect();
        self.finish(Outcome::CardHeld { pids }, summary, out);
    }

    pub(super) fn view_preparing(&self) -> Shown {
        match &self.card_wait {
            None => Shown::Preparing,
            Some(wait) => Shown::CardHeld {
                held: Box::new(wait.held.clone()),
                until: wait.since + self.of_machine(CARD_WAIT),
            },
        }
    }
}
