use std::fs;

use super::super::testing::{Tree, fifo};
use super::*;
use crate::model::{Bytes, Metric};

fn config(tree: &Tree) -> SamplerConfig {
    SamplerConfig {
        sys_root: tree.root().to_owned(),
        kernel_log: Some(tree.root().join("kmsg")),
        nvml: false,
        period: Duration::from_millis(20),
        ..SamplerConfig::default()
    }
}

fn start(tree: &Tree) -> Sampler {
    Sampler::start(SamplerConfig {
        proc_root: tree.root().to_owned(),
        ..config(tree)
    })
}

/// A sampler of the tree's cards and of the processes of this machine.
fn start_on_real_processes(tree: &Tree) -> Sampler {
    Sampler::start(config(tree))
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < Duration::from_secs(20), "never: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn status<'a>(sample: &'a Sample, name: &str) -> &'a SourceStatus {
    let found = sample.sources.iter().find(|s| s.name == name);
    found.unwrap_or_else(|| panic!("no {name} in {:?}", sample.sources))
}

#[test]
fn cards_are_sorted_by_address_and_numbered() {
    let tree = Tree::new();
    tree.card("card0", "0000:c1:00.0")
        .card("card1", "0000:03:00.0");
    let sampler = start(&tree);
    let cards = sampler.cards();
    let ids: Vec<_> = cards.iter().map(|c| (c.index, c.id.0.as_str())).collect();
    assert_eq!(ids, [(0, "0000:03:00.0"), (1, "0000:c1:00.0")]);
    assert!(cards.iter().all(|c| c.busy == Metric::Fresh(97.0)));
    let sample = sampler.sample();
    assert_eq!(status(&sample, "sysfs 0000:03:00.0").state, SourceState::Ok);
}

#[test]
fn a_read_that_blocks_makes_one_card_stale_and_never_zero() {
    let (stuck, well) = ("0000:03:00.0", "0000:c1:00.0");
    let tree = Tree::new();
    tree.card("card0", stuck).card("card1", well);
    let sampler = start(&tree);
    assert_eq!(sampler.cards().len(), 2);
    tree.replace(stuck, "gpu_busy_percent", fifo);
    let name = format!("sysfs {stuck}");
    let mut longest = Duration::ZERO;
    until("stale", || {
        let begin = Instant::now();
        let sample = sampler.sample();
        longest = longest.max(begin.elapsed());
        // However slow this machine is: the blocked card never shows another value.
        assert!(
            sample.gpus[0]
                .busy
                .last()
                .is_some_and(|b| (b - 97.0).abs() < 1e-9)
        );
        status(&sample, &name).state == SourceState::Stale
    });
    assert!(
        longest < Duration::from_millis(500),
        "a sample took {longest:?}"
    );
    let sample = sampler.sample();
    let Metric::Stale { age_ms, .. } = sample.gpus[0].power_w else {
        panic!("not stale: {:?}", sample.gpus[0].power_w);
    };
    assert!(age_ms >= 2000);
    assert!(
        status(&sample, &name)
            .why
            .as_ref()
            .unwrap()
            .contains("blocks")
    );
    tree.write_device(well, "gpu_busy_percent", "12\n");
    until("the other card goes on", || {
        sampler.sample().gpus[1].busy == Metric::Fresh(12.0)
    });
}

#[test]
fn a_card_that_never_answers_is_listed_with_failed_values() {
    let tree = Tree::new();
    tree.card("card0", "0000:03:00.0");
    tree.replace("0000:03:00.0", "gpu_busy_percent", fifo);
    let sampler = start(&tree);
    let begin = Instant::now();
    let cards = sampler.cards();
    assert!(begin.elapsed() < Duration::from_secs(3));
    assert_eq!(cards[0].name, "AMD Radeon RX 7900 XTX");
    assert!(matches!(cards[0].busy, Metric::Failed { .. }));
    assert!(matches!(cards[0].vram_total, Metric::Failed { .. }));
}

#[test]
fn a_card_that_comes_later_is_found_and_one_that_vanishes_is_gone() {
    let tree = Tree::new();
    tree.card("card0", "0000:03:00.0");
    let sampler = start(&tree);
    sampler.cards();
    tree.card("card1", "0000:c1:00.0");
    sampler.set_supervised(true, None);
    until("two cards", || sampler.sample().gpus.len() == 2);
    fs::remove_dir_all(tree.device("0000:03:00.0")).unwrap();
    until("gone", || {
        let sample = sampler.sample();
        let source = status(&sample, "sysfs 0000:03:00.0");
        sample.gpus[0].state == Metric::Fresh("gone".to_owned())
            && source.state == SourceState::Failing
    });
    assert!(matches!(
        sampler.sample().gpus[0].busy,
        Metric::Failed { .. }
    ));
}

#[test]
fn a_bare_machine_has_absent_sources_and_no_zeros() {
    let tree = Tree::new();
    let sampler = start(&tree);
    assert_eq!(sampler.cards(), []);
    until("all answered", || {
        let sample = sampler.sample();
        sample
            .sources
            .iter()
            .all(|s| s.state != SourceState::Starting)
    });
    let sample = sampler.sample();
    assert_eq!(status(&sample, "sysfs").state, SourceState::Absent);
    assert_eq!(status(&sample, "kernel log").state, SourceState::Absent);
    assert_eq!(sample.process, None);
    assert_eq!(sample.host.load1, Metric::Unsupported);
    let _ = sampler.sample();
}

