//! How much memory of a card single processes hold, asked once and not on a thread.

use std::path::PathBuf;

use super::super::clients::{Descriptors, Kfd};
use crate::model::{Bytes, GpuId};

/// What a process holds of a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// Nothing.
    Nothing,
    /// This much.
    Memory(Bytes),
    /// It uses the card; how much it holds is not shown.
    Unknown,
}

/// The sources that tell which processes use a card: descriptors, KFD and NVML.
pub struct CardUsers {
    root: PathBuf,
    kfd: Kfd,
    #[cfg(feature = "nvml")]
    nvml: super::nvml::Holders,
}

impl Default for CardUsers {
    fn default() -> Self {
        Self::below(PathBuf::from("/"))
    }
}

impl CardUsers {
    /// Below a folder that has `proc` and `sys` in it.
    fn below(root: PathBuf) -> Self {
        Self {
            kfd: Kfd::new(&root),
            #[cfg(feature = "nvml")]
            nvml: super::nvml::Holders::new(root.clone()),
            root,
        }
    }

    /// What the process `pid` holds of `gpu`. The largest answer of all sources counts: memory of
    /// ROCm is shown by two of them. Blocks where the driver does.
    pub fn held(&mut self, pid: u32, gpu: &GpuId) -> Held {
        let mut answers = Vec::new();
        let dir = self.root.join("proc").join(pid.to_string());
        if let Ok((_, clients)) = Descriptors::look(&dir) {
            let here = clients.iter().filter(|client| client.gpu == *gpu);
            let (told, untold): (Vec<_>, Vec<_>) =
                here.map(|client| client.vram).partition(Option::is_some);
            let sum = told.iter().flatten().map(|vram| vram.0);
            answers.push(Self::memory(sum.fold(0, u64::saturating_add)));
            answers.extend(untold.first().map(|_| Held::Unknown));
        }
        let on_cards = self.kfd.process(pid).unwrap_or_default();
        for on in on_cards.iter().filter(|on| on.gpu == *gpu) {
            answers.push(match &on.vram {
                Ok(vram) if vram.0 > 0 => Held::Memory(*vram),
                // a queue has buffers of its own
                _ if on.in_use() => Held::Unknown,
                _ => Held::Nothing,
            });
        }
        #[cfg(feature = "nvml")]
        for on in self.nvml.read().remove(&pid).unwrap_or_default() {
            if on.gpu == *gpu {
                answers.push(on.vram.map_or(Held::Unknown, |vram| Self::memory(vram.0)));
            }
        }
        let most = |held: &Held| match held {
            Held::Nothing => (0, 0),
            Held::Unknown => (1, 0),
            Held::Memory(bytes) => (2, bytes.0),
        };
        answers
            .into_iter()
            .max_by_key(most)
            .unwrap_or(Held::Nothing)
    }

    const fn memory(bytes: u64) -> Held {
        match bytes {
            0 => Held::Nothing,
            bytes => Held::Memory(Bytes(bytes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::clients::texts::{old_text, text};
    use super::super::super::testing::Tree;
    use super::*;

    #[test]
    fn memory_is_found_by_descriptors_and_by_kfd() {
        let tree = Tree::new();
        let kfd = |path: &str, text: &str| tree.write(&format!("sys/class/kfd/kfd/{path}"), text);
        kfd("topology/nodes/1/gpu_id", "21432\n");
        kfd("topology/nodes/1/properties", "location_id 768\ndomain 0\n");
        let open = |pid: u32, fd: u32, text: &str| {
            tree.write(&format!("proc/{pid}/fdinfo/{fd}"), text);
            let links = tree.root().join(format!("proc/{pid}/fd"));
            std::fs::create_dir_all(&links).unwrap();
            std::os::unix::fs::symlink("/dev/dri/renderD128", links.join(fd.to_string())).unwrap();
        };
        open(41, 5, &text(7, "10 MiB"));
        open(41, 6, &text(8, "5 MiB"));
        open(42, 5, &text(9, "0 KiB"));
        open(43, 5, &old_text(32_771, 8 << 20));
        open(44, 5, &text(11, "many KiB"));
        kfd("proc/45/vram_21432", "8589934592\n");
        kfd("proc/46/vram_21432", "0\n");
        kfd("proc/46/queues/0/gpuid", "21432\n");
        kfd("proc/47/vram_21432", "0\n");
        kfd("proc/42/vram_21432", "4096\n");
        let mut users = CardUsers::below(tree.root().to_owned());
        let gpu = GpuId("0000:03:00.0".to_owned());
        for (pid, held) in [
            (41, Held::Memory(Bytes::mib(15))),
            (42, Held::Memory(Bytes(4096))),
            (43, Held::Memory(Bytes::gib(8))),
            (44, Held::Unknown),
            (45, Held::Memory(Bytes::gib(8))),
            (46, Held::Unknown),
            (47, Held::Nothing),
            (48, Held::Nothing),
        ] {
            assert_eq!(users.held(pid, &gpu), held, "process {pid}");
        }
        let other = GpuId("0000:0c:00.0".to_owned());
        assert_eq!(users.held(41, &other), Held::Nothing);
    }
}
