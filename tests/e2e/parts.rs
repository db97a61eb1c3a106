//! What the engine's worker, started by hand, makes of what an earlier one has left, and of what it cannot hold.

use std::fs::File;
use std::io::Write;
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

/// The first file of frames in it.
fn frames(folder: &Path) -> PathBuf {
    all_frames(folder).into_iter().min().unwrap()
}

/// The files of frames in it.
fn all_frames(folder: &Path) -> Vec<PathBuf> {
    let all = std::fs::read_dir(folder).unwrap().flatten();
    let frames = all.map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("frames-")
    });
    frames.collect()
}

/// Decodes to `out/v` until there is something to go on from.
fn killed(home: &Home, latents: &Path) -> PathBuf {
    killed_of(home, worker(home, latents, "v"))
}

/// The same by this worker.
fn killed_of(home: &Home, mut worker: Command) -> PathBuf {
    let mut worker = worker.stdout(Stdio::null()).spawn().unwrap();
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
fn what_is_damaged_of_an_earlier_attempt_is_told_and_only_what_is_whole_is_used() {
    let home = Home::new();
    let latents = latents(&home, "l.safetensors", [16, 80, 8, 8]);
    let undisturbed = worker(&home, &latents, "whole").output().unwrap();
    assert!(undisturbed.status.success(), "{}", said(&undisturbed));
    let way = |folder: &Path| folder.join("way.json");
    let damages: [Damage<'_>; 8] = [
        ("way.json: is missing", &|folder| {
            std::fs::remove_file(way(folder)).unwrap();
        }),
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
        (
            "damaged: its frames are not those that were written",
            &|folder| {
                let path = frames(folder);
                let mut bytes = std::fs::read(&path).unwrap();
                bytes[7] ^= 1;
                std::fs::write(path, bytes).unwrap();
            },
        ),
        (" bytes, where its frames take ", &|folder| {
            let file = File::options().write(true).open(frames(folder)).unwrap();
            file.set_len(file.metadata().unwrap().len() - 1).unwrap();
        }),
    ];
    for (want, damage) in damages {
        let folder = killed(&home, &latents);
        // what comes after a damaged file is whole, and so is the state behind it
        let is_of_frames = want.contains(" its frames ");
        let stay = if want.starts_with("way.json") {
            0
        } else {
            all_frames(&folder).len() - usize::from(is_of_frames)
        };
        damage(&folder);
        let again = worker(&home, &latents, "v").output().unwrap();
        let text = said(&again);
        assert!(again.status.success(), "{text}");
        let told = text.lines().find(|line| line.contains(want));
        let told = told.unwrap_or_else(|| panic!("{want}: {text}"));
        let part = match (stay, is_of_frames) {
            (0, _) => ": the decode begins anew",
            (_, false) => ": the decode begins anew, and ",
            (_, true) => ": what is missing is decoded again, and ",
        };
        assert!(told.contains(part), "{told}");
        let stays = told.ends_with(" frames stay") || told.ends_with("one frame stays");
        assert_eq!(stays, stay > 0, "{told}");
        assert_eq!(
            text.contains(" from an earlier attempt"),
            stay > 0,
            "{text}"
        );
        let output = home.path("out/v");
        assert!(files(&output) == files(&home.path("out/whole")), "{want}");
        std::fs::remove_dir_all(output).unwrap();
    }
}

/// What the supervisor tells an attempt of this run, whose profile may ask for few copies itself: after which fault it is.
fn told(run: &str, after: &str) -> String {
    format!(
        r#"{{"run": "{run}", "attempt": 1, "after": "{after}", "settings": {{"host_copies": "few"}}}}"#
    )
}

#[test]
fn after_one_that_memory_ended_without_a_frame_the_next_attempt_takes_a_smaller_way() {
    let home = Home::new();
    let latents = latents(&home, "l.safetensors", [16, 80, 8, 8]);
    let undisturbed = worker(&home, &latents, "whole").output().unwrap();
    assert!(undisturbed.status.success(), "{}", said(&undisturbed));
    let as_planned = said(&undisturbed);
    let as_planned = as_planned.lines().find(|l| l.starts_with("decoding on "));
    let as_planned = as_planned.unwrap();
    for (run, after, frames, smaller) in [
        ("r", "host_oom", false, true),
        // it had made some: it was not the way
        ("r", "host_oom", true, false),
        // whatever ended it, it was not the memory
        ("r", "spin_hang", false, false),
        // and of the attempts of others nothing is known
        ("other", "host_oom", false, false),
    ] {
        let mut first = worker(&home, &latents, "v");
        first.env("FPT_AGENT_CONFIG", told("r", "killed"));
        let folder = killed_of(&home, first);
        let all = std::fs::read_dir(&folder).unwrap().flatten();
        for path in all.map(|entry| entry.path()) {
            let name = path.file_name().unwrap().to_string_lossy();
            if !frames && !["way.json", "begun.json"].contains(&&*name) {
                std::fs::remove_file(path).unwrap();
            }
        }
        let mut again = worker(&home, &latents, "v");
        let again = again.env("FPT_AGENT_CONFIG", told(run, after)).output();
        let again = again.unwrap();
        let text = said(&again);
        assert!(again.status.success(), "{text}");
        let is_smaller = text.contains("ended without a frame: once more with pieces smaller");
        assert_eq!(is_smaller, smaller, "{run} {after} {frames}: {text}");
        assert_eq!(text.contains(as_planned), !smaller, "{text}");
        assert_eq!(text.contains("from an earlier attempt"), frames, "{text}");
        let output = home.path("out/v");
        assert!(files(&output) == files(&home.path("out/whole")), "{text}");
        std::fs::remove_dir_all(output).unwrap();
    }
}

/// What an earlier attempt has made is not thrown away without a word.
#[test]
fn frames_of_a_way_that_has_no_memory_any_more_are_told_before_they_are_made_anew() {
    let home = Home::new();
    let latents = latents(&home, "l.safetensors", [16, 80, 8, 8]);
    let mut first = worker(&home, &latents, "v");
    first.env("FPT_AGENT_CONFIG", told("r", "killed"));
    let folder = killed_of(&home, first);
    let frames: usize = all_frames(&folder)
        .iter()
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.split('-').nth(2).unwrap().parse::<usize>().unwrap()
        })
        .sum();
    // as if all of them had been there as it began
    let begun = format!(r#"{{"run": "r", "frames": {frames}}}"#);
    std::fs::write(folder.join("begun.json"), begun).unwrap();
    let mut again = worker(&home, &latents, "v");
    again.env("FPT_AGENT_CONFIG", told("r", "host_oom"));
    let text = said(&again.output().unwrap());
    let line = text.lines().find(|line| line.contains("are decoded anew"));
    let line = line.unwrap_or_else(|| panic!("{text}"));
    let want = format!("{frames} of 317 frames are there from an earlier attempt, ");
    assert!(line.contains(&want), "{line}");
    assert!(
        line.ends_with("for which there is not enough memory now: all are decoded anew"),
        "{line}"
    );
    assert!(text.contains("once more with pieces smaller"), "{text}");
}

