//! Videos through the program ffmpeg.

use std::ffi::OsString;
use std::io::{BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Output, Stdio};
use std::thread::JoinHandle;

use super::{Frames, Size, Writer};
use crate::error::{Error, Result, io, open};

/// The variable by which imageio finds its ffmpeg.
const VARIABLE: &str = "IMAGEIO_FFMPEG_EXE";
/// Bytes of its complaints that are kept.
const WORDS: u64 = 4096;
/// Encoders for mp4, the best first, with what makes each look well. Distributions leave some out.
const ENCODERS: [(&str, &[&str]); 5] = [
    ("libx264", &["-crf", "16", "-preset", "medium"]),
    ("libopenh264", &["-b:v", "12M"]),
    ("libsvtav1", &["-crf", "22"]),
    ("libaom-av1", &["-crf", "22", "-cpu-used", "6"]),
    ("mpeg4", &["-q:v", "2"]),
];

#[cfg(test)]
thread_local! {
    static INSTEAD: std::cell::Cell<Option<PathBuf>> = const { std::cell::Cell::new(None) };
}

/// Does `work` with another program.
#[cfg(test)]
pub(super) fn with<T>(program: &Path, work: impl FnOnce() -> T) -> T {
    INSTEAD.set(Some(program.to_owned()));
    let done = work();
    INSTEAD.set(None);
    done
}

