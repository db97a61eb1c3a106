//! Which libMIOpen a program would load, and what it contains. It is read, not loaded.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::bytes::Regex;

use super::{file, system};
use crate::doctor::facts::{FindDbs, Libraries, LibraryFile, Look, MiopenLibrary, PythonAnswer};
use crate::model::Bytes;

/// Bytes that are read at a time.
const CHUNK: usize = 1 << 20;
/// The longest text that must not be torn between two reads.
const OVERLAP: usize = 256;
/// More names than this are no names.
const MOST_NAMES: usize = 20_000;
/// Files of rocBLAS that are looked at.
const MOST_FILES: usize = 50_000;

#[expect(clippy::expect_used, reason = "a literal pattern, used by a test")]
static NAME: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?-u)MIOPEN_[A-Z0-9_]{2,100}").expect("valid"));
#[expect(clippy::expect_used, reason = "a literal pattern, used by a test")]
static VERSION: LazyLock<Regex> = LazyLock::new(|| {
    // `3.3.0.` and the commit: the folder of the kernel cache
    Regex::new(r"(?-u)[1-9]\.[0-9]{1,2}\.[0-9]{1,2}\.[0-9a-z-]{7,48}").expect("valid")
});
#[expect(clippy::expect_used, reason = "a literal pattern, used by a test")]
static ARCH: LazyLock<regex::Regex> =
    LazyLock::new(|| regex::Regex::new(r"gfx(?:1[0-9]|[6-9])[0-9a-f]{2}").expect("valid"));

/// Looks for the files and reads the likeliest.
pub(super) fn look(
    root: &Path,
    env: &BTreeMap<String, String>,
    python: Option<&PythonAnswer>,
) -> Libraries {
    let folders = folders(root, env, python);
    let mut found: Vec<LibraryFile> = Vec::new();
    for (folder, origin) in &folders {
        if let Some(path) = library_in(folder)
            && !found.iter().any(|f| f.path == path)
        {
            found.push(LibraryFile {
                path,
                origin: (*origin).to_owned(),
            });
        }
    }
    let miopen = found.first().map(|first| {
        let path = Path::new(&first.path);
        match read(path) {
            Ok(mut library) => {
                library.version = by_header(path).or(library.version);
                Look::Known(library)
            }
            Err(e) => Look::Unknown(file::words(&e)),
        }
    });
    let rocblas = folders
        .iter()
        .map(|(folder, _)| folder.join("rocblas/library"))
        .find(|folder| folder.is_dir());
    Libraries {
        miopen,
        rocblas_archs: rocblas.as_ref().map(|f| archs_in(f)),
        rocblas_path: rocblas.map(|f| f.display().to_string()),
        find_dbs: find_dbs(&found, env),
        found,
    }
}

/// The find databases beside the first library (MIOpen's `GetSystemDbPath`). Their names begin
/// with the architecture: `gfx110060.HIP.fdb.txt`, `gfx1030_36.HIP.fdb.txt`.
fn find_dbs(found: &[LibraryFile], env: &BTreeMap<String, String>) -> Option<FindDbs> {
    let named = env.get("MIOPEN_SYSTEM_DB_PATH").filter(|v| !v.is_empty());
    let folder = match named {
        Some(named) => PathBuf::from(named),
        None => Path::new(&found.first()?.path)
            .parent()?
            .parent()?
            .join("share/miopen/db"),
    };
    let inside = folder.is_dir().then(|| file::names(&folder, MOST_FILES))?;
    let dbs = inside.iter().filter(|name| name.ends_with(".fdb.txt"));
    Some(FindDbs {
        path: folder.display().to_string(),
        archs: dbs.filter_map(|n| arch_of(n)).map(str::to_owned).collect(),
    })
}

/// Folders of libraries, in the order in which torch finds its own.
fn folders(
    root: &Path,
    env: &BTreeMap<String, String>,
    python: Option<&PythonAnswer>,
) -> Vec<(PathBuf, &'static str)> {
    let torch = python.and_then(|p| p.torch.as_ref());
    // CUDA builds load none
    let with_hip = torch.filter(|t| t.hip.is_some());
    let torch = with_hip.map(|t| (Path::new(&t.folder).join("lib"), "torch"));
    let sdk = python.into_iter().flat_map(|p| &p.rocm_sdk);
    let sdk = sdk.map(|f| (Path::new(f).join("lib"), "rocm_sdk"));
    let path = env
        .get("LD_LIBRARY_PATH")
        .map(String::as_str)
        .unwrap_or_default();
    let path = std::env::split_paths(path).filter(|p| p.is_absolute());
    let path: Vec<_> = path.map(|p| (p, "ld_library_path")).collect();
    let rocm = system::folders_of_rocm(root, env);
    let rocm = rocm.into_iter().map(|f| (f.join("lib"), "rocm"));
    let system = ["usr/lib/x86_64-linux-gnu", "usr/lib64", "usr/lib"];
    let system = system.map(|f| (root.join(f), "system"));
    torch
        .into_iter()
        .chain(sdk)
        .chain(path)
        .chain(rocm)
        .chain(system)
        .collect()
}