/// It is not removed, and whoever reads the error knows what to do.
#[test]
fn a_folder_in_the_place_of_frames_is_told_with_its_cure() {
    let home = Home::new();
    let latents = latents(&home, "l.safetensors", [16, 80, 8, 8]);
    let folder = killed(&home, &latents);
    let path = frames(&folder);
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    let run = worker(&home, &latents, "v").output().unwrap();
    let text = said(&run);
    assert!(!run.status.success(), "{text}");
    let want = format!(
        "{}: it is a folder, where a file of finished frames",
        path.display()
    );
    assert!(
        text.contains(&want) && text.contains("remove it, and give the same command again"),
        "{text}"
    );
    std::fs::remove_dir(&path).unwrap();
    let run = worker(&home, &latents, "v").output().unwrap();
    assert!(run.status.success(), "{}", said(&run));
}

/// Latents whose numbers take 600 MiB, in a file of half of that which takes no room.
fn large(home: &Home) -> PathBuf {
    let bytes = 16 * 2400 * 64 * 64 * 2;
    let header = format!(
        r#"{{"latents":{{"dtype":"F16","shape":[1,16,2400,64,64],"data_offsets":[0,{bytes}]}}}}"#
    );
    let path = home.path("large.safetensors");
    let mut file = File::create(&path).unwrap();
    let length = header.len() as u64;
    file.write_all(&length.to_le_bytes()).unwrap();
    file.write_all(header.as_bytes()).unwrap();
    file.set_len(8 + length + bytes).unwrap();
    path
}

