//! What the kernel said of the supervised card and of our processes.
//!
//! A reset concerns whoever uses the card; a page fault only the process that caused it.

use std::collections::BTreeSet;
use std::sync::LazyLock;
use std::time::Duration;

use regex::Regex;

use crate::model::{Cite, FaultKind, Finding, GpuId, GpuSample, KernelFault, Mono, VerdictId};

use super::errors::Entry;
use super::facts::Seen;
use super::kernel;
use super::signature::{Rank, Reported};

/// The line that names the cause of a fault follows at once.
const NEXT: Duration = Duration::from_secs(2);
/// A process that ends by SIGKILL this shortly after the kernel killed one for want of
/// memory, whose number is not known to be ours.
const WITH: Duration = Duration::from_secs(3);

/// The driver says that the card came back; whether everything else does too is told
/// by a line of its own, unless it does not.
static COMES_BACK: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"\bGPU reset succeeded, trying to resume\b|\btimeout, but soft recovered\b").ok()
});

/// Whether a line of the kernel says that the card comes back after a reset.
pub fn says_that_the_card_comes_back(text: &str) -> bool {
    COMES_BACK.as_ref().is_some_and(|r| r.is_match(text))
}

/// What the supervised card is, and which others there are.
#[derive(Debug, Clone, Default)]
pub(super) struct Cards {
    ours: Option<GpuId>,
    others: BTreeSet<GpuId>,
    /// Bytes: (VRAM, GTT, GTT in use) of an APU.
    apu: Option<(u64, u64, u64)>,
}

impl Cards {
    pub(super) fn observe(&mut self, cards: &[GpuSample], ours: Option<&GpuId>) {
        self.ours = ours.cloned();
        for card in cards {
            if Some(&card.id) != ours {
                self.others.insert(card.id.clone());
                continue;
            }
            let bytes = |m: &crate::model::Metric<crate::model::Bytes>| m.last().map(|b| b.0);
            if let (true, Some(gtt)) = (card.apu, bytes(&card.gtt_total)) {
                let vram = bytes(&card.vram_total).unwrap_or_default();
                self.apu = Some((vram, gtt, bytes(&card.gtt_used).unwrap_or_default()));
            }
        }
    }

    /// Whether a fault is of a card that we know not to be ours. A number that no known
    /// card has may be ours in another machine's writing.
    fn is_of_another(&self, fault: &KernelFault) -> bool {
        let named = fault.gpu.as_ref();
        named.is_some_and(|g| Some(g) != self.ours.as_ref() && self.others.contains(g))
    }

    /// Whether device memory that ran out here is the APU's share of the host's.
    pub(super) fn runs_out_of_gtt(&self, text: &str) -> bool {
        let Some((vram, gtt, used)) = self.apu else {
            return false;
        };
        match capacity(text) {
            Some(cap) => {
                cap.abs_diff(gtt)
                    .min(cap.abs_diff(gtt.saturating_add(vram)))
                    < cap.abs_diff(vram)
            }
            None => used >= gtt / 10 * 9 || gtt > vram,
        }
    }
}

/// PyTorch names the pool that ran out: `a total capacity of 62.47 GiB`.
fn capacity(text: &str) -> Option<u64> {
    static CAPACITY: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"total capacity of (\d{1,6})(?:\.(\d{1,2}))? ([MG])iB").ok());
    let c = CAPACITY.as_ref()?.captures(text)?;
    let whole: u64 = c[1].parse().ok()?;
    let hundredths: u64 = c
        .get(2)
        .map_or(Some(0), |m| format!("{:0<2}", m.as_str()).parse().ok())?;
    let unit: u64 = if &c[3] == "G" { 1 << 30 } else { 1 << 20 };
    Some(whole * unit + hundredths * unit / 100)
}

/// See the module.
#[derive(Debug, Clone, Default)]
pub(super) struct Trouble {
    /// Faults of the card, page faults of ours and refused submissions.
    entries: Vec<Entry>,
    /// A page fault whose process is not known yet.
    unowned: Option<Mono>,
    /// The driver's last word about a reset: the card came back, or not.
    pub(super) recovered: Option<bool>,
    /// The content of the card was lost or the card is: nothing can go on.
    pub(super) fatal: Option<Mono>,
    /// The kernel ended a process of ours for want of memory.
    pub(super) oom: Option<Cite>,
    /// One that it ended and that may be ours.
    maybe_oom: Option<Cite>,
    /// A reset that the job survived.
    remark: Option<Seen>,
    /// A page fault that a process of ours caused. A job that goes on after it has not
    /// survived it: it may go on several times slower.
    page_fault: Option<Seen>,
}

