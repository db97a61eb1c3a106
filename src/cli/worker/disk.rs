//! Whether a disk has room for a decode, before it begins.

use std::path::Path;

use framepack_engine::worker::Disk;

use crate::cli::CliError;
use crate::model::Bytes;

/// Of file systems that may compress what is written, by which more may fit than is free: Btrfs, ZFS, bcachefs, F2FS.
const COMPRESS: [i64; 4] = [0x9123_683e, 0x2fc1_2fc1, 0xca45_1a4e, 0xf2f5_2010];

/// What a file system tells of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Room {
    /// What this user may still write.
    free: Bytes,
    /// More may fit.
    compresses: bool,
}

/// Of the file system on which a folder lies; absent: it does not tell.
pub(super) fn room(folder: &Path) -> Option<Room> {
    let told = rustix::fs::statvfs(folder).ok()?;
    let kind = rustix::fs::statfs(folder).ok()?.f_type & 0xffff_ffff;
    // some that have no disk of their own say that they have no blocks at all
    if told.f_blocks == 0 {
        return None;
    }
    let blocks = if rustix::process::geteuid().is_root() {
        told.f_bfree
    } else {
        told.f_bavail
    };
    Some(Room {
        free: Bytes(blocks.saturating_mul(told.f_frsize)),
        compresses: COMPRESS.contains(&kind),
    })
}

/// Refuses where the frames, whose size is known to the byte, cannot fit; where it may become full, the words for that.
pub(super) fn judge(disk: &Disk, room: Option<Room>) -> Result<Option<String>, CliError> {
    let Some(Room { free, compresses }) = room else {
        return Ok(None);
    };
    let (frames, video) = (Bytes(disk.frames), Bytes(disk.video));
    if free < frames && !compresses {
        return Err(CliError::NoRoom {
            folder: disk.folder.clone(),
            frames,
            free,
        });
    }
    let enough = free.0 >= disk.frames.saturating_add(disk.video);
    Ok((!enough).then(|| {
        format!(
            "the disk may become full: {} has {free} free, {frames} of frames are kept there until the video is whole, and the video takes some {video} beside them (a guess); where it does not fit, the frames stay, and the same command goes on when there is room",
            disk.folder.display()
        )
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_fit_is_refused_and_what_may_not_is_told() {
        let disk = Disk {
            folder: "out".into(),
            frames: 1000,
            video: 100,
        };
        let says = |free, compresses| {
            let free = Bytes(free);
            judge(&disk, Some(Room { free, compresses })).map_err(|e| (e.exit_code(), e.report()))
        };
        assert_eq!(judge(&disk, None).unwrap(), None);
        assert_eq!(says(1100, false), Ok(None));
        for (free, compresses) in [(1099, false), (1000, false), (10, true)] {
            let told = says(free, compresses).unwrap().unwrap();
            assert!(
                told.starts_with("the disk may become full: out has"),
                "{told}"
            );
        }
        let (code, told) = says(999, false).unwrap_err();
        assert_eq!(code, 73);
        assert!(
            told.contains("out has 999 B free") && told.contains("another disk"),
            "{told}"
        );
    }

    #[test]
    fn a_file_system_tells_its_room_and_one_without_a_disk_does_not() {
        let folder = tempfile::tempdir().unwrap();
        assert!(room(folder.path()).is_some());
        assert_eq!(room(Path::new("/proc")), None);
        assert_eq!(room(&folder.path().join("none")), None);
    }
}
