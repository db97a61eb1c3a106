//! What the workload wrote.

use std::ffi::OsStr;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::SystemTime;

use framepack_engine::video;
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

/// Numbered pictures looked at in all, beside those: a video may have 65,536.
const MOST_PICTURES: u32 = 100_000;

/// A result on disk: a file, or a folder of the numbered pictures of a video.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Where, absolute if the root was.
    pub path: PathBuf,
    /// Bytes when it was seen, of a folder those of its pictures.
    pub size: u64,
    /// When it was last written.
    pub modified: SystemTime,
    /// Pictures of a folder; absent: it is a file.
    pub frames: Option<u32>,
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

/// Results below `roots` that were written at or after `since`, newest first. A folder that holds nothing but pictures
/// of a video (`frame_00001.png`, …), all of them as new, is one result. Folders that cannot be read are passed over,
/// and those of a decode that is not finished.
pub fn find(roots: &[PathBuf], since: SystemTime) -> Vec<Found> {
    let mut search = Search {
        since,
        found: Vec::new(),
        entries: MOST_ENTRIES,
        pictures: MOST_PICTURES,
    };
    let mut folders: Vec<(PathBuf, u32)> = roots.iter().rev().map(|r| (r.clone(), 0)).collect();
    while let Some((folder, depth)) = folders.pop() {
        let below = search.folder(&folder);
        if depth < MOST_DEPTH {
            let below = below.into_iter().filter(|path| !is_unfinished(path));
            folders.extend(below.map(|path| (path, depth + 1)));
        }
    }
    let mut found = search.found;
    found.sort_by(|a, b| {
        b.modified
            .cmp(&a.modified)
            .then_with(|| a.path.cmp(&b.path))
    });
    found.dedup_by(|a, b| a.path == b.path);
    found
}

/// What stands at a path, however old: a file, or a folder of pictures. For results that a program names of which it is
/// known that it tells the truth.
pub fn at(path: &Path) -> Option<Found> {
    let about = path.symlink_metadata().ok()?;
    if about.is_dir() {
        let mut search = Search {
            since: SystemTime::UNIX_EPOCH,
            found: Vec::new(),
            entries: MOST_ENTRIES,
            pictures: MOST_PICTURES,
        };
        search.folder(path);
        return search.found.into_iter().find(|found| found.path == path);
    }
    Some(Found {
        path: path.to_owned(),
        size: about.len(),
        modified: about.modified().ok().filter(|_| about.is_file())?,
        frames: None,
    })
}

/// What is found, and how much may still be looked at.
struct Search {
    since: SystemTime,
    found: Vec<Found>,
    entries: u32,
    pictures: u32,
}

impl Search {
    /// Finds what is in a folder; gives the folders in it.
    fn folder(&mut self, folder: &Path) -> Vec<PathBuf> {
        let (mut below, mut found) = (Vec::new(), Vec::new());
        let Ok(entries) = std::fs::read_dir(folder) else {
            return below;
        };
        let mut only_pictures = true;
        for entry in entries.flatten() {
            let is_picture = video::is_picture(&entry.file_name());
            let left = if is_picture {
                &mut self.pictures
            } else {
                &mut self.entries
            };
            let Some(rest) = left.checked_sub(1) else {
                only_pictures = false;
                break;
            };
            *left = rest;
            // Links are not followed: they can lead in circles or far away.
            let kind = entry.file_type().ok();
            let path = entry.path();
            let file = kind
                .is_some_and(|kind| kind.is_file())
                .then(|| self.file(&path, &entry));
            if kind.is_some_and(|kind| kind.is_dir()) {
                below.push(path);
            }
            let file = file.flatten();
            only_pictures &= is_picture && file.is_some();
            found.extend(file);
        }
        let newest = found.iter().map(|file| file.modified).max();
        match newest.filter(|_| only_pictures) {
            Some(modified) => self.found.push(Found {
                path: folder.to_owned(),
                size: found.iter().map(|file| file.size).sum(),
                modified,
                frames: u32::try_from(found.len()).ok(),
            }),
            None => self.found.extend(found),
        }
        below
    }

    /// A file, if it is a result and new.
    fn file(&self, path: &Path, entry: &DirEntry) -> Option<Found> {
        if !RESULT_EXTENSIONS.contains(&extension(path).as_str()) {
            return None;
        }
        let about = entry.metadata().ok()?;
        let modified = about.modified().ok().filter(|at| *at >= self.since)?;
        Some(Found {
            path: path.to_owned(),
            size: about.len(),
            modified,
            frames: None,
        })
    }
}

/// Whether a folder is `OUT.parts/DIGEST`, which holds what a decode has not finished.
fn is_unfinished(folder: &Path) -> bool {
    let is_digest = |name: &str| name.len() == 16 && name.bytes().all(|b| b.is_ascii_hexdigit());
    let parts = folder.parent().and_then(Path::extension);
    let name = folder.file_name().and_then(OsStr::to_str);
    parts == Some(OsStr::new("parts")) && name.is_some_and(is_digest)
}

