use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use super::*;

pub(super) const SIZE: Size = Size {
    width: 8,
    height: 4,
};

/// Three frames of one colour each.
fn colours() -> Vec<u8> {
    let frame = |rgb: [u8; 3]| rgb.repeat(SIZE.frame() / 3);
    [[200, 10, 30], [0, 255, 0], [7, 8, 90]].map(frame).concat()
}

pub(super) fn written(output: &Path, force: bool) -> Result<usize> {
    let mut seen = 0;
    let all = colours();
    // two frames at once, then one
    let (two, one) = all.split_at(2 * SIZE.frame());
    let frames = [two.to_vec(), one.to_vec()].into_iter().map(Ok);
    write(
        (output, &part(output)),
        (SIZE, 24.0),
        force,
        frames,
        |done| {
            seen = done;
            Ok(())
        },
        |_| Ok(()),
    )?;
    Ok(seen)
}

fn part(output: &Path) -> PathBuf {
    output.with_file_name("of-ours")
}

/// Reads it, and nobody wants it to stop.
fn took(input: &Path, limits: Limits) -> Result<Frames> {
    read(input, limits, &mut || Ok(()))
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().flatten();
    let mut names: Vec<String> = entries
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn pictures_come_back_to_the_byte() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out");
    assert_eq!(written(&output, false).unwrap(), 3);
    assert_eq!(
        names(&output),
        ["frame_00001.png", "frame_00002.png", "frame_00003.png"]
    );
    let frames = took(&output, Limits::NONE).unwrap();
    assert_eq!((frames.size, frames.count()), (SIZE, 3));
    assert_eq!(frames.bytes, colours());
    assert_eq!(names(folder.path()), ["out"], "nothing is left over");
}

#[test]
fn pictures_whose_names_begin_with_a_dot_are_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("v");
    let before = written(&output, false).unwrap();
    std::fs::write(output.join("._frame_00001.png"), "of another system").unwrap();
    let frames = read(&output, Limits::NONE, &mut || Ok(())).unwrap();
    assert_eq!(frames.count(), before);
}

#[test]
fn a_gif_comes_back_nearly() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.gif");
    written(&output, false).unwrap();
    let frames = took(&output, Limits::NONE).unwrap();
    assert_eq!((frames.size, frames.count()), (SIZE, 3));
    let off = |(a, b): (&u8, &u8)| a.abs_diff(*b);
    assert!(frames.bytes.iter().zip(&colours()).map(off).max() <= Some(2));
    // 4, 8, 13 hundredths
    assert!((frames.fps.unwrap() - 300.0 / 13.0).abs() < 1e-6);
}

#[test]
fn nothing_that_is_there_is_replaced_unless_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["out.gif", "out"] {
        let output = folder.path().join(name);
        written(&output, false).unwrap();
        let e = written(&output, false).unwrap_err().to_string();
        assert!(e.contains("is there already"), "{e}");
        written(&output, true).unwrap();
    }
}

#[test]
fn nothing_but_our_pictures_is_removed_even_if_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("docs");
    written(&output, false).unwrap();
    for foreign in ["notes.txt", "frame_1.png", "frame_00009.png.txt"] {
        let path = output.join(foreign);
        fs::write(&path, "mine").unwrap();
        for e in [
            replaceable(&output, true).unwrap_err(),
            written(&output, true).unwrap_err(),
        ] {
            assert!(matches!(e, Error::InTheWay { .. }), "{e}");
            assert!(e.to_string().contains(&format!("holds {foreign}")), "{e}");
        }
        assert_eq!(names(&output).len(), 4, "nothing is gone");
        fs::remove_file(path).unwrap();
    }
    fs::create_dir(output.join("frame_00009.png")).unwrap();
    assert!(written(&output, true).is_err());
    // a folder where a file is to be written, and the other way round
    let gif = folder.path().join("d.gif");
    fs::create_dir(&gif).unwrap();
    assert!(replaceable(&gif, false).is_err());
    assert!(gif.is_dir());
    let file = folder.path().join("README");
    fs::write(&file, "mine").unwrap();
    assert!(replaceable(&file, true).is_err());
    assert!(replaceable(&file, false).is_ok());
}

