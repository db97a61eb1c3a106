//! A decode for which the host's memory was not enough, under supervision.

use framepack_tui::model::{ActionId, Event, Phase, VerdictId};
use rustix::process::Signal;

use crate::decode::{LIMIT, latents, lines, words};
use crate::failures::out_of_memory;
use crate::harness::{Home, Start, kill};
use crate::lost::hunyuan;

/// A profile that asks for few copies from the first attempt on, with the rung that answers a want of memory.
const FEW: &str = r#"schema = 1
[profile]
id = "few"
version = "1.0.0"
title = "t"
[workload.settings]
host_copies = "few"
[[ladder]]
id = "free_memory"
answers = ["host_oom"]
settings = { host_copies = "few" }
cost = "none"
source = "guess"
"#;

#[test]
fn what_the_kernel_ended_for_want_of_memory_is_decoded_in_a_smaller_way() {
    let home = Home::new();
    let (profile, log) = (home.path("few.toml"), home.path("kmsg"));
    std::fs::write(&profile, FEW).unwrap();
    std::fs::write(&log, "").unwrap();
    let file = latents(&home, "l.safetensors", [16, 5, 32, 32]);
    let mut run = Start::new(&home)
        .engine("decode", &words(&file, &hunyuan(), &home.path("out/v")))
        .engine("decode", &["--profile".as_ref(), profile.as_os_str()])
        .env("FPT_KERNEL_LOG", &log)
        .start();
    let (pid, _) = run.spawned(1);
    run.wait_for(
        "the decode",
        LIMIT,
        |e| matches!(e, Event::Phase(p) if p.phase == Phase::VaeDecode),
    );
    std::fs::write(&log, out_of_memory(pid)).unwrap();
    kill(pid, Signal::KILL).unwrap();
    let run = run.finish(LIMIT);
    // finished, and not at the first attempt
    run.assert_exit(10);
    run.story().verdict(VerdictId::HostOom);
    let attempts = run.all(|e| match e {
        Event::AttemptStarted(spec) => Some(spec.action),
        _ => None,
    });
    assert_eq!(attempts, [ActionId::None, ActionId::FreeMemory]);
    let text = lines(&run);
    // from the first attempt nothing of it was asked for, whatever the profile says
    let smaller = "ended without a frame: once more with pieces smaller";
    assert_eq!(text.matches(smaller).count(), 1, "{text}");
    let ways: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("decoding on the processor, "))
        .collect();
    assert!(
        matches!(ways[..], ["in one piece", way] if way.starts_with("whole, in ")),
        "{ways:?}"
    );
}
