use proptest::prelude::*;

use super::*;

/// A profile written by hand, with comments everywhere.
const OWN: &str = r#"# c0 mine
schema = 1 # c1

[profile] # c2
id      = "night-run" # c3
version = "1.2.9"
title   = "Night run"
extends = "generic-amd"
# c4

[match]
vendor = "amd"

[tested]
gpu   = "Radeon RX 7900 XTX" # c5
# c6
torch = "2.9.0"

[workload.settings]
vae_tile = 256 # c7 fits
# c8 above
preserved_memory = "18 GiB"

[env.set] # c9
# c10
MIOPEN_FIND_MODE    = { value = "FAST", why = "stalls # not a comment" } # c11
MIOPEN_FIND_ENFORCE = "NONE"
# c12 last

[limits]
vram_cap     = "20 GiB" # c13
host_ram_min = "8 GiB"

# c14 before the ladder
[[ladder]]
id = "tiled_vae" # c15
# c16 end
"#;

fn source(text: &str, owner: Owner) -> Source {
    Source {
        name: String::from("night-run.toml"),
        text: text.to_owned(),
        owner,
    }
}

fn shipped(id: &str) -> Source {
    let profile = Catalog::with_folder(None).get(id).unwrap();
    (*profile.source).clone()
}

fn save(from: &Source, id: &str, changes: &[(Setting, Option<&str>)]) -> Result<Edited, EditError> {
    let changes: Vec<_> = changes
        .iter()
        .map(|(s, v)| (*s, v.map(str::to_owned)))
        .collect();
    let new = NewProfile {
        id: id.to_owned(),
        title: None,
    };
    save_as(&Catalog::with_folder(None), from, &new, &changes)
}

/// The lines that differ, old ones with `-`, new ones with `+`.
fn diff(old: &str, new: &str) -> String {
    let (mut a, mut b): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let (left, right) = (a.clone(), b.clone());
    a.retain(|l| !right.contains(l));
    b.retain(|l| !left.contains(l));
    let minus = a.iter().map(|l| format!("-{l}\n"));
    minus.chain(b.iter().map(|l| format!("+{l}\n"))).collect()
}

fn profile(text: &str) -> Profile {
    parse(&Arc::new(source(text, Owner::User))).unwrap()
}

