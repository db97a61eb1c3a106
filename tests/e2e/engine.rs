//! `decode` and `encode` at their edges: what is told of the result, what a failure leaves, what is refused.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use framepack_tui::model::{Event, JobChange, Phase};
use rustix::process::Signal;

use crate::decode::{
    LIMIT, decode, files_and_folders, latents, lines, many_chunks, model, refused, words,
};
use crate::harness::{BINARY, Finished, Home, Start, assert_none_left, kill, wait_until};

/// The words behind `encode`.
fn to_latents(video: &Path, output: &str) -> Vec<OsString> {
    let words: [&std::ffi::OsStr; 7] = [
        video.as_ref(),
        "--model".as_ref(),
        "MODEL".as_ref(),
        "-o".as_ref(),
        output.as_ref(),
        "--device".as_ref(),
        "cpu".as_ref(),
    ];
    let mut words = words.map(OsString::from);
    words[2] = model().into();
    words.into()
}

fn notices(run: &Finished) -> Vec<String> {
    run.all(|e| match e {
        Event::Notice { text, .. } => Some(text.clone()),
        _ => None,
    })
}

#[test]
fn a_folder_of_pictures_is_told_as_so_many_frames() {
    let home = Home::new();
    let file = latents(&home, "l.safetensors", [16, 3, 4, 4]);
    let output = home.path("out/v");
    let run = decode(&home, &file, &output, &[]);
    let told = run.all(|e| match e {
        Event::Artefact(a)
        | Event::RunFinished {
            result: Some(a), ..
        } => Some(a.clone()),
        _ => None,
    });
    assert_eq!(told.len(), 2, "told once, and at the end{}", run.digest());
    for result in told {
        assert_eq!(result.path, output.display().to_string());
        assert_eq!(result.frames, Some(9));
        assert!(result.size.0 > 9 * 100, "{}", result.size);
    }

    let again = home.path("out/again");
    let mut plain = Command::new(BINARY);
    home.dress(&mut plain);
    let plain = plain
        .arg("decode")
        .args(words(&file, &model(), &again))
        .arg("--plain")
        .output()
        .unwrap();
    let text = String::from_utf8(plain.stdout).unwrap();
    let path = again.display().to_string();
    assert!(text.contains(&format!("{path} (9 frames, ")), "{text}");
    assert_eq!(text.lines().last(), Some(path.as_str()), "{text}");
}

/// The worker is killed before its first frame: what it has begun is of no use to anybody.
#[test]
fn a_decode_that_is_killed_before_its_first_frame_leaves_nothing() {
    let home = Home::new();
    let file = latents(&home, "l.safetensors", [16, 9, 48, 48]);
    let output = home.path("out/v.gif");
    let mut run = Start::new(&home)
        .engine("decode", &words(&file, &model(), &output))
        .start();
    let (pid, _) = run.spawned(1);
    let begun = || {
        let folders = std::fs::read_dir(home.path("out/v.gif.parts"));
        let mut folders = folders.into_iter().flatten().flatten();
        folders.any(|folder| folder.path().join("way.json").is_file())
    };
    assert!(wait_until(LIMIT, begun));
    kill(pid, Signal::KILL).unwrap();
    let killed = run.finish(LIMIT);
    assert_eq!(killed.status.code(), Some(20), "{}", killed.digest());
    assert!(!lines(&killed).contains(" frames\n"), "{}", lines(&killed));
    assert_eq!(files_and_folders(&home.out()), Vec::<String>::new());
}

/// The process that has started this one.
fn parent(pid: u32) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields = stat.rsplit_once(')').unwrap().1;
    fields.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Frames in the files that a decode to `out/v` has finished.
fn frames_kept(home: &Home) -> usize {
    let folders = std::fs::read_dir(home.path("out/v.parts"));
    let folders = folders.into_iter().flatten().flatten();
    let files = folders.flat_map(|folder| std::fs::read_dir(folder.path()).into_iter().flatten());
    let names = files.flatten().map(|file| file.file_name());
    let counts = names.filter_map(|name| {
        let numbers = name.to_str()?.strip_prefix("frames-")?;
        let count = numbers.strip_suffix(".rgb")?.split('-').nth(1)?;
        count.parse::<usize>().ok()
    });
    counts.sum()
}

