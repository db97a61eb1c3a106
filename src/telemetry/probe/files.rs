//! Files by what they are to a generation: cards, weights, results, PyTorch.

use std::collections::HashMap;

/// A weight file is at least this long; smaller ones are configuration and adapters.
pub(super) const WEIGHTS: u64 = 64 << 20;
const WEIGHT_ENDINGS: [&str; 10] = [
    "safetensors",
    "gguf",
    "ckpt",
    "pt",
    "pth",
    "bin",
    "sft",
    "onnx",
    "msgpack",
    "h5",
];
const RESULT_ENDINGS: [&str; 19] = [
    "mp4",
    "webm",
    "mkv",
    "mov",
    "avi",
    "gif",
    "png",
    "jpg",
    "jpeg",
    "webp",
    "apng",
    "safetensors",
    "latents",
    "pt",
    "npy",
    "npz",
    "exr",
    "tif",
    "tiff",
];

/// Whether a path is that of a card's device node that computes.
pub(super) fn computes(path: &str) -> bool {
    let number = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    path == "/dev/kfd"
        || path == "/dev/nvidiactl"
        || path.strip_prefix("/dev/dri/renderD").is_some_and(number)
        || path.strip_prefix("/dev/nvidia").is_some_and(number)
}

/// Whether a path is that of any device node of a card's driver.
pub(super) fn is_card(path: &str) -> bool {
    computes(path) || path.starts_with("/dev/dri/") || path.starts_with("/dev/nvidia")
}

/// Whether a path is that of a terminal.
pub(super) fn is_terminal(path: &str) -> bool {
    path.starts_with("/dev/pts/") || path.starts_with("/dev/tty") || path == "/dev/console"
}

/// Whether the name is that of weights.
pub(super) fn is_weights(path: &str) -> bool {
    ends_in(path, &WEIGHT_ENDINGS)
}

/// Whether the name is that of a result.
pub(super) fn is_result(path: &str) -> bool {
    ends_in(path, &RESULT_ENDINGS)
}

fn ends_in(path: &str, endings: &[&str]) -> bool {
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    let ending = path
        .starts_with('/')
        .then(|| path.rsplit_once('.'))
        .flatten();
    ending.is_some_and(|(_, ending)| endings.iter().any(|e| ending.eq_ignore_ascii_case(e)))
}

/// What `/proc/PID/maps` shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Mapped {
    /// A library of PyTorch.
    pub(super) torch: bool,
    /// Weights of which at least [`WEIGHTS`] bytes are mapped.
    pub(super) weights: Option<String>,
}

/// Reads the text of `maps`.
pub(super) fn mapped(text: &str) -> Mapped {
    let mut torch = false;
    let mut sizes: HashMap<&str, u64> = HashMap::new();
    for line in text.lines() {
        let Some(at) = line.find('/') else {
            continue;
        };
        let path = &line[at..];
        let name = path.rsplit('/').next().unwrap_or(path);
        torch |= name.starts_with("libtorch");
        if is_weights(path)
            && let Some(length) = length(line)
        {
            let sum = sizes.entry(path).or_default();
            *sum = sum.saturating_add(length);
        }
    }
    let largest = sizes.into_iter().max_by_key(|(path, size)| (*size, *path));
    let weights = largest.filter(|(_, size)| *size >= WEIGHTS);
    Mapped {
        torch,
        weights: weights.map(|(path, _)| super::text::clip(path)),
    }
}

/// Bytes of a mapping.
fn length(line: &str) -> Option<u64> {
    let (range, _) = line.split_once(' ')?;
    let (begin, end) = range.split_once('-')?;
    let address = |text| u64::from_str_radix(text, 16).ok();
    address(end)?.checked_sub(address(begin)?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MAPS: &str = "7f0000000000-7f0000001000 r-xp 00000000 fe:00 11 /venv/torch/lib/libtorch_cpu.so\n\
        7f1000000000-7f1003000000 r--p 00000000 fe:00 12 /m/a model.safetensors\n\
        7f1003000000-7f1005000000 r--p 03000000 fe:00 12 /m/a model.safetensors\n\
        7f2000000000-7f2000100000 r--p 00000000 fe:00 13 /m/small.gguf\n\
        7f3000000000-7f4000000000 rw-p 00000000 00:00 0 [heap]\n";

    #[test]
    fn parts_of_a_mapped_file_are_one_file() {
        let all = mapped(MAPS);
        assert!(all.torch);
        assert_eq!(all.weights.as_deref(), Some("/m/a model.safetensors"));
        let (one_part, _) = MAPS.split_once("7f1003000000-7f1005").unwrap();
        assert_eq!(mapped(one_part).weights, None);
        assert!(!mapped("7f-8f r-xp 0 fe:00 1 /opt/notlibtorch.so\n").torch);
    }

    #[test]
    fn files_are_known_by_name() {
        for card in [
            "/dev/kfd",
            "/dev/dri/renderD128",
            "/dev/nvidia0",
            "/dev/nvidiactl",
        ] {
            assert!(computes(card) && is_card(card), "{card}");
        }
        for other in ["/dev/dri/card0", "/dev/nvidia-uvm", "/dev/nvidia-modeset"] {
            assert!(is_card(other) && !computes(other), "{other}");
        }
        assert!(is_result("/out/A.MP4") && is_result("/out/x.latents"));
        assert!(is_weights("/m/x.safetensors (deleted)") && !is_weights("x.pt"));
        assert!(!is_result("/out/mp4") && !is_result("socket:[1].png"));
        assert!(is_terminal("/dev/pts/3") && is_terminal("/dev/tty") && !is_terminal("/dev/null"));
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in ".{0,200}", cut in 0usize..400) {
            let _ = (mapped(&text), is_card(&text), is_result(&text), is_weights(&text));
            let _ = mapped(&MAPS[..cut.min(MAPS.len())]);
        }
    }
}
