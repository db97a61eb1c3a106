//! What a DRM file descriptor says: `/proc/PID/fdinfo/FD`, the common format of
//! <https://docs.kernel.org/gpu/drm-usage-stats.html> as amdgpu fills it since Linux
//! 5.19, and amdgpu's own format of 5.14 to 5.18. ROCm's memory shows here as well (KFD
//! takes the address space of a render node), the time of its queues does not.

use crate::model::{Bytes, EngineTime, GpuId};

use super::super::pci::PciAddress;

/// One open file of amdgpu. Descriptors that were duplicated, or inherited by a child,
/// are the same client and count once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrmClient {
    /// The card.
    pub gpu: GpuId,
    /// Unique for its card.
    pub id: u64,
    /// VRAM held; absent where the kernel does not tell it.
    pub vram: Option<Bytes>,
    /// System memory mapped for the card; absent where the kernel does not tell it.
    pub gtt: Option<Bytes>,
    /// VRAM that was moved out for lack of room; absent where the kernel does not tell it.
    pub evicted: Option<Bytes>,
    /// Time of each engine since the file was opened, in the order of the file. The
    /// kernel leaves out engines that were never used, and KFD's queues altogether.
    pub engines: Vec<EngineTime>,
}

/// Memory of one region under its names, oldest first.
#[derive(Default)]
struct Region {
    memory: Option<Bytes>,
    resident: Option<Bytes>,
    old: Option<Bytes>,
}

impl Region {
    /// amdgpu prints `drm-memory-` for what `drm-resident-` says for every driver.
    /// `drm-total-` is not taken: it counts what was asked for, wherever it is now.
    fn held(&self) -> Option<Bytes> {
        self.memory.or(self.resident).or(self.old)
    }
}

/// Reads one file; `None`: no client of amdgpu, or none that can be told from others.
pub fn drm_client(text: &str) -> Option<DrmClient> {
    let (mut driver, mut pdev, mut old_pdev) = (None, None, None);
    let (mut id, mut pasid) = (None, None);
    let (mut vram, mut gtt) = (Region::default(), Region::default());
    let mut evicted = None;
    let mut engines: Vec<EngineTime> = Vec::new();
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    for (key, value) in lines {
        let value = value.trim();
        match key.trim() {
            "drm-driver" => driver = Some(value),
            "drm-pdev" => pdev = Some(value),
            "pdev" => old_pdev = Some(value),
            "drm-client-id" => id = value.parse::<u64>().ok(),
            "pasid" => pasid = value.parse::<u64>().ok(),
            "drm-memory-vram" => vram.memory = bytes(value),
            "drm-resident-vram" => vram.resident = bytes(value),
            "vram mem" => vram.old = bytes(value),
            "drm-memory-gtt" => gtt.memory = bytes(value),
            "drm-resident-gtt" => gtt.resident = bytes(value),
            "gtt mem" => gtt.old = bytes(value),
            "amd-evicted-vram" => evicted = bytes(value),
            other => {
                if let Some(name) = other.strip_prefix("drm-engine-") {
                    add_engine(&mut engines, name, nanoseconds(value));
                }
            }
        }
    }
    // The old format names no driver and no client: only amdgpu had it, and the number
    // of the address space (PASID) tells one file from another.
    let (pdev, id) = match driver {
        Some("amdgpu") => (pdev?, id?),
        Some(_) => return None,
        None => {
            vram.old?;
            (old_pdev?, pasid.filter(|p| *p != 0)?)
        }
    };
    Some(DrmClient {
        gpu: PciAddress::parse(pdev)?.id(),
        id,
        vram: vram.held(),
        gtt: gtt.held(),
        evicted,
        engines,
    })
}

/// Adds the time of one engine. `drm-engine-capacity-…` has no unit of time and so is
/// none; an engine of two blocks (`dec` of UVD and VCN) is one.
pub(super) fn add_engine(engines: &mut Vec<EngineTime>, name: &str, ns: Option<u64>) {
    let Some(ns) = ns else { return };
    if let Some(known) = engines.iter_mut().find(|e| e.engine == name) {
        known.ns = known.ns.saturating_add(ns);
    } else {
        engines.push(EngineTime {
            engine: name.to_owned(),
            ns,
        });
    }
}

fn nanoseconds(text: &str) -> Option<u64> {
    text.strip_suffix("ns")?.trim().parse().ok()
}

/// `18664448 KiB` (`kB` in the old format, the same); without a unit it is bytes.
fn bytes(text: &str) -> Option<Bytes> {
    let mut words = text.split_whitespace();
    let number: u64 = words.next()?.parse().ok()?;
    let unit = match words.next() {
        None => 1,
        Some("KiB" | "kB") => 1 << 10,
        Some("MiB") => 1 << 20,
        Some("GiB") => 1 << 30,
        Some(_) => return None,
    };
    number.checked_mul(unit).map(Bytes)
}

