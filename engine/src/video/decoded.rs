//! Videos read by the program ffmpeg.

use std::ffi::OsString;
use std::io::{BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use super::program::{as_file, asked, failed, find, start};
use super::{CheckCancelled, Frames, Size, container};
use crate::error::{Error, Result, open};

/// How often a silent ffmpeg is looked away from, to hear whether the user has had enough.
const TURN: Duration = Duration::from_millis(100);
/// Bytes that are taken from it at a time, and how many such pieces may wait.
const PIECE: usize = 1 << 18;
const WAITING: usize = 4;
/// By these words it tells that the end, or a part, of a file is not there; it ends well all the same.
const CUT: [&str; 5] = [
    "partial file",
    "File ended prematurely",
    "corrupt input packet",
    "Packet corrupt",
    "Invalid NAL unit size",
];
/// Letters of its words that are told at most.
const TOLD: usize = 400;
/// `-fps_mode` came with ffmpeg 5.1, whose libavformat is this one; before there was `-vsync` alone, which is gone since.
const FPS_MODE: (u32, u32) = (59, 27);

/// Reads every frame, as pictures in the plain form of netpbm, which says its size.
pub(super) fn read(
    input: &Path,
    frames: &mut Frames,
    check_cancelled: CheckCancelled<'_>,
) -> Result<()> {
    drop(open(input)?);
    let wrong = |reason: String| {
        // the file is what is wrong: the program is there
        Err(Error::File {
            path: input.to_owned(),
            reason,
        })
    };
    if let Some(reason) = container::cut_short(input) {
        return wrong(reason);
    }
    let program = find()?;
    let told = Told::of(&program, input);
    if let Some(reason) = told.as_ref().and_then(Told::refused) {
        return wrong(reason);
    }
    let mut command = Command::new(&program);
    command
        .args(["-hide_banner", "-loglevel", "error", "-nostdin", "-i"])
        .arg(as_file(input))
        // not the cover of a piece of music
        .args(["-map", "0:V:0", every_frame_once(&program)?, "passthrough"])
        // more bits are reduced to these; else a ppm would have two bytes a colour
        .args(["-pix_fmt", "rgb24", "-f", "image2pipe", "-c:v", "ppm", "-"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut running = start(command)?;
    let Some(stdout) = running.child.stdout.take() else {
        return Err(failed("it gives no frames"));
    };
    let mut pipe = Pipe::new(stdout, check_cancelled);
    let read = pictures(BufReader::new(&mut pipe), frames, input);
    if let Some(stopped) = pipe.stopped {
        return Err(stopped);
    }
    if matches!(read, Err(Error::File { .. })) {
        // it is ended where it is
        return read;
    }
    let (status, words) = running.ended()?;
    let cut = |words: &String| CUT.iter().any(|cut| words.contains(cut));
    // its own words say more than what came of it
    match (words, read) {
        (Some(words), _) if !status.success() => {
            wrong(format!("ffmpeg cannot read it: {}", short(&words)))
        }
        (Some(words), _) if cut(&words) => wrong(format!(
            "it is damaged, or its end is missing: copy it once more; ffmpeg says: {}",
            short(&words)
        )),
        (_, Err(Error::Program { reason, .. })) => {
            wrong(format!("ffmpeg cannot read it: {reason}"))
        }
        (_, Err(other)) => Err(other),
        (_, Ok(())) if !status.success() => wrong(format!("ffmpeg cannot read it: {status}")),
        (words, Ok(())) => {
            frames.problems.extend(words.map(|words| {
                format!(
                    "ffmpeg read {} frames of {}, and complains: {}",
                    frames.count(),
                    input.display(),
                    short(&words)
                )
            }));
            match told {
                Some(told) => told.into_frames(input, frames),
                None => frames.problems.push(format!(
                    "ffmpeg does not tell how fast {} is (else: --fps)",
                    input.display()
                )),
            }
            Ok(())
        }
    }
}

/// The beginning of its words, and where that is not all, that there were more.
fn short(words: &str) -> String {
    match words.char_indices().nth(TOLD) {
        Some((end, _)) => format!("{} …", &words[..end]),
        None => words.to_owned(),
    }
}

/// The option by which every frame is given once, however long it is shown.
fn every_frame_once(program: &Path) -> Result<&'static str> {
    let told = asked(program, &["-version".into()])?;
    let told = String::from_utf8_lossy(&told.stdout);
    let version = told.lines().find_map(|line| {
        let mut numbers = line.trim().strip_prefix("libavformat")?.split('.');
        let mut number = || numbers.next()?.trim().parse::<u32>().ok();
        Some((number()?, number()?))
    });
    Ok(match version {
        Some(version) if version < FPS_MODE => "-vsync",
        _ => "-fps_mode",
    })
}

/// Refuses what is no video that can be taken, as far as ffmpeg tells that before it reads it.
pub(super) fn look(input: &Path) -> Result<()> {
    match Told::of(&find()?, input).and_then(|told| told.refused()) {
        Some(reason) => Err(Error::File {
            path: input.to_owned(),
            reason,
        }),
        None => Ok(()),
    }
}

/// What ffmpeg tells of a file without reading it through.
struct Told(String);

/// Transfer functions of HDR, and what people call them: taken as they are, all would be grey and dull.
const HDR: [(&str, &str); 2] = [("smpte2084", "PQ"), ("arib-std-b67", "HLG")];
/// Beginnings of the names of pixel formats that have transparency.
const ALPHA: [&str; 9] = [
    "yuva", "rgba", "bgra", "argb", "abgr", "gbrap", "ya8", "ya16", "ayuv",
];

impl Told {
    /// Absent: it does not tell.
    fn of(program: &Path, input: &Path) -> Option<Self> {
        let options: [OsString; 3] = ["-nostdin".into(), "-i".into(), as_file(input)];
        // without an output it ends with an error, and has told what is in the file
        let told = asked(program, &options).ok()?;
        Some(Self(String::from_utf8_lossy(&told.stderr).into_owned()))
    }

    /// The line about the first video, which is no cover of a piece of music.
    fn video(&self) -> Option<&str> {
        let mut lines = self.0.lines();
        lines.find(|line| line.contains(" Video: ") && !line.contains("(attached pic)"))
    }

    /// Why it cannot be taken.
    fn refused(&self) -> Option<String> {
        let Some(line) = self.video() else {
            // else it could not open it, and says why when it is to read it
            let opened = self.0.contains("Input #0");
            return opened.then(|| {
                "there is no video in it that ffmpeg can read (sound alone, or no frame)".to_owned()
            });
        };
        let (word, name) = HDR.iter().find(|(word, _)| line.contains(word))?;
        Some(format!(
            "it is HDR ({name}, {word}), whose brightness means something else than that of the videos that the model knows: make an SDR video of it first (ffmpeg -i IN -vf zscale=t=linear:npl=100,tonemap=hable,zscale=p=bt709:t=bt709:m=bt709,format=yuv420p OUT.mp4)"
        ))
    }

    /// How fast it is (pictures have no speed), and what is not as one would think.
    fn into_frames(self, input: &Path, frames: &mut Frames) {
        let Some(line) = self.video() else {
            return;
        };
        let input = input.display();
        let number = |unit: &str| {
            let said = line.split(", ").find_map(|word| word.strip_suffix(unit));
            let number = said?.parse().ok();
            number.filter(|fps: &f64| fps.is_finite() && *fps > 0.0)
        };
        frames.fps = number(" fps");
        if let (Some(fps), Some(ticks)) = (frames.fps, number(" tbr"))
            // 23.98 of 24 is the same, and so are the two fields of a frame
            && [1.0, 2.0].iter().all(|n| (ticks / fps / n - 1.0).abs() > 0.02)
        {
            frames.problems.push(format!(
                "the frames of {input} come at changing intervals: each of them is taken once, {} in all, as if {fps} came in every second",
                frames.count()
            ));
        }
        let square = ["1:1", "0:1"];
        let aspect = line
            .split("SAR ")
            .nth(1)
            .and_then(|rest| rest.split(' ').next());
        if let Some(aspect) = aspect.filter(|aspect| !square.contains(aspect)) {
            frames.problems.push(format!(
                "the pixels of {input} are not square ({aspect}): they are taken as they are, so that it looks narrower or wider; scale it before to change that"
            ));
        }
        let format = line.split(", ").nth(1).unwrap_or_default();
        if ALPHA.iter().any(|alpha| format.starts_with(alpha)) {
            frames.problems.push(format!(
                "{input} has transparency, which is left out: the colours are taken as they are stored"
            ));
        }
    }
}

/// What a program writes, read by a thread of its own, so that whoever waits for it can be told to stop.
struct Pipe<'a> {
    pieces: Receiver<Vec<u8>>,
    now: Vec<u8>,
    /// Bytes of `now` that are taken.
    taken: usize,
    check_cancelled: CheckCancelled<'a>,
    /// Why it was not read to its end.
    stopped: Option<Error>,
}

impl<'a> Pipe<'a> {
    fn new(mut from: impl Read + Send + 'static, check_cancelled: CheckCancelled<'a>) -> Self {
        let (sender, pieces) = mpsc::sync_channel(WAITING);
        std::thread::spawn(move || {
            loop {
                let mut piece = vec![0; PIECE];
                match from.read(&mut piece) {
                    // an error is an end too: what is missing is seen
                    Ok(0) | Err(_) => return,
                    Ok(n) => piece.truncate(n),
                }
                if sender.send(piece).is_err() {
                    return;
                }
            }
        });
        Self {
            pieces,
            now: Vec::new(),
            taken: 0,
            check_cancelled,
            stopped: None,
        }
    }
}

impl Read for Pipe<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        while self.taken == self.now.len() {
            if let Err(e) = (self.check_cancelled)() {
                self.stopped = Some(e);
                return Err(std::io::Error::other("stopped"));
            }
            match self.pieces.recv_timeout(TURN) {
                Ok(piece) => (self.now, self.taken) = (piece, 0),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
            }
        }
        let n = into.len().min(self.now.len() - self.taken);
        into[..n].copy_from_slice(&self.now[self.taken..self.taken + n]);
        self.taken += n;
        Ok(n)
    }
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
