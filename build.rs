//! Build information: the revision that `--version` names, where there is a
//! repository to ask. With the feature `bindgen` also the bindings of rocm-smi, made
//! anew (docs/decisions/0007-rocm-smi-bindings.md).

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=FPT_REVISION");
    // a packager without a repository may name the revision
    let revision = std::env::var("FPT_REVISION").ok().or_else(git_revision);
    let version = match revision {
        Some(r) => format!("{} ({r})", env!("CARGO_PKG_VERSION")),
        None => env!("CARGO_PKG_VERSION").to_owned(),
    };
    println!("cargo:rustc-env=FPT_VERSION={version}");
    if let Err(e) = agent::embed() {
        println!("cargo::error=the agent's Python files cannot be embedded: {e}");
    }
    if let Err(e) = causes::embed() {
        println!("cargo::error=the causes cannot be embedded: {e}");
    }
    if let Err(e) = vocabulary::embed() {
        println!("cargo::error=the words of our own sentences cannot be embedded: {e}");
    }
    #[cfg(feature = "bindgen")]
    if let Err(e) = bindings::generate() {
        println!("cargo::error=no bindings of rocm-smi: {e}");
    }
}

mod agent {
    //! `OUT_DIR/agent_files.rs`: every file of the Python package inside the binary.

    use std::error::Error;
    use std::fmt::Write;
    use std::path::{Path, PathBuf};

    const PACKAGE: &str = "src/agent/python";

    pub(crate) fn embed() -> Result<(), Box<dyn Error>> {
        println!("cargo:rerun-if-changed={PACKAGE}");
        let top = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").ok_or("no manifest")?);
        let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo sets no OUT_DIR")?);
        let top = top.join(PACKAGE);
        let mut files = Vec::new();
        collect(&top, &mut files)?;
        files.sort();
        let mut text = String::from("const FILES: &[(&str, &[u8])] = &[\n");
        for file in &files {
            let text_of = |p: &Path| p.to_str().map(str::to_owned).ok_or("a name is no UTF-8");
            let (name, file) = (text_of(file.strip_prefix(&top)?)?, text_of(file)?);
            writeln!(text, "    ({name:?}, include_bytes!({file:?})),")?;
        }
        text.push_str("];\n");
        std::fs::write(out.join("agent_files.rs"), text)?;
        Ok(())
    }

    /// Python sources only: no caches, no tests that lie beside them.
    fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                collect(&path, files)?;
            } else if path.extension() == Some("py".as_ref()) {
                files.push(path);
            }
        }
        Ok(())
    }
}

mod causes {
    //! `OUT_DIR/cause_files.rs`: the name and the text of every file in `causes`.

    use std::error::Error;
    use std::fmt::Write;
    use std::path::PathBuf;

    const FOLDER: &str = "causes";

    pub(crate) fn embed() -> Result<(), Box<dyn Error>> {
        println!("cargo:rerun-if-changed={FOLDER}");
        let top = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").ok_or("no manifest")?);
        let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo sets no OUT_DIR")?);
        let mut files = Vec::new();
        for entry in std::fs::read_dir(top.join(FOLDER))? {
            let path = entry?.path();
            if path.extension() == Some("toml".as_ref()) {
                files.push(path);
            }
        }
        files.sort();
        let mut text = String::from("pub(super) const FILES: &[(&str, &str)] = &[\n");
        for file in &files {
            let name = file.file_stem().and_then(|n| n.to_str());
            let (name, file) = (name.ok_or("a name is no UTF-8")?, file.to_str());
            let file = file.ok_or("a path is no UTF-8")?;
            writeln!(text, "    ({name:?}, include_str!({file:?})),")?;
        }
        text.push_str("];\n");
        std::fs::write(out.join("cause_files.rs"), text)?;
        Ok(())
    }
}

mod vocabulary {
    //! `OUT_DIR/vocabulary.txt`: the words that our own sentences, fields and closed lists are
    //! made of, one a line. An exported bundle holds no other word unless it was asked for.

    use std::collections::BTreeSet;
    use std::error::Error;
    use std::path::{Path, PathBuf};

    /// String literals of these folders; of the first one also its identifiers, by which
    /// serde names fields and words.
    const SOURCES: [&str; 12] = [
        "src/model",
        "src/detect",
        "src/policy",
        "src/run",
        "src/forecast",
        "src/causes",
        "src/supervise",
        "src/telemetry",
        "src/workload",
        "src/profile",
        "src/agent",
        "src/record",
    ];
    /// Texts that are shipped.
    const TEXTS: [&str; 2] = ["causes", "profiles"];

