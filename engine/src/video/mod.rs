//! Videos as files: mp4 through ffmpeg, gif, a folder of png pictures.
//!
//! Frames are 8-bit RGB, row by row.

mod container;
mod decoded;
mod ffmpeg;
mod gif;
mod place;
mod png;
mod program;

use std::path::Path;

pub use self::place::{
    can_be_written, clear, into_place, is_free_of, is_not_of, is_picture, replaceable,
};
pub(crate) use self::place::{free_name, whole};

use crate::error::{Error, Result, open};

/// Frames a second that a gif can have: its delays are whole hundredths of a second, and viewers take less than two of
/// them for ten.
pub const MOST_GIF_FPS: f64 = 50.0;

/// Width and height in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Pixels of a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
}

impl Size {
    /// Bytes of a frame.
    pub const fn frame(self) -> usize {
        self.width * self.height * 3
    }
}

/// What a video is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// H.264 or what ffmpeg has, in an mp4 container.
    Mp4,
    /// GIF: 256 colours a frame.
    Gif,
    /// A folder of png pictures: `frame_00001.png`, …
    Pictures,
}

impl Kind {
    /// By the name of the output; one without an ending, or of a folder that is there, is a folder.
    pub fn of(output: &Path) -> Result<Self> {
        let ends = output
            .extension()
            .map(|ends| ends.to_string_lossy().to_lowercase());
        match ends.as_deref() {
            Some("mp4") => Ok(Self::Mp4),
            Some("gif") => Ok(Self::Gif),
            None => Ok(Self::Pictures),
            Some(_) if output.is_dir() => Ok(Self::Pictures),
            Some(other) => Err(Error::File {
                path: output.to_owned(),
                reason: format!(
                    "`.{other}` is none of the forms that can be written: .mp4, .gif, or a name without an ending for a folder of png pictures"
                ),
            }),
        }
    }
}

/// Whether this machine can write it with frames of this size, so many a second.
pub fn writable(kind: Kind, size: Size, fps: f64) -> Result<()> {
    match kind {
        Kind::Mp4 => ffmpeg::can_write(size, fps),
        Kind::Gif | Kind::Pictures => Ok(()),
    }
}

/// What can be told of a video before it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// Of its first frame.
    pub size: Size,
    /// How many frames; absent: that is not known before all are read.
    pub frames: Option<usize>,
}

/// Whether a video can be read from `input`, as far as that is known before it is, and what is told of it; `None`: what
/// ffmpeg reads, of which nothing is known before.
pub fn look(input: &Path) -> Result<Option<About>> {
    if input.is_dir() {
        let names = png::names(input)?;
        let size = names.first().map(|first| png::size(first)).transpose()?;
        let frames = Some(names.len());
        return Ok(size.map(|size| About { size, frames }));
    }
    drop(open(input)?);
    if is_gif(input) {
        let size = gif::size(input)?;
        return Ok(Some(About { size, frames: None }));
    }
    if let Some(reason) = container::cut_short(input) {
        return Err(Error::File {
            path: input.to_owned(),
            reason,
        });
    }
    program::can_read()?;
    decoded::look(input)?;
    Ok(None)
}

fn is_gif(path: &Path) -> bool {
    path.extension()
        .is_some_and(|ends| ends.eq_ignore_ascii_case("gif"))
}

/// What is read at most: a file of a few bytes may hold anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Frames.
    pub frames: usize,
    /// Pixels of a side.
    pub side: usize,
    /// Bytes of all frames.
    pub bytes: u64,
}

impl Limits {
    /// Whatever is there.
    pub const NONE: Self = Self {
        frames: usize::MAX,
        side: usize::MAX,
        bytes: u64::MAX,
    };

    /// Why so many frames of this size are too much.
    pub(crate) fn exceeded(&self, frames: usize, size: Size) -> Option<String> {
        let Size { width, height } = size;
        let most = self.side;
        if width > most || height > most {
            return Some(format!(
                "{width} x {height} pixels, and at most {most} x {most} are read: scale it down"
            ));
        }
        if frames > self.frames {
            return Some(format!(
                "more than {} frames, which is the most that is read: cut it into shorter ones",
                self.frames
            ));
        }
        // no overflow where the limits are those of a machine: 65,536 frames of 16,384 x 16,384 pixels have 46 bits
        let bytes = (frames as u64).saturating_mul(size.frame() as u64);
        (bytes > self.bytes).then(|| {
            format!(
                "{frames} frames of {width} x {height} pixels or more, and the memory that there can be here is enough for {} MiB of them: cut it into shorter ones, or scale it down",
                self.bytes >> 20
            )
        })
    }
}

