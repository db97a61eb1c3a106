use std::path::Path;

use proptest::prelude::*;

use super::*;

const CARD: &str = "0000:03:00.0";

fn gpu(address: &str) -> GpuId {
    GpuId(address.to_owned())
}

fn client(id: u64, vram_gib: u64) -> DrmClient {
    DrmClient {
        gpu: gpu(CARD),
        id,
        vram: Some(Bytes::gib(vram_gib)),
        gtt: Some(Bytes::mib(2)),
        evicted: Some(Bytes(0)),
        engines: vec![EngineTime {
            engine: "gfx".to_owned(),
            ns: 5,
        }],
    }
}

fn on_kfd(vram_gib: u64, queues: u32) -> OnCard {
    OnCard {
        gpu: gpu(CARD),
        vram: Ok(Bytes::gib(vram_gib)),
        queues: Ok(queues),
        cu_occupancy: Err(ReadError::Missing),
        evicted_ms: Ok(3),
    }
}

fn seen(pid: u32, clients: Vec<DrmClient>, kfd: Option<OnCard>) -> Seen {
    Seen {
        pid,
        clients: Ok(clients),
        opened_kfd: kfd.is_some(),
        kfd: kfd.map(|k| vec![k]).ok_or(ReadError::Missing),
    }
}

fn only(seen: &[Seen]) -> TreeOnCard {
    let (cards, _) = Sums::default().on_cards(seen, true);
    assert_eq!(cards.len(), 1, "{cards:?}");
    cards.into_iter().next().unwrap()
}

fn why<T>(metric: &Metric<T>) -> &str {
    match metric {
        Metric::Failed { why, .. } => why,
        _ => "not failed",
    }
}

#[test]
fn the_same_memory_in_both_sources_counts_once() {
    let on = only(&[seen(7, vec![client(1, 18)], Some(on_kfd(17, 2)))]);
    assert_eq!((on.source.as_str(), on.processes), ("fdinfo", 1));
    assert_eq!(on.vram, Metric::Fresh(Bytes::gib(18)));
    assert_eq!(
        (on.queues, on.evicted_ms),
        (Metric::Fresh(2), Metric::Fresh(3))
    );
    assert_eq!(on.cu_occupancy, Metric::Unsupported);
    assert_eq!(on.compute_note.as_deref(), Some(ROCM_NOTE));
    assert_eq!(on.engines[0].ns, 5);
}

#[test]
fn kfd_counts_where_the_descriptors_tell_no_vram() {
    let on = only(&[seen(7, vec![client(1, 0)], Some(on_kfd(17, 2)))]);
    assert_eq!(
        (on.source.as_str(), on.vram),
        ("kfd", Metric::Fresh(Bytes::gib(17)))
    );
    assert_eq!(on.gtt, Metric::Fresh(Bytes::mib(2)));
    // all of it was moved out: then zero is the truth
    let out = DrmClient {
        evicted: Some(Bytes::gib(17)),
        ..client(1, 0)
    };
    let on = only(&[seen(7, vec![out], Some(on_kfd(17, 2)))]);
    assert_eq!(
        (on.source.as_str(), on.vram),
        ("fdinfo", Metric::Fresh(Bytes(0)))
    );
    let two = [
        seen(7, vec![client(1, 4)], None),
        seen(8, Vec::new(), Some(on_kfd(3, 1))),
    ];
    let on = only(&two);
    assert_eq!((on.source.as_str(), on.processes), ("fdinfo+kfd", 2));
    assert_eq!(on.vram, Metric::Fresh(Bytes::gib(7)));
}

#[test]
fn an_inherited_descriptor_counts_once() {
    let fork = Seen {
        opened_kfd: true,
        ..seen(8, vec![client(1, 18)], None)
    };
    let on = only(&[seen(7, vec![client(1, 18)], Some(on_kfd(18, 1))), fork]);
    assert_eq!((on.processes, on.vram), (2, Metric::Fresh(Bytes::gib(18))));
    assert_eq!(
        on.queues,
        Metric::Fresh(1),
        "a fork that KFD does not know proves nothing"
    );
}

#[test]
fn graphics_alone_have_no_note_and_no_queues() {
    let on = only(&[seen(7, vec![client(1, 1)], None)]);
    assert_eq!((on.compute_note, on.queues), (None, Metric::Fresh(0)));
    let (cards, other) = Sums::default().on_cards(&[seen(7, vec![client(1, 1)], None)], false);
    assert_eq!(cards[0].queues, Metric::Unsupported);
    assert_eq!(other.queues, Metric::Unsupported);
    assert_eq!(other.memory, Metric::Fresh(Bytes(0)));
}

