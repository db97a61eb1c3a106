//! Tables about the machine: `df`, `nvidia-smi`, `rocm-smi`, `amd-smi`, `ls -l /dev/kfd`, and the
//! options of `docker run`.

use std::sync::LazyLock;

use regex::Regex;

use crate::causes::facts::amount;

/// Disks and processes that are kept.
const MOST_ROWS: usize = 64;
/// A disk of which this share is used, in percent, is full.
const FULL_FROM: u64 = 99;
/// A disk with less room than this is not named as one to move to.
const ROOM_FROM: u64 = 20 << 30;

/// See the module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Machine {
    disks: Vec<Disk>,
    /// Bytes of the first card in all.
    card_memory: Option<u64>,
    holders: Vec<Holder>,
    /// `amd-smi process` named this program.
    named: Option<String>,
    /// `/dev/kfd` exists where `ls` ran.
    kfd_exists: Option<bool>,
    /// The group that owns `/dev/kfd`.
    kfd_group: Option<String>,
    /// The container was given `/dev/kfd`.
    kfd_passed: Option<bool>,
    /// The command that starts the container goes on in the next line.
    command_goes_on: bool,
}

/// A row of `df`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Disk {
    mount: String,
    /// Bytes that can still be written.
    free: u64,
    /// Percent.
    used: u64,
}

/// A process with memory of the card.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Holder {
    name: String,
    bytes: u64,
}

struct Patterns {
    disk: Regex,
    rocm_process: Regex,
    nvidia_process: Regex,
    amd_process: Regex,
    amd_memory: Regex,
    total: Regex,
    kfd: Regex,
    no_kfd: Regex,
    runs: Regex,
    device: Regex,
}

static PATTERNS: LazyLock<Option<Patterns>> = LazyLock::new(|| patterns().ok());

