//! Videos of other programs: what `encode` makes of them, by a real ffmpeg.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::decode::{LIMIT, decode, latents, lines, model, refused, words};
use crate::harness::{Home, Start};
use crate::video::{ffmpeg, says};

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

/// How far latents are from others, as a part of what those are, and their shape.
const FAR: &str = "
import sys
from safetensors.numpy import load_file
ours, other = [load_file(path)['latents'] for path in sys.argv[1:]]
assert ours.shape == other.shape, (ours.shape, other.shape)
far = lambda a, b: float(((a - b) ** 2).mean() ** 0.5 / (b ** 2).mean() ** 0.5)
print(*ours.shape, far(ours, other), far(ours[:, :, ::-1], other))
";

#[test]
fn videos_of_many_encoders_have_all_their_frames_and_nearly_their_pixels() {
    let home = Home::new();
    let ffmpeg = ffmpeg();
    let exact = made(&home, &ffmpeg, "exact.mkv", "-c:v ffv1 -pix_fmt bgr0").unwrap();
    let (exact, _) = encoded(&home, &ffmpeg, &exact);
    let yuv = "-vf scale=out_color_matrix=bt709 -colorspace bt709 -color_primaries bt709 -color_trc bt709";
    for (name, options) in [
        ("x264.mp4", "-c:v libx264 -crf 8 -pix_fmt yuv420p"),
        ("x264-b.mkv", "-c:v libx264 -crf 8 -bf 3 -pix_fmt yuv444p"),
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
        ("film.gif", "-c:v gif"),
        ("film.apng", "-c:v apng -f apng"),
    ] {
        let yuv = if options.contains("yuv") { yuv } else { "" };
        let Some(video) = made(&home, &ffmpeg, name, &format!("{yuv} {options}")) else {
            continue;
        };
        let (latents, text) = encoded(&home, &ffmpeg, &video);
        assert!(
            text.contains("9 frames of 64 x 32 pixels"),
            "{name}: {text}"
        );
        let said = says(FAR, &[&latents, &exact]);
        let numbers: Vec<f64> = said.split(' ').map(|n| n.parse().unwrap()).collect();
        let [_, _, _, _, _, far, turned] = numbers[..] else {
            panic!("{said}");
        };
        eprintln!("{name}: {said}");
        assert!(said.starts_with("1 16 3 4 8 "), "{name}: {said}");
        assert!(far < 0.05 && far < turned / 2.0, "{name}: {said}");
    }
}

#[test]
fn a_rotation_is_made_and_what_is_no_plain_video_is_refused_or_told() {
    let home = Home::new();
    let ffmpeg = ffmpeg();
    let by = |name: &str, words: &[&str]| {
        let path = home.path(name);
        let mut command = Command::new(&ffmpeg);
        let said = command.args(["-v", "error", "-y"]).args(words).arg(&path);
        let said = said.current_dir(home.dir()).output().unwrap();
        assert!(said.status.success(), "{name}: {said:?}");
        path
    };
    made(
        &home,
        &ffmpeg,
        "plain.mp4",
        "-c:v libx264 -crf 8 -pix_fmt yuv420p",
    )
    .unwrap();
    let turned = by(
        "turned.mp4",
        &["-display_rotation", "90", "-i", "plain.mp4", "-c", "copy"],
    );
    let (_, text) = encoded(&home, &ffmpeg, &turned);
    assert!(text.contains("9 frames of 32 x 64 pixels"), "{text}");
    let wide = by(
        "wide.mp4",
        &["-i", "plain.mp4", "-c", "copy", "-aspect", "4:1"],
    );
    let (_, text) = encoded(&home, &ffmpeg, &wide);
    assert!(text.contains("are not square (2:1)"), "{text}");
    let clear = made(&home, &ffmpeg, "clear.mkv", "-c:v ffv1 -pix_fmt bgra").unwrap();
    let (_, text) = encoded(&home, &ffmpeg, &clear);
    assert!(
        text.contains("has transparency, which is left out"),
        "{text}"
    );

    let sound = by(
        "sound.m4a",
        &["-f", "lavfi", "-i", "sine=d=1", "-c:a", "aac"],
    );
    let none = by("none.mp4", &["-i", "plain.mp4", "-frames:v", "0"]);
    let pq = "-c:v libx264 -x264-params colorprim=bt2020:transfer=smpte2084:colormatrix=bt2020nc -pix_fmt yuv420p10le";
    let hdr = made(&home, &ffmpeg, "hdr.mp4", pq).unwrap();
    let odd = made(
        &home,
        &ffmpeg,
        "odd.mkv",
        "-vf scale=33:31 -c:v ffv1 -pix_fmt bgr0",
    )
    .unwrap();
    let dot = made(
        &home,
        &ffmpeg,
        "dot.mkv",
        "-vf scale=1:1 -c:v ffv1 -pix_fmt bgr0",
    )
    .unwrap();
    let environment = [("IMAGEIO_FFMPEG_EXE", ffmpeg.as_path())];
    for (video, want) in [
        (sound, "there is no video in it"),
        (none, "there is no video in it"),
        (hdr, "it is HDR (PQ"),
    ] {
        let words = to_latents(&video, &home.path("out/z.safetensors"));
        let (code, text) = refused(&home, "encode", &words, &environment);
        assert_eq!(code, 65, "{text}");
        assert!(text.contains(want), "{text}");
    }
    // what is known when the first frame is read
    for (video, want) in [
        (
            odd,
            "33 x 31 pixels: this model takes sides that are multiples of 8; scale or crop it to 32 x 24",
        ),
        (
            dot,
            "1 x 1 pixels: this model takes sides that are multiples of 8; scale it to 8 x 8",
        ),
    ] {
        let words = to_latents(&video, &home.path("out/z.safetensors"));
        let run = Start::new(&home).engine("encode", &words);
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
