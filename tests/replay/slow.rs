//! Jobs that live but are slow, each with work that looks like it and is not.

use framepack_tui::model::event::Choice;
use framepack_tui::model::{ActionId, ExitStatus, Health, Phase, RuleState, VerdictId};

use crate::script::{
    Act, MI300X, RTX4090, RX6700XT, RX6800, RX7900XTX, RX9070XT, STRIX_HALO, Script,
};

/// A script whose first twelve of forty steps take four seconds each.
fn sampling(gpu: crate::script::Gpu) -> Script {
    let mut s = Script::diffusers(gpu);
    s.vram = 12_000.0;
    s.part_bar(0, 12, 40, 48, "");
    s.act(48, Act::Sample);
    s
}

#[test]
fn steps_that_take_seven_times_as_long() {
    let mut s = sampling(RTX4090);
    let onset = s.now();
    s.part_bar(12, 22, 40, 280, "");
    s.act_with(280, Act::Sample, |r| {
        r.busy = Some(70.0);
        r.power = Some(200.0);
    });
    let got = s.is_told(
        VerdictId::Crawl,
        Phase::Sampling,
        onset + 45.0,
        onset + 90.0,
    );
    let (_, v) = got.main().unwrap();
    assert_eq!(v.considered[0].verdict, VerdictId::Crawl);
    assert_eq!(v.considered[0].state, RuleState::Match);
    assert!(v.considered.len() > 12, "every rule was asked");
    assert!(v.considered.iter().all(|c| !c.why.is_empty()));
}

#[test]
fn a_crawl_that_ends_is_told_as_ended() {
    let mut s = sampling(RX6800);
    s.part_bar(12, 15, 40, 90, "");
    s.act_with(90, Act::Sample, |r| r.busy = Some(70.0));
    s.part_bar(15, 40, 40, 100, "");
    s.act(100, Act::Sample);
    let got = s.play();
    let last = got.shown().last().unwrap().1;
    assert_eq!(last.health, Health::Healthy, "{}", got.story());
    assert!(got.shown().any(|(_, v)| v.id == VerdictId::Crawl));
}

#[test]
fn a_second_section_at_a_sixth_of_the_pace() {
    let mut s = Script::framepack(RX6800);
    s.say("Loaded CLIPTextModel to cuda:0 as complete.");
    s.act(5, Act::Encode);
    for (padding, seconds) in [(9, 100), (0, 600)] {
        s.say(&format!(
            "latent_padding_size = {padding}, is_last_section = {}",
            if padding == 0 { "True" } else { "False" }
        ));
        s.say("Moving DynamicSwap_HunyuanVideoTransformer3DModelPacked to cuda:0 with preserved memory: 6 GB");
        s.act(5, Act::Load);
        s.bar(25, seconds, "");
        s.act_with(seconds, Act::Sample, |r| {
            if padding == 0 {
                r.busy = Some(60.0);
            }
        });
        s.say("Unloading DynamicSwap_HunyuanVideoTransformer3DModelPacked completely");
        s.say("Loaded AutoencoderKLHunyuanVideo to cuda:0 as complete.");
        s.act(10, Act::Vae);
        s.say("Unloaded AutoencoderKLHunyuanVideo as complete.");
        s.say("Decoded. Current latent shape torch.Size([1, 16, 9, 68, 90])");
        s.act(3, Act::CpuMany);
    }
    let onset = 40.0 + 5.0 + 5.0 + 100.0 + 13.0 + 5.0;
    s.is_told(
        VerdictId::Crawl,
        Phase::Sampling,
        onset + 45.0,
        onset + 120.0,
    );
}

#[test]
fn the_users_own_larger_job_is_no_crawl() {
    let mut s = Script::comfyui_prompt(RX7900XTX, "");
    s.bar(20, 60, "");
    s.act(60, Act::Sample);
    s.act(10, Act::Vae);
    s.say("Prompt executed in 100.00 seconds");
    s.act(10, Act::Idle);
    s.say("got prompt");
    s.bar(20, 600, "");
    s.act(600, Act::Sample);
    s.act(30, Act::Vae);
    s.say("Prompt executed in 640.00 seconds");
    s.act(10, Act::Idle);
    s.is_calm(&[], VerdictId::IdleWaiting);
}

