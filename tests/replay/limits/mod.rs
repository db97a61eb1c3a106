//! Two stories for a number of the rules: honest work that stays just below the limit, and
//! a fault just above it. Halved or doubled, the number fails one of them, the other way
//! round the other.
//!
//! The figures follow from the documented numbers: these are tests of the numbers, not of
//! what is hung. What the stories look like is that of the other scripted cases.

mod card;
mod channels;
mod patience;
mod place;
mod rest;
mod silence;
mod steps;

use framepack_tui::model::VerdictId;

use crate::script::{Act, Gpu, RX7900XTX, RX9070XT, Script};

/// The stories of one number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limit {
    /// The number.
    pub(crate) field: &'static str,
    /// Nothing may be alarmed; for a number that only decides which harmless state is
    /// shown, the state that is shown below it.
    pub(crate) healthy: fn(),
    /// Something must be told in time.
    pub(crate) late: fn(),
}

const fn limit(field: &'static str, healthy: fn(), late: fn()) -> Limit {
    Limit {
        field,
        healthy,
        late,
    }
}

/// All of them.
pub(crate) fn all() -> Vec<Limit> {
    [
        silence::ALL,
        patience::ALL,
        channels::ALL,
        card::ALL,
        steps::ALL,
        place::ALL,
        rest::ALL,
    ]
    .concat()
}

/// A decode has begun, and what was before it is known.
fn decode() -> Script {
    Script::framepack_decode(RX7900XTX)
}

/// A script that has loaded its models and encodes its prompt.
fn encoding(gpu: Gpu) -> Script {
    let mut s = Script::diffusers(gpu);
    s.say("Encoding prompt");
    s
}

/// Twelve of forty steps of four seconds.
fn sampling(gpu: Gpu) -> Script {
    let mut s = Script::diffusers(gpu);
    s.vram = 12_000.0;
    steps(&mut s, 0, 12, 4, |_| {});
    s
}

/// The same on a card with little memory.
fn small_sampling() -> Script {
    sampling(RX9070XT)
}

/// So many more of forty steps.
fn steps(s: &mut Script, from: u32, n: u32, each: u32, change: impl FnMut(&mut crate::case::Row)) {
    s.part_bar(from, from + n, 40, n * each, "");
    s.act_with(n * each, Act::Sample, change);
}

/// Nothing moves from now on: a silent hang, told in time.
fn silent_for(s: &Script, onset: f64) {
    s.tells(VerdictId::SilentHang, onset + 40.0, onset + 55.0);
}