/// The program, or what to do without it.
pub(super) fn find() -> Result<PathBuf> {
    #[cfg(test)]
    if let Some(program) = INSTEAD.take() {
        INSTEAD.set(Some(program.clone()));
        return Ok(program);
    }
    let named = std::env::var_os(VARIABLE).filter(|path| !path.is_empty());
    if let Some(named) = named {
        return Ok(named.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&path).map(|folder| folder.join("ffmpeg"));
    // one that cannot be executed is passed over, as a shell does
    let runs = |path: &PathBuf| {
        path.metadata()
            .is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
    };
    folders.find(runs).ok_or_else(|| {
        failed(
            "not found in PATH: install it (packages are called ffmpeg), name one in IMAGEIO_FFMPEG_EXE, or use .gif or a folder of png pictures instead of a video",
        )
    })
}

fn failed(reason: impl Into<String>) -> Error {
    Error::Program {
        program: "ffmpeg".to_owned(),
        reason: reason.into(),
    }
}

fn start(mut command: Command) -> Result<Running> {
    let child = command.stderr(Stdio::piped()).spawn();
    let mut child = child.map_err(|e| cannot_be_started(command.get_program().as_ref(), &e))?;
    let words = child.stderr.take().map(|stderr| {
        std::thread::spawn(move || {
            let mut words = Vec::new();
            let mut stderr = stderr;
            // what was read up to an error still counts
            let _ = stderr.by_ref().take(WORDS).read_to_end(&mut words);
            // a full pipe would stop it
            let _ = std::io::copy(&mut stderr, &mut std::io::sink());
            String::from_utf8_lossy(&words).trim().replace('\n', "; ")
        })
    });
    Ok(Running { child, words })
}

/// It, at work.
struct Running {
    child: Child,
    words: Option<JoinHandle<String>>,
}

impl Running {
    /// Waits for its end; how that was, and its words.
    fn ended(&mut self) -> Result<(ExitStatus, Option<String>)> {
        let status = self
            .child
            .wait()
            .map_err(|e| failed(format!("lost: {e}")))?;
        let words = self.words.take().and_then(|words| words.join().ok());
        Ok((status, words.filter(|words| !words.is_empty())))
    }

    /// Waits for its end, which must be a good one.
    fn end(&mut self) -> Result<()> {
        match self.ended()? {
            (status, _) if status.success() => Ok(()),
            (status, words) => Err(failed(words.unwrap_or_else(|| status.to_string()))),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.words.is_some() {
            // it may be gone already
            let _ = self.child.kill().and_then(|()| self.child.wait());
        }
    }
}

/// What it answers.
fn asked(program: &Path, option: &str) -> Result<Output> {
    let mut command = Command::new(program);
    command.args(["-hide_banner", option]).stdin(Stdio::null());
    command.output().map_err(|e| cannot_be_started(program, &e))
}

fn cannot_be_started(program: &Path, why: &std::io::Error) -> Error {
    failed(format!(
        "{} cannot be started ({why}): install ffmpeg, or name one in {VARIABLE}",
        program.display()
    ))
}

/// The best encoder that it has.
fn encoder(program: &Path) -> Result<(&'static str, &'static [&'static str])> {
    let told = asked(program, "-encoders")?;
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

/// Whether it is there and can be started. What it can read is seen when it does.
pub(super) fn can_read() -> Result<()> {
    let program = find()?;
    let told = asked(&program, "-version")?;
    if told.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&told.stderr)
        .trim()
        .replace('\n', "; ");
    Err(failed(format!(
        "{} does not work ({}; {words}): install ffmpeg, or name another in {VARIABLE}",
        program.display(),
        told.status
    )))
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

impl Writer for Mp4 {
    fn frame(&mut self, frame: &[u8]) -> Result<()> {
        let Some(stdin) = &mut self.stdin else {
            return Err(failed("it takes no frames"));
        };
        if let Err(e) = stdin.write_all(frame) {
            // it has ended: its own words say why
            drop(self.stdin.take());
            self.running.end()?;
            return Err(failed(format!("it takes no more frames: {e}")));
        }
        Ok(())
    }

    fn end(mut self: Box<Self>) -> Result<()> {
        drop(self.stdin.take());
        self.running.end()?;
        let file = std::fs::File::open(&self.path).map_err(io(&self.path))?;
        file.sync_data().map_err(io(&self.path))
    }
}

/// A name that is no option and no protocol of its.
fn as_file(path: &Path) -> OsString {
    let mut name = OsString::from("file:");
    name.push(path);
    name
}

/// Reads every frame, as pictures in the plain form of netpbm, which says its size.
pub(super) fn read(input: &Path, frames: &mut Frames) -> Result<()> {
    drop(open(input)?);
    let program = find()?;
    let mut command = Command::new(&program);
    command
        .args(["-hide_banner", "-loglevel", "error", "-nostdin", "-i"])
        .arg(as_file(input))
        .args(["-map", "0:v:0", "-f", "image2pipe", "-c:v", "ppm", "-"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut running = start(command)?;
    let Some(stdout) = running.child.stdout.take() else {
        return Err(failed("it gives no frames"));
    };
    let read = pictures(BufReader::new(stdout), frames, input);
    if matches!(read, Err(Error::File { .. })) {
        // it is ended where it is
        return read;
    }
    let (status, words) = running.ended()?;
    // its own words say more than what came of it
    let reason = match (words, read) {
        (Some(words), _) if !status.success() => words,
        (_, Err(Error::Program { reason, .. })) => reason,
        (_, Err(other)) => return Err(other),
        (_, Ok(())) if !status.success() => status.to_string(),
        (_, Ok(())) => {
            frames.fps = fps(&program, input);
            return Ok(());
        }
    };
    // the file is what is wrong: the program is there
    Err(Error::File {
        path: input.to_owned(),
        reason: format!("ffmpeg cannot read it: {reason}"),
    })
}

/// Frames a second of the first video in a file, where ffmpeg tells them: pictures have none.
fn fps(program: &Path, input: &Path) -> Option<f64> {
    let mut command = Command::new(program);
    command.args(["-hide_banner", "-nostdin", "-i"]);
    // without an output it ends with an error, and has told what is in the file
    let told = command.arg(as_file(input)).stdin(Stdio::null()).output();
    let told = told.ok()?.stderr;
    let told = String::from_utf8_lossy(&told);
    let line = told.lines().find(|line| line.contains(" Video: "))?;
    let said = line.split(", ").find_map(|word| word.strip_suffix(" fps"));
    said?
        .parse()
        .ok()
        .filter(|fps: &f64| fps.is_finite() && *fps > 0.0)
}

/// The pictures one after the other.
fn pictures(mut from: impl Read, frames: &mut Frames, input: &Path) -> Result<()> {
    let mut frame = Vec::new();
    while let Some(size) = header(&mut from)? {
        frames.expect(size, input)?;
        frame.resize(size.frame(), 0);
        from.read_exact(&mut frame)
            .map_err(|e| failed(format!("a frame is cut short: {e}")))?;
        frames.push(&frame);
    }
    Ok(())
}

/// `P6 WIDTH HEIGHT 255` and one space; nothing at the end.
fn header(from: &mut impl Read) -> Result<Option<Size>> {
    let mut words: Vec<String> = vec![String::new()];
    loop {
        let mut byte = [0];
        match from.read(&mut byte) {
            Ok(0) if words == [""] => return Ok(None),
            Ok(1) => {}
            Ok(_) => return Err(failed("its pictures are cut short")),
            Err(e) => return Err(failed(format!("its pictures cannot be read: {e}"))),
        }
        let Some(word) = words.last_mut() else {
            return Ok(None);
        };
        if !byte[0].is_ascii_whitespace() {
            word.push(char::from(byte[0]));
            if word.len() > 8 {
                return Err(failed("it gives something else than pictures"));
            }
        } else if words.len() < 4 {
            words.push(String::new());
        } else {
            break;
        }
    }
    let side = |at: usize| words[at].parse().ok().filter(|n| (1..=1 << 16).contains(n));
    match (words[0].as_str(), side(1), side(2), words[3].as_str()) {
        ("P6", Some(width), Some(height), "255") => Ok(Some(Size { width, height })),
        _ => Err(failed(format!(
            "pictures of another form: {}",
            words.join(" ")
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_pictures() {
        let size = |text: &str| header(&mut text.as_bytes());
        assert_eq!(
            size("P6\n4 2\n255\nrest").unwrap(),
            Some(Size {
                width: 4,
                height: 2
            })
        );
        assert_eq!(size("").unwrap(), None);
        for bad in [
            "P6\n4 2\n255",
            "P5\n4 2\n255\n",
            "P6\n0 2\n255\n",
            "\u{1b}garbage without end",
        ] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }
}
