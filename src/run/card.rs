//! What is told about the supervised card itself: a counter that is not believed,
//! another program's work and memory before the launch.

use std::time::Duration;

use crate::model::event::Level;
use crate::model::{BusyTrust, Effect, Event, GpuSample, Mono};

use super::reduce::emit;
use super::state::RunState;

/// Longest wait for the readings before the first launch.
const FIRST_READINGS: Duration = Duration::from_millis(1500);

impl RunState {
    /// Whether the card was read often enough for the first launch: three readings,
    /// which take one second. One alone may be a spike, and everything later is
    /// measured by it. A card that does not answer is not waited for any longer.
    pub(super) fn card_is_read(&self) -> bool {
        let silent = |card: &GpuSample| card.busy.fresh().or(card.power_w.fresh()).is_none();
        // a card that another program works on already is never read at rest
        self.is_attached()
            || self.plan.gpu.is_none()
            || self.now.since(Mono::ZERO) >= self.of_machine(FIRST_READINGS)
            || (self.vram_before.is_some()
                && (self.detector.idle_is_settled() || self.card().is_some_and(silent)))
    }

    /// A busy counter that is not believed any more is told once.
    pub(super) fn tell_trust(&mut self, out: &mut Vec<Effect>) {
        if self.trust_told {
            return;
        }
        let BusyTrust::Untrusted { why, .. } = self.detector.busy_trust() else {
            return;
        };
        let text = format!(
            "{why}: not trusted for the rest of this run; power, memory traffic and progress tell instead"
        );
        self.trust_told = true;
        out.push(warn(text));
    }

    /// Before the first launch: what others do with the card.
    pub(super) fn tell_others(&self, out: &mut Vec<Effect>) {
        let working = self.detector.idle().and_then(|l| l.in_use.as_ref());
        out.extend(working.map(|why| {
            warn(format!(
                "the card is not at rest before the launch ({why}): its own idle level is not known, and work of others looks like ours"
            ))
        }));
        let fresh = |g: &&GpuSample| {
            let pool = if g.pool_is_gtt() {
                &g.gtt_used
            } else {
                &g.vram_used
            };
            pool.fresh().is_some()
        };
        let pool = self.card().filter(fresh).and_then(GpuSample::pool);
        if let (Some(cap), Some((used, total))) = (self.plan.vram_cap, pool)
            && total.saturating_sub(used) < cap
        {
            let left = total.saturating_sub(used);
            out.push(warn(format!(
                "others hold {used} of the card's {total}: the cap of {cap} cannot be reached, only {left} are free"
            )));
        }
    }
}

fn warn(text: String) -> Effect {
    emit(Event::Notice {
        level: Level::Warn,
        text,
    })
}
