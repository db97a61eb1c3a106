//! What the text and the machine tell of the case: backend, memory, cards, container.

use std::sync::LazyLock;

use regex::Regex;
use regex::bytes::{RegexSet, RegexSetBuilder};

use super::catalogue::CACHE;
use super::settings::{Setting, Settings};
use crate::model::{Backend, Bytes, Phase};

/// Places of a sentence that facts fill, beside those of the settings.
const PLACES: &[&str] = &[
    "asked", "total", "ram", "arch", "mask", "card", "others", "free",
];

/// Whether a fact or a setting fills this place of a sentence.
pub(super) fn is_place(name: &str) -> bool {
    PLACES.contains(&name) || Setting::ALL.iter().any(|(_, place)| *place == name)
}

/// What is known beside the text: of the card and the phase. Absent values are not known.
#[derive(Debug, Clone, Default)]
pub struct Known<'a> {
    /// Where it happened.
    pub phase: Option<Phase>,
    /// What the program computes with.
    pub backend: Backend,
    /// Memory of the card.
    pub card_memory: Option<Bytes>,
    /// Architecture of the card.
    pub arch: Option<&'a str>,
    /// Memory of the card was full as it happened, by its readings.
    pub card_full: bool,
    /// The text came out of a container.
    pub container: bool,
    /// The program, by the name of its adapter; absent: nothing is known of it.
    pub program: Option<&'a str>,
    /// The command that it was started with.
    pub argv: &'a [String],
}

/// See the module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "facts of one case, independent of each other"
)]
pub struct Facts {
    /// Where it happened.
    pub(super) phase: Option<Phase>,
    backend: Backend,
    /// It runs in a container.
    pub(super) container: bool,
    /// It runs in WSL.
    pub(super) wsl: bool,
    /// It runs on Windows.
    pub(super) windows: bool,
    /// Bytes that were asked for in vain.
    asked: Option<u64>,
    /// Bytes of the card in all.
    pub(super) card_memory: Option<u64>,
    /// Bytes of the card that were free as the request failed.
    free: Option<u64>,
    /// Bytes of the card that are neither free nor this program's own.
    others: Option<u64>,
    /// Bytes of the host in all.
    pub(super) ram: Option<u64>,
    /// Cards that the program found.
    pub(super) cards: usize,
    /// One of them is the processor's own graphics.
    integrated: bool,
    /// `gfx1100`.
    pub(super) arch: Option<String>,
    /// Its name.
    card: Option<String>,
    /// Variable that hides cards, with its value.
    pub(super) mask: Option<String>,
    /// The card was full by its readings.
    pub(super) card_full: bool,
    /// Names of variables and options that the text shows as set.
    set: Vec<String>,
    /// Which program it is.
    program: Option<String>,
    /// What it printed of its settings, and what its command sets.
    pub(super) settings: Settings,
}

/// Most names of variables that are kept.
const MOST_SET: usize = 64;

struct Patterns {
    /// All of them at once: most lines match none.
    any: RegexSet,
    asked: Regex,
    total: Regex,
    free: Regex,
    own: Regex,
    ram: Regex,
    container: Regex,
    wsl: Regex,
    windows: Regex,
    device: Regex,
    integrated: Regex,
    arch: Regex,
    mask: Regex,
    /// A line of a shell, a start script or a compose file.
    command: Regex,
    set: Regex,
    hip: Regex,
    cuda: Regex,
    vulkan: Regex,
}

static PATTERNS: LazyLock<Option<Patterns>> = LazyLock::new(|| patterns().ok());

