//! Profile files as users write them: one case per file, and the texts of the errors.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use framepack_tui::profile::{
    Catalog, ErrorKind, Level, Owner, Problem, ProfileError, Source, knob, lint, parse,
};
use miette::{GraphicalReportHandler, GraphicalTheme};
use proptest::prelude::*;

fn cases(folder: &str) -> Vec<PathBuf> {
    let root = Path::new("tests/profile").join(folder);
    let mut files: Vec<PathBuf> = std::fs::read_dir(root)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

fn catalog() -> Catalog {
    Catalog::with_folder(None)
}

fn show(error: &ProfileError) -> String {
    let mut out = String::new();
    GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor())
        .with_width(100)
        .render_report(&mut out, error)
        .unwrap();
    // No trailing blanks, so that editors leave the snapshots alone.
    let lines: Vec<&str> = out.lines().map(str::trim_end).collect();
    lines.join("\n")
}

#[test]
fn valid_files_are_read() {
    for file in cases("valid") {
        let path = file.to_str().unwrap();
        let profile = catalog()
            .get(path)
            .unwrap_or_else(|e| panic!("{}", show(&e)));
        let warnings: Vec<_> = lint(&profile).iter().map(Problem::one_line).collect();
        assert!(warnings.is_empty(), "{warnings:#?}");
    }
}

#[test]
fn invalid_files_say_what_is_wrong_and_where() {
    for file in cases("invalid") {
        let path = file.to_str().unwrap();
        let name = file.file_stem().unwrap().to_str().unwrap();
        let error = catalog().get(path).expect_err(path);
        assert_eq!(error.kind(), ErrorKind::Invalid, "{path}");
        insta::with_settings!({
            snapshot_path => "profile/snapshots",
            prepend_module_to_snapshot => false,
            omit_expression => true,
        }, {
            insta::assert_snapshot!(name, show(&error));
        });
    }
}

#[test]
fn shipped_profiles_are_free_of_warnings() {
    let catalog = catalog();
    assert_eq!(
        catalog.ids(),
        [
            "cpu-only",
            "generic-amd",
            "generic-nvidia",
            "rx7900xtx-safe",
            "strix-halo-wan"
        ]
    );
    for id in catalog.ids() {
        let profile = catalog.get(&id).unwrap_or_else(|e| panic!("{}", show(&e)));
        let found: Vec<_> = lint(&profile).iter().map(Problem::one_line).collect();
        assert!(found.is_empty(), "{found:#?}");
        assert!(profile.title.contains("untested") == profile.tested.is_empty());
        for rung in &profile.ladder {
            assert!(rung.source.is_some(), "{id}: {}", rung.id.value);
            assert!(rung.cost.is_some(), "{id}: {}", rung.id.value);
        }
    }
}

#[test]
fn an_unknown_name_lists_what_is_near() {
    let error = catalog().get("rx7900xtx-save").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(error.exit_code(), 66);
    assert!(
        show(&error).contains("did you mean `rx7900xtx-safe`"),
        "{}",
        show(&error)
    );
    let error = catalog().get("zzz").unwrap_err();
    assert!(
        show(&error).contains("`cpu-only`, `generic-amd`"),
        "{}",
        show(&error)
    );
    let error = catalog().get("./no/such.toml").unwrap_err();
    assert_eq!(error.exit_code(), 66);
    assert_eq!(
        catalog()
            .get("tests/profile/invalid/limits.toml")
            .unwrap_err()
            .exit_code(),
        65
    );
    assert_eq!(catalog().get("tests/").unwrap_err().exit_code(), 65);
}

#[test]
fn own_files_shadow_shipped_ones_and_a_broken_one_hurts_only_itself() {
    let dir = tempfile::tempdir().unwrap();
    let head = "schema = 1\n[profile]\nversion = \"1.0.0\"\ntitle = \"mine\"\n";
    let write = |name: &str, rest: &str| {
        std::fs::write(dir.path().join(name), format!("{head}{rest}")).unwrap();
    };
    write("other-name.toml", "id = \"generic-nvidia\"\n");
    write("broken.toml", "id = \"broken\"\nfoo = 1\n");
    write(
        "circle-a.toml",
        "id = \"circle-a\"\nextends = \"circle-b\"\n",
    );
    write(
        "circle-b.toml",
        "id = \"circle-b\"\nextends = \"circle-a\"\n",
    );
    for (child, parent) in [
        ("deep1", "deep2"),
        ("deep2", "deep3"),
        ("deep3", "deep4"),
        ("deep4", "generic-amd"),
    ] {
        write(
            &format!("{child}.toml"),
            &format!("id = \"{child}\"\nextends = \"{parent}\"\n"),
        );
    }
    std::fs::write(dir.path().join("bytes.toml"), [0xff, 0xfe]).unwrap();
    let catalog = Catalog::with_folder(Some(dir.path()));
    assert_eq!(catalog.get("generic-nvidia").unwrap().title.value, "mine");
    assert!(!catalog.get("generic-nvidia").unwrap().is_shipped());
    assert!(catalog.get("generic-amd").unwrap().is_shipped());
    for (id, text) in [
        ("broken", "unknown key `foo`"),
        ("circle-a", "extends itself"),
        ("deep1", "more than 4"),
        ("bytes", "not UTF-8"),
    ] {
        let error = catalog.get(id).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(show(&error).contains(text), "{}", show(&error));
    }
    assert!(catalog.get("deep2").is_ok());
    let all: Vec<String> = catalog.all().into_iter().map(|p| p.id.value).collect();
    assert!(all.contains(&String::from("deep2")) && !all.contains(&String::from("broken")));
    assert_eq!(catalog.broken().len(), 5);
}