impl Trouble {
    /// A page fault of the card that a process of ours caused.
    pub(super) fn page_fault(&self) -> Option<&Seen> {
        self.page_fault.as_ref()
    }

    pub(super) fn line(&mut self, cite: &Cite, cards: &Cards, pids: &BTreeSet<u32>) {
        let (now, text) = (cite.at, cite.text.as_str());
        if let Some(fault) = kernel::read(text) {
            if !cards.is_of_another(&fault) {
                self.fault(&fault, cite, cards, pids);
            }
        } else if let Some((_, pid, _)) = kernel::culprit(text) {
            self.culprit(now, pids.contains(&pid));
        }
        if says_that_the_card_comes_back(text) {
            self.recovered = Some(true);
        }
    }

    fn fault(&mut self, fault: &KernelFault, cite: &Cite, cards: &Cards, pids: &BTreeSet<u32>) {
        let ours = fault.pid.map(|p| pids.contains(&p));
        let (verdict, rank) = match fault.kind {
            FaultKind::OomKill => return self.oom_kill(fault, cite, ours),
            FaultKind::ResetDone => {
                self.recovered = Some(true);
                // its end is good news: what it was for is the evidence
                let reset = |e: &&mut Entry| e.seen.verdict == VerdictId::GpuReset;
                if let Some(known) = self.entries.iter_mut().find(reset) {
                    known.rank = Rank::Kernel;
                    return;
                }
                (VerdictId::GpuReset, Rank::Kernel)
            }
            FaultKind::ResetFailed => {
                self.recovered = Some(false);
                (VerdictId::GpuReset, Rank::Kernel)
            }
            FaultKind::BusLost => {
                self.recovered = Some(false);
                self.fatal.get_or_insert(cite.at);
                (VerdictId::GpuReset, Rank::Kernel)
            }
            FaultKind::ResetBegun => (VerdictId::GpuReset, Rank::Kernel),
            FaultKind::VramLost => {
                self.fatal.get_or_insert(cite.at);
                (VerdictId::GpuReset, Rank::Kernel)
            }
            FaultKind::RingTimeout | FaultKind::OverTemperature => {
                (VerdictId::GpuReset, Rank::Specific)
            }
            FaultKind::EngineHang | FaultKind::EccError | FaultKind::EvictFailed => {
                (VerdictId::GpuReset, Rank::General)
            }
            FaultKind::PageFault => match ours {
                Some(true) => (VerdictId::MemoryFault, Rank::Kernel),
                Some(false) => return,
                None => {
                    self.unowned = Some(cite.at);
                    (VerdictId::MemoryFault, Rank::General)
                }
            },
            FaultKind::NoMemory if cards.apu.is_some() => (VerdictId::GttExhausted, Rank::Specific),
            FaultKind::NoMemory => (VerdictId::GpuOom, Rank::General),
            FaultKind::Xid => match xid(fault.code.unwrap_or_default(), ours) {
                Some(meaning) => meaning,
                None => return,
            },
        };
        if fault.kind == FaultKind::Xid && rank == Rank::Kernel && verdict == VerdictId::GpuReset {
            self.fatal.get_or_insert(cite.at);
            self.recovered.get_or_insert(false);
        }
        self.note(Reported { verdict, rank }, cite);
    }

    fn note(&mut self, reported: Reported, cite: &Cite) {
        let known = self
            .entries
            .iter_mut()
            .find(|e| e.seen.verdict == reported.verdict);
        match known {
            Some(entry) => entry.again(reported.rank, cite.clone()),
            None => self.entries.push(Entry::new(reported, cite.clone())),
        }
    }

    /// The process behind the page fault just told: a foreign one's is no matter of ours.
    fn culprit(&mut self, now: Mono, ours: bool) {
        let Some(at) = self.unowned.take().filter(|at| now.since(*at) <= NEXT) else {
            return;
        };
        let is_fault = |e: &Entry| e.seen.verdict == VerdictId::MemoryFault;
        if ours {
            let fault = self.entries.iter_mut().find(|e| is_fault(e));
            if let Some(entry) = fault {
                entry.rank = Rank::Kernel;
            }
        } else {
            // an older one that was ours stays
            self.entries
                .retain(|e| !is_fault(e) || e.rank == Rank::Kernel || e.seen.first.at < at);
        }
    }

    fn oom_kill(&mut self, fault: &KernelFault, cite: &Cite, ours: Option<bool>) {
        let python = fault
            .process
            .as_deref()
            .is_some_and(|p| p.starts_with("python") || p.starts_with("pt_main"));
        if ours == Some(true) {
            self.oom = Some(cite.clone());
        } else if python {
            self.maybe_oom = Some(cite.clone());
        }
    }

