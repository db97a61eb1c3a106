//! The library's locks: one file per card in `/dev/shm`. One that was held by a process
//! that was killed or aborted makes every later `rsmi_init` of 5.x wait five seconds and
//! fail, until somebody removes it.

use std::fs;
use std::path::{Path, PathBuf};

/// `rocm_smi_card0` in 5.x, `rocm_smi_renderD128` in 7.x.
const PREFIX: &str = "rocm_smi_";
/// `rsmi_init` gives up its wait after five seconds; nothing else of it takes that long.
const WAITED_MS: u64 = 4000;

/// What an `rsmi_init` that failed after this long says of the locks below `root`, in
/// words; none where it did not wait for one.
pub(super) fn in_the_way(root: &Path, took_ms: u64) -> Option<String> {
    if took_ms < WAITED_MS {
        return None;
    }
    let files = files(root);
    if files.is_empty() {
        return Some("it waited for a lock in /dev/shm that is gone by now".to_owned());
    }
    let names: Vec<String> = files.iter().map(|f| f.display().to_string()).collect();
    let names = names.join(", ");
    Some(match user_of(root, &files) {
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

/// A process that has one of them mapped. Those of other users cannot be looked into.
fn user_of(root: &Path, files: &[PathBuf]) -> Option<u32> {
    let names: Vec<String> = files
        .iter()
        .filter_map(|f| Some(format!("/dev/shm/{}", f.file_name()?.to_string_lossy())))
        .collect();
    let processes = fs::read_dir(root.join("proc")).ok()?;
    processes.filter_map(Result::ok).find_map(|process| {
        let pid = process.file_name().to_str()?.parse().ok()?;
        let maps = fs::read_to_string(process.path().join("maps")).ok()?;
        maps.lines()
            .any(|line| names.iter().any(|name| line.ends_with(name.as_str())))
            .then_some(pid)
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::Tree;
    use super::*;

    #[test]
    fn a_lock_is_named_with_its_cure_or_its_user() {
        let tree = Tree::new();
        assert_eq!(in_the_way(tree.root(), 12), None);
        assert!(in_the_way(tree.root(), 5003).unwrap().contains("gone"));
        tree.write("dev/shm/rocm_smi_card0", "");
        tree.write("dev/shm/sem.other", "");
        tree.write(
            "proc/77/maps",
            "7f00-7f01 rw-s 00000000 00:19 3 /usr/lib/libc.so\n",
        );
        let words = in_the_way(tree.root(), 5003).unwrap();
        assert!(words.contains("cure: rm "), "{words}");
        assert!(words.ends_with("dev/shm/rocm_smi_card0"), "{words}");
        tree.write(
            "proc/78/maps",
            "7f00-7f01 rw-s 00000000 00:19 3     /dev/shm/rocm_smi_card0\n",
        );
        let words = in_the_way(tree.root(), 5003).unwrap();
        assert!(
            words.contains("process 78") && !words.contains("rm "),
            "{words}"
        );
    }
}