/// Supervisor and guardian are killed at once, so that nobody is left who ends the worker: it ends by itself, long before
/// its work would be done, and what it has finished is gone on from.
#[test]
fn a_worker_that_nobody_is_left_for_ends_by_itself() {
    let home = Home::new();
    let file = latents(&home, "l.safetensors", [16, 1500, 16, 16]);
    let output = home.path("out/v");
    let begin = || {
        Start::new(&home)
            .engine("decode", &words(&file, &model(), &output))
            .engine("decode", &many_chunks(&home))
            .start()
    };
    // whoever has lost its parent becomes a child of this process, which then sees how it ends
    let me = rustix::process::getpid();
    rustix::process::set_child_subreaper(Some(me)).unwrap();
    let mut run = begin();
    let (worker, _) = run.spawned(1);
    assert!(wait_until(LIMIT, || frames_kept(&home) > 0));
    let guardian = parent(worker);
    assert_eq!(parent(guardian), run.pid());
    // neither sees the other's end
    for pid in [guardian, run.pid()] {
        kill(pid, Signal::STOP).unwrap();
    }
    kill(guardian, Signal::KILL).unwrap();
    run.murder();
    let worker = rustix::process::Pid::from_raw(worker.try_into().unwrap());
    let mut ended = None;
    let is_over = || {
        let no_wait = rustix::process::WaitOptions::NOHANG;
        // it is no child of this process before its guardian is gone
        ended = rustix::process::waitpid(worker, no_wait).ok().flatten();
        ended.is_some()
    };
    assert!(wait_until(Duration::from_secs(30), is_over), "it goes on");
    rustix::process::set_child_subreaper(None).unwrap();
    let (_, status) = ended.unwrap();
    assert_eq!(status.exit_status(), Some(130));
    assert_none_left(&home);
    assert!(!output.exists());

    let kept = frames_kept(&home);
    assert!(kept > 0);
    let mut again = begin();
    again.wait_for_line(
        &format!("{kept} of 5997 frames are there from an earlier attempt"),
        LIMIT,
    );
    again.signal(Signal::INT);
    again.finish(LIMIT).assert_exit(130);
}

