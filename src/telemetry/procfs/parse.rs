//! The formats of `/proc/PID/…`. They are read here and not with the `procfs`
//! crate: that refuses a whole file when one field is missing (containers and
//! sandboxes leave some out), and some of its parsers panic on foreign bytes.

use std::path::Path;

use super::super::file::{self, ReadError, ReadResult};

/// `/proc/PID/stat` or `/proc/PID/task/TID/stat`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::telemetry) struct Stat {
    /// Name.
    pub(in crate::telemetry) comm: String,
    /// State letter.
    pub(in crate::telemetry) state: char,
    /// Parent.
    pub(in crate::telemetry) ppid: u32,
    /// Minor page faults.
    pub(in crate::telemetry) minor: u64,
    /// Major page faults.
    pub(in crate::telemetry) major: u64,
    /// Threads of the process.
    pub(in crate::telemetry) threads: u32,
    /// User and system time in clock ticks.
    pub(in crate::telemetry) ticks: u64,
    /// Start in ticks since boot; tells a new process from an old one of the
    /// same number.
    pub(in crate::telemetry) start: u64,
    /// Resident pages; None where the kernel does not tell, or tells 0, which no living
    /// program has.
    pub(in crate::telemetry) pages: Option<u64>,
}

/// `pid (comm) state ppid …`; the name may hold blanks and brackets.
pub(in crate::telemetry) fn stat(text: &str) -> Option<Stat> {
    let (head, rest) = text.rsplit_once(')')?;
    let (_, comm) = head.split_once('(')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    // `n` fields further on; the state is field 3 of proc(5)
    let mut skip = |n: usize| fields.nth(n - 1);
    let mut number = |n: usize| skip(n)?.parse::<u64>().ok();
    let ppid = u32::try_from(number(1)?).ok()?;
    let (minor, major) = (number(6)?, number(2)?);
    let ticks = number(2)?.saturating_add(number(1)?);
    let threads = number(5)?;
    Some(Stat {
        comm: comm.to_owned(),
        state,
        ppid,
        minor,
        major,
        threads: u32::try_from(threads).unwrap_or(u32::MAX),
        ticks,
        start: number(2)?,
        pages: number(2).filter(|pages| *pages > 0),
    })
}

/// Name and state alone, of a stat file: the other fields are most of the work.
pub(super) fn name_and_state(text: &str) -> Option<(&str, char)> {
    let (head, rest) = text.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    Some((name, rest.trim_start().chars().next()?))
}

/// Reads and parses a stat file.
pub(in crate::telemetry) fn read_stat(path: &Path) -> ReadResult<Stat> {
    stat(&file::read_text(path)?).ok_or_else(|| ReadError::text(path, "not the usual fields"))
}

/// Values of `keys` in a file of `Key: value [kB]` lines (`status`, `io`), in one pass.
pub(in crate::telemetry) fn keyed<const N: usize>(text: &str, keys: [&str; N]) -> [Option<u64>; N] {
    let mut values = [None; N];
    for (key, rest) in text.lines().filter_map(|line| line.split_once(':')) {
        if let Some(n) = keys.iter().position(|k| *k == key) {
            let word = rest.split_ascii_whitespace().next();
            values[n] = values[n].or(word.and_then(|w| w.parse().ok()));
        }
    }
    values
}

/// Nanoseconds on a CPU and how often put on one, of one thread.
pub(in crate::telemetry) fn schedstat(text: &str) -> Option<(u64, u64)> {
    let mut fields = text.split_whitespace();
    let run = fields.next()?.parse().ok()?;
    let _wait = fields.next()?;
    Some((run, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STAT: &str = "41 (a) b (x) S 7 41 41 0 -1 4194560 311 9 3 4 12 5 0 0 20 0 3 0 98765 \
                        1000 200 18446744073709551615 1 1 0 0 0 0 0";

    #[test]
    fn a_name_may_hold_brackets_and_blanks() {
        let s = stat(STAT).unwrap();
        assert_eq!(s.comm, "a) b (x");
        assert_eq!((s.state, s.ppid, s.start), ('S', 7, 98765));
        assert_eq!((s.minor, s.major, s.ticks, s.threads), (311, 3, 17, 3));
        assert_eq!(s.pages, Some(200));
        assert_eq!(name_and_state(STAT), Some(("a) b (x", 'S')));
        let (short, _) = STAT.split_once(" 1000").unwrap();
        assert_eq!(stat(short).map(|s| (s.start, s.pages)), Some((98765, None)));
    }

    #[test]
    fn keys_are_whole_and_a_missing_one_is_none() {
        let text = "Name:\tsh\nVmRSS:\t  1024 kB\nTracerPid:\t0\n";
        let found = keyed(text, ["VmRSS", "TracerPid", "VmSwap", "RSS", "Name"]);
        assert_eq!(found, [Some(1024), Some(0), None, None, None]);
        assert_eq!(schedstat("123 45 6\n"), Some((123, 6)));
        assert_eq!(schedstat("123"), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>, cut in 0usize..160) {
            let text = file::text_of(&bytes);
            prop_assert!(stat(&text).is_none() || name_and_state(&text).is_some());
            let _ = (stat(&text), keyed(&text, ["VmRSS", "io"]), schedstat(&text));
            let _ = stat(&STAT[..cut.min(STAT.len())]);
        }

        #[test]
        fn any_name_is_survived(name in ".{0,20}") {
            let text = STAT.replacen("a) b (x", &name, 1);
            prop_assert_eq!(stat(&text).map(|s| s.start), Some(98765));
        }
    }
}
