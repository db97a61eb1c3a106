//! Videos of other programs: what `encode` makes of them, by a real ffmpeg.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::decode::{LIMIT, decode, latents, lines, model, refused, words};
use crate::harness::{Home, Start};
use crate::video::ffmpeg;

const WIDTH: usize = 64;
const HEIGHT: usize = 32;
const FRAMES: usize = 9;

/// Colours that run over the picture, and move: the order of the frames can be seen.
fn pixels() -> Vec<u8> {
    let at = |t: usize, y: usize, x: usize| {
        let byte = |n: usize| u8::try_from(n).unwrap();
        [
            byte(40 + x * 2 + t * 6),
            byte(60 + y * 4 + t),
            byte(200 - x - t * 8),
        ]
    };
    let places =
        (0..FRAMES).flat_map(|t| (0..HEIGHT).flat_map(move |y| (0..WIDTH).map(move |x| (t, y, x))));
    places.flat_map(|(t, y, x)| at(t, y, x)).collect()
}

/// A video of [`pixels`]; absent: this ffmpeg has no such encoder.
fn made(home: &Home, ffmpeg: &Path, name: &str, options: &str) -> Option<PathBuf> {
    let path = home.path(name);
    let mut child = Command::new(ffmpeg)
        .args(["-v", "error", "-y", "-f", "rawvideo", "-pix_fmt", "rgb24"])
        .args(["-s", "64x32", "-r", "24", "-i", "-"])
        .args(options.split_whitespace())
        .arg(&path)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // one that has no such encoder does not read it
    let _unread = child.stdin.take().unwrap().write_all(&pixels());
    let said = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&said.stderr);
    if text.contains("Unknown encoder") {
        eprintln!("SKIPPED: {name}: this ffmpeg has no such encoder");
        return None;
    }
    assert!(said.status.success(), "{name}: {text}");
    Some(path)
}

fn to_latents(video: &Path, output: &Path) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec![video.into(), "--model".into(), model().into()];
    words.extend(["-o".into(), output.into(), "--device".into(), "cpu".into()]);
    words
}

/// Its latents, and what the console said.
fn encoded(home: &Home, ffmpeg: &Path, video: &Path) -> (PathBuf, String) {
    let name = video.file_name().unwrap().to_string_lossy();
    let output = home.path(&format!("out/{name}.safetensors"));
    let run = Start::new(home).engine("encode", &to_latents(video, &output));
    let run = run.env("IMAGEIO_FFMPEG_EXE", ffmpeg).start().finish(LIMIT);
    run.assert_exit(0);
    let text = lines(&run);
    (output, text)
}

