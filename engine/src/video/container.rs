//! Whether a file ends before the parts that it announces: versions of ffmpeg pass over that without a word.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Boxes of mp4 and mov that a whole file has to their ends. Others may be rubbish behind the last one.
const BOXES: [&[u8; 4]; 3] = [b"mdat", b"moov", b"moof"];
/// A file of more boxes than these is left to ffmpeg.
const MOST: usize = 1 << 20;

/// What is missing, where the file says how long it is and is shorter; absent: nothing, or nobody knows.
pub(super) fn cut_short(path: &Path) -> Option<String> {
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    let needed = needed(&mut file, length)?;
    (needed > length).then(|| {
        format!(
            "it is cut short: it has {length} bytes of {needed} or more; copy or make it once more"
        )
    })
}

/// Bytes that the file must have.
fn needed(file: &mut (impl Read + Seek), length: u64) -> Option<u64> {
    let mut head = [0; 12];
    file.read_exact(&mut head).ok()?;
    let word = |at: usize| [head[at], head[at + 1], head[at + 2], head[at + 3]];
    if &word(0) == b"RIFF" && &word(8) == b"AVI " {
        let size = u32::from_le_bytes(word(4));
        // what a writer leaves that could not go back
        let known = size != 0 && size != u32::MAX;
        return known.then(|| u64::from(size) + 8);
    }
    if &word(4) != b"ftyp" {
        return None;
    }
    let mut at = 0_u64;
    for _ in 0..MOST {
        let mut head = [0; 16];
        file.seek(SeekFrom::Start(at)).ok()?;
        if at == length || file.read_exact(&mut head[..8]).is_err() {
            break;
        }
        let [a, b, c, d, kind @ ..] = head[..8].try_into().ok().map(|head: [u8; 8]| head)?;
        let size = match u32::from_be_bytes([a, b, c, d]) {
            // to the end, whatever that is
            0 => break,
            1 => {
                file.read_exact(&mut head[8..]).ok()?;
                u64::from_be_bytes(head[8..].try_into().ok()?)
            }
            size => size.into(),
        };
        if size < 8 {
            break;
        }
        let end = at.checked_add(size)?;
        if end > length {
            return BOXES.contains(&&kind).then_some(end);
        }
        at = end;
    }
    Some(at)
}