#[test]
fn the_target_may_change_and_threads_of_a_slow_round_are_told_once() {
    let tree = Tree::new();
    let sampler = start_on_real_processes(&tree);
    assert_eq!(sampler.sample().process, None);
    sampler.set_target(Some(std::process::id()), None);
    let mut told = 0;
    until("threads", || {
        told = sampler.sample().process.map_or(0, |p| p.per_thread.len());
        told > 0
    });
    let second = sampler.sample().process.unwrap();
    assert!(second.per_thread.is_empty());
    assert!(second.cpu_ns.last().is_some());
    sampler.set_thread_detail(true);
    until("threads in every sample", || {
        sampler
            .sample()
            .process
            .is_some_and(|p| !p.per_thread.is_empty())
    });
    assert!(!sampler.sample().process.unwrap().per_thread.is_empty());
    sampler.set_target(None, None);
    assert_eq!(sampler.sample().process, None);
}

#[test]
fn kernel_lines_are_handed_over_once() {
    let tree = Tree::new();
    tree.write("kmsg", "");
    let sampler = start(&tree);
    until("the log is open", || {
        status(&sampler.sample(), "kernel log").state == SourceState::Ok
    });
    let text = "4,7,9,-;amdgpu: GPU reset begin!\n4,8,9,-;usb: hello\n";
    fs::write(tree.root().join("kmsg"), text).unwrap();
    let mut lines = Vec::new();
    until("lines", || {
        lines.extend(sampler.kernel_lines());
        !lines.is_empty()
    });
    assert_eq!(lines, ["amdgpu: GPU reset begin!"]);
    assert_eq!(sampler.kernel_lines(), Vec::<String>::new());
}

#[test]
fn the_trees_memory_is_told_apart_from_that_of_others() {
    let (used, idle) = ("0000:03:00.0", "0000:c1:00.0");
    let tree = Tree::new();
    tree.card("card0", used).card("card1", idle);
    let stat = "7 (python3) S 1 1 1 0 -1 0 10 0 2 0 5 0 0 0 20 0 1 0 500 0 0\n";
    tree.write("proc/7/stat", stat);
    tree.write("proc/7/task/7/stat", stat);
    let kfd = |path: &str, text: &str| tree.write(&format!("sys/class/kfd/kfd/{path}"), text);
    kfd("topology/nodes/1/gpu_id", "21432\n");
    kfd("topology/nodes/1/properties", "location_id 768\ndomain 0\n");
    kfd("proc/7/vram_21432", "17179869184\n");
    kfd("proc/8/vram_21432", "3221225472\n");
    let sampler = start(&tree);
    assert_eq!(sampler.cards().len(), 2);
    sampler.set_target(Some(7), None);
    let mut told = None;
    until("the tree on its cards", || {
        let sample = sampler.sample();
        let found = sample
            .process
            .as_ref()
            .is_some_and(|p| !p.on_cards.is_empty());
        told = found.then_some(sample);
        found
    });
    let sample = told.unwrap();
    assert_eq!(status(&sample, "clients").state, SourceState::Ok);
    let process = sample.process.as_ref();
    let on = &process.unwrap().on_cards;
    assert_eq!(on.len(), 2, "{on:?}");
    assert_eq!(on[0].vram, Metric::Fresh(Bytes::gib(16)));
    assert_eq!(
        (on[1].processes, &on[1].vram),
        (0, &Metric::Fresh(Bytes(0)))
    );
    let others: Vec<_> = sample
        .gpus
        .iter()
        .map(|g| g.held_by_others(process))
        .collect();
    assert_eq!(others, [Some(Bytes::gib(4)), Some(Bytes::gib(20))]);
    sampler.set_target(Some(8), None);
    let process = sampler.sample().process;
    assert!(
        process.is_none_or(|p| p.on_cards.is_empty()),
        "of another tree"
    );
}

#[test]
fn probes_are_taken_while_detail_is_asked_for_and_handed_out_once() {
    let tree = Tree::new();
    let sampler = start_on_real_processes(&tree);
    let has_status = |sample: Sample| sample.sources.iter().any(|s| s.name == "probe");
    sampler.set_target(Some(std::process::id()), None);
    until("the tree", || sampler.sample().process.is_some());
    assert_eq!(sampler.take_probe(), None);
    assert!(!has_status(sampler.sample()));
    sampler.set_thread_detail(true);
    let mut taken = None;
    until("a probe", || {
        taken = sampler.take_probe();
        taken.is_some()
    });
    let probe = taken.unwrap();
    assert_eq!(probe.processes[0].pid, std::process::id());
    assert!(
        probe.threads().count() > 3 && probe.took_us > 0,
        "{probe:?}"
    );
    assert!(has_status(sampler.sample()));
    // the next one is two seconds away
    assert_eq!(sampler.take_probe(), None);
    sampler.set_thread_detail(false);
    assert!(!has_status(sampler.sample()));
    // one that was taken for another tree is handed to nobody
    sampler.set_thread_detail(true);
    until("another probe", || sampler.probes.is_waiting());
    sampler.set_target(Some(1), None);
    assert_eq!(sampler.take_probe(), None);
}
