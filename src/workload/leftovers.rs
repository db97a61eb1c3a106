//! Processes of runs whose supervisor was killed.
//!
//! Every launch marks what it starts by a variable of the environment, which names the supervisor
//! ([`external`](super::external)). Where that supervisor is gone and its guardian too, nobody
//! ends these processes.

use super::external::MARK;
use super::proctree;

pub use super::proctree::supervisor_lives;

/// A process that carries the mark of a supervisor that is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// Process.
    pub pid: u32,
    /// Name (`comm`).
    pub name: String,
    /// State letter.
    pub state: char,
    /// The supervisor that had started it: process id and start in clock ticks since boot.
    pub supervisor: (u32, u64),
}

/// Every such process that is visible. Reads the environment of every process, which blocks where
/// the memory map of one is locked.
pub fn leftovers() -> Vec<Leftover> {
    let marked = proctree::with_variable(MARK).into_iter();
    marked
        .filter_map(|(member, mark)| {
            let supervisor = supervisor(&mark)?;
            let (pid, start) = supervisor;
            (!supervisor_lives(pid, Some(start))).then_some(Leftover {
                pid: u32::try_from(member.pid).ok()?,
                name: member.name,
                state: member.state,
                supervisor,
            })
        })
        .collect()
}

/// The supervisor that a mark names: `PID-START-COUNT`.
fn supervisor(mark: &str) -> Option<(u32, u64)> {
    let mut parts = mark.split('-');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    fn sleeper(mark: &str) -> Child {
        Command::new("sleep")
            .arg("60")
            .env(MARK, mark)
            .spawn()
            .unwrap()
    }

    #[test]
    fn only_processes_of_a_dead_supervisor_are_left() {
        let own = procfs::process::Process::myself().unwrap().stat().unwrap();
        let ours = std::process::id();
        let living = format!("{ours}-{}-0", own.starttime);
        // the number of a living process that began later is another one
        let earlier = format!("{ours}-{}-0", own.starttime - 1);
        let marks = ["4194303-17-2", &earlier, &living, "", "none of ours", "7"];
        let mut children: Vec<Child> = marks.iter().map(|mark| sleeper(mark)).collect();
        // between fork and exec a child has our environment
        let has_begun = |child: &Child| {
            std::fs::read_to_string(format!("/proc/{}/comm", child.id()))
                .is_ok_and(|comm| comm.trim() == "sleep")
        };
        while !children.iter().all(has_begun) {
            std::thread::yield_now();
        }
        let found = leftovers();
        let of = |child: &Child| found.iter().find(|left| left.pid == child.id());
        let supervisors: Vec<_> = children
            .iter()
            .map(|child| of(child).map(|left| left.supervisor))
            .collect();
        for child in &mut children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let dead = Some((4_194_303, 17));
        let replaced = Some((ours, own.starttime - 1));
        assert_eq!(supervisors, [dead, replaced, None, None, None, None]);
    }
}