#[test]
fn why_a_decode_failed_is_told_once() {
    let home = Home::new();
    let file = latents(&home, "l.safetensors", [16, 2, 4, 4]);
    let mut bytes = std::fs::read(&file).unwrap();
    let end = bytes.len();
    bytes[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    std::fs::write(&file, bytes).unwrap();
    let run = Start::new(&home)
        .engine("decode", &words(&file, &model(), &home.path("out/v")))
        .start()
        .finish(LIMIT);
    let attempts = run.all(|e| matches!(e, Event::Exited(_)).then_some(()));
    let told = run.all(|e| match e {
        Event::Job(JobChange::Failed { why }) => why.clone(),
        _ => None,
    });
    assert_eq!(told.len(), attempts.len(), "{told:?}{}", run.digest());
    assert!(
        told[0].contains("NaN stands at number 511 of tensor latents"),
        "{told:?}"
    );
    assert_eq!(files_and_folders(&home.out()), Vec::<String>::new());

    let done = decode(
        &home,
        &latents(&home, "good.safetensors", [16, 2, 4, 4]),
        &home.path("out/v"),
        &[],
    );
    let ends = done.all(|e| matches!(e, Event::Job(JobChange::Done)).then_some(()));
    assert_eq!(ends.len(), 1, "{}", done.digest());
}

#[test]
fn standard_output_is_no_place_for_a_video_and_a_gif_has_its_limits() {
    let home = Home::new();
    let file = latents(&home, "l.safetensors", [16, 2, 4, 4]);
    let decode = |output: &str, more: &[&str]| {
        let mut words = words(&file, &model(), Path::new(output));
        words.extend(more.iter().map(OsString::from));
        refused(&home, "decode", &words, &[])
    };
    let encode = |output: &str| refused(&home, "encode", &to_latents(&home.out(), output), &[]);
    for ((code, text), want_code, want) in [
        (
            decode("-", &[]),
            64,
            "nothing is written to standard output",
        ),
        (encode("-"), 64, "nothing is written to standard output"),
        (
            decode("o.gif", &["--fps", "200"]),
            64,
            "--fps 200: a gif shows at most 50 frames a second",
        ),
        (
            decode("/proc/o.gif", &[]),
            65,
            "nothing can be written in the folder /proc",
        ),
        (
            encode("/proc/o.safetensors"),
            65,
            "nothing can be written in the folder /proc",
        ),
    ] {
        assert_eq!(code, want_code, "{text}");
        assert!(text.contains(want), "{text}");
    }
    assert!(!home.path("-").exists());
    assert!(!home.path("state/framepack-tui/runs").exists());
    // a name of this form can be meant all the same
    let mut words = words(&file, &model(), Path::new("./-"));
    words.extend(["--fps".into(), "30".into()]);
    let run = Start::new(&home).engine("decode", &words).start();
    let run = run.finish(LIMIT);
    run.assert_exit(0);
    assert_eq!(files_and_folders(&home.path("-")).len(), 5);
    let text = lines(&run);
    assert!(text.contains("--fps changes nothing here"), "{text}");
}

#[test]
fn what_concerns_the_card_is_said_to_change_nothing_on_the_processor() {
    let home = Home::new();
    let file = latents(&home, "l.safetensors", [16, 2, 4, 4]);
    let more = ["--cap", "1GiB", "--gpu", "3"].map(OsString::from);
    let run = decode(&home, &file, &home.path("out/v"), &more);
    let said = notices(&run);
    for option in ["--cap 1", "--gpu 3"] {
        let is_it = |text: &&String| text.starts_with(option) && text.contains("changes nothing");
        assert_eq!(said.iter().filter(is_it).count(), 1, "{said:?}");
    }
    let run = decode(&home, &file, &home.path("out/w"), &many_chunks(&home));
    let said = notices(&run);
    assert!(!said.iter().any(|text| text.contains("changes nothing")));
}

/// A gif of one pixel whose header claims another size.
fn gif(home: &Home, [width, height]: [u16; 2]) -> PathBuf {
    let mut bytes = b"GIF89a".to_vec();
    bytes.extend(width.to_le_bytes());
    bytes.extend(height.to_le_bytes());
    bytes.extend([0x80, 0, 0, 0, 0, 0, 255, 255, 255]);
    bytes.extend([0x2c, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 2, 0x44, 1, 0, 0x3b]);
    let path = home.path("claims.gif");
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn what_cannot_be_encoded_is_refused_before_a_run_begins() {
    let home = Home::new();
    let video = home.path("v.mkv");
    std::fs::write(&video, "video").unwrap();
    let none = home.path("no-ffmpeg");
    let say = |video: &Path, env: &[(&str, &Path)]| {
        refused(&home, "encode", &to_latents(video, "z.safetensors"), env)
    };
    for ((code, text), want_code, want) in [
        (
            say(&video, &[("IMAGEIO_FFMPEG_EXE", &none)]),
            69,
            "no-ffmpeg cannot be started (No such file",
        ),
        (
            say(&video, &[("IMAGEIO_FFMPEG_EXE", Path::new("/bin/false"))]),
            69,
            "/bin/false does not work",
        ),
        (
            say(&gif(&home, [65535, 65535]), &[]),
            65,
            "65535 x 65535 pixels, and at most 16384 x 16384 are read",
        ),
        (
            say(&gif(&home, [33, 32]), &[]),
            65,
            "takes sides that are multiples of 8; scale or crop it to 32 x 32",
        ),
        (say(&home.out(), &[]), 65, "there is no png picture in it"),
    ] {
        assert_eq!(code, want_code, "{text}");
        assert!(text.contains(want), "{text}");
    }
    assert!(!home.path("state/framepack-tui/runs").exists());
}

/// Killed after its output was put in its place and before it could say so: the next one says it, and does not take
/// anything else for it.
#[test]
fn an_output_that_a_killed_decode_has_put_there_is_told_by_the_next() {
    use std::os::unix::fs::MetadataExt;
    let home = Home::new();
    let file = latents(&home, "l.safetensors", [16, 60, 4, 4]);
    let output = home.path("out/v.gif");
    let chunks = many_chunks(&home);
    let mut run = Start::new(&home)
        .engine("decode", &words(&file, &model(), &output))
        .engine("decode", &chunks)
        .start();
    let (pid, _) = run.spawned(1);
    let folder = || {
        let folders = std::fs::read_dir(home.path("out/v.gif.parts")).into_iter();
        let mut folders = folders.flatten().flatten().map(|folder| folder.path());
        folders.find(|path| {
            path.is_dir()
                && files_and_folders(path)
                    .iter()
                    .any(|n| n.starts_with("state-"))
        })
    };
    assert!(wait_until(LIMIT, || folder().is_some()));
    kill(pid, Signal::KILL).unwrap();
    run.finish(LIMIT).assert_exit(20);
    // what it would have done in its last moment
    decode(&home, &file, &home.path("out/w.gif"), &chunks);
    std::fs::rename(home.path("out/w.gif"), &output).unwrap();
    let about = output.metadata().unwrap();
    let marks = format!(
        "{} {} {}.{:09}",
        about.ino(),
        about.len(),
        about.mtime(),
        about.mtime_nsec()
    );
    let record = folder().unwrap().join("finishing");
    let told = serde_json::json!({ "fps": 16.0, "marks": marks });
    std::fs::write(&record, told.to_string()).unwrap();
    let video = std::fs::read(&output).unwrap();

    // another file in its place is the user's
    let mut other = words(&file, &model(), &output);
    other.extend(chunks.clone());
    std::fs::rename(&output, home.path("out/kept.gif")).unwrap();
    std::fs::write(&output, "mine").unwrap();
    let (code, text) = refused(&home, "decode", &other, &[]);
    assert_eq!(code, 64, "{text}");
    std::fs::rename(home.path("out/kept.gif"), &output).unwrap();

    let run = decode(&home, &file, &output, &chunks);
    let told = run.all(|e| match e {
        Event::Artefact(a)
        | Event::RunFinished {
            result: Some(a), ..
        } => Some(a.path.clone()),
        _ => None,
    });
    assert_eq!(
        told,
        vec![output.display().to_string(); 2],
        "{}",
        run.digest()
    );
    let phases = run.all(|e| match e {
        Event::Phase(p) => Some(p.phase),
        _ => None,
    });
    assert!(!phases.contains(&Phase::VaeDecode), "{phases:?}");
    assert_eq!(std::fs::read(&output).unwrap(), video);
    assert_eq!(files_and_folders(&home.out()), ["v.gif"]);
}

#[test]
fn latents_that_an_earlier_attempt_of_the_same_run_has_written_are_told() {
    let home = Home::new();
    let pictures = home.path("out/p");
    decode(
        &home,
        &latents(&home, "l.safetensors", [16, 2, 4, 4]),
        &pictures,
        &[],
    );
    let output = home.path("out/z.safetensors");
    let worker = |run: &str, attempt: u32| {
        let mut command = Command::new(BINARY);
        home.dress(&mut command);
        let config = format!(r#"{{"run":"{run}","attempt":{attempt},"settings":{{}}}}"#);
        command.args(["worker", "encode"]);
        command.arg(&pictures).arg("--model").arg(model());
        command.arg("--output").arg(&output);
        let said = command.env("FPT_AGENT_CONFIG", config).output().unwrap();
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        (said.status.code().unwrap(), text)
    };
    let (code, text) = worker("20260101-0000-aaaa", 1);
    assert_eq!(code, 0, "{text}");
    let written = std::fs::read(&output).unwrap();
    let (code, text) = worker("20260101-0000-aaaa", 2);
    assert_eq!(code, 0, "{text}");
    assert_eq!(text, format!("Wrote {}\n", output.display()));
    assert_eq!(worker("20260101-0000-bbbb", 1).0, 64);
    assert_eq!(std::fs::read(&output).unwrap(), written);
}
