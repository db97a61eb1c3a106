//! Who wins, which rungs can be taken, and what the user is told.

use std::sync::Arc;

use super::*;
use crate::model::{ActionId, Chosen, Effective, Follow, Origin, Phase, Tier};
use crate::profile::{Catalog, Owner, Source, parse};

fn no_agent(_: &str, _: &str) -> Result<Vec<String>, NoArgument> {
    Err(NoArgument::Wrong(String::from("needs the agent")))
}

fn vars(list: &[(&str, &str)]) -> BTreeMap<String, String> {
    list.iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect()
}

fn inputs(user: &[(&str, &str)]) -> Inputs<'static> {
    Inputs {
        argv: vec![String::from("python"), String::from("demo.py")],
        user_env: vars(user),
        cap: None,
        gpu: None,
        adapter: String::from("framepack"),
        server: true,
        countdown: Duration::ZERO,
        setting_args: &no_agent,
        agent: AgentWay::Unknown,
        agent_asked: None,
        no_miopen: None,
        chosen: Chosens::default(),
    }
}

fn shipped(id: &str) -> Profile {
    Catalog::with_folder(None).get(id).unwrap()
}

fn written(rest: &str) -> Profile {
    let text = format!(
        "schema = 1\n[profile]\nid = \"mine\"\nversion = \"1.0.0\"\ntitle = \"mine\"\n{rest}"
    );
    let source = Source {
        name: String::from("mine.toml"),
        text,
        owner: Owner::User,
    };
    parse(&Arc::new(source)).unwrap()
}

fn find<'p>(plan: &'p Plan, id: &str) -> &'p Rung {
    plan.ladder.iter().find(|r| r.id.0 == id).unwrap()
}

fn env<'p>(plan: &'p Plan, name: &str) -> Option<&'p EnvChange> {
    plan.env.iter().find(|c| c.name == name)
}

/// The rungs that a run takes one after another for a fault that stays.
fn path(plan: &Plan, verdict: VerdictId, phase: Phase) -> Vec<&str> {
    plan.ladder
        .iter()
        .filter(|r| r.answers(verdict, phase))
        .map(|r| r.id.0.as_str())
        .collect()
}

#[test]
fn the_supervisor_adds_what_nobody_else_has_set() {
    let plan = resolve(
        &shipped("generic-amd"),
        &inputs(&[("MIOPEN_LOG_LEVEL", "3")]),
    )
    .plan;
    let names: Vec<&str> = plan.env.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["MIOPEN_ENABLE_LOGGING_CMD", "PYTHONUNBUFFERED"]);
    assert!(plan.env.iter().all(|c| c.origin == EnvOrigin::Supervisor));
    let quiet = written("[env.set]\nMIOPEN_LOG_LEVEL = \"4\"\n");
    let plan = resolve(&quiet, &inputs(&[])).plan;
    let level = env(&plan, "MIOPEN_LOG_LEVEL").unwrap();
    assert_eq!(
        (level.origin, level.value.as_deref()),
        (EnvOrigin::Profile, Some("4"))
    );
}

#[test]
fn the_user_wins_over_the_profile_and_is_told() {
    let safe = shipped("rx7900xtx-safe");
    let user = [
        ("MIOPEN_FIND_MODE", "NORMAL"),
        ("HSA_OVERRIDE_GFX_VERSION", "11.0.0"),
    ];
    let r = resolve(&safe, &inputs(&user));
    assert_eq!(
        r.notices,
        [
            "your MIOPEN_FIND_MODE=NORMAL shadows MIOPEN_FIND_MODE=FAST of profile rx7900xtx-safe",
            "your HSA_OVERRIDE_GFX_VERSION=11.0.0 stays in force, though profile rx7900xtx-safe asks for it to be unset",
            "preserved_memory of profile rx7900xtx-safe: not in force, needs the agent",
        ]
    );
    let mode = env(&r.plan, "MIOPEN_FIND_MODE").unwrap();
    assert_eq!(mode.origin, EnvOrigin::User);
    assert_eq!(mode.value.as_deref(), Some("NORMAL"));
    assert_eq!(mode.overrides.as_deref(), Some("FAST"));
    assert_eq!(r.plan.env_before["MIOPEN_FIND_MODE"], "NORMAL");
    assert_eq!(r.plan.env_before["MIOPEN_FIND_ENFORCE"], "NONE");
    assert_eq!(find(&r.plan, "fast_find").unavailable, None);
}

