//! Which chip a PCI id is, and what the card is sold as.
//!
//! Facts from libdrm's list of AMD's ids and LLVM's list of AMDGPU processors.

/// A chip by PCI device id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chip {
    /// Architecture.
    pub(super) arch: &'static str,
    /// Part of a processor, with the host's memory.
    pub(super) apu: bool,
}

/// Device id, architecture, APU, name where the revision is not in [`CARDS`].
const CHIPS: &[(u32, &str, bool, &str)] = &[
    (0x1114, "gfx1152", true, "AMD Radeon 840M/860M Graphics"),
    (0x13C0, "gfx1036", true, "AMD Radeon Graphics"),
    (0x1435, "gfx1033", true, "AMD Custom GPU 0932"),
    (0x1506, "gfx1037", true, "AMD Radeon 610M"),
    (0x150E, "gfx1150", true, "AMD Radeon 880M/890M Graphics"),
    (
        0x1586,
        "gfx1151",
        true,
        "AMD Radeon 8040S/8050S/8060S Graphics",
    ),
    (
        0x15BF,
        "gfx1103",
        true,
        "AMD Radeon 740M/760M/780M Graphics",
    ),
    (0x15C8, "gfx1103", true, "AMD Radeon 740M Graphics"),
    (0x15D8, "gfx902", true, "AMD Radeon Vega Graphics"),
    (0x15DD, "gfx902", true, "AMD Radeon Vega Graphics"),
    (0x1636, "gfx90c", true, "AMD Radeon Vega Graphics"),
    (0x1638, "gfx90c", true, "AMD Radeon Vega Graphics"),
    (0x163F, "gfx1033", true, "AMD Custom GPU 0405"),
    (0x164E, "gfx1036", true, "AMD Radeon 610M"),
    (0x1681, "gfx1035", true, "AMD Radeon 660M/680M"),
    (0x1900, "gfx1103", true, "AMD Radeon 760M/780M Graphics"),
    (0x1901, "gfx1103", true, "AMD Radeon 740M Graphics"),
    (0x66AF, "gfx906", false, "AMD Radeon VII"),
    (0x687F, "gfx900", false, "AMD Radeon RX Vega"),
    (0x731F, "gfx1010", false, "AMD Radeon RX 5600/5700 series"),
    (0x7340, "gfx1012", false, "AMD Radeon RX 5300/5500 series"),
    (0x738C, "gfx908", false, "AMD Instinct MI100"),
    (0x73A3, "gfx1030", false, "AMD Radeon Pro W6800"),
    (0x73A5, "gfx1030", false, "AMD Radeon RX 6950 XT"),
    (0x73AF, "gfx1030", false, "AMD Radeon RX 6900 XT"),
    (0x73BF, "gfx1030", false, "AMD Radeon RX 6800/6900 series"),
    (
        0x73DF,
        "gfx1031",
        false,
        "AMD Radeon RX 6700/6750/6800M series",
    ),
    (
        0x73EF,
        "gfx1032",
        false,
        "AMD Radeon RX 6650/6700S/6800S series",
    ),
    (0x73FF, "gfx1032", false, "AMD Radeon RX 6600 series"),
    (0x7408, "gfx90a", false, "AMD Instinct MI250X"),
    (0x740C, "gfx90a", false, "AMD Instinct MI250X / MI250"),
    (0x740F, "gfx90a", false, "AMD Instinct MI210"),
    (
        0x743F,
        "gfx1034",
        false,
        "AMD Radeon RX 6300/6400/6500 series",
    ),
    (0x7448, "gfx1100", false, "AMD Radeon Pro W7900"),
    (0x7449, "gfx1100", false, "AMD Radeon Pro W7800 48GB"),
    (0x744A, "gfx1100", false, "AMD Radeon Pro W7900 Dual Slot"),
    (0x744C, "gfx1100", false, "AMD Radeon RX 7900 series"),
    (0x745E, "gfx1100", false, "AMD Radeon Pro W7800"),
    (0x7470, "gfx1101", false, "AMD Radeon Pro W7700"),
    (0x747E, "gfx1101", false, "AMD Radeon RX 7700/7800 series"),
    (0x7480, "gfx1102", false, "AMD Radeon RX 7600/7700S series"),
    (0x7483, "gfx1102", false, "AMD Radeon RX 7600M"),
    (0x7489, "gfx1102", false, "AMD Radeon Pro W7500"),
    (0x74A0, "gfx942", true, "AMD Instinct MI300A"),
    (0x74A1, "gfx942", false, "AMD Instinct MI300X"),
    (0x74A5, "gfx942", false, "AMD Instinct MI325X"),
    (0x7550, "gfx1201", false, "AMD Radeon RX 9070 series"),
    (0x7551, "gfx1201", false, "AMD Radeon AI PRO R9700 series"),
    (0x7590, "gfx1200", false, "AMD Radeon RX 9060 series"),
    (0x75A0, "gfx950", false, "AMD Instinct MI350X"),
    (0x75A3, "gfx950", false, "AMD Instinct MI355X"),
];

