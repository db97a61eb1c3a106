//! `decode` and `encode`: the embedded engine as a program under supervision.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use framepack_tui::model::{AgentWord, Event, JobChange, Phase, Speaker};
use rustix::process::Signal;

use crate::harness::{BINARY, Finished, Home, Start, kill, root, wait_until};
use crate::terminal::Terminal;

pub(crate) const LIMIT: Duration = Duration::from_mins(3);

/// The tiny WAN 2.1 of the engine's own tests.
pub(crate) fn model() -> PathBuf {
    root().join("engine/tests/fixtures/wan21_vae_tiny")
}

/// Latents of so many frames, in a file of this name in the home.
pub(crate) fn latents(home: &Home, name: &str, [c, t, h, w]: [usize; 4]) -> PathBuf {
    let count = c * t * h * w;
    let bytes: Vec<u8> = (0..count)
        .flat_map(|i| {
            (f32::from(u16::try_from(i * 7919 % 2003).unwrap()) / 1000.0 - 1.0).to_le_bytes()
        })
        .collect();
    let header = format!(
        r#"{{"latents":{{"dtype":"F32","shape":[1,{c},{t},{h},{w}],"data_offsets":[0,{}]}}}}"#,
        bytes.len()
    );
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.extend(bytes);
    let path = home.path(name);
    std::fs::write(&path, file).unwrap();
    path
}

/// The words behind `decode`.
pub(crate) fn words(latents: &Path, model: &Path, output: &Path) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec![latents.into(), "--model".into(), model.into()];
    words.extend([
        "--output".into(),
        output.into(),
        "--device".into(),
        "cpu".into(),
    ]);
    words
}

/// A profile that decodes one latent frame at a time: many chunks.
pub(crate) fn many_chunks(home: &Home) -> [OsString; 2] {
    let profile = home.path("chunks.toml");
    std::fs::write(
        &profile,
        "schema = 1\n[profile]\nid = \"chunks\"\nversion = \"1.0.0\"\ntitle = \"t\"\n[workload.settings]\nvae_chunk = 1\n",
    )
    .unwrap();
    ["--profile".into(), profile.into()]
}

pub(crate) fn decode(home: &Home, latents: &Path, output: &Path, more: &[OsString]) -> Finished {
    let mut words = words(latents, &model(), output);
    words.extend_from_slice(more);
    let run = Start::new(home).engine("decode", &words).start();
    let run = run.finish(LIMIT);
    run.assert_exit(0);
    run
}

/// The files of a folder with their bytes, by name.
pub(crate) fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    let mut files: Vec<_> = entries
        .map(|e| {
            let name = e.file_name().to_string_lossy().into_owned();
            (name, std::fs::read(e.path()).unwrap())
        })
        .collect();
    files.sort();
    files
}

pub(crate) fn lines(run: &Finished) -> String {
    let all = run.all(|e| match e {
        Event::Line(l) => Some(l.text.clone()),
        _ => None,
    });
    all.join("\n")
}

#[test]
fn a_decode_is_a_run_whose_worker_tells_what_it_does() {
    let home = Home::new();
    let output = home.path("out/video.gif");
    let run = decode(
        &home,
        &latents(&home, "l.safetensors", [16, 3, 4, 4]),
        &output,
        &[],
    );
    let told: Vec<&Event> = run
        .events
        .iter()
        .filter(|h| h.envelope.from == Some(Speaker::Agent))
        .map(|h| &h.envelope.event)
        .collect();
    let phases: Vec<Phase> = told
        .iter()
        .filter_map(|e| match e {
            Event::Phase(p) => Some(p.phase),
            _ => None,
        })
        .collect();
    assert_eq!(
        phases,
        [Phase::ModelLoad, Phase::VaeDecode, Phase::Save],
        "{}",
        run.digest()
    );
    let whole = |e: &&&Event| matches!(e, Event::Progress(p) if p.total == Some(p.done));
    assert_eq!(told.iter().filter(whole).count(), 2, "{told:#?}");
    let jobs = told.iter().filter(|e| matches!(e, Event::Job(_)));
    let jobs: Vec<_> = jobs.collect();
    assert_eq!(
        jobs,
        [
            &&Event::Job(JobChange::Started),
            &&Event::Job(JobChange::Done)
        ]
    );
    let hello = run.all(|e| match e {
        Event::Agent(note) if matches!(note.word, AgentWord::Hello(_)) => note.words(),
        _ => None,
    });
    assert!(hello[0].contains(", framepack-engine "), "{hello:?}");
    assert!(std::fs::read(&output).unwrap().starts_with(b"GIF89a"));
    assert!(
        lines(&run).contains("9 frames of 32 x 32 pixels"),
        "{}",
        lines(&run)
    );
    assert_eq!(files(&home.out()).len(), 1, "nothing is left over");

    // it is there now
    let mut again = Command::new(BINARY);
    home.dress(&mut again);
    let again = again
        .arg("decode")
        .args(words(&home.path("l.safetensors"), &model(), &output))
        .output()
        .unwrap();
    assert_eq!(again.status.code(), Some(64));
    let text = String::from_utf8_lossy(&again.stderr);
    assert!(text.contains("is there already"), "{text}");
}