#[test]
fn a_second_pass_at_a_higher_resolution_is_no_crawl() {
    let mut s = Script::diffusers(RX6700XT);
    s.bar(20, 40, "");
    s.act(40, Act::Sample);
    s.bar(20, 400, "");
    s.act(400, Act::Sample);
    s.exit(ExitStatus::Code(0));
    s.is_calm(&[], VerdictId::Finished);
}

#[test]
fn a_first_step_that_compiles_is_no_measure() {
    let mut s = Script::diffusers(RX9070XT);
    s.part_bar(0, 1, 30, 100, "");
    s.act(100, Act::Sample);
    s.part_bar(1, 30, 30, 120, "");
    s.act(120, Act::Sample);
    s.is_calm(&[], VerdictId::Healthy);
}

#[test]
fn a_pause_within_a_step_is_no_crawl() {
    let mut s = sampling(RX6800);
    s.happens(crate::case::Happening::Stopped);
    s.act(300, Act::Idle);
    s.happens(crate::case::Happening::Continued);
    s.part_bar(12, 40, 40, 112, "");
    s.act(112, Act::Sample);
    s.is_calm(&[], VerdictId::Healthy);
}

#[test]
fn power_that_is_held_down() {
    for (gpu, share) in [(RX6800, 0.54), (RX7900XTX, 0.53), (RTX4090, 0.4)] {
        let mut s = sampling(gpu);
        let onset = s.now();
        s.part_bar(12, 40, 40, 210, "");
        s.scale_power(share);
        s.act(210, Act::Sample);
        let got = s.is_told(
            VerdictId::Throttled,
            Phase::Sampling,
            onset + 20.0,
            onset + 70.0,
        );
        assert_eq!(got.main().unwrap().1.action, ActionId::CoolDown);
    }
}

#[test]
fn power_that_falls_after_the_pace_did_is_no_throttle() {
    let mut s = sampling(RX6800);
    s.part_bar(12, 40, 40, 170, "");
    s.act(20, Act::Sample);
    s.scale_power(0.5);
    s.act(150, Act::Sample);
    s.is_calm(&[], VerdictId::Healthy);
}

#[test]
fn another_program_on_the_card_is_no_throttle() {
    let mut s = sampling(RX7900XTX);
    s.part_bar(12, 40, 40, 224, "");
    s.act(224, Act::Sample);
    s.is_calm(&[], VerdictId::Healthy);
}

#[test]
fn memory_that_overflows() {
    for gpu in [RX9070XT, RX6800] {
        let mut s = sampling(gpu);
        let onset = s.now();
        s.vram = 16_250.0;
        s.part_bar(12, 22, 40, 200, "");
        s.act_with(200, Act::Sample, |r| {
            r.gtt_mib = Some(7000.0);
            r.power = Some(95.0);
            r.busy = Some(99.0);
        });
        let got = s.is_fault(
            VerdictId::VramSpill,
            Phase::Sampling,
            onset + 20.0,
            onset + 90.0,
        );
        let (_, v) = got.main().unwrap();
        assert_eq!(
            (v.health, v.action),
            (Health::Failing, ActionId::LowerSettings)
        );
    }
}

#[test]
fn memory_that_overflows_from_the_first_step() {
    let mut s = Script::diffusers(RX9070XT);
    let onset = s.now();
    s.vram = 16_260.0;
    s.part_bar(0, 12, 30, 360, "");
    s.act_with(360, Act::Sample, |r| {
        r.gtt_mib = Some(9000.0);
        r.power = Some(100.0);
    });
    s.is_fault(
        VerdictId::VramSpill,
        Phase::Sampling,
        onset + 20.0,
        onset + 150.0,
    );
}