#[test]
fn a_rung_that_changes_nothing_is_skipped_with_the_reason() {
    let plan = resolve(&shipped("rx7900xtx-safe"), &inputs(&[])).plan;
    assert_eq!(
        find(&plan, "fast_find").unavailable.as_deref(),
        Some("MIOPEN_FIND_ENFORCE=NONE, MIOPEN_FIND_MODE=FAST is in force already")
    );
    assert_eq!(find(&plan, "retry_same").unavailable, None);
    let user = [("MIOPEN_FIND_MODE", "2"), ("MIOPEN_FIND_ENFORCE", "none")];
    let plan = resolve(&shipped("generic-amd"), &inputs(&user)).plan;
    assert!(find(&plan, "fast_find").unavailable.is_some());
    let plan = resolve(&shipped("generic-amd"), &inputs(&user[..1])).plan;
    assert_eq!(find(&plan, "fast_find").unavailable, None);
}

#[test]
fn settings_become_arguments_or_make_the_rung_unavailable() {
    let amd = shipped("generic-amd");
    let plan = resolve(&amd, &inputs(&[])).plan;
    let tiled = find(&plan, "tiled_vae");
    assert_eq!(tiled.unavailable.as_deref(), Some("needs the agent"));
    assert_eq!(
        tiled.settings,
        vars(&[("vae_overlap", "64"), ("vae_tile", "256")])
    );
    let cpu_vae = |key: &str, value: &str| match (key, value) {
        ("vae_device", "cpu") => Ok(vec![String::from("--cpu-vae")]),
        ("vae_dtype", "float32") => Ok(vec![String::from("--fp32-vae")]),
        _ => Err(NoArgument::None(String::from("no argument for it"))),
    };
    let with = Inputs {
        setting_args: &cpu_vae,
        ..inputs(&[])
    };
    let plan = resolve(&amd, &with).plan;
    let cpu = find(&plan, "vae_cpu");
    assert!(
        cpu.args.is_empty(),
        "those of settings are worked out an attempt"
    );
    assert_eq!(plan.setting_args["vae_device"]["cpu"], ["--cpu-vae"]);
    assert_eq!((cpu.unavailable.as_ref(), cpu.tier), (None, Tier::T3));
    assert!(cpu.on_cpu());
}

#[test]
fn the_agent_carries_out_what_no_argument_does_and_its_lack_is_said() {
    let amd = shipped("generic-amd");
    let args = |key: &str, value: &str| match (key, value) {
        ("vae_device", "cpu") => Ok(vec![String::from("--cpu-vae")]),
        ("vae_dtype", _) => Err(NoArgument::Wrong(String::from("write another"))),
        _ => Err(NoArgument::None(String::from("no argument for it"))),
    };
    let with = |agent| Inputs {
        setting_args: &args,
        agent,
        ..inputs(&[])
    };
    let plan = resolve(&amd, &with(AgentWay::On)).plan;
    for id in ["tiled_vae", "conv_split", "full_unload", "disable_pinned"] {
        assert_eq!(find(&plan, id).unavailable, None, "{id}");
    }
    let wrong = find(&plan, "fp32_upcast").unavailable.clone();
    assert_eq!(
        wrong.as_deref(),
        Some("write another"),
        "no agent mends that"
    );
    assert_eq!(
        plan.setting_args.keys().collect::<Vec<_>>(),
        ["vae_device"],
        "what has no argument is the agent's"
    );
    let tile = &plan.follow[&Setting::TileSize];
    assert!(matches!(tile, Follow::Yes { how } if how == "by the agent"));

    let why = "the agent is off".to_owned();
    let plan = resolve(&amd, &with(AgentWay::Off { why })).plan;
    assert_eq!(
        find(&plan, "tiled_vae").unavailable.as_deref(),
        Some("no argument for it, and the agent is off")
    );
}

