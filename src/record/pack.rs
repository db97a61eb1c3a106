//! The packed form of the stream: gzip members one after the other.
//!
//! A member is closed after [`MEMBER`] bytes of text and flushed (`Z_SYNC_FLUSH`) at
//! least once a second, so whatever was flushed can be read although its member never
//! ends, and damage costs one member. `zcat` reads such a file, and one that is cut.

use std::io::{self, BufRead, Read, Write};

use flate2::Compression;
use flate2::write::{GzDecoder, GzEncoder};

/// Text in a member. Larger ones pack no better: deflate looks back 32 KiB.
const MEMBER: u64 = 1 << 20;
/// First bytes of a member: its mark, and deflate as the only method there is.
pub(super) const MAGIC: [u8; 3] = [0x1f, 0x8b, 0x08];
/// Packed bytes a look: at most a thousand times as much text.
const CHUNK: usize = 16 << 10;

/// Bytes behind a damaged place in which the next member is looked for: many times the longest
/// member, so the rest holds no record, such as the zeros of a sparse file.
const LONGEST_SEARCH: usize = 64 << 20;

/// Writes text packed.
#[derive(Debug)]
pub(super) struct Packer<W: Write> {
    /// Absent only after an error.
    out: Option<GzEncoder<W>>,
    text: u64,
    flushed: bool,
}

fn broken() -> io::Error {
    io::Error::other("a write before has failed")
}

impl<W: Write> Packer<W> {
    pub(super) fn new(out: W) -> Self {
        Self {
            out: Some(GzEncoder::new(out, Compression::default())),
            text: 0,
            flushed: true,
        }
    }

    /// The writer underneath.
    pub(super) fn get_ref(&self) -> Option<&W> {
        self.out.as_ref().map(GzEncoder::get_ref)
    }

    /// Adds a piece that is never torn between two members.
    pub(super) fn add(&mut self, piece: &[u8]) -> io::Result<()> {
        if self.text >= MEMBER {
            self.close_member()?;
        }
        self.out.as_mut().ok_or_else(broken)?.write_all(piece)?;
        self.text += piece.len() as u64;
        self.flushed = false;
        Ok(())
    }

    /// Hands on all that was added; nothing is written where nothing was.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        if !self.flushed {
            self.out.as_mut().ok_or_else(broken)?.flush()?;
            self.flushed = true;
        }
        Ok(())
    }

    /// Ends the member; what is added next begins another.
    pub(super) fn close_member(&mut self) -> io::Result<()> {
        if self.text > 0 {
            let out = self.out.take().ok_or_else(broken)?.finish()?;
            *self = Self::new(out);
        }
        Ok(())
    }
}

/// What a stream of bytes is.
#[derive(Debug)]
enum Form {
    /// Nothing was read yet.
    Unknown,
    /// Text, as before format 2.
    Plain,
    /// Within a member, or before the next; `begun`: bytes of it were read.
    Packed {
        member: Box<GzDecoder<Vec<u8>>>,
        begun: bool,
    },
    /// Behind damage: the next member is looked for. The last bytes that may be the
    /// beginning of its mark.
    Lost { kept: Vec<u8>, searched: usize },
    /// No member came for long: the rest is passed over.
    GivenUp,
}

/// Turns packed bytes, as they come, into text. Plain text passes.
#[derive(Debug)]
pub(super) struct Unpacker {
    form: Form,
    damages: u64,
}

fn member() -> Form {
    Form::Packed {
        member: Box::new(GzDecoder::new(Vec::new())),
        begun: false,
    }
}

impl Unpacker {
    pub(super) const fn new() -> Self {
        Self {
            form: Form::Unknown,
            damages: 0,
        }
    }

    /// Damaged places so far.
    pub(super) const fn damages(&self) -> u64 {
        self.damages
    }

    /// Ends the stream; whether a packed one may end here.
    pub(super) fn finish(&mut self) -> bool {
        match std::mem::replace(&mut self.form, Form::Unknown) {
            Form::Unknown | Form::Plain | Form::Lost { .. } | Form::GivenUp => true,
            Form::Packed { mut member, begun } => !begun || member.try_finish().is_ok(),
        }
    }

