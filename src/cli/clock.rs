//! The wall clock in the user's time zone. `TZ` may name any file: what is read of it is
//! bounded, and only a regular file is read.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// No file of a time zone is longer.
const LONGEST: u64 = 256 << 10;
/// Where time zones lie by name.
const FOLDERS: [&str; 3] = ["/usr/share/zoneinfo", "/usr/lib/zoneinfo", "/etc/zoneinfo"];
/// The machine's own.
const LOCAL: &str = "/etc/localtime";

static ZONE: LazyLock<TimeZone> = LazyLock::new(|| {
    let [tz, folder] = ["TZ", "TZDIR"].map(std::env::var_os);
    zone(tz.as_deref(), folder.as_deref())
});

/// The time now.
pub(super) fn now() -> Zoned {
    Timestamp::now().to_zoned(ZONE.clone())
}

/// The zone that `TZ` means, as the C library reads it; UTC where it means none.
fn zone(tz: Option<&OsStr>, folder: Option<&OsStr>) -> TimeZone {
    let Some(tz) = tz else {
        return read(Path::new(LOCAL)).unwrap_or(TimeZone::UTC);
    };
    let tz = tz.to_string_lossy();
    let name = tz.strip_prefix(':').unwrap_or(&tz);
    let path = Path::new(name);
    if path.is_absolute() {
        return read(path).unwrap_or(TimeZone::UTC);
    }
    let plain = !name.is_empty() && path.components().all(|c| matches!(c, Component::Normal(_)));
    let own = folder.map(PathBuf::from).filter(|f| f.is_absolute());
    let folders = own.into_iter().chain(FOLDERS.map(PathBuf::from));
    let mut files = folders.filter(|_| plain).map(|f| f.join(path));
    files
        .find_map(|file| read(&file))
        .or_else(|| TimeZone::posix(name).ok())
        .unwrap_or(TimeZone::UTC)
}

fn read(path: &Path) -> Option<TimeZone> {
    let mut options = OpenOptions::new();
    // a pipe that nobody writes to is not waited for
    options
        .read(true)
        .custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    let file = options.open(path).ok()?;
    let meta = file.metadata().ok()?;
    if !meta.is_file() || meta.len() > LONGEST {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(LONGEST).read_to_end(&mut bytes).ok()?;
    TimeZone::tzif("local", &bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offset(tz: &str, folder: Option<&str>) -> i32 {
        let zone = zone(Some(OsStr::new(tz)), folder.map(OsStr::new));
        zone.to_offset(Timestamp::UNIX_EPOCH).seconds()
    }

    #[test]
    fn a_zone_is_a_name_a_rule_or_a_small_file_and_nothing_endless() {
        assert_eq!(offset("XYZ-3", None), 3 * 3600);
        assert_eq!(offset(":XYZ-3", None), 3 * 3600);
        for endless in [
            "/dev/zero",
            ":/dev/zero",
            "",
            "../../../dev/zero",
            "nonsense",
        ] {
            assert_eq!(offset(endless, None), 0, "{endless}");
        }
        assert_eq!(offset("zero", Some("/dev")), 0);
        let tmp = tempfile::tempdir().unwrap();
        let huge = tmp.path().join("huge");
        std::fs::File::create(&huge)
            .unwrap()
            .set_len(1 << 40)
            .unwrap();
        assert_eq!(offset(huge.to_str().unwrap(), None), 0);
        let berlin = "/usr/share/zoneinfo/Europe/Berlin";
        if Path::new(berlin).exists() {
            assert_eq!(offset("Europe/Berlin", None), 3600);
            assert_eq!(offset(&format!(":{berlin}"), None), 3600);
        }
    }
}