#[test]
fn the_command_line_decides_about_the_agent_before_the_profile() {
    let silent = written("");
    let without = written("[workload]\nagent = \"off\"\n");
    let with = written("[workload]\nagent = \"auto\"\n");
    let (auto, off) = (Some(AgentUse::Auto), Some(AgentUse::Off));
    let why = |profile, asked| agent_off(profile, asked);
    for profile in [&silent, &with] {
        assert_eq!(why(profile, None), None);
        assert_eq!(why(profile, auto), None);
    }
    for profile in [&silent, &with, &without] {
        assert_eq!(
            why(profile, off).as_deref(),
            Some("the agent is off (--agent off)")
        );
    }
    assert_eq!(why(&without, auto), None);
    assert!(why(&without, None).unwrap().contains("profile mine"));

    let shown = |profile: &Profile, agent_asked| {
        let inputs = Inputs {
            agent_asked,
            ..inputs(&[])
        };
        let plan = resolve(profile, &inputs).plan;
        let entry = plan
            .effective
            .into_iter()
            .find(|e| e.key == "workload.agent");
        entry.map(|e| (e.value.unwrap(), e.overrides.is_some()))
    };
    assert_eq!(shown(&silent, None), None);
    assert_eq!(shown(&without, None), Some(("off".to_owned(), false)));
    assert_eq!(shown(&without, auto), Some(("auto".to_owned(), true)));
}

#[test]
fn settings_of_the_vault_are_the_agents() {
    let profile = written(
        "[workload.settings]\nvault_limit = \"8 GiB\"\nreplay = true\nconv2d_tier = \"nocudnn\"\n",
    );
    let no_argument = |_: &str, _: &str| Err(NoArgument::None(String::from("no argument for it")));
    let inputs = Inputs {
        setting_args: &no_argument,
        agent: AgentWay::On,
        ..inputs(&[])
    };
    let resolved = resolve(&profile, &inputs);
    assert_eq!(resolved.notices, Vec::<String>::new());
    assert_eq!(resolved.plan.settings["vault_limit"], "8 GiB");
    assert_eq!(resolved.plan.settings.len(), 3);
}

#[test]
fn generic_amd_follows_the_default_actions() {
    let plan = resolve(&shipped("generic-amd"), &inputs(&[])).plan;
    let decode = Phase::VaeDecode;
    let stall = [
        "fast_find",
        "conv_split",
        "ck_off",
        "tiled_vae",
        "immediate_naive",
        "vae_cpu",
    ];
    assert_eq!(path(&plan, VerdictId::SilentHang, decode), stall);
    assert_eq!(path(&plan, VerdictId::FindStall, decode), stall);
    assert_eq!(
        path(&plan, VerdictId::SpinHang, decode)[..2],
        ["retry_same", "fast_find"]
    );
    assert_eq!(
        path(&plan, VerdictId::SilentHang, Phase::Sampling),
        ["retry_elsewhere"]
    );
    assert_eq!(
        path(&plan, VerdictId::SpinHang, Phase::Sampling),
        ["retry_same"]
    );
    assert_eq!(
        path(&plan, VerdictId::FindStall, Phase::Sampling),
        ["fast_find_elsewhere"]
    );
    assert_eq!(
        path(&plan, VerdictId::SilentHang, Phase::Unknown)[..2],
        ["retry_elsewhere", "fast_find"]
    );
    assert_eq!(
        path(&plan, VerdictId::NoAlgorithm, decode),
        ["tiled_vae", "vae_cpu"]
    );
    assert_eq!(
        path(&plan, VerdictId::GpuOom, Phase::Sampling),
        ["lower_settings"]
    );
    assert_eq!(path(&plan, VerdictId::GpuOom, decode)[0], "tiled_vae");
    assert_eq!(
        path(&plan, VerdictId::BlockAllocator, decode)[0],
        "full_unload"
    );
    for v in [
        VerdictId::Killed,
        VerdictId::CrashSegv,
        VerdictId::AppError,
        VerdictId::GpuReset,
    ] {
        assert!(path(&plan, v, decode).is_empty(), "{v}");
    }
    let reset = find(&plan, "reset_miopen_db");
    let folder = reset.env["MIOPEN_USER_DB_PATH"].as_deref().unwrap();
    assert_eq!(
        crate::profile::expand_placeholders(folder, "/run/a1"),
        "/run/a1/miopen-db"
    );
    assert_eq!(find(&plan, "fast_find").action, ActionId::FastFind);
}

