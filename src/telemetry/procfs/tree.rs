//! Which processes belong to the supervised tree.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io;
use std::path::Path;

use super::parse;

/// The processes of the tree: every descendant of `reaper` without itself, or of
/// `root` with itself where there is no reaper. `root` is always among them while
/// it lives.
pub(super) fn members(proc: &Path, root: u32, reaper: Option<u32>) -> io::Result<BTreeSet<u32>> {
    let parents = parents(proc)?;
    Ok(descendants(&parents, root, reaper))
}

/// Parent of every process that is visible.
fn parents(proc: &Path) -> io::Result<HashMap<u32, u32>> {
    let pids = fs::read_dir(proc)?
        .filter_map(Result::ok)
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    Ok(pids
        .filter_map(|pid| {
            let stat = parse::read_stat(&proc.join(pid.to_string()).join("stat")).ok()?;
            Some((pid, stat.ppid))
        })
        .collect())
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

    proptest! {
        #[test]
        fn circles_end(edges in proptest::collection::hash_map(0u32..8, 0u32..8, 0..8)) {
            let found = descendants(&edges, 1, Some(2));
            prop_assert!(!found.contains(&2));
        }
    }
}
