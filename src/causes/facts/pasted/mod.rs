//! What a person pasted beside the log: output of `free`, `df`, `id`, `pip show`, `rocminfo`,
//! `nvidia-smi` and its kin, variables, versions, and remarks about them. A cure is chosen by it, and asks for nothing of
//! it again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;
use serde::Deserialize;

mod builds;
mod machine;

use super::amount;
use machine::Machine;

/// Most packages whose versions are kept.
const MOST_PACKAGES: usize = 512;
/// Memory is full where less than this share of it, in percent, can be given.
const FULL_BELOW: u64 = 6;
/// The driver of AMD for Windows among the versions.
const ADRENALIN: &str = "adrenalin";
/// The CUDA that NVIDIA's driver can do, among the versions.
const CUDA_DRIVER: &str = "cuda-driver";

/// What of it a cause asks for. A fact that was not pasted is neither true nor false.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PastedNeeds {
    /// RAM and swap are used up.
    pub memory_full: Option<bool>,
    /// The user is in the groups render and video.
    pub in_groups: Option<bool>,
    /// `rocminfo` lists a card.
    pub card_listed: Option<bool>,
    /// A folder of the program lies on a network file system.
    pub network_disk: Option<bool>,
    /// The files have the checksums of their page.
    pub checksum_matches: Option<bool>,
    /// ROCR_VISIBLE_DEVICES is set together with HIP_ or CUDA_VISIBLE_DEVICES.
    pub two_masks: Option<bool>,
    /// `/dev/kfd` exists.
    pub kfd_exists: Option<bool>,
    /// The container was given `/dev/kfd`.
    pub kfd_passed: Option<bool>,
    /// torch and torchvision or torchaudio are of different builds.
    pub two_builds: Option<bool>,
    /// Packages whose version is lower than this one; `adrenalin` is the driver of Windows,
    /// `kernel` that of Linux, `cuda-driver` the CUDA that NVIDIA's driver can do.
    pub older: BTreeMap<String, String>,
}

impl PastedNeeds {
    /// How many conditions there are.
    pub(crate) fn count(&self) -> usize {
        let flags = [
            self.memory_full,
            self.in_groups,
            self.card_listed,
            self.network_disk,
            self.checksum_matches,
            self.two_masks,
            self.kfd_exists,
            self.kfd_passed,
            self.two_builds,
        ];
        flags.iter().flatten().count() + self.older.len()
    }
}

/// See the module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pasted {
    /// Bytes of RAM: in all, and those that can still be given.
    ram: Option<(u64, u64)>,
    /// Swap: in all and used, in the unit of its line.
    swap: Option<(u64, u64)>,
    groups: Option<BTreeSet<String>>,
    /// The next line is the output of `groups`.
    awaits_groups: bool,
    card_listed: Option<bool>,
    network_disk: Option<bool>,
    checksum_matches: Option<bool>,
    /// Variables that choose cards, without those that are set to nothing.
    masks: BTreeMap<String, String>,
    /// Versions by the names of the packages.
    versions: BTreeMap<String, String>,
    /// `pip show` named this package.
    shown: Option<String>,
    machine: Machine,
    /// Unit of the numbers of `free`, in bytes; absent: each number has its own.
    unit: Option<u64>,
}

struct Patterns {
    memory: Regex,
    free: Regex,
    windows_memory: Regex,
    id: Regex,
    groups: Regex,
    network: Regex,
    checksum: Regex,
    mask: Regex,
    version: Regex,
    row: Regex,
    torch: Regex,
    adrenalin: Regex,
    kernel: Regex,
    cuda_driver: Regex,
    agent: Regex,
    no_agent: Regex,
}

static PATTERNS: LazyLock<Option<Patterns>> = LazyLock::new(|| patterns().ok());

