//! Open files of a process: the links of `/proc/PID/fd` and the texts of `fdinfo`.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::file::{ReadError, ReadResult};
use super::request::MOST_DESCRIPTORS;
use super::text;

/// Descriptors of one process that are looked at.
const MOST: usize = 4096;
/// Longest text of `fdinfo`: an epoll has a line for each descriptor that it watches.
const INFO: u64 = 64 << 10;

/// The descriptors of one process.
#[derive(Debug, Default)]
pub(super) struct Descriptors {
    dir: PathBuf,
    /// Links by number, sorted.
    links: Vec<(u32, String)>,
}

/// For what a descriptor is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Reading alone.
    Read,
    /// Writing alone.
    Write,
    /// Both.
    Both,
}

impl Descriptors {
    /// Reads the links of the process in `dir`.
    pub(super) fn read(dir: &Path) -> ReadResult<Self> {
        let folder = dir.join("fd");
        let listed = fs::read_dir(&folder).map_err(|e| ReadError::os(&folder, &e))?;
        let mut links = Vec::new();
        for entry in listed.take(MOST).flatten() {
            let number = entry.file_name().to_str().and_then(|n| n.parse().ok());
            // one that was closed meanwhile has no link
            if let (Some(number), Ok(to)) = (number, fs::read_link(entry.path())) {
                links.push((number, text::clip(&to.to_string_lossy())));
            }
        }
        links.sort_unstable();
        Ok(Self {
            dir: dir.to_owned(),
            links,
        })
    }

    /// Numbers and links.
    pub(super) fn links(&self) -> impl Iterator<Item = (u32, &str)> {
        self.links
            .iter()
            .map(|(number, link)| (*number, link.as_str()))
    }

    /// The link of this descriptor.
    pub(super) fn link(&self, number: u32) -> Option<&str> {
        let at = self.links.binary_search_by_key(&number, |(n, _)| *n).ok()?;
        Some(&self.links[at].1)
    }

    /// Inodes of its sockets.
    pub(super) fn sockets(&self) -> impl Iterator<Item = u64> {
        self.links().filter_map(|(_, link)| socket_inode(link))
    }

    /// What the file behind a descriptor is, without opening it.
    pub(super) fn metadata(&self, number: u32) -> Option<fs::Metadata> {
        fs::metadata(self.dir.join("fd").join(number.to_string())).ok()
    }

    /// The text of `fdinfo`. It is never asked for of a card: that waits for the driver.
    pub(super) fn info(&self, number: u32) -> Option<String> {
        text::limited(&self.dir.join("fdinfo").join(number.to_string()), INFO).ok()
    }

    /// For what a descriptor is open, where the kernel says so.
    pub(super) fn access(&self, number: u32) -> Option<Access> {
        access(&self.info(number)?)
    }
}

/// The inode in `socket:[123]`.
pub(super) fn socket_inode(link: &str) -> Option<u64> {
    link.strip_prefix("socket:[")?
        .strip_suffix(']')?
        .parse()
        .ok()
}

/// The kind in `anon_inode:[eventfd]` or `anon_inode:inotify`.
pub(super) fn anonymous(link: &str) -> Option<&str> {
    Some(link.strip_prefix("anon_inode:")?.trim_matches(['[', ']']))
}

/// The access mode in `flags:	0100002`, octal.
pub(super) fn access(info: &str) -> Option<Access> {
    let flags = value(info, "flags:")?;
    match u32::from_str_radix(flags, 8).ok()? & 3 {
        0 => Some(Access::Read),
        1 => Some(Access::Write),
        2 => Some(Access::Both),
        _ => None,
    }
}

/// The process of a pidfd.
pub(super) fn pidfd(info: &str) -> Option<u32> {
    value(info, "Pid:")?.parse().ok().filter(|pid| *pid > 0)
}

/// The descriptors that an epoll watches for something: those that are disabled, or wait
/// for an error alone, are left out.
pub(super) fn watched(info: &str) -> Vec<u32> {
    const ERROR_OR_HANGUP: u32 = 0x18;
    const FLAGS: u32 = 0xf000_0000;
    let member = |line: &str| {
        let mut words = line.strip_prefix("tfd:")?.split_ascii_whitespace();
        let number = words.next()?.parse().ok()?;
        let _ = words.next().filter(|word| *word == "events:")?;
        let events = u32::from_str_radix(words.next()?, 16).ok()?;
        (events & !(ERROR_OR_HANGUP | FLAGS) != 0).then_some(number)
    };
    info.lines()
        .filter_map(member)
        .take(MOST_DESCRIPTORS)
        .collect()
}

fn value<'a>(info: &'a str, key: &str) -> Option<&'a str> {
    info.lines()
        .find_map(|line| line.strip_prefix(key))
        .map(str::trim)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const EPOLL: &str = "pos:\t0\nflags:\t02000002\nmnt_id:\t15\n\
        tfd:        5 events:       19 data:                5  pos:0 ino:61af sdev:9\n\
        tfd:        6 events:       18 data:                6  pos:0 ino:61b0 sdev:9\n\
        tfd:        7 events: 40000000 data:                7  pos:0 ino:61b1 sdev:9\n\
        tfd:        8 events: 80000004 data: ffffffffffffffff  pos:0 ino:61b2 sdev:9\n";

    #[test]
    fn an_epoll_names_those_that_it_watches_for_something() {
        assert_eq!(watched(EPOLL), [5, 8]);
        assert_eq!(access(EPOLL), Some(Access::Both));
        assert_eq!(access("flags:\t0100001\n"), Some(Access::Write));
        assert_eq!(access("flags:\t0100000\n"), Some(Access::Read));
        assert_eq!(access("pos: 0\n"), None);
        assert_eq!(pidfd("pos:\t0\nPid:\t41\nNSpid:\t41\n"), Some(41));
        assert_eq!(pidfd("Pid:\t-1\n"), None);
        assert_eq!(socket_inode("socket:[41]"), Some(41));
        assert_eq!(socket_inode("pipe:[41]"), None);
        assert_eq!(anonymous("anon_inode:[eventfd]"), Some("eventfd"));
        assert_eq!(anonymous("anon_inode:inotify"), Some("inotify"));
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in ".{0,200}", cut in 0usize..400) {
            let _ = (watched(&text), access(&text), pidfd(&text), socket_inode(&text));
            let _ = (anonymous(&text), watched(&EPOLL[..cut.min(EPOLL.len())]));
        }
    }
}