    /// Adds the text of `bytes` to `text`. Behind a damaged place a line ends, and it
    /// goes on with the next member.
    pub(super) fn feed(&mut self, bytes: &[u8], text: &mut Vec<u8>) {
        let mut joined;
        let mut rest = bytes;
        if let Form::Lost { kept, .. } = &mut self.form {
            joined = std::mem::take(kept);
            joined.extend_from_slice(bytes);
            rest = &joined;
        }
        while !rest.is_empty() {
            rest = self.step(rest, text);
        }
        if let Form::Packed { member, .. } = &mut self.form {
            // an error here comes again with the next bytes
            let _ = member.flush();
            text.append(member.get_mut());
        }
    }

    fn step<'a>(&mut self, rest: &'a [u8], text: &mut Vec<u8>) -> &'a [u8] {
        match &mut self.form {
            Form::Unknown => {
                self.form = if rest[0] == MAGIC[0] {
                    member()
                } else {
                    Form::Plain
                };
                rest
            }
            Form::Plain => {
                text.extend_from_slice(rest);
                &[]
            }
            Form::GivenUp => &[],
            Form::Lost { kept, searched } => {
                *searched = searched.saturating_add(rest.len());
                if let Some(at) = find(rest) {
                    self.form = member();
                    &rest[at..]
                } else if *searched > LONGEST_SEARCH {
                    self.form = Form::GivenUp;
                    &[]
                } else {
                    *kept = rest[rest.len().saturating_sub(MAGIC.len() - 1)..].to_vec();
                    &[]
                }
            }
            Form::Packed { member: m, begun } => {
                let was_begun = std::mem::replace(begun, true);
                match m.write(rest) {
                    Ok(0) => match m.try_finish() {
                        Ok(()) => {
                            text.append(m.get_mut());
                            self.form = member();
                            rest
                        }
                        Err(_damaged) => self.lose(rest, was_begun, text),
                    },
                    Ok(n) => &rest[n..],
                    Err(_damaged) => self.lose(rest, was_begun, text),
                }
            }
        }
    }

    fn lose<'a>(&mut self, rest: &'a [u8], begun: bool, text: &mut Vec<u8>) -> &'a [u8] {
        if let Form::Packed { member, .. } = &mut self.form {
            let _ = member.flush();
            text.append(member.get_mut());
        }
        text.push(b'\n');
        self.damages += 1;
        self.form = Form::Lost {
            kept: Vec::new(),
            searched: 0,
        };
        // a mark that leads nowhere is not taken twice
        &rest[usize::from(!begun)..]
    }
}

fn find(bytes: &[u8]) -> Option<usize> {
    bytes.windows(MAGIC.len()).position(|w| w == MAGIC)
}

/// The text of the last member in `bytes`, which may begin anywhere; plain text is given
/// as it is.
pub(super) fn last_member(bytes: &[u8], is_packed: bool) -> Vec<u8> {
    /// Marks that are tried: packed bytes may look like one.
    const TRIES: usize = 8;
    if !is_packed {
        return bytes.to_vec();
    }
    let mut end = bytes.len();
    for _ in 0..TRIES {
        let Some(at) = bytes[..end].windows(MAGIC.len()).rposition(|w| w == MAGIC) else {
            break;
        };
        let mut unpacker = Unpacker::new();
        let mut text = Vec::new();
        unpacker.feed(&bytes[at..], &mut text);
        if unpacker.damages() == 0 && !text.is_empty() {
            return text;
        }
        end = at + MAGIC.len() - 1;
    }
    Vec::new()
}

/// Text of a packed or plain stream as a reader.
#[derive(Debug)]
pub(super) struct TextReader<R> {
    inner: R,
    unpacker: Unpacker,
    text: Vec<u8>,
    at: usize,
}

impl<R: Read> TextReader<R> {
    pub(super) const fn new(inner: R) -> Self {
        Self {
            inner,
            unpacker: Unpacker::new(),
            text: Vec::new(),
            at: 0,
        }
    }

    /// Damaged places so far.
    pub(super) const fn damages(&self) -> u64 {
        self.unpacker.damages()
    }

    /// Behind the end: whether a packed stream may end there.
    pub(super) fn finish(&mut self) -> bool {
        self.unpacker.finish()
    }
}

impl<R: Read> Read for TextReader<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.fill_buf()?.read(buf)?;
        self.consume(n);
        Ok(n)
    }
}

