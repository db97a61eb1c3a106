//! Control groups: which ones this process is in, and what their limits leave.

use std::path::{Component, Path, PathBuf};

use super::{Memory, path_of};

/// The hierarchy that limits memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    One,
    Two,
}

/// A hierarchy, or a part of it, as it is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mount {
    pub(super) version: Version,
    /// The group that is seen at `point`.
    pub(super) root: PathBuf,
    pub(super) point: PathBuf,
}

/// What every group leaves that limits this process, and the words for it.
pub(super) fn of(own: &Path, memory: &mut Memory) -> Vec<(u64, String)> {
    each(own, memory, left)
}

/// What every group grants that limits this process, used or not, with as much of the machine's swap as it may have.
pub(super) fn granted(own: &Path, swap: u64, memory: &mut Memory) -> Vec<(u64, String)> {
    each(own, memory, |version, folder, memory| {
        let limit = tightest(version, folder, memory)?;
        let with_swap = limit.saturating_add(swap);
        let mut read = |name| memory.read(&folder.join(name), &self::limit);
        Some(match version {
            Version::Two => {
                limit.saturating_add(read("memory.swap.max").map_or(swap, |own| own.min(swap)))
            }
            // the two together, where swap is counted
            Version::One => {
                read("memory.memsw.limit_in_bytes").map_or(with_swap, |own| own.min(with_swap))
            }
        })
    })
}

/// What `find` gives for every group of this process, and the words for its limit.
fn each(
    own: &Path,
    memory: &mut Memory,
    find: impl Fn(Version, &Path, &mut Memory) -> Option<u64>,
) -> Vec<(u64, String)> {
    let groups = memory.read(&own.join("cgroup"), &|text| Some(Some(groups(text))));
    let mounts = memory.read(&own.join("mountinfo"), &|text| Some(Some(mounts(text))));
    let mut found = Vec::new();
    for (version, path) in groups.unwrap_or_default() {
        for folder in folders(version, &path, mounts.as_deref().unwrap_or_default()) {
            if let Some(bytes) = find(version, &folder, memory) {
                found.push((
                    bytes,
                    format!("the memory limit of the control group {}", folder.display()),
                ));
            }
        }
    }
    found
}

/// `ID:CONTROLLERS:PATH` of `/proc/self/cgroup`, of the hierarchies that can limit memory.
pub(super) fn groups(text: &[u8]) -> Vec<(Version, PathBuf)> {
    let lines = text.split(|byte| *byte == b'\n');
    lines
        .filter_map(|line| {
            let mut words = line.splitn(3, |byte| *byte == b':');
            let (id, controllers, path) = (words.next()?, words.next()?, words.next()?);
            let version = if id == b"0" && controllers.is_empty() {
                Version::Two
            } else if has_memory(controllers) {
                Version::One
            } else {
                return None;
            };
            path.starts_with(b"/").then(|| (version, path_of(path)))
        })
        .collect()
}

/// `memory` among words with commas.
fn has_memory(words: &[u8]) -> bool {
    words
        .split(|byte| *byte == b',')
        .any(|word| word == b"memory")
}

/// The same hierarchies in `/proc/self/mountinfo`:
/// `ID PARENT DEVICE ROOT POINT OPTIONS [TAG …] - KIND SOURCE OPTIONS`.
pub(super) fn mounts(text: &[u8]) -> Vec<Mount> {
    let lines = text.split(|byte| *byte == b'\n');
    lines
        .filter_map(|line| {
            let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
            let dash = words.iter().skip(6).position(|word| *word == b"-")? + 6;
            let version = match *words.get(dash + 1)? {
                b"cgroup2" => Version::Two,
                b"cgroup" if has_memory(words.get(dash + 3)?) => Version::One,
                _ => return None,
            };
            Some(Mount {
                version,
                root: path_of(&plain(words[3])),
                point: path_of(&plain(words[4])),
            })
        })
        .collect()
}

/// Without the octal numbers that stand for spaces and their like.
pub(super) fn plain(word: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((&first, after)) = rest.split_first() {
        let number = match (first, after.get(..3)) {
            (b'\\', Some(digits)) if digits.iter().all(|d| (b'0'..b'8').contains(d)) => {
                let sum = digits
                    .iter()
                    .fold(0_u32, |sum, d| sum * 8 + u32::from(d - b'0'));
                u8::try_from(sum).ok()
            }
            _ => None,
        };
        bytes.push(number.unwrap_or(first));
        rest = if number.is_some() { &after[3..] } else { after };
    }
    bytes
}

/// The folders of a group and of all above it that are seen. Where the group lies outside what is mounted (a container
/// that keeps the words of its host), what is mounted is taken for it.
pub(super) fn folders(version: Version, group: &Path, mounts: &[Mount]) -> Vec<PathBuf> {
    let mut of_it = mounts.iter().filter(|mount| mount.version == version);
    let below = |mount: &Mount| {
        let rest = group.strip_prefix(&mount.root).ok()?;
        let is_plain = rest.components().all(|c| matches!(c, Component::Normal(_)));
        is_plain.then(|| rest.to_owned())
    };
    let seen = of_it.clone().find_map(|mount| Some((mount, below(mount)?)));
    let Some((mount, rest)) = seen.or_else(|| Some((of_it.next()?, PathBuf::new()))) else {
        return Vec::new();
    };
    rest.ancestors()
        .map(|part| mount.point.components().chain(part.components()).collect())
        .collect()
}

/// The limit of a group; absent: it has none, or that cannot be read.
fn tightest(version: Version, folder: &Path, memory: &mut Memory) -> Option<u64> {
    let limits = match version {
        // above `high` a group is not ended, but slowed down until nothing moves
        Version::Two => &["memory.max", "memory.high"][..],
        Version::One => &["memory.limit_in_bytes"][..],
    };
    let limits = limits
        .iter()
        .filter_map(|name| memory.read(&folder.join(name), &limit));
    limits.collect::<Vec<u64>>().into_iter().min()
}

/// What that limit leaves.
fn left(version: Version, folder: &Path, memory: &mut Memory) -> Option<u64> {
    let (used, cache) = match version {
        Version::Two => ("memory.current", "inactive_file"),
        Version::One => ("memory.usage_in_bytes", "total_inactive_file"),
    };
    let limit = tightest(version, folder, memory)?;
    let used = memory.read(&folder.join(used), &|text| number(text).map(Some))?;
    // of files that were read: it goes where it is in the way
    let cache = memory.read(&folder.join("memory.stat"), &|text| {
        stat(text, cache).map(Some)
    });
    Some(limit.saturating_sub(used.saturating_sub(cache.unwrap_or(0))))
}

/// The number from which on version 1 means no limit: it writes the most pages that it can count.
const NO_LIMIT: u64 = 1 << 62;

/// A limit; the inner one is absent where there is none.
#[expect(clippy::option_option, reason = "not understood, no limit, a limit")]
pub(super) fn limit(text: &[u8]) -> Option<Option<u64>> {
    match text.trim_ascii() {
        b"max" => Some(None),
        _ => Some(Some(number(text)?).filter(|limit| *limit < NO_LIMIT)),
    }
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.trim().parse().ok()
}

/// `NAME NUMBER` of `memory.stat`.
pub(super) fn stat(text: &[u8], name: &str) -> Option<u64> {
    let mut lines = text.split(|byte| *byte == b'\n');
    lines.find_map(|line| number(line.strip_prefix(name.as_bytes())?.strip_prefix(b" ")?))
}
