//! The library's locks: one file per card in `/dev/shm`. One that was held by a process
//! that was killed or aborted makes every later `rsmi_init` of 5.x wait five seconds and
//! fail, until somebody removes it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// `rocm_smi_card0` in 5.x, `rocm_smi_renderD128` in 7.x.
const PREFIX: &str = "rocm_smi_";
/// `rsmi_init` gives up its wait after five seconds; nothing else of it takes that long.
const WAITED_MS: u64 = 4000;

/// What an `rsmi_init` of the process `reader` that failed after this long says of the
/// locks below `root`, in words; none where it did not wait for one.
pub(super) fn in_the_way(root: &Path, took_ms: u64, reader: u32) -> Option<String> {
    if took_ms < WAITED_MS {
        return None;
    }
    let files = files(root);
    if files.is_empty() {
        return Some("it waited for a lock in /dev/shm that is gone by now".to_owned());
    }
    let names: Vec<String> = files.iter().map(|f| f.display().to_string()).collect();
    let names = names.join(", ");
    Some(match user_of(root, &files, reader) {
        Some(pid) => format!("it waited for a lock, {names}, which process {pid} has open"),
        None => format!(
            "it waited for a lock that an ended process left behind, and no process seen here has it open; cure: rm {names}"
        ),
    })
}

fn files(root: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(root.join("dev/shm")) else {
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .filter(|e| e.file_name().to_string_lossy().starts_with(PREFIX))
        .map(|e| e.path())
        .collect();
    files.sort();
    files
}

/// A process other than `reader` that has one of them mapped. Those of other users cannot
/// be looked into. Known by device and inode: in another container the same name is
/// another file.
fn user_of(root: &Path, files: &[PathBuf], reader: u32) -> Option<u32> {
    let marks: Vec<String> = files.iter().filter_map(|file| mark(file)).collect();
    let processes = fs::read_dir(root.join("proc")).ok()?;
    processes.filter_map(Result::ok).find_map(|process| {
        let pid = process.file_name().to_str()?.parse().ok()?;
        let maps = fs::read_to_string(process.path().join("maps")).ok()?;
        let maps_one = maps
            .lines()
            .any(|line| marks.iter().any(|m| line.contains(m)));
        (pid != reader && maps_one).then_some(pid)
    })
}

/// A file as `/proc/PID/maps` states it: ` major:minor inode `.
fn mark(file: &Path) -> Option<String> {
    let of = fs::metadata(file).ok()?;
    let (major, minor) = (rustix::fs::major(of.dev()), rustix::fs::minor(of.dev()));
    Some(format!(" {major:02x}:{minor:02x} {} ", of.ino()))
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::Tree;
    use super::*;

    #[test]
    fn a_lock_is_named_with_its_cure_or_its_user() {
        let tree = Tree::new();
        assert_eq!(in_the_way(tree.root(), 12, 5), None);
        assert!(in_the_way(tree.root(), 5003, 5).unwrap().contains("gone"));
        tree.write("dev/shm/rocm_smi_card0", "");
        tree.write("dev/shm/sem.other", "");
        tree.write(
            "proc/77/maps",
            "7f00-7f01 rw-s 00000000 00:19 3 /usr/lib/libc.so\n",
        );
        let words = in_the_way(tree.root(), 5003, 5).unwrap();
        assert!(words.contains("cure: rm "), "{words}");
        assert!(words.ends_with("dev/shm/rocm_smi_card0"), "{words}");
        // of the reader that just failed, and of the same name elsewhere
        let file = tree.root().join("dev/shm/rocm_smi_card0");
        let here = mark(&file).unwrap();
        let line =
            |mark: &str| format!("7f00-7f01 rw-s 00000000{mark}    /dev/shm/rocm_smi_card0\n");
        tree.write("proc/5/maps", &line(&here));
        tree.write("proc/77/maps", &line(" 00:fe 1 "));
        let words = in_the_way(tree.root(), 5003, 5).unwrap();
        assert!(words.contains("cure: rm "), "{words}");
        tree.write("proc/78/maps", &line(&here));
        let words = in_the_way(tree.root(), 5003, 5).unwrap();
        assert!(
            words.contains("process 78") && !words.contains("rm "),
            "{words}"
        );
    }
}
