//! Files that the workload wrote.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::SystemTime;

use regex::Regex;

use super::pattern;

/// File name endings of results.
pub const RESULT_EXTENSIONS: &[&str] = &[
    "mp4",
    "webm",
    "mkv",
    "mov",
    "avi",
    "gif",
    "webp",
    "png",
    "glb",
    "obj",
    "ply",
    "latent",
    "safetensors",
];

/// Those of them that are moving pictures.
const VIDEO: &[&str] = &["mp4", "webm", "mkv", "mov", "avi", "gif", "webp"];

/// Those of them that are meshes.
const MESH: &[&str] = &["glb", "obj", "ply"];

/// Options whose value is where results go.
const OPTIONS: &[&str] = &[
    "-o",
    "--out",
    "--output",
    "--outdir",
    "--out-dir",
    "--out_dir",
    "--output-dir",
    "--output_dir",
    "--output-directory",
    "--output-path",
    "--output_path",
    "--save-path",
    "--save_path",
    "--save_file",
    "--save-file",
];

/// Folders looked into below a root.
const MOST_DEPTH: u32 = 3;

/// Directory entries looked at in all.
const MOST_ENTRIES: u32 = 20_000;

/// A result file on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundFile {
    /// Where, absolute if the root was.
    pub path: PathBuf,
    /// Bytes when it was seen.
    pub size: u64,
    /// When it was last written.
    pub modified: SystemTime,
}

fn extension(path: &Path) -> String {
    path.extension()
        .and_then(OsStr::to_str)
        .unwrap_or_default()
        .to_ascii_lowercase()
}

/// Where a workload may write its results: `outputs` and `output` below `cwd`, and the
/// values of the usual output options (of a file: its folder).
pub fn roots(argv: &[String], cwd: &Path) -> Vec<PathBuf> {
    let mut found = vec![cwd.join("outputs"), cwd.join("output")];
    let mut add = |value: &str| {
        let path = cwd.join(value);
        let is_file = RESULT_EXTENSIONS.contains(&extension(&path).as_str());
        let folder = if is_file {
            path.parent().map(Path::to_path_buf)
        } else {
            Some(path)
        };
        if let Some(folder) = folder
            && !found.contains(&folder)
        {
            found.push(folder);
        }
    };
    for (i, word) in argv.iter().enumerate() {
        if let Some((name, value)) = word.split_once('=')
            && OPTIONS.contains(&name)
        {
            add(value);
        } else if OPTIONS.contains(&word.as_str())
            && let Some(value) = argv.get(i + 1)
        {
            add(value);
        }
    }
    found
}

/// Result files below `roots` that were written at or after `since`, newest first.
/// Folders that cannot be read are passed over.
pub fn find(roots: &[PathBuf], since: SystemTime) -> Vec<FoundFile> {
    let mut found = Vec::new();
    let mut left = MOST_ENTRIES;
    let mut folders: Vec<(PathBuf, u32)> = roots.iter().rev().map(|r| (r.clone(), 0)).collect();
    while let Some((folder, depth)) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries.flatten() {
            if left == 0 {
                break;
            }
            left -= 1;
            // Links are not followed: they can lead in circles or far away.
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            let path = entry.path();
            if kind.is_dir() && depth < MOST_DEPTH {
                folders.push((path, depth + 1));
            } else if kind.is_file()
                && RESULT_EXTENSIONS.contains(&extension(&path).as_str())
                && let Ok(meta) = entry.metadata()
                && let Ok(modified) = meta.modified()
                && modified >= since
            {
                found.push(FoundFile {
                    path,
                    size: meta.len(),
                    modified,
                });
            }
        }
    }
    found.sort_by(|a, b| {
        b.modified
            .cmp(&a.modified)
            .then_with(|| a.path.cmp(&b.path))
    });
    found.dedup_by(|a, b| a.path == b.path);
    found
}

/// The result among found files (newest first, as [`find`] gives them): a video before a
/// mesh before an image, of those the last one. `earlier` is what an earlier look found:
/// a file that has another size now is still growing and is not taken; neither is an
/// empty one.
pub fn result<'f>(found: &'f [FoundFile], earlier: &[FoundFile]) -> Option<&'f FoundFile> {
    let whole = |f: &&FoundFile| {
        f.size > 0
            && !earlier
                .iter()
                .any(|e| e.path == f.path && (e.size != f.size || e.modified != f.modified))
    };
    let rank = |f: &FoundFile| {
        let e = extension(&f.path);
        let e = e.as_str();
        if VIDEO.contains(&e) {
            0
        } else if MESH.contains(&e) {
            1
        } else {
            2
        }
    };
    // `min_by_key` keeps the first of equals: the newest.
    found.iter().filter(whole).min_by_key(|f| rank(f))
}