/// The patterns of [`Patterns`], in its order.
const TEXTS: &[&str] = &[
    // asked
    r"(?i)\b(?:tried|trying) to allocate (?P<n>\d+(?:\.\d+)?) ?(?P<u>[KMGT])i?B\b|\balloc(?:ation)? of (?P<n2>\d+(?:\.\d+)?) ?(?P<u2>[KMGT])i?B\b.{0,20}\bfail|\ballocating (?P<n3>\d+(?:\.\d+)?) ?(?P<u3>[KMGT])i?B on device\b",
    // total
    r"(?i)\btotal capaci?ty of (?P<n>\d+(?:\.\d+)?) ?(?P<u>[KMGT])i?B\b|\bTotal VRAM:? (?P<n2>\d+(?:\.\d+)?) ?(?P<u2>[KMGT])i?B\b|; (?P<n3>\d+(?:\.\d+)?) ?(?P<u3>[KMGT])i?B total capacity\b",
    // free
    r"(?i)\btotal capaci?ty of .{1,20} of which (?P<n>\d+(?:\.\d+)?) ?(?P<u>[KMGT])i?B is free\b",
    // own
    r"(?i)\bthis process has (?P<n>\d+(?:\.\d+)?) ?(?P<u>[KMGT])i?B memory in use\b",
    // ram
    r"(?i)\btotal RAM:? (?P<n>\d+(?:\.\d+)?) ?(?P<u>[KMGT])i?B\b",
    // container
    r"(?i)\b(?:docker|podman|containerd|kubepods|apptainer|singularity|distrobox|toolbx|runpod|nvidia-container|CONSTRAINT_MEMCG|memory cgroup|lxc)\b|^root@[0-9a-f]{12}:|^[A-Za-z][\w.-]{0,60}-\d+ +\| |/\.dockerenv",
    // wsl
    r"(?i)\bWSL2?\b|/usr/lib/wsl/|\bmicrosoft-standard\b|/mnt/[c-f]/(?:Users|AI|ComfyUI|stable)|\bdxgkrnl\b|\blibrocdxg\b|/dev/dxg\b",
    // windows
    r"(?i)(?:^|[\s'\x22(=])[A-Z]:\\|\bPlatform: Windows\b|\bOS: Windows\b|\bwin32\b|\bWinError\b|\.dll\b|\bWindows fatal exception\b|\bwin_amd64\b|\bPress any key to continue\b|\b(?:0xC0000[0-9A-F]{3}|32212\d{5}|-10737\d{5})\b",
    // device
    r"(?i)^\s*(?:\[\w+ *\] .{0,60})?(?:ggml_vulkan: )?(?:device|GPU)? ?(?P<n>\d{1,2}) ?[:=] (?P<name>[A-Za-z][^,|]{2,60}?)(?: \((?:RADV|radv)[^)]*\)| \(radv\)|,|\s*\||\s*$)",
    // integrated
    r"(?i)\b(?:gfx90[29c]|gfx103[5-7]|gfx1103|gfx115[0-3]|RADV (?:RENOIR|RAPHAEL\w*|REMBRANDT|PHOENIX|CEZANNE|VANGOGH|RAVEN\d?|STRIX\w*|MENDOCINO)|Radeon(?:\(TM\))? (?:Vega \d+ )?Graphics\b|Radeon 6[18]0M|Radeon 7[468]0M|Radeon 8[89]0M)",
    // arch
    r"\b(?P<a>gfx\d{3,4}[a-z]?|sm_\d{2,3})\b",
    // mask
    r"\b(?P<m>(?:HIP|CUDA|ROCR)_VISIBLE_DEVICES\s*[=:]\s*[\x22']?[\w,-]*|GGML_VK_VISIBLE_DEVICES=[\d,]*)",
    // command
    r"^(?:\S{0,60}[$#%] |> |(?:PS )?[A-Z]:\\[^>]{0,80}> ?|\s*export |\s*set |\s*env |\s*- |\[ENV\] |[A-Z][A-Z0-9_]+=\S* )|(?i)\b(?:launching|started|starting|running)\b.{0,30}\bwith (?:the )?(?:arguments|args|options)\b ?:",
    // set
    r"(?:^|[\s'\x22])(?P<k>[A-Z][A-Z0-9]+(?:_[A-Z0-9]+)+)=|(?:^|\s)(?P<o>--[a-z][a-z0-9_-]{2,40})\b",
    // hip
    r"(?i)\+rocm|\bROCm version\b|\bAMD arch\b|\bHIP (?:error|out of memory|runtime)|\bhipError|\bROCm (?:error|devices)|\bMIOpen\b|\bmiopenStatus|\bNo HIP GPUs\b|/dev/kfd\b|\bamdgpu\b|\bAMD GPU\b|\brocBLAS\b|\bhipBLAS|\bMemory access fault by GPU\b|\bHSA_STATUS|TORCH_ROCM_",
    // cuda
    r"\+cu1[1-3]\d\b|\bNVIDIA GeForce\b|\bcuda:\d NVIDIA\b|\bCUDA (?:error|out of memory)\b|\bFound no NVIDIA driver\b|\bNo CUDA GPUs\b|\bNVML\b|\bfound \d+ CUDA devices\b",
    // vulkan
    r"(?i)\bggml_vulkan\b|\bVK_ERROR_|\bvk::|\bRADV\b|\bradv/amdgpu\b",
];