#[test]
fn the_current_folder_and_what_is_needed_are_no_place_for_an_output() {
    let folder = tempfile::tempdir().unwrap();
    let lat = folder.path().join("lat");
    let input = lat.join("z.safetensors");
    fs::create_dir(&lat).unwrap();
    fs::write(&input, "latents").unwrap();
    for place in [".", "..", "/", "a/.."] {
        assert!(is_free_of(Path::new(place), &[]).is_err(), "{place}");
    }
    let here = std::env::current_dir().unwrap();
    assert!(is_free_of(&here, &[]).is_err());
    assert!(is_free_of(here.parent().unwrap(), &[]).is_err());
    for place in [folder.path(), &lat, &input] {
        let e = is_free_of(place, &[&input]).unwrap_err().to_string();
        assert!(e.contains("z.safetensors is needed"), "{e}");
    }
    assert!(is_free_of(&lat.join("new"), &[&input]).is_ok());
}

#[test]
fn an_error_on_the_way_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.gif");
    let frames = [Ok(colours()), Err(Error::Stopped)].into_iter();
    let end = write(
        (&output, &part(&output)),
        (SIZE, 24.0),
        false,
        frames,
        |_| Ok(()),
        |_| Ok(()),
    );
    assert!(matches!(end, Err(Error::Stopped)));
    assert_eq!(names(folder.path()), Vec::<String>::new());
}

#[test]
fn forms_are_told_by_the_name() {
    let of = |name: &str| Kind::of(Path::new(name));
    assert_eq!(of("a.MP4").unwrap(), Kind::Mp4);
    assert_eq!(of("a.gif").unwrap(), Kind::Gif);
    assert_eq!(of("a/b").unwrap(), Kind::Pictures);
    let e = of("a.webp").unwrap_err().to_string();
    assert!(e.contains(".mp4, .gif"), "{e}");
}

#[test]
fn pictures_of_two_sizes_and_folders_without_any_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let say = || took(folder.path(), Limits::NONE).unwrap_err().to_string();
    assert!(
        say().ends_with("there is no png picture in it"),
        "{}",
        say()
    );
    for (name, width) in [("a2.png", 2), ("a10.png", 3)] {
        let size = Size { width, height: 1 };
        let one = folder.path().join("one");
        let frames = [Ok(vec![9; size.frame()])].into_iter();
        write(
            (&one, &part(&one)),
            (size, 1.0),
            true,
            frames,
            |_| Ok(()),
            |_| Ok(()),
        )
        .unwrap();
        fs::rename(one.join("frame_00001.png"), folder.path().join(name)).unwrap();
        fs::remove_dir(one).unwrap();
    }
    let text = say();
    // a10 comes after a2
    assert!(
        text.contains("a10.png: 3 x 1 pixels, where the frames before have 2 x 1"),
        "{text}"
    );
}

/// A program in the place of ffmpeg.
pub(super) fn script(folder: &Path, text: &str) -> PathBuf {
    let path = folder.join("ffmpeg");
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn what_a_writing_program_complains_of_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let list = "case \"$*\" in *-encoders*|*/dev/zero*) echo ' V....D mpeg4 MPEG-4'; exit;; esac";
    let path = script(
        folder.path(),
        &format!("{list}\necho 'no room' >&2\nexit 1"),
    );
    let e = program::with(&path, || written(&folder.path().join("o.mp4"), false)).unwrap_err();
    assert!(e.to_string().ends_with("of-ours: ffmpeg: no room"), "{e}");
    // it was there and has begun: no program is missing
    assert!(matches!(e, Error::Io { .. }), "{e}");
    let path = script(
        folder.path(),
        &format!("{list}\ncat >/dev/null; echo 'trailer: No space left on device' >&2"),
    );
    let e = program::with(&path, || written(&folder.path().join("o.mp4"), false)).unwrap_err();
    assert!(e.to_string().ends_with("No space left on device"), "{e}");
    let path = script(folder.path(), "exit 0");
    let e = program::with(&path, || written(&folder.path().join("o.mp4"), false)).unwrap_err();
    assert!(e.to_string().contains("without an encoder for mp4"), "{e}");
    let path = script(
        folder.path(),
        &format!("{list}\nfor last; do :; done\ncat > \"${{last#file:}}\""),
    );
    let output = folder.path().join("o.mp4");
    program::with(&path, || written(&output, false)).unwrap();
    assert_eq!(fs::read(&output).unwrap(), colours());
}

