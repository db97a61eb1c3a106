use super::*;
use crate::model::event::Choice;
use crate::model::worker::OwnWork;
use crate::model::{
    Answers, Bytes, Cite, Finding, Health, Mono, Phase, Plan, Rung, RungId, Tier, Vendor, VerdictId,
};
use VerdictId::*;

use crate::policy::{BudgetState, InFlight, Position, Standing, decide};

fn verdict(id: VerdictId, phase: Phase, health: Health) -> Verdict {
    Verdict {
        id,
        health,
        phase,
        section: None,
        confidence: 1.0,
        onset: Mono::ZERO,
        sentence: String::new(),
        findings: Vec::new(),
        ruled_out: Vec::new(),
        considered: Vec::new(),
        action: ActionId::None,
        remedy: None,
        next: None,
        questions: None,
        cause: None,
    }
}

fn of(id: VerdictId, phase: Phase) -> Remedy {
    remedy(&verdict(id, phase, Health::Failed), &RemedyFacts::default())
}

type Row = (VerdictId, Phase, ActionId, u8, bool);

/// The table of the vocabulary, row by row: action, tier, restart after a failure.
const TABLE: &[Row] = &[
    (SilentHang, Phase::VaeDecode, ActionId::FastFind, 1, true),
    (SilentHang, Phase::VaeEncode, ActionId::FastFind, 1, true),
    (FindStall, Phase::VaeDecode, ActionId::FastFind, 1, true),
    (FindStall, Phase::Sampling, ActionId::FastFind, 1, true),
    (SilentHang, Phase::Offload, ActionId::EnvToggle, 1, true),
    (SilentHang, Phase::Sampling, ActionId::RetrySame, 1, true),
    (SpinHang, Phase::Sampling, ActionId::RetrySame, 1, true),
    (BusyIdle, Phase::VaeDecode, ActionId::RetrySame, 1, true),
    (MemoryFault, Phase::Sampling, ActionId::RetrySame, 1, true),
    (BlasError, Phase::Sampling, ActionId::RetrySame, 1, true),
    (GpuReset, Phase::Sampling, ActionId::RebootHost, 4, false),
    (NoAlgorithm, Phase::VaeDecode, ActionId::TiledVae, 2, true),
    (GpuOom, Phase::Sampling, ActionId::LowerSettings, 2, true),
    (GpuOom, Phase::VaeDecode, ActionId::TiledVae, 2, true),
    (VramSpill, Phase::Sampling, ActionId::LowerSettings, 2, true),
    (
        BlockAllocator,
        Phase::VaeDecode,
        ActionId::FullUnload,
        1,
        true,
    ),
    (HostOom, Phase::ModelLoad, ActionId::FreeMemory, 2, true),
    (
        PinnedMemory,
        Phase::Sampling,
        ActionId::DisablePinned,
        1,
        true,
    ),
    (MiopenDb, Phase::VaeDecode, ActionId::ResetMiopenDb, 1, true),
    (
        DeviceMismatch,
        Phase::Delight,
        ActionId::FixDevicePlacement,
        1,
        true,
    ),
    (
        DtypeMismatch,
        Phase::Sampling,
        ActionId::Fp32Upcast,
        2,
        true,
    ),
    (NanOutput, Phase::Done, ActionId::Fp32Upcast, 2, false),
    (
        DownloadStall,
        Phase::Download,
        ActionId::ResumeDownload,
        1,
        true,
    ),
    (Crawl, Phase::VaeDecode, ActionId::FastFind, 1, false),
    (Throttled, Phase::Sampling, ActionId::CoolDown, 0, false),
    (
        GpuUnavailable,
        Phase::Startup,
        ActionId::FixEnvironment,
        4,
        false,
    ),
    (
        GttExhausted,
        Phase::Sampling,
        ActionId::FixEnvironment,
        4,
        false,
    ),
    (
        PermissionKfd,
        Phase::Startup,
        ActionId::FixEnvironment,
        4,
        false,
    ),
    (
        NoKernelImage,
        Phase::Sampling,
        ActionId::FixEnvironment,
        4,
        false,
    ),
    (
        PortInUse,
        Phase::Startup,
        ActionId::FixEnvironment,
        4,
        false,
    ),
    (
        MissingDependency,
        Phase::Startup,
        ActionId::FixEnvironment,
        4,
        false,
    ),
    (
        CorruptModel,
        Phase::ModelLoad,
        ActionId::FixEnvironment,
        4,
        false,
    ),
    (DiskFull, Phase::Save, ActionId::FixEnvironment, 4, false),
    (
        CpuFallback,
        Phase::Sampling,
        ActionId::FixEnvironment,
        4,
        false,
    ),
    (
        CrashSegv,
        Phase::Sampling,
        ActionId::FixEnvironment,
        4,
        false,
    ),
    (
        AppError,
        Phase::Sampling,
        ActionId::FixEnvironment,
        4,
        false,
    ),
    (Killed, Phase::Sampling, ActionId::RetrySame, 1, false),
    (Healthy, Phase::Sampling, ActionId::None, 0, false),
    (IdleWaiting, Phase::Idle, ActionId::None, 0, false),
    (LoadingIo, Phase::ModelLoad, ActionId::Wait, 0, false),
    (DownloadWait, Phase::Download, ActionId::Wait, 0, false),
    (CompileWarmup, Phase::VaeDecode, ActionId::Wait, 0, false),
    (CpuPhase, Phase::VaeDecode, ActionId::Wait, 0, false),
    (Paused, Phase::Sampling, ActionId::None, 0, false),
    (Finished, Phase::Done, ActionId::None, 0, false),
    (Quiet, Phase::Unknown, ActionId::None, 0, false),
    (RemoteWait, Phase::TextEncode, ActionId::Wait, 0, false),
    (NotEnded, Phase::Done, ActionId::None, 0, false),
];