#[test]
fn a_container_says_so_and_keeps_what_fdinfo_tells() {
    let inside = |clients| Seen {
        opened_kfd: true,
        ..seen(7, clients, None)
    };
    let on = only(&[inside(vec![client(1, 18)])]);
    assert_eq!(on.vram, Metric::Fresh(Bytes::gib(18)));
    assert_eq!(
        (why(&on.queues), why(&on.evicted_ms)),
        (CONTAINER, CONTAINER)
    );
    assert_eq!(on.compute_note.as_deref(), Some(ROCM_NOTE));
    let on = only(&[inside(vec![client(1, 0)])]);
    assert_eq!(why(&on.vram), CONTAINER);
    let (cards, other) = Sums::default().on_cards(&[inside(Vec::new())], true);
    assert_eq!((cards, why(&other.queues)), (Vec::new(), CONTAINER));
}

#[test]
fn a_hidden_process_makes_the_sums_unknown_unless_kfd_tells_it() {
    let hidden = |kfd: Option<OnCard>| Seen {
        clients: Err("another user's".to_owned()),
        opened_kfd: false,
        ..seen(9, Vec::new(), kfd)
    };
    let words = "process 9: another user's";
    let (cards, other) =
        Sums::default().on_cards(&[seen(7, vec![client(1, 2)], None), hidden(None)], true);
    assert_eq!((why(&cards[0].vram), why(&cards[0].gtt)), (words, words));
    assert_eq!(why(&other.memory), words);
    let (cards, other) = Sums::default().on_cards(&[hidden(Some(on_kfd(5, 1)))], true);
    assert_eq!(cards[0].vram, Metric::Fresh(Bytes::gib(5)));
    assert_eq!(why(&cards[0].gtt), words);
    assert_eq!(other.memory, Metric::Fresh(Bytes(0)));
}

#[test]
fn a_value_that_fails_is_no_zero_and_its_time_grows() {
    let bad = OnCard {
        vram: Err(ReadError::text(Path::new("vram_1"), "empty")),
        ..on_kfd(0, 1)
    };
    let all = [seen(7, Vec::new(), Some(bad))];
    let mut sums = Sums::default();
    let first = sums.on_cards(&all, true).0;
    assert_eq!(why(&first[0].vram), "process 7: vram_1: empty");
    std::thread::sleep(std::time::Duration::from_millis(15));
    let Metric::Failed { for_ms, .. } = sums.on_cards(&all, true).0[0].vram else {
        panic!("not failed");
    };
    assert!(for_ms >= 15);
    assert_eq!(sums.on_cards(&[], true).0, []);
}

#[test]
fn parts_of_one_card_are_one_card_and_cards_stay_apart() {
    let other = OnCard {
        gpu: gpu("0000:0c:00.0"),
        ..on_kfd(1, 1)
    };
    let idle = OnCard {
        gpu: gpu("0000:0d:00.0"),
        ..on_kfd(0, 0)
    };
    let all = Seen {
        kfd: Ok(vec![on_kfd(2, 1), on_kfd(3, 0), other, idle]),
        ..seen(7, Vec::new(), Some(on_kfd(0, 0)))
    };
    let (cards, _) = Sums::default().on_cards(&[all], true);
    let told: Vec<_> = cards
        .iter()
        .map(|c| (c.gpu.0.as_str(), c.vram.clone()))
        .collect();
    let gib = |n| Metric::Fresh(Bytes::gib(n));
    assert_eq!(told, [(CARD, gib(5)), ("0000:0c:00.0", gib(1))]);
}

proptest! {
    /// The tree never holds more than all sources together tell, and never less than
    /// the distinct clients do.
    #[test]
    fn sums_are_bounded(
        processes in prop::collection::vec(
            (prop::collection::vec((0u64..4, 0u64..9), 0..4), prop::option::of((0u64..9, 0u32..3))),
            0..5,
        ),
    ) {
        // one client tells one thing, whoever has it open
        let size = |id: u64| id * 2;
        let all: Vec<Seen> = (1..).zip(&processes).map(|(pid, (clients, kfd))| {
            let clients = clients.iter().map(|(id, _)| client(*id, size(*id))).collect();
            seen(pid, clients, kfd.map(|(vram, queues)| on_kfd(vram, queues)))
        }).collect();
        let (cards, _) = Sums::default().on_cards(&all, true);
        let ids: HashSet<u64> = processes.iter().flat_map(|p| &p.0).map(|c| c.0).collect();
        let distinct: u64 = ids.iter().map(|id| size(*id)).sum();
        let kfd: u64 = processes.iter().filter_map(|p| p.1).map(|k| k.0).sum();
        let told = cards.first().and_then(|c| c.vram.fresh()).map_or(0, |b| b.0 >> 30);
        prop_assert!(told >= distinct && told <= distinct + kfd, "{} of {} and {}", told, distinct, kfd);
    }
}