fn patterns() -> Result<Patterns, regex::Error> {
    Ok(Patterns {
        memory: Regex::new(
            r"^\s*(?P<what>Mem|Swap):\s+(?P<all>[\d.]+)(?P<u>[KMGT]?)i?B?\s+(?P<used>[\d.]+)(?P<u2>[KMGT]?)i?B?\s+[\d.]+[KMGT]?i?B?(?:\s+\S+\s+\S+\s+(?P<left>[\d.]+)(?P<u3>[KMGT]?)i?B?)?",
        )?,
        free: Regex::new(
            r"\bfree\b(?: +-\w+)* +-?-?(?P<unit>[kmgb]|-(?:kilo|mega|giga|mebi|gibi))\b",
        )?,
        windows_memory: Regex::new(
            r"(?i)^\W*(?P<what>Total|Available) Physical Memory:\s+(?P<n>[\d.,\u{a0} ]+)\s*MB",
        )?,
        id: Regex::new(r"\buid=\d+\(\S+\s.*\bgroups=(?P<all>\S+)")?,
        groups: Regex::new(r"[$#%❯>]\s+groups\s*$")?,
        network: Regex::new(
            r"(?:^\S+\s+|\btype )(?:nfs4?|cifs|smb3|smbfs|lustre|gpfs|beegfs|ceph|glusterfs|fuse\.(?:sshfs|glusterfs|ceph|lustre))(?:\s+\d|\s*\()",
        )?,
        checksum: Regex::new(
            r"(?i)\b(?:sha-?256(?:sum)?s?|checksums?|hash(?:es)?)\b.{0,80}\b(?:match(?:es|ed)?|identical|the same|equal|correct|OK)\b",
        )?,
        mask: Regex::new(
            r#"(?:^|[\s#])(?P<name>(?:HIP|CUDA|ROCR)_VISIBLE_DEVICES)=["']?(?P<value>[\w,-]*)"#,
        )?,
        version: Regex::new(r"^(?P<key>Name|Version):\s+(?P<value>[\w.+!-]+)\s*$")?,
        row: Regex::new(
            r"^ ?(?:\+ )?(?P<name>[A-Za-z][\w.-]{1,60})(?:==|@|\s{1,60})v?(?P<version>\d+\.\d[\w.+!-]*)(?:\s+\S*site-packages\S*)?\s*$",
        )?,
        torch: Regex::new(
            r"(?i)\b(?:pytorch version|torch) ?[:=]{1,2} ?(?P<version>\d+\.\d[\w.+]*)",
        )?,
        adrenalin: Regex::new(
            r"(?i)\b(?:Adrenalin(?: Edition)?|Radeon Software(?: Version)?|AMD Software)\b\D{0,30}(?P<version>\d\d\.\d{1,2}\.\d{1,2})\b",
        )?,
        kernel: Regex::new(r"^Linux \S+ (?P<version>\d+\.\d+\S*) #\d+.*\bGNU/Linux")?,
        cuda_driver: Regex::new(
            r"\bDriver Version: \d+[\d.]*\s+CUDA Version: (?P<version>\d+\.\d+)",
        )?,
        agent: Regex::new(r"^\s*(?:Name|Marketing Name):\s+(?:gfx\d|AMD Radeon)")?,
        no_agent: Regex::new(r"(?i)\bhsa_init Failed\b|\bROCk module is NOT loaded\b")?,
    })
}

impl Pasted {
    /// Takes a line of the paste, log or not.
    pub fn observe(&mut self, text: &str) {
        let Some(p) = PATTERNS.as_ref() else {
            return;
        };
        let text = text.trim_end();
        self.observe_memory(p, text);
        self.observe_user(p, text);
        self.observe_versions(p, text);
        if p.network.is_match(text) {
            self.network_disk = Some(true);
        }
        if p.checksum.is_match(text) {
            let denied = ["not ", "n't", "mismatch", "differ"];
            self.checksum_matches = Some(!denied.iter().any(|w| text.contains(w)));
        }
        self.machine.observe(text);
        for found in p.mask.captures_iter(text) {
            let (name, value) = (found["name"].to_owned(), found["value"].to_owned());
            if value.is_empty() {
                self.masks.remove(&name);
            } else {
                self.masks.insert(name, value);
            }
        }
        if p.agent.is_match(text) {
            self.card_listed = Some(true);
        } else if p.no_agent.is_match(text) {
            self.card_listed.get_or_insert(false);
        }
    }

