//! The library's locks: one file per card in `/dev/shm`. One that was held by a process
//! that was killed or aborted makes every later `rsmi_init` of 5.x wait five seconds and
//! fail, until somebody removes it.

use std::fs;
use std::io::{self, Read};
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
    let paths = names.join(" ");
    let names = names.join(", ");
    Some(match user_of(root, &files, reader) {
        User::Process(pid) => {
            format!("it waited for a lock, {names}, which process {pid} has open")
        }
        User::None => format!(
            "it waited for a lock that an ended process left behind, and no process has it open; cure: rm {paths}"
        ),
        User::Hidden => {
            format!(
                "it waited for a lock that perhaps an ended process left behind; not every process may be looked into here; check: sudo fuser {paths}; where that names none, cure: rm {paths}"
            )
        }
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

/// Who has a lock open.
enum User {
    Process(u32),
    /// Nobody that is seen here, and a process cannot be looked into: another user's.
    Hidden,
    None,
}

/// A process other than `reader` that has one of them mapped. Known by device and inode: in another container the same name is
/// another file.
fn user_of(root: &Path, files: &[PathBuf], reader: u32) -> User {
    let marks: Vec<String> = files.iter().filter_map(|file| mark(file)).collect();
    let Ok(processes) = fs::read_dir(root.join("proc")) else {
        return User::Hidden;
    };
    let mut hidden = false;
    for process in processes.filter_map(Result::ok) {
        let Some(pid) = process.file_name().to_str().and_then(|n| n.parse().ok()) else {
            continue;
        };
        if pid == reader {
            continue;
        }
        match read_maps(&process.path().join("maps")) {
            Ok(maps) => {
                let maps = String::from_utf8_lossy(&maps);
                let holds = |line: &str| marks.iter().any(|m| line.contains(m));
                if maps.lines().any(holds) {
                    return User::Process(pid);
                }
            }
            // gone meanwhile, ESRCH included
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) if e.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => {}
            Err(_) => hidden = true,
        }
    }
    if hidden { User::Hidden } else { User::None }
}

/// The mappings of a process, as many as a program that works has.
fn read_maps(path: &Path) -> io::Result<Vec<u8>> {
    const MOST: u64 = 16 << 20;
    let mut maps = Vec::new();
    fs::File::open(path)?.take(MOST).read_to_end(&mut maps)?;
    Ok(maps)
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
        // one that cannot be looked into may be the user
        std::fs::create_dir_all(tree.root().join("proc/80/maps")).unwrap();
        let words = in_the_way(tree.root(), 5003, 5).unwrap();
        let check = words.find("fuser").unwrap();
        assert!(words.contains("perhaps") && check < words.find("rm ").unwrap());
        std::fs::remove_dir(tree.root().join("proc/80/maps")).unwrap();
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
