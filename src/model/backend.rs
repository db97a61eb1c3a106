//! What a program computes with, as far as it is known.

/// The library between a program and the card.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Backend {
    /// Nothing says it.
    #[default]
    Unknown,
    /// ROCm.
    Hip,
    /// NVIDIA's own.
    Cuda,
    /// Vulkan, on any card.
    Vulkan,
    /// No card.
    Cpu,
}

impl Backend {
    /// What the line of a program says; absent: nothing. The lines are those with which ggml
    /// (stable-diffusion.cpp) begins.
    pub fn of_line(line: &str) -> Option<Self> {
        let line = line.trim_start();
        // newer versions say it through a logger, which puts level and place before it
        let line = match line.split_once(" - ") {
            Some((place, said)) if place.starts_with('[') => said,
            _ => line,
        };
        if line.starts_with("loading CPU backend") || line.starts_with("Using CPU backend") {
            return Some(Self::Cpu);
        }
        if line.starts_with("ggml_vulkan: Found ") {
            return Some(Self::Vulkan);
        }
        let found = line.strip_prefix("ggml_cuda_init: found ")?;
        if found.contains("ROCm device") {
            Some(Self::Hip)
        } else {
            found.contains("CUDA device").then_some(Self::Cuda)
        }
    }

    /// What the build of torch says.
    pub const fn of_torch(hip: bool, cuda: bool) -> Self {
        match (hip, cuda) {
            (true, _) => Self::Hip,
            (false, true) => Self::Cuda,
            (false, false) => Self::Cpu,
        }
    }

    /// Its name where it is known to be another than ROCm.
    pub const fn beside_rocm(self) -> Option<&'static str> {
        match self {
            Self::Unknown | Self::Hip => None,
            Self::Cuda => Some("CUDA"),
            Self::Vulkan => Some("Vulkan"),
            Self::Cpu => Some("the CPU"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ggml_says_what_it_computes_with() {
        for (line, backend) in [
            (
                "ggml_vulkan: Found 1 Vulkan devices:",
                Some(Backend::Vulkan),
            ),
            ("ggml_cuda_init: found 1 ROCm devices:", Some(Backend::Hip)),
            ("ggml_cuda_init: found 2 CUDA devices:", Some(Backend::Cuda)),
            (
                "[INFO ] ggml_extend.hpp:65   - ggml_vulkan: Found 1 Vulkan devices:",
                Some(Backend::Vulkan),
            ),
            (
                "[WARN ] ggml_extend_backend.cpp:585  - loading CPU backend",
                Some(Backend::Cpu),
            ),
            ("VAE Autoencoder: Using CPU backend", None),
            ("ggml_vulkan: No devices found.", None),
            ("see ggml_vulkan: Found 1", None),
            ("", None),
        ] {
            assert_eq!(Backend::of_line(line), backend, "{line}");
        }
    }
}
