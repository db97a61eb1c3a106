//! What is told of a run of our own worker beyond that of any other program: what counts as its result, what helps it,
//! what it leaves to go on from, and who is at its output already.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use framepack_tui::model::{Bytes, Event, VerdictId};
use rustix::process::Signal;

use crate::decode::{LIMIT, decode, latents, lines, many_chunks, model, refused, words};
use crate::harness::{
    BINARY, Finished, Home, Running, Start, kill, python, recorded_text, wait_until,
};
use crate::terminal::Terminal;

/// A decode on a card whose program is this script; `$OUT` is the output.
fn imitated(home: &Home, output: &Path, script: &str) -> Finished {
    let program = home.path("framepack-tui-cuda");
    let out = output.display();
    let script = format!("#!/bin/sh\n[ \"$1\" = probe ] && exit 0\nOUT={out}\n{script}\n");
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let file = latents(home, "l.safetensors", [16, 2, 4, 4]);
    let mut words = words(&file, &model(), output);
    *words.last_mut().unwrap() = "cuda".into();
    Start::new(home)
        .engine("decode", &words)
        .env("FPT_CUDA_WORKER", &program)
        .start()
        .finish(LIMIT)
}

fn results(run: &Finished) -> Vec<(String, Bytes)> {
    run.all(|e| match e {
        Event::Artefact(a) => Some((a.path.clone(), a.size)),
        _ => None,
    })
}

#[test]
fn what_others_write_beside_the_output_is_no_result() {
    let home = Home::new();
    let output = home.path("out/o.gif");
    let others = "echo other > ${OUT%/*}/other.mp4; echo Saved to ${OUT%/*}/other.mp4";
    let run = imitated(&home, &output, &format!("{others}\nexit 1"));
    run.assert_exit(20);
    assert_eq!(results(&run), []);

    let late = "sleep 1; echo later > ${OUT%/*}/later.mp4";
    let script = format!("{others}\necho done > $OUT; echo Wrote $OUT\n{late}");
    let run = imitated(&home, &output, &script);
    run.assert_exit(0);
    let own = (output.display().to_string(), Bytes(5));
    assert_eq!(results(&run), [own], "{}", run.digest());
}

#[test]
fn want_of_memory_is_answered_for_a_decode() {
    let home = Home::new();
    let script = "echo 'memory allocation of 3317760 bytes failed' >&2; kill -ABRT $$";
    let run = imitated(&home, &home.path("o.gif"), script);
    run.assert_exit(20);
    let advice = run.all(|e| match e {
        Event::Verdict(v) if v.id == VerdictId::HostOom => Some(v.remedy.clone()?.why),
        Event::RunFinished { summary, .. } => Some(summary.clone()),
        _ => None,
    });
    assert!(advice.len() >= 2, "{}", run.digest());
    for text in advice {
        assert!(
            text.contains("the same command, which goes on after the frames that are finished"),
            "{text}"
        );
        assert!(text.contains("(vae_chunk, vae_tile)"), "{text}");
        assert!(!text.contains("text encoder"), "{text}");
    }
}

/// Stops the worker once it has kept several frames, and something to go on from: a decode of
/// seconds would end by itself on a machine that has no time for its test. Whatever ends the run
/// lets it go on first.
fn stop_worker(home: &Home) {
    let runs = home.path("state/framepack-tui/runs");
    let spawned = || {
        let text = runs.exists().then(|| recorded_text(&home.record()))?;
        text.lines().find_map(|line| {
            let event: serde_json::Value = serde_json::from_str(line).ok()?;
            let spawned = event.pointer("/event/kind")? == "spawned";
            spawned.then(|| event.pointer("/event/pid")?.as_u64())?
        })
    };
    assert!(
        wait_until(LIMIT, || spawned().is_some()),
        "nothing was started"
    );
    let pid = spawned().unwrap().try_into().unwrap();
    assert!(wait_until(LIMIT, || has_state(home)), "nothing was kept");
    kill(pid, Signal::STOP).expect("the decode goes on");
}

/// A long decode under way.
fn under_way<'a>(home: &'a Home, words: &[OsString]) -> Running<'a> {
    let run = Start::new(home).engine("decode", words).start();
    stop_worker(home);
    run
}

