//! Videos written by the program ffmpeg.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};

use super::program::{Running, as_file, asked, failed, find, start};
use super::{Size, Writer};
use crate::error::{Error, Result, io};

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

fn is_full(words: &str) -> bool {
    NO_ROOM.iter().any(|room| words.contains(room))
}

/// The best encoder that it has.
fn encoder(program: &Path) -> Result<(&'static str, &'static [&'static str])> {
    let told = asked(program, &["-encoders".into()])?;
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    let has = |name: &str| {
        told.lines()
            .any(|line| line.split_whitespace().nth(1) == Some(name))
    };
    ENCODERS
        .into_iter()
        .find(|(name, _)| has(name))
        .ok_or_else(|| {
            let names: Vec<&str> = ENCODERS.iter().map(|(name, _)| *name).collect();
            failed(format!(
                "it was built without an encoder for mp4 ({}): install one that has it, or use .gif or a folder",
                names.join(", ")
            ))
        })
}

/// Whether it is there and has an encoder for mp4.
pub(super) fn can_write() -> Result<()> {
    encoder(&find()?).map(drop)
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
        let (name, quality) = encoder(&program)?;
        let mut command = Command::new(program);
        command
            .args(["-hide_banner", "-loglevel", "error", "-y"])
            .args(["-f", "rawvideo", "-pix_fmt", "rgb24", "-s"])
            .arg(format!("{}x{}", size.width, size.height))
            .args(["-r", &fps.to_string(), "-i", "-", "-an"])
            .args(["-vf", "scale=out_color_matrix=bt709,format=yuv420p"])
            .args(["-colorspace", "bt709", "-color_primaries", "bt709"])
            .args(["-color_trc", "bt709", "-c:v", name])
            .args(quality)
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
            Some(words) if !status.success() || is_full(&words) => Err(self.broken(&words)),
            None if !status.success() => Err(self.broken(&status.to_string())),
            _ => Ok(()),
        }
    }

    /// It broke off: not for want of a program, but of room or the like, which its own words tell.
    fn broken(&self, words: &str) -> Error {
        let kind = if is_full(words) {
            std::io::ErrorKind::StorageFull
        } else {
            std::io::ErrorKind::Other
        };
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