#[test]
fn latents_for_which_no_memory_can_be_had_are_told_by_their_file() {
    let home = Home::new();
    let latents = large(&home);
    let worker = worker(&home, &latents, "v");
    let mut limited = Command::new("sh");
    home.dress(&mut limited);
    let output = limited
        // of data alone: one that the planner does not know
        .args(["-c", "ulimit -d 600000; exec \"$0\" \"$@\""])
        .arg(worker.get_program())
        .args(worker.get_args())
        .output()
        .unwrap();
    let text = said(&output);
    assert_eq!(output.status.code(), Some(65), "{text}");
    let want = format!(
        "framepack-tui worker: failed to decode: {}: tensor latents: 600 MiB of memory for it cannot be had",
        latents.display()
    );
    assert!(text.contains(&want), "{text}");
}

#[test]
fn a_size_that_no_limit_of_addresses_allows_is_refused_before_anything_is_begun() {
    let home = Home::new();
    let latents = large(&home);
    let said_of = |limit: &str, verb: &[&str]| {
        let mut command = Command::new("sh");
        home.dress(&mut command);
        let script = format!("ulimit -v {limit}; exec \"$0\" \"$@\"");
        command.args(["-c", &script, BINARY]).args(verb);
        command.args(words(&latents, &model(), &home.out().join("v")));
        let output = command.stdin(Stdio::null()).output().unwrap();
        (output.status.code(), said(&output))
    };
    // three times the latents, of 600 MiB each, and what the tiny model takes
    let want = "MiB of memory in the smallest way, and the limit of the address space (ulimit -v) is 1171 MiB";
    for verb in [&["worker", "decode"][..], &["decode", "--headless"]] {
        let (code, text) = said_of("1200000", verb);
        assert_eq!(code, Some(65), "{text}");
        assert!(text.contains(want), "{text}");
    }
    assert_eq!(std::fs::read_dir(home.out()).unwrap().count(), 0);
}

#[test]
fn where_addresses_are_few_no_thread_takes_a_pool_of_its_own() {
    let home = Home::new();
    let pools = |limit: &str, set: Option<&str>| {
        let mut command = Command::new("sh");
        home.dress(&mut command);
        command.env_remove("MALLOC_ARENA_MAX");
        command.envs(set.map(|set| ("MALLOC_ARENA_MAX", set)));
        let script = format!("ulimit -v {limit}; exec \"$0\" \"$@\"");
        let program = "echo pools: ${MALLOC_ARENA_MAX-as usual}.";
        let words = ["run", "--plain", "--", "sh", "-c", program];
        command.args(["-c", &script, BINARY]).args(words);
        let output = command.stdin(Stdio::null()).output().unwrap();
        let text = said(&output);
        assert!(output.status.success(), "{text}");
        let line = text.lines().find_map(|line| line.split_once("| pools: "));
        line.unwrap_or_else(|| panic!("{text}")).1.to_owned()
    };
    assert_eq!(pools("600000", None), "2.");
    // as the user has set it, and where there is no want of them
    assert_eq!(pools("1200000", Some("5")), "5.");
    assert_eq!(pools("unlimited", None), "as usual.");
}

#[test]
fn a_limit_on_the_size_of_files_is_told_with_its_cure() {
    let home = Home::new();
    let latents = latents(&home, "l.safetensors", [16, 3, 8, 8]);
    let limited = |blocks: &str, name: &str| {
        let worker = worker(&home, &latents, name);
        let mut limited = Command::new("sh");
        home.dress(&mut limited);
        let output = limited
            .args(["-c", &format!("ulimit -f {blocks}; exec \"$0\" \"$@\"")])
            .arg(worker.get_program())
            .args(worker.get_args())
            .output()
            .unwrap();
        let text = said(&output);
        assert_eq!(output.status.code(), Some(1), "{text}");
        text
    };
    // a frame takes 24 blocks of 512 bytes
    let text = limited("8", "v");
    assert!(
        text.contains(
            "File too large (os error 27): no file may be as large there: raise the limit"
        ),
        "{text}"
    );
}