fn has_state(home: &Home) -> bool {
    let folders = std::fs::read_dir(home.path("out/v.parts"));
    let folders = folders.into_iter().flatten().flatten();
    let mut files = folders.flat_map(|d| std::fs::read_dir(d.path()).into_iter().flatten());
    files.any(|f| {
        let name = f.map(|f| f.file_name().to_string_lossy().into_owned());
        name.is_ok_and(|name| name.starts_with("state-") && name != "state-000001.bin")
    })
}

fn long(home: &Home) -> Vec<OsString> {
    let file = latents(home, "l.safetensors", [16, 240, 4, 4]);
    let mut words = words(&file, &model(), &home.path("out/v"));
    words.extend(many_chunks(home));
    words
}

#[test]
fn a_decode_that_was_ended_says_what_is_kept_and_how_it_goes_on() {
    let home = Home::new();
    let run = under_way(&home, &long(&home));
    run.signal(Signal::TERM);
    let run = run.finish(LIMIT);
    run.assert_exit(143);
    let parts = home.path("out/v.parts");
    let want = format!(
        " finished frames are kept in {}: the same command ",
        parts.display()
    );
    let line = run.stderr.lines().find(|line| line.contains(&want));
    let line = line.unwrap_or_else(|| panic!("{}", run.stderr));
    let frames = line.strip_prefix("framepack-tui: ").unwrap();
    let (frames, how) = frames.split_once(&want).unwrap();
    // the newest ones may have come after the state that the next decode begins from
    assert!(
        ["goes on after them", "makes what is missing"].contains(&how),
        "{line}"
    );

    let file = home.path("l.safetensors");
    let resumed = decode(&home, &file, &home.path("out/v"), &many_chunks(&home));
    let text = lines(&resumed);
    let from = format!("{frames} of 957 frames are there from an earlier attempt");
    assert!(text.contains(&from), "{from}: {text}");
    assert!(!resumed.stderr.contains("kept"), "{}", resumed.stderr);
}

#[test]
fn a_decode_that_is_stopped_on_the_screen_says_it_too() {
    let home = Home::new();
    let mut program: Vec<OsString> = vec![BINARY.into(), "decode".into()];
    program.extend(long(&home));
    let mut terminal = Terminal::open(&home, (80, 24), &program);
    stop_worker(&home);
    terminal.wait_for("vae_decode", LIMIT);
    terminal.press("s");
    terminal.wait_for("Stop the run?", LIMIT);
    terminal.press("y");
    // the last screen stays until it is left
    terminal.wait_for("ENDED 130", LIMIT);
    terminal.press("q");
    terminal.wait_for("finished frames are kept in", LIMIT);
    terminal.assert_restored(130);
}

#[test]
fn a_second_decode_to_an_output_is_refused_before_it_is_a_run() {
    let home = Home::new();
    let words = long(&home);
    let first = under_way(&home, &words);
    let (code, text) = refused(&home, "decode", &words, &[]);
    assert_eq!(code, 64, "{text}");
    let want = format!(
        "framepack-tui: failed to decode: {}: another process is decoding to this output: wait for it, or name another\n",
        home.path("out/v.parts").display()
    );
    assert_eq!(text, want);
    // the record is that of the first alone, which it does not disturb
    let _record = home.record();
    first.signal(Signal::TERM);
    first.finish(LIMIT).assert_exit(143);
    // it is free again
    let file = home.path("l.safetensors");
    decode(&home, &file, &home.path("out/v"), &many_chunks(&home));
    // and taken by the video
    let (code, text) = refused(&home, "decode", &words, &[]);
    assert_eq!(code, 64, "{text}");
    assert!(text.contains("is there already"), "{text}");
}

#[test]
fn only_a_script_that_uses_diffusers_is_said_to() {
    let home = Home::new();
    let adapter = |text: &str| {
        let script = home.path("generate.py");
        std::fs::write(&script, text).unwrap();
        let run = Start::new(&home)
            .command(&[python().as_os_str(), script.as_os_str()])
            .start()
            .finish(LIMIT);
        run.assert_exit(0);
        let told = run.all(|e| match e {
            Event::RunStarted(r) => Some(r.adapter.clone()),
            _ => None,
        });
        told.concat()
    };
    assert_eq!(adapter("print('a plain script')\n"), "generic");
    let uses = "if False:\n    from diffusers import WanPipeline\n";
    assert_eq!(adapter(uses), "diffusers");
}