#[test]
fn settings_of_another_adapter_are_left_out() {
    let p = written("[workload]\nadapter = \"comfyui\"\nargs = [\"--lowvram\"]\n");
    let r = resolve(&p, &inputs(&[]));
    assert_eq!(r.plan.argv, ["python", "demo.py"]);
    assert_eq!(r.notices.len(), 1);
    let comfy = Inputs {
        adapter: String::from("comfyui"),
        ..inputs(&[])
    };
    let r = resolve(&p, &comfy);
    assert_eq!(r.plan.argv, ["python", "demo.py", "--lowvram"]);
    assert!(r.notices.is_empty());
}

#[test]
fn limits_come_from_the_profile_and_the_cap_from_the_command_line() {
    let p = written(
        "[detect]\nfind_limit = \"20s\"\n[detect.phase.vae_decode]\nsilence = \"auto\"\nceiling = \"10m\"\n\
         [limits]\nvram_cap = \"20 GiB\"\n[workload]\nserver = false\n[kill]\nfirst = \"INT\"\n[budget]\ntotal = 2\n",
    );
    let plan = resolve(&p, &inputs(&[])).plan;
    assert_eq!(plan.limits.find_limit, Duration::from_secs(20));
    assert!(plan.limits.find_limit_is_users);
    let decode = &plan.limits.phases[&Phase::VaeDecode];
    assert_eq!(
        (decode.silence, decode.ceiling),
        (None, Some(Duration::from_mins(10)))
    );
    assert_eq!(plan.vram_cap, Some(Bytes::gib(20)));
    assert!(!plan.server);
    assert_eq!(plan.kill.first, crate::model::Signal::Int);
    assert_eq!((plan.budget.restarts, plan.budget.total), (3, 2));
    let capped = Inputs {
        cap: Some(Bytes::gib(16)),
        ..inputs(&[])
    };
    assert_eq!(resolve(&p, &capped).plan.vram_cap, Some(Bytes::gib(16)));
    let safe = resolve(&shipped("rx7900xtx-safe"), &inputs(&[])).plan;
    assert!(!safe.limits.find_limit_is_users);
}

#[test]
fn every_touched_variable_is_asked_for() {
    let names = env_names(&shipped("rx7900xtx-safe"));
    for name in [
        "HSA_OVERRIDE_GFX_VERSION",
        "MIOPEN_FIND_MODE",
        "MIOPEN_USER_DB_PATH",
        "PYTHONUNBUFFERED",
    ] {
        assert!(names.contains(name), "{name}");
    }
}

#[test]
fn a_child_puts_a_rung_before_a_parents() {
    let plan = resolve(&shipped("strix-halo-wan"), &inputs(&[])).plan;
    let ids: Vec<&str> = plan.ladder.iter().map(|r| r.id.0.as_str()).collect();
    let at = |id: &str| ids.iter().position(|i| *i == id).unwrap();
    assert_eq!(at("winograd_off") + 1, at("tiled_vae"));
    assert_eq!(at("vae_cpu") + 1, ids.len());
    assert_eq!(find(&plan, "tiled_vae").settings["vae_tile"], "256");
}

