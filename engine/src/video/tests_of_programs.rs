//! Programs that hang, complain or are old; files that are cut short; places that are a model's.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::tests::{script, written};
use super::*;

/// Gives one picture of one pixel, after `text`.
fn gives(text: &str) -> String {
    format!("case \"$*\" in *ppm*) {text}\nprintf 'P6\\n1 1\\n255\\nrgb';; *) exit 1;; esac")
}

fn video(folder: &Path) -> PathBuf {
    let video = folder.join("v.mkv");
    fs::write(&video, "video").unwrap();
    video
}

fn took(program: &Path, video: &Path) -> Result<Frames> {
    program::with(program, || read(video, Limits::NONE, &mut || Ok(())))
}

#[test]
fn what_a_reading_program_complains_of_is_told_and_what_is_cut_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let video = video(folder.path());
    for cut in [
        "stream 0, offset 0xc59: partial file",
        "File ended prematurely",
        "Invalid NAL unit size (797 > 748).",
    ] {
        let path = script(folder.path(), &gives(&format!("echo '{cut}' >&2")));
        let e = took(&path, &video).unwrap_err();
        assert!(matches!(e, Error::File { .. }), "{e}");
        let e = e.to_string();
        assert!(e.contains("its end is missing") && e.contains(cut), "{e}");
    }
    let path = script(folder.path(), &gives("echo 'ac-tex damaged at 3 3' >&2"));
    let frames = took(&path, &video).unwrap();
    assert_eq!(frames.count(), 1);
    let [problem] = &frames.problems[..] else {
        panic!("{:?}", frames.problems);
    };
    assert!(
        problem.contains("complains: ac-tex damaged at 3 3"),
        "{problem}"
    );
    let path = script(folder.path(), &gives(""));
    assert!(took(&path, &video).unwrap().problems.is_empty());
}

#[test]
fn every_frame_is_asked_for_once_in_the_words_of_the_version() {
    let folder = tempfile::tempdir().unwrap();
    let video = video(folder.path());
    for (version, want) in [
        ("58. 76.100 / 58. 76.100", "-vsync passthrough"),
        ("59. 16.100 / 59. 16.100", "-vsync passthrough"),
        ("59. 27.100 / 59. 27.100", "-fps_mode passthrough"),
        ("63.  1.102 / 63.  1.102", "-fps_mode passthrough"),
    ] {
        let text = format!(
            "case \"$*\" in *-version*) echo 'libavformat    {version}';; *'{want}'*ppm*) printf 'P6\\n1 1\\n255\\nrgb';; *) exit 1;; esac"
        );
        let path = script(folder.path(), &text);
        assert_eq!(took(&path, &video).unwrap().count(), 1, "{version}");
    }
}

#[test]
fn frames_at_changing_intervals_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let video = video(folder.path());
    for (fps, ticks, told) in [
        ("4.24", "24", true),
        ("29.97", "30", false),
        ("25", "50", false),
    ] {
        let line =
            format!("  Stream #0:0: Video: h264, yuv420p, 64x64, {fps} fps, {ticks} tbr, 12k tbn");
        let text = format!(
            "case \"$*\" in *ppm*) printf 'P6\\n1 1\\n255\\nrgb';; *) echo '{line}' >&2; exit 1;; esac"
        );
        let path = script(folder.path(), &text);
        let frames = took(&path, &video).unwrap();
        assert_eq!(frames.fps, fps.parse().ok());
        let problems = frames.problems.join("; ");
        assert_eq!(problems.contains("changing intervals"), told, "{problems}");
    }
}

#[test]
fn a_program_that_hangs_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let video = video(folder.path());
    // its child keeps the pipe
    let path = script(folder.path(), "sleep 60");
    let began = Instant::now();
    for e in [
        program::with(&path, || writable(Kind::Mp4, super::tests::SIZE, 24.0)).unwrap_err(),
        program::with(&path, || look(&video)).unwrap_err(),
    ] {
        assert!(matches!(e, Error::Program { .. }), "{e}");
        assert!(e.to_string().contains("gave no answer within"), "{e}");
    }
    assert!(began.elapsed() < Duration::from_secs(40));
}

#[test]
fn reading_ends_when_the_user_has_had_enough() {
    let folder = tempfile::tempdir().unwrap();
    let video = video(folder.path());
    let path = script(
        folder.path(),
        "case \"$*\" in *ppm*) printf 'P6\\n1 1\\n255\\nrgb'; exec sleep 60;; esac",
    );
    let began = Instant::now();
    let mut asked = 0;
    let mut check_cancelled = || {
        asked += 1;
        if asked > 3 {
            Err(Error::Stopped)
        } else {
            Ok(())
        }
    };
    let end = program::with(&path, || read(&video, Limits::NONE, &mut check_cancelled));
    assert!(matches!(end, Err(Error::Stopped)), "{end:?}");
    assert!(began.elapsed() < Duration::from_secs(40));
}