#[test]
fn warnings_alone_do_not_refuse_a_profile() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("w.toml");
    std::fs::write(
        &path,
        "schema = 1\n[profile]\nid = \"warned\"\nversion = \"1.0.0\"\ntitle = \"w\"\nextends = \"generic-amd\"\n\
         [env.set]\nMIOPEN_FIND_TIME_LIMIT = \"30\"\nMIOPEN_FIND_MODE = \"2\"\n",
    )
    .unwrap();
    let profile = catalog().get(path.to_str().unwrap()).unwrap();
    let problems = lint(&profile);
    let codes: Vec<_> = problems.iter().map(|p| (p.code, p.level)).collect();
    assert_eq!(codes, [("K102", Level::Warning), ("K104", Level::Warning)]);
    assert!(
        problems[1]
            .one_line()
            .contains("w.toml:9: K104: `MIOPEN_FIND_MODE=2` means `FAST`")
    );
}

/// The same as [`catalog`]'s, of a text.
fn problems_of(rest: &str) -> Vec<String> {
    let head = "schema = 1\n[profile]\nid = \"mine\"\nversion = \"1.0.0\"\ntitle = \"m\"\nextends = \"generic-amd\"\n";
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mine.toml");
    std::fs::write(&path, format!("{head}{rest}")).unwrap();
    match catalog().get(path.to_str().unwrap()) {
        Ok(profile) => lint(&profile).iter().map(Problem::one_line).collect(),
        Err(ProfileError::Invalid { problems, .. }) => {
            problems.iter().map(Problem::one_line).collect()
        }
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn settings_of_the_agent_are_judged_when_a_profile_is_read() {
    let found = problems_of("[workload.settings]\nvae_tile = \"-5\"\n");
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].ends_with(
            "mine.toml:8: K103: `vae_tile = -5` is not a value of this setting (write a whole number of pixels from 32 to 8192)"
        ),
        "{found:?}"
    );
    // the program's own argument has values of its own
    let own = "[workload.settings]\nvae_tile = \"auto\"\n[workload.arguments]\nvae_tile = [\"--tile={value}\"]\n";
    assert_eq!(problems_of(own), Vec::<String>::new());
    let whole = "[workload.settings]\nvae_tile = 256\nvae_overlap = 256\nvae_piece_limit = 900\n";
    let found = problems_of(whole);
    assert!(
        found.len() == 1 && found[0].contains("K105: tiles of 256 pixels cannot overlap by 256"),
        "{found:?}"
    );
    // the rung's tile with the overlap that is set without it
    let rung = "[workload.settings]\nvae_tile = 512\nvae_overlap = 256\n[[ladder]]\nid = \"tiled_vae\"\nsettings = { vae_overlap = 300 }\n";
    let found = problems_of(rung);
    assert!(
        found.len() == 1 && found[0].contains("tiles of 256 pixels cannot overlap by 300"),
        "{found:?}"
    );
}

