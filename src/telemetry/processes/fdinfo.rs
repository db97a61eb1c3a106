//! What a DRM file descriptor says about memory: `/proc/PID/fdinfo/FD`, the common
//! format of <https://docs.kernel.org/gpu/drm-usage-stats.html> as amdgpu fills it.
//! ROCm's memory shows here as well: KFD takes the address space of a render node.

use std::collections::HashMap;

use super::super::pci::PciAddress;
use crate::model::{Bytes, CardMemory, GpuId};

/// One open file of the driver. Descriptors that were duplicated, or inherited by a
/// child, are the same client and count once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Client {
    pub(super) gpu: GpuId,
    /// Unique for its card.
    pub(super) id: u64,
    pub(super) vram: Option<Bytes>,
    pub(super) gtt: Option<Bytes>,
}

/// Reads one file; `None`: no client of amdgpu, or none that can be told from others
/// (kernels before 5.19 had another format).
pub(super) fn client(text: &str) -> Option<Client> {
    let fields: HashMap<&str, &str> = text
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(key, value)| (key.trim(), value.trim()))
        .collect();
    if *fields.get("drm-driver")? != "amdgpu" {
        return None;
    }
    // drm-memory- is amdgpu's older word for what drm-resident- says for every driver
    let memory = |region: &str| {
        ["memory", "resident"]
            .iter()
            .find_map(|word| fields.get(format!("drm-{word}-{region}").as_str()))
            .and_then(|value| bytes(value))
    };
    Some(Client {
        gpu: PciAddress::parse(fields.get("drm-pdev")?)?.id(),
        id: fields.get("drm-client-id")?.parse().ok()?,
        vram: memory("vram"),
        gtt: memory("gtt"),
    })
}

/// `18664448 KiB`; without a unit it is bytes.
fn bytes(text: &str) -> Option<Bytes> {
    let mut words = text.split_whitespace();
    let number: u64 = words.next()?.parse().ok()?;
    let unit = match words.next() {
        None => 1,
        Some("KiB") => 1 << 10,
        Some("MiB") => 1 << 20,
        Some("GiB") => 1 << 30,
        Some(_) => return None,
    };
    number.checked_mul(unit).map(Bytes)
}

/// The clients summed card by card, each client once. A card that no client tells a
/// number of has none; a client that holds nothing makes no entry.
pub(super) fn by_card<'a>(clients: impl IntoIterator<Item = &'a Client>) -> Vec<CardMemory> {
    let mut seen: Vec<(&GpuId, u64)> = Vec::new();
    let mut out: Vec<CardMemory> = Vec::new();
    for client in clients {
        if seen.contains(&(&client.gpu, client.id)) {
            continue;
        }
        seen.push((&client.gpu, client.id));
        add(&mut out, &client.gpu, client.vram, client.gtt);
    }
    out.retain(|m| m.vram.unwrap_or_default().0 > 0 || m.gtt.unwrap_or_default().0 > 0);
    out
}

/// Adds what is known to what is known.
pub(super) fn add(to: &mut Vec<CardMemory>, gpu: &GpuId, vram: Option<Bytes>, gtt: Option<Bytes>) {
    let sum = |a: Option<Bytes>, b: Option<Bytes>| match (a, b) {
        (Some(a), Some(b)) => Some(Bytes(a.0.saturating_add(b.0))),
        (a, b) => a.or(b),
    };
    if let Some(m) = to.iter_mut().find(|m| m.gpu == *gpu) {
        m.vram = sum(m.vram, vram);
        m.gtt = sum(m.gtt, gtt);
    } else {
        to.push(CardMemory {
            gpu: gpu.clone(),
            vram,
            gtt,
        });
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::super::super::file;
    use super::*;

    pub(in super::super) fn text(id: u32, vram: &str) -> String {
        format!(
            "pos:\t0\nflags:\t02100002\nmnt_id:\t28\nino:\t621\ndrm-driver:\tamdgpu\n\
             drm-client-id:\t{id}\ndrm-pdev:\t0000:03:00.0\npasid:\t32780\n\
             drm-memory-vram:\t{vram}\ndrm-memory-gtt: \t2048 KiB\ndrm-memory-cpu: \t0 KiB\n\
             drm-engine-gfx:\t88 ns\n"
        )
    }

    #[test]
    fn memory_of_a_client_with_its_units() {
        let c = client(&text(7, "18664448 KiB")).unwrap();
        assert_eq!((c.gpu.0.as_str(), c.id), ("0000:03:00.0", 7));
        assert_eq!(c.vram, Some(Bytes(18_664_448 << 10)));
        assert_eq!(c.gtt, Some(Bytes::mib(2)));
        assert_eq!(client(&text(7, "4096")).unwrap().vram, Some(Bytes(4096)));
        assert_eq!(client(&text(7, "3 GiB")).unwrap().vram, Some(Bytes::gib(3)));
        // what cannot be read is not zero
        assert_eq!(client(&text(7, "many KiB")).unwrap().vram, None);
        assert_eq!(
            client(&text(7, "18446744073709551615 KiB")).unwrap().vram,
            None
        );
        let newer = text(7, "1 KiB").replace("drm-memory-", "drm-resident-");
        assert_eq!(client(&newer).unwrap().vram, Some(Bytes(1024)));
    }

    #[test]
    fn other_files_and_drivers_are_no_clients() {
        assert_eq!(client("pos:\t0\nflags:\t02\n"), None);
        assert_eq!(client(&text(7, "1 KiB").replace("amdgpu", "i915")), None);
        assert_eq!(
            client(&text(7, "1 KiB").replace("drm-client-id", "x")),
            None
        );
        assert_eq!(client(&text(7, "1 KiB").replace("0000:03", "03")), None);
    }

    #[test]
    fn a_client_counts_once_and_cards_are_kept_apart() {
        let a = client(&text(7, "10 MiB")).unwrap();
        let b = client(&text(8, "5 MiB")).unwrap();
        let other = Client {
            gpu: GpuId("0000:0c:00.0".to_owned()),
            ..a.clone()
        };
        let idle = Client {
            gpu: GpuId("0000:0d:00.0".to_owned()),
            id: 1,
            vram: Some(Bytes(0)),
            gtt: None,
        };
        let sums = by_card([&a, &b, &a, &other, &idle]);
        let told: Vec<_> = sums.iter().map(|m| (m.gpu.0.as_str(), m.vram)).collect();
        assert_eq!(
            told,
            [
                ("0000:03:00.0", Some(Bytes::mib(15))),
                ("0000:0c:00.0", Some(Bytes::mib(10)))
            ]
        );
        assert_eq!(by_card(&[]), []);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>) {
            let _ = client(&file::text_of(&bytes));
        }

        #[test]
        fn any_broken_file_is_survived(cut in 0usize..330, vram in ".{0,30}", n: u64, unit in "(KiB|MiB|GiB| |%)") {
            let whole = text(7, &vram);
            let end = (0..=cut.min(whole.len())).rev().find(|i| whole.is_char_boundary(*i)).unwrap();
            let _ = client(&whole[..end]);
            // a number is told exactly or not at all
            if let Some(c) = client(&text(7, &format!("{n} {unit}"))) {
                prop_assert!(c.vram.is_none_or(|v| v.0 >= n));
            }
        }
    }
}