impl<R: Read> BufRead for TextReader<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.at == self.text.len() {
            self.text.clear();
            self.at = 0;
            let mut packed = [0; CHUNK];
            let n = match self.inner.read(&mut packed) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            if n == 0 {
                break;
            }
            self.unpacker.feed(&packed[..n], &mut self.text);
        }
        Ok(&self.text[self.at..])
    }

    fn consume(&mut self, n: usize) {
        self.at = (self.at + n).min(self.text.len());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packed(pieces: &[&[u8]], close: bool) -> Vec<u8> {
        let mut packer = Packer::new(Vec::new());
        for piece in pieces {
            packer.add(piece).unwrap();
            packer.flush().unwrap();
            if close {
                packer.close_member().unwrap();
            }
        }
        packer.close_member().unwrap();
        packer.get_ref().unwrap().clone()
    }

    fn unpacked(bytes: &[u8], chunk: usize) -> (Vec<u8>, Unpacker) {
        let mut unpacker = Unpacker::new();
        let mut text = Vec::new();
        for part in bytes.chunks(chunk) {
            unpacker.feed(part, &mut text);
        }
        (text, unpacker)
    }

    #[test]
    fn what_was_flushed_is_read_though_the_member_never_ends() {
        let mut packer = Packer::new(Vec::new());
        packer.add(b"one\n").unwrap();
        packer.flush().unwrap();
        let first = packer.get_ref().unwrap().len();
        packer.flush().unwrap();
        assert_eq!(packer.get_ref().unwrap().len(), first, "nothing was added");
        packer.add(b"two\n").unwrap();
        packer.flush().unwrap();
        let bytes = packer.get_ref().unwrap().clone();
        let (text, mut unpacker) = unpacked(&bytes, 3);
        assert_eq!(text, b"one\ntwo\n");
        assert!(!unpacker.finish());
        assert_eq!(unpacked(&bytes[..first], 64).0, b"one\n");
        packer.close_member().unwrap();
        let whole = packer.get_ref().unwrap().clone();
        let (text, mut unpacker) = unpacked(&whole, 7);
        assert_eq!(text, b"one\ntwo\n");
        assert!(unpacker.finish() && unpacker.damages() == 0);
    }

    #[test]
    fn a_member_behind_long_damage_is_not_looked_for() {
        let text_behind = |zeros: usize| {
            let mut unpacker = Unpacker::new();
            let mut text = Vec::new();
            unpacker.feed(&packed(&[b"alpha\n"], true), &mut text);
            for _ in 0..zeros / CHUNK {
                unpacker.feed(&[0; CHUNK], &mut text);
            }
            unpacker.feed(&packed(&[b"beta\n"], true), &mut text);
            assert!(unpacker.finish());
            text
        };
        assert_eq!(text_behind(LONGEST_SEARCH / 64), b"alpha\n\nbeta\n");
        assert_eq!(text_behind(LONGEST_SEARCH + 4 * CHUNK), b"alpha\n\n");
    }

    #[test]
    fn damage_costs_one_member() {
        let mut bytes = packed(&[b"alpha\n", b"beta\n", b"gamma\n"], true);
        let second = 1 + find(&bytes[1..]).unwrap();
        for byte in &mut bytes[second + 10..second + 14] {
            *byte ^= 0xff;
        }
        for chunk in [1, 5, 4096] {
            let (text, unpacker) = unpacked(&bytes, chunk);
            let text = String::from_utf8_lossy(&text).into_owned();
            assert!(
                text.starts_with("alpha\n") && text.ends_with("gamma\n"),
                "{text:?}"
            );
            assert!(unpacker.damages() >= 1);
        }
    }

    #[test]
    fn the_last_member_is_found_from_anywhere() {
        let bytes = packed(&[b"alpha\n", b"omega\n"], true);
        assert_eq!(last_member(&bytes[5..], true), b"omega\n");
        assert_eq!(last_member(b"text\n", false), b"text\n");
        assert_eq!(last_member(b"nothing", true), b"");
    }

    proptest! {
        #[test]
        fn text_comes_back_in_any_pieces(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..200), 1..20),
            chunk in 1_usize..100,
            close in any::<bool>(),
        ) {
            let views: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
            let bytes = packed(&views, close);
            let (text, unpacker) = unpacked(&bytes, chunk);
            prop_assert_eq!(text, pieces.concat());
            prop_assert_eq!(unpacker.damages(), 0);
            let mut read = Vec::new();
            TextReader::new(&bytes[..]).read_to_end(&mut read).unwrap();
            prop_assert_eq!(read, pieces.concat());
        }

        #[test]
        fn no_bytes_break_it(mut bytes in prop::collection::vec(any::<u8>(), 0..2000), chunk in 1_usize..100) {
            if bytes.len() > 3 {
                bytes[..3].copy_from_slice(&MAGIC);
            }
            unpacked(&bytes, chunk);
            last_member(&bytes, true);
        }
    }
}
