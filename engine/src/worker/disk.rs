//! The disk space that a job needs.

use std::path::{Path, PathBuf};

use super::checkpoint::CheckpointDir;
use crate::vae::Config;
use crate::video::Kind;

/// The disk space that a decode needs where its output lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// The folder of the output.
    pub folder: PathBuf,
    /// Bytes of the frames in the checkpoint, less those that an earlier decode left there; exact.
    pub frames: u64,
    /// Bytes of the video beside them, an estimate: seldom more.
    pub video: u64,
}

impl Disk {
    pub(super) fn of(output: &Path, kind: Kind, config: &Config, [t, h, w]: [usize; 3]) -> Self {
        let ratio = config.ratio();
        // the sizes were found possible
        let frames = ((t - 1) * ratio.time + 1) * h * ratio.space * w * ratio.space * 3;
        let all = frames as u64;
        let folder = match output.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        Self {
            folder: folder.to_owned(),
            frames: all.saturating_sub(CheckpointDir::bytes_there(output)),
            video: match kind {
                Kind::Pictures => all,
                Kind::Gif => all / 2,
                Kind::Mp4 => all / 10,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_decode_needs_of_the_disk_is_less_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let config = Config::from(crate::vae::WanConfig::default());
        let of = |name: &str| {
            let output = folder.path().join(name);
            Disk::of(&output, Kind::of(&output).unwrap(), &config, [3, 4, 5])
        };
        // 9 frames of 40 x 32 pixels
        let all = 9 * 40 * 32 * 3;
        let disk = of("o.gif");
        assert_eq!((disk.frames, disk.video), (all, all / 2));
        assert_eq!(disk.folder, folder.path());
        assert_eq!(of("o").video, all);
        assert!(of("o.mp4").video < all / 2);
        for (digest, length) in [("0123456789abcdef", 100), ("fedcba9876543210", 3000)] {
            let checkpoint = folder.path().join("o.gif.parts").join(digest);
            std::fs::create_dir_all(&checkpoint).unwrap();
            for name in [
                "frames-000000-000001-0123456789abcdef.rgb",
                "state-000001.bin",
            ] {
                std::fs::write(checkpoint.join(name), vec![0; length]).unwrap();
            }
        }
        // of a format that nothing goes on from
        let old = folder
            .path()
            .join("o.gif.parts/fedcba9876543210/frames-000001-000001.rgb");
        std::fs::write(old, [0; 500]).unwrap();
        // only those of one decode can be gone on from
        assert_eq!(of("o.gif").frames, all - 3000);
    }
}