    fn observe_memory(&mut self, p: &Patterns, text: &str) {
        if let Some(found) = p.free.captures(text) {
            let unit = found["unit"].trim_start_matches('-');
            self.unit = unit.chars().next().and_then(amount::unit);
        }
        if let Some(found) = p.windows_memory.captures(text) {
            let digits: String = found["n"].chars().filter(char::is_ascii_digit).collect();
            let bytes = digits
                .parse()
                .ok()
                .and_then(|n: u64| n.checked_mul(1 << 20));
            let (all, left) = self.ram.unwrap_or_default();
            self.ram = match (&found["what"], bytes) {
                ("Total" | "total", Some(all)) => Some((all, left)),
                (_, Some(left)) => Some((all, left)),
                _ => self.ram,
            };
            return;
        }
        let Some(found) = p.memory.captures(text) else {
            return;
        };
        let number = |n: &str, u: &str| {
            let unit = found.name(u)?.as_str().chars().next();
            let unit = unit.map_or(Some(self.unit.unwrap_or(1 << 10)), amount::unit)?;
            amount::scaled(found.name(n)?.as_str(), unit)
        };
        let all = number("all", "u");
        match (
            &found["what"],
            all,
            number("used", "u2"),
            number("left", "u3"),
        ) {
            ("Mem", Some(all), _, Some(left)) => self.ram = Some((all, left)),
            ("Swap", Some(all), Some(used), _) => self.swap = Some((all, used)),
            _ => {}
        }
    }

    fn observe_user(&mut self, p: &Patterns, text: &str) {
        let of_id = p.id.captures(text).map(|c| c["all"].to_owned());
        if std::mem::take(&mut self.awaits_groups) && !text.is_empty() {
            self.groups = Some(text.split_whitespace().map(str::to_owned).collect());
        } else if let Some(all) = of_id {
            // inside of a container a group may have no name
            let words = all.split(',').flat_map(|g| g.split(['(', ')']));
            let words = words.filter(|w| !w.is_empty());
            self.groups = Some(words.map(str::to_owned).collect());
        }
        self.awaits_groups = p.groups.is_match(text);
    }

    fn observe_versions(&mut self, p: &Patterns, text: &str) {
        if let Some(found) = p.adrenalin.captures(text) {
            self.version(ADRENALIN, &found["version"]);
        }
        for (pattern, name) in [
            (&p.torch, "torch"),
            (&p.kernel, "kernel"),
            (&p.cuda_driver, CUDA_DRIVER),
        ] {
            if let Some(found) = pattern.captures(text) {
                self.version(name, &found["version"]);
            }
        }
        if let Some(found) = p.version.captures(text) {
            let value = &found["value"];
            if &found["key"] == "Name" {
                self.shown = Some(value.to_owned());
            } else if let Some(name) = self.shown.take() {
                self.version(&name, value);
            }
        } else if let Some(found) = p.row.captures(text) {
            self.version(&found["name"], &found["version"]);
        }
    }

    fn version(&mut self, name: &str, version: &str) {
        if self.versions.len() < MOST_PACKAGES {
            let name = name.to_ascii_lowercase().replace('_', "-");
            self.versions.insert(name, version.to_owned());
        }
    }

    /// Bytes of RAM in all.
    pub(super) fn ram(&self) -> Option<u64> {
        self.ram.map(|(all, _)| all).filter(|all| *all > 0)
    }

    /// The variables that choose cards, as they would be set.
    fn masks(&self) -> Option<String> {
        let all = self
            .masks
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        let all: Vec<String> = all.collect();
        (!all.is_empty()).then(|| all.join(" "))
    }

    /// The version of a package.
    fn version_of(&self, package: &str) -> Option<&str> {
        self.versions.get(package).map(String::as_str)
    }

    /// The release of torch, and the name of the index of pytorch.org that it came from.
    fn torch(&self) -> Option<(&str, &str)> {
        let (release, index) = self.version_of("torch")?.split_once('+')?;
        let number = index.trim_start_matches("rocm").trim_start_matches("cu");
        let plain = number.chars().all(|c| c.is_ascii_digit() || c == '.');
        let is_release = release.chars().all(|c| c.is_ascii_digit() || c == '.');
        (is_release && (index == "cpu" || plain && number != index)).then_some((release, index))
    }