/// The worker is killed in the middle; the same command goes on, and every byte is that of an
/// undisturbed decode.
#[test]
fn a_killed_decode_goes_on_to_the_same_bytes() {
    let home = Home::new();
    let file = latents(&home, "l.safetensors", [16, 60, 4, 4]);
    let output = home.path("out/killed");
    let chunks = many_chunks(&home);
    let mut run = Start::new(&home)
        .engine("decode", &words(&file, &model(), &output))
        .engine("decode", &chunks)
        .start();
    let (pid, _) = run.spawned(1);
    let kept = || {
        let parts = home.path("out/killed.parts");
        let folders = std::fs::read_dir(parts).into_iter().flatten().flatten();
        let mut files = folders.flat_map(|d| std::fs::read_dir(d.path()).into_iter().flatten());
        files.any(|f| f.is_ok_and(|f| f.file_name().to_string_lossy().starts_with("state-")))
    };
    assert!(wait_until(LIMIT, kept));
    kill(pid, Signal::KILL).unwrap();
    let killed = run.finish(LIMIT);
    assert_eq!(killed.status.code(), Some(20), "{}", killed.digest());
    assert!(!output.exists());

    let resumed = decode(&home, &file, &output, &chunks);
    let text = lines(&resumed);
    assert!(
        text.contains("of 237 frames are there from an earlier attempt"),
        "{text}"
    );
    let whole = home.path("out/whole");
    let undisturbed = decode(&home, &file, &whole, &chunks);
    assert!(!lines(&undisturbed).contains("earlier attempt"));
    assert_eq!(files(&whole).len(), 237);
    assert!(files(&output) == files(&whole), "the bytes differ");
    assert_eq!(files_and_folders(&home.out()), ["killed", "whole"]);
}

pub(crate) fn files_and_folders(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    let mut names: Vec<_> = entries
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Exit code and complaint of a command that must not begin a run.
pub(crate) fn refused(
    home: &Home,
    verb: &str,
    words: &[OsString],
    env: &[(&str, &Path)],
) -> (i32, String) {
    let mut command = Command::new(BINARY);
    home.dress(&mut command);
    command.envs(env.iter().copied());
    let output = command
        .arg(verb)
        .args(words)
        .arg("--headless")
        .current_dir(home.dir())
        .output()
        .unwrap();
    assert!(output.stdout.is_empty(), "it has begun a run");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code().unwrap(), text)
}

#[test]
fn what_cannot_work_is_refused_before_a_run_begins() {
    let home = Home::new();
    let good = latents(&home, "good.safetensors", [16, 2, 4, 4]);
    let other = latents(&home, "other.safetensors", [48, 2, 4, 4]);
    let torn = home.path("torn.safetensors");
    let bytes = std::fs::read(&good).unwrap();
    std::fs::write(&torn, &bytes[..bytes.len() - 9]).unwrap();
    let (gif, none) = (home.path("o.gif"), home.path("none.safetensors"));
    let say = |latents: &Path, model: &Path, output: &Path| {
        refused(&home, "decode", &words(latents, model, output), &[])
    };
    for ((code, text), want_code, want) in [
        (say(&none, &model(), &gif), 66, "No such file"),
        (
            say(&torn, &model(), &gif),
            65,
            "cut short: download it again",
        ),
        (
            say(&other, &model(), &gif),
            65,
            "takes latents of 16 channels",
        ),
        (
            say(&good, home.dir(), &gif),
            65,
            "there is no config.json in it",
        ),
        (say(&good, &model(), &home.path("o.webp")), 65, ".mp4, .gif"),
        (
            say(&good, &model(), &home.path("no/o.gif")),
            65,
            "there is no folder",
        ),
    ] {
        assert_eq!(code, want_code, "{text}");
        assert!(
            text.starts_with("framepack-tui: failed to decode: "),
            "{text}"
        );
        assert!(text.contains(want), "{text}");
    }
    // without ffmpeg
    let mp4 = words(&good, &model(), &home.path("o.mp4"));
    let (code, text) = refused(&home, "decode", &mp4, &[("PATH", &home.path("tmp"))]);
    assert_eq!(code, 69, "{text}");
    assert!(
        text.contains("ffmpeg: not found in PATH: install it"),
        "{text}"
    );
    let vault = ["--from-vault".into(), "-o".into(), "o.gif".into()];
    let (code, text) = refused(&home, "decode", &vault, &[]);
    assert_eq!(code, 66, "{text}");
    assert!(text.contains("no whole latents in the vault"), "{text}");
    assert!(!home.path("state/framepack-tui/runs").exists());
}

