//! The patterns by which a line tells facts of the machine.

use std::sync::LazyLock;

use regex::Regex;

use crate::causes::prefilter;

/// See the module.
pub(super) struct Patterns {
    pub(super) asked: Regex,
    pub(super) total: Regex,
    pub(super) free: Regex,
    pub(super) own: Regex,
    pub(super) ram: Regex,
    pub(super) container: Regex,
    pub(super) wsl: Regex,
    pub(super) windows: Regex,
    pub(super) nix: Regex,
    pub(super) nix_store: Regex,
    /// Files and releases of ggml's programs that are made for cards.
    pub(super) card_build: Regex,
    pub(super) device: Regex,
    pub(super) integrated: Regex,
    pub(super) arch: Regex,
    pub(super) mask: Regex,
    /// What `HSA_OVERRIDE_GFX_VERSION` is set to.
    pub(super) taken_for: Regex,
    /// Release of ROCm.
    pub(super) rocm: Regex,
    /// A line of a shell, a start script or a compose file.
    pub(super) command: Regex,
    pub(super) set: Regex,
    pub(super) hip: Regex,
    pub(super) cuda: Regex,
    pub(super) vulkan: Regex,
}

/// All of them at once: most lines match none.
pub(super) static ANY: LazyLock<Option<prefilter::Patterns>> =
    LazyLock::new(|| prefilter::Patterns::new(TEXTS.iter().copied()).ok());

pub(super) static PATTERNS: LazyLock<Option<Patterns>> = LazyLock::new(|| patterns().ok());

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
    r"(?i)\b(?:docker|podman|containerd|kubepods|apptainer|singularity|distrobox|toolbx|runpod|nvidia-container|CONSTRAINT_MEMCG|memory cgroup|lxc)\b|^root@[0-9a-f]{12}:|^\S{1,40}@toolbox:|^\[⬢|^[A-Za-z][\w.-]{0,60}-\d+ +\| |/\.dockerenv",
    // wsl
    r"(?i)\bWSL2?\b|/usr/lib/wsl/|\bmicrosoft-standard\b|/mnt/[c-f]/(?:Users|AI|ComfyUI|stable)|\bdxgkrnl\b|\blibrocdxg\b|/dev/dxg\b",
    // windows
    r"(?i)(?:^|[\s'\x22(=])[A-Z]:\\|\bPlatform: Windows\b|\bOS: Windows\b|\bwin32\b|\bWinError\b|\.dll\b|\bWindows fatal exception\b|\bwin_amd64\b|\bPress any key to continue\b|\b(?:0xC0000[0-9A-F]{3}|32212\d{5}|-10737\d{5})\b",
    // nix
    r"/nix/store/|@nixos\b|\bNixOS\b",
    // nix_store
    r"/nix/store/\S+site-packages\b|\bnix run \S",
    // card_build
    r"(?i)[-_.](?:rocm|vulkan|cuda\d*)[-_](?:[\w.]+-)?x64\b|\bggml[-_](?:hip|vulkan|cuda)\.(?:dll|so)\b|\bbackend: (?:rocm|vulkan|cuda)\b|\b(?:rocm|vulkan)[- ](?:\d+\.\d+|stable|preview|nightly)\b",
    // device
    r"(?i)^\s*(?:\[\w+ *\] .{0,60})?(?:ggml_vulkan: )?(?:device|GPU)? ?(?P<n>\d{1,2}) ?[:=] (?P<name>[A-Za-z][^,|]{2,60}?)(?: \((?:RADV|radv)[^)]*\)| \(radv\)|,|\s*\||\s*$)",
    // integrated
    r"(?i)\b(?:gfx90[29c]|gfx103[5-7]|gfx1103|gfx115[0-3]|RADV (?:RENOIR|RAPHAEL\w*|REMBRANDT|PHOENIX|CEZANNE|VANGOGH|RAVEN\d?|STRIX\w*|MENDOCINO)|Radeon(?:\(TM\))? (?:Vega \d+ )?Graphics\b|Radeon 6[18]0M|Radeon 7[468]0M|Radeon 8[89]0M)",
    // arch
    r"(?:\b|_)(?P<a>gfx\d{3,4}[a-z]?|sm_\d{2,3})\b",
    // mask
    r"\b(?P<m>(?:HIP|CUDA|ROCR)_VISIBLE_DEVICES\s*[=:]\s*[\x22']?[\w,-]*|GGML_VK_VISIBLE_DEVICES=[\d,]*)",
    // taken_for
    r"\bHSA_OVERRIDE_GFX_VERSION\s*[=:]\s*[\x22']?(?P<v>\d{1,2}\.\d\.\d{1,2})\b",
    // rocm
    r"\bROCm version: \((?P<a>\d+), (?P<b>\d+)\)|\d\+rocm(?P<c>\d+)\.(?P<d>\d+)",
    // command
    r"^(?:\([\w .-]{1,40}\) ?)?(?:\S{0,60}(?:[$#%]|❯) |> |❯ |(?:PS )?[A-Z]:\\[^>]{0,80}> ?|\s*export |\s*set |\s*env |\s*- |\[ENV\] |[A-Z][A-Z0-9_]+=\S* )|(?i)\b(?:launching|started|starting|running)\b.{0,30}\bwith (?:the )?(?:arguments|args|options)\b ?:",
    // set
    r"(?:^|[\s'\x22])(?P<k>[A-Z][A-Z0-9]+(?:_[A-Z0-9]+)+)=|(?:^|\s)(?P<o>--[a-z][a-z0-9_-]{2,40})\b",
    // hip
    r"(?i)\+rocm|\bROCm version\b|\bAMD arch\b|\bHIP (?:error|out of memory|runtime)|\bhipError|\bROCm (?:error|devices)|\bMIOpen\b|\bmiopenStatus|\bNo HIP GPUs\b|/dev/kfd\b|\bamdgpu\b|\bAMD GPU\b|\brocBLAS\b|\bhipBLAS|\bMemory access fault by GPU\b|\bHSA_STATUS|TORCH_ROCM_",
    // cuda
    r"\+cu1[1-3]\d\b|\bNVIDIA GeForce\b|\bcuda:\d NVIDIA\b|\bCUDA (?:error|out of memory)\b|\bFound no NVIDIA driver\b|\bNo CUDA GPUs\b|\bNVML\b|\bfound \d+ CUDA devices\b",
    // vulkan
    r"(?i)\bggml_vulkan\b|\bVK_ERROR_|\bvk::|\bRADV\b|\bradv/amdgpu\b",
];

pub(super) fn patterns() -> Result<Patterns, regex::Error> {
    let mut texts = TEXTS.iter();
    let mut next = || Regex::new(texts.next().copied().unwrap_or_default());
    Ok(Patterns {
        asked: next()?,
        total: next()?,
        free: next()?,
        own: next()?,
        ram: next()?,
        container: next()?,
        wsl: next()?,
        windows: next()?,
        nix: next()?,
        nix_store: next()?,
        card_build: next()?,
        device: next()?,
        integrated: next()?,
        arch: next()?,
        mask: next()?,
        taken_for: next()?,
        rocm: next()?,
        command: next()?,
        set: next()?,
        hip: next()?,
        cuda: next()?,
        vulkan: next()?,
    })
}