    /// The packages beside torch that are of another build than torch; none: nothing tells.
    fn odd_packages(&self) -> Option<Vec<String>> {
        builds::odd(|package| self.version_of(package))
    }

    /// Whether RAM and swap are used up.
    fn memory_full(&self) -> Option<bool> {
        let (all, left) = self.ram.filter(|(all, _)| *all > 0)?;
        let swap_left = self.swap.map_or(0, |(all, used)| all.saturating_sub(used));
        let swap = self.swap.map_or(0, |(all, _)| all);
        let little =
            |left: u64, all: u64| left.saturating_mul(100) < all.saturating_mul(FULL_BELOW);
        Some(little(left, all) && (swap == 0 || little(swap_left, swap)))
    }

    /// Whether RAM and swap are used up, by what was pasted.
    pub(crate) fn is_memory_full(&self) -> bool {
        self.memory_full() == Some(true)
    }

    /// Whether the memory was looked at, and there is room.
    pub(crate) fn has_memory_left(&self) -> bool {
        self.memory_full() == Some(false)
    }

    fn two_masks(&self) -> Option<bool> {
        let set = |name: &str| self.masks.contains_key(name);
        let both = set("ROCR_VISIBLE_DEVICES")
            && (set("HIP_VISIBLE_DEVICES") || set("CUDA_VISIBLE_DEVICES"));
        (!self.masks.is_empty()).then_some(both)
    }

    fn in_groups(&self) -> Option<bool> {
        let groups = self.groups.as_ref()?;
        let has = |group: &str| groups.contains(group);
        let owns = match self.machine.kfd_group() {
            Some(group) => has(group),
            None => has("render") && has("video"),
        };
        Some(has("root") || owns)
    }

    /// Bytes of the card in all.
    pub(super) const fn card_memory(&self) -> Option<u64> {
        self.machine.card_memory()
    }

    /// The words of a fact.
    pub(super) fn place(&self, name: &str) -> Option<String> {
        match name {
            "masks" => self.masks(),
            "torch" => self.torch().map(|(release, _)| release.to_owned()),
            "torch_index" => self.torch().map(|(_, index)| index.to_owned()),
            "torch_build" => self.version_of("torch").map(str::to_owned),
            "odd_package" => {
                let odd = self.odd_packages().filter(|odd| !odd.is_empty())?;
                Some(odd.join(" and "))
            }
            "safetensors" => self.version_of(name).map(str::to_owned),
            "cuda_driver" => self.version_of(CUDA_DRIVER).map(str::to_owned),
            "kfd_group" => self.machine.kfd_group().map(str::to_owned),
            "full_disk" => self.machine.full_disk(),
            "free_disk" => self.machine.free_disk(),
            "holder" => self.machine.holder(),
            _ => None,
        }
    }

    /// Whether what a cause asks for was pasted.
    pub(in crate::causes) fn meets(&self, needs: &PastedNeeds) -> bool {
        let flag = |wanted: Option<bool>, is: Option<bool>| wanted.is_none() || wanted == is;
        let older = |(package, than): (&String, &String)| {
            self.version_of(package).is_some_and(|v| is_older(v, than))
        };
        flag(needs.memory_full, self.memory_full())
            && flag(needs.in_groups, self.in_groups())
            && flag(needs.card_listed, self.card_listed)
            && flag(needs.network_disk, self.network_disk)
            && flag(needs.checksum_matches, self.checksum_matches)
            && flag(needs.two_masks, self.two_masks())
            && flag(needs.kfd_exists, self.machine.kfd_exists())
            && flag(needs.kfd_passed, self.machine.kfd_passed())
            && flag(
                needs.two_builds,
                self.odd_packages().map(|odd| !odd.is_empty()),
            )
            && needs.older.iter().all(older)
    }
}

/// Whether a version is lower than another, by the numbers before its first other sign.
fn is_older(version: &str, than: &str) -> bool {
    let numbers = |v: &str| -> Vec<u64> {
        let release = v.split(['+', '-', '!']).next().unwrap_or_default();
        let parts = release.split('.').map_while(|p| p.parse().ok());
        parts.collect()
    };
    numbers(version) < numbers(than)
}

#[cfg(test)]
mod tests;