/// `libMIOpen.so`, by whatever version, links followed.
fn library_in(folder: &Path) -> Option<String> {
    let names = file::names(folder, MOST_FILES);
    let name = names.iter().find(|n| n.starts_with("libMIOpen.so"))?;
    let path = folder.join(name).canonicalize().ok()?;
    path.is_file().then(|| path.display().to_string())
}

/// Version by the header that is installed beside the library.
fn by_header(library: &Path) -> Option<String> {
    let header = library.parent()?.parent()?.join("include/miopen/version.h");
    let text = file::text(&header, 1 << 16)?;
    let part = |name: &str| {
        let name = format!("MIOPEN_VERSION_{name}");
        let line = text
            .lines()
            .find(|l| l.split_whitespace().nth(1) == Some(&name))?;
        line.split_whitespace().nth(2).map(str::to_owned)
    };
    Some(format!(
        "{}.{}.{}",
        part("MAJOR")?,
        part("MINOR")?,
        part("PATCH")?
    ))
}

fn read(path: &Path) -> io::Result<MiopenLibrary> {
    let mut file = File::open(path)?;
    let mut magic = [0; 4];
    if file.read_exact(&mut magic).is_err() || magic != *b"\x7fELF" {
        return Err(io::Error::other(
            "it is no shared library: it does not begin with the ELF magic number",
        ));
    }
    let bytes = Bytes(file.metadata()?.len());
    let (names, version) = scan(file)?;
    Ok(MiopenLibrary {
        bytes,
        version,
        names,
    })
}

/// Names and version within a stream of bytes, of which a small window is held.
fn scan(mut input: impl Read) -> io::Result<(BTreeSet<String>, Option<String>)> {
    let mut window = Vec::with_capacity(CHUNK + OVERLAP);
    let (mut names, mut versions) = (BTreeSet::new(), BTreeSet::new());
    let mut first = true;
    loop {
        let got = input.by_ref().take(CHUNK as u64).read_to_end(&mut window)?;
        for (pattern, into) in [(&*NAME, &mut names), (&*VERSION, &mut versions)] {
            let texts = pattern.find_iter(&window).filter(|m| {
                // what begins a later window lay within the one before
                let before = m.start().checked_sub(1).map(|at| window[at]);
                before.map_or(first, |b| !b.is_ascii_alphanumeric() && b != b'_')
                    && window.get(m.end()) == Some(&0)
            });
            for text in texts {
                if into.len() < MOST_NAMES {
                    into.insert(String::from_utf8_lossy(text.as_bytes()).into_owned());
                }
            }
        }
        if got == 0 {
            break;
        }
        first = false;
        window.drain(..window.len().saturating_sub(OVERLAP));
    }
    // two versions: one of them is another library's
    let version = (versions.len() == 1)
        .then(|| versions.pop_first())
        .flatten();
    let release = |v: String| v.splitn(4, '.').take(3).collect::<Vec<_>>().join(".");
    Ok((names, version.map(release)))
}

/// Architectures in the names of a folder's files.
fn archs_in(folder: &Path) -> BTreeSet<String> {
    let names = file::names(folder, MOST_FILES);
    let found = names.iter().flat_map(|n| ARCH.find_iter(n));
    found.map(|m| m.as_str().to_owned()).collect()
}

/// The architecture in a file's name: `gfx1100_48.HIP…` is of `gfx1100`, `gfx90a6e` of
/// `gfx90a`.
pub(super) fn arch_of(name: &str) -> Option<&str> {
    let found = ARCH.find(name).filter(|m| m.start() == 0)?;
    Some(found.as_str())
}

