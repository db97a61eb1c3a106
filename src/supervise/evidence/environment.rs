//! The settings that the workload really has.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::output::Output;

/// Beginnings of the names that are shown with their value; of every other variable the
/// name alone.
const PREFIXES: &[&str] = &[
    "MIOPEN_", "PYTORCH_", "TORCH_", "HIP_", "HSA_", "ROC", "CUDA_", "OMP_",
];
/// Further names.
const NAMES: &[&str] = &["HF_HUB_OFFLINE", "PYTHONUNBUFFERED", "LD_LIBRARY_PATH"];
/// Parts of names whose values are nobody's business, whatever they begin with.
const SECRET: &[&str] = &["TOKEN", "KEY", "SECRET", "PASS", "AUTH", "CREDENTIAL"];
/// Environments are bounded by the kernel's argument limit; this is plenty.
const MAX_ENVIRON: u64 = 2 << 20;

/// Allow-listed variables of the root process, and the versions of kernel and
/// drivers.
pub(super) fn collect(out: &Output, root: Option<u32>) -> Result<(), String> {
    for path in [
        "/proc/version",
        "/proc/cmdline",
        "/sys/module/amdgpu/version",
        "/proc/driver/nvidia/version",
        "/proc/sys/kernel/yama/ptrace_scope",
    ] {
        if Path::new(path).exists() {
            out.file(Path::new(path), 4096);
        }
    }
    let Some(pid) = root else {
        return Err("no process of the attempt is left".to_owned());
    };
    let path = format!("/proc/{pid}/environ");
    out.doing(format!("while reading {path}"));
    let mut environ = Vec::new();
    File::open(&path)
        .and_then(|f| f.take(MAX_ENVIRON).read_to_end(&mut environ))
        .map_err(|e| format!("read {path}: {e}"))?;
    out.line(format!("==== environment of process {pid}"));
    for line in allowed(&environ) {
        out.line(line);
    }
    Ok(())
}

/// Every variable by name, those that are listed with their value.
fn allowed(environ: &[u8]) -> Vec<String> {
    let mut lines = Vec::new();
    for entry in environ.split(|b| *b == 0).filter(|e| !e.is_empty()) {
        let entry = String::from_utf8_lossy(entry);
        let (name, _) = entry.split_once('=').unwrap_or((&entry, ""));
        let listed = PREFIXES.iter().any(|p| name.starts_with(p)) || NAMES.contains(&name);
        if listed && !SECRET.iter().any(|s| name.contains(s)) {
            lines.push(entry.into_owned());
        } else {
            // what is no name is a part of a value, which is nobody's business
            let is_name = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            let name = if is_name { name } else { "(no name)" };
            lines.push(format!("{name}=(not shown)"));
        }
    }
    lines.sort();
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_names_and_never_a_secret() {
        let environ = b"HOME=/home/u\0MIOPEN_FIND_MODE=2\0HF_TOKEN=hf_abc\0HF_HUB_OFFLINE=1\0\
            TORCH_API_KEY=x\0ROCR_VISIBLE_DEVICES=0\0";
        assert_eq!(
            allowed(environ),
            [
                "HF_HUB_OFFLINE=1",
                "HF_TOKEN=(not shown)",
                "HOME=(not shown)",
                "MIOPEN_FIND_MODE=2",
                "ROCR_VISIBLE_DEVICES=0",
                "TORCH_API_KEY=(not shown)",
            ]
        );
        assert_eq!(allowed(b"my secret=1\0"), ["(no name)=(not shown)"]);
    }
}
