//! Videos as files: mp4 through ffmpeg, gif, a folder of png pictures.
//!
//! Frames are 8-bit RGB, row by row.

mod ffmpeg;
mod gif;
mod place;
mod png;

use std::path::Path;

pub use self::place::{can_be_written, clear, into_place, is_free_of, is_picture, replaceable};
pub(crate) use self::place::{free_name, whole};

use crate::error::{Error, Result, open};

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

/// Whether this machine can write it.
pub fn writable(kind: Kind) -> Result<()> {
    match kind {
        Kind::Mp4 => ffmpeg::can_write(),
        Kind::Gif | Kind::Pictures => Ok(()),
    }
}

/// Whether a video can be read from `input`, as far as its name tells.
pub fn readable(input: &Path) -> Result<()> {
    if input.is_dir() {
        return png::names(input).map(drop);
    }
    drop(open(input)?);
    if is_gif(input) {
        return Ok(());
    }
    ffmpeg::find().map(drop)
}

fn is_gif(path: &Path) -> bool {
    path.extension()
        .is_some_and(|ends| ends.eq_ignore_ascii_case("gif"))
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
}

impl Frames {
    /// How many.
    pub fn count(&self) -> usize {
        self.bytes.len() / self.size.frame().max(1)
    }

    /// Adds one, which must be as large as those before.
    fn push(&mut self, size: Size, bytes: &[u8], path: &Path) -> Result<()> {
        if self.bytes.is_empty() {
            self.size = size;
        }
        if size != self.size {
            return Err(Error::File {
                path: path.to_owned(),
                reason: format!(
                    "{} x {} pixels, where the frames before have {} x {}",
                    size.width, size.height, self.size.width, self.size.height
                ),
            });
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }
}

/// Reads a video: a folder of png pictures, a gif, or anything that ffmpeg reads.
pub fn read(input: &Path) -> Result<Frames> {
    let mut frames = Frames {
        size: Size {
            width: 0,
            height: 0,
        },
        bytes: Vec::new(),
        fps: None,
    };
    if input.is_dir() {
        png::read(input, &mut frames)?;
    } else if is_gif(input) {
        gif::read(input, &mut frames)?;
    } else {
        ffmpeg::read(input, &mut frames)?;
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