/// A real ffmpeg; what is read from it goes to the file `read` as well.
fn overheard(home: &Home) -> PathBuf {
    let path = home.path("ffmpeg-overheard");
    let (program, heard) = (ffmpeg(), home.path("read"));
    let script = format!(
        "#!/bin/bash\nset -o pipefail\ncase \"$*\" in *image2pipe*) '{program}' \"$@\" | tee '{heard}';; *) exec '{program}' \"$@\";; esac\n",
        program = program.display(),
        heard = heard.display()
    );
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// The mean of the distances of each frame's bytes from [`pixels`].
fn distances(read: &[u8]) -> Vec<f64> {
    const HEAD: &[u8] = b"P6\n64 32\n255\n";
    let length = WIDTH * HEIGHT * 3;
    let all = pixels();
    let frames = read.chunks(HEAD.len() + length);
    let far = |(frame, want): (&[u8], &[u8])| {
        assert!(frame.starts_with(HEAD));
        let off = frame[HEAD.len()..].iter().zip(want);
        let off: u32 = off.map(|(a, b)| u32::from(a.abs_diff(*b))).sum();
        f64::from(off) / f64::from(u32::try_from(length).unwrap())
    };
    let far: Vec<f64> = frames.zip(all.chunks(length)).map(far).collect();
    assert_eq!(read.len(), far.len() * (HEAD.len() + length));
    far
}

#[test]
fn videos_of_many_encoders_have_all_their_frames_and_nearly_their_pixels() {
    let home = Home::new();
    let (ffmpeg, overheard) = (ffmpeg(), overheard(&home));
    let yuv = "-vf scale=out_color_matrix=bt709 -colorspace bt709 -color_primaries bt709 -color_trc bt709";
    for (name, options) in [
        ("exact.mkv", "-c:v ffv1 -pix_fmt bgr0"),
        ("x264.mp4", "-c:v libx264 -crf 8 -pix_fmt yuv420p"),
        ("b-frames.mkv", "-c:v libx264 -crf 8 -bf 3 -pix_fmt yuv444p"),
        ("ten-bits.mp4", "-c:v libx264 -crf 8 -pix_fmt yuv420p10le"),
        (
            "x265.mp4",
            "-c:v libx265 -crf 8 -x265-params log-level=none -pix_fmt yuv420p",
        ),
        ("vp9.webm", "-c:v libvpx-vp9 -crf 8 -b:v 0 -pix_fmt yuv420p"),
        ("mpeg4.mp4", "-c:v mpeg4 -q:v 2 -pix_fmt yuv420p"),
        ("mpeg4.avi", "-c:v mpeg4 -q:v 2 -pix_fmt yuv420p"),
        (
            "prores.mov",
            "-c:v prores -profile:v 3 -pix_fmt yuv422p10le",
        ),
        ("film.apng", "-c:v apng -f apng"),
        // which is read without ffmpeg
        ("film.gif", "-c:v gif"),
    ] {
        // mpeg4 cannot say which colours it has: those of old television are taken for it
        let tagged = options.contains("yuv") && !name.starts_with("mpeg4");
        let yuv = if tagged { yuv } else { "" };
        let Some(video) = made(&home, &ffmpeg, name, &format!("{yuv} {options}")) else {
            continue;
        };
        // of the video before
        let _none = std::fs::remove_file(home.path("read"));
        let (_, text) = encoded(&home, &overheard, &video);
        assert!(
            text.contains("9 frames of 64 x 32 pixels"),
            "{name}: {text}"
        );
        if name == "film.gif" {
            continue;
        }
        let far = distances(&std::fs::read(home.path("read")).unwrap());
        assert_eq!(far.len(), FRAMES, "{name}");
        assert!(far.iter().all(|far| *far < 2.5), "{name}: {far:?}");
    }
}

/// What ffmpeg makes by these words, in the home.
fn by(home: &Home, name: &str, words: &str) -> PathBuf {
    let path = home.path(name);
    let mut command = Command::new(ffmpeg());
    command.args(["-v", "error", "-y"]);
    let said = command.args(words.split_whitespace()).arg(&path);
    let said = said.current_dir(home.dir()).output().unwrap();
    assert!(said.status.success(), "{name}: {said:?}");
    path
}

const PLAIN: &str = "-c:v libx264 -crf 8 -pix_fmt yuv420p";

#[test]
fn a_rotation_is_made_and_what_is_left_out_is_told() {
    let home = Home::new();
    let ffmpeg = ffmpeg();
    made(&home, &ffmpeg, "plain.mp4", PLAIN).unwrap();
    let turned = "-display_rotation 90 -i plain.mp4 -c copy";
    let wide = "-i plain.mp4 -c copy -aspect 4:1";
    let clear = "-c:v ffv1 -pix_fmt bgra";
    for (video, want) in [
        (
            by(&home, "turned.mp4", turned),
            "9 frames of 32 x 64 pixels",
        ),
        (by(&home, "wide.mp4", wide), "are not square (2:1)"),
        (
            made(&home, &ffmpeg, "clear.mkv", clear).unwrap(),
            "has transparency, which is left out",
        ),
    ] {
        let (_, text) = encoded(&home, &ffmpeg, &video);
        assert!(text.contains(want), "{text}");
    }
}

#[test]
fn what_is_no_video_that_can_be_encoded_is_refused() {
    let home = Home::new();
    let ffmpeg = ffmpeg();
    let made = |name: &str, options: &str| made(&home, &ffmpeg, name, options).unwrap();
    made("plain.mp4", PLAIN);
    let pq = "-c:v libx264 -x264-params colorprim=bt2020:transfer=smpte2084:colormatrix=bt2020nc -pix_fmt yuv420p10le";
    let environment = [("IMAGEIO_FFMPEG_EXE", ffmpeg.as_path())];
    let words = |video: &Path| to_latents(video, &home.path("out/z.safetensors"));
    for (video, want) in [
        (
            by(&home, "sound.m4a", "-f lavfi -i sine=d=1 -c:a aac"),
            "there is no video in it",
        ),
        (
            by(&home, "none.mp4", "-i plain.mp4 -frames:v 0"),
            "there is no video in it",
        ),
        (made("hdr.mp4", pq), "it is HDR (PQ"),
    ] {
        let (code, text) = refused(&home, "encode", &words(&video), &environment);
        assert_eq!(code, 65, "{text}");
        assert!(text.contains(want), "{text}");
    }
    // what is known when the first frame is read
    for (video, want) in [
        (
            made("odd.mkv", "-vf scale=33:31 -c:v ffv1 -pix_fmt bgr0"),
            "33 x 31 pixels: this model takes sides that are multiples of 8; scale or crop it to 32 x 24",
        ),
        (
            made("dot.mkv", "-vf scale=1:1 -c:v ffv1 -pix_fmt bgr0"),
            "1 x 1 pixels: this model takes sides that are multiples of 8; scale it to 8 x 8",
        ),
    ] {
        let run = Start::new(&home).engine("encode", &words(&video));
        let run = run.env("IMAGEIO_FFMPEG_EXE", &ffmpeg).start().finish(LIMIT);
        run.assert_exit(65);
        assert!(lines(&run).contains(want), "{}", lines(&run));
    }
}

/// The smallest video that there can be: 8 x 8 pixels, which not every encoder takes.
#[test]
fn one_latent_becomes_a_video() {
    let home = Home::new();
    let file = latents(&home, "l.safetensors", [16, 1, 1, 1]);
    let output = home.path("out/v.mp4");
    let run = Start::new(&home).engine("decode", &words(&file, &model(), &output));
    let run = run
        .env("IMAGEIO_FFMPEG_EXE", ffmpeg())
        .start()
        .finish(LIMIT);
    run.assert_exit(0);
    let (_, text) = encoded(&home, &ffmpeg(), &output);
    assert!(text.contains("1 frames of 8 x 8 pixels"), "{text}");
    decode(&home, &file, &home.path("out/v"), &[]);
}
