//! The source over an imitated `/proc` and KFD.

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::super::super::testing::Tree;
use super::super::sum::{CONTAINER, ROCM_NOTE};
use super::super::texts::{old_text, text};
use super::*;
use crate::model::Bytes;

const CARD: &str = "0000:03:00.0";
const RENDER: &str = "/dev/dri/renderD128";

struct Machine {
    tree: Tree,
    source: ClientsSource,
}

impl Machine {
    /// The tree has these processes.
    fn new(pids: &[u32]) -> Self {
        let tree = Tree::new();
        let members = Members {
            of: (Some(pids[0]), None),
            pids: pids.iter().map(|pid| (*pid, 1)).collect::<BTreeMap<_, _>>(),
        };
        let members = Arc::new(Mutex::new(members));
        let source = ClientsSource::new(tree.root(), tree.root(), members);
        Self { tree, source }
    }

    fn kfd(&self) -> &Self {
        self.put("topology/nodes/1/gpu_id", "21432\n");
        self.put("topology/nodes/1/properties", "location_id 768\ndomain 0\n");
        std::fs::create_dir_all(self.tree.root().join("sys/class/kfd/kfd/proc")).unwrap();
        self
    }

    fn put(&self, path: &str, text: &str) {
        self.tree.write(&format!("sys/class/kfd/kfd/{path}"), text);
    }

    fn on_kfd(&self, pid: u32, vram: u64) {
        self.put(&format!("proc/{pid}/vram_21432"), &format!("{vram}\n"));
        self.put(&format!("proc/{pid}/queues/0/gpuid"), "21432\n");
    }

    fn descriptor(&self, pid: u32, fd: u32, to: &str, info: &str) {
        let link = self.tree.root().join(format!("proc/{pid}/fd/{fd}"));
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(to, link).unwrap();
        self.tree.write(&format!("proc/{pid}/fdinfo/{fd}"), info);
    }

    fn read(&mut self) -> Answer<ClientsReading> {
        for process in self.source.processes.values_mut() {
            process.looked = None;
        }
        self.source.read().unwrap()
    }

    fn on(&mut self) -> TreeOnCard {
        self.read().reading.on(&GpuId(CARD.to_owned()))
    }
}

fn vram(on: &TreeOnCard) -> Option<Bytes> {
    on.vram.fresh().copied()
}

#[test]
fn a_machine_without_amd_has_no_such_source() {
    let mut m = Machine::new(&[7]);
    assert!(matches!(m.source.read(), Err(SourceError::Absent(_))));
    // with the driver, nothing open is a measured nothing
    m.tree.write("sys/module/amdgpu/initstate", "live\n");
    let on = m.on();
    assert_eq!((vram(&on), on.processes), (Some(Bytes(0)), 0));
    assert_eq!(on.queues, Metric::Unsupported);
}

#[test]
fn a_tree_on_a_card_by_both_sources() {
    let mut m = Machine::new(&[7, 8]);
    m.kfd().on_kfd(7, 8 << 30);
    m.descriptor(7, 3, "/dev/kfd", "pos:\t0\n");
    m.descriptor(7, 4, RENDER, &text(5, "9 GiB"));
    m.descriptor(7, 5, RENDER, &text(5, "9 GiB"));
    m.descriptor(7, 6, "/tmp/x", &text(6, "1 GiB"));
    m.descriptor(8, 4, RENDER, &text(5, "9 GiB"));
    // somebody else's
    m.on_kfd(99, 4 << 30);
    let on = m.on();
    assert_eq!(
        (vram(&on), on.source.as_str()),
        (Some(Bytes::gib(9)), "fdinfo")
    );
    assert_eq!((on.processes, on.queues.clone()), (2, Metric::Fresh(1)));
    assert_eq!(on.evicted, Metric::Fresh(Bytes(512 << 10)));
    assert_eq!(on.compute_note.as_deref(), Some(ROCM_NOTE));
    assert_eq!(m.read().trouble, None);
    // another card was not opened
    let other = m.read().reading.on(&GpuId("0000:0c:00.0".to_owned()));
    assert_eq!(
        (vram(&other), other.queues),
        (Some(Bytes(0)), Metric::Fresh(0))
    );
    // it ends
    *lock(&m.source.members) = Members::default();
    assert_eq!(m.read().reading.open().count(), 0);
}

