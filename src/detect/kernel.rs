//! What a line of the kernel log says about a card or a killed process.
//!
//! The forms are those of amdgpu and amdkfd from kernel 5.x to 7.x (each of which
//! words its prefix anew), of NVIDIA's driver, and of the kernel's OOM killer. Only the
//! line that states a fact counts: what follows it (register dumps, clean-up that fails
//! as well) and what merely looks alike (ring set-up, a reset method, advice) does not.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::model::{FaultKind, GpuId, KernelFault};

/// Longest part of a line that is looked at, in bytes.
const LONGEST: usize = 2048;

/// Time, host and `kernel:` of a log that is not the raw ring buffer.
const STAMP: &str = r"^(?:[A-Z][a-z]{2} [ \d]\d [\d:]{8} \S+ kernel: )?(?:\[(?: *\d+\.\d+|[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d [\d:]{8} \d{4})\] )?";

/// Who speaks, for lines of AMD's drivers: `amdgpu 0000:0c:00.0: amdgpu: `,
/// `[drm:amdgpu_job_timedout [amdgpu]] *ERROR* `, `amdgpu: `, and mixtures of them.
const AMD: &str = r"^(?:amdgpu|kfd|\[drm|\[TTM\])";

/// Before a message: the end of a prefix.
const START: &str = r"(?:^|[:\]*] )\s*";

/// Messages of AMD's drivers, behind [`START`], and what they mean. Where `part` is not
/// in the message, the third field names the unit.
const AMD_MESSAGES: &[(&str, FaultKind, Option<&str>)] = &[
    (
        r"ring (?P<part>[\w.]+) timeout\b",
        FaultKind::RingTimeout,
        None,
    ),
    (
        r"IP block:(?P<part>\w+) is hung",
        FaultKind::EngineHang,
        None,
    ),
    (
        r"(?:MES(?:\(\d\))? failed to (?:respond|response)\b|MES might be in unrecoverable state|MES ring buffer is full)",
        FaultKind::EngineHang,
        Some("MES"),
    ),
    (
        r"(?:qcm fence wait loop timeout expired|The cp might be in an unrecoverable state)",
        FaultKind::EngineHang,
        Some("CP"),
    ),
    (
        r"(?:SMU: )?I'm not done with your previous command",
        FaultKind::EngineHang,
        Some("SMU"),
    ),
    (
        r"Starting (?P<part>[\w.]+) ring reset",
        FaultKind::ResetBegun,
        None,
    ),
    (r"GPU reset begin\b", FaultKind::ResetBegun, None),
    (
        r"Ring (?P<part>[\w.]+) reset (?:succeeded|success)\b",
        FaultKind::ResetDone,
        None,
    ),
    // `GPU reset succeeded, trying to resume` is half way: the other half may fail
    (
        r"GPU reset(?:\(\d+\))? succeeded(?:!|\.|$)",
        FaultKind::ResetDone,
        None,
    ),
    (
        r"Ring (?P<part>[\w.]+) reset failed\b",
        FaultKind::ResetFailed,
        None,
    ),
    (
        r"(?:GPU reset(?:\(\d+\))? failed|GPU reset end with ret = -\d|GPU Recovery Failed|ASIC reset failed with error|device wedged, needs recovery)",
        FaultKind::ResetFailed,
        None,
    ),
    (r"VRAM is lost\b", FaultKind::VramLost, None),
    (
        r"\[(?P<part>\w+)\] (?:VMC |no-retry |retry )?page fault \(",
        FaultKind::PageFault,
        None,
    ),
    (r"GPU fault detected: \d", FaultKind::PageFault, None),
    (
        r"(?:Failed to evict (?:queue \d|process queues)|Failed to suspend process\b|Failed to quiesce KFD|Buffer eviction failed|evicting device resources failed)",
        FaultKind::EvictFailed,
        None,
    ),
    (
        r"Not enough memory for command submission",
        FaultKind::NoMemory,
        None,
    ),
    (
        r"(?:ERROR: )?GPU over temperature range ?\(\w+ CTF\) detected",
        FaultKind::OverTemperature,
        None,
    ),
    (
        r"(?:socket: \d+,? )?(?:die: \d+,? )?[1-9]\d* (?:new )?uncorrectable hardware errors? detected in (?P<part>\w+)",
        FaultKind::EccError,
        None,
    ),
    (r"device lost from bus\b", FaultKind::BusLost, None),
];

