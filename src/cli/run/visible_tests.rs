//! Tests of what an environment shows of the cards.

use proptest::prelude::*;

use crate::cli::run::machine::{choose_shown, mismatch};
use crate::model::visible::{Vars, Visible, child_vars, visible};
use crate::model::{Bytes, GpuId, GpuSample, Metric, Vendor};

fn card(at: u32, vendor: Vendor, place: Option<u32>) -> GpuSample {
    let id = GpuId(format!("0000:{:02x}:00.0", at + 3));
    let mut g = GpuSample::unread(id, at, vendor, format!("card {at}"), "script");
    g.compute_index = place;
    g.vram_total = Metric::Fresh(Bytes::gib(24 - u64::from(at)));
    g.vram_used = Metric::Fresh(Bytes(0));
    g
}

fn amd(places: &[Option<u32>]) -> Vec<GpuSample> {
    let cards = (0_u32..).zip(places);
    cards.map(|(i, p)| card(i, Vendor::Amd, *p)).collect()
}

fn vars(set: &[(&str, &str)]) -> Vars {
    let all = set.iter();
    all.map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect()
}

/// Every card of these tests has one but those without a name.
fn uuid(card: &GpuSample) -> Option<String> {
    (!card.name.is_empty()).then(|| format!("GPU-a1b2c3d4e5f6000{}", card.index))
}

/// `Some` of the cards shown, `None` where it is not known.
fn seen(cards: &[GpuSample], set: &[(&str, &str)]) -> Option<Vec<usize>> {
    match visible(cards, &vars(set), &uuid) {
        Visible::All => Some((0..cards.len()).collect()),
        Visible::These { cards, .. } => Some(cards),
        Visible::Nothing { .. } => Some(Vec::new()),
        Visible::Unknown { .. } => None,
    }
}

#[test]
fn numbers_count_in_hips_order_and_rocr_filters_first() {
    // HIP counts the second card by address first
    let cards = amd(&[Some(1), Some(0), Some(2)]);
    let hip = |v| seen(&cards, &[("HIP_VISIBLE_DEVICES", v)]);
    assert_eq!(hip("0"), Some(vec![1]));
    assert_eq!(hip("2,0"), Some(vec![2, 1]));
    assert_eq!(
        hip("1,7,0"),
        Some(vec![0]),
        "the list ends at what is not there"
    );
    assert_eq!(hip("-1"), Some(vec![]));
    assert_eq!(hip(""), Some(vec![0, 1, 2]), "an empty one is none");
    let both = [
        ("ROCR_VISIBLE_DEVICES", "2,1"),
        ("HIP_VISIBLE_DEVICES", "1"),
    ];
    assert_eq!(seen(&cards, &both), Some(vec![0]));
    assert_eq!(seen(&cards, &[("ROCR_VISIBLE_DEVICES", "")]), Some(vec![]));
    let cuda = [("CUDA_VISIBLE_DEVICES", "1"), ("HIP_VISIBLE_DEVICES", "0")];
    assert_eq!(seen(&cards, &cuda[..1]), Some(vec![0]), "HIP heeds it");
    assert_eq!(seen(&cards, &cuda), Some(vec![1]), "its own wins");
}

#[test]
fn uuids_name_cards() {
    let cards = amd(&[Some(1), Some(0)]);
    let rocr = |v| seen(&cards, &[("ROCR_VISIBLE_DEVICES", v)]);
    assert_eq!(rocr("gpu-A1B2C3D4E5F60000"), Some(vec![0]));
    assert_eq!(rocr("GPU-ffff"), Some(vec![]));
    let unread = visible(
        &cards,
        &vars(&[("ROCR_VISIBLE_DEVICES", "GPU-ffff")]),
        &|_| None,
    );
    assert!(matches!(unread, Visible::Unknown { .. }));
}

#[test]
fn hip_and_rocr_match_differently() {
    let cards = amd(&[Some(1), Some(0)]);
    let hip = |v| seen(&cards, &[("HIP_VISIBLE_DEVICES", v)]);
    let rocr = |v| seen(&cards, &[("ROCR_VISIBLE_DEVICES", v)]);
    for list in ["01", "+1", "00", " 1"] {
        assert_eq!(hip(list), Some(vec![]), "{list}");
    }
    assert_eq!(hip("1,00"), Some(vec![0]));
    // both fit: HIP takes its first card, ROCr none
    assert_eq!(hip("GPU-a1b2"), Some(vec![1]));
    assert_eq!(rocr("GPU-a1b2"), Some(vec![]));
    assert_eq!(hip("GPU-a1b2c3d4e5f60000"), Some(vec![0]));
    // upper and lower case are two things to HIP
    assert_eq!(hip("GPU-A1B2C3D4E5F60000"), Some(vec![]));
    assert_eq!(hip("gpu-a1b2c3d4e5f60000"), Some(vec![]));
    assert_eq!(rocr("GPU-A1B2C3D4E5F60000"), Some(vec![0]));
}

#[test]
fn an_unknown_order_is_said_and_not_guessed() {
    let cards = amd(&[None, None]);
    assert_eq!(seen(&cards, &[("HIP_VISIBLE_DEVICES", "1")]), None);
    assert_eq!(
        seen(&cards[..1], &[("HIP_VISIBLE_DEVICES", "0")]),
        Some(vec![0])
    );
    // a card without compute is not counted
    let cards = amd(&[None, Some(0)]);
    assert_eq!(seen(&cards, &[("HIP_VISIBLE_DEVICES", "0")]), Some(vec![1]));
    assert_eq!(seen(&cards, &[("HIP_VISIBLE_DEVICES", "1")]), Some(vec![]));
}