fn patterns() -> Result<Patterns, regex::Error> {
    let mut texts = TEXTS.iter();
    let mut next = || Regex::new(texts.next().copied().unwrap_or_default());
    Ok(Patterns {
        // word boundaries of Unicode would take an automaton that is slower by far
        any: RegexSetBuilder::new(TEXTS)
            .unicode(false)
            .dfa_size_limit(CACHE)
            .build()?,
        asked: next()?,
        total: next()?,
        free: next()?,
        own: next()?,
        ram: next()?,
        container: next()?,
        wsl: next()?,
        windows: next()?,
        device: next()?,
        integrated: next()?,
        arch: next()?,
        mask: next()?,
        command: next()?,
        set: next()?,
        hip: next()?,
        cuda: next()?,
        vulkan: next()?,
    })
}

/// Bytes of a number and a unit in a match.
fn bytes(found: &regex::Captures<'_>) -> Option<u64> {
    let pairs = [("n", "u"), ("n2", "u2"), ("n3", "u3")];
    let (n, u) = pairs
        .iter()
        .find_map(|(n, u)| Some((found.name(n)?, found.name(u)?)))?;
    let unit: u64 = match u.as_str() {
        "K" | "k" => 1 << 10,
        "M" | "m" => 1 << 20,
        "G" | "g" => 1 << 30,
        _ => 1 << 40,
    };
    let (whole, part) = n.as_str().split_once('.').unwrap_or((n.as_str(), "0"));
    let whole: u64 = whole.parse().ok()?;
    let part: String = part.chars().take(3).collect();
    let scale = 10_u64.checked_pow(u32::try_from(part.len()).ok()?)?;
    let part: u64 = part.parse().ok()?;
    whole.checked_mul(unit)?.checked_add(part * unit / scale)
}

/// Gibibytes, or mebibytes, for people.
fn gib(bytes: u64) -> String {
    if bytes < 1 << 30 {
        return format!("{} MiB", bytes >> 20);
    }
    let tenths = bytes / ((1 << 30) / 10);
    format!("{}.{} GiB", tenths / 10, tenths % 10)
}

impl Facts {
    /// Takes a line.
    pub(super) fn observe(&mut self, text: &str) {
        self.settings.observe(text);
        let Some(p) = PATTERNS
            .as_ref()
            .filter(|p| p.any.is_match(text.as_bytes()))
        else {
            return;
        };
        if let Some(n) = p.asked.captures(text).and_then(|c| bytes(&c)) {
            self.asked = self.asked.max(Some(n));
        }
        if let Some(n) = p.total.captures(text).and_then(|c| bytes(&c)) {
            self.card_memory = Some(n);
        }
        self.observe_shares(p, text);
        if let Some(n) = p.ram.captures(text).and_then(|c| bytes(&c)) {
            self.ram = Some(n);
        }
        self.container |= p.container.is_match(text);
        self.wsl |= p.wsl.is_match(text);
        self.windows |= p.windows.is_match(text);
        self.observe_cards(p, text);
        if let Some(m) = p.mask.captures(text) {
            self.mask.get_or_insert_with(|| m["m"].to_owned());
        }
        // a warning that advises a variable has not set it
        let command = p.command.is_match(text);
        if command {
            self.settings.observe_command(text.split_whitespace());
        }
        for found in p.set.captures_iter(text).filter(|_| command) {
            let name = found.name("k").or_else(|| found.name("o"));
            if let Some(name) = name.filter(|_| self.set.len() < MOST_SET) {
                self.set.push(name.as_str().to_owned());
            }
        }
        self.observe_backend(p, text);
    }

    /// What of the card is free, and what others hold. Some ROCm releases print numbers that are
    /// larger than any card.
    fn observe_shares(&mut self, p: &Patterns, text: &str) {
        let Some(total) = self.card_memory else {
            return;
        };
        let part = |r: &Regex| r.captures(text).and_then(|c| bytes(&c));
        let Some(free) = part(&p.free).filter(|free| *free <= total) else {
            return;
        };
        self.free = Some(free);
        if let Some(own) = part(&p.own) {
            self.others = (total - free).checked_sub(own);
        }
    }

    fn observe_cards(&mut self, p: &Patterns, text: &str) {
        if let Some(found) = p.device.captures(text) {
            let named = |n: &regex::Captures<'_>| n["n"].parse::<usize>().ok();
            let is_card = p.arch.is_match(text)
                || ["AMD", "Radeon", "NVIDIA", "GeForce", "RADV"]
                    .iter()
                    .any(|w| text.contains(w));
            if let Some(n) = named(&found).filter(|_| is_card) {
                self.cards = self.cards.max(n + 1);
                self.integrated |= p.integrated.is_match(text);
                self.card
                    .get_or_insert_with(|| found["name"].trim().to_owned());
            }
        }
        if let Some(found) = p.arch.captures(text) {
            self.arch.get_or_insert_with(|| found["a"].to_owned());
        }
    }