#[test]
fn a_list_of_sd_next_is_judged_name_by_name() {
    let list: Vec<(&str, &str)> = include_str!("profile/sdnext.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split_once('=').unwrap())
        .collect();
    assert_eq!(list.len(), 61);
    let set = list.iter().filter(|(_, value)| !value.is_empty());
    let lines: Vec<String> = set.map(|(n, v)| format!("{n} = \"{v}\"")).collect();
    let found = problems_of(&format!("[env.set]\n{}\n", lines.join("\n")));
    let code = |code: &str| -> Vec<&String> {
        let with = |p: &&String| p.contains(&format!(": {code}: "));
        found.iter().filter(with).collect()
    };
    for errors in ["K101", "K103"] {
        assert_eq!(code(errors), Vec::<&String>::new());
    }
    let idle = code("K102");
    for name in [
        "MIOPEN_CONVOLUTION_MAX_WORKSPACE",
        "MIOPEN_DEBUG_ENABLE",
        "PYTORCH_ROCM_USE_ROCBLAS",
        "PYTORCH_HIPBLASLT_DISABLE",
        "PYTORCH_TUNABLEOP_CACHE_DIR",
    ] {
        let with = idle.iter().filter(|p| p.contains(&format!("`{name}`")));
        assert_eq!(with.count(), 1, "{name}: {idle:?}");
    }
    assert_eq!(idle.len(), 5, "{idle:?}");
    for (name, _) in list.iter().filter(|(_, value)| value.is_empty()) {
        assert!(knob::knob(name).is_some(), "{name}");
    }
}

#[test]
fn what_other_recipes_set_is_known() {
    for name in [
        "ROCBLAS_USE_HIPBLASLT",
        "FLASH_ATTENTION_TRITON_AMD_ENABLE",
        "HIPBLASLT_LOG_MASK",
        "HIPBLASLT_LOG_FILE",
        "TRITON_CACHE_DIR",
    ] {
        assert!(knob::knob(name).is_some_and(|k| !k.no_effect), "{name}");
    }
    assert!(knob::knob("MIOPEN_WORKSPACE_MAX").is_some_and(|k| k.no_effect));
}

#[test]
fn a_variable_that_came_later_than_the_tested_rocm_is_a_warning() {
    let with = |rocm: &str| {
        problems_of(&format!(
            "[tested]\nrocm = \"{rocm}\"\n[env.set]\nMIOPEN_NAIVE_DISABLE_IF_ALT = \"1\"\n"
        ))
    };
    let found = with("7.11.0");
    assert!(
        found.len() == 1
            && found[0].contains(
                "K102: `MIOPEN_NAIVE_DISABLE_IF_ALT` is read from ROCm 7.14 on; [tested] names ROCm 7.11.0"
            ),
        "{found:?}"
    );
    for rocm in ["7.14", "10.0.0", "unknown"] {
        assert_eq!(with(rocm), Vec::<String>::new(), "{rocm}");
    }
}

#[test]
fn memory_that_a_card_of_24_gb_does_not_have_is_a_warning() {
    let card = "[match]\nvram_max = \"25 GiB\"\n";
    let framepack = |kept: &str| {
        problems_of(&format!(
            "{card}[workload]\nadapter = \"framepack\"\n[workload.settings]\npreserved_memory = \"{kept}\"\n"
        ))
    };
    for kept in ["12 GiB", "15.5 GiB", "6 GiB"] {
        let found = framepack(kept);
        assert!(
            found.len() == 1 && found[0].contains("K105: FramePack keeps only"),
            "{kept}: {found:?}"
        );
    }
    for kept in ["16 GiB", "18 GiB", "19 GiB", "+1 GiB"] {
        assert_eq!(framepack(kept), Vec::<String>::new(), "{kept}");
    }
    let other = format!(
        "{card}[workload]\nadapter = \"comfyui\"\n[workload.settings]\npreserved_memory = \"2 GiB\"\n"
    );
    assert_eq!(problems_of(&other), Vec::<String>::new(), "ComfyUI's own");
    let high = |most: &str| {
        problems_of(&format!(
            "[match]\nvram_max = \"{most}\"\n[workload]\nadapter = \"comfyui\"\nargs = [\"--highvram\"]\n"
        ))
    };
    let found = high("25 GiB");
    assert!(
        found.len() == 1 && found[0].contains("K105: `--highvram` keeps every model on a card"),
        "{found:?}"
    );
    assert_eq!(high("49 GiB"), Vec::<String>::new());
}

#[test]
fn ck_is_switched_off_only_where_miopen_has_it() {
    let profile = catalog().get("generic-amd").unwrap();
    let place = |id: &str| profile.ladder.iter().position(|r| r.id.value == id);
    let rung = &profile.ladder[place("ck_off").unwrap()];
    assert_eq!(rung.rocm_min.as_ref().map(|at| at.value), Some([7, 11]));
    let gfx: Vec<&str> = rung.gfx.iter().flatten().map(|g| &*g.value).collect();
    assert!(gfx.contains(&"gfx1100") && gfx.contains(&"gfx1201"));
    assert!(!gfx.contains(&"gfx1103"), "left out by MIOpen's list");
    assert!(place("ck_off") < place("tiled_vae"));
    let found = problems_of("[[ladder]]\nid = \"ck_off\"\nrocm_min = \"new\"\n");
    assert!(
        found.len() == 1 && found[0].contains("P105: `new` is not a release of ROCm"),
        "{found:?}"
    );
}

#[test]
fn the_safe_profile_keeps_what_the_notes_found() {
    let profile = catalog().get("rx7900xtx-safe").unwrap();
    let kept = &profile.workload.settings["preserved_memory"].value;
    assert_eq!(kept, "18 GiB");
    // ComfyUI reserves by the same setting
    let adapter = profile.workload.adapter.as_ref();
    assert_eq!(adapter.map(|a| &*a.value), Some("framepack"));
    let conf = &profile.env.set["PYTORCH_HIP_ALLOC_CONF"].value.value;
    assert_eq!(
        conf,
        "garbage_collection_threshold:0.8,max_split_size_mb:64"
    );
    let rung = profile.ladder.iter();
    let lower = rung.clone().find(|r| r.id.value == "lower_settings");
    let more = &lower.unwrap().settings["preserved_memory"].value;
    assert_eq!(more, "+1 GiB", "22 GiB moved the transformer out");
}

/// Reads, judges and shows a text; none of it may panic.
fn digest(text: String) {
    let source = Arc::new(Source {
        name: String::from("any.toml"),
        text,
        owner: Owner::User,
    });
    match parse(&source) {
        Ok(profile) => {
            for problem in lint(&profile) {
                let _line = problem.one_line();
            }
        }
        Err(problems) => {
            assert!(!problems.is_empty());
            assert!(problems.iter().all(Problem::is_error));
            let error = ProfileError::Invalid {
                name: String::from("any"),
                problems,
            };
            assert!(show(&error).contains("cannot be used"));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_text_is_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        digest(String::from_utf8_lossy(&bytes).into_owned());
    }

    #[test]
    fn toml_like_text_is_read_or_refused(
        parts in proptest::collection::vec(
            prop_oneof![
                Just("schema = 1\n"), Just("[profile]\n"), Just("id = \"abc\"\n"),
                Just("version = \"1.0.0\"\n"), Just("title = \"ä\"\n"), Just("[env.set]\n"),
                Just("MIOPEN_FIND_MODE = \"2\"\n"), Just("HF_HOME = { value = \"é{\" }\n"),
                Just("[[ladder]]\n"), Just("id = \"tiled_vae\"\n"), Just("answers = [\"any\"]\n"),
                Just("[detect.phase.vae_decode]\n"), Just("silence = \"1s\"\n"),
                Just("settings = { vae_tile = 0xffffffffffffffffffff }\n"), Just("[ladder]\n"),
                Just("= \n"), Just("\"\"\"\n"), Just("[x]\n"), Just("ladder = [1, {}]\n"),
                Just("[workload]\n"), Just("args = [\"\\u0000\", 1]\n"), Just("[detect]\nphase = 1\n"),
                Just("[detect.phase]\nsampling = 2020-01-01\n"), Just("[limits]\nvram_cap = 1e9\n"),
            ],
            0..14,
        )
    ) {
        digest(parts.concat());
    }

    #[test]
    fn a_damaged_profile_is_read_or_refused(
        at in 0usize..6000,
        len in 0usize..40,
        insert in "[\\[\\]{}=\"'a-z0-9\\n\u{e4}]{0,12}",
    ) {
        let text = include_str!("../profiles/generic-amd.toml");
        let cut = |n: usize| (0..=n.min(text.len())).rev().find(|i| text.is_char_boundary(*i));
        let (from, to) = (cut(at).unwrap(), cut(at + len).unwrap());
        digest(format!("{}{insert}{}", &text[..from], &text[to..]));
    }
}

#[test]
fn the_documentation_names_every_variable_and_every_rung() {
    let text = include_str!("../docs/profiles.md");
    for knob in knob::knobs() {
        assert!(text.contains(&format!("`{}`", knob.name)), "{}", knob.name);
    }
    for rung in catalog().get("generic-amd").unwrap().ladder {
        assert!(
            text.contains(&format!("| `{}` |", rung.id.value)),
            "{}",
            rung.id.value
        );
        for key in rung.settings.keys() {
            assert!(text.contains(&format!("`{key}`")), "{key}");
        }
    }
}

#[test]
fn the_documented_example_is_a_valid_profile() {
    let text = include_str!("../docs/profiles.md");
    let example = text.split("```toml\n").nth(1).unwrap();
    let example = example.split("```").next().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("example.toml");
    // The example names one rung that its parent has, so it merges over it.
    std::fs::write(&path, example).unwrap();
    let profile = catalog()
        .get(path.to_str().unwrap())
        .unwrap_or_else(|e| panic!("{}", show(&e)));
    assert_eq!(lint(&profile), []);
}
