//! Memory of several clients, summed card by card.

use super::super::clients::DrmClient;
use crate::model::{Bytes, CardMemory, GpuId};

/// The clients summed card by card, each client once. A card that no client tells a
/// number of has none; a client that holds nothing makes no entry.
pub(super) fn by_card<'a>(clients: impl IntoIterator<Item = &'a DrmClient>) -> Vec<CardMemory> {
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
mod tests {
    use super::super::super::clients::drm_client;
    use super::super::super::clients::texts::text;
    use super::*;

    #[test]
    fn a_client_counts_once_and_cards_are_kept_apart() {
        let a = drm_client(&text(7, "10 MiB")).unwrap();
        let b = drm_client(&text(8, "5 MiB")).unwrap();
        let other = DrmClient {
            gpu: GpuId("0000:0c:00.0".to_owned()),
            ..a.clone()
        };
        let idle = DrmClient {
            gpu: GpuId("0000:0d:00.0".to_owned()),
            id: 1,
            vram: Some(Bytes(0)),
            gtt: None,
            ..a.clone()
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
}
