//! Who holds memory of NVIDIA's cards, by NVML.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nvml_wrapper::Nvml;

use super::super::amdgpu::GENTLE_PERIOD;
use super::super::nvml::{card_id, power, processes};
use crate::model::CardMemory;

/// A driver that is not there is looked for again this often.
const AGAIN: Duration = Duration::from_secs(15);

/// The library, loaded when it is there.
pub(super) struct Holders {
    root: PathBuf,
    /// Looked for by the first read.
    cards: Option<Vec<power::Card>>,
    nvml: Option<Nvml>,
    tried: Option<Instant>,
    last: Option<(Instant, HashMap<u32, Vec<CardMemory>>)>,
}

impl Holders {
    /// Of the machine whose `sys` is in `root`.
    pub(super) fn new(root: PathBuf) -> Self {
        Self {
            cards: None,
            root,
            nvml: None,
            tried: None,
            last: None,
        }
    }

    /// Memory by process. Nothing where there is no driver of NVIDIA, or where every
    /// card sleeps; a card that does not answer is left out. Cards that fall asleep
    /// when they are left alone are asked seldom, and let go of in between.
    pub(super) fn read(&mut self) -> HashMap<u32, Vec<CardMemory>> {
        let cards = self.cards.get_or_insert_with(|| power::cards(&self.root));
        if power::all_asleep(cards) {
            self.nvml = None;
            return HashMap::new();
        }
        let may_sleep = power::any_may_sleep(cards);
        if let Some((at, told)) = &self.last
            && may_sleep
            && at.elapsed() < GENTLE_PERIOD
        {
            return told.clone();
        }
        let told = self.ask();
        if may_sleep {
            self.nvml = None;
            self.tried = None;
            self.last = Some((Instant::now(), told.clone()));
        }
        told
    }

    fn ask(&mut self) -> HashMap<u32, Vec<CardMemory>> {
        let mut out: HashMap<u32, Vec<CardMemory>> = HashMap::new();
        if self.nvml.is_none() && self.tried.is_none_or(|at| at.elapsed() >= AGAIN) {
            self.tried = Some(Instant::now());
            self.cards = Some(power::cards(&self.root));
            self.nvml = Nvml::init().ok();
        }
        let Some(nvml) = &self.nvml else { return out };
        for index in 0..nvml.device_count().unwrap_or(0) {
            let Ok(device) = nvml.device_by_index(index) else {
                continue;
            };
            let (Ok(gpu), Ok(holders)) = (card_id(&device), processes::on(&device)) else {
                continue;
            };
            for holder in holders {
                out.entry(holder.pid).or_default().push(CardMemory {
                    gpu: gpu.clone(),
                    vram: holder.vram,
                    gtt: None,
                });
            }
        }
        out
    }
}
