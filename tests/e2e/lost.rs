//! Finished frames that are found damaged only as the video is written: what of them is decoded again, and how often.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use framepack_tui::model::{Event, Phase};

use crate::decode::{LIMIT, files_and_folders, latents, lines, many_chunks, model, words};
use crate::harness::{BINARY, Home, Start, root};
use crate::video::ffmpeg;

/// The tiny HunyuanVideo of the engine's own tests.
pub(crate) fn hunyuan() -> PathBuf {
    root().join("engine/tests/fixtures/hunyuan_vae_tiny")
}

/// A real ffmpeg; before it is given its first frame it changes a byte of the file of frames of this number that lies
/// beside `out/v.mp4`, so often.
fn damaging(home: &Home, which: usize, times: u32) -> PathBuf {
    let path = home.path("ffmpeg-that-damages");
    let program = format!(
        r#"#!/bin/bash
case "${{@: -1}}" in file:*v.mp4.parts*whole)
  echo once >> '{told}'
  if [ "$(wc -l < '{told}')" -le {times} ]; then
    file=$(ls '{out}'/v.mp4.parts/*/frames-*.rgb | sed -n {which}p)
    printf X | dd of="$file" bs=1 seek=7 conv=notrunc status=none
  fi;;
esac
exec '{ffmpeg}' "$@"
"#,
        told = home.path("damaged").display(),
        out = home.out().display(),
        ffmpeg = ffmpeg().display(),
    );
    std::fs::write(&path, program).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    // of an earlier one
    let _ = std::fs::remove_file(home.path("damaged"));
    path
}

/// A worker, started by hand, that decodes this to `out/NAME` with so many latent frames at a time.
fn worker(home: &Home, latents: &Path, model: &Path, (name, chunk): (&str, u32)) -> Command {
    let mut command = Command::new(BINARY);
    home.dress(&mut command);
    let settings = format!(r#"{{"run": "r", "settings": {{"vae_chunk": "{chunk}"}}}}"#);
    command.env("FPT_AGENT_CONFIG", settings);
    command.args(["worker", "decode"]);
    command.args(words(latents, model, &home.out().join(name)));
    command.stdin(Stdio::null());
    command
}

fn said(output: &Output) -> String {
    let all = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8(all).unwrap()
}

/// What each decode within one attempt has told of its chunks: the frames that are finished after each.
fn chunks(text: &str, total: usize) -> Vec<Vec<usize>> {
    let mut all: Vec<Vec<usize>> = Vec::new();
    for line in text.lines() {
        if line.starts_with("decoding on ") {
            all.push(Vec::new());
        }
        let done = line.strip_suffix(&format!(" of {total} frames"));
        if let (Some(done), Some(last)) = (done.and_then(|n| n.parse().ok()), all.last_mut()) {
            last.push(done);
        }
    }
    all
}

fn bytes(home: &Home, name: &str) -> Vec<u8> {
    std::fs::read(home.out().join(name)).unwrap()
}

#[test]
fn of_hunyuanvideo_one_run_of_frames_is_decoded_again_and_the_video_is_made() {
    let home = Home::new();
    let file = latents(&home, "l.safetensors", [16, 40, 4, 4]);
    let decode = |name, ffmpeg: &Path| {
        let mut worker = worker(&home, &file, &hunyuan(), (name, 4));
        let output = worker.env("IMAGEIO_FFMPEG_EXE", ffmpeg).output().unwrap();
        let text = said(&output);
        assert!(output.status.success(), "{text}");
        text
    };
    let undisturbed = chunks(&decode("whole.mp4", &ffmpeg()), 157);
    let ends: Vec<usize> = (0..13).map(|run| 13 + 12 * run).collect();
    assert_eq!(undisturbed, std::slice::from_ref(&ends));
    // in the middle, and the last; the first ones are read before they can be damaged
    let part = "what is missing is decoded again, and 14";
    for (which, want) in [
        (5, part),
        (9, part),
        (13, "the decode goes on after 145 frames"),
    ] {
        let text = decode("v.mp4", &damaging(&home, which, 1));
        assert_eq!(
            chunks(&text, 157),
            [ends.clone(), vec![ends[which - 1]]],
            "{text}"
        );
        let want = format!("damaged: its frames are not those that were written: {want}");
        assert_eq!(text.matches("damaged").count(), 1, "{text}");
        assert!(text.contains(&want), "{text}");
        assert!(!text.contains("from an earlier attempt"), "{text}");
        assert!(bytes(&home, "v.mp4") == bytes(&home, "whole.mp4"), "{text}");
        assert_eq!(files_and_folders(&home.out()), ["v.mp4", "whole.mp4"]);
        std::fs::remove_file(home.path("out/v.mp4")).unwrap();
    }
}

#[test]
fn of_wan_nothing_after_the_damage_is_decoded_again_and_it_is_one_run() {
    let home = Home::new();
    let file = latents(&home, "l.safetensors", [16, 60, 4, 4]);
    let chunks_of_one = many_chunks(&home);
    let decode = |name: &str, ffmpeg: &Path| {
        let output = home.out().join(name);
        let run = Start::new(&home).engine("decode", &words(&file, &model(), &output));
        let run = run.engine("decode", &chunks_of_one);
        let run = run.env("IMAGEIO_FFMPEG_EXE", ffmpeg).start().finish(LIMIT);
        run.assert_exit(0);
        run
    };
    decode("whole.mp4", &ffmpeg());
    let run = decode("v.mp4", &damaging(&home, 30, 1));
    let text = lines(&run);
    let [first, again] = &chunks(&text, 237)[..] else {
        panic!("{text}");
    };
    assert_eq!(first.len(), 60);
    // frames 113 to 116: all caches before them are made again, and none after them
    assert_eq!(again[..], first[..30], "{text}");
    let (decode, save) = (Phase::VaeDecode, Phase::Save);
    let mut phases = run.all(|e| match e {
        Event::Phase(p) => Some(p.phase).filter(|phase| [decode, save].contains(phase)),
        _ => None,
    });
    // the console tells of it as well
    phases.dedup();
    assert_eq!(phases, [decode, save, decode, save], "{}", run.digest());
    let attempts = run.all(|e| matches!(e, Event::Spawned { .. }).then_some(()));
    assert_eq!(attempts.len(), 1, "{}", run.digest());
    assert!(bytes(&home, "v.mp4") == bytes(&home, "whole.mp4"), "{text}");
}

#[test]
fn frames_that_are_damaged_each_time_are_given_up_and_the_same_command_goes_on() {
    let home = Home::new();
    let file = latents(&home, "l.safetensors", [16, 40, 4, 4]);
    let decode = |ffmpeg: &Path| {
        let mut worker = worker(&home, &file, &hunyuan(), ("v.mp4", 4));
        worker.env("IMAGEIO_FFMPEG_EXE", ffmpeg).output().unwrap()
    };
    let failed = decode(&damaging(&home, 5, 1000));
    let text = said(&failed);
    assert_eq!(failed.status.code(), Some(65), "{text}");
    let want = "damaged: its frames are not those that were written: no video is made of that, though what was missing was decoded again 2 times";
    assert!(
        text.contains(want) && text.contains("the same command goes on from it"),
        "{text}"
    );
    let all = chunks(&text, 157);
    assert_eq!((all.len(), &all[1..]), (3, &[vec![61], vec![61]][..]));
    assert_eq!(files_and_folders(&home.out()), ["v.mp4.parts"]);
    let again = decode(&ffmpeg());
    let text = said(&again);
    assert!(again.status.success(), "{text}");
    assert_eq!(chunks(&text, 157), [[61]], "{text}");
    let want = "what is missing is decoded again, and 145 frames stay";
    assert!(
        text.contains(want) && text.contains("145 of 157 frames are there from an earlier attempt"),
        "{text}"
    );
}
