//! Python stacks: what the program tells itself, and by py-spy, if there is one.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::output::{Output, read_text};
use super::tool;
use super::{OwnStacks, Trouble};
use crate::supervise::tree::{Member, Target};

/// Interpreters whose stacks are taken, the root first.
const MAX_INTERPRETERS: usize = 4;
/// Environments are bounded by the kernel's argument limit; this is plenty.
const MAX_ENVIRON: u64 = 2 << 20;

/// The stacks that the program tells of itself, then those of py-spy.
pub(super) fn collect(
    out: &Output,
    target: &Target,
    own: Option<&OwnStacks>,
    limit: Duration,
) -> Result<(), Trouble> {
    let Some(own) = own else {
        return by_py_spy(out, target, limit);
    };
    let end = Instant::now() + limit;
    out.doing("while the agent is asked for the stacks".to_owned());
    let told = (own.0)();
    if let Ok(text) = &told {
        text.lines().for_each(|line| out.line(line));
    }
    let more = by_py_spy(out, target, end.saturating_duration_since(Instant::now()));
    match (told, more) {
        (Ok(_), _) | (_, Ok(())) => Ok(()),
        (Err(why), Err(Trouble::Absent(_))) => Err(Trouble::Failed(why)),
        (Err(why), Err(Trouble::Failed(more))) => Err(Trouble::Failed(format!("{why}; {more}"))),
    }
}

/// `py-spy dump --nonblocking` of each Python process of the tree. Without that
/// flag py-spy stops its target, and leaves it stopped if it is killed itself.
fn by_py_spy(out: &Output, target: &Target, limit: Duration) -> Result<(), Trouble> {
    let end = Instant::now() + limit;
    let members: Vec<_> = target
        .members()?
        .into_iter()
        .filter(is_python)
        .take(MAX_INTERPRETERS)
        .collect();
    if members.is_empty() {
        return Err(Trouble::absent("no Python process in the tree"));
    }
    let Some(py_spy) = tool::find("py-spy").or_else(|| members.iter().find_map(beside)) else {
        return Err(Trouble::absent(
            "py-spy is neither on the PATH nor beside the program's Python; `pip install py-spy` makes the stacks of a hung Python visible",
        ));
    };
    let mut why: Result<(), Trouble> = Err(Trouble::Failed("no stack was taken".to_owned()));
    for member in members {
        out.doing(format!("while py-spy reads process {}", member.pid));
        let left = end.saturating_duration_since(Instant::now());
        let mut command = Command::new(&py_spy);
        command.args(["dump", "--nonblocking", "--pid", &member.pid.to_string()]);
        match tool::run("py-spy", command, left) {
            Ok(text) => {
                out.line(format!("==== {}", member.title()));
                text.lines().for_each(|line| out.line(line));
                why = Ok(());
            }
            Err(e) if out.is_empty() => why = Err(e.into()),
            Err(e) => out.line(format!("==== {}\n({e})", member.title())),
        }
    }
    why
}

/// py-spy in the folder of the process's own Python, if nobody else could have put it
/// there.
fn beside(member: &Member) -> Option<PathBuf> {
    let found = folders(member).into_iter().map(|dir| dir.join("py-spy"));
    let mut fit = found.filter(|p| tool::is_executable(p) && tool::is_trustworthy(p));
    fit.next()
}

/// Where the process's Python lies: its virtual environment, the folder by which it was
/// called, and that of the file that runs.
fn folders(member: &Member) -> BTreeSet<PathBuf> {
    let mut folders = BTreeSet::new();
    let environ = read_text(&member.path("environ"), MAX_ENVIRON).unwrap_or_default();
    let venv = environ
        .split('\0')
        .find_map(|v| v.strip_prefix("VIRTUAL_ENV="));
    folders.extend(venv.map(|v| Path::new(v).join("bin")));
    let command = read_text(&member.path("cmdline"), 32 << 10).unwrap_or_default();
    let program = command.split('\0').next().unwrap_or_default();
    if program.contains('/') {
        // relative to where it was started, as far as it has not gone elsewhere
        let from = fs::read_link(member.path("cwd")).unwrap_or_default();
        folders.extend(from.join(program).parent().map(Path::to_path_buf));
    }
    let exe = fs::read_link(member.path("exe")).ok();
    folders.extend(exe.and_then(|e| Some(e.parent()?.to_path_buf())));
    folders.retain(|dir| dir.is_absolute());
    folders
}

/// By the program's file where that can be read: `comm` is whatever the program
/// calls itself, and a shell script named `python3` has it too.
pub(super) fn is_python(member: &Member) -> bool {
    match fs::read_link(member.path("exe")) {
        Ok(exe) => exe
            .file_name()
            .is_some_and(|n| n.to_string_lossy().starts_with("python")),
        Err(_) => member.name.starts_with("python"),
    }
}
