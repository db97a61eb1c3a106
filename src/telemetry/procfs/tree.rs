//! Which processes belong to the supervised tree.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::io;
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::{Duration, Instant};

use super::super::file;
use super::kept::Kept;
use super::parse;

/// Every process is asked anew for its parent this often; in between only new ones, and
/// all when one of the tree has ended. A process falls to another parent only when its own
/// ends, so this is no more than a net below.
const WHOLE_PERIOD: Duration = Duration::from_mins(1);
/// New processes are looked for this often where the kernel does not tell that there are
/// any: gVisor's `loadavg` ends in `0/0 0`, that of lxcfs may stand still.
const LIST_PERIOD: Duration = Duration::from_secs(1);
/// As many new numbers are asked for one by one; a list of all processes costs less than
/// more of them.
const ASKED: u32 = 64;

/// The processes of the machine and their parents.
#[derive(Debug, Default)]
pub(super) struct Census {
    parents: HashMap<u32, u32>,
    /// Those that the last look listed.
    pids: HashSet<u32>,
    /// `loadavg`, kept open.
    loadavg: Kept,
    whole: Option<Instant>,
    listed: Option<Instant>,
    /// The last number that the kernel had given to a process or thread before the last
    /// look.
    newest: Option<u32>,
    /// A process came while that number stood still: it is not believed any more.
    stands_still: bool,
}

impl Census {
    /// The processes of the tree: every descendant of `reaper` without itself, or of
    /// `root` with itself where there is no reaper. `root` is always among them while
    /// it lives.
    pub(super) fn members(
        &mut self,
        proc: &Path,
        root: u32,
        reaper: Option<u32>,
    ) -> io::Result<BTreeSet<u32>> {
        let newest = newest(&mut self.loadavg, proc);
        let whole = self.whole.is_none_or(|at| at.elapsed() >= WHOLE_PERIOD);
        // Listing every process costs more than reading the tree.
        let told = self.newest.is_none() || newest != self.newest;
        let unknown = newest.is_none() || self.stands_still;
        let due = self.listed.is_none_or(|at| at.elapsed() >= LIST_PERIOD);
        if let (false, false, Some(before), Some(now)) = (whole, unknown, self.newest, newest)
            && now.checked_sub(before).is_some_and(|new| new <= ASKED)
        {
            self.ask(proc, before + 1..=now);
            self.newest = newest;
        } else if whole || told || (unknown && due) {
            let came = self.look(proc, whole)?;
            self.stands_still |= came && !told;
            self.newest = newest;
        }
        Ok(descendants(&self.parents, root, reaper))
    }

    /// The process has ended, so its children have another parent; or the number belongs
    /// to another process now.
    pub(super) fn forget(&mut self, pid: u32) {
        self.parents.remove(&pid);
        self.newest = None;
    }

    /// Asks for the processes of these numbers, which the kernel gave since the last look.
    /// Most are threads or have ended already.
    fn ask(&mut self, proc: &Path, new: RangeInclusive<u32>) {
        for pid in new {
            let dir = proc.join(pid.to_string());
            self.parents.remove(&pid);
            // a thread is found under its number as well, though it is not listed
            if let Ok(stat) = parse::read_stat(&dir.join("stat"))
                && is_process(&dir, pid)
            {
                self.parents.insert(pid, stat.ppid);
                self.pids.insert(pid);
            }
        }
    }

    /// Whether a process has come since the last look.
    fn look(&mut self, proc: &Path, anew: bool) -> io::Result<bool> {
        self.listed = Some(Instant::now());
        let listed: HashSet<u32> = fs::read_dir(proc)?
            .filter_map(Result::ok)
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .collect();
        let came = listed.iter().any(|pid| !self.pids.contains(pid));
        self.pids.clone_from(&listed);
        if anew {
            self.whole = Some(Instant::now());
            self.parents.clear();
        }
        // an orphan has another parent: 0 stays 0
        self.parents.retain(|pid, parent| {
            listed.contains(pid) && (*parent == 0 || listed.contains(parent))
        });
        for pid in listed {
            if let Entry::Vacant(new) = self.parents.entry(pid)
                && let Ok(stat) = parse::read_stat(&proc.join(pid.to_string()).join("stat"))
            {
                new.insert(stat.ppid);
            }
        }
        Ok(came)
    }
}

/// Whether the number is that of a process and not of one of its threads.
fn is_process(dir: &Path, pid: u32) -> bool {
    let status = file::read_text(&dir.join("status")).unwrap_or_default();
    let [group] = parse::keyed(&status, ["Tgid"]);
    group.is_none_or(|group| group == u64::from(pid))
}

/// The last field of `loadavg`: as long as it stays, no process or thread has begun. None
/// where it is not told: no process has the number 0.
fn newest(loadavg: &mut Kept, proc: &Path) -> Option<u32> {
    let last = |text: &str| text.rsplit(' ').next()?.parse().ok();
    let newest = loadavg.read(|| proc.join("loadavg"), true, last).ok()??;
    (newest != 0).then_some(newest)
}