#[test]
fn full_memory_and_mapped_weights_at_the_usual_pace() {
    let mut s = Script::diffusers(RX9070XT);
    s.vram = 16_250.0;
    s.always = Some(|r| r.gtt_mib = Some(11_000.0));
    s.bar(40, 160, "");
    s.act(160, Act::Sample);
    s.act(60, Act::Vae);
    s.exit(ExitStatus::Code(0));
    s.is_calm(&[], VerdictId::Finished);
}

#[test]
fn a_machine_that_swaps() {
    let mut s = Script::comfyui_prompt(RTX4090, "");
    s.part_bar(0, 3, 20, 30, "");
    s.act(30, Act::Sample);
    let onset = s.now();
    s.act(600, Act::Thrash);
    s.part_bar(4, 20, 20, 60, "");
    s.act(60, Act::Sample);
    let got = s.is_told(
        VerdictId::Thrash,
        Phase::Sampling,
        onset + 28.0,
        onset + 60.0,
    );
    assert_eq!(got.shown().last().unwrap().1.id, VerdictId::Healthy);
}

#[test]
fn a_machine_that_swaps_while_a_model_is_loaded() {
    let mut s = Script::comfyui_prompt(RX6800, "");
    let onset = s.now();
    s.act(200, Act::Thrash);
    s.is_told(
        VerdictId::Thrash,
        Phase::ModelLoad,
        onset + 28.0,
        onset + 60.0,
    );
}

#[test]
fn a_torch_without_a_card() {
    for (gpu, said) in [
        (RX9070XT, "Device: cpu"),
        (RTX4090, "pytorch version: 2.6.0+cpu"),
        (STRIX_HALO, "Set vram state to: DISABLED"),
    ] {
        let mut s = Script::new(gpu, "comfyui", "python3 main.py");
        s.act(6, Act::Startup);
        s.say(said);
        s.act(6, Act::Startup);
        s.say("To see the GUI go to: http://127.0.0.1:8188");
        s.act(8, Act::Idle);
        s.say("got prompt");
        s.act(20, Act::Load);
        let onset = s.now();
        s.part_bar(0, 3, 20, 240, "");
        s.act(240, Act::CpuMany);
        let got = s.is_told(VerdictId::CpuFallback, Phase::Sampling, onset, onset + 40.0);
        let (_, main) = got.main().unwrap();
        let mut cites = main.findings.iter().flat_map(|f| &f.cites);
        assert!(cites.any(|c| c.text.contains(said)), "{said}");
    }
}

#[test]
fn steps_on_the_cpu_beside_a_card_that_never_moved() {
    let mut s = Script::new(RX7900XTX, "diffusers", "python3 generate.py");
    s.act(30, Act::Startup);
    s.bar(7, 25, "Loading pipeline components...:");
    s.act(30, Act::Load);
    let onset = s.now();
    s.part_bar(0, 3, 30, 240, "");
    s.act(240, Act::CpuMany);
    s.is_told(
        VerdictId::CpuFallback,
        Phase::Sampling,
        onset + 40.0,
        onset + 90.0,
    );
}

#[test]
fn a_user_who_asked_for_the_cpu() {
    let mut s = Script::new(RX7900XTX, "comfyui", "python3 main.py --cpu");
    s.act(6, Act::Startup);
    s.say("Device: cpu");
    s.say("To see the GUI go to: http://127.0.0.1:8188");
    s.act(8, Act::Idle);
    s.say("got prompt");
    s.act(20, Act::Load);
    s.part_bar(0, 3, 20, 240, "");
    s.act(240, Act::CpuMany);
    s.is_calm(&[], VerdictId::CpuPhase);
}

/// Steps of twenty seconds at full busy and a fifth of the power.
fn waits_for_copies(s: &mut Script) {
    s.part_bar(0, 12, 50, 240, "");
    s.act_with(240, Act::Sample, |r| {
        r.busy = Some(100.0);
        r.power = Some(62.0);
    });
}

