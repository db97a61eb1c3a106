//! What the tree holds: open devices, mapped libraries, memory and its limits.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use crate::model::Bytes;

use super::output::{Output, read_text};
use crate::supervise::tree::{Member, Target};

/// Descriptors of one process that are looked at.
const MAX_FDS: usize = 8192;

/// What the descriptors lead to, and `fdinfo` of those that are a GPU's (their
/// `drm-` keys: engines used, memory held), each client once.
pub(super) fn descriptors(out: &Output, target: &Target) -> Result<(), String> {
    let mut clients = BTreeSet::new();
    for member in target.members()? {
        out.line(format!("==== {}", member.title()));
        let Ok(fds) = fs::read_dir(member.path("fd")) else {
            out.line("(its descriptors are not readable)");
            continue;
        };
        let mut kinds: BTreeMap<String, u32> = BTreeMap::new();
        for fd in fds.flatten().take(MAX_FDS) {
            if out.is_closed() {
                return Ok(());
            }
            let Ok(link) = fs::read_link(fd.path()) else {
                continue;
            };
            let link = link.to_string_lossy().into_owned();
            let is_gpu = link.starts_with("/dev/dri/");
            *kinds.entry(kind_of(&link)).or_default() += 1;
            if is_gpu {
                client(
                    out,
                    &member,
                    &fd.file_name().to_string_lossy(),
                    &link,
                    &mut clients,
                );
            }
        }
        for (kind, n) in kinds {
            out.line(format!("{n} x {kind}"));
        }
    }
    Ok(())
}

/// Device files by name, the rest by what they are: names of files are the
/// user's business.
fn kind_of(link: &str) -> String {
    if link.starts_with("/dev/") && !link.starts_with("/dev/shm/") {
        return link.to_owned();
    }
    match link.split_once(":[") {
        Some((kind, _inode)) => kind.to_owned(),
        None if link.starts_with("anon_inode:") => link.to_owned(),
        None => "file".to_owned(),
    }
}

fn client(out: &Output, member: &Member, fd: &str, link: &str, seen: &mut BTreeSet<String>) {
    let path = member.path(&format!("fdinfo/{fd}"));
    out.doing(format!("while reading {}", path.display()));
    let Ok(text) = read_text(&path, 64 << 10) else {
        return;
    };
    let keys: Vec<_> = text.lines().filter(|l| l.starts_with("drm-")).collect();
    // The same client shows under each of its descriptors.
    let id = |key: &str| keys.iter().find(|l| l.starts_with(key)).copied();
    let id = format!("{:?} {:?}", id("drm-pdev"), id("drm-client-id"));
    if keys.is_empty() || !seen.insert(id) {
        return;
    }
    out.line(format!("== fd {fd} {link}"));
    for key in keys {
        out.line(key);
    }
}

/// Libraries whose presence tells what the program runs on.
const LIBRARIES: &[&str] = &[
    "libMIOpen",
    "libamdhip64",
    "libhsa-runtime64",
    "libhipblas",
    "librocblas",
    "libtorch",
    "libc10",
    "libcuda",
    "libcudart",
    "libcudnn",
    "libcublas",
    "libnvidia",
];

/// Endings of weight files, which are mapped rather than read.
const WEIGHTS: &[&str] = &[".safetensors", ".gguf", ".ckpt", ".pt", ".pth", ".bin"];

/// Mapped size of the libraries and weights that matter, and of all the rest in
/// one figure; never the full list.
pub(super) fn maps(out: &Output, target: &Target) -> Result<(), String> {
    for member in target.members()? {
        out.line(format!("==== {}", member.title()));
        let path = member.path("maps");
        out.doing(format!("while reading {}", path.display()));
        let summary = match File::open(&path) {
            Ok(file) => summarise(BufReader::new(file)),
            Err(e) => {
                out.line(format!("(not readable: {e})"));
                continue;
            }
        };
        for (name, bytes) in &summary.named {
            out.line(format!("{:>12}  {name}", Bytes(*bytes).to_string()));
        }
        let (maps, total) = (summary.count, Bytes(summary.total));
        let anonymous = Bytes(summary.anonymous);
        out.line(format!(
            "{maps} maps, {total} in all, {anonymous} without a file"
        ));
    }
    Ok(())
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Maps {
    named: BTreeMap<String, u64>,
    count: u64,
    total: u64,
    anonymous: u64,
}

fn summarise(lines: impl BufRead) -> Maps {
    let mut maps = Maps::default();
    for line in lines.split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        let Some(size) = map_size(&line) else {
            continue;
        };
        maps.count += 1;
        maps.total = maps.total.saturating_add(size);
        let Some(path) = line.find('/').map(|at| &line[at..]) else {
            maps.anonymous = maps.anonymous.saturating_add(size);
            continue;
        };
        let path = path.trim_end_matches(" (deleted)");
        let name = path.rsplit('/').next().unwrap_or(path);
        if LIBRARIES.iter().any(|l| name.starts_with(l))
            || WEIGHTS.iter().any(|w| name.ends_with(w))
        {
            let sum = maps.named.entry(name.to_owned()).or_default();
            *sum = sum.saturating_add(size);
        }
    }
    maps
}

