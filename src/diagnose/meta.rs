//! What is known of a recording beforehand: `meta.toml` of a case.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::model::Vendor;

/// See the module; whatever is not known is empty or absent.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Meta {
    /// Program, in a word: `framepack`, `comfyui-wan`.
    pub app: String,
    /// Command line.
    pub argv: Vec<String>,
    /// Environment, as far as it concerns the GPU or its libraries.
    pub env: BTreeMap<String, String>,
    /// Name of the card.
    pub gpu: String,
    /// Its maker: `amd`, `nvidia`.
    pub vendor: String,
    /// Its architecture: `gfx1100`, `sm_89`.
    pub arch: String,
    /// It shares the host's memory.
    pub apu: bool,
    /// VRAM, MiB.
    pub vram_total_mib: Option<u64>,
    /// GTT, MiB.
    pub gtt_total_mib: Option<u64>,
    /// Power limit of the board, watts.
    pub board_power_w: Option<f64>,
    /// Memory of the host, MiB.
    pub host_ram_mib: Option<u64>,
    /// Stamp of the kernel log that is second 0 of the recording.
    pub kernel_t0: Option<f64>,
    /// The recording holds readings of a card; not in the file.
    #[serde(skip)]
    pub card_read: bool,
}

impl Meta {
    /// The maker of the card, if it is one that we know.
    pub fn vendor(&self) -> Option<Vendor> {
        match self.vendor.to_ascii_lowercase().as_str() {
            "amd" => Some(Vendor::Amd),
            "nvidia" => Some(Vendor::Nvidia),
            _ => None,
        }
    }

    /// The maker of the card; none: there is no card as far as is known.
    pub(super) fn maker(&self) -> Option<Vendor> {
        self.vendor().or(self.card_read.then_some(Vendor::Unknown))
    }

    /// As much of the text as can be used, and what is wrong with the rest.
    pub(super) fn lenient(text: &str) -> (Self, Option<String>) {
        let why = match toml::from_str::<Self>(text) {
            Ok(meta) => return (meta, None),
            Err(why) => why.to_string(),
        };
        let mut table: toml::Table = toml::from_str(text).unwrap_or_default();
        // a value of the wrong kind spoils no other
        table.retain(|key, value| {
            let alone = toml::Table::from_iter([(key.to_owned(), value.clone())]);
            alone.try_into::<Self>().is_ok()
        });
        let meta = table.try_into().unwrap_or_default();
        (meta, Some(why.trim_end().to_owned()))
    }

    /// What of it is missing, in words.
    pub(super) fn gaps(&self) -> Vec<String> {
        let mut gaps = Vec::new();
        if self.argv.is_empty() {
            gaps.push("`argv` is missing: the program is known by its lines only".to_owned());
        }
        match (self.vendor(), self.vendor.as_str()) {
            (Some(_), _) => {}
            (None, "") => gaps.push(
                "`vendor` is missing, so what only one maker's cards do is not looked for; write amd or nvidia"
                    .to_owned(),
            ),
            (None, other) => gaps.push(format!(
                "`vendor` is `{other}`, known are amd and nvidia: what only their cards do is not looked for"
            )),
        }
        if self.vram_total_mib.is_none() {
            gaps.push("`vram_total_mib` is missing: full memory cannot be told".to_owned());
        }
        gaps
    }
}
