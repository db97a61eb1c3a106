//! File locks: `/proc/locks`.

/// One lock that is held, or waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileLock {
    /// Number of the lock; those that wait for it have the same.
    id: u64,
    /// It is waited for, not held.
    waits: bool,
    /// Who took it, or waits; none: the kernel does not say (a lock of an open file).
    pid: Option<u32>,
    /// Device and inode.
    file: (u32, u32, u64),
}

/// Who holds the lock that `pid` waits for, on the file with this device and inode where
/// they are known. None: nobody is seen to hold it. `Some(None)`: somebody without a name.
pub(super) fn holder(
    locks: &[FileLock],
    pid: u32,
    file: Option<(u32, u32, u64)>,
) -> Option<Option<u32>> {
    let held = |lock: &&FileLock| !lock.waits;
    let same_inode = |lock: &&FileLock| file.is_some_and(|(.., inode)| lock.file.2 == inode);
    let mut waiting = locks.iter().filter(|l| l.waits && l.pid == Some(pid));
    // file systems like btrfs and overlayfs have another device number here than in stat
    let waits = waiting.clone().find(same_inode).or_else(|| waiting.next());
    if let Some(waits) = waits {
        let under = locks.iter().filter(held).find(|l| l.id == waits.id);
        return under.map(|l| l.pid);
    }
    let whole = locks.iter().filter(held).find(|l| Some(l.file) == file);
    let whole = whole.filter(|l| l.pid != Some(pid));
    whole.map(|l| l.pid)
}

/// Reads the lines that have the usual form, at most `most`.
pub(super) fn parse(text: &str, most: usize) -> Vec<FileLock> {
    text.lines().filter_map(line).take(most).collect()
}

/// `1: -> FLOCK  ADVISORY  WRITE 22412 fe:00:5580235 0 EOF`.
fn line(text: &str) -> Option<FileLock> {
    let mut words = text.split_ascii_whitespace();
    let id = words.next()?.strip_suffix(':')?.parse().ok()?;
    let class = words.next()?;
    let waits = class == "->";
    if waits {
        words.next()?;
    }
    let (_mode, _kind) = (words.next()?, words.next()?);
    let pid = words.next()?.parse::<i64>().ok()?;
    let mut file = words.next()?.split(':');
    let mut hex = || u32::from_str_radix(file.next()?, 16).ok();
    let (major, minor) = (hex()?, hex()?);
    Some(FileLock {
        id,
        waits,
        pid: u32::try_from(pid).ok().filter(|pid| *pid > 0),
        file: (major, minor, file.next()?.parse().ok()?),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LOCKS: &str = "1: FLOCK  ADVISORY  WRITE 100 fe:00:5580235 0 EOF\n\
                         1: -> FLOCK  ADVISORY  WRITE 200 fe:00:5580235 0 EOF\n\
                         1:  -> FLOCK  ADVISORY  WRITE 201 fe:00:5580235 0 EOF\n\
                         2: POSIX  ADVISORY  READ 300 08:01:77 0 EOF\n\
                         3: OFDLCK ADVISORY  WRITE -1 08:01:78 0 EOF\n\
                         3: -> OFDLCK ADVISORY  WRITE -1 08:01:78 0 EOF\n\
                         4: nonsense\n";

    #[test]
    fn the_holder_is_the_line_that_the_waiting_one_hangs_under() {
        let locks = parse(LOCKS, 99);
        assert_eq!(locks.len(), 6);
        assert_eq!(holder(&locks, 200, None), Some(Some(100)));
        let other_device = Some((0, 42, 5_580_235));
        assert_eq!(holder(&locks, 201, other_device), Some(Some(100)));
        // nobody waits by its number: the file tells
        assert_eq!(holder(&locks, 9, Some((8, 1, 77))), Some(Some(300)));
        // a lock of an open file has no owner's number
        assert_eq!(holder(&locks, 9, Some((8, 1, 78))), Some(None));
        assert_eq!(holder(&locks, 9, Some((8, 1, 79))), None);
        assert_eq!(holder(&locks, 9, None), None);
        // what it holds itself holds nobody up
        assert_eq!(holder(&locks, 300, Some((8, 1, 77))), None);
        assert_eq!(parse(LOCKS, 2).len(), 2);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in ".{0,200}", cut in 0usize..200) {
            let _ = holder(&parse(&text, 9), 1, None);
            let _ = parse(&LOCKS[..cut.min(LOCKS.len())], 9);
        }
    }
}