    fn observe_backend(&mut self, p: &Patterns, text: &str) {
        if let Some(told) = Backend::of_line(text) {
            self.backend = told;
            return;
        }
        if self.backend != Backend::Unknown {
            return;
        }
        self.backend = if p.vulkan.is_match(text) {
            Backend::Vulkan
        } else if p.hip.is_match(text) {
            Backend::Hip
        } else if p.cuda.is_match(text) {
            Backend::Cuda
        } else {
            Backend::Unknown
        };
    }

    /// A new job: what the last one asked for is past.
    pub(super) const fn forget_failure(&mut self) {
        self.asked = None;
        self.others = None;
        self.free = None;
    }

    /// With what is known beside the text, which counts for more.
    pub(super) fn with(&self, known: &Known<'_>) -> Self {
        let mut all = self.clone();
        all.phase = known.phase;
        all.card_full = known.card_full;
        all.container |= known.container;
        if known.backend != Backend::Unknown {
            all.backend = known.backend;
        }
        if let Some(bytes) = known.card_memory {
            all.card_memory = Some(bytes.0);
        }
        if let Some(arch) = known.arch {
            all.arch = Some(arch.to_owned());
        }
        all.program = known.program.map(str::to_owned);
        // what the program printed of itself counts for more than its command
        let mut settings = Settings::default();
        settings.observe_command(known.argv.iter().map(String::as_str));
        all.settings.add(settings);
        all
    }

    /// What the program computes with.
    pub const fn backend(&self) -> Backend {
        self.backend
    }

    /// Whether one request was larger than the whole card.
    pub(super) fn asks_for_more_than_the_card(&self) -> bool {
        matches!((self.asked, self.card_memory), (Some(asked), Some(total)) if asked > total)
    }

    /// Whether other processes hold a large part of the card.
    pub(super) fn is_taken_by_others(&self) -> bool {
        let enough = |others: u64, total: u64| others > total / 4 && others >= 2 << 30;
        matches!((self.others, self.card_memory), (Some(o), Some(total)) if enough(o, total))
    }

    /// Whether far more of the card was free than was asked for.
    pub(super) fn has_plenty_free(&self) -> bool {
        let plenty = |free: u64, asked: u64| free >= 2 << 30 && free / 4 >= asked;
        matches!((self.free, self.asked), (Some(free), Some(asked)) if plenty(free, asked))
    }

    /// Whether the card's memory is the half of the host's that Linux gives to an APU.
    pub(super) fn is_half_of_ram(&self) -> bool {
        let half = |total: u64, ram: u64| total.abs_diff(ram / 2) < ram / 20;
        matches!((self.card_memory, self.ram), (Some(total), Some(ram)) if half(total, ram))
    }

    /// Whether the processor's own graphics is one of several cards.
    pub(super) const fn has_integrated_beside(&self) -> bool {
        self.integrated && self.cards > 1
    }

