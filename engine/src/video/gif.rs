//! GIF.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read};
use std::path::Path;

use gif::{
    ColorOutput, DecodeOptions, Decoder, DisposalMethod, Encoder, EncodingError, Frame,
    MemoryLimit, Repeat,
};

use super::{CheckCancelled, Frames, Size, Writer};
use crate::error::{Error, Result, io, open};

/// Of the quantiser, from 1 (best) to 30 (fastest): the step between the pixels that it learns from.
const SPEED: i32 = 10;
/// A picture larger than this in memory is not read.
const MOST: u64 = 1 << 30;

/// Writes a gif that repeats without end.
pub(super) struct Gif {
    encoder: Encoder<BufWriter<File>>,
    sides: [u16; 2],
    fps: f64,
    written: u32,
    shown: u32,
    path: std::path::PathBuf,
}

impl Gif {
    pub(super) fn new(path: &Path, size: Size, fps: f64) -> Result<Self> {
        let edge = |n: usize| {
            u16::try_from(n).map_err(|_large| Error::File {
                path: path.to_owned(),
                reason: format!("a gif has sides of at most {} pixels", u16::MAX),
            })
        };
        let sides = [edge(size.width)?, edge(size.height)?];
        let file = File::create(path).map_err(io(path))?;
        let mut encoder = Encoder::new(BufWriter::new(file), sides[0], sides[1], &[])
            .map_err(|e| failed(path, e))?;
        encoder
            .set_repeat(Repeat::Infinite)
            .map_err(|e| failed(path, e))?;
        Ok(Self {
            encoder,
            sides,
            fps,
            written: 0,
            shown: 0,
            path: path.to_owned(),
        })
    }
}

impl Writer for Gif {
    fn frame(&mut self, frame: &[u8]) -> Result<()> {
        let [width, height] = self.sides;
        let mut picture = Frame::from_rgb_speed(width, height, frame, SPEED);
        self.written += 1;
        // delays are hundredths of a second: they differ by one so that the sum is right
        let end = f64::from(self.written) * 100.0 / self.fps;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a gif of years is none"
        )]
        let end = end.round() as u32;
        picture.delay = u16::try_from(end.saturating_sub(self.shown))
            .unwrap_or(u16::MAX)
            .max(1);
        self.shown = end;
        self.encoder
            .write_frame(&picture)
            .map_err(|e| failed(&self.path, e))
    }

    fn end(self: Box<Self>) -> Result<()> {
        let path = self.path;
        let buffer = self.encoder.into_inner().map_err(|e| failed(&path, e))?;
        let file = buffer.into_inner().map_err(|e| io(&path)(e.into_error()))?;
        file.sync_data().map_err(io(&path))
    }
}

fn wrong(path: &Path) -> impl Fn(gif::DecodingError) -> Error {
    move |e| Error::File {
        path: path.to_owned(),
        reason: e.to_string(),
    }
}

/// Opens it, and reads its header.
fn opened(path: &Path) -> Result<Decoder<BufReader<File>>> {
    let file = open(path)?;
    let mut options = DecodeOptions::new();
    options.set_color_output(ColorOutput::RGBA);
    if let Some(most) = std::num::NonZeroU64::new(MOST) {
        options.set_memory_limit(MemoryLimit::Bytes(most));
    }
    options.read_info(BufReader::new(file)).map_err(wrong(path))
}

fn size_of<R: Read>(decoder: &Decoder<R>) -> Size {
    Size {
        width: decoder.width().into(),
        height: decoder.height().into(),
    }
}

/// Width and height, of which only the header is read.
pub(super) fn size(path: &Path) -> Result<Size> {
    opened(path).map(|decoder| size_of(&decoder))
}

/// Reads every frame as it is shown.
pub(super) fn read(
    path: &Path,
    frames: &mut Frames,
    check_cancelled: CheckCancelled<'_>,
) -> Result<()> {
    let mut decoder = opened(path)?;
    let size = size_of(&decoder);
    frames.expect(size, path)?;
    let mut canvas = vec![0; size.frame()];
    let mut hundredths = 0_u32;
    let mut count = 0_u32;
    while let Some(frame) = decoder.read_next_frame().map_err(wrong(path))? {
        check_cancelled()?;
        frames.expect(size, path)?;
        let before = canvas.clone();
        let area = Area::of(frame, size);
        area.paint(&mut canvas, &frame.buffer);
        frames.push(&canvas);
        hundredths += u32::from(frame.delay);
        count += 1;
        match frame.dispose {
            DisposalMethod::Previous => canvas = before,
            DisposalMethod::Background => area.clear(&mut canvas),
            DisposalMethod::Any | DisposalMethod::Keep => {}
        }
    }
    if hundredths > 0 {
        frames.fps = Some(f64::from(count) * 100.0 / f64::from(hundredths));
    }
    Ok(())
}

/// The part of the canvas that a frame covers.
struct Area {
    left: usize,
    top: usize,
    width: usize,
    height: usize,
    size: Size,
}

impl Area {
    fn of(frame: &Frame<'_>, size: Size) -> Self {
        let [left, top, width, height] =
            [frame.left, frame.top, frame.width, frame.height].map(usize::from);
        Self {
            left,
            top,
            width,
            height,
            size,
        }
    }

    /// Place of a pixel of the frame on the canvas, if it lies on it.
    fn place(&self, at: usize) -> Option<usize> {
        let (x, y) = (
            self.left + at % self.width.max(1),
            self.top + at / self.width.max(1),
        );
        (x < self.size.width && y < self.size.height).then_some((y * self.size.width + x) * 3)
    }

    fn paint(&self, canvas: &mut [u8], rgba: &[u8]) {
        for (at, pixel) in rgba.chunks_exact(4).enumerate() {
            if let Some(place) = self.place(at).filter(|_| pixel[3] > 0) {
                canvas[place..place + 3].copy_from_slice(&pixel[..3]);
            }
        }
    }

    fn clear(&self, canvas: &mut [u8]) {
        for place in (0..self.width * self.height).filter_map(|at| self.place(at)) {
            canvas[place..place + 3].fill(0);
        }
    }
}

fn failed(path: &Path, e: EncodingError) -> Error {
    match e {
        EncodingError::Io(source) => io(path)(source),
        other => Error::File {
            path: path.to_owned(),
            reason: other.to_string(),
        },
    }
}
