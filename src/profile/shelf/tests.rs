use std::fs;

use proptest::prelude::*;

use super::*;
use crate::model::Bytes;
use crate::model::Vendor;
use crate::profile::{Card, Holds};

fn xtx() -> Machine {
    Machine {
        cards: vec![Card {
            name: Some(String::from("RX 7900 XTX")),
            vendor: Some(Vendor::Amd),
            gfx: Some(String::from("gfx1100")),
            vram: Some(Bytes::gib(24)),
            ..Card::default()
        }],
        adapter: String::from("framepack"),
    }
}

fn entry<'s>(shelf: &'s [ShelfEntry], id: &str) -> &'s ShelfEntry {
    shelf.iter().find(|e| e.id == id).unwrap()
}

fn told<'e>(entry: &'e ShelfEntry) -> Vec<(&'static str, &'e str, Option<&'e str>, Holds)> {
    let tell = |c: &'e Condition| (c.what, c.wanted.as_str(), c.have.as_deref(), c.holds);
    entry.conditions.iter().map(tell).collect()
}

#[test]
fn the_best_says_why_and_the_others_what_does_not_match() {
    let shelf = shelf(&Catalog::with_folder(None), &xtx());
    let best = entry(&shelf, "rx7900xtx-safe");
    assert_eq!(best.fit, Fit::Best);
    let why = "RX 7900 XTX is gfx1100 with 24.0 GiB: rx7900xtx-safe";
    assert_eq!(best.why.as_deref(), Some(why));
    assert!(best.conditions.iter().all(|c| c.holds == Holds::Yes));
    assert_eq!(entry(&shelf, "generic-amd").fit, Fit::Fits);
    assert_eq!(entry(&shelf, "generic-amd").why, None);
    let strix = entry(&shelf, "strix-halo-wan");
    assert_eq!(strix.fit, Fit::Other);
    assert!(told(strix).contains(&("architecture", "gfx1151", Some("gfx1100"), Holds::No)));
    let cpu = told(entry(&shelf, "cpu-only"));
    assert!(cpu.contains(&("GPU", "none", Some("RX 7900 XTX"), Holds::No)));
}

#[test]
fn what_is_unknown_is_told_apart_from_what_does_not_match() {
    let mut machine = xtx();
    machine.cards[0].vram = None;
    let shelf = shelf(&Catalog::with_folder(None), &machine);
    let safe = entry(&shelf, "rx7900xtx-safe");
    assert_eq!(safe.fit, Fit::Other);
    assert!(told(safe).contains(&("VRAM", "at least 23.0 GiB", None, Holds::Unknown)));
}

#[test]
fn no_card_is_known_to_be_none() {
    let shelf = shelf(&Catalog::with_folder(None), &Machine::default());
    assert_eq!(entry(&shelf, "cpu-only").fit, Fit::Best);
    let amd = told(entry(&shelf, "generic-amd"));
    assert_eq!(amd, [("maker", "AMD", Some("no GPU"), Holds::No)]);
}

#[test]
fn broken_files_are_listed_with_file_line_and_cure() {
    let dir = tempfile::tempdir().unwrap();
    let head = "schema = 1\n[profile]\nid = \"night-run\"\nversion = \"1.0.0\"\ntitle = \"x\"\n";
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
    write(
        "typo.toml",
        &format!("{head}[limits]\nvram_cup = \"20 GiB\"\n"),
    );
    write(
        "orphan.toml",
        &head
            .replace("night-run", "orphan")
            .replace("title", "extends = \"gone-away\"\ntitle"),
    );
    write("fine.toml", &head.replace("night-run", "fine"));
    let shelf = shelf(&Catalog::with_folder(Some(dir.path())), &xtx());
    let typo = entry(&shelf, "typo");
    assert_eq!(
        typo.broken.as_deref(),
        Some("typo.toml, line 7: unknown key `vram_cup` in [limits] (did you mean `vram_cap`?)")
    );
    assert!(typo.path.ends_with("typo.toml"));
    assert_eq!((typo.title.as_deref(), typo.fit), (None, Fit::Other));
    let orphan = entry(&shelf, "orphan");
    let why = orphan.broken.as_deref().unwrap();
    assert!(
        why.starts_with("orphan.toml, line 5: the parent `gone-away`"),
        "{why}"
    );
    assert_eq!(orphan.extends.as_deref(), Some("gone-away"));
    assert!(orphan.path.ends_with("orphan.toml"));
    assert!(entry(&shelf, "fine").profile.is_some());
    let first_own = shelf.iter().position(|e| e.owner == Owner::User).unwrap();
    assert!(shelf[first_own..].iter().all(|e| e.owner == Owner::User));
}

fn card() -> impl Strategy<Value = Card> {
    let vendor = prop_oneof![
        Just(None),
        Just(Some(Vendor::Amd)),
        Just(Some(Vendor::Nvidia))
    ];
    let gfx = proptest::option::of(prop_oneof![
        Just("gfx1100"),
        Just("gfx1151"),
        Just("gfx1201")
    ]);
    let vram = proptest::option::of(prop_oneof![Just(16_u64), 20_u64..30, Just(96)]);
    (vendor, gfx, vram, any::<bool>()).prop_map(|(vendor, gfx, vram, unified)| Card {
        name: None,
        vendor,
        gfx: gfx.map(str::to_owned),
        sm: None,
        vram: vram.map(Bytes::gib),
        unified,
    })
}

proptest! {
    #[test]
    fn shelf_and_choice_agree(
        cards in proptest::collection::vec(card(), 0..4),
        adapter in prop_oneof![Just("framepack"), Just("comfyui"), Just("")],
    ) {
        let machine = Machine { cards, adapter: adapter.to_owned() };
        let catalog = Catalog::with_folder(None);
        let shelf = shelf(&catalog, &machine);
        let choice = best(&catalog.all(), &machine);
        let of_shelf: Vec<&str> = shelf.iter().filter(|e| e.fit == Fit::Best).map(|e| e.id.as_str()).collect();
        prop_assert_eq!(of_shelf, choice.iter().map(|c| c.id.as_str()).collect::<Vec<_>>());
        for e in &shelf {
            let all_hold = e.conditions.iter().all(|c| c.holds == Holds::Yes);
            prop_assert_eq!(e.fit != Fit::Other, all_hold, "{}", e.id);
            for c in &e.conditions {
                prop_assert_eq!(c.have.is_none(), c.holds == Holds::Unknown);
            }
        }
    }
}