    /// Whether it is one of these programs, or made from one of them.
    pub(super) fn is_program(&self, names: &[String]) -> bool {
        let made_from = |name: &String, program: &str| {
            let rest = program.strip_prefix(name.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        let program = self.program.as_deref();
        program.is_some_and(|p| names.iter().any(|name| made_from(name, p)))
    }

    /// Whether the text shows that a variable or an option was set.
    pub(super) fn was_set(&self, name: &str) -> bool {
        self.set.iter().any(|s| s == name)
    }

    /// The words of a fact.
    pub(super) fn place(&self, name: &str) -> Option<String> {
        match name {
            "asked" => self.asked.map(gib),
            "total" => self.card_memory.map(gib),
            "ram" => self.ram.map(gib),
            "others" => self.others.map(gib),
            "free" => self.free.map(gib),
            "arch" => self.arch.clone(),
            "mask" => self.mask.clone(),
            "card" => self.card.clone(),
            _ => {
                let (setting, _) = Setting::ALL.iter().find(|(_, place)| *place == name)?;
                self.settings.get(*setting).map(str::to_owned)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &[&str]) -> Facts {
        let mut facts = Facts::default();
        for line in lines {
            facts.observe(line);
        }
        facts
    }

    #[test]
    fn memory_that_was_asked_for_and_is_there() {
        assert!(patterns().is_ok());
        let f = of(&[
            "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 41.20 GiB. GPU 0 has a total capacity of 23.98 GiB of which 19.01 GiB is free.",
        ]);
        assert!(f.asks_for_more_than_the_card());
        assert_eq!(f.place("asked").as_deref(), Some("41.2 GiB"));
        assert_eq!(f.backend(), Backend::Hip);
        let f = of(&[
            "Total VRAM 16368 MB, total RAM 64210 MB",
            "CUDA out of memory. Tried to allocate 20.00 MiB",
        ]);
        assert!(!f.asks_for_more_than_the_card());
        assert_eq!(f.ram, Some(64210 << 20));
    }

    #[test]
    fn memory_of_others_and_of_an_apu() {
        let line = |own: &str| {
            format!(
                "HIP out of memory. Tried to allocate 30.00 MiB. GPU 0 has a total capacity of 15.98 GiB of which 20.00 MiB is free. Including non-PyTorch memory, this process has {own} GiB memory in use."
            )
        };
        let f = of(&[&line("1.50"), "torch.OutOfMemoryError: HIP out of memory."]);
        assert!(f.is_taken_by_others());
        assert_eq!(f.place("others").as_deref(), Some("14.4 GiB"));
        assert!(!of(&[&line("15.10")]).is_taken_by_others());
        assert!(!of(&[&line("17179869184.00")]).is_taken_by_others());
        let apu = "Total VRAM 512 MB, total RAM 128009 MB";
        let asks = "GPU 0 has a total capacity of 62.47 GiB of which 1.00 GiB is free";
        assert!(of(&[apu, asks]).is_half_of_ram());
        assert!(!of(&[apu]).is_half_of_ram());
        assert!(!of(&[&line("1.50")]).has_plenty_free());
        let not_full = "HIP out of memory. Tried to allocate 64.00 MiB. GPU 0 has a total capacty of 15.98 GiB of which 9.00 GiB is free.";
        assert!(of(&[not_full]).has_plenty_free());
        assert_eq!(of(&[not_full]).place("asked").as_deref(), Some("64 MiB"));
        let nonsense = not_full.replace("9.00", "17179869183.96");
        assert!(!of(&[&nonsense]).has_plenty_free());
    }

    #[test]
    fn cards_and_the_processors_own() {
        let f = of(&[
            "ggml_cuda_init: found 2 ROCm devices (Total VRAM: 55300 MiB):",
            "  Device 0: AMD Radeon RX 7900 XT, gfx1100 (0x1100), VMM: no",
            "  Device 1: AMD Radeon Graphics, gfx1036 (0x1036), VMM: no",
        ]);
        assert_eq!((f.cards, f.has_integrated_beside()), (2, true));
        assert_eq!(f.arch.as_deref(), Some("gfx1100"));
        let f = of(&[
            "ggml_vulkan: 0 = AMD Radeon RX 6800 (RADV NAVI21) (radv) | uma: 0",
            "ggml_vulkan: Found 1 Vulkan devices:",
        ]);
        assert!(!f.has_integrated_beside());
        assert_eq!(f.backend(), Backend::Vulkan);
        let f = of(&["  1 = AMD Radeon Graphics (RADV RENOIR) | uma: 1"]);
        assert!(f.has_integrated_beside());
    }

    #[test]
    fn containers_wsl_and_masks() {
        assert!(of(&["wan-1 exited with code 1", "wan-1  | x"]).container);
        assert!(of(&["WSL environment detected."]).wsl);
        assert!(of(&["  File \"C:\\AI\\main.py\", line 3"]).windows);
        let f = of(&["$ HIP_VISIBLE_DEVICES=0 python3 t2v.py --device cuda:1"]);
        assert_eq!(f.place("mask").as_deref(), Some("HIP_VISIBLE_DEVICES=0"));
        assert!(f.was_set("--device") && f.was_set("HIP_VISIBLE_DEVICES"));
        assert!(
            of(&["[ENV] TORCH_BLAS_PREFER_HIPBLASLT=0"]).was_set("TORCH_BLAS_PREFER_HIPBLASLT")
        );
        let f = of(&["Launching Web UI with arguments: --medvram --no-half-vae"]);
        assert_eq!(f.settings.get(Setting::VaePrecision), Some("fp32"));
        let f = of(&["C:\\ai>.\\python_embeded\\python.exe main.py --cpu-vae"]);
        assert_eq!(f.settings.get(Setting::VaeDevice), Some("cpu"));
        let advice = of(&["if you have memory issues try using: --cpu-vae"]);
        assert_eq!(advice.settings.get(Setting::VaeDevice), None);
        let f = of(&["got prompt", "Requested to load WAN21", " 1%|# | 1/60"]);
        assert_eq!(f, Facts::default());
    }
}