/// The result among what was found (newest first, as [`find`] gives it): a video before a
/// mesh before an image, of those the last one. `earlier` is what an earlier look found:
/// what has another size now is still growing and is not taken; neither is an
/// empty one.
pub fn result<'f>(found: &'f [Found], earlier: &[Found]) -> Option<&'f Found> {
    let whole = |f: &&Found| {
        f.size > 0
            && !earlier
                .iter()
                .any(|e| e.path == f.path && (e.size != f.size || e.modified != f.modified))
    };
    let rank = |f: &Found| {
        let e = extension(&f.path);
        let e = e.as_str();
        if f.frames.is_some() || VIDEO.contains(&e) {
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
        let file = |name: &str, size, age: u64| Found {
            path: PathBuf::from(name),
            size,
            modified: SystemTime::UNIX_EPOCH + Duration::from_secs(999 - age),
            frames: None,
        };
        let found = [
            file("preview.png", 5, 0),
            file("empty.mp4", 0, 1),
            file("long.mp4", 30, 2),
            file("short.mp4", 20, 3),
        ];
        let name = |f: Option<&Found>| f.unwrap().path.to_str().unwrap().to_owned();
        assert_eq!(name(result(&found, &[])), "long.mp4");
        let growing = [file("long.mp4", 29, 2)];
        assert_eq!(name(result(&found, &growing)), "short.mp4");
        assert_eq!(name(result(&found[..1], &[])), "preview.png");
        assert_eq!(result(&found[1..2], &[]), None);
    }

    #[test]
    fn a_folder_of_numbered_pictures_is_one_result_of_so_many_frames() {
        let dir = tempfile::tempdir().unwrap();
        let (film, since) = (dir.path().join("film"), SystemTime::UNIX_EPOCH);
        for n in 1..=12 {
            touch(&film.join(format!("frame_{n:05}.png")), b"xyz");
        }
        let look = |since| find(&[dir.path().to_path_buf()], since);
        let found = look(since);
        assert_eq!(found.len(), 1, "{found:?}");
        let told = |f: &Found| (f.path.clone(), f.size, f.frames);
        assert_eq!(told(&found[0]), (film.clone(), 36, Some(12)));
        // one more came: it still grows
        touch(&film.join("frame_00013.png"), b"xyz");
        let grown = look(since);
        assert_eq!(result(&grown, &found), None);
        assert_eq!(result(&grown, &grown).unwrap().frames, Some(13));
        // it is a video, and comes before a picture
        touch(&dir.path().join("preview.png"), b"x");
        assert_eq!(result(&look(since), &[]).unwrap().path, film);
        // pictures of an earlier attempt are no part of a result
        let old = std::fs::File::open(film.join("frame_00001.png")).unwrap();
        let now = SystemTime::now();
        old.set_modified(now - Duration::from_mins(5)).unwrap();
        let files = look(now - Duration::from_mins(1));
        assert_eq!(files.len(), 13, "{files:?}");
        assert!(files.iter().all(|f| f.frames.is_none()), "{files:?}");
        // nor is a folder that has something else
        touch(&film.join("notes.txt"), b"x");
        assert!(look(since).iter().all(|f| f.frames.is_none()));
    }

    #[test]
    fn what_stands_at_a_path_is_told_however_old() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| super::at(&dir.path().join(name));
        touch(&dir.path().join("v.mp4"), b"xyz");
        let old = std::fs::File::open(dir.path().join("v.mp4")).unwrap();
        old.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(9))
            .unwrap();
        let told = |found: Option<Found>| found.map(|f| (f.size, f.frames));
        assert_eq!(told(at("v.mp4")), Some((3, None)));
        touch(&dir.path().join("film/frame_00001.png"), b"xy");
        assert_eq!(told(at("film")), Some((2, Some(1))));
        // a folder of anything else is none
        assert_eq!(told(super::at(dir.path())), None);
        assert_eq!(told(at("none.mp4")), None);
    }

    #[test]
    fn more_frames_than_entries_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        let count = MOST_ENTRIES + 1;
        for n in 1..=count {
            touch(&dir.path().join(format!("frame_{n:05}.png")), b"x");
        }
        let found = find(&[dir.path().to_path_buf()], SystemTime::UNIX_EPOCH);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].frames, Some(count));
    }

    #[test]
    fn an_unfinished_decode_is_no_result() {
        let dir = tempfile::tempdir().unwrap();
        let parts = dir.path().join("outputs/v.parts");
        touch(&parts.join("0123456789abcdef/whole/frame_00001.png"), b"x");
        let roots = roots(&[], dir.path());
        assert_eq!(find(&roots, SystemTime::UNIX_EPOCH), []);
        touch(&parts.join("album/frame_00001.png"), b"x");
        assert_eq!(find(&roots, SystemTime::UNIX_EPOCH).len(), 1);
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