#[test]
fn the_default_table() {
    for (id, phase, action, tier, auto) in TABLE {
        let r = of(*id, *phase);
        assert_eq!(
            (r.action, r.tier, r.auto_restart),
            (*action, *tier, *auto),
            "{id} in {phase}"
        );
        assert!(!r.why.is_empty(), "{id}");
    }
}

#[test]
fn before_a_failure_it_is_advice() {
    for id in [
        VerdictId::BlockAllocator,
        VerdictId::OffloadRisk,
        VerdictId::HostOom,
        VerdictId::Thrash,
    ] {
        let at = |health| {
            let v = verdict(id, Phase::VaeDecode, health);
            remedy(&v, &RemedyFacts::default()).auto_restart
        };
        assert!(at(Health::Failed) && at(Health::Failing), "{id}");
        assert!(!at(Health::Slow) && !at(Health::Suspect), "{id}");
        assert_eq!(at(Health::Hung), id != VerdictId::Thrash, "{id}");
    }
}

#[test]
fn a_card_that_came_back_is_tried_once() {
    let v = verdict(VerdictId::GpuReset, Phase::Sampling, Health::Failed);
    let at = |recovered, tries| {
        let r = remedy(
            &v,
            &RemedyFacts {
                recovered,
                tries,
                ..RemedyFacts::default()
            },
        );
        (r.action, r.tier, r.auto_restart)
    };
    assert_eq!(at(Some(true), 0), (ActionId::RetrySame, 2, true));
    assert_eq!(at(Some(true), 1), (ActionId::RetrySame, 2, false));
    assert_eq!(at(Some(false), 0), (ActionId::RebootHost, 4, false));
    assert_eq!(at(None, 0), (ActionId::RebootHost, 4, false));
}

#[test]
fn what_did_not_help_is_followed_by_the_next_tier() {
    let at = |id, phase, tries| {
        let v = verdict(id, phase, Health::Hung);
        let r = remedy(
            &v,
            &RemedyFacts {
                tries,
                ..RemedyFacts::default()
            },
        );
        (r.action, r.tier)
    };
    let decode = Phase::VaeDecode;
    for (tries, want) in [
        (0, (ActionId::FastFind, 1)),
        (1, (ActionId::TiledVae, 2)),
        (2, (ActionId::VaeCpu, 3)),
        (9, (ActionId::VaeCpu, 3)),
    ] {
        assert_eq!(at(VerdictId::SilentHang, decode, tries), want);
        assert_eq!(at(VerdictId::SpinHang, decode, tries + 1), want);
    }
}

#[test]
fn a_step_that_the_program_takes_already_is_left_out() {
    let after = |in_force: &[ActionId]| {
        let v = verdict(VerdictId::GpuOom, Phase::VaeDecode, Health::Failed);
        let facts = RemedyFacts {
            in_force: in_force.to_vec(),
            ..RemedyFacts::default()
        };
        remedy(&v, &facts).action
    };
    assert_eq!(after(&[]), ActionId::TiledVae);
    assert_eq!(after(&[ActionId::TiledVae]), ActionId::VaeCpu);
    assert_eq!(after(&[ActionId::VaeCpu]), ActionId::TiledVae);
    // where nothing is left, the table stands
    let all = [ActionId::TiledVae, ActionId::VaeCpu];
    assert_eq!(after(&all), ActionId::TiledVae);
}