#[test]
fn what_this_version_does_not_do_is_said() {
    let profile =
        written("[workload]\nresume = \"section\"\n[limits]\ntemp_pause = { junction = 105 }\n");
    let notices = resolve(&profile, &inputs(&[])).notices.join("\n");
    assert!(notices.contains("temp_pause"), "{notices}");
    assert!(notices.contains("does not ask it to"), "{notices}");
    let quiet = resolve(&shipped("generic-amd"), &inputs(&[]))
        .notices
        .join("\n");
    assert!(!quiet.contains("this version"), "{quiet}");
}

fn choose(list: &[(Setting, &str, &[&str])]) -> Chosens {
    let one = |(setting, value, over): &(Setting, &str, &[&str])| {
        let over = over.iter().map(|r| RungId((*r).to_owned())).collect();
        let value = (*value).to_owned();
        (*setting, Chosen { value, over })
    };
    Chosens {
        profile: None,
        settings: list.iter().map(one).collect(),
    }
}

fn of<'p>(plan: &'p Plan, key: &str) -> &'p Effective {
    let found = plan.effective.iter().find(|e| e.key == key);
    found.unwrap_or_else(|| panic!("no {key} in {:#?}", plan.effective))
}

const ARGUMENTS: &str = "[workload.arguments]\nvae_tile = [\"--tile\", \"{value}\"]\n\
     preserved_memory = [\"--preserve={gib}\"]\n[workload.settings]\nvae_tile = 256\nvae_chunk = 4\n";

#[test]
fn a_profile_names_the_arguments_of_its_program() {
    let r = resolve(&written(ARGUMENTS), &inputs(&[]));
    assert_eq!(r.plan.argv, ["python", "demo.py"]);
    assert_eq!(r.plan.settings, vars(&[("vae_tile", "256")]));
    assert_eq!(r.plan.setting_args["vae_tile"]["256"], ["--tile", "256"]);
    assert_eq!(
        r.notices,
        ["vae_chunk of profile mine: not in force, needs the agent"]
    );
    assert_eq!(
        of(&r.plan, "workload.settings.vae_chunk").idle.as_deref(),
        Some("needs the agent")
    );
    let how = |s| r.plan.follow[&s].clone();
    let yes = |how: &str| Follow::Yes {
        how: how.to_owned(),
    };
    assert_eq!(how(Setting::TileSize), yes("--tile 256"));
    assert_eq!(how(Setting::PreservedMemory), yes("--preserve=6"));
    assert!(matches!(how(Setting::ChunkSize), Follow::No { .. }));
    assert!(
        matches!(how(Setting::VramCap), Follow::No { .. }),
        "no card"
    );

    let chosen = Inputs {
        chosen: choose(&[
            (Setting::PreservedMemory, "512 MiB", &[]),
            (Setting::TileSize, "192", &[]),
        ]),
        ..inputs(&[])
    };
    let plan = resolve(&written(ARGUMENTS), &chosen).plan;
    assert_eq!(
        plan.setting_args["preserved_memory"]["512 MiB"],
        ["--preserve=0.5"]
    );
    let tile = of(&plan, "workload.settings.vae_tile");
    assert_eq!(
        (tile.value.as_deref(), &tile.origin),
        (Some("192"), &Origin::Live)
    );
    assert_eq!(tile.overrides.as_deref(), Some("256 (mine.toml:10)"));
}

