//! Profiles for tests of the screen: the shipped ones as a machine with an
//! RX 7900 XTX sees them, one of the user's own, and one that cannot be read.

use std::sync::Arc;

use crate::model::Bytes;
use crate::model::Vendor;
use crate::profile::{Card, Catalog, Fit, Machine, Owner, ShelfEntry, Source, parse, shelf};
use crate::ui::profiles::Profiles;

const FOLDER: &str = "/home/user/.config/framepack-tui/profiles";

const NIGHT: &str = "schema = 1\n\n[profile]\nid = \"night-run\"\nversion = \"1.0.3\"\n\
title = \"Own copy of rx7900xtx-safe (untested)\"\nextends = \"rx7900xtx-safe\"\n\n\
[env.set]\nMIOPEN_FIND_MODE = \"HYBRID\"\n\n[limits]\nvram_cap = \"21 GiB\"\n";

fn own(id: &str) -> ShelfEntry {
    ShelfEntry {
        id: id.to_owned(),
        title: None,
        description: None,
        version: None,
        owner: Owner::User,
        path: format!("{FOLDER}/{id}.toml"),
        extends: None,
        fit: Fit::Other,
        why: None,
        conditions: Vec::new(),
        problems: Vec::new(),
        broken: None,
        profile: None,
    }
}

/// The profiles; without a card: as a machine without one sees them.
pub(in crate::ui) fn profiles(with_card: bool) -> Profiles {
    let card = Card {
        name: Some("RX 7900 XTX".to_owned()),
        vendor: Some(Vendor::Amd),
        gfx: Some("gfx1100".to_owned()),
        vram: Some(Bytes::gib(24)),
        ..Card::default()
    };
    let machine = Machine {
        cards: if with_card { vec![card] } else { Vec::new() },
        adapter: "framepack".to_owned(),
    };
    let mut list = shelf(&Catalog::with_folder(None), &machine);
    let safe = list.iter().find(|e| e.id == "rx7900xtx-safe").unwrap();
    let path = own("night-run").path;
    let profile = parse(&Arc::new(Source {
        name: path.clone(),
        text: NIGHT.to_owned(),
        owner: Owner::User,
    }))
    .unwrap();
    let night = ShelfEntry {
        title: Some(profile.title.value.clone()),
        version: Some(profile.version.value.clone()),
        extends: Some("rx7900xtx-safe".to_owned()),
        fit: if with_card { Fit::Fits } else { Fit::Other },
        conditions: safe.conditions.clone(),
        problems: vec![format!(
            "{path}:14: K105: `vram_cap` leaves less than 3 GiB of the card (lower it)"
        )],
        profile: Some(Arc::new(profile)),
        ..own("night-run")
    };
    let broken = "old-notes.toml, line 9: `MIOPEN_FIND_MODE=DYNAMIC` is not a value that MIOpen \
                  knows: MIOpen throws `stoul` and every convolution fails (use DYNAMIC_HYBRID)";
    list.push(night);
    list.push(ShelfEntry {
        broken: Some(broken.to_owned()),
        ..own("old-notes")
    });
    Profiles {
        list: Arc::new(list),
        folder: Some(FOLDER.into()),
    }
}