/// `7f00-7f10 r-xp …`: the difference of the two addresses.
fn map_size(line: &str) -> Option<u64> {
    let (from, to) = line.split_whitespace().next()?.split_once('-')?;
    let from = u64::from_str_radix(from, 16).ok()?;
    u64::from_str_radix(to, 16).ok()?.checked_sub(from)
}

/// Limits of each process, its cgroup's memory up to the root, and the host's.
pub(super) fn limits(out: &Output, target: &Target) -> Result<(), String> {
    for name in [
        "meminfo",
        "vmstat",
        "loadavg",
        "pressure/cpu",
        "pressure/io",
        "pressure/memory",
    ] {
        out.file(&Path::new("/proc").join(name), 16 << 10);
    }
    let mut groups = BTreeSet::new();
    for member in target.members()? {
        if out.is_closed() {
            return Ok(());
        }
        out.line(format!("==== {}", member.title()));
        for name in ["limits", "oom_score", "oom_score_adj", "io", "cgroup"] {
            out.file(&member.path(name), 16 << 10);
        }
        let cgroup = read_text(&member.path("cgroup"), 16 << 10).unwrap_or_default();
        groups.extend(cgroup_dirs(&cgroup));
    }
    for dir in groups {
        for name in CGROUP_FILES {
            let path = dir.join(name);
            if path.is_file() {
                out.file(&path, 16 << 10);
            }
        }
    }
    Ok(())
}

/// Of the unified hierarchy, then of version 1.
const CGROUP_FILES: &[&str] = &[
    "cgroup.freeze",
    "memory.current",
    "memory.high",
    "memory.max",
    "memory.peak",
    "memory.swap.current",
    "memory.swap.max",
    "memory.events",
    "memory.pressure",
    "memory.usage_in_bytes",
    "memory.limit_in_bytes",
    "memory.oom_control",
];

/// Folders of the memory controller for `/proc/P/cgroup`, each up to the root.
fn cgroup_dirs(text: &str) -> Vec<PathBuf> {
    let mut dirs = Vec::new();
    for line in text.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(id), Some(controllers), Some(path)) =
            (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let roots: &[&str] = match controllers {
            "" if id == "0" => &["/sys/fs/cgroup", "/sys/fs/cgroup/unified"],
            c if c.split(',').any(|c| c == "memory") => &["/sys/fs/cgroup/memory"],
            _ => continue,
        };
        // Each step up to the root, but never above it.
        let mut steps = String::new();
        for root in roots {
            dirs.push(PathBuf::from(root));
            steps.clear();
            for part in path.split('/').filter(|p| !p.is_empty() && *p != "..") {
                let _infallible = write!(steps, "/{part}");
                dirs.push(PathBuf::from(format!("{root}{steps}")));
            }
        }
    }
    dirs
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn maps_are_summed_by_library() {
        let text = "\
7f0000000000-7f0000100000 r-xp 00000000 08:01 11 /opt/rocm/lib/libMIOpen.so.1.0
7f0000100000-7f0000200000 rw-p 00100000 08:01 11 /opt/rocm/lib/libMIOpen.so.1.0
7f0000200000-7f0000201000 rw-p 00000000 00:00 0
7f0000300000-7f0000301000 r--p 00000000 08:01 12 /home/u/secret name.txt
7f0000400000-7f0040400000 r--s 00000000 08:01 13 /m/model.safetensors (deleted)
garbage
";
        let maps = summarise(text.as_bytes());
        assert_eq!(maps.count, 5);
        assert_eq!(maps.anonymous, 0x1000);
        let named: Vec<_> = maps.named.into_iter().collect();
        assert_eq!(
            named,
            [
                ("libMIOpen.so.1.0".to_owned(), 2 << 20),
                ("model.safetensors".to_owned(), 1 << 30)
            ]
        );
    }

    #[test]
    fn descriptors_are_named_by_kind() {
        assert_eq!(kind_of("/dev/dri/renderD128"), "/dev/dri/renderD128");
        assert_eq!(kind_of("socket:[123]"), "socket");
        assert_eq!(kind_of("anon_inode:[eventfd]"), "anon_inode");
        assert_eq!(kind_of("/home/u/film.mp4"), "file");
    }

    #[test]
    fn cgroups_are_followed_up_to_the_root() {
        let dirs = cgroup_dirs("4:memory:/a/b\n0::/x/../y\nnonsense\n");
        let dirs: Vec<_> = dirs.iter().map(|d| d.to_str().unwrap()).collect();
        assert_eq!(
            dirs,
            [
                "/sys/fs/cgroup/memory",
                "/sys/fs/cgroup/memory/a",
                "/sys/fs/cgroup/memory/a/b",
                "/sys/fs/cgroup",
                "/sys/fs/cgroup/x",
                "/sys/fs/cgroup/x/y",
                "/sys/fs/cgroup/unified",
                "/sys/fs/cgroup/unified/x",
                "/sys/fs/cgroup/unified/x/y",
            ]
        );
    }

    proptest! {
        #[test]
        fn no_bytes_of_maps_or_cgroup_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            summarise(&bytes[..]);
            cgroup_dirs(&String::from_utf8_lossy(&bytes));
        }
    }
}