#[test]
fn a_chosen_find_mode_wins_over_everyone_and_is_let_be() {
    let user = [
        ("MIOPEN_FIND_MODE", "NORMAL"),
        ("MIOPEN_FIND_ENFORCE", "SEARCH"),
    ];
    let chosen = Inputs {
        chosen: choose(&[(Setting::FindMode, "HYBRID", &[])]),
        ..inputs(&user)
    };
    let plan = resolve(&shipped("rx7900xtx-safe"), &chosen).plan;
    let mode = env(&plan, "MIOPEN_FIND_MODE").unwrap();
    assert_eq!(
        (mode.value.as_deref(), mode.origin),
        (Some("HYBRID"), EnvOrigin::Live)
    );
    assert_eq!(mode.overrides.as_deref(), Some("NORMAL"));
    let enforce = env(&plan, "MIOPEN_FIND_ENFORCE").unwrap();
    assert_eq!(
        enforce.value.as_deref(),
        Some("NONE"),
        "else MIOpen searches as in NORMAL"
    );
    assert_eq!(enforce.overrides.as_deref(), Some("SEARCH"));
    assert_eq!(plan.env_before["MIOPEN_FIND_MODE"], "HYBRID");
    assert_eq!(
        find(&plan, "fast_find").unavailable,
        None,
        "FAST is a change again"
    );
    let said = of(&plan, "env.MIOPEN_FIND_MODE");
    assert_eq!(said.origin, Origin::Live);
    assert_eq!(said.overrides.as_deref(), Some("NORMAL (your environment)"));

    let elsewhere = Inputs {
        no_miopen: Some("no AMD card".to_owned()),
        ..inputs(&[])
    };
    let plan = resolve(&shipped("generic-nvidia"), &elsewhere).plan;
    assert_eq!(
        plan.follow[&Setting::FindMode],
        Follow::No {
            why: "no AMD card".to_owned()
        }
    );
}

#[test]
fn every_effective_setting_says_who_set_it() {
    let capped = Inputs {
        cap: Some(Bytes::gib(16)),
        gpu: Some(GpuId("0000:0c:00.0".to_owned())),
        ..inputs(&[("MIOPEN_USER_DB_PATH", "/db")])
    };
    let plan = resolve(&shipped("rx7900xtx-safe"), &capped).plan;
    let origin = |key| of(&plan, key).origin.to_string();
    assert_eq!(
        origin("env.MIOPEN_FIND_MODE"),
        "profiles/rx7900xtx-safe.toml:22"
    );
    assert_eq!(origin("env.PYTHONUNBUFFERED"), "framepack-tui");
    assert_eq!(origin("env.MIOPEN_USER_DB_PATH"), "your environment");
    assert_eq!(origin("limits.vram_cap"), "command line");
    assert_eq!(
        of(&plan, "limits.vram_cap").overrides.as_deref(),
        Some("20 GiB (profiles/rx7900xtx-safe.toml:36)")
    );
    assert_eq!(origin("budget.restarts"), "default");
    assert_eq!(
        origin("workload.adapter"),
        "profiles/rx7900xtx-safe.toml:30"
    );
    let mut keys: Vec<&String> = plan.effective.iter().map(|e| &e.key).collect();
    let sorted = keys.clone();
    keys.sort();
    keys.dedup();
    assert_eq!(keys, sorted, "each once, in order");
    assert_eq!(plan.follow[&Setting::VramCap], Follow::Ours);
    let live = Inputs {
        chosen: choose(&[(Setting::VramCap, "21 GiB", &[])]),
        ..capped
    };
    let plan = resolve(&shipped("rx7900xtx-safe"), &live).plan;
    assert_eq!(plan.vram_cap, Some(Bytes::gib(21)));
    assert_eq!(of(&plan, "limits.vram_cap").origin, Origin::Live);
}

#[test]
fn find_modes_are_those_of_the_catalogue() {
    let knob = crate::profile::knob::knob(FIND_MODE).unwrap();
    let mut words: Vec<&str> = knob.words.keys().map(String::as_str).collect();
    let mut modes = crate::model::setting::FIND_MODES;
    words.sort_unstable();
    modes.sort_unstable();
    assert_eq!(words, modes);
}