struct Forms {
    stamp: Regex,
    amd: Regex,
    messages: Vec<(Regex, FaultKind, Option<&'static str>)>,
    address: Regex,
    amd_process: Regex,
    xid: Regex,
    fallen: Regex,
    oom: Regex,
}

static FORMS: LazyLock<Option<Forms>> = LazyLock::new(|| Forms::new().ok());

impl Forms {
    fn new() -> Result<Self, regex::Error> {
        let messages = AMD_MESSAGES.iter().map(|(pattern, kind, unit)| {
            let pattern = format!("{START}{pattern}");
            Ok((Regex::new(&pattern)?, *kind, *unit))
        });
        Ok(Self {
            stamp: Regex::new(STAMP)?,
            amd: Regex::new(AMD)?,
            messages: messages.collect::<Result<_, regex::Error>>()?,
            address: Regex::new(
                r"\b([0-9a-fA-F]{4,8}):([0-9a-fA-F]{2}):([01][0-9a-fA-F])(?:\.([0-7]))?\b",
            )?,
            amd_process: Regex::new(r"(?i)\bprocess (?:(?P<name>\S.{0,30}?) +)?pid (?P<pid>\d+)")?,
            xid: Regex::new(
                r"^NVRM: Xid \((?:PCI:)?(?P<pci>[0-9a-fA-F:.?]+)\): (?P<code>\d+)\b(?:, pid='?(?P<pid>\d+)'?)?(?:, name='?(?P<name>[^,']{1,31}))?",
            )?,
            fallen: Regex::new(
                r"^NVRM: (?:GPU [0-9a-fA-F:.]+: GPU has fallen off the bus|.{0,120}\bfallen off the bus and is not responding)",
            )?,
            // before 4.20 the OOM killer wrote `Killed process` on a line of its own
            oom: Regex::new(
                r"^(?:(?:Memory cgroup o|O)ut of memory(?: \(oom_kill_allocating_task\))?: )?Killed process (?P<pid>\d+)(?:,? UID \d+,?)? \((?P<name>[^)]{0,31})\)|^oom-kill:.*\btask=(?P<name2>[^,]{0,31}),pid=(?P<pid2>\d+)\b",
            )?,
        })
    }

    fn address(&self, text: &str) -> Option<GpuId> {
        let c = self.address.captures(text)?;
        let domain = u32::from_str_radix(&c[1], 16).ok()?;
        let function = c.get(4).map_or("0", |m| m.as_str());
        let (bus, device) = (c[2].to_lowercase(), c[3].to_lowercase());
        Some(GpuId(format!("{domain:04x}:{bus}:{device}.{function}")))
    }

    fn message<'t>(&self, line: &'t str) -> &'t str {
        let mut end = line.len().min(LONGEST);
        while !line.is_char_boundary(end) {
            end -= 1;
        }
        let line = &line[..end];
        let stamp = self.stamp.find(line).map_or(0, |m| m.end());
        line[stamp..].trim()
    }
}

/// A named group, if it took part and is not empty.
fn group(caps: &Captures<'_>, name: &str) -> Option<String> {
    let text = caps.name(name)?.as_str().trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// A process id; the kernel writes 0 where it knows none.
fn pid(caps: &Captures<'_>, name: &str) -> Option<u32> {
    caps.name(name)?.as_str().parse().ok().filter(|p| *p > 0)
}

/// What a line of the kernel log says, if it states a fault or the end of one.
pub fn read(line: &str) -> Option<KernelFault> {
    let forms = FORMS.as_ref()?;
    let text = forms.message(line);
    if text.starts_with("NVRM: ") {
        return nvidia(forms, text);
    }
    if forms.amd.is_match(text) {
        return amd(forms, text);
    }
    let caps = forms.oom.captures(text)?;
    let mut fault = KernelFault::new(FaultKind::OomKill);
    fault.pid = pid(&caps, "pid").or_else(|| pid(&caps, "pid2"));
    fault.process = group(&caps, "name").or_else(|| group(&caps, "name2"));
    fault.pid.is_some().then_some(fault)
}

fn amd(forms: &Forms, text: &str) -> Option<KernelFault> {
    let mut found = forms.messages.iter();
    let (caps, kind, unit) =
        found.find_map(|(form, kind, unit)| Some((form.captures(text)?, *kind, *unit)))?;
    let mut fault = KernelFault::new(kind);
    fault.gpu = forms.address(text);
    fault.part = group(&caps, "part").or_else(|| unit.map(str::to_owned));
    if let Some(caps) = forms.amd_process.captures(text) {
        fault.pid = pid(&caps, "pid");
        fault.process = fault.pid.and_then(|_| group(&caps, "name"));
    }
    Some(fault)
}

fn nvidia(forms: &Forms, text: &str) -> Option<KernelFault> {
    if let Some(caps) = forms.xid.captures(text) {
        let mut fault = KernelFault::new(FaultKind::Xid);
        fault.code = Some(caps.name("code")?.as_str().parse().ok()?);
        fault.gpu = forms.address(caps.name("pci")?.as_str());
        fault.pid = pid(&caps, "pid");
        fault.process = fault.pid.and_then(|_| group(&caps, "name"));
        return Some(fault);
    }
    forms.fallen.is_match(text).then(|| {
        let mut fault = KernelFault::new(FaultKind::BusLost);
        fault.gpu = forms.address(text);
        fault
    })
}

/// The process that a line names as the cause of the fault on the line before it, as
/// newer amdgpu does: the card, the pid and the name.
pub fn culprit(line: &str) -> Option<(Option<GpuId>, u32, Option<String>)> {
    let forms = FORMS.as_ref()?;
    let text = forms.message(line);
    if !forms.amd.is_match(text) || read(line).is_some() {
        return None;
    }
    let caps = forms.amd_process.captures(text)?;
    Some((
        forms.address(text),
        pid(&caps, "pid")?,
        group(&caps, "name"),
    ))
}

#[cfg(test)]
#[path = "kernel_tests.rs"]
mod tests;
