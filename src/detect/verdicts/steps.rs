//! Steps that several verdicts share, in the order in which they are tried.

use super::Step;
use crate::model::{ActionId, Phase};

pub(super) const NOTHING: &[Step] = &[(ActionId::None, 0)];
pub(super) const WAIT: &[Step] = &[(ActionId::Wait, 0)];
pub(super) const RETRY: &[Step] = &[(ActionId::RetrySame, 1)];
pub(super) const ENVIRONMENT: &[Step] = &[(ActionId::FixEnvironment, 4)];
/// A search or a decode that stands still: from what loses nothing to what loses most.
pub(super) const DECODE: &[Step] = &[
    (ActionId::FastFind, 1),
    (ActionId::TiledVae, 2),
    (ActionId::VaeCpu, 3),
];
pub(super) const SMALLER_DECODE: &[Step] = &[(ActionId::TiledVae, 2), (ActionId::VaeCpu, 3)];

/// Whether the autoencoder runs in this phase.
pub(super) const fn is_decode(phase: Phase) -> bool {
    matches!(phase, Phase::VaeDecode | Phase::VaeEncode)
}

/// Less of the card's memory.
pub(super) const fn smaller(phase: Phase) -> &'static [Step] {
    if is_decode(phase) {
        SMALLER_DECODE
    } else {
        &[(ActionId::LowerSettings, 2)]
    }
}