/// Frames of a video that was read.
#[derive(Debug)]
pub struct Frames {
    /// Of each.
    pub size: Size,
    /// All, one behind the other.
    pub bytes: Vec<u8>,
    /// Frames a second, where the file says so.
    pub fps: Option<f64>,
    /// What is not as one would think, in whole sentences.
    pub problems: Vec<String>,
    limits: Limits,
}

impl Frames {
    /// How many.
    pub fn count(&self) -> usize {
        self.bytes.len() / self.size.frame().max(1)
    }

    /// Whether one more of this size may come: to be asked before memory is taken for it. It must be as large as those
    /// before.
    fn expect(&mut self, size: Size, path: &Path) -> Result<()> {
        let wrong = |reason: String| {
            Err(Error::File {
                path: path.to_owned(),
                reason,
            })
        };
        if self.bytes.is_empty() {
            self.size = size;
        }
        if size != self.size {
            return wrong(format!(
                "{} x {} pixels, where the frames before have {} x {}",
                size.width, size.height, self.size.width, self.size.height
            ));
        }
        match self.limits.exceeded(self.count() + 1, size) {
            Some(reason) => wrong(reason),
            None => Ok(()),
        }
    }

    /// Adds one that was expected.
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }
}

/// Asked often whether work may go on; its error ends it.
pub type CheckCancelled<'a> = &'a mut dyn FnMut() -> Result<()>;

/// Reads a video, a folder of png pictures, a gif, or anything that ffmpeg reads, if it is not more than `limits`.
pub fn read(input: &Path, limits: Limits, check_cancelled: CheckCancelled<'_>) -> Result<Frames> {
    let mut frames = Frames {
        size: Size {
            width: 0,
            height: 0,
        },
        bytes: Vec::new(),
        fps: None,
        problems: Vec::new(),
        limits,
    };
    if input.is_dir() {
        png::read(input, &mut frames, check_cancelled)?;
    } else if is_gif(input) {
        gif::read(input, &mut frames, check_cancelled)?;
    } else {
        decoded::read(input, &mut frames, check_cancelled)?;
    }
    if frames.bytes.is_empty() {
        return Err(Error::File {
            path: input.to_owned(),
            reason: "there is no frame in it".to_owned(),
        });
    }
    Ok(frames)
}

/// Takes the frames of a video one after the other.
trait Writer {
    fn frame(&mut self, frame: &[u8]) -> Result<()>;
    fn end(self: Box<Self>) -> Result<()>;
}

/// Writes `frames` as `part`, a name that is ours alone on the same file system, and puts it in the place of `output`
/// when it is whole; `force`: in the place of what is there. The iterator gives any number of frames at a time; `told` hears how many are written, `placing` what
/// is about to be put in its place.
pub fn write(
    (output, part): (&Path, &Path),
    (size, fps): (Size, f64),
    force: bool,
    frames: impl Iterator<Item = Result<Vec<u8>>>,
    mut told: impl FnMut(usize) -> Result<()>,
    placing: impl FnOnce(&Path) -> Result<()>,
) -> Result<()> {
    let kind = Kind::of(output)?;
    clear(part)?;
    let work = || {
        let mut writer: Box<dyn Writer> = match kind {
            Kind::Mp4 => Box::new(ffmpeg::Mp4::new(part, size, fps)?),
            Kind::Gif => Box::new(gif::Gif::new(part, size, fps)?),
            Kind::Pictures => Box::new(png::Pictures::new(part, size)?),
        };
        let mut done = 0;
        for bytes in frames {
            for frame in bytes?.chunks_exact(size.frame()) {
                writer.frame(frame)?;
                done += 1;
                told(done)?;
            }
        }
        writer.end()
    };
    if let Err(e) = work() {
        // half a file is of no use
        let _ = clear(part);
        return Err(e);
    }
    placing(part)?;
    into_place(part, output, force)
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_pictures;
#[cfg(test)]
mod tests_of_programs;