#[test]
fn env_and_words_follow_from_the_evidence() {
    let r = of(VerdictId::SilentHang, Phase::VaeDecode);
    assert_eq!(r.env["MIOPEN_FIND_MODE"], "FAST");
    assert_eq!(r.env["MIOPEN_FIND_ENFORCE"], "NONE");
    let r = of(VerdictId::SilentHang, Phase::Offload);
    assert_eq!(r.env["HSA_ENABLE_SDMA"], "0");
    assert!(r.why.contains("HSA_ENABLE_SDMA=0"), "{}", r.why);
    // without evidence of a copy nothing points to its engines
    for phase in [Phase::ModelLoad, Phase::TextEncode, Phase::Save] {
        let silent = verdict(VerdictId::SilentHang, phase, Health::Hung);
        let amd = RemedyFacts {
            vendor: Some(Vendor::Amd),
            ..RemedyFacts::default()
        };
        let r = remedy(&silent, &amd);
        assert_eq!((r.action, r.tier), (ActionId::RetrySame, 1), "{phase}");
        assert!(r.auto_restart && r.env.is_empty());
        let copies = RemedyFacts {
            copies: true,
            ..amd
        };
        let r = remedy(&silent, &copies);
        assert_eq!(r.action, ActionId::EnvToggle);
        assert_eq!(r.env["HSA_ENABLE_SDMA"], "0");
    }

    let facts = RemedyFacts {
        vram: Some(Bytes::mib(24560)),
        arch: Some("gfx1151".to_owned()),
        vendor: Some(Vendor::Nvidia),
        ..RemedyFacts::default()
    };
    let said = |id, phase| remedy(&verdict(id, phase, Health::Failed), &facts);
    let oom = said(VerdictId::GpuOom, Phase::Sampling);
    assert!(oom.why.contains("18 of 24 GiB"), "{}", oom.why);
    let image = said(VerdictId::NoKernelImage, Phase::Sampling);
    assert!(image.why.contains("gfx1151"));
    let hang = said(VerdictId::SilentHang, Phase::Sampling);
    assert_eq!((hang.action, hang.env.len()), (ActionId::RetrySame, 0));

    let mut v = verdict(VerdictId::MissingDependency, Phase::Startup, Health::Failed);
    let line = "ModuleNotFoundError: No module named 'sage_attention.core'; see the docs";
    v.findings = vec![Finding::of_line(
        v.id,
        "x",
        &Cite::reading(1, Mono::ZERO, line.to_owned()),
    )];
    let r = remedy(&v, &facts);
    assert!(r.why.contains("`sage_attention.core`"), "{}", r.why);
}

#[test]
fn want_of_memory_is_answered_by_what_the_program_is() {
    let said = |id, own| {
        let facts = RemedyFacts {
            own,
            ..RemedyFacts::default()
        };
        let mut v = verdict(id, Phase::VaeDecode, Health::Failed);
        v.remedy = Some(remedy(&v, &facts));
        let standing = Standing {
            plan: &Plan::default(),
            position: &Position::default(),
            budget: &BudgetState::default(),
            in_flight: &InFlight::default(),
            recovered: None,
            kept: false,
        };
        let answer = decide(&standing, &v, 1, false, Mono::ZERO);
        let why = v.remedy.unwrap().why;
        let decided = answer.decision.why;
        assert!(decided.ends_with(&why), "the decision: {decided}");
        why
    };
    for id in [VerdictId::HostOom, VerdictId::Thrash] {
        let own = said(id, Some(OwnWork::Decode));
        assert!(own.contains("vae_chunk, vae_tile"), "{own}");
        assert!(
            own.contains("goes on after the frames that are finished"),
            "{own}"
        );
        let encode = said(id, Some(OwnWork::Encode));
        assert!(encode.contains("begins anew") && !encode.contains("finished"));
        for words in [own, encode] {
            assert!(!words.contains("text encoder") && !words.contains("copies"));
        }
        let other = said(id, None);
        assert!(
            other.contains("copies") && !other.contains("vae_"),
            "{other}"
        );
    }
}

fn any_rung() -> Rung {
    Rung {
        id: RungId("whatever".to_owned()),
        action: ActionId::LowerSettings,
        tier: Tier::T2,
        answers: Answers::Any,
        phases: Vec::new(),
        env: BTreeMap::new(),
        args: Vec::new(),
        settings: BTreeMap::new(),
        cost: None,
        source: None,
        alters_result: None,
        unavailable: None,
        acts: crate::model::Acts::default(),
    }
}

/// The live policy never restarts what the table does not restart, whatever a ladder says.
#[test]
fn the_live_policy_agrees_with_the_table() {
    let plan = Plan {
        ladder: vec![any_rung()],
        ..Plan::default()
    };
    for id in VerdictId::ALL {
        for phase in Phase::ALL {
            for health in [Health::Hung, Health::Failing, Health::Failed] {
                for recovered in [None, Some(true), Some(false)] {
                    let facts = RemedyFacts {
                        recovered,
                        ..RemedyFacts::default()
                    };
                    let mut v = verdict(*id, *phase, health);
                    v.remedy = Some(remedy(&v, &facts));
                    let auto = v.remedy.as_ref().is_some_and(|r| r.auto_restart);
                    let standing = Standing {
                        plan: &plan,
                        position: &Position::default(),
                        budget: &BudgetState::default(),
                        in_flight: &InFlight::default(),
                        recovered,
                        kept: false,
                    };
                    let answer = decide(&standing, &v, 1, false, Mono::ZERO);
                    let restarts = matches!(answer.decision.choice, Choice::Restart { .. });
                    assert_eq!(restarts, auto, "{id} in {phase}, {health:?}, {recovered:?}");
                    assert_eq!(restarts, answer.rung.is_some());
                    if id.is_no_fault() {
                        assert!(!restarts);
                    }
                }
            }
        }
    }
}
