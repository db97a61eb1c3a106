//! The layers of `src/lib.rs`, held to: who may use whom, and that the pure ones have
//! no clock, no I/O and no threads.
//!
//! Sources are read as Rust tokens, so comments and strings do not count, paths inside
//! macros do, and `#[cfg(test)]` items are left out.

#[cfg(test)]
#[path = "layering/documents.rs"]
mod documents;
#[cfg(test)]
#[path = "layering/source.rs"]
mod source;

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::source::{Used, paths_used};

    /// A layer: what of ours it may use, and whether it is pure.
    struct Layer {
        name: &'static str,
        may_use: &'static [&'static str],
        pure: bool,
    }

    const fn layer(name: &'static str, may_use: &'static [&'static str], pure: bool) -> Layer {
        Layer {
            name,
            may_use,
            pure,
        }
    }

    /// The table of `src/lib.rs`. `a::b`: only that part of the layer.
    const LAYERS: [Layer; 17] = [
        layer("model", &[], true),
        layer("forecast", &["model"], true),
        // which program an instruction names, and whose arguments it takes
        layer("causes", &["model", "workload::adapter::AdapterKind"], true),
        layer("detect", &["model", "forecast", "causes"], true),
        layer(
            "policy",
            &["model", "forecast", "causes", "profile", "detect::verdicts"],
            true,
        ),
        layer("profile", &["model", "detect::verdicts"], true),
        layer(
            "run",
            &["model", "forecast", "causes", "detect", "policy", "profile"],
            true,
        ),
        layer("agent", &["model", "profile"], false),
        layer("telemetry", &["model", "profile"], false),
        layer("workload", &["model", "profile"], false),
        layer("supervise", &["model", "profile", "workload"], false),
        layer("record", &["model", "profile"], false),
        layer(
            "doctor",
            &["model", "profile", "workload::adapter::AdapterKind"],
            false,
        ),
        layer("vault", &["model", "profile"], false),
        layer(
            "ui",
            &[
                "model",
                "forecast",
                "run::snapshot",
                "run::Snapshot",
                "profile",
                "doctor::finding",
                "doctor::report",
                "doctor::facts",
                "diagnose::report",
                // what a program is called, and how its queue goes on
                "workload::adapter::title_of",
                "workload::adapter::queue_waits_for_user",
            ],
            false,
        ),
        layer(
            "diagnose",
            &[
                "model", "causes", "detect", "policy", "run", "profile", "workload", "record",
            ],
            false,
        ),
        layer("cli", &["*"], false),
    ];

    /// Looking at a clock.
    const CLOCKS: [&str; 5] = [
        "Instant::now",
        "SystemTime::now",
        "Timestamp::now",
        "Zoned::now",
        "clock_gettime",
    ];
    /// Touching the world.
    const WORLD: [&str; 10] = [
        "std::fs",
        "std::thread",
        "std::process",
        "std::net",
        "tokio",
        "rustix",
        "procfs",
        "sysinfo",
        "crossterm",
        "tracing",
    ];

    /// What is wrong with one use of a path in the file at `file` (relative to `src`).
    fn judge(file: &Path, used: &Used) -> Option<String> {
        let own = layer_of(file)?;
        let path = used.path.join("::");
        let wrong = |why: String| Some(format!("src/{}:{}: {why}", file.display(), used.line));
        let Some(own) = LAYERS.iter().find(|l| l.name == own) else {
            return wrong(format!(
                "`{own}` is in no layer: name it in src/lib.rs and here"
            ));
        };
        if let ["crate", of_ours @ ..] =
            &used.path.iter().map(String::as_str).collect::<Vec<_>>()[..]
            && let Some(first) = of_ours.first()
            && LAYERS.iter().any(|l| l.name == *first)
            && *first != own.name
            && !own
                .may_use
                .iter()
                .any(|may| *may == "*" || covers(may, of_ours))
        {
            return wrong(format!("`{}` must not use `{path}`", own.name));
        }
        if own.pure {
            if let Some(clock) = CLOCKS.iter().find(|c| contains(&used.path, c)) {
                return wrong(format!(
                    "`{}` is pure and must not call `{clock}`",
                    own.name
                ));
            }
            let catalogue =
                own.name == "profile" && file.to_str().is_some_and(|f| f.contains("/catalog"));
            let world = WORLD.iter().find(|w| contains(&used.path, w));
            if let (Some(world), false) = (world, catalogue) {
                return wrong(format!("`{}` is pure and must not use `{world}`", own.name));
            }
        }
        None
    }

    /// First folder or file name below `src`; none for `lib.rs` and `main.rs`.
    fn layer_of(file: &Path) -> Option<&str> {
        let first = Path::new(file.components().next()?.as_os_str())
            .file_stem()?
            .to_str()?;
        (!matches!(first, "lib" | "main")).then_some(first)
    }

    /// `may` = `run::snapshot` covers `["run", "snapshot", "Point"]`.
    fn covers(may: &str, path: &[&str]) -> bool {
        let may: Vec<_> = may.split("::").collect();
        path.starts_with(&may)
    }

    /// Whether the segments of `words` follow each other in `path`; `std::…` and crates
    /// only at its beginning.
    fn contains(path: &[String], words: &str) -> bool {
        let words: Vec<_> = words.split("::").collect();
        let mut places = path.windows(words.len());
        if words[0].starts_with(|c: char| c.is_uppercase()) || words == ["clock_gettime"] {
            places.any(|w| w == words)
        } else {
            places.next().is_some_and(|w| w == words)
        }
    }

    /// Every source but `tests.rs`, which holds what `#[cfg(test)] mod tests;` declares.
    fn sources() -> Vec<(PathBuf, String)> {
        let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let (mut folders, mut found) = (vec![top.clone()], Vec::new());
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension() == Some("rs".as_ref())
                    && path.file_stem() != Some("tests".as_ref())
                {
                    let text = std::fs::read_to_string(&path).unwrap();
                    found.push((path.strip_prefix(&top).unwrap().to_owned(), text));
                }
            }
        }
        found.sort();
        found
    }

    fn complaints(file: &str, text: &str) -> Vec<String> {
        let file = Path::new(file);
        let used = paths_used(file, text).unwrap();
        used.iter().filter_map(|u| judge(file, u)).collect()
    }

    #[test]
    fn layers_hold() {
        let sources = sources();
        assert!(sources.len() > 10, "{} sources found", sources.len());
        let wrong: Vec<_> = sources
            .iter()
            .flat_map(|(file, text)| complaints(file.to_str().unwrap(), text))
            .collect();
        assert!(wrong.is_empty(), "layers are broken:\n{}", wrong.join("\n"));
    }

    #[test]
    fn table_of_the_crate_names_every_layer() {
        let crate_page = include_str!("../src/lib.rs");
        let first_column: Vec<_> = crate_page
            .lines()
            .filter_map(|l| l.strip_prefix("//! | "))
            .filter_map(|l| l.split('|').next())
            .collect();
        for layer in LAYERS {
            let word = format!("`{}`", layer.name);
            assert!(
                first_column.iter().any(|c| c.contains(&word)),
                "{word} is not in src/lib.rs"
            );
        }
    }

    /// File, source, and what must be said about it.
    const PLANTED: [(&str, &str, &str); 19] = [
        (
            "model/a.rs",
            "use crate::run::Snapshot;",
            "must not use `crate::run::Snapshot`",
        ),
        (
            "detect/mod.rs",
            "use crate::{model::Mono, policy};",
            "must not use `crate::policy`",
        ),
        (
            "detect.rs",
            "fn f() { crate::policy::decide() }",
            "must not use `crate::policy::decide`",
        ),
        (
            "ui/a.rs",
            "use crate::run::reduce;",
            "must not use `crate::run::reduce`",
        ),
        (
            "ui/a.rs",
            "use crate::run::{Snapshot, state::S};",
            "must not use `crate::run::state::S`",
        ),
        (
            "telemetry/a.rs",
            "use crate::supervise::Kill;",
            "must not use",
        ),
        (
            "supervise/a.rs",
            "use super::super::detect::Detector;",
            "must not use `crate::detect::Detector`",
        ),
        (
            "supervise/mod.rs",
            "use super::ui;",
            "must not use `crate::ui`",
        ),
        (
            "run/reduce.rs",
            "fn f() { let t = Instant::now(); }",
            "must not call `Instant::now`",
        ),
        (
            "profile/catalog.rs",
            "fn f() { jiff::Zoned::now(); }",
            "must not call `Zoned::now`",
        ),
        (
            "model/a.rs",
            "fn f() { let _ = std::time::SystemTime::now(); }",
            "`SystemTime::now`",
        ),
        (
            "policy/a.rs",
            "use std::{collections::BTreeMap, fs};",
            "must not use `std::fs`",
        ),
        (
            "profile/lint.rs",
            "use std::fs::read;",
            "must not use `std::fs`",
        ),
        (
            "detect/a.rs",
            "use std::{fs::{self, File as F}};",
            "must not use `std::fs`",
        ),
        (
            "run/a.rs",
            "fn f() { vec![std::thread::spawn(g)]; }",
            "must not use `std::thread`",
        ),
        (
            "run/a.rs",
            "async fn f() { tokio::time::sleep(d).await }",
            "must not use `tokio`",
        ),
        (
            "run/a.rs",
            "#[cfg(test)] mod t { use std::fs; } use std::net::IpAddr;",
            "`std::net`",
        ),
        (
            "vault/a.rs",
            "use crate::record::Store;",
            "must not use `crate::record::Store`",
        ),
        ("helpers/a.rs", "use std::fmt;", "is in no layer"),
    ];

    #[test]
    fn planted_violations_are_caught() {
        for (file, text, complaint) in PLANTED {
            let found = complaints(file, text);
            assert!(!found.is_empty(), "not caught: {file}: {text}");
            assert!(found.iter().all(|f| f.contains(complaint)), "{found:?}");
        }
    }

    #[test]
    fn what_is_right_is_left_alone() {
        for (file, text) in [
            (
                "run/a.rs",
                "use crate::{model::Mono, detect::Detector, policy::Ladder};",
            ),
            (
                "ui/a.rs",
                "use crate::run::snapshot::Point; use crate::run::Snapshot;",
            ),
            (
                "cli/run.rs",
                "use crate::{supervise, telemetry, ui}; use std::fs;",
            ),
            (
                "profile/catalog.rs",
                "use std::fs; fn f() { std::fs::read(p); }",
            ),
            ("profile/catalog/find.rs", "use std::fs;"),
            (
                "model/a.rs",
                "/// Not `std::fs`, see crate::ui.\nconst A: &str = \"std::thread\"; // tokio",
            ),
            (
                "detect/a.rs",
                "#[cfg(test)]\nmod tests { use std::fs; fn f() { Instant::now(); } }",
            ),
            (
                "detect/a.rs",
                "#[cfg(test)] use crate::ui; #[test] fn f() {}",
            ),
            (
                "detect/rule/spin.rs",
                "use super::super::window::Window; use super::Check;",
            ),
            ("main.rs", "fn main() { framepack_tui::cli::main() }"),
            (
                "model/a.rs",
                "use std::time::Duration; use std::process_like;",
            ),
        ] {
            assert_eq!(
                complaints(file, text),
                Vec::<String>::new(),
                "{file}: {text}"
            );
        }
    }
}
