//! The last faults that the kernel told of.

use std::collections::VecDeque;
use std::time::Duration;

use crate::detect::{culprit, kernel_fault};
use crate::model::{KernelFault, Mono};

/// Faults kept.
const KEEP: usize = 32;
/// An equal fault within this time is the same one: a page fault comes in hundreds of
/// lines, an OOM kill in two, and NVML tells an Xid that the log tells as well.
const SAME: Duration = Duration::from_secs(10);
/// The line that names the cause follows at once.
const NEXT: Duration = Duration::from_secs(2);

/// See the module.
#[derive(Debug, Clone, Default)]
pub(super) struct Faults(VecDeque<(Mono, KernelFault)>);

impl Faults {
    /// Takes a line of the kernel log.
    pub(super) fn line(&mut self, at: Mono, text: &str) {
        if let Some(fault) = kernel_fault(text) {
            self.add(at, fault);
        } else if let Some((gpu, pid, process)) = culprit(text)
            && let Some((since, last)) = self.0.back_mut()
            && last.pid.is_none()
            && at.since(*since) <= NEXT
            && (gpu.is_none() || last.gpu.is_none() || gpu == last.gpu)
        {
            last.pid = Some(pid);
            last.process = process;
        }
    }

    fn add(&mut self, at: Mono, fault: KernelFault) {
        // the same fault may be told with and without the process that caused it
        let same = |(since, known): &&mut (Mono, KernelFault)| {
            at.since(*since) <= SAME
                && (known.kind, &known.gpu, &known.part, known.code)
                    == (fault.kind, &fault.gpu, &fault.part, fault.code)
                && (known.pid == fault.pid || known.pid.is_none() || fault.pid.is_none())
        };
        if let Some((_, known)) = self.0.iter_mut().rev().find(same) {
            if known.pid.is_none() {
                known.pid = fault.pid;
                known.process = fault.process;
            }
            return;
        }
        if self.0.len() == KEEP {
            self.0.pop_front();
        }
        self.0.push_back((at, fault));
    }

    /// Oldest first.
    pub(super) fn list(&self) -> Vec<(Mono, KernelFault)> {
        self.0.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::FaultKind;

    fn told(lines: &[(u64, &str)]) -> Vec<(Mono, KernelFault)> {
        let mut faults = Faults::default();
        for (at, text) in lines {
            faults.line(Mono::from_secs(*at), text);
        }
        faults.list()
    }

    #[test]
    fn the_cause_on_the_next_line_belongs_to_the_fault() {
        let fault = "amdgpu 0000:c5:00.0: amdgpu: [gfxhub] page fault (src_id:0 ring:24 vmid:8 pasid:32773)";
        let cause = "amdgpu 0000:c5:00.0: amdgpu:  Process python pid 5578 thread python pid 5578";
        let list = told(&[(1, fault), (1, cause), (2, fault), (2, cause)]);
        assert_eq!(list.len(), 1, "{list:?}");
        assert_eq!(list[0].1.pid, Some(5578));
        assert_eq!(list[0].1.process.as_deref(), Some("python"));
        let late = told(&[(1, fault), (9, cause)]);
        assert_eq!(late[0].1.pid, None);
        let other = cause.replace("c5", "03");
        assert_eq!(told(&[(1, fault), (1, &other)])[0].1.pid, None);
    }

    #[test]
    fn one_kill_in_two_lines_is_one_and_two_kills_are_two() {
        let list = told(&[
            (
                1,
                "oom-kill:constraint=CONSTRAINT_NONE,task=python,pid=7,uid=0",
            ),
            (1, "Out of memory: Killed process 7 (python) total-vm:1kB"),
            (1, "Out of memory: Killed process 8 (python) total-vm:1kB"),
        ]);
        let pids: Vec<_> = list.iter().map(|(_, f)| f.pid).collect();
        assert_eq!(pids, [Some(7), Some(8)]);
        assert!(list.iter().all(|(_, f)| f.kind == FaultKind::OomKill));
    }

    #[test]
    fn the_list_is_bounded_and_a_fault_that_comes_again_later_is_told_again() {
        let text = "amdgpu: GPU reset begin!";
        let lines: Vec<_> = (0..KEEP as u64 + 5).map(|n| (n * 20, text)).collect();
        let list = told(&lines);
        assert_eq!(list.len(), KEEP);
        assert_eq!(list[0].0, Mono::from_secs(100));
    }
}