static WROTE: LazyLock<Regex> = LazyLock::new(|| {
    let endings = RESULT_EXTENSIONS.join("|");
    pattern(&format!(
        r#"(?i)\b(?:wrote|written|saved?|exported|output|result|video ready)\b.{{0,40}}?(?:\b(?:to|at|as|in|ready|wrote|saved|is)\b:?|:)?\s+['"`]?(?P<path>[^\s'"`<>|:]*[^\s'"`<>|:/]\.(?:{endings}))\b"#
    ))
});

/// The path of a result that a line of the console names as written (`Wrote X.mp4 in`,
/// `Saved to X.mp4`, `Output written to X.mp4`), as it stands there.
pub fn path_in_line(text: &str) -> Option<&str> {
    // Beginnings are no results.
    let lower = text.to_ascii_lowercase();
    if [
        "loading", "loaded", "will be", "saving", "writing", "download", "failed", "error",
    ]
    .iter()
    .any(|w| lower.contains(w))
    {
        return None;
    }
    WROTE.captures(text)?.name("path").map(|m| m.as_str())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn touch(path: &Path, bytes: &[u8]) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    #[test]
    fn finds_what_is_new_and_no_deeper_than_three() {
        let dir = tempfile::tempdir().unwrap();
        let cwd = dir.path();
        touch(&cwd.join("outputs/a.mp4"), b"x");
        touch(&cwd.join("outputs/1/2/3/b.MP4"), b"x");
        touch(&cwd.join("outputs/1/2/3/4/c.mp4"), b"x");
        touch(&cwd.join("outputs/d.txt"), b"x");
        touch(&cwd.join("o/e.png"), b"x");
        let argv = ["p", "--out", "o", "-o", "deep/f.mp4", "--output_dir=/abs"].map(str::to_owned);
        let roots = roots(&argv, cwd);
        let want: Vec<_> = ["outputs", "output", "o", "deep"]
            .iter()
            .map(|r| cwd.join(r))
            .chain([PathBuf::from("/abs")])
            .collect();
        assert_eq!(roots, want);
        let mut names: Vec<_> = find(&roots, SystemTime::UNIX_EPOCH)
            .iter()
            .map(|f| f.path.file_name().unwrap().to_str().unwrap().to_owned())
            .collect();
        names.sort();
        assert_eq!(names, ["a.mp4", "b.MP4", "e.png"]);
        let future = SystemTime::now() + Duration::from_mins(1);
        assert_eq!(find(&roots, future), []);
    }

    #[test]
    fn the_result_is_the_last_whole_video() {
        let file = |name: &str, size, age: u64| FoundFile {
            path: PathBuf::from(name),
            size,
            modified: SystemTime::UNIX_EPOCH + Duration::from_secs(999 - age),
        };
        let found = [
            file("preview.png", 5, 0),
            file("empty.mp4", 0, 1),
            file("long.mp4", 30, 2),
            file("short.mp4", 20, 3),
        ];
        let name = |f: Option<&FoundFile>| f.unwrap().path.to_str().unwrap().to_owned();
        assert_eq!(name(result(&found, &[])), "long.mp4");
        let growing = [file("long.mp4", 29, 2)];
        assert_eq!(name(result(&found, &growing)), "short.mp4");
        assert_eq!(name(result(&found[..1], &[])), "preview.png");
        assert_eq!(result(&found[1..2], &[]), None);
    }

    #[test]
    fn paths_in_lines() {
        for (line, want) in [
            ("Wrote out/x_10.mp4 in 2.3 s", Some("out/x_10.mp4")),
            ("Saved to /a/b.webm", Some("/a/b.webm")),
            ("Output written to 'r/c.glb'", Some("r/c.glb")),
            ("video saved at: out/d.mp4", Some("out/d.mp4")),
            ("Moviepy - video ready e.mp4", Some("e.mp4")),
            ("Result: f.png", Some("f.png")),
            ("Saving to g.mp4", None),
            ("Loaded weights saved in h.safetensors", None),
            ("Wrote nothing", None),
            ("x.mp4", None),
        ] {
            assert_eq!(path_in_line(line), want, "{line}");
        }
    }
}
