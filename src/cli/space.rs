//! A limit of the address space (`ulimit -v`), and what would be wasted of it.

use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Resource, getrlimit};

/// How many pools glibc's malloc makes; it is read as a program starts.
const POOLS: &str = "MALLOC_ARENA_MAX";
/// Enough for this program, whose threads mostly wait.
const FEW: &str = "2";
/// A pool reserves 64 MiB of addresses, and each thread would have one: about 1 GiB in all, and a program that has no
/// address left is aborted in the middle of its work.
const TIGHT: u64 = 2 << 30;

/// Where addresses are few this program begins anew with few pools. What the user has set stays.
pub(super) fn spare() {
    let limit = getrlimit(Resource::As).current;
    if limit.is_none_or(|limit| limit >= TIGHT) || std::env::var_os(POOLS).is_some() {
        return;
    }
    let Ok(own) = std::env::current_exe() else {
        return;
    };
    let mut words = std::env::args_os();
    let mut again = Command::new(own);
    if let Some(name) = words.next() {
        again.arg0(name);
    }
    // it comes back only where it could not: then it goes on as it is, with what addresses there are
    let _ = again.args(words).env(POOLS, FEW).exec();
}