    /// The line that tells of our own end for want of memory, where we were ended so.
    pub(super) fn oom(&self, now: Mono, by_kill: bool) -> Option<&Cite> {
        let near = |c: &&Cite| by_kill && now.since(c.at) <= WITH;
        self.oom
            .as_ref()
            .or_else(|| self.maybe_oom.as_ref().filter(near))
    }

    pub(super) fn causes(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    /// The job went on: what the kernel told before that is no verdict. What it told just
    /// now stays, for a step that ended before may be read after it.
    pub(super) fn survived(&mut self, now: Mono) {
        let gone = |e: &Entry| now.since(e.seen.last.at) >= NEXT;
        let reset = |e: &&Entry| e.seen.verdict == VerdictId::GpuReset && gone(e);
        if let Some(entry) = self.entries.iter().find(reset) {
            self.remark = Some(entry.seen.clone());
        }
        let fault = |e: &&Entry| e.seen.verdict == VerdictId::MemoryFault && e.rank == Rank::Kernel;
        if let Some(entry) = self.entries.iter().find(fault) {
            self.page_fault = Some(entry.seen.clone());
        }
        self.entries.retain(|e| !gone(e));
        self.fatal = self.fatal.filter(|at| now.since(*at) < NEXT);
    }

    /// What is worth a word though the job goes on.
    pub(super) fn remarks(&self) -> Vec<Finding> {
        let seen = self.remark.iter();
        seen.map(|s| Finding {
            text: format!("the job goes on after \"{}\"", s.last.text),
            ..s.finding()
        })
        .collect()
    }

    /// When the kernel last spoke of a reset.
    pub(super) fn reset(&self) -> Option<Mono> {
        let reset = |e: &&Entry| e.seen.verdict == VerdictId::GpuReset && e.rank == Rank::Kernel;
        self.entries.iter().find(reset).map(|e| e.seen.last.at)
    }
}

/// What an Xid means for a process: NVIDIA's catalogue tells those of an application
/// from those of the card. Absent: nothing, or it is another process's.
const fn xid(code: u32, ours: Option<bool>) -> Option<(VerdictId, Rank)> {
    match code {
        // clean-up after another error, memory rows that were replaced, a notice
        43 | 45 | 63 | 92 | 94 | 154 => match ours {
            Some(true) => Some((VerdictId::GpuReset, Rank::Aftermath)),
            _ => None,
        },
        13 | 31 | 69 => match ours {
            Some(true) => Some((VerdictId::MemoryFault, Rank::Kernel)),
            Some(false) => None,
            None => Some((VerdictId::MemoryFault, Rank::General)),
        },
        8 | 48 | 61 | 62 | 64 | 74 | 79 | 95 | 109 | 110 | 119 | 120 => {
            Some((VerdictId::GpuReset, Rank::Kernel))
        }
        _ => match ours {
            Some(false) => None,
            _ => Some((VerdictId::GpuReset, Rank::Specific)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::CiteKind;

    fn told(lines: &[&str]) -> Trouble {
        let mut t = Trouble::default();
        let id = |s: &str| GpuId(s.to_owned());
        let cards = Cards {
            ours: Some(id("0000:0c:00.0")),
            others: BTreeSet::from([id("0000:03:00.0")]),
            apu: None,
        };
        let pids = BTreeSet::from([4242]);
        for (n, text) in (1..).zip(lines) {
            let cite = Cite {
                kind: CiteKind::Kernel,
                ..Cite::reading(n, Mono::from_secs(1), (*text).to_owned())
            };
            t.line(&cite, &cards, &pids);
        }
        t
    }

    fn top(lines: &[&str]) -> Option<(VerdictId, Rank)> {
        let t = told(lines);
        super::super::errors::foremost(t.causes()).map(|e| (e.seen.verdict, e.rank))
    }

    #[test]
    fn page_faults_count_for_whoever_caused_them() {
        let fault = "amdgpu 0000:0c:00.0: amdgpu: [gfxhub] page fault (src_id:0 ring:24 vmid:8 pasid:32773)";
        let cause = |pid: u32| {
            format!(
                "amdgpu 0000:0c:00.0: amdgpu:  Process python pid {pid} thread python pid {pid}"
            )
        };
        let general = Some((VerdictId::MemoryFault, Rank::General));
        assert_eq!(top(&[fault]), general);
        assert_eq!(
            top(&[fault, &cause(4242)]),
            Some((VerdictId::MemoryFault, Rank::Kernel))
        );
        assert_eq!(top(&[fault, &cause(99)]), None);
        let named = |pid: u32| {
            format!(
                "amdgpu 0000:0c:00.0: amdgpu: [mmhub0] no-retry page fault (src_id:0 ring:24 vmid:8 pasid:32768, for process python pid {pid} thread python pid {pid})"
            )
        };
        assert_eq!(
            top(&[&named(4242)]),
            Some((VerdictId::MemoryFault, Rank::Kernel))
        );
        assert_eq!(top(&[&named(99)]), None);
        assert_eq!(top(&[&fault.replace("0c:00", "03:00")]), None);
        // a card by a number that nobody has
        assert_eq!(top(&[&fault.replace("0c:00", "0d:00")]), general);
    }

    #[test]
    fn resets_count_for_everyone_on_the_card() {
        let timeout = "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx_0.0.0 timeout, signaled seq=1, emitted seq=2";
        let by = "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* Process information: process compositor pid 2210 thread compositor:cs0 pid 2262";
        let begin = "amdgpu 0000:0c:00.0: amdgpu: GPU reset begin!";
        let half = "amdgpu 0000:0c:00.0: amdgpu: GPU reset succeeded, trying to resume";
        let done = "amdgpu 0000:0c:00.0: amdgpu: GPU reset(2) succeeded!";
        let failed = "amdgpu 0000:0c:00.0: amdgpu: GPU reset(2) failed";
        assert_eq!(
            top(&[timeout, by]),
            Some((VerdictId::GpuReset, Rank::Specific))
        );
        let all = Some((VerdictId::GpuReset, Rank::Kernel));
        assert_eq!(top(&[timeout, by, begin]), all);
        for (lines, recovered) in [
            (&[begin][..], None),
            (&[begin, half], Some(true)),
            (&[begin, done], Some(true)),
            (&[begin, half, failed], Some(false)),
            (
                &[
                    "NVRM: Xid (PCI:0000:0c:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
                ],
                Some(false),
            ),
        ] {
            assert_eq!(told(lines).recovered, recovered, "{lines:?}");
        }
    }

    #[test]
    fn an_xid_means_what_its_number_says() {
        let line = |code: u32, pid: &str| {
            format!("NVRM: Xid (PCI:0000:0c:00): {code}, pid={pid}, name=python, Ch 00000008")
        };
        for (code, pid, want) in [
            (31, "4242", Some((VerdictId::MemoryFault, Rank::Kernel))),
            (31, "99", None),
            (13, "4242", Some((VerdictId::MemoryFault, Rank::Kernel))),
            (79, "99", Some((VerdictId::GpuReset, Rank::Kernel))),
            (119, "99", Some((VerdictId::GpuReset, Rank::Kernel))),
            (45, "99", None),
            (63, "99", None),
        ] {
            assert_eq!(top(&[&line(code, pid)]), want, "{code} by {pid}");
        }
    }

    #[test]
    fn an_apu_runs_out_of_the_hosts_memory_unless_the_carve_out_is_named() {
        let gib = 1u64 << 30;
        let card = |vram: u64, gtt: u64, used: u64| Cards {
            apu: Some((vram * gib, gtt * gib, used * gib)),
            ..Cards::default()
        };
        let said = |cap: &str| {
            format!(
                "HIP out of memory. GPU 0 has a total capacity of {cap} GiB of which 1 MiB is free"
            )
        };
        assert!(card(4, 62, 3).runs_out_of_gtt(&said("62.47")));
        assert!(card(8, 124, 3).runs_out_of_gtt(&said("131.9")));
        assert!(!card(96, 16, 3).runs_out_of_gtt(&said("96.00")));
        assert!(card(4, 62, 3).runs_out_of_gtt("HIP out of memory"));
        assert!(!card(96, 16, 3).runs_out_of_gtt("HIP out of memory"));
        assert!(card(96, 16, 15).runs_out_of_gtt("HIP out of memory"));
        assert!(!Cards::default().runs_out_of_gtt(&said("62.47")));
        assert_eq!(capacity(&said("23.5")), Some(23 * gib + gib / 2));
    }

    #[test]
    fn the_kernels_victim_may_be_ours_by_its_time() {
        let t = told(&["Out of memory: Killed process 99 (python3) total-vm:1kB"]);
        let at = |s| Mono::from_secs(s);
        assert!(t.oom(at(2), true).is_some());
        assert!(t.oom(at(2), false).is_none());
        assert!(t.oom(at(60), true).is_none());
        let t = told(&["Out of memory: Killed process 99 (chrome) total-vm:1kB"]);
        assert!(t.oom(at(2), true).is_none());
        let t = told(&["Memory cgroup out of memory: Killed process 4242 (python3) total-vm:1kB"]);
        assert!(t.oom(at(60), false).is_some());
    }
}