/// The card's program, imitated: `answers` is what it does when it is asked.
fn card_program(home: &Home, answers: &str) -> PathBuf {
    let path = home.path("framepack-tui-cuda");
    let program =
        format!("#!/bin/sh\n[ \"$1\" = probe ] && {{ {answers}; }}\necho card has \"$@\"\n");
    std::fs::write(&path, program).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn the_card_is_another_program_that_is_asked_first() {
    let home = Home::new();
    let file = latents(&home, "l.safetensors", [16, 2, 4, 4]);
    let mut with = words(&file, &model(), &home.path("o.gif"));
    let last = with.len() - 1;
    with[last] = "cuda".into();
    let (code, text) = refused(&home, "decode", &with, &[]);
    assert_eq!(code, 69, "{text}");
    assert!(
        text.contains("there is no framepack-tui-cuda beside this program"),
        "{text}"
    );
    let program = card_program(&home, "echo 'the driver is too old' >&2; exit 69");
    let (code, text) = refused(&home, "decode", &with, &[("FPT_CUDA_WORKER", &program)]);
    assert_eq!(code, 69, "{text}");
    assert!(
        text.contains("cannot use the card: the driver is too old"),
        "{text}"
    );

    let program = card_program(&home, "exit 0");
    let run = Start::new(&home)
        .engine("decode", &with)
        .env("FPT_CUDA_WORKER", &program)
        .start()
        .finish(LIMIT);
    run.assert_exit(0);
    let text = lines(&run);
    assert!(text.contains("card has decode --model"), "{text}");
    assert!(text.contains("--device cuda"), "{text}");
}

/// A video goes to latents and back, and looks much the same: the models are random, so only
/// that both ways work and fit each other is shown.
#[test]
fn a_video_is_encoded_and_what_comes_out_can_be_decoded() {
    let home = Home::new();
    let pictures = home.path("out/pictures");
    decode(
        &home,
        &latents(&home, "l.safetensors", [16, 3, 4, 4]),
        &pictures,
        &[],
    );
    let output = home.path("out/again.safetensors");
    let words: [&std::ffi::OsStr; 5] = [
        pictures.as_ref(),
        "--model".as_ref(),
        Path::new("MODEL").as_ref(),
        "-o".as_ref(),
        output.as_ref(),
    ];
    let mut words = words.map(OsString::from);
    words[2] = model().into();
    let run = Start::new(&home)
        .engine("encode", &words)
        .start()
        .finish(LIMIT);
    run.assert_exit(0);
    let phases = run.all(|e| match e {
        Event::Phase(p) => Some(p.phase),
        _ => None,
    });
    assert!(phases.contains(&Phase::VaeEncode), "{phases:?}");
    let run = decode(&home, &output, &home.path("out/back.gif"), &[]);
    assert!(
        lines(&run).contains("9 frames of 32 x 32"),
        "{}",
        lines(&run)
    );
    assert!(
        !lines(&run).contains("--scaling-applied"),
        "the file says it"
    );
}

#[test]
fn a_decode_is_watched_on_a_small_screen() {
    let home = Home::new();
    let file = latents(&home, "l.safetensors", [16, 120, 4, 4]);
    let mut program: Vec<OsString> = vec![BINARY.into(), "decode".into()];
    program.extend(words(&file, &model(), &home.path("out/v")));
    program.extend(many_chunks(&home));
    let mut terminal = Terminal::open(&home, (80, 24), &program);
    terminal.wait_for("vae_decode", LIMIT);
    terminal.wait_for("FINISHED", LIMIT);
    terminal.wait_for("477 frames, ", LIMIT);
    terminal.press("q");
    terminal.assert_restored(0);
    assert_eq!(files(&home.path("out/v")).len(), 477);
}
