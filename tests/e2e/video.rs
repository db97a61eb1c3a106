//! `decode` to mp4 and `encode` from it, through a real ffmpeg: the one of the Python package
//! imageio-ffmpeg, which the users' programs bring as well.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::decode::{latents, model, words};
use crate::harness::{Home, Start, python};

const LIMIT: Duration = Duration::from_mins(3);

/// What Python prints.
fn says(program: &str, words: &[&Path]) -> String {
    let said = Command::new(python())
        .args(["-c", program])
        .args(words)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success(), "{errors}");
    String::from_utf8(said.stdout).unwrap().trim().to_owned()
}

pub(crate) fn ffmpeg() -> PathBuf {
    says(
        "import imageio_ffmpeg; print(imageio_ffmpeg.get_ffmpeg_exe())",
        &[],
    )
    .into()
}

/// What another reader makes of the video: its shape, and how far its frames are from the
/// pictures, in the mean of each color and in brightness.
const LOOK: &str = r#"
import glob, sys
import av, numpy
from PIL import Image

video, pictures = sys.argv[1:]
with av.open(video) as file:
    stream = file.streams.video[0]
    frames = [frame.to_ndarray(format="rgb24").astype(float) for frame in file.decode(stream)]
    context = stream.codec_context
    print(len(frames), *frames[0].shape[:2], stream.average_rate, context.pix_fmt, int(context.colorspace), int(context.color_range))
theirs = [numpy.asarray(Image.open(path)).astype(float) for path in sorted(glob.glob(pictures + "/*.png"))]
assert len(theirs) == len(frames), (len(theirs), len(frames))
light = numpy.array([0.2126, 0.7152, 0.0722])
for ours, other in zip(frames, theirs):
    color = abs(ours.mean((0, 1)) - other.mean((0, 1))).max()
    brightness = abs(ours @ light - other @ light).mean()
    assert color < 2 and brightness < 4, (color, brightness)
"#;

#[test]
fn a_video_file_shows_the_pictures_and_goes_back_to_latents() {
    let home = Home::new();
    let file = latents(&home, "l.safetensors", [16, 3, 8, 8]);
    let (video, pictures) = (home.path("out/v.mp4"), home.path("out/pictures"));
    let ffmpeg = ffmpeg();
    for output in [&video, &pictures] {
        let mut words = words(&file, &model(), output);
        words.extend(["--fps".into(), "24".into()]);
        let run = Start::new(&home).engine("decode", &words);
        run.env("IMAGEIO_FFMPEG_EXE", &ffmpeg)
            .start()
            .finish(LIMIT)
            .assert_exit(0);
    }
    // BT.709, of limited range, as players take it
    assert_eq!(says(LOOK, &[&video, &pictures]), "9 64 64 24 yuv420p 1 1");

    let output = home.path("out/again.safetensors");
    let mut words: Vec<OsString> = vec![video.into(), "--model".into(), model().into()];
    words.extend(["-o".into(), output.clone().into()]);
    let run = Start::new(&home).engine("encode", &words);
    run.env("IMAGEIO_FFMPEG_EXE", &ffmpeg)
        .start()
        .finish(LIMIT)
        .assert_exit(0);
    let shape =
        "import sys, safetensors.torch as s; print(*s.load_file(sys.argv[1])['latents'].shape)";
    assert_eq!(says(shape, &[&output]), "1 16 3 8 8");
    // whoever may read the video may read these
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode();
    let plain = home.path("out/plain");
    std::fs::write(&plain, "").unwrap();
    assert_eq!(mode(&output), mode(&plain));
    others(&home, &ffmpeg, &home.path("out/v.mp4"));
}

/// The same video in other containers, with changing intervals, and cut short.
fn others(home: &Home, ffmpeg: &Path, video: &Path) {
    let made = |name: &str, words: &[&str]| {
        let path = home.path(name);
        let mut command = Command::new(ffmpeg);
        command.args(["-v", "error", "-i"]).arg(video).args(words);
        assert!(command.arg(&path).status().unwrap().success(), "{name}");
        path
    };
    let cut = |name: &str, from: &Path, part: usize| {
        let bytes = std::fs::read(from).unwrap();
        let path = home.path(name);
        std::fs::write(&path, &bytes[..bytes.len() * part / 100]).unwrap();
        path
    };
    let encoded = |input: &Path, code: u8| {
        let output = home.path("out/other.safetensors");
        let mut words: Vec<OsString> = vec![input.into(), "--model".into(), model().into()];
        words.extend(["-o".into(), output.clone().into(), "--force".into()]);
        let run = Start::new(home).engine("encode", &words);
        let run = run.env("IMAGEIO_FFMPEG_EXE", ffmpeg);
        run.start().finish(LIMIT).assert_exit(code);
        output
    };
    let told = "import sys, safetensors; f = safetensors.safe_open(sys.argv[1], 'np'); print(*f.get_tensor('latents').shape, f.metadata()['fps'][:4])";
    let mkv = made("whole.mkv", &["-c", "copy"]);
    assert_eq!(says(told, &[&encoded(&mkv, 0)]), "1 16 3 8 8 24");
    let words = ["-vf", "setpts='N*N/24/TB'", "-fps_mode", "passthrough"];
    let varying = made("varying.mp4", &words);
    let said = says(told, &[&encoded(&varying, 0)]);
    assert!(said.starts_with("1 16 3 8 8 "), "{said}");
    for part in [60, 99] {
        encoded(&cut("cut.mp4", video, part), 65);
    }
    encoded(&cut("cut.mkv", &mkv, 80), 65);
}
