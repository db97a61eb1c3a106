//! MIOpen's folders, and folders that need room.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use super::{file, library};
use crate::doctor::facts::{FolderState, NaiveRecord, PlaceState, Records};
use crate::doctor::ufdb;
use crate::model::Bytes;

/// Files of a folder that are counted.
const MOST_FILES: u64 = 20_000;
/// Folders within folders that are entered.
const DEPTH: usize = 4;
/// Bytes of one find-db that are read.
const LONGEST_DB: u64 = 64 << 20;
/// Find-dbs that are read.
const MOST_DBS: usize = 64;
/// Naive records that are named.
const NAMED: usize = 5;

/// A folder of MIOpen's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Folder {
    pub(super) role: &'static str,
    pub(super) path: PathBuf,
    pub(super) set_by: Option<&'static str>,
}

/// Where MIOpen keeps what. `home`: the user's, `temp`: for temporary files.
pub(super) fn of_miopen(env: &BTreeMap<String, String>, home: &Path, temp: &Path) -> Vec<Folder> {
    let folder = |role, variable: &'static str, default: PathBuf| {
        let named = env.get(variable).filter(|v| !v.is_empty());
        Folder {
            role,
            path: named.map_or(default, |v| expand(v, home)),
            set_by: named.map(|_| variable),
        }
    };
    vec![
        folder(
            "user_db",
            "MIOPEN_USER_DB_PATH",
            home.join(".config/miopen"),
        ),
        folder(
            "kernel_cache",
            "MIOPEN_CUSTOM_CACHE_DIR",
            home.join(".cache/miopen"),
        ),
        Folder {
            role: "locks",
            path: temp.join("miopen-lockfiles"),
            set_by: None,
        },
    ]
}

/// MIOpen expands a leading `~`.
fn expand(path: &str, home: &Path) -> PathBuf {
    match path.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => {
            home.join(rest.trim_start_matches('/'))
        }
        _ => PathBuf::from(path),
    }
}

/// Looks at one folder.
pub(super) fn look(folder: &Folder) -> FolderState {
    let (place, exists) = file::nearest(&folder.path);
    let mut state = FolderState {
        exists,
        not_writable: in_its_place(&folder.path, &place).or_else(|| file::not_writable(&place)),
        network: network(&place),
        ..FolderState::default()
    };
    if exists {
        count(&place, DEPTH, &mut state);
        if folder.role == "user_db" {
            state.records = Some(records(&place));
        }
    }
    state
}

/// What stands where the folder, or one above it, would have to be made.
fn in_its_place(path: &Path, nearest: &Path) -> Option<String> {
    let below = path.ancestors().take_while(|p| *p != nearest).last()?;
    // a link to nothing is no place for a folder either
    let told = fs::symlink_metadata(below).ok()?;
    let kind = if told.is_symlink() {
        "a link to nothing"
    } else {
        "no folder"
    };
    Some(format!("{} is {kind}", below.display()))
}

/// Adds up sizes; links are not followed.
fn count(folder: &Path, depth: usize, state: &mut FolderState) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        if state.files >= MOST_FILES {
            state.truncated = true;
            return;
        }
        let Ok(told) = entry.metadata() else { continue };
        if told.is_dir() {
            if depth > 0 {
                count(&entry.path(), depth - 1, state);
            } else {
                state.truncated = true;
            }
            continue;
        }
        state.files += 1;
        let size = told.len();
        state.bytes = Bytes(state.bytes.0.saturating_add(size));
        let name = entry.file_name();
        if let Some(arch) = library::arch_of(&name.to_string_lossy()) {
            let sum = state.archs.entry(arch.to_owned()).or_insert(Bytes(0));
            *sum = Bytes(sum.0.saturating_add(size));
        }
    }
}

/// Reads the find-dbs of a folder.
fn records(folder: &Path) -> Records {
    let mut records = Records::default();
    let names = file::names(folder, 10_000);
    let dbs = names.iter().filter(|n| n.ends_with(".ufdb.txt"));
    for name in dbs.take(MOST_DBS) {
        if let Err(e) = read_db(&folder.join(name), name, &mut records) {
            records
                .unreadable
                .push(format!("{name}: {}", file::words(&e)));
        }
    }
    records
}

fn read_db(path: &Path, name: &str, into: &mut Records) -> io::Result<()> {
    // a pipe that somebody put there must not hold us
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("not a file"));
    }
    let mut lines = BufReader::new(File::open(path)?.take(LONGEST_DB));
    let mut line = Vec::new();
    loop {
        line.clear();
        if lines.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&line);
        if text.trim().is_empty() {
            continue;
        }
        let Some(best) = ufdb::best(&text) else {
            into.bad += 1;
            continue;
        };
        into.read += 1;
        if best.is_naive() {
            into.naive += 1;
            into.slowest.push(NaiveRecord {
                key: best.key.to_owned(),
                ms: best.ms,
                file: name.to_owned(),
            });
            into.slowest.sort_by(|a, b| b.ms.total_cmp(&a.ms));
            into.slowest.truncate(NAMED);
        }
    }
}