/// Device id, revision, name.
const CARDS: &[(u32, u32, &str)] = &[
    (0x150E, 0xC1, "AMD Radeon 890M Graphics"),
    (0x150E, 0xC4, "AMD Radeon 880M Graphics"),
    (0x150E, 0xC5, "AMD Radeon 890M Graphics"),
    (0x1586, 0xC1, "AMD Radeon 8060S Graphics"),
    (0x1586, 0xC2, "AMD Radeon 8050S Graphics"),
    (0x1586, 0xC3, "AMD Radeon 8060S Graphics"),
    (0x1586, 0xC4, "AMD Radeon 8050S Graphics"),
    (0x1586, 0xC6, "AMD Radeon 8060S Graphics"),
    (0x1586, 0xD1, "AMD Radeon 8060S Graphics"),
    (0x1586, 0xD2, "AMD Radeon 8050S Graphics"),
    (0x1586, 0xD4, "AMD Radeon 8050S Graphics"),
    (0x1586, 0xD5, "AMD Radeon 8040S Graphics"),
    (0x15BF, 0xC1, "AMD Radeon 780M Graphics"),
    (0x15BF, 0xC2, "AMD Radeon 780M Graphics"),
    (0x15BF, 0xC3, "AMD Radeon 760M Graphics"),
    (0x15BF, 0xDD, "AMD Radeon 780M Graphics"),
    (0x1681, 0xC7, "AMD Radeon 680M"),
    (0x1681, 0xC8, "AMD Radeon 680M"),
    (0x1681, 0xC9, "AMD Radeon 660M"),
    (0x731F, 0xC1, "AMD Radeon RX 5700 XT"),
    (0x731F, 0xC4, "AMD Radeon RX 5700"),
    (0x731F, 0xCA, "AMD Radeon RX 5600 XT"),
    (0x7340, 0xC5, "AMD Radeon RX 5500 XT"),
    (0x73BF, 0xC0, "AMD Radeon RX 6900 XT"),
    (0x73BF, 0xC1, "AMD Radeon RX 6800 XT"),
    (0x73BF, 0xC3, "AMD Radeon RX 6800"),
    (0x73DF, 0xC0, "AMD Radeon RX 6750 XT"),
    (0x73DF, 0xC1, "AMD Radeon RX 6700 XT"),
    (0x73DF, 0xC5, "AMD Radeon RX 6700 XT"),
    (0x73DF, 0xDF, "AMD Radeon RX 6700"),
    (0x73EF, 0xC1, "AMD Radeon RX 6650 XT"),
    (0x73FF, 0xC1, "AMD Radeon RX 6600 XT"),
    (0x73FF, 0xC7, "AMD Radeon RX 6600"),
    (0x743F, 0xC1, "AMD Radeon RX 6500 XT"),
    (0x743F, 0xC7, "AMD Radeon RX 6400"),
    (0x744C, 0xC8, "AMD Radeon RX 7900 XTX"),
    (0x744C, 0xCC, "AMD Radeon RX 7900 XT"),
    (0x744C, 0xCE, "AMD Radeon RX 7900 GRE"),
    (0x744C, 0xCF, "AMD Radeon RX 7900M"),
    (0x747E, 0xC8, "AMD Radeon RX 7800 XT"),
    (0x747E, 0xD8, "AMD Radeon RX 7800M"),
    (0x747E, 0xDB, "AMD Radeon RX 7700"),
    (0x747E, 0xFF, "AMD Radeon RX 7700 XT"),
    (0x7480, 0x00, "AMD Radeon Pro W7600"),
    (0x7480, 0xC0, "AMD Radeon RX 7600 XT"),
    (0x7480, 0xC1, "AMD Radeon RX 7700S"),
    (0x7480, 0xC7, "AMD Radeon RX 7600M XT"),
    (0x7480, 0xCF, "AMD Radeon RX 7600"),
    (0x7550, 0xC0, "AMD Radeon RX 9070 XT"),
    (0x7550, 0xC2, "AMD Radeon RX 9070 GRE"),
    (0x7550, 0xC3, "AMD Radeon RX 9070"),
    (0x7551, 0xC0, "AMD Radeon AI PRO R9700"),
    (0x7551, 0xC8, "AMD Radeon AI PRO R9600D"),
    (0x7590, 0xC0, "AMD Radeon RX 9060 XT"),
    (0x7590, 0xC1, "AMD Radeon RX 9060 XT LP"),
    (0x7590, 0xC7, "AMD Radeon RX 9060"),
];

/// The chip of a device id, where it is known.
pub(super) fn chip(device: u32) -> Option<Chip> {
    let (_, arch, apu, _) = CHIPS.iter().find(|c| c.0 == device)?;
    Some(Chip { arch, apu: *apu })
}

/// Name of a card: by device and revision, else by device, else the bare id.
pub(super) fn name(device: Option<u32>, revision: Option<u32>) -> String {
    let Some(device) = device else {
        return "AMD GPU".to_owned();
    };
    let exact = CARDS
        .iter()
        .find(|c| c.0 == device && Some(c.1) == revision)
        .map(|c| c.2);
    let family = CHIPS.iter().find(|c| c.0 == device).map(|c| c.3);
    exact
        .or(family)
        .map_or_else(|| format!("AMD GPU 0x{device:04x}"), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_revision_decides_and_unknown_ids_stay_ids() {
        assert_eq!(name(Some(0x744C), Some(0xC8)), "AMD Radeon RX 7900 XTX");
        assert_eq!(name(Some(0x744C), None), "AMD Radeon RX 7900 series");
        assert_eq!(name(Some(0x6FFF), Some(1)), "AMD GPU 0x6fff");
        assert_eq!(name(None, None), "AMD GPU");
    }

    #[test]
    fn every_named_card_has_a_chip_and_no_entry_is_doubled() {
        for (device, revision, text) in CARDS {
            assert!(chip(*device).is_some(), "{text}");
            let same = CARDS.iter().filter(|c| (c.0, c.1) == (*device, *revision));
            assert_eq!(same.count(), 1, "{text}");
        }
        for (device, ..) in CHIPS {
            assert_eq!(CHIPS.iter().filter(|c| c.0 == *device).count(), 1);
        }
    }
}
