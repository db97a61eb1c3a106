//! Opens CUDA's libraries when the program runs (`doors.py` says how calls reach them).

use std::ffi::{CStr, CString, c_char};
use std::path::PathBuf;

/// Folders where libraries are looked for beside where the system looks, separated by colons. Each may be one of libraries
/// or hold folders with a `lib` of them, as the packages of NVIDIA on PyPI do.
pub const LIBRARIES: &str = "FPT_CUDA_LIBS";

/// Where toolkits install themselves.
const USUAL: [&str; 2] = ["/usr/local/cuda/lib64", "/opt/cuda/lib64"];

type Open = unsafe extern "C" fn(*const c_char) -> *const c_char;

unsafe extern "C" {
    fn framepack_open_cuda(path: *const c_char) -> *const c_char;
    fn framepack_open_cublasLt(path: *const c_char) -> *const c_char;
    fn framepack_open_cublas(path: *const c_char) -> *const c_char;
    fn framepack_open_curand(path: *const c_char) -> *const c_char;
    fn framepack_open_nvrtc(path: *const c_char) -> *const c_char;
    fn framepack_open_cudnn(path: *const c_char) -> *const c_char;
}

/// What is missing on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The driver.
    Driver(String),
    /// One of the toolkit's libraries, by its file's name.
    Library(&'static str),
}

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Driver(reason) => {
                write!(f, "no NVIDIA driver on this machine ({reason})")
            }
            Self::Library(name) => write!(
                f,
                "{name} was not found: install CUDA's libraries, or name their folder in {LIBRARIES} \
                 (a PyTorch for CUDA 13 has them in site-packages/nvidia)"
            ),
        }
    }
}

impl std::error::Error for Missing {}

/// Opens the driver and the libraries that candle needs, and cuDNN if it is there: whether it is.
///
/// # Errors
/// [`Missing`]: what is not there.
pub fn open() -> Result<bool, Missing> {
    one("libcuda.so.1", framepack_open_cuda).map_err(Missing::Driver)?;
    // where the driver is there, the loader's many words say no more than the name
    let need = |name, open| one(name, open).or(Err(Missing::Library(name)));
    need("libcublasLt.so.13", framepack_open_cublasLt)?;
    need("libcublas.so.13", framepack_open_cublas)?;
    need("libcurand.so.10", framepack_open_curand)?;
    // what cuDNN compiles its fused kernels with; without it there are others
    let _ = one("libnvrtc.so.13", framepack_open_nvrtc);
    Ok(one("libcudnn.so.9", framepack_open_cudnn).is_ok())
}

/// Opens a library by its name, then in the folders: the first reason why not.
fn one(name: &str, open: Open) -> Result<(), String> {
    let mut reason = None;
    for path in places(name) {
        let Ok(path) = CString::new(path.into_os_string().into_encoded_bytes()) else {
            continue;
        };
        // SAFETY: a string that ends; the function is the stand-in's of that library.
        let answer = unsafe { open(path.as_ptr()) };
        if answer.is_null() {
            return Ok(());
        }
        // SAFETY: the loader's message, valid until its next call on this thread.
        let text = unsafe { CStr::from_ptr(answer) };
        reason.get_or_insert_with(|| text.to_string_lossy().into_owned());
    }
    Err(reason.unwrap_or_default())
}

/// The bare name, which the system looks up, then files in the folders.
fn places(name: &str) -> Vec<PathBuf> {
    let named = std::env::var_os(LIBRARIES).unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&named).collect();
    let inner: Vec<PathBuf> = folders
        .iter()
        .filter_map(|folder| std::fs::read_dir(folder).ok())
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("lib")))
        .collect();
    folders.extend(inner);
    folders.extend(USUAL.map(PathBuf::from));
    let files = folders.into_iter().map(|folder| folder.join(name));
    std::iter::once(PathBuf::from(name))
        .chain(files.filter(|file| file.exists()))
        .collect()
}