#[cfg(test)]
mod tests {
    #[test]
    fn find_databases_lie_beside_the_library_or_where_the_variable_says() {
        let dir = tempfile::tempdir().unwrap();
        let lib = dir.path().join("lib");
        let db = dir.path().join("share/miopen/db");
        std::fs::create_dir_all(&lib).unwrap();
        let found = [LibraryFile {
            path: lib.join("libMIOpen.so.1").display().to_string(),
            origin: "rocm".to_owned(),
        }];
        let none = BTreeMap::new();
        assert_eq!(find_dbs(&found, &none), None, "no folder is not no file");
        std::fs::create_dir_all(&db).unwrap();
        for name in [
            "gfx110060.HIP.fdb.txt",
            "gfx1030_36.HIP.fdb.txt",
            "gfx90a6e.HIP.fdb.txt",
            "gfx120140.db.txt",
            "gfx942130.kdb",
        ] {
            std::fs::write(db.join(name), "").unwrap();
        }
        let archs = |dbs: FindDbs| dbs.archs.into_iter().collect::<Vec<_>>();
        let beside = find_dbs(&found, &none).unwrap();
        assert_eq!(archs(beside), ["gfx1030", "gfx1100", "gfx90a"]);
        let elsewhere = tempfile::tempdir().unwrap();
        let path = elsewhere.path().display().to_string();
        let named = BTreeMap::from([("MIOPEN_SYSTEM_DB_PATH".to_owned(), path)]);
        assert!(archs(find_dbs(&found, &named).unwrap()).is_empty());
    }

    use std::fs;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_texts_of_their_own() {
        let bytes = b"\x7fELF\0MIOPEN_FIND_MODE\0x\0MIOPEN_LOG_LEVEL = \0#if MIOPEN_USE_FP16\n\0\
            NO_MIOPEN_HERE\0MIOPEN_DEBUG_CONV_GEMM\0MIOPEN_NEXT_TO_IT\0\x003.3.0.b8a5ab2e6\0";
        let (names, version) = scan(&bytes[..]).unwrap();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "MIOPEN_DEBUG_CONV_GEMM",
                "MIOPEN_FIND_MODE",
                "MIOPEN_NEXT_TO_IT"
            ]
        );
        assert_eq!(version.as_deref(), Some("3.3.0"));
    }

    #[test]
    fn the_own_library_of_torch_comes_first() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for (folder, text) in [
            ("torch/lib", "\x7fELF\0MIOPEN_A1\0"),
            ("opt/rocm/lib", "\x7fELF\0MIOPEN_B1\0"),
        ] {
            fs::create_dir_all(root.join(folder)).unwrap();
            fs::write(root.join(folder).join("libMIOpen.so.1"), text).unwrap();
        }
        fs::create_dir_all(root.join("torch/lib/rocblas/library")).unwrap();
        let lazy = "torch/lib/rocblas/library/TensileLibrary_lazy_gfx1100.dat";
        fs::write(root.join(lazy), "").unwrap();
        let answer = PythonAnswer {
            torch: Some(crate::doctor::facts::TorchFacts {
                hip: Some("6.4".to_owned()),
                folder: root.join("torch").display().to_string(),
                ..Default::default()
            }),
            ..Default::default()
        };
        let seen = look(&root, &BTreeMap::new(), Some(&answer));
        let origins: Vec<_> = seen.found.iter().map(|f| f.origin.as_str()).collect();
        assert_eq!(origins, ["torch", "rocm"]);
        let library = seen.miopen.unwrap();
        assert!(library.known().unwrap().names.contains("MIOPEN_A1"));
        assert!(seen.rocblas_archs.unwrap().contains("gfx1100"));
        fs::write(root.join("torch/lib/libMIOpen.so.1"), "git-lfs pointer").unwrap();
        let broken = look(&root, &BTreeMap::new(), Some(&answer)).miopen.unwrap();
        assert!(
            matches!(&broken, Look::Unknown(why) if why.contains("elf magic")),
            "{broken:?}"
        );
        let alone = look(&root, &BTreeMap::new(), None);
        assert_eq!(alone.found.len(), 1);
        assert_eq!(alone.rocblas_archs, None);
    }

    #[test]
    fn the_architecture_is_in_the_name() {
        assert_eq!(arch_of("gfx1100_48.HIP.3_3_0_x.ufdb.txt"), Some("gfx1100"));
        assert_eq!(arch_of("gfx90a6e.ukdb"), Some("gfx90a"));
        assert_eq!(arch_of("miopen-gfx1100"), None);
    }

    proptest! {
        #[test]
        fn a_name_is_found_wherever_it_lies(before in 0usize..3_000_000, piece in 1usize..2_000_000) {
            let mut bytes = vec![0u8; before];
            bytes.extend(b"\0MIOPEN_FIND_ENFORCE\0MIOPEN_LOG_LEVEL\0NOT_MIOPEN_THIS\0");
            bytes.resize(bytes.len() + 10, b'x');
            let (head, tail) = bytes.split_at(piece.min(bytes.len()));
            let (names, _) = scan(head.chain(tail)).unwrap();
            let names: Vec<_> = names.iter().map(String::as_str).collect();
            prop_assert_eq!(names, ["MIOPEN_FIND_ENFORCE", "MIOPEN_LOG_LEVEL"]);
        }

        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>) {
            let (names, _) = scan(&bytes[..]).unwrap();
            prop_assert!(names.iter().all(|n| n.starts_with("MIOPEN_")));
        }
    }
}