#[test]
fn a_pipeline_and_its_inputs_on_two_devices() {
    for words in [
        "[INFO] Pipeline device: cpu\nlatents are on cuda:0",
        "pipe._execution_device = cuda:0\n[debug] generator device: cpu",
    ] {
        let mut s = Script::diffusers(RX9070XT);
        s.say(words);
        let onset = s.now();
        waits_for_copies(&mut s);
        let got = s.is_fault(
            VerdictId::DeviceMismatch,
            Phase::Sampling,
            onset + 16.0,
            onset + 120.0,
        );
        let (_, v) = got.main().unwrap();
        assert_eq!(v.health, Health::Failing);
        assert_eq!(v.findings[0].cites.len(), 2, "both lines are cited");
        // no rung of this ladder moves inputs, and a job that lives is not ended for that
        assert!(!matches!(got.decisions[0].1.choice, Choice::GiveUp));
    }
}

#[test]
fn the_same_without_words_is_told_and_not_answered() {
    let mut s = Script::diffusers(RX7900XTX);
    let onset = s.now();
    waits_for_copies(&mut s);
    s.is_told(
        VerdictId::DeviceMismatch,
        Phase::Sampling,
        onset + 60.0,
        onset + 170.0,
    );
}

#[test]
fn two_devices_and_an_honest_pace() {
    let mut s = Script::diffusers(RX7900XTX);
    s.say("pipeline device: cuda:0\ngenerator device: cpu");
    s.bar(30, 300, "");
    s.act(300, Act::Sample);
    s.is_calm(&[], VerdictId::Healthy);
}

/// A decode behind a transformer that was moved off in these words.
fn decode_after(gpu: crate::script::Gpu, words: &str, vram: f64) -> Script {
    let mut s = Script::framepack(gpu);
    s.say("Loaded CLIPTextModel to cuda:0 as complete.");
    s.act(10, Act::Encode);
    s.say("latent_padding_size = 0, is_last_section = True");
    s.say("Moving DynamicSwap_HunyuanVideoTransformer3DModelPacked to cuda:0 with preserved memory: 6 GB");
    s.vram = vram;
    s.act(5, Act::Load);
    s.bar(25, 100, "");
    s.act(100, Act::Sample);
    s.say(words);
    s.say("Loaded AutoencoderKLHunyuanVideo to cuda:0 as complete.");
    s
}

const OFFLOADED: &str = "Offloading DynamicSwap_HunyuanVideoTransformer3DModelPacked from cuda:0 to preserve memory: 8 GB";
const UNLOADED: &str = "Unloading DynamicSwap_HunyuanVideoTransformer3DModelPacked completely";

#[test]
fn a_transformer_that_stays_on_a_small_card() {
    for (gpu, vram) in [
        (RX6800, 15_000.0),
        // half of it is free, and that is too little
        (RX6800, 8_200.0),
        (RX7900XTX, 22_000.0),
    ] {
        let mut s = decode_after(gpu, OFFLOADED, vram);
        let onset = s.now();
        s.act(30, Act::Vae);
        let got = s.is_told(VerdictId::OffloadRisk, Phase::VaeDecode, onset, onset + 5.0);
        assert_eq!(got.main().unwrap().1.action, ActionId::FullUnload);
    }
    for (gpu, words, vram) in [
        (RX7900XTX, UNLOADED, 22_000.0),
        (RX7900XTX, OFFLOADED, 12_000.0),
        (MI300X, OFFLOADED, 22_000.0),
        (RTX4090, OFFLOADED, 22_000.0),
    ] {
        let mut s = decode_after(gpu, words, vram);
        s.act(30, Act::Vae);
        s.is_calm(&[], VerdictId::Healthy);
    }
}