fn patterns() -> Result<Patterns, regex::Error> {
    Ok(Patterns {
        disk: Regex::new(
            r"^(?P<from>/dev/\S+|[\w.-]+:/\S*|//\S+|overlay|[A-Za-z][\w.-]*(?:/\S+)?)\s+(?:(?P<type>[a-z][a-z0-9._]*)\s+)?[\d.]+[KMGTP]?i?\s+[\d.]+[KMGTP]?i?\s+(?P<free>[\d.]+)(?P<u>[KMGTP]?)i?\s+(?P<used>\d{1,3})%\s+(?P<mount>/\S*)\s*$",
        )?,
        rocm_process: Regex::new(
            r"^\s*\d+\s+(?P<name>[\w.+-]{1,60})\s+\d+\s+(?P<bytes>\d{6,})\s+\d+\s+\S+\s*$",
        )?,
        nvidia_process: Regex::new(
            r"^\|\s+\d+\s+\S+\s+\S+\s+\d+\s+\S+\s+(?P<name>\S.{0,80}?)\s+(?P<n>\d+)MiB\s*\|",
        )?,
        amd_process: Regex::new(r"^\s+NAME: (?P<name>\S+)\s*$")?,
        amd_memory: Regex::new(r"^\s+VRAM_MEM: (?P<n>[\d.]+) (?P<u>[KMGT])i?B\s*$")?,
        total: Regex::new(
            r"\bVRAM Total Memory \(B\): (?P<bytes>\d+)|\d+MiB\s*/\s*(?P<mib>\d+)MiB\b|\bTOTAL_VRAM: (?P<mb>\d+) MB",
        )?,
        kfd: Regex::new(r"^c\S{9,10}\s+\d+\s+\S+\s+(?P<group>\S+)\s.*\bkfd\s*$")?,
        no_kfd: Regex::new(r"\bls: .{0,20}/dev/kfd'?: No such file")?,
        runs: Regex::new(r"\b(?:docker|podman)\s+(?:container\s+)?(?:run|create)\b")?,
        device: Regex::new(r#"--device[= ]["']?/dev/kfd\b|^\s*-\s+["']?/dev/kfd\b"#)?,
    })
}

impl Machine {
    /// Takes a line of the paste.
    pub(super) fn observe(&mut self, text: &str) {
        let Some(p) = PATTERNS.as_ref() else {
            return;
        };
        self.observe_container(p, text);
        if text.contains('%') {
            self.observe_disk(p, text);
        }
        if text.contains("kfd") {
            if let Some(found) = p.kfd.captures(text) {
                self.kfd_exists = Some(true);
                self.kfd_group = Some(found["group"].to_owned());
            } else if p.no_kfd.is_match(text) {
                self.kfd_exists = Some(false);
            }
        }
        self.observe_card(p, text);
    }

    fn observe_container(&mut self, p: &Patterns, text: &str) {
        let runs = (text.contains("docker") || text.contains("podman")) && p.runs.is_match(text);
        if runs || self.command_goes_on {
            self.kfd_passed.get_or_insert(false);
            self.command_goes_on = text.trim_end().ends_with('\\');
        }
        if text.contains("kfd") && p.device.is_match(text) {
            self.kfd_passed = Some(true);
        }
    }

    fn observe_disk(&mut self, p: &Patterns, text: &str) {
        let Some(found) = p.disk.captures(text) else {
            return;
        };
        let kind = found.name("type").map_or("", |t| t.as_str());
        let from = &found["from"];
        let mount = &found["mount"];
        let in_memory = |name: &str| matches!(name, "tmpfs" | "devtmpfs" | "udev" | "efivarfs");
        let apart = ["/boot", "/snap", "/sys", "/run", "/dev"];
        if in_memory(kind)
            || in_memory(from)
            || from.starts_with("/dev/loop")
            || apart.iter().any(|a| mount.starts_with(a))
            || self.disks.len() >= MOST_ROWS
        {
            return;
        }
        // `df` counts in KiB where it is not asked otherwise
        let letter = found["u"].chars().next().unwrap_or('K');
        let unit = if letter == 'P' {
            Some(1 << 50)
        } else {
            amount::unit(letter)
        };
        let free = unit.and_then(|unit| amount::scaled(&found["free"], unit));
        if let (Some(free), Ok(used)) = (free, found["used"].parse()) {
            let mount = mount.to_owned();
            self.disks.push(Disk { mount, free, used });
        }
    }

    fn observe_card(&mut self, p: &Patterns, text: &str) {
        let names_memory = ["VRAM", "MiB"].iter().any(|word| text.contains(word));
        let total = names_memory.then(|| p.total.captures(text)).flatten();
        if let Some(found) = total {
            let number = |name: &str| found.name(name)?.as_str().parse::<u64>().ok();
            let mib = number("mib").or_else(|| number("mb"));
            let bytes = number("bytes").or_else(|| mib?.checked_mul(1 << 20));
            self.card_memory = self.card_memory.or(bytes);
            return;
        }
        if let Some(found) = p.amd_process.captures(text) {
            self.named = Some(found["name"].to_owned());
            return;
        }
        let (name, bytes) = if let Some(found) = p.rocm_process.captures(text) {
            (Some(found["name"].to_owned()), found["bytes"].parse().ok())
        } else if let Some(found) = p.nvidia_process.captures(text) {
            let name = found["name"].to_owned();
            (Some(name), amount::scaled(&found["n"], 1 << 20))
        } else if let Some(found) = p.amd_memory.captures(text) {
            let unit = found["u"].chars().next().and_then(amount::unit);
            let bytes = unit.and_then(|unit| amount::scaled(&found["n"], unit));
            (self.named.take(), bytes)
        } else {
            return;
        };
        let rows_left = self.holders.len() < MOST_ROWS;
        if let (Some(name), Some(bytes), true) = (name, bytes, rows_left) {
            self.holders.push(Holder { name, bytes });
        }
    }

    /// Bytes of the card in all.
    pub(super) const fn card_memory(&self) -> Option<u64> {
        self.card_memory
    }

    pub(super) const fn kfd_exists(&self) -> Option<bool> {
        self.kfd_exists
    }

    pub(super) const fn kfd_passed(&self) -> Option<bool> {
        self.kfd_passed
    }

    /// The group that owns `/dev/kfd`.
    pub(super) fn kfd_group(&self) -> Option<&str> {
        self.kfd_group.as_deref()
    }

    /// The first disk that is full.
    pub(super) fn full_disk(&self) -> Option<String> {
        let mut full = self.disks.iter().filter(|d| d.used >= FULL_FROM);
        full.next().map(|d| d.mount.clone())
    }

    /// The disk with the most room, where another one is full.
    pub(super) fn free_disk(&self) -> Option<String> {
        self.full_disk()?;
        let free = self.disks.iter().filter(|d| d.used < FULL_FROM);
        let largest = free
            .max_by_key(|d| d.free)
            .filter(|d| d.free >= ROOM_FROM)?;
        Some(format!(
            "{} ({} free)",
            largest.mount,
            amount::gib(largest.free)
        ))
    }

    /// The largest other program on the card, where it holds much of it. One that is written in
    /// Python may be the program itself.
    pub(super) fn holder(&self) -> Option<String> {
        let least = self.card_memory.map_or(2 << 30, |all| all / 8);
        let others = self.holders.iter().filter(|h| {
            let name = h.name.to_lowercase();
            h.bytes >= least && !name.contains("python") && !name.contains("comfy")
        });
        let largest = others.max_by_key(|h| h.bytes)?;
        let name = largest.name.rsplit(['/', '\\']).next().unwrap_or_default();
        Some(format!("{name} ({})", amount::gib(largest.bytes)))
    }
}
