//! The worker with the card: another program, so that this one needs no CUDA.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Its name beside this program, or in PATH.
const PROGRAM: &str = "framepack-tui-cuda";
/// The user's word for where it is.
const VARIABLE: &str = "FPT_CUDA_WORKER";
/// A driver that wakes its card takes seconds, one that hangs for ever.
const PATIENCE: Duration = Duration::from_secs(30);

/// Why the card cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CudaError {
    /// The program is not there.
    #[error(
        "there is no {PROGRAM} beside this program or in PATH: build it (docs/cuda.md), name it in {VARIABLE}, or use --device cpu"
    )]
    NoProgram,
    /// `FPT_CUDA_WORKER` names no program.
    #[error("{VARIABLE} names {}, which is no file", .0.display())]
    NoFile(PathBuf),
    /// It was started, and the card cannot be used.
    #[error("{} cannot use the card: {why}; --device cpu does without", program.display())]
    Refused {
        /// The program.
        program: PathBuf,
        /// Its words.
        why: String,
    },
}

/// The program.
pub(super) fn find() -> Result<PathBuf, CudaError> {
    if let Some(named) = std::env::var_os(VARIABLE).filter(|named| !named.is_empty()) {
        let named = PathBuf::from(named);
        return if named.is_file() {
            Ok(named)
        } else {
            Err(CudaError::NoFile(named))
        };
    }
    let beside = std::env::current_exe().ok();
    let beside = beside.and_then(|own| Some(own.parent()?.join(PROGRAM)));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = beside
        .into_iter()
        .chain(std::env::split_paths(&path).map(|folder| folder.join(PROGRAM)));
    places
        .find(|place| place.is_file())
        .ok_or(CudaError::NoProgram)
}

/// Whether it can use the card: it is asked, and answers or says why not.
pub(super) fn probe(program: &Path) -> Result<(), CudaError> {
    let refused = |why: String| CudaError::Refused {
        program: program.to_owned(),
        why,
    };
    let mut child = Command::new(program)
        .args(["probe", "--device", "cuda"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| refused(format!("it cannot be started ({e})")))?;
    let words = child.stderr.take().map(|stderr| {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            // what was read up to an error still counts
            let _ = stderr.take(4096).read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        })
    });
    let end = Instant::now() + PATIENCE;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < end => std::thread::sleep(Duration::from_millis(20)),
            Ok(None) => {
                // one that the driver holds dies when that lets go
                let _ = child.kill();
                return Err(refused(format!(
                    "it has not answered in {} s",
                    PATIENCE.as_secs()
                )));
            }
            Err(e) => return Err(refused(format!("it was lost ({e})"))),
        }
    };
    if status.success() {
        return Ok(());
    }
    let words = words
        .and_then(|words| words.join().ok())
        .unwrap_or_default();
    let words: Vec<&str> = words
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .collect();
    let said = words.join("; ");
    Err(refused(match said.as_str() {
        "" => format!("it ended with {status}"),
        // the loader's words where the driver is not installed
        said if said.contains("error while loading shared libraries") => {
            format!("the NVIDIA driver or a part of CUDA is not installed ({said})")
        }
        said => said.to_owned(),
    }))
}