#[test]
fn a_warning_hides_no_hang() {
    let mut s = decode_after(RX7900XTX, OFFLOADED, 22_000.0);
    s.act(10, Act::Vae);
    let onset = s.now();
    s.act(120, Act::Idle);
    let got = s.play();
    let hung = got.shown().find(|(_, v)| v.health == Health::Hung);
    let (t, v) = hung.expect("a hang");
    assert_eq!(v.id, VerdictId::SilentHang);
    assert!(t >= onset + 45.0 && t <= onset + 90.0, "{}", got.story());
    assert!(matches!(got.decisions[0].1.choice, Choice::Restart { .. }));
}

#[test]
fn a_hang_after_a_crawl() {
    let mut s = sampling(RX6800);
    s.part_bar(12, 16, 40, 120, "");
    s.act_with(120, Act::Sample, |r| r.busy = Some(60.0));
    let onset = s.now();
    s.act(150, Act::Idle);
    let got = s.play();
    let (t, v) = got
        .shown()
        .find(|(_, v)| v.health == Health::Hung)
        .expect("a hang");
    assert_eq!(v.id, VerdictId::SilentHang, "{}", got.story());
    assert!(t <= onset + 90.0, "{}", got.story());
}

/// Those that notice when a number of the rules changes, for [`crate::mutation`].
pub(crate) const ALL: &[(&str, fn())] = &[
    (
        "slow::power_that_falls_after_the_pace_did_is_no_throttle",
        power_that_falls_after_the_pace_did_is_no_throttle,
    ),
    (
        "slow::steps_that_take_seven_times_as_long",
        steps_that_take_seven_times_as_long,
    ),
    (
        "slow::a_crawl_that_ends_is_told_as_ended",
        a_crawl_that_ends_is_told_as_ended,
    ),
    (
        "slow::the_users_own_larger_job_is_no_crawl",
        the_users_own_larger_job_is_no_crawl,
    ),
    (
        "slow::a_second_pass_at_a_higher_resolution_is_no_crawl",
        a_second_pass_at_a_higher_resolution_is_no_crawl,
    ),
    (
        "slow::a_first_step_that_compiles_is_no_measure",
        a_first_step_that_compiles_is_no_measure,
    ),
    (
        "slow::a_pause_within_a_step_is_no_crawl",
        a_pause_within_a_step_is_no_crawl,
    ),
    ("slow::power_that_is_held_down", power_that_is_held_down),
    (
        "slow::another_program_on_the_card_is_no_throttle",
        another_program_on_the_card_is_no_throttle,
    ),
    ("slow::memory_that_overflows", memory_that_overflows),
    (
        "slow::memory_that_overflows_from_the_first_step",
        memory_that_overflows_from_the_first_step,
    ),
    (
        "slow::full_memory_and_mapped_weights_at_the_usual_pace",
        full_memory_and_mapped_weights_at_the_usual_pace,
    ),
    ("slow::a_machine_that_swaps", a_machine_that_swaps),
    (
        "slow::a_machine_that_swaps_while_a_model_is_loaded",
        a_machine_that_swaps_while_a_model_is_loaded,
    ),
    ("slow::a_torch_without_a_card", a_torch_without_a_card),
    (
        "slow::steps_on_the_cpu_beside_a_card_that_never_moved",
        steps_on_the_cpu_beside_a_card_that_never_moved,
    ),
    (
        "slow::a_user_who_asked_for_the_cpu",
        a_user_who_asked_for_the_cpu,
    ),
    (
        "slow::a_pipeline_and_its_inputs_on_two_devices",
        a_pipeline_and_its_inputs_on_two_devices,
    ),
    (
        "slow::the_same_without_words_is_told_and_not_answered",
        the_same_without_words_is_told_and_not_answered,
    ),
    (
        "slow::two_devices_and_an_honest_pace",
        two_devices_and_an_honest_pace,
    ),
    (
        "slow::a_transformer_that_stays_on_a_small_card",
        a_transformer_that_stays_on_a_small_card,
    ),
    ("slow::a_warning_hides_no_hang", a_warning_hides_no_hang),
    ("slow::a_hang_after_a_crawl", a_hang_after_a_crawl),
];
