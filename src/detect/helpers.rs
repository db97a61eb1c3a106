//! What the process tree itself tells: child processes whose work explains a busy CPU
//! beside an idle card.

/// Names of programs that compile kernels or extensions.
const COMPILERS: &[&str] = &[
    "clang",
    "clang++",
    "amdclang",
    "amdclang++",
    "ld.lld",
    "lld",
    "ld",
    "cc1",
    "cc1plus",
    "gcc",
    "g++",
    "cc",
    "c++",
    "as",
    "hipcc",
    "hipcc.bin",
    "nvcc",
    "cicc",
    "ptxas",
    "lto1",
    "ninja",
    "opt",
    "llc",
    "triton",
    "tritonc",
];

/// Beginnings of the names of programs that encode pictures and videos; the wheels
/// that bring ffmpeg name it `ffmpeg-linux-…`.
const ENCODERS: &[&str] = &["ffmpeg", "x264", "x265", "SvtAv1", "gifski", "gifsicle"];

/// Names of programs that pack and unpack archives.
const ARCHIVERS: &[&str] = &[
    "tar", "gzip", "gunzip", "pigz", "xz", "unxz", "zstd", "unzstd", "bzip2", "zip", "unzip", "7z",
    "7za", "7zz", "bsdtar",
];

/// Whether a process of this name works for the job whenever it works: it compiles,
/// encodes or unpacks.
pub(super) fn works_for_the_job(name: &str) -> bool {
    Helpers::of(&[name.to_owned()]) != Helpers::None || ARCHIVERS.contains(&name)
}

/// What the child processes do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Helpers {
    /// Nothing that we know.
    #[default]
    None,
    /// A kernel or an extension is compiled.
    Compile,
    /// A video or a picture is encoded.
    Encode,
}

impl Helpers {
    /// By the names of the children. Versioned names (`clang-19`) count.
    pub(super) fn of(children: &[String]) -> Self {
        let compiles = |c: &String| {
            let version = |ch: char| ch.is_ascii_digit() || matches!(ch, '-' | '.');
            let plain = c.trim_end_matches(version);
            COMPILERS.contains(&c.as_str()) || COMPILERS.contains(&plain)
        };
        let encodes = |c: &String| ENCODERS.iter().any(|e| c.starts_with(e));
        if children.iter().any(compiles) {
            Self::Compile
        } else if children.iter().any(encodes) {
            Self::Encode
        } else {
            Self::None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn helpers_by_name() {
        let of = |n: &str| Helpers::of(&["python3".to_owned(), n.to_owned()]);
        for name in ["clang-19", "cc1plus", "hipcc.bin"] {
            assert_eq!(of(name), Helpers::Compile, "{name}");
        }
        for name in ["ffmpeg", "ffmpeg-linux-x8"] {
            assert_eq!(of(name), Helpers::Encode, "{name}");
        }
        assert_eq!(of("asciinema"), Helpers::None);
    }
}
