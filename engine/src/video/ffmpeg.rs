//! Videos written by the program ffmpeg.

use std::ffi::OsString;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};

use super::program::{Running, as_file, asked, failed, find, start};
use super::{Size, Writer};
use crate::error::{Error, Result, argument, io};

/// Encoders for mp4, the best first, with what makes each look well. Distributions leave some out.
const ENCODERS: [(&str, &[&str]); 5] = [
    ("libx264", &["-crf", "16", "-preset", "medium"]),
    ("libopenh264", &["-b:v", "12M"]),
    ("libsvtav1", &["-crf", "22"]),
    ("libaom-av1", &["-crf", "22", "-cpu-used", "6"]),
    ("mpeg4", &["-q:v", "2"]),
];

/// By these words it tells of a full disk; some versions end well all the same.
const NO_ROOM: [&str; 2] = ["No space left on device", "Disk quota exceeded"];

/// By one of these it, or the system that ends it, tells that a file may not be as large.
const TOO_LARGE: [&str; 2] = ["File too large", "SIGXFSZ"];

/// What kind of want of room it tells of; absent: of none.
fn want(words: &str) -> Option<ErrorKind> {
    let one_of = |all: [&str; 2]| all.iter().any(|text| words.contains(text));
    if one_of(NO_ROOM) {
        return Some(ErrorKind::StorageFull);
    }
    one_of(TOO_LARGE).then_some(ErrorKind::FileTooLarge)
}

/// An encoder, and what makes it look well.
type Encoder = (&'static str, &'static [&'static str]);

/// The words by which frames of this size from `from` are encoded.
fn words((name, quality): Encoder, size: Size, fps: f64, from: &str) -> Vec<OsString> {
    let (size, fps) = (format!("{}x{}", size.width, size.height), fps.to_string());
    #[rustfmt::skip]
    let words = [
        "-loglevel", "error", "-y", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", &size, "-r", &fps, "-i", from, "-an",
        "-vf", "scale=out_color_matrix=bt709,format=yuv420p", "-colorspace", "bt709", "-color_primaries", "bt709",
        "-color_trc", "bt709", "-c:v", name,
    ];
    words.iter().chain(quality).map(OsString::from).collect()
}

/// Why a frame of this size cannot be encoded; absent: it can, as far as is told in time.
fn refuses(program: &Path, encoder: Encoder, size: Size, fps: f64) -> Option<String> {
    let mut words = words(encoder, size, fps, "file:/dev/zero");
    words.extend(["-frames:v", "1", "-f", "null", "-"].map(OsString::from));
    // a large frame on a slow machine takes its time, and is no reason
    let told = asked(program, &words).ok()?;
    let says = String::from_utf8_lossy(&told.stderr);
    let says = says.lines().map(str::trim).find(|line| !line.is_empty());
    (!told.status.success()).then(|| says.map_or_else(|| told.status.to_string(), str::to_owned))
}

/// The best encoder that it has and that takes frames of this size: each has limits of its own, and some break off at
/// a size that is too small for them.
fn encoder(program: &Path, size: Size, fps: f64) -> Result<Encoder> {
    let told = asked(program, &["-encoders".into()])?;
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    let has = |name: &str| {
        told.lines()
            .any(|line| line.split_whitespace().nth(1) == Some(name))
    };
    let mut why = None;
    for encoder in ENCODERS.into_iter().filter(|(name, _)| has(name)) {
        match refuses(program, encoder, size, fps) {
            None => return Ok(encoder),
            Some(words) => why = why.or(Some((encoder.0, words))),
        }
    }
    let Some((name, words)) = why else {
        let names: Vec<&str> = ENCODERS.iter().map(|(name, _)| *name).collect();
        return Err(failed(format!(
            "it was built without an encoder for mp4 ({}): install one that has it, or use .gif or a folder",
            names.join(", ")
        )));
    };
    let Size { width, height } = size;
    argument(format!(
        "an mp4 of {width} x {height} pixels with {fps} frames a second cannot be written by this ffmpeg (its {name} says: {words}): name a .gif, or a name without an ending for a folder of pictures"
    ))
}

/// Whether it is there and has an encoder for mp4 that takes frames of this size.
pub(super) fn can_write(size: Size, fps: f64) -> Result<()> {
    encoder(&find()?, size, fps).map(drop)
}

/// Writes an mp4: BT.709, 4:2:0, as players expect it.
pub(super) struct Mp4 {
    running: Running,
    stdin: Option<ChildStdin>,
    path: PathBuf,
}

impl Mp4 {
    pub(super) fn new(path: &Path, size: Size, fps: f64) -> Result<Self> {
        let program = find()?;
        let encoder = encoder(&program, size, fps)?;
        let mut command = Command::new(program);
        command
            .arg("-hide_banner")
            .args(words(encoder, size, fps, "-"))
            .args(["-movflags", "+faststart", "-f", "mp4"])
            .arg(as_file(path))
            .stdin(Stdio::piped())
            .stdout(Stdio::null());
        let mut running = start(command)?;
        let stdin = running.child.stdin.take();
        Ok(Self {
            running,
            stdin,
            path: path.to_owned(),
        })
    }
}

impl Mp4 {
    /// Waits for its end, which must be a good one.
    fn ended(&mut self) -> Result<()> {
        let (status, words) = self.running.ended()?;
        match words {
            // the system's word for the end is more than what it had said before
            _ if want(&status.to_string()).is_some() => Err(self.broken(&status.to_string())),
            Some(words) if !status.success() || want(&words).is_some() => Err(self.broken(&words)),
            None if !status.success() => Err(self.broken(&status.to_string())),
            _ => Ok(()),
        }
    }

    /// It broke off: not for want of a program, but of room or the like, which its own words tell.
    fn broken(&self, words: &str) -> Error {
        /// Told in the system's own words, however ffmpeg was.
        const EFBIG: i32 = 27;
        let kind = want(words).unwrap_or(ErrorKind::Other);
        if kind == ErrorKind::FileTooLarge {
            let system = std::io::Error::from_raw_os_error(EFBIG);
            let words = format!("ffmpeg: {words}: {system}");
            return io(&self.path)(std::io::Error::new(kind, words));
        }
        io(&self.path)(std::io::Error::new(kind, format!("ffmpeg: {words}")))
    }
}

impl Writer for Mp4 {
    fn frame(&mut self, frame: &[u8]) -> Result<()> {
        let Some(stdin) = &mut self.stdin else {
            return Err(failed("it takes no frames"));
        };
        if let Err(e) = stdin.write_all(frame) {
            // it has ended: its own words say why
            drop(self.stdin.take());
            self.ended()?;
            return Err(self.broken(&format!("it takes no more frames: {e}")));
        }
        Ok(())
    }

    fn end(mut self: Box<Self>) -> Result<()> {
        drop(self.stdin.take());
        self.ended()?;
        let file = std::fs::File::open(&self.path).map_err(io(&self.path))?;
        file.sync_data().map_err(io(&self.path))
    }
}
