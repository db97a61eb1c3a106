//! What the engine's worker, started by hand, makes of what an earlier one has left.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::decode::{LIMIT, files, latents, model, words};
use crate::harness::{BINARY, Home, wait_until};

/// A worker that decodes this to `out/NAME`.
fn worker(home: &Home, latents: &Path, name: &str) -> Command {
    let words = words(latents, &model(), &home.out().join(name));
    let mut command = Command::new(BINARY);
    home.dress(&mut command);
    command.args(["worker", "decode"]).args(words);
    command.stdin(Stdio::null());
    command
}

/// Where what is finished of `out/v` lies.
fn folder(home: &Home) -> Option<PathBuf> {
    let mut all = std::fs::read_dir(home.path("out/v.parts")).ok()?.flatten();
    all.find_map(|entry| Some(entry.path()).filter(|path| path.is_dir()))
}

/// The newest state in it.
fn state(folder: &Path) -> Option<PathBuf> {
    let all = std::fs::read_dir(folder).ok()?.flatten();
    let states = all.map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("state-")
    });
    states.max()
}

/// Decodes to `out/v` until there is something to go on from.
fn killed(home: &Home, latents: &Path) -> PathBuf {
    let mut worker = worker(home, latents, "v")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    assert!(wait_until(LIMIT, || folder(home).is_some_and(|f| state(&f).is_some())));
    worker.kill().unwrap();
    worker.wait().unwrap();
    folder(home).unwrap()
}

fn said(output: &Output) -> String {
    let all = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8(all).unwrap()
}

/// Replaces a file by one of this length that takes no room.
fn sparse(path: &Path, length: u64) {
    File::create(path).unwrap().set_len(length).unwrap();
}

/// What is told of a damage, and what makes it.
type Damage<'a> = (&'a str, &'a dyn Fn(&Path));

#[test]
fn what_is_damaged_of_an_earlier_attempt_is_told_and_the_decode_begins_anew() {
    let home = Home::new();
    let latents = latents(&home, "l.safetensors", [16, 80, 8, 8]);
    let undisturbed = worker(&home, &latents, "whole").output().unwrap();
    assert!(undisturbed.status.success(), "{}", said(&undisturbed));
    let way = |folder: &Path| folder.join("way.json");
    let damages: [Damage<'_>; 5] = [
        ("way.json: more than 4096 bytes long", &|folder| {
            sparse(&way(folder), 1 << 40);
        }),
        ("way.json: damaged: ", &|folder| {
            std::fs::write(way(folder), "{\"time\": [16").unwrap();
        }),
        // the exact mode is another model's
        (
            "way.json: says nothing of how this video can be decoded",
            &|folder| {
                std::fs::write(way(folder), "{\"exact\": 1000000}").unwrap();
            },
        ),
        ("are no state of this decode", &|folder| {
            sparse(&state(folder).unwrap(), 1 << 40);
        }),
        ("or damaged: its digest is another", &|folder| {
            let path = state(folder).unwrap();
            let mut bytes = std::fs::read(&path).unwrap();
            let last = bytes.len() - 1;
            bytes[last] ^= 1;
            std::fs::write(path, bytes).unwrap();
        }),
    ];
    for (want, damage) in damages {
        let folder = killed(&home, &latents);
        damage(&folder);
        let again = worker(&home, &latents, "v").output().unwrap();
        let text = said(&again);
        assert!(again.status.success(), "{text}");
        let told = text.lines().find(|line| line.contains(want));
        let told = told.unwrap_or_else(|| panic!("{want}: {text}"));
        assert!(told.ends_with(": the decode begins anew"), "{told}");
        assert!(!text.contains("from an earlier attempt"), "{text}");
        let output = home.path("out/v");
        assert!(files(&output) == files(&home.path("out/whole")), "{want}");
        std::fs::remove_dir_all(output).unwrap();
    }
}
