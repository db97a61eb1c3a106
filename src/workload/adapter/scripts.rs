//! Programs without wording of their own: diffusers scripts and anything else.

use super::narrator::Narrator;
use super::tqdm::Bar;
use crate::model::Phase;

/// A bar of denoising steps. The decode that follows the last step is silent.
///
/// A server of an unknown make does not say when its job is over: its job counts as
/// done after the last step, for a wrong alarm at an idle server costs more than a late
/// one.
pub(super) fn bar(bar: &Bar, n: &mut Narrator) {
    if !bar.complete() {
        if !n.in_flight() {
            n.start_job();
        }
        n.enter(Phase::Sampling);
    } else if n.server {
        n.done();
    } else {
        n.enter(Phase::VaeDecode);
    }
}
