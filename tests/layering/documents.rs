//! The documents: their lengths, their links and the index of `docs/`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Longest line of prose and code, in characters. A row of a table cannot be broken.
const LINE: usize = 120;
/// Most lines of `README.md`.
const README: usize = 200;

/// A Markdown file, with the path from the repository's root.
struct Page {
    path: PathBuf,
    text: String,
}

impl Page {
    /// Whether a program writes this page: `scripts/bench`, or the test of the causes.
    fn is_generated(&self) -> bool {
        let date =
            |name: &str| name.len() == 10 && name.chars().all(|c| c.is_ascii_digit() || c == '-');
        self.path == Path::new("docs/causes.md")
            || (self.path.starts_with("docs/benchmarks")
                && self
                    .path
                    .file_stem()
                    .is_some_and(|n| date(&n.to_string_lossy())))
    }

    /// Numbers from 1 and texts of the lines outside of fenced and indented code.
    fn prose(&self) -> Vec<(usize, &str)> {
        let (mut fenced, mut indented, mut blank) = (false, false, true);
        let mut found = Vec::new();
        for (number, line) in (1..).zip(self.text.lines()) {
            if line.trim_start().starts_with("```") {
                fenced = !fenced;
            } else {
                indented = line.starts_with("    ")
                    && (indented || blank)
                    && !line.trim_start().starts_with(['*', '-', '|']);
                if !fenced && !indented {
                    found.push((number, line));
                }
            }
            blank = line.trim().is_empty();
        }
        found
    }

    /// The anchors that GitHub gives to the headings.
    fn anchors(&self) -> Vec<String> {
        let mut seen = BTreeMap::<String, usize>::new();
        let headings = self.prose().into_iter().filter(|(_, l)| l.starts_with('#'));
        headings
            .map(|(_, line)| {
                let slug: String = line
                    .trim_start_matches('#')
                    .trim()
                    .to_lowercase()
                    .chars()
                    .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
                    .map(|c| if c == ' ' { '-' } else { c })
                    .collect();
                let times = seen.entry(slug.clone()).or_default();
                *times += 1;
                match *times {
                    1 => slug,
                    n => format!("{slug}-{}", n - 1),
                }
            })
            .collect()
    }

    /// Targets of the links, with the number of their line.
    fn links(&self) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        for (number, line) in self.prose() {
            // every other part lies between backticks
            let text: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
            for part in text.split("](").skip(1) {
                if let Some((target, _)) = part.split_once(')') {
                    found.push((number, target.to_owned()));
                }
            }
        }
        found
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn page(path: impl Into<PathBuf>) -> Page {
    let path = path.into();
    let text = std::fs::read_to_string(root().join(&path)).unwrap();
    Page { path, text }
}

/// The documents for users and contributors.
fn pages() -> Vec<Page> {
    let fixed = [
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "profiles/README.md",
    ];
    let mut found: Vec<_> = fixed.map(page).into();
    let mut folders = vec![PathBuf::from("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root().join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let path = folder.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                folders.push(path);
            } else if path.extension() == Some("md".as_ref()) {
                found.push(page(path));
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// What is wrong with a link of `page`, if anything.
fn broken(page: &Page, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = page.path.parent().unwrap_or(Path::new("")).join(file);
    if !root().join(&path).exists() {
        return Some(format!("{} does not exist", path.display()));
    }
    let known = match file {
        "" => page.anchors(),
        _ if anchor.is_empty() => return None,
        _ => self::page(&path).anchors(),
    };
    (!known.iter().any(|a| a == anchor)).then(|| format!("there is no heading #{anchor}"))
}

#[test]
fn readme_is_a_front_page() {
    let lines = page("README.md").text.lines().count();
    assert!(
        lines <= README,
        "README.md has {lines} lines, {README} are allowed"
    );
}

#[test]
fn lines_of_documents_are_short() {
    let mut long = Vec::new();
    for page in pages().iter().filter(|p| !p.is_generated()) {
        for (number, line) in (1..).zip(page.text.lines()) {
            let length = line.chars().count();
            if length > LINE && !line.starts_with('|') {
                long.push(format!(
                    "{}:{number}: {length} characters",
                    page.path.display()
                ));
            }
        }
    }
    assert!(
        long.is_empty(),
        "lines over {LINE} characters:\n{}",
        long.join("\n")
    );
}

#[test]
fn links_of_documents_resolve() {
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for page in pages() {
        for (number, target) in page.links() {
            seen += 1;
            if let Some(why) = broken(&page, &target) {
                wrong.push(format!("{}:{number}: {target}: {why}", page.path.display()));
            }
        }
    }
    assert!(seen > 100, "only {seen} links were found");
    assert!(
        wrong.is_empty(),
        "links that lead nowhere:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn the_index_names_every_page() {
    let index = page("docs/README.md");
    let linked: Vec<_> = index
        .links()
        .into_iter()
        .map(|(_, target)| target)
        .collect();
    for entry in std::fs::read_dir(root().join("docs")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let folder = format!("{name}/README.md");
        assert!(
            name == "README.md" || linked.contains(&name) || linked.contains(&folder),
            "docs/README.md has no link to {name}"
        );
    }
}

#[test]
fn links_and_anchors_are_found() {
    let page = Page {
        path: PathBuf::from("docs/x.md"),
        text: "# `run --json`, what_is\n\n[a](b.md) `[no](c.md)` and [d](e.md#f),\n[g](#again)\n\n    [code](h.md)\n\n\
               ```\n# no heading [i](j.md)\n```\n\n## Again\n\n## Again\n\n- item\n    goes on [k](l.md)\n"
            .to_owned(),
    };
    let links: Vec<_> = page.links();
    let targets: Vec<_> = links.iter().map(|(n, t)| (*n, t.as_str())).collect();
    assert_eq!(
        targets,
        [(3, "b.md"), (3, "e.md#f"), (4, "#again"), (17, "l.md")]
    );
    assert_eq!(page.anchors(), ["run---json-what_is", "again", "again-1"]);
    assert_eq!(broken(&page, "#again-1"), None);
    assert_eq!(broken(&page, "../README.md"), None);
    assert!(broken(&page, "#again-2").is_some());
    assert!(broken(&page, "no_such_page.md").is_some());
    assert!(broken(&page, "../README.md#no-such-heading").is_some());
}