#[test]
fn a_file_that_is_shorter_than_it_says_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let boxed = |kind: &[u8; 4], length: usize| {
        let size = u32::try_from(length + 8).unwrap().to_be_bytes();
        [&size[..], kind, &vec![0; length]].concat()
    };
    let long = [
        &1_u32.to_be_bytes()[..],
        b"mdat",
        &36_u64.to_be_bytes(),
        &[0; 20],
    ]
    .concat();
    let start = [boxed(b"ftyp", 16), boxed(b"moov", 40)].concat();
    let short = [start.clone(), boxed(b"mdat", 20)].concat();
    let avi = [b"RIFF", &60_u32.to_le_bytes()[..], b"AVI ", &[0; 56]].concat();
    let path = folder.path().join("v.mp4");
    let program = script(folder.path(), &gives(""));
    for whole in [&short, &[start, long].concat(), &avi] {
        fs::write(&path, whole).unwrap();
        assert_eq!(took(&program, &path).unwrap().count(), 1);
        for left in [whole.len() - 1, whole.len() - 10, 50] {
            fs::write(&path, &whole[..left]).unwrap();
            for e in [
                took(&program, &path).unwrap_err(),
                program::with(&program, || look(&path)).unwrap_err(),
            ] {
                assert!(matches!(e, Error::File { .. }), "{e}");
                let want = format!("cut short: it has {left} bytes of ");
                assert!(e.to_string().contains(&want), "{e}");
            }
        }
        // what another program has put behind it is no matter
        fs::write(&path, [&whole[..], b"\xff\xff\xff\xffTAG+rest"].concat()).unwrap();
        assert_eq!(took(&program, &path).unwrap().count(), 1);
    }
}

#[test]
fn a_models_files_are_no_place_for_an_output() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir_all(at("whole/vae")).unwrap();
    fs::create_dir(at("blobs")).unwrap();
    for name in ["whole/vae/config.json", "blobs/weights", "one.safetensors"] {
        fs::write(at(name), "weights").unwrap();
    }
    let weights = "whole/vae/diffusion_pytorch_model.safetensors";
    symlink(at("blobs/weights"), at(weights)).unwrap();
    symlink(at("whole/vae"), at("link")).unwrap();
    symlink(at(weights), at("to-weights.safetensors")).unwrap();
    symlink(at("one.safetensors"), at("to-one.safetensors")).unwrap();
    let says = |output: &str, model: &str| is_not_of(&at(output), &at(model));
    for model in ["whole/vae", "whole", "link"] {
        for output in [
            weights,
            "whole/vae/config.json",
            "whole/vae/new.safetensors",
            "link/new.safetensors",
            "to-weights.safetensors",
            "blobs/weights",
        ] {
            let e = says(output, model).unwrap_err();
            assert!(matches!(e, Error::InTheWay { .. }), "{e}");
            assert!(e.to_string().contains("name another place"), "{e}");
        }
        assert!(says("new.safetensors", model).is_ok());
        assert!(says("whole/new.mp4", model).is_ok());
    }
    for output in ["one.safetensors", "to-one.safetensors"] {
        assert!(says(output, "one.safetensors").is_err(), "{output}");
        assert!(says(output, "to-one.safetensors").is_err(), "{output}");
    }
    assert!(says("config.json", "one.safetensors").is_ok());
    assert!(says("two.safetensors", "one.safetensors").is_ok());
}

/// What ffmpeg says of a limit on the size of files, and how the system ends it there.
#[test]
fn a_video_that_is_larger_than_a_file_may_be_is_no_failure_of_ffmpeg() {
    let folder = tempfile::tempdir().unwrap();
    let list = "case \"$*\" in *-encoders*|*/dev/zero*) echo ' V....D mpeg4 MPEG-4'; exit;; esac";
    for end in [
        "echo 'trailer: File too large' >&2",
        "echo 'size= 1kB' >&2; kill -XFSZ $$",
    ] {
        let path = script(
            folder.path(),
            &format!("{list}\nulimit -c 0\ncat >/dev/null; {end}"),
        );
        let e = program::with(&path, || written(&folder.path().join("o.mp4"), false)).unwrap_err();
        assert!(e.is_full() && e.is_beyond_limit(), "{e}");
        assert!(
            e.to_string().ends_with("File too large (os error 27)"),
            "{e}"
        );
    }
}