/// A device that is always full: each writer says so, for small files as well, whose bytes wait in a buffer to the end.
#[test]
fn a_full_disk_is_an_error_of_every_writer() {
    let folder = tempfile::tempdir().unwrap();
    let full = Path::new("/dev/full");
    let gif = || {
        let mut writer = Box::new(gif::Gif::new(full, SIZE, 24.0)?);
        writer.frame(&colours()[..SIZE.frame()])?;
        writer.end()
    };
    let pictures = || {
        let into = folder.path().join("p");
        let mut writer = Box::new(png::Pictures::new(&into, SIZE)?);
        std::os::unix::fs::symlink(full, into.join("frame_00001.png")).unwrap();
        writer.frame(&colours()[..SIZE.frame()])?;
        writer.end()
    };
    let list = "case \"$*\" in *-encoders*|*/dev/zero*) echo ' V....D mpeg4 MPEG-4'; exit;; esac";
    let path = script(
        folder.path(),
        &format!("{list}\ncat >/dev/null; echo 'trailer: No space left on device' >&2"),
    );
    let mp4 = || {
        let mut writer = Box::new(ffmpeg::Mp4::new(full, SIZE, 24.0)?);
        writer.frame(&colours()[..SIZE.frame()])?;
        writer.end()
    };
    for e in [gif(), pictures(), program::with(&path, mp4)] {
        let e = e.unwrap_err();
        assert!(e.is_full(), "{e}");
        assert!(e.to_string().contains("No space left on device"), "{e}");
    }
}

#[test]
fn a_program_that_cannot_write_is_known_before_anything_is_computed() {
    let folder = tempfile::tempdir().unwrap();
    let says = |path: &Path| {
        program::with(path, || writable(Kind::Mp4, SIZE, 24.0)).map_err(|e| e.to_string())
    };
    let e = says(&folder.path().join("none")).unwrap_err();
    assert!(e.contains("none cannot be started (No such file"), "{e}");
    let e = says(&script(folder.path(), "exit 0")).unwrap_err();
    assert!(e.contains("without an encoder for mp4"), "{e}");
    let able = script(folder.path(), "echo ' V....D mpeg4 MPEG-4'");
    assert_eq!(says(&able), Ok(()));
}

#[test]
fn an_encoder_that_does_not_take_the_size_is_passed_over_and_without_another_it_is_told_before() {
    let folder = tempfile::tempdir().unwrap();
    let has = |list: &str| {
        let text = format!(
            "case \"$*\" in *-encoders*) printf '{list}';; *'-s 8x4 '*/dev/zero*libopenh264*) echo 'less than 16!' >&2; exit 1;; esac; echo \"$*\" >> '{}'",
            folder.path().join("asked").display()
        );
        script(folder.path(), &text)
    };
    let path = has(" V. libopenh264 H\\n");
    let e = program::with(&path, || writable(Kind::Mp4, SIZE, 24.0)).unwrap_err();
    assert!(matches!(e, Error::Argument(_)), "{e}");
    let e = e.to_string();
    assert!(
        e.contains("an mp4 of 8 x 4 pixels") && e.contains("libopenh264 says: less than 16!"),
        "{e}"
    );
    let large = Size {
        width: 16,
        height: 16,
    };
    program::with(&path, || writable(Kind::Mp4, large, 24.0)).unwrap();
    let path = has(" V. libopenh264 H\\n V. mpeg4 M\\n");
    program::with(&path, || writable(Kind::Mp4, SIZE, 24.0)).unwrap();
    // the one that takes it writes the video
    let _no_video = program::with(&path, || written(&folder.path().join("o.mp4"), false));
    let asked = fs::read_to_string(folder.path().join("asked")).unwrap();
    assert!(asked.lines().last().unwrap().contains("-i - "), "{asked}");
    assert!(
        asked.lines().last().unwrap().contains("-c:v mpeg4"),
        "{asked}"
    );
}

#[test]
fn a_gif_is_never_faster_than_viewers_take_it_and_its_sum_is_right() {
    let folder = tempfile::tempdir().unwrap();
    for (fps, delays) in [
        (MOST_GIF_FPS, [2; 6]),
        (49.0, [2, 2, 2, 2, 2, 2]),
        (30.0, [3, 4, 3, 3, 4, 3]),
        (0.5, [200; 6]),
    ] {
        let output = folder.path().join(format!("{fps}.gif"));
        let frames = std::iter::repeat_with(|| Ok(vec![7; SIZE.frame()])).take(6);
        write(
            (&output, &part(&output)),
            (SIZE, fps),
            false,
            frames,
            |_| Ok(()),
            |_| Ok(()),
        )
        .unwrap();
        let file = fs::File::open(&output).unwrap();
        let mut decoder = ::gif::DecodeOptions::new().read_info(file).unwrap();
        let mut found = Vec::new();
        while let Some(frame) = decoder.read_next_frame().unwrap() {
            found.push(frame.delay);
        }
        assert_eq!(found, delays, "{fps}");
    }
}

