//! What every thread of the tree is doing: the kernel's view.

use std::fs;
use std::path::Path;

use super::output::{Output, read_text};
use crate::supervise::tree::Target;

/// Threads of a bundle.
const MAX_THREADS: usize = 4096;

/// `/proc/P/task/T/{comm,stat,status,wchan,syscall,stack}` of every thread.
/// `syscall` needs the rights of a debugger, `stack` those of root; where they
/// cannot be read that is said once, not for every thread.
pub(super) fn collect(out: &Output, target: &Target) -> Result<(), String> {
    let mut left = MAX_THREADS;
    let mut unreadable = Unreadable::default();
    for member in target.members()? {
        out.line(format!("==== {}", member.title()));
        let Ok(tasks) = fs::read_dir(member.path("task")) else {
            out.line("(it has ended)");
            continue;
        };
        let mut tids: Vec<u32> = tasks
            .flatten()
            .filter_map(|t| t.file_name().to_str()?.parse().ok())
            .collect();
        tids.sort_unstable();
        for tid in tids {
            if out.is_closed() {
                return Ok(());
            }
            if left == 0 {
                return Err(format!("only the first {MAX_THREADS} threads"));
            }
            left -= 1;
            thread(out, &member.path(&format!("task/{tid}")), &mut unreadable);
        }
    }
    unreadable.tell(out);
    Ok(())
}

#[derive(Debug, Default)]
struct Unreadable {
    syscall: Option<String>,
    stack: Option<String>,
}

impl Unreadable {
    fn tell(&self, out: &Output) {
        for (what, why) in [("syscall", &self.syscall), ("stack", &self.stack)] {
            if let Some(why) = why {
                out.line(format!("({what} is not readable: {why})"));
            }
        }
    }
}

fn thread(out: &Output, dir: &Path, unreadable: &mut Unreadable) {
    let read = |name: &str| {
        let path = dir.join(name);
        out.doing(format!("while reading {}", path.display()));
        read_text(&path, 16 << 10).map(|t| t.trim_end().to_owned())
    };
    let or_dash = |text: std::io::Result<String>| match text {
        Ok(text) if !text.is_empty() => text,
        _ => "-".to_owned(),
    };
    let tid = dir
        .file_name()
        .map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    out.line(format!("== thread {tid} {}", or_dash(read("comm"))));
    out.line(format!("wchan: {}", or_dash(read("wchan"))));
    match read("syscall") {
        Ok(text) => out.line(format!("syscall: {text}")),
        Err(e) => unreadable.syscall = Some(e.to_string()),
    }
    out.line(format!("stat: {}", or_dash(read("stat"))));
    match read("stack") {
        Ok(text) if !text.is_empty() => {
            out.line("stack:");
            out.line(text);
        }
        Ok(_) => {}
        Err(e) => unreadable.stack = Some(e.to_string()),
    }
    out.line("status:");
    out.line(or_dash(read("status")));
}
