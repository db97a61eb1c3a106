//! What the version of ROCm and MIOpen's shipped databases change in the choice of a rung, and
//! the tiers in the last words.

use std::time::Duration;

use framepack_tui::model::agent::{AgentBeat, AgentNote, AgentWord};
use framepack_tui::model::event::Decision;
use framepack_tui::model::{
    ActionId, Acts, Event, ExitStatus, JobChange, Phase, Plan, RungId, VerdictId,
};

use crate::sim::{Sim, World, plan, rung};

fn note(word: AgentWord) -> Event {
    Event::Agent(Box::new(AgentNote { pid: 101, word }))
}

fn torch(hip: &str, find_dbs: &[&str]) -> Event {
    note(AgentWord::Torch {
        version: "2.13.0".to_owned(),
        hip: Some(hip.to_owned()),
        cuda: None,
        find_dbs: Some(find_dbs.iter().map(|a| (*a).to_owned()).collect()),
    })
}

fn ladder() -> Plan {
    let hang = [VerdictId::SilentHang];
    let mut ck_off = rung("ck_off", ActionId::EnvToggle, &hang, &[]);
    ck_off.env = [(
        "MIOPEN_DEBUG_CONV_IMPLICIT_GEMM".to_owned(),
        Some("0".to_owned()),
    )]
    .into();
    ck_off.acts = Acts {
        rocm: Some([7, 11]),
        gfx: vec!["gfx1100".to_owned()],
    };
    let mut last = rung("last", ActionId::ImmediateNaive, &hang, &[]);
    last.env = [("MIOPEN_DEBUG_CONV_GEMM".to_owned(), Some("0".to_owned()))].into();
    Plan {
        ladder: vec![
            rung("fast_find", ActionId::FastFind, &hang, &[]),
            ck_off,
            last,
        ],
        ..plan()
    }
}

/// What is decided about a decode that stands still.
fn decided(plan: Plan, told: Option<Event>) -> Decision {
    let mut sim = Sim::running_in(plan, Phase::VaeDecode);
    sim.feed(Event::Job(JobChange::Started));
    sim.phase(Phase::VaeDecode);
    if let Some(told) = told {
        sim.feed(told);
    }
    sim.world = World {
        arch: Some("gfx1100"),
        ..World::silent()
    };
    sim.run_for(Duration::from_secs(200));
    let found = sim.find(|e| matches!(e, Event::Decision(_)));
    match &found.expect("a decision").event {
        Event::Decision(decision) => (**decision).clone(),
        _ => unreachable!(),
    }
}

fn skipped(decision: &Decision) -> Vec<&str> {
    decision.skipped.iter().map(|s| &*s.rung.0).collect()
}

#[test]
fn fast_find_comes_first_where_nothing_says_that_it_is_needless() {
    for told in [
        None,
        Some(torch("7.14.60850", &["gfx942"])),
        Some(torch("7.2.26015", &["gfx1100"])),
    ] {
        assert_eq!(skipped(&decided(ladder(), told)), Vec::<&str>::new());
    }
}

#[test]
fn with_a_database_and_a_short_search_ck_is_switched_off_in_its_place() {
    let decision = decided(ladder(), Some(torch("7.14.60850", &["gfx1100"])));
    assert_eq!(skipped(&decision), ["fast_find"]);
    assert!(
        decision.skipped[0]
            .why
            .contains("find database for gfx1100"),
        "{}",
        decision.skipped[0].why
    );
    assert!(decision.why.contains("ck_off"), "{}", decision.why);
}

#[test]
fn ck_is_left_alone_before_miopen_has_it_and_where_the_version_is_not_told() {
    let without_fast_find = |told: Option<Event>| {
        let rest = Plan {
            ladder: ladder().ladder.split_off(1),
            ..plan()
        };
        decided(rest, told).skipped
    };
    let old = without_fast_find(Some(torch("7.2.26015", &[])));
    assert_eq!(old[0].rung, RungId("ck_off".to_owned()));
    assert!(old[0].why.contains("runs on ROCm 7.2"), "{}", old[0].why);
    let unknown = without_fast_find(None);
    let why = &unknown[0].why;
    assert!(why.contains("torch.version.hip"), "{why}");
    assert!(without_fast_find(Some(torch("7.11.1", &[]))).is_empty());
}

#[test]
fn the_last_words_have_the_tiers_and_advice_where_the_cpu_did_much() {
    let mut sim = Sim::running_in(plan(), Phase::VaeDecode);
    let tiers = [
        ("conv3d.native.ok", 30),
        ("conv3d.split.ok", 12),
        ("conv3d.cpu.ok", 40),
    ];
    sim.feed(note(AgentWord::Beat(Box::new(AgentBeat {
        tiers: tiers.map(|(name, n)| (name.to_owned(), n)).into(),
        ..AgentBeat::default()
    }))));
    sim.exit(ExitStatus::Code(3));
    sim.run_for(Duration::from_secs(30));
    let end = sim.find(|e| matches!(e, Event::RunFinished { .. }));
    let Event::RunFinished { summary, .. } = &end.expect("an end").event else {
        unreachable!()
    };
    assert!(
        summary.contains("convolutions by lower tiers: split 12, cpu 40 of 82; 40 ran on the CPU"),
        "{summary}"
    );
}