#[test]
fn more_than_the_limits_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let (pictures, gif) = (folder.path().join("pictures"), folder.path().join("v.gif"));
    written(&pictures, false).unwrap();
    written(&gif, false).unwrap();
    // three frames of 8 x 4 pixels, and then for ever
    let path = script(
        folder.path(),
        "case \"$*\" in *ppm*) while printf 'P6\\n8 4\\n255\\n'; do head -c 96 /dev/zero; done; esac",
    );
    let video = folder.path().join("v.mkv");
    fs::write(&video, "video").unwrap();
    let three = Limits {
        frames: 3,
        side: 8,
        bytes: 3 * 96,
    };
    for (limits, want) in [
        (Limits { frames: 2, ..three }, "more than 2 frames"),
        (Limits { side: 7, ..three }, "at most 7 x 7 are read"),
        (
            Limits {
                bytes: 287,
                ..three
            },
            "3 frames of 8 x 4 pixels or more",
        ),
    ] {
        for input in [&pictures, &gif, &video] {
            let e = program::with(&path, || took(input, limits)).unwrap_err();
            assert!(matches!(e, Error::File { .. }), "{e}");
            assert!(e.to_string().contains(want), "{e}");
        }
    }
    for input in [&pictures, &gif] {
        assert_eq!(took(input, three).unwrap().count(), 3);
    }
}

#[test]
fn sizes_are_known_before_anything_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let (pictures, gif) = (folder.path().join("pictures"), folder.path().join("v.gif"));
    written(&pictures, false).unwrap();
    written(&gif, false).unwrap();
    let about = |frames| Some(About { size: SIZE, frames });
    assert_eq!(look(&pictures).unwrap(), about(Some(3)));
    assert_eq!(look(&gif).unwrap(), about(None));
    // the size of a gif is in its header: 65,535 x 65,535 pixels, of which nothing is there
    let mut bytes = fs::read(&gif).unwrap();
    bytes[6..10].fill(0xff);
    fs::write(&gif, &bytes).unwrap();
    let size = look(&gif).unwrap().unwrap().size;
    assert_eq!((size.width, size.height), (65535, 65535));
    let limits = Limits {
        side: 16384,
        ..Limits::NONE
    };
    let e = took(&gif, limits).unwrap_err().to_string();
    assert!(e.contains("65535 x 65535 pixels"), "{e}");
}

#[test]
fn a_program_that_cannot_read_is_known_before_it_is_needed() {
    let folder = tempfile::tempdir().unwrap();
    let video = folder.path().join("v.mkv");
    fs::write(&video, "video").unwrap();
    let says = |path: &Path| program::with(path, || look(&video));
    let none = folder.path().join("none");
    for (path, want) in [
        (none, "cannot be started (No such file"),
        (
            script(folder.path(), "echo 'no such library' >&2; exit 127"),
            "no such library): install ffmpeg",
        ),
    ] {
        let e = says(&path).unwrap_err();
        assert!(matches!(e, Error::Program { .. }), "{e}");
        assert!(e.to_string().contains(want), "{e}");
    }
    let able = script(folder.path(), "exit 0");
    assert_eq!(says(&able).unwrap(), None);
}

#[test]
fn a_video_that_ffmpeg_cannot_read_is_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let video = folder.path().join("v.mkv");
    fs::write(&video, "video").unwrap();
    for (text, want) in [
        ("echo 'Invalid data' >&2; exit 1", "Invalid data"),
        ("printf 'P6\\n8 4\\n255\\nx'", "a frame is cut short"),
        ("kill -9 $$", "signal: 9"),
    ] {
        let path = script(folder.path(), text);
        let e = program::with(&path, || took(&video, Limits::NONE)).unwrap_err();
        assert!(
            matches!(&e, Error::File { path, .. } if *path == video),
            "{e}"
        );
        let e = e.to_string();
        assert!(
            e.contains("ffmpeg cannot read it: ") && e.contains(want),
            "{e}"
        );
    }
}

#[test]
fn ffmpeg_tells_how_fast_a_video_is() {
    let folder = tempfile::tempdir().unwrap();
    let video = folder.path().join("v.mkv");
    fs::write(&video, "video").unwrap();
    let tells = |line: &str| {
        let text = format!(
            "case \"$*\" in *ppm*) printf 'P6\\n1 1\\n255\\nrgb';; *) echo '{line}' >&2; exit 1;; esac"
        );
        let path = script(folder.path(), &text);
        program::with(&path, || took(&video, Limits::NONE).unwrap().fps)
    };
    let line = "  Stream #0:0(und): Video: h264 (High), yuv420p, 32x32 [SAR 1:1], 9 kb/s, 29.97 fps, 30 tbr";
    assert_eq!(tells(line), Some(29.97));
    assert_eq!(tells("  Stream #0:0: Video: gif, 1x1, 0.1k tbr"), None);
    assert_eq!(tells("nothing"), None);
}