    pub(crate) fn embed() -> Result<(), Box<dyn Error>> {
        let top = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").ok_or("no manifest")?);
        let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo sets no OUT_DIR")?);
        let mut words = BTreeSet::new();
        for (n, folder) in SOURCES.iter().enumerate() {
            println!("cargo:rerun-if-changed={folder}");
            for file in files(&top.join(folder))? {
                let text = std::fs::read_to_string(&file)?;
                if n == 0 {
                    add(&text, &mut words);
                } else {
                    let literals = literals(text.split("#[cfg(test)]").next().unwrap_or_default());
                    add(&literals, &mut words);
                }
            }
        }
        for folder in TEXTS {
            println!("cargo:rerun-if-changed={folder}");
            for file in files(&top.join(folder))? {
                add(&std::fs::read_to_string(&file)?, &mut words);
                let name = file.file_stem().unwrap_or_default().to_string_lossy();
                add(&name, &mut words);
            }
        }
        let words: Vec<String> = words.into_iter().collect();
        std::fs::write(out.join("vocabulary.txt"), words.join("\n"))?;
        Ok(())
    }

    /// Sources without tests, and shipped texts.
    fn files(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let test = name.contains("test") || name == "redact";
            if path.is_dir() && !test {
                found.extend(files(&path)?);
            } else if ["rs", "toml", "py"]
                .iter()
                .any(|e| path.extension() == Some(e.as_ref()))
                && !test
            {
                found.push(path);
            }
        }
        Ok(found)
    }

    /// What stands within double quotes; comments of a line are left out.
    fn literals(source: &str) -> String {
        let mut out = String::new();
        let mut within = false;
        for line in source.lines() {
            if !within && line.trim_start().starts_with("//") {
                continue;
            }
            let mut escaped = false;
            for c in line.replace("'\"'", "' '").chars() {
                match c {
                    _ if escaped => escaped = false,
                    '\\' => {
                        escaped = true;
                        out.push(' ');
                    }
                    '"' => {
                        within = !within;
                        out.push(' ');
                    }
                    c if within => out.push(c),
                    _ => {}
                }
            }
            out.push(' ');
        }
        out
    }

    /// Words in lower case, parts of names such as `VramSpill` as well.
    fn add(text: &str, words: &mut BTreeSet<String>) {
        for run in text.split(|c: char| !c.is_ascii_alphabetic()) {
            // shorter ones are letters of any text; those that are words are listed by hand
            if run.len() < 3 || run.len() > 24 {
                continue;
            }
            words.insert(run.to_ascii_lowercase());
            let mut part = String::new();
            for c in run.chars() {
                if c.is_ascii_uppercase() && part.ends_with(|p: char| p.is_ascii_lowercase()) {
                    insert(&std::mem::take(&mut part), words);
                }
                part.push(c);
            }
            insert(&part, words);
        }
    }

    fn insert(part: &str, words: &mut BTreeSet<String>) {
        if part.len() > 2 {
            words.insert(part.to_ascii_lowercase());
        }
    }
}

#[cfg(feature = "bindgen")]
mod bindings {
    //! `OUT_DIR/rocm_smi.rs` from our own header.

    use std::error::Error;
    use std::path::PathBuf;

    const HEADER: &str = "src/telemetry/rocm_smi/rocm_smi_safe.h";

    pub(crate) fn generate() -> Result<(), Box<dyn Error>> {
        println!("cargo:rerun-if-changed={HEADER}");
        let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo sets no OUT_DIR")?);
        // panics with a clear word where there is no libclang
        let bindings = bindgen::Builder::default()
            .header(HEADER)
            // the header includes nothing, so that libclang alone is enough
            .clang_arg("-nostdinc")
            .allowlist_function("rsmi_.*")
            .allowlist_type("rsmi_.*")
            .allowlist_var("RSMI_.*")
            .dynamic_library_name("RocmSmi")
            // an older library may lack some: each is asked for before it is called
            .dynamic_link_require_all(false)
            .prepend_enum_name(false)
            .use_core()
            .derive_debug(false)
            .wrap_unsafe_ops(true)
            .generate_comments(false)
            .disable_header_comment()
            .formatter(bindgen::Formatter::Prettyplease)
            .generate()?;
        bindings.write_to_file(out.join("rocm_smi.rs"))?;
        Ok(())
    }
}

/// Short hash of the commit that is checked out.
fn git_revision() -> Option<String> {
    let git = |args: &[&str]| {
        let out = Command::new("git").args(args).output().ok()?;
        let text = String::from_utf8(out.stdout).ok()?;
        out.status.success().then(|| text.trim().to_owned())
    };
    // a crate unpacked inside some other repository is not that repository's
    let top = git(&["rev-parse", "--show-toplevel"])?;
    let here = std::env::var("CARGO_MANIFEST_DIR").ok()?;
    if Path::new(&top).canonicalize().ok()? != Path::new(&here).canonicalize().ok()? {
        return None;
    }
    let head = git(&["rev-parse", "--git-path", "HEAD"])?;
    println!("cargo:rerun-if-changed={head}");
    if let Some(reference) = git(&["symbolic-ref", "-q", "HEAD"])
        && let Some(file) = git(&["rev-parse", "--git-path", &reference])
    {
        println!("cargo:rerun-if-changed={file}");
    }
    git(&["rev-parse", "--short=9", "HEAD"])
}
