//! CPU and memory of a program that watches, over a minute at two readings a second.

use std::ffi::OsString;
use std::time::{Duration, Instant};

use framepack_tui::model::Bytes;
use procfs::process::{Process, all_processes};

use crate::figures::{Figure, quick};
use crate::home::Home;
use crate::pty::Pty;
use crate::{BINARY, Outcome, peer, printer, tree, usage};

const GROUP: &str = "A minute on the screen, 120x36, 2 readings a second";
/// What happens at the start does not count.
const SETTLE: Duration = Duration::from_secs(5);
/// Lines a second of the workloads that print: one for each of the four frames of the
/// target, and as many as there can be frames. Steps of a video generation take seconds.
const LINES: [u32; 2] = [4, 20];

pub(crate) fn measure() -> Outcome<Vec<Figure>> {
    let minute = Duration::from_secs(if quick() { 10 } else { 60 });
    let mut all = Vec::new();
    let silent: Vec<OsString> = ["sleep", "3600"].map(OsString::from).to_vec();
    let mut workloads = vec![
        ("a silent workload".to_owned(), silent, true),
        (
            format!("a silent workload of {} threads", tree::THREADS),
            tree::command()?,
            true,
        ),
    ];
    for rate in LINES {
        workloads.push((
            format!("a workload that prints {rate} lines a second"),
            printer::command(rate, 3600, "/dev/null".as_ref())?,
            rate == LINES[0],
        ));
    }
    for (what, command, has_target) in workloads {
        let home = Home::new()?;
        let mut program: Vec<OsString> = [BINARY, "run", "--profile", "generic-amd", "--"]
            .map(OsString::from)
            .to_vec();
        program.extend(command);
        let pty = Pty::open(&home, (120, 36), &program)?;
        let [share, memory] = watch("framepack-tui", &what, &pty, minute)?;
        all.push(if has_target {
            share.at_most(1.0)
        } else {
            share
        });
        all.push(memory.at_most(60.0));
    }
    let home = Home::new()?;
    let pty = Pty::open(&home, (120, 36), &peer::btop(&home)?)?;
    all.extend(watch(
        &peer::version("btop")?,
        "the machine, no GPU",
        &pty,
        minute,
    )?);
    if let Some(why) = peer::radeontop_refuses() {
        let mut figure = Figure::ours(GROUP, "CPU: one card", "% of a core")
            .note(format!("does not start without a real card: {why}"));
        figure.program = peer::version("radeontop")?;
        all.push(figure);
    } else {
        let home = Home::new()?;
        let pty = Pty::open(&home, (120, 36), &peer::radeontop())?;
        all.extend(watch(
            &peer::version("radeontop")?,
            "one card",
            &pty,
            minute,
        )?);
    }
    Ok(all)
}

/// CPU seconds of all threads of a process up to now.
pub(crate) fn cpu(pid: i32) -> Outcome<f64> {
    let stat = Process::new(pid)?.stat()?;
    let ticks = u32::try_from(stat.utime + stat.stime)?;
    let per_second = u32::try_from(procfs::ticks_per_second())?;
    Ok(f64::from(ticks) / f64::from(per_second))
}

/// CPU and memory of a program and of the helper that it starts (for ours the
/// guardian; the workload is a grandchild).
fn watch(program: &str, what: &str, pty: &Pty, time: Duration) -> Outcome<[Figure; 2]> {
    pty.wait_for(SETTLE * 2, |text| !text.trim().is_empty())
        .ok_or_else(|| format!("{program} draws nothing"))?;
    std::thread::sleep(SETTLE);
    let pid = pty.pid()?;
    let mut family = vec![pid];
    for process in all_processes()?.flatten() {
        if process.stat().is_ok_and(|s| s.ppid == pid) {
            family.push(process.pid);
        }
    }
    let used = || -> Outcome<f64> { family.iter().map(|p| cpu(*p)).sum() };
    let (before, bytes, begun) = (used()?, pty.bytes(), Instant::now());
    std::thread::sleep(time);
    let elapsed = begun.elapsed().as_secs_f64();
    let share = (used()? - before) / elapsed * 100.0;
    let rss: Vec<Bytes> = family
        .iter()
        .map(|p| usage::rss(*p))
        .collect::<Outcome<_>>()?;
    let all = Bytes(rss.iter().map(|b| b.0).sum());
    let ours = program == "framepack-tui";
    let mut share = Figure::ours(GROUP, format!("CPU: {what}"), "% of a core")
        .value(share)
        .note(format!(
            "over {elapsed:.0} s; {} B/s to the terminal",
            (pty.bytes() - bytes) / begun.elapsed().as_secs().max(1)
        ));
    let mut memory =
        Figure::ours(GROUP, format!("memory (RSS): {what}"), "MiB").value(usage::mib(all));
    if ours {
        memory = memory.note(format!(
            "{:.1} the program, the rest its guardian",
            usage::mib(rss.first().copied().unwrap_or_default())
        ));
    }
    program.clone_into(&mut share.program);
    program.clone_into(&mut memory.program);
    Ok([share, memory])
}
