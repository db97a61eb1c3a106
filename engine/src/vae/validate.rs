//! Whether a configuration and weights are of one model. A model is checked when it is opened: latents are judged by
//! its configuration, which must not be that of another member of the family.

use std::collections::HashSet;
use std::sync::Arc;

use super::family::Config;
use super::layers::Loader;
use crate::error::Result;
use crate::ops::DryRun;
use crate::ops::cpu::Cpu;
use crate::weights::{Scope, Weights};

/// Refuses weights that are not what `config` describes, by the first tensor that shows it: both halves are built, of
/// shapes alone. Weights of one half alone will do; the other is missed when it is asked for.
pub(super) fn check(config: &Config, weights: &Arc<Weights>) -> Result<()> {
    let part = |name: &str| name.split_once('.').map(|(part, _)| part.to_owned());
    let present: HashSet<String> = weights.names().filter_map(part).collect();
    let run = DryRun::new(&Cpu);
    let loader = Loader::of_shapes(&run, Scope::new(Arc::clone(weights)));
    if present.contains("decoder") {
        config.networks().decoder(&loader)?;
    }
    if present.contains("encoder") {
        config.networks().encoder(&loader)?;
    }
    Ok(())
}
