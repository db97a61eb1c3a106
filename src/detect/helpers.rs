//! Child processes whose work explains a busy CPU beside an idle card.

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
];

/// Beginnings of the names of programs that encode pictures and videos; the wheels
/// that bring ffmpeg name it `ffmpeg-linux-…`.
const ENCODERS: &[&str] = &["ffmpeg", "x264", "x265", "SvtAv1", "gifski", "gifsicle"];

/// Whether a kernel is being compiled. Versioned names (`clang-19`) count.
pub(super) fn compile(children: &[String]) -> bool {
    children.iter().any(|c| {
        let plain = c.trim_end_matches(|ch: char| ch.is_ascii_digit() || matches!(ch, '-' | '.'));
        COMPILERS.contains(&c.as_str()) || COMPILERS.contains(&plain)
    })
}

/// Whether a video or picture is being encoded.
pub(super) fn encode(children: &[String]) -> bool {
    children
        .iter()
        .any(|c| ENCODERS.iter().any(|e| c.starts_with(e)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn helpers_by_name() {
        let names = |n: &str| vec!["python3".to_owned(), n.to_owned()];
        assert!(compile(&names("clang-19")) && compile(&names("cc1plus")));
        assert!(!compile(&names("asciinema")) && !compile(&names("ffmpeg")));
        assert!(encode(&names("ffmpeg")) && encode(&names("ffmpeg-linux-x8")));
        assert!(!encode(&names("clang")));
    }
}
