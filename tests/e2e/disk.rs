//! `decode` where the disk has no room: what is said, what stays, and that the same command goes on.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use framepack_tui::model::{Event, Phase, VerdictId};

use crate::decode::{
    LIMIT, decode, files, files_and_folders, latents, lines, many_chunks, model, refused, words,
};
use crate::harness::{Finished, Home, Start, wait_until};
use crate::video::ffmpeg;

/// A small file system of its own in the home's `out`; unmounted at the end.
struct Small(PathBuf);

impl Small {
    /// Absent, and said: this user may not mount one.
    fn mounted(home: &Home, size: &str) -> Option<Self> {
        let small = Self(home.out());
        let made = small.mount(&["-t", "tmpfs", "-o", size, "tmpfs"]);
        if !made {
            eprintln!("SKIPPED: no file system can be mounted here, so none becomes full");
        }
        made.then_some(small)
    }

    fn mount(&self, words: &[&str]) -> bool {
        let mut command = Command::new("mount");
        let said = command.args(words).arg(&self.0).output();
        said.is_ok_and(|said| said.status.success())
    }

    /// Something else takes what is free.
    fn fill(&self) {
        let mut file = File::create(self.0.join("others")).unwrap();
        for size in [1 << 16, 1 << 10, 1] {
            while file.write_all(&vec![7; size]).is_ok() {}
        }
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        // what was never mounted is no matter
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

fn assert_full(run: &Finished, phase: Phase) {
    run.assert_exit(20);
    let (_, verdict) = run.story().verdict(VerdictId::DiskFull);
    assert_eq!(verdict.phase, phase, "{}", run.digest());
}

#[test]
fn a_disk_that_becomes_full_costs_no_frame_and_what_cannot_fit_is_not_begun() {
    let home = Home::new();
    let whole = home.path("whole");
    let chunks = many_chunks(&home);
    let file = latents(&home, "l.safetensors", [16, 60, 4, 4]);
    let Some(small) = Small::mounted(&home, "size=8m") else {
        return;
    };
    let output = home.path("out/v");
    let run = Start::new(&home)
        .engine("decode", &words(&file, &model(), &output))
        .engine("decode", &chunks)
        .start();
    let kept = || {
        let folders = std::fs::read_dir(home.path("out/v.parts"));
        let mut folders = folders.into_iter().flatten().flatten();
        folders.any(|folder| {
            let path = folder.path();
            path.is_dir()
                && files_and_folders(&path)
                    .iter()
                    .any(|n| n.starts_with("state-"))
        })
    };
    assert!(wait_until(LIMIT, kept));
    small.fill();
    let run = run.finish(LIMIT);
    assert_full(&run, Phase::VaeDecode);
    let text = lines(&run);
    assert!(
        text.contains(" of 237 frames are kept in ") && text.contains("goes on after them"),
        "{text}"
    );
    assert_eq!(files_and_folders(&home.out()), ["others", "v.parts"]);

    // it is full still: nothing is begun
    let mut again = words(&file, &model(), &output);
    again.extend(chunks.clone());
    let (code, text) = refused(&home, "decode", &again, &[]);
    // a file of no bytes may not even be made
    assert!([65, 73].contains(&code), "{text}");
    std::fs::remove_file(home.path("out/others")).unwrap();
    let resumed = decode(&home, &file, &output, &chunks);
    let text = lines(&resumed);
    assert!(
        text.contains("of 237 frames are there from an earlier attempt"),
        "{text}"
    );
    decode(&home, &file, &whole, &chunks);
    assert!(files(&output) == files(&whole), "the bytes differ");
    assert_eq!(files_and_folders(&home.out()), ["v"]);

    // 1305 frames of 64 x 64 pixels: 15 MiB
    let large = latents(&home, "large.safetensors", [16, 327, 8, 8]);
    let words = words(&large, &model(), &home.path("out/large.mp4"));
    // the video is asked for before the room is counted
    let ffmpeg = ffmpeg();
    let env = [("IMAGEIO_FFMPEG_EXE", ffmpeg.as_path())];
    let (code, text) = refused(&home, "decode", &words, &env);
    assert_eq!(code, 73, "{text}");
    assert!(
        text.contains(" free, and 15.3 MiB of frames are kept there"),
        "{text}"
    );
}

/// A real ffmpeg whose output goes to a device that is always full.
fn without_room(home: &Home) -> PathBuf {
    let path = home.path("ffmpeg-without-room");
    let program = format!(
        "#!/bin/bash\nlast=\"${{@: -1}}\"\ncase \"$last\" in file:*whole) set -- \"${{@:1:$#-1}}\" file:/dev/full;; esac\nexec '{}' \"$@\"\n",
        ffmpeg().display()
    );
    std::fs::write(&path, program).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn a_real_ffmpeg_without_room_ends_the_run_and_the_frames_stay() {
    let home = Home::new();
    let file = latents(&home, "l.safetensors", [16, 3, 8, 8]);
    let output = home.path("out/v.mp4");
    let run = |ffmpeg: &Path| {
        let run = Start::new(&home).engine("decode", &words(&file, &model(), &output));
        run.env("IMAGEIO_FFMPEG_EXE", ffmpeg).start().finish(LIMIT)
    };
    let full = run(&without_room(&home));
    assert_full(&full, Phase::Save);
    let text = lines(&full);
    assert!(
        text.contains("all 9 frames are kept in ") && text.contains("without decoding again"),
        "{text}"
    );
    assert_eq!(files_and_folders(&home.out()), ["v.mp4.parts"]);
    let done = run(&ffmpeg());
    done.assert_exit(0);
    let phases = done.all(|e| match e {
        Event::Phase(p) => Some(p.phase),
        _ => None,
    });
    assert!(
        phases.contains(&Phase::Save) && !phases.contains(&Phase::VaeDecode),
        "{phases:?}"
    );
    assert_eq!(files_and_folders(&home.out()), ["v.mp4"]);
}