#[test]
fn values_follow_without_a_new_look_at_the_descriptors() {
    let mut m = Machine::new(&[7]);
    m.kfd();
    m.descriptor(7, 4, RENDER, &text(5, "1 GiB"));
    assert_eq!(vram(&m.on()), Some(Bytes::gib(1)));
    m.tree.write("proc/7/fdinfo/4", &text(5, "2 GiB"));
    let again = m.source.read().unwrap().reading.on(&GpuId(CARD.to_owned()));
    assert_eq!(vram(&again), Some(Bytes::gib(2)));
    std::fs::remove_file(m.tree.root().join("proc/7/fdinfo/4")).unwrap();
    let closed = m.source.read().unwrap().reading.on(&GpuId(CARD.to_owned()));
    assert_eq!((vram(&closed), closed.processes), (Some(Bytes(0)), 0));
}

#[test]
fn another_process_under_the_same_number_is_looked_at_anew() {
    let mut m = Machine::new(&[7]);
    m.kfd();
    assert_eq!(m.on().processes, 0);
    m.descriptor(7, 4, RENDER, &text(5, "1 GiB"));
    lock(&m.source.members).pids.insert(7, 2);
    let again = m.source.read().unwrap().reading.on(&GpuId(CARD.to_owned()));
    assert_eq!(vram(&again), Some(Bytes::gib(1)));
}

#[test]
fn kernels_without_memory_of_rocm_in_fdinfo_have_it_from_kfd() {
    let mut m = Machine::new(&[7]);
    m.kfd().on_kfd(7, 8 << 30);
    let on = m.on();
    assert_eq!(
        (vram(&on), on.source.as_str()),
        (Some(Bytes::gib(8)), "kfd")
    );
    assert_eq!(on.gtt, Metric::Unsupported);
    m.descriptor(7, 4, RENDER, &old_text(32_771, 3 << 20));
    assert_eq!(vram(&m.on()), Some(Bytes::gib(3)));
}

#[test]
fn in_a_container_kfds_numbers_are_not_ours() {
    let mut m = Machine::new(&[7]);
    // a stranger of the host has our number
    m.kfd().on_kfd(7, 8 << 30);
    m.descriptor(7, 3, "/dev/kfd", "pos:\t0\n");
    m.descriptor(7, 4, RENDER, &text(5, "2 GiB"));
    let ns = m.tree.root().join("proc/self/ns/pid");
    std::fs::create_dir_all(ns.parent().unwrap()).unwrap();
    symlink("pid:[4026532555]", &ns).unwrap();
    let on = m.on();
    assert_eq!(vram(&on), Some(Bytes::gib(2)));
    assert!(matches!(&on.queues, Metric::Failed { why, .. } if why == CONTAINER));
    assert_eq!(m.read().trouble.as_deref(), Some(CONTAINER));
    std::fs::remove_file(&ns).unwrap();
    symlink(namespace::HOST, &ns).unwrap();
    assert_eq!(m.on().queues, Metric::Fresh(1));
}

#[test]
fn descriptors_that_are_hidden_are_a_failure_in_words() {
    if rustix::process::geteuid().is_root() {
        println!("nothing is hidden from root: not tested; the sums are, see `sum_tests.rs`");
        return;
    }
    let mut m = Machine::new(&[7]);
    m.kfd();
    m.descriptor(7, 4, RENDER, &text(5, "1 GiB"));
    let dir = m.tree.root().join("proc/7/fdinfo");
    std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o000)).unwrap();
    let on = m.on();
    let words = "process 7: the kernel does not show it to us";
    assert!(
        matches!(&on.vram, Metric::Failed { why, .. } if why == words),
        "{on:?}"
    );
    assert_eq!(m.read().trouble.as_deref(), Some(words));
}

#[test]
fn our_own_process_is_survived() {
    let tree = Tree::new();
    let pid = std::process::id();
    let members = Arc::new(Mutex::new(Members {
        of: (Some(pid), None),
        pids: BTreeMap::from([(pid, 1)]),
    }));
    tree.write("sys/module/amdgpu/initstate", "live\n");
    let mut source = ClientsSource::new(Path::new("/"), tree.root(), members);
    let answer = source.read().unwrap();
    assert_eq!((answer.reading.open().count(), answer.trouble), (0, None));
}
