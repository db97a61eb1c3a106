//! Compiles the kernels to PTX with the `nvcc` of `NVCC` or of the path.

use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=kernels");
    for name in ["NVCC", "CUDA_COMPUTE_CAP", "NVCC_CCBIN"] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    let variable = |name: &str, other: &str| std::env::var(name).unwrap_or_else(|_| other.into());
    let target = PathBuf::from(variable("OUT_DIR", ".")).join("kernels.ptx");
    let compiler = variable("NVCC", "nvcc");
    let mut command = Command::new(&compiler);
    command
        .args(["-ptx", "-O3", "-std=c++17", "--expt-relaxed-constexpr"])
        .arg(format!(
            "-arch=compute_{}",
            variable("CUDA_COMPUTE_CAP", "80")
        ))
        .arg("kernels/all.cu")
        .arg("-o")
        .arg(&target);
    if let Ok(host) = std::env::var("NVCC_CCBIN") {
        command.args(["-ccbin", &host]);
    }
    match command.status() {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{compiler} ended with {status}"),
        Err(error) => {
            panic!(
                "{compiler}: {error}; scripts/build-cuda fetches CUDA's compiler and builds this crate"
            )
        }
    }
}