#[test]
fn a_copy_differs_in_its_head_and_in_what_was_changed() {
    let base = shipped("rx7900xtx-safe");
    let edited = save(
        &base,
        "mine",
        &[
            (Setting::FindMode, Some("HYBRID")),
            (Setting::VramCap, Some("21 GiB")),
            (Setting::TileSize, Some("256")),
        ],
    )
    .unwrap();
    insta::assert_snapshot!(diff(&base.text, &edited.text), @r#"
    -id          = "rx7900xtx-safe"
    -version     = "1.1.0"
    -title       = "RX 7900 XTX, 24 GB, completes first (untested)"
    -MIOPEN_FIND_MODE    = { value = "FAST", why = "benchmarking the naive 3-D kernel is what stalls on RDNA 3" }
    -vram_cap = "20 GiB"
    +id          = "mine"
    +version     = "1.0.0"
    +title       = "Own copy of rx7900xtx-safe (untested)"
    +MIOPEN_FIND_MODE    = { value = "HYBRID", why = "benchmarking the naive 3-D kernel is what stalls on RDNA 3" }
    +vae_tile         = 256
    +vram_cap = "21 GiB"
    "#);
    let p = profile(&edited.text);
    assert_eq!(
        p.env.set["MIOPEN_FIND_MODE"].why.as_deref().unwrap().len(),
        58
    );
    assert_eq!(p.extends.unwrap().value, "generic-amd");
    assert_eq!(p.matches.gfx.unwrap()[0].value, "gfx1100");
}

#[test]
fn the_whole_text_of_a_changed_file() {
    let edited = save(
        &source(OWN, Owner::User),
        "night-run",
        &[
            (Setting::ChunkSize, Some("4")),
            (Setting::TileSize, None),
            (Setting::FindMode, Some("NORMAL")),
            (Setting::VramCap, None),
        ],
    )
    .unwrap();
    insta::assert_snapshot!(edited.text);
    assert_eq!(
        edited.notes,
        ["[tested] of night-run is now a comment: it was measured with other settings"]
    );
}

#[test]
fn tables_that_are_missing_are_made_before_the_ladder() {
    let base = shipped("generic-amd");
    let edited = save(
        &base,
        "mine",
        &[
            (Setting::FindMode, Some("FAST")),
            (Setting::VramCap, Some("20 GiB")),
            (Setting::Precision, Some("float32")),
        ],
    )
    .unwrap();
    let text = &edited.text;
    let (tables, ladder) = text.split_once("# Rungs in order of cost").unwrap();
    assert!(!ladder.contains("[limits]") && !ladder.contains("[workload"));
    insta::assert_snapshot!(tables);
}

#[test]
fn what_a_parent_still_sets_is_said() {
    let text = "schema = 1\n[profile]\nid = \"mine\"\nversion = \"1.0.0\"\ntitle = \"x\"\n\
                extends = \"rx7900xtx-safe\"\n[limits]\nvram_cap = \"22 GiB\"\n";
    let edited = save(
        &source(text, Owner::User),
        "mine",
        &[(Setting::VramCap, None)],
    )
    .unwrap();
    assert_eq!(
        edited.notes,
        ["vram_cap stays 20 GiB: a parent sets it (profiles/rx7900xtx-safe.toml:36)"]
    );
    assert!(!edited.text.contains("22 GiB"));
}

#[test]
fn a_find_mode_that_is_taken_out_takes_its_companion_along() {
    let with = save(
        &shipped("generic-amd"),
        "mine",
        &[(Setting::FindMode, Some("FAST"))],
    )
    .unwrap();
    let p = profile(&with.text);
    assert_eq!(p.env.set["MIOPEN_FIND_ENFORCE"].value.value, "NONE");
    let own = source(&with.text, Owner::User);
    let without = save(&own, "mine", &[(Setting::FindMode, None)]).unwrap();
    assert!(profile(&without.text).env.set.is_empty());
}

#[test]
fn dotted_and_inline_forms_are_edited_in_place() {
    let head = "schema = 1\nprofile = { id = \"mine\", version = \"1.0.0\", title = \"x\" }\n";
    for body in [
        "env.set.MIOPEN_FIND_MODE = \"FAST\" # c\nlimits.vram_cap = \"20 GiB\"\n",
        "env = { set = { MIOPEN_FIND_MODE = \"FAST\" } } # c\nlimits = { vram_cap = \"20 GiB\" }\n",
        "[env.set.MIOPEN_FIND_MODE]\nvalue = \"FAST\" # c\nwhy = \"x\"\n[limits]\nvram_cap = \"20 GiB\"\n",
    ] {
        let own = source(&format!("{head}{body}"), Owner::User);
        let change = [
            (Setting::FindMode, Some("NORMAL")),
            (Setting::VramCap, Some("21 GiB")),
        ];
        let text = save(&own, "mine", &change).unwrap().text;
        let p = profile(&text);
        assert_eq!(
            p.env.set["MIOPEN_FIND_MODE"].value.value, "NORMAL",
            "{text}"
        );
        assert_eq!(value_in(&p, Setting::VramCap).unwrap().0, "21 GiB");
        let none = [(Setting::FindMode, None), (Setting::VramCap, None)];
        let text = save(&own, "mine", &none).unwrap().text;
        let p = profile(&text);
        assert!(
            p.env.set.is_empty() && p.limits.vram_cap.is_none(),
            "{text}"
        );
        assert!(text.contains("# c"), "{text}");
    }
}

#[test]
fn what_would_not_be_usable_is_refused_with_the_cure() {
    let base = shipped("generic-amd");
    let refused = |id: &str, s, v| save(&base, id, &[(s, Some(v))]).unwrap_err().to_string();
    assert_eq!(
        refused("mine", Setting::VramCap, "20"),
        "the profile would not be usable: `20` is not a size (write a number with a unit, such as `\"20 GiB\"` or `\"512 MiB\"`)"
    );
    let bad_mode = refused("mine", Setting::FindMode, "DYNAMIC");
    assert!(bad_mode.ends_with("(use DYNAMIC_HYBRID)"), "{bad_mode}");
    let bad_id = refused("My Card", Setting::FindMode, "FAST");
    assert!(
        bad_id.starts_with("`My Card` is not a profile id"),
        "{bad_id}"
    );
    let circle = save(&shipped("rx7900xtx-safe"), "generic-amd", &[]).unwrap_err();
    assert!(circle.to_string().contains("extends itself"), "{circle}");
    let broken = save(&source("schema = 1\n[profil", Owner::User), "mine", &[]).unwrap_err();
    assert!(matches!(broken, EditError::Unreadable { .. }), "{broken}");
}

#[test]
fn titles_and_versions() {
    let of = |from: &Source, id: &str, changes: &[_]| {
        let p = profile(&save(from, id, changes).unwrap().text);
        (p.title.value, p.version.value)
    };
    let own = source(OWN, Owner::User);
    let cap = [(Setting::VramCap, Some("21 GiB"))];
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    assert_eq!(of(&own, "night-run", &[]), pair("Night run", "1.2.9"));
    assert_eq!(of(&own, "night-run", &cap), pair("Night run", "1.2.10"));
    assert_eq!(
        of(&own, "day-run", &cap),
        pair("Own copy of night-run (untested)", "1.0.0")
    );
    assert_eq!(
        of(&own, "day-run", &[]),
        pair("Own copy of night-run", "1.0.0")
    );
    let safe = shipped("rx7900xtx-safe");
    assert_eq!(
        of(&safe, "rx7900xtx-safe", &[]),
        pair("Own copy of rx7900xtx-safe (untested)", "1.0.0")
    );
}

fn change() -> impl Strategy<Value = (Setting, Option<String>)> {
    (0..Setting::ALL.len(), proptest::option::of(any::<u8>())).prop_map(|(i, pick)| {
        let setting = Setting::ALL[i];
        let value = pick.map(|n| match setting.choices() {
            [] => format!("{} GiB", 1 + n / 8),
            choices => choices[usize::from(n) % choices.len()].to_owned(),
        });
        (setting, value)
    })
}

fn base() -> impl Strategy<Value = Source> {
    prop_oneof![
        Just(source(OWN, Owner::User)),
        Just(source(&OWN.replace('\n', "\r\n"), Owner::User)),
        Just(shipped("generic-amd")),
        Just(shipped("rx7900xtx-safe")),
        Just(shipped("cpu-only")),
    ]
}

proptest! {
    #[test]
    fn changes_are_exactly_what_was_asked_for(
        from in base(),
        wanted in proptest::collection::btree_map(0..6_u8, change(), 0..6),
    ) {
        // One wish a setting.
        let mut changes: Vec<_> = wanted.into_values().collect();
        changes.sort_by_key(|(s, _)| *s);
        changes.dedup_by_key(|(s, _)| *s);
        let catalog = Catalog::with_folder(None);
        let new = NewProfile { id: String::from("mine"), title: None };
        let edited = save_as(&catalog, &from, &new, &changes).unwrap();
        let (old, now) = (profile(&from.text), profile(&edited.text));
        for setting in Setting::ALL {
            let asked = changes.iter().find(|(s, _)| *s == setting);
            let have = value_in(&now, setting).map(|(v, _)| setting.parse(&v).unwrap());
            let want = match asked {
                Some((_, value)) => value.clone(),
                None => value_in(&old, setting).map(|(v, _)| setting.parse(&v).unwrap()),
            };
            prop_assert_eq!(have, want, "{}", setting);
        }
        prop_assert_eq!(now.ladder.len(), old.ladder.len());
        for comment in from.text.lines().filter_map(|l| l.rsplit_once("# ")) {
            prop_assert!(edited.text.contains(comment.1.trim_end()), "{}", comment.1);
        }
        let kept = from.text.lines().filter(|l| l.trim().starts_with('#'));
        prop_assert!(kept.clone().all(|l| edited.text.lines().any(|m| m == l)));
        let own = Source { text: edited.text.clone(), owner: Owner::User, ..from };
        let again = save_as(&catalog, &own, &new, &changes).unwrap();
        prop_assert_eq!(again.text, edited.text);
    }

    #[test]
    fn without_changes_only_the_head_differs(from in base()) {
        let edited = save_as(
            &Catalog::with_folder(None),
            &from,
            &NewProfile { id: String::from("mine"), title: Some(String::from("T")) },
            &[],
        ).unwrap();
        let strip = |text: &str| -> Vec<String> {
            let head = ["id ", "version ", "title "];
            let mut seen = 0;
            text.lines().filter(|l| {
                let is_head = seen < 3 && head.iter().any(|h| l.starts_with(h));
                seen += usize::from(is_head);
                !is_head
            }).map(str::to_owned).collect()
        };
        prop_assert_eq!(strip(&from.text), strip(&edited.text));
    }
}
