//! A process tree like that of a generation: 100 threads in six processes that wait.

use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Argument with which a benchmark is a process of the tree, before its number of threads.
const MODE: &str = "--be-a-tree";
/// Processes below the root, of one thread each.
pub(crate) const CHILDREN: u32 = 5;
/// Threads of all processes.
pub(crate) const THREADS: u32 = 100;
/// Files that each process has open beside its first three.
pub(crate) const FILES: usize = 40;

/// The command that becomes the tree and says `whole` when all of it is there. It lives
/// for an hour, its children as long as its root.
pub(crate) fn command() -> Result<Vec<OsString>, Box<dyn Error>> {
    Ok(vec![
        std::env::current_exe()?.into(),
        MODE.into(),
        (THREADS - CHILDREN).to_string().into(),
    ])
}

/// To be called first: becomes a process of the tree where the arguments say so. False:
/// they do not.
pub(crate) fn lived() -> Result<bool, Box<dyn Error>> {
    let args: Vec<String> = std::env::args().collect();
    let [_, mode, threads] = args.as_slice() else {
        return Ok(false);
    };
    if mode != MODE {
        return Ok(false);
    }
    live(threads.parse()?)?;
    Ok(true)
}

fn live(threads: u32) -> Result<(), Box<dyn Error>> {
    let files: Vec<fs::File> = (0..FILES)
        .map(|_| fs::File::open("/dev/null"))
        .collect::<Result<_, _>>()?;
    for _ in 1..threads {
        std::thread::spawn(|| {
            loop {
                std::thread::sleep(Duration::from_millis(100));
            }
        });
    }
    if threads == 1 {
        // an error is an end as well
        let _ended = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        drop(files);
        return Ok(());
    }
    let mut children = Vec::new();
    for _ in 0..CHILDREN {
        let mut child = Command::new(std::env::current_exe()?);
        child.args([MODE, "1"]).stdin(Stdio::piped());
        children.push(child.stdout(Stdio::null()).spawn()?);
    }
    writeln!(std::io::stdout(), "whole")?;
    std::thread::sleep(Duration::from_hours(1));
    Ok(())
}