#[test]
fn cuda_counts_by_address_only_when_told() {
    let cards: Vec<_> = (0..2).map(|i| card(i, Vendor::Nvidia, None)).collect();
    let one = ("CUDA_VISIBLE_DEVICES", "1");
    assert_eq!(seen(&cards, &[one]), None);
    assert_eq!(
        seen(&cards, &[one, ("CUDA_DEVICE_ORDER", "PCI_BUS_ID")]),
        Some(vec![1])
    );
    assert_eq!(seen(&cards, &[("CUDA_VISIBLE_DEVICES", "")]), Some(vec![]));
    assert_eq!(
        seen(&cards, &[("CUDA_VISIBLE_DEVICES", "GPU-a1b2c3d4e5f60001")]),
        Some(vec![1])
    );
    assert_eq!(seen(&cards, &[("CUDA_VISIBLE_DEVICES", "MIG-1")]), None);
    assert_eq!(
        seen(&cards, &[("HIP_VISIBLE_DEVICES", "1")]),
        Some(vec![0, 1])
    );
}

#[test]
fn an_env_before_the_command_counts() {
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let exported = vars(&[("HIP_VISIBLE_DEVICES", "3"), ("A", "1")]);
    let of = |line: &str| {
        let vars = child_vars(&exported, [("P", Some("x"))].into_iter(), &words(line));
        vars.get("HIP_VISIBLE_DEVICES").cloned()
    };
    assert_eq!(
        of("python x.py HIP_VISIBLE_DEVICES=1").as_deref(),
        Some("3")
    );
    assert_eq!(
        of("env HIP_VISIBLE_DEVICES=1 python x.py").as_deref(),
        Some("1")
    );
    assert_eq!(of("/usr/bin/env -u HIP_VISIBLE_DEVICES python"), None);
    assert_eq!(
        of("env -i HIP_VISIBLE_DEVICES=0 env B=2 python").as_deref(),
        Some("0")
    );
    assert_eq!(
        of("env -C /tmp python HIP_VISIBLE_DEVICES=1").as_deref(),
        Some("3")
    );
}

#[test]
fn the_first_card_shown_is_supervised_and_a_contradiction_is_said() {
    let cards = amd(&[Some(1), Some(0), Some(2)]);
    let shown = |v| visible(&cards, &vars(&[("HIP_VISIBLE_DEVICES", v)]), &uuid);
    let pick = |asked, v| choose_shown(&cards, asked, &shown(v)).unwrap().unwrap();
    assert_eq!(pick(None, "2,0").index, 2);
    assert_eq!(pick(Some("0"), "2,0").index, 0, "--gpu wins");
    let said = |i: usize, v| mismatch(&cards, &cards[i], &shown(v));
    assert_eq!(said(2, "2"), None);
    assert_eq!(
        said(0, "2,0").unwrap(),
        "HIP_VISIBLE_DEVICES=2,0 makes the program use card 2 at 0000:05:00.0, but card 0 at 0000:03:00.0 is supervised: give --gpu 0000:05:00.0 or change the variable"
    );
    assert_eq!(
        said(2, "2,0").unwrap(),
        "HIP_VISIBLE_DEVICES=2,0 shows the program 2 cards; card 2 at 0000:05:00.0 is supervised, not card 1 at 0000:04:00.0"
    );
    assert!(said(0, "-1").unwrap().contains("no card"));
    let unguided = mismatch(&cards, &cards[0], &Visible::All).unwrap();
    assert!(
        unguided.contains("export HIP_VISIBLE_DEVICES=1"),
        "{unguided}"
    );
    assert_eq!(mismatch(&cards, &cards[1], &Visible::All), None);
    let error = choose_shown(&cards, Some("9"), &shown("0")).unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("0 = card 0 at 0000:03:00.0 (HIP 1)"),
        "{error}"
    );
}

proptest! {
    /// Whatever the variables hold, what is shown are cards that are there, each once.
    #[test]
    fn lists_of_any_text_are_survived(
        lists in proptest::collection::vec("(\\PC{0,12}|[-0-9,]{0,8}|GPU-[0-9a-f]{0,4}(,[0-9])?)", 3),
        which in any::<[bool; 3]>(),
        places in proptest::collection::vec(proptest::option::of(0_u32..4), 0..4),
        nvidia in 0_u32..3,
        argv in proptest::collection::vec("(env|-u|-i|--|[A-Z]=\\PC{0,3}|\\PC{0,6})", 0..6),
    ) {
        let mut cards = amd(&places);
        let first = u32::try_from(cards.len()).unwrap();
        cards.extend((first..first + nvidia).map(|i| card(i, Vendor::Nvidia, None)));
        let names = ["ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"];
        let exported: Vars = names.iter().zip(&lists).zip(which)
            .filter(|(_, set)| *set)
            .map(|((name, value), _)| ((*name).to_owned(), value.clone()))
            .collect();
        let vars = child_vars(&exported, std::iter::empty(), &argv);
        let shown = visible(&cards, &vars, &uuid);
        if let Visible::These { cards: list, .. } = &shown {
            prop_assert!(!list.is_empty());
            let mut unique = list.clone();
            unique.sort_unstable();
            unique.dedup();
            prop_assert_eq!(unique.len(), list.len());
            prop_assert!(list.iter().all(|i| *i < cards.len()));
        }
        let chosen = choose_shown(&cards, None, &shown).unwrap();
        prop_assert_eq!(chosen.is_none(), cards.is_empty());
        if let Some(card) = chosen {
            let _words = mismatch(&cards, &card, &shown);
        }
    }
}