/// Name of the network file system that the folder lies on: those from which MIOpen
/// moves its databases to the temporary folder (its `src/path.cpp`).
fn network(folder: &Path) -> Option<String> {
    const KINDS: [(i64, &str); 9] = [
        (0x6969, "NFS"),
        (0x517b, "SMB"),
        (0xfe53_4d42, "SMB2"),
        (0xff53_4d42, "CIFS"),
        (0x7375_7245, "CODA"),
        (0x7461_636f, "OCFS2"),
        (0x5346_414f, "AFS"),
        (0x0bd0_0bd0, "Lustre"),
        (0x00c3_6400, "Ceph"),
    ];
    let told = rustix::fs::statfs(folder).ok()?;
    // the numbers have 32 bits, and some file systems let the sign grow
    let kind = told.f_type & 0xffff_ffff;
    let found = KINDS.iter().find(|(number, _)| *number == kind)?;
    Some(found.1.to_owned())
}

/// Room at a path, or above it where it does not exist yet.
pub(super) fn place(path: &Path) -> io::Result<PlaceState> {
    let (folder, _) = file::nearest(path);
    let room = rustix::fs::statvfs(&folder)?;
    let size = |blocks: u64| Bytes(blocks.saturating_mul(room.f_frsize));
    Ok(PlaceState {
        free: size(room.f_bavail),
        total: size(room.f_blocks),
        not_writable: file::not_writable(&folder),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(role: &'static str, path: &Path) -> Folder {
        Folder {
            role,
            path: path.to_owned(),
            set_by: None,
        }
    }

    #[test]
    fn variables_move_the_folders() {
        let env = BTreeMap::from([
            ("MIOPEN_USER_DB_PATH".to_owned(), "~/db".to_owned()),
            ("MIOPEN_CUSTOM_CACHE_DIR".to_owned(), String::new()),
        ]);
        let all = of_miopen(&env, Path::new("/h"), Path::new("/t"));
        let told: Vec<_> = all
            .iter()
            .map(|f| (f.path.to_str().unwrap(), f.set_by))
            .collect();
        assert_eq!(
            told,
            [
                ("/h/db", Some("MIOPEN_USER_DB_PATH")),
                ("/h/.cache/miopen", None),
                ("/t/miopen-lockfiles", None),
            ]
        );
    }

    #[test]
    fn a_db_is_counted_and_its_naive_records_named() {
        let dir = tempfile::tempdir().unwrap();
        let db = "1-2-3=ConvDirectNaiveConvFwd:81.5,0,d\n4-5=GemmFwdRest:1,0,g\nbad\n\n\
                  7-8=ConvDirectNaiveConvFwd:99,0,d;GemmFwdRest:2,0,g\n9-9=ConvDirectNaiveConvFwd:900,0,d\n";
        fs::write(dir.path().join("gfx1100_48.HIP.3_3_0_x.ufdb.txt"), db).unwrap();
        fs::write(dir.path().join("gfx1100_48_1.1.0.udb"), [0; 100]).unwrap();
        fs::create_dir(dir.path().join("gfx1030_30.ufdb.txt")).unwrap();
        let state = look(&folder("user_db", dir.path()));
        let records = state.records.unwrap();
        assert_eq!((records.read, records.bad, records.naive), (4, 1, 2));
        assert_eq!(records.slowest[0].key, "9-9");
        assert_eq!(records.unreadable.len(), 1, "{:?}", records.unreadable);
        assert_eq!(state.files, 2);
        assert_eq!(state.archs["gfx1100"], state.bytes);
        assert_eq!(state.bytes, Bytes(100 + db.len() as u64));
    }

    #[test]
    fn a_file_in_the_place_of_a_folder_is_in_the_way() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("miopen");
        fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink("nowhere", dir.path().join("link")).unwrap();
        for (path, words) in [
            ("miopen", "miopen is no folder"),
            ("miopen/3.3.0", "miopen is no folder"),
            ("link/db", "link is a link to nothing"),
        ] {
            let state = look(&folder("user_db", &dir.path().join(path)));
            let why = state.not_writable.unwrap();
            assert!(why.ends_with(words) && !state.exists, "{why}");
        }
    }

    #[test]
    fn what_does_not_exist_is_judged_by_what_is_above() {
        let dir = tempfile::tempdir().unwrap();
        let state = look(&folder("kernel_cache", &dir.path().join("a/b")));
        assert!(!state.exists && state.not_writable.is_none() && state.records.is_none());
        let room = place(&dir.path().join("a/b")).unwrap();
        assert!(room.free <= room.total && room.total > Bytes(0));
    }
}
