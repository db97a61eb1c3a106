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