#[cfg(test)]
pub(in crate::telemetry) mod tests {
    use proptest::prelude::*;

    use super::super::super::file;
    use super::*;

    /// The file of a client on 0000:03:00.0 as Linux 6 writes it.
    pub(in crate::telemetry) fn text(id: u32, vram: &str) -> String {
        format!(
            "pos:\t0\nflags:\t02100002\nmnt_id:\t28\nino:\t621\ndrm-driver:\tamdgpu\n\
             drm-client-id:\t{id}\ndrm-pdev:\t0000:03:00.0\npasid:\t32780\n\
             drm-memory-vram:\t{vram}\ndrm-memory-gtt: \t2048 KiB\ndrm-memory-cpu: \t0 KiB\n\
             amd-evicted-vram:\t512 KiB\ndrm-engine-gfx:\t88 ns\n"
        )
    }

    /// The same of Linux 5.14 to 5.18.
    pub(in crate::telemetry) fn old_text(pasid: u32, vram_kb: u64) -> String {
        format!(
            "pos:\t0\nflags:\t02100002\nmnt_id:\t28\npdev:\t0000:03:00.0\npasid:\t{pasid}\n\
             vram mem:\t{vram_kb} kB\ngtt mem:\t2048 kB\ncpu mem:\t0 kB\ngfx0:\t12.34%\n"
        )
    }

    #[test]
    fn memory_of_a_client_with_its_units() {
        let c = drm_client(&text(7, "18664448 KiB")).unwrap();
        assert_eq!((c.gpu.0.as_str(), c.id), ("0000:03:00.0", 7));
        assert_eq!(c.vram, Some(Bytes(18_664_448 << 10)));
        assert_eq!(c.gtt, Some(Bytes::mib(2)));
        assert_eq!(c.evicted, Some(Bytes(512 << 10)));
        let vram = |t: &str| drm_client(&text(7, t)).unwrap().vram;
        assert_eq!(vram("4096"), Some(Bytes(4096)));
        assert_eq!(vram("3 GiB"), Some(Bytes::gib(3)));
        // what cannot be read is not zero
        assert_eq!(vram("many KiB"), None);
        assert_eq!(vram("18446744073709551615 KiB"), None);
        let newer = text(7, "1 KiB").replace("drm-memory-", "drm-resident-");
        assert_eq!(drm_client(&newer).unwrap().vram, Some(Bytes(1024)));
        // asked for is not held
        let total = text(7, "1 KiB").replace("drm-memory-", "drm-total-");
        assert_eq!(drm_client(&total).unwrap().vram, None);
    }

    #[test]
    fn engines_are_times_and_each_is_told_once() {
        let more = "drm-engine-capacity-gfx:\t2\ndrm-engine-dec:\t5 ns\ndrm-engine-dec:\t6 ns\n\
                    drm-engine-compute:\tmuch ns\n";
        let c = drm_client(&(text(7, "1 KiB") + more)).unwrap();
        let told: Vec<_> = c
            .engines
            .iter()
            .map(|e| (e.engine.as_str(), e.ns))
            .collect();
        assert_eq!(told, [("gfx", 88), ("dec", 11)]);
    }

    #[test]
    fn the_format_of_older_kernels_is_read_as_well() {
        let c = drm_client(&old_text(32_771, 8 << 20)).unwrap();
        assert_eq!((c.gpu.0.as_str(), c.id), ("0000:03:00.0", 32_771));
        assert_eq!((c.vram, c.gtt), (Some(Bytes::gib(8)), Some(Bytes::mib(2))));
        // its engines are percentages, which cannot be summed
        assert_eq!((c.evicted, c.engines), (None, Vec::new()));
        assert_eq!(
            drm_client(&old_text(0, 8)),
            None,
            "one cannot be told from others"
        );
    }

    #[test]
    fn other_files_and_drivers_are_no_clients() {
        assert_eq!(drm_client("pos:\t0\nflags:\t02\n"), None);
        let other = |from, to| drm_client(&text(7, "1 KiB").replace(from, to));
        assert_eq!(other("amdgpu", "i915"), None);
        assert_eq!(other("drm-client-id", "x"), None);
        assert_eq!(other("0000:03", "03"), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>) {
            let _ = drm_client(&file::text_of(&bytes));
        }

        #[test]
        fn any_broken_file_is_survived(
            cut in 0usize..400, old: bool, vram in ".{0,30}", n: u64, unit in "(KiB|MiB|GiB| |%)",
        ) {
            let whole = if old { old_text(7, n) } else { text(7, &vram) };
            let end = (0..=cut.min(whole.len())).rev().find(|i| whole.is_char_boundary(*i)).unwrap();
            let _ = drm_client(&whole[..end]);
            // a number is told exactly or not at all
            if let Some(c) = drm_client(&text(7, &format!("{n} {unit}"))) {
                prop_assert!(c.vram.is_none_or(|v| v.0 >= n));
            }
        }
    }
}