fn descendants(parents: &HashMap<u32, u32>, root: u32, reaper: Option<u32>) -> BTreeSet<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for (pid, parent) in parents {
        children.entry(*parent).or_default().push(*pid);
    }
    let mut found = BTreeSet::new();
    let mut open: Vec<u32> = reaper
        .and_then(|r| children.get(&r).cloned())
        .unwrap_or_default();
    if parents.contains_key(&root) {
        open.push(root);
    }
    while let Some(pid) = open.pop() {
        if Some(pid) != reaper && found.insert(pid) {
            open.extend(children.get(&pid).into_iter().flatten());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::super::testing::Tree as Files;
    use super::*;

    #[test]
    fn with_a_reaper_orphans_stay_in_the_tree() {
        // 5 is the reaper, 6 the root with child 7; 8 lost its parent and fell to
        // the reaper; 9 is somebody else's.
        let parents = HashMap::from([(5, 1), (6, 5), (7, 6), (8, 5), (9, 1)]);
        let all = |root, reaper| Vec::from_iter(descendants(&parents, root, reaper));
        assert_eq!(all(6, None), [6, 7]);
        assert_eq!(all(6, Some(5)), [6, 7, 8]);
        assert_eq!(all(99, None), Vec::<u32>::new());
        assert_eq!(all(99, Some(5)), [6, 7, 8]);
    }

    #[test]
    fn a_process_that_lost_its_parent_is_asked_for_the_new_one() {
        let files = Files::new();
        let process = |pid: u32, parent: u32| {
            let text = format!("{pid} (x) S {parent} 1 1 0 -1 0 1 0 1 0 1 0 0 0 20 0 1 0 500 0 0");
            files.write(&format!("proc/{pid}/stat"), &text);
        };
        for (pid, parent) in [(5, 1), (6, 5), (7, 6), (8, 7)] {
            process(pid, parent);
        }
        let proc = files.root().join("proc");
        let mut census = Census::default();
        let all = |census: &mut Census| Vec::from_iter(census.members(&proc, 6, None).unwrap());
        assert_eq!(all(&mut census), [6, 7, 8]);
        // 7 ends and its child falls to 1; 9 is new
        std::fs::remove_dir_all(proc.join("7")).unwrap();
        process(8, 1);
        process(9, 6);
        assert_eq!(all(&mut census), [6, 9]);
        // the number of 9 is somebody else's now
        process(9, 1);
        census.forget(9);
        assert_eq!(all(&mut census), [6]);
        // nobody began since: nobody is looked for
        files.write("proc/loadavg", "0.10 0.20 0.30 1/99 9\n");
        assert_eq!(all(&mut census), [6]);
        process(10, 6);
        assert_eq!(all(&mut census), [6]);
        files.write("proc/loadavg", "0.10 0.20 0.30 1/99 10\n");
        assert_eq!(all(&mut census), [6, 10]);
        // 10 ends: its child is asked for
        process(11, 10);
        files.write("proc/loadavg", "0.10 0.20 0.30 1/99 11\n");
        assert_eq!(all(&mut census), [6, 10, 11]);
        std::fs::remove_dir_all(proc.join("10")).unwrap();
        process(11, 1);
        census.forget(10);
        assert_eq!(all(&mut census), [6]);
    }

    #[test]
    fn new_numbers_are_asked_for_one_by_one_and_a_thread_is_no_process() {
        let files = Files::new();
        let process = |pid: u32, parent: u32, group: u32| {
            let text = format!("{pid} (x) S {parent} 1 1 0 -1 0 1 0 1 0 1 0 0 0 20 0 1 0 500 0 0");
            files.write(&format!("proc/{pid}/stat"), &text);
            files.write(&format!("proc/{pid}/status"), &format!("Tgid:\t{group}\n"));
        };
        let newest = |pid: u32| {
            files.write("proc/loadavg", &format!("0.10 0.20 0.30 1/99 {pid}\n"));
        };
        process(6, 1, 6);
        newest(6);
        let proc = files.root().join("proc");
        let mut census = Census::default();
        let all = |census: &mut Census| Vec::from_iter(census.members(&proc, 6, None).unwrap());
        assert_eq!(all(&mut census), [6]);
        // 8 has ended already, 9 is a thread of 7
        process(7, 6, 7);
        process(9, 6, 7);
        newest(9);
        assert_eq!(all(&mut census), [6, 7]);
        // more than are asked for: 99 is found in the list
        process(99, 7, 99);
        std::fs::remove_dir_all(proc.join("9")).unwrap();
        newest(9 + ASKED + 30);
        assert_eq!(all(&mut census), [6, 7, 99]);
        // the numbers began anew
        process(3, 99, 3);
        newest(3);
        assert_eq!(all(&mut census), [3, 6, 7, 99]);
    }

    #[test]
    fn where_the_kernel_tells_no_newest_process_they_are_listed_each_second() {
        for (loadavg, whole) in [
            ("0.00 0.00 0.00 0/0 0\n", false),
            ("0.1 0.2 0.3 1/99 7\n", true),
        ] {
            let files = Files::new();
            let process = |pid: u32, parent: u32| {
                let text =
                    format!("{pid} (x) S {parent} 1 1 0 -1 0 1 0 1 0 1 0 0 0 20 0 1 0 500 0 0");
                files.write(&format!("proc/{pid}/stat"), &text);
            };
            files.write("proc/loadavg", loadavg);
            process(6, 1);
            let proc = files.root().join("proc");
            let mut census = Census::default();
            let all = |census: &mut Census| Vec::from_iter(census.members(&proc, 6, None).unwrap());
            assert_eq!(all(&mut census), [6]);
            if whole {
                // the number stands still although a process came
                process(7, 6);
                assert_eq!(all(&mut census), [6]);
                census.whole = Instant::now().checked_sub(WHOLE_PERIOD);
                assert_eq!(all(&mut census), [6, 7]);
            }
            process(8, 6);
            census.listed = Instant::now().checked_sub(LIST_PERIOD);
            assert!(all(&mut census).contains(&8), "{loadavg}");
        }
    }

    proptest! {
        #[test]
        fn circles_end(edges in proptest::collection::hash_map(0u32..8, 0u32..8, 0..8)) {
            let found = descendants(&edges, 1, Some(2));
            prop_assert!(!found.contains(&2));
        }
    }
}
