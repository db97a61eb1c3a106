//! A folder of png pictures.

use std::fs::{self, File};
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};

use png::{BitDepth, ColorType, Compression, Decoder, Encoder, Reader, Transformations};

use super::{CheckCancelled, Frames, Size, Writer};
use crate::error::{Error, Result, io, open};

/// Writes `frame_00001.png`, …
pub(super) struct Pictures {
    folder: PathBuf,
    size: Size,
    written: usize,
}

impl Pictures {
    pub(super) fn new(folder: &Path, size: Size) -> Result<Self> {
        fs::create_dir(folder).map_err(io(folder))?;
        Ok(Self {
            folder: folder.to_owned(),
            size,
            written: 0,
        })
    }

    fn path(&self, number: usize) -> PathBuf {
        self.folder.join(format!("frame_{number:05}.png"))
    }
}

impl Writer for Pictures {
    fn frame(&mut self, frame: &[u8]) -> Result<()> {
        self.written += 1;
        let path = self.path(self.written);
        let file = BufWriter::new(File::create(&path).map_err(io(&path))?);
        let [width, height] = sides(self.size, &path)?;
        let mut encoder = Encoder::new(file, width, height);
        encoder.set_color(ColorType::Rgb);
        encoder.set_depth(BitDepth::Eight);
        encoder.set_compression(Compression::Fast);
        let write = || {
            let mut writer = encoder.write_header()?;
            writer.write_image_data(frame)?;
            writer.finish()
        };
        write().map_err(|e| match e {
            png::EncodingError::IoError(source) => io(&path)(source),
            other => wrong(&path, &other),
        })
    }

    fn end(self: Box<Self>) -> Result<()> {
        // together: one by one each would wait for the disk
        for number in 1..=self.written {
            let path = self.path(number);
            let file = File::open(&path).map_err(io(&path))?;
            file.sync_data().map_err(io(&path))?;
        }
        Ok(())
    }
}

/// The pictures of a folder, in the order of their names; numbers in names count as numbers.
pub(super) fn names(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut names: Vec<PathBuf> = fs::read_dir(folder)
        .map_err(io(folder))?
        .flatten()
        // `._a.png` is what macOS keeps about a.png on other file systems
        .filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."))
        .map(|entry| entry.path())
        .filter(|path| {
            path.extension()
                .is_some_and(|e| e.eq_ignore_ascii_case("png"))
        })
        .collect();
    if names.is_empty() {
        return Err(wrong(folder, &"there is no png picture in it"));
    }
    names.sort_by_cached_key(|path| by_number(&path.to_string_lossy()));
    Ok(names)
}

/// A name with its numbers written alike: `a2` before `a10`.
fn by_number(name: &str) -> String {
    let mut out = String::new();
    let mut digits = String::new();
    for c in name.chars().chain(['\0']) {
        if c.is_ascii_digit() {
            digits.push(c);
            continue;
        }
        if !digits.is_empty() {
            let number = digits.trim_start_matches('0');
            out.extend(std::iter::repeat_n(
                '0',
                20_usize.saturating_sub(number.len()),
            ));
            out.push_str(number);
            digits.clear();
        }
        out.push(c);
    }
    out
}

/// Reads all pictures of a folder.
pub(super) fn read(
    folder: &Path,
    frames: &mut Frames,
    check_cancelled: CheckCancelled<'_>,
) -> Result<()> {
    let (mut clear, mut moving) = (Vec::new(), Vec::new());
    for path in names(folder)? {
        check_cancelled()?;
        let mut reader = opened(&path)?;
        frames.expect(size_of(&reader), &path)?;
        let animation = reader.info().animation_control();
        let is_moving = animation.is_some_and(|animation| animation.num_frames > 1);
        let (bytes, is_clear) = picture(&mut reader, &path)?;
        frames.push(&bytes);
        if is_clear {
            clear.push(path.clone());
        }
        if is_moving {
            moving.push(path);
        }
    }
    let named = |paths: &[PathBuf]| {
        let first = paths.first().map(|path| path.display().to_string());
        let more = match paths.len() {
            0 | 1 => String::new(),
            n => format!(" and {} more", n - 1),
        };
        first.map(|first| format!("{first}{more}"))
    };
    frames.problems.extend(named(&clear).map(|which| {
        format!("{which}: transparency is left out, and the colours are taken as they are stored")
    }));
    frames.problems.extend(named(&moving).map(|which| {
        format!("{which}: of an animated png in a folder the first picture alone is taken; encode the file itself to have them all")
    }));
    Ok(())
}

/// Width and height, of which only the header is read.
pub(super) fn size(path: &Path) -> Result<Size> {
    opened(path).map(|reader| size_of(&reader))
}

type Opened = Reader<BufReader<File>>;

fn opened(path: &Path) -> Result<Opened> {
    let mut decoder = Decoder::new(BufReader::new(open(path)?));
    decoder.set_transformations(Transformations::normalize_to_color8());
    decoder.read_info().map_err(|e| wrong(path, &e))
}

fn size_of(reader: &Opened) -> Size {
    let about = reader.info();
    let [width, height] = [about.width, about.height].map(|side| side as usize);
    Size { width, height }
}

/// The pixels as RGB, and whether some of them are transparent.
fn picture(reader: &mut Opened, path: &Path) -> Result<(Vec<u8>, bool)> {
    let length = reader
        .output_buffer_size()
        .ok_or_else(|| wrong(path, &"it is too large"))?;
    let mut bytes = vec![0; length];
    let info = reader.next_frame(&mut bytes).map_err(|e| wrong(path, &e))?;
    bytes.truncate(info.buffer_size());
    let is_clear = |pixel: usize| {
        let mut alphas = bytes.chunks_exact(pixel).map(|p| p[pixel - 1]);
        alphas.any(|alpha| alpha < u8::MAX)
    };
    Ok(match info.color_type {
        ColorType::Rgba => {
            let pixels = bytes.chunks_exact(4).flat_map(|p| [p[0], p[1], p[2]]);
            (pixels.collect(), is_clear(4))
        }
        ColorType::GrayscaleAlpha => {
            let pixels = bytes.chunks_exact(2).flat_map(|p| [p[0]; 3]);
            (pixels.collect(), is_clear(2))
        }
        ColorType::Rgb => (bytes, false),
        ColorType::Grayscale => (bytes.iter().flat_map(|g| [*g; 3]).collect(), false),
        ColorType::Indexed => return Err(wrong(path, &"its palette is missing")),
    })
}

fn sides(size: Size, path: &Path) -> Result<[u32; 2]> {
    let edge = |n: usize| u32::try_from(n).map_err(|_large| wrong(path, &"it is too large"));
    Ok([edge(size.width)?, edge(size.height)?])
}

fn wrong(path: &Path, why: &dyn std::fmt::Display) -> Error {
    Error::File {
        path: path.to_owned(),
        reason: why.to_string(),
    }
}
