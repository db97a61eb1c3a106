//! The command line: the composition root.

mod args;
mod clock;
mod diagnose;
mod doctor;
mod error;
mod find;
mod follow;
mod gpus;
mod log;
mod page;
mod replay;
mod run;
mod runs;
mod show;
mod space;
mod start;
mod vault;
mod watch;
mod worker;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Parser;
use clap::error::ErrorKind;

use crate::model::exit;

use args::{Args, Subcommand};
pub use error::CliError;

/// Parses the command line, does what it says, and gives the exit code that is
/// part of the contract (see README.md).
pub fn main() -> ExitCode {
    survive_file_limits();
    space::spare();
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(e) => return usage(&e),
    };
    if let Err(why) = have_descriptors() {
        let _ = writeln!(
            io::stderr(),
            "failed to open {DESCRIPTORS} files at once: {why}; allow more of them (`ulimit -n`)"
        );
        return ExitCode::from(exit::SHORTAGE);
    }
    let done = match args.command {
        None => start::main(args.start),
        Some(Subcommand::Run(run)) => run::main(*run),
        Some(Subcommand::Follow(follow)) => follow::main(&follow),
        Some(Subcommand::Watch(watch)) => watch::main(&watch),
        Some(Subcommand::Gpus(gpus)) => gpus::main(&gpus),
        Some(Subcommand::Runs(runs)) => runs::main(&runs),
        Some(Subcommand::Vault(vault)) => vault::main(&vault),
        Some(Subcommand::Decode(args)) => worker::decode(*args),
        Some(Subcommand::Encode(args)) => worker::encode(*args),
        Some(Subcommand::Worker(args)) => worker::worker(args),
        Some(Subcommand::Replay(replay)) => replay::main(&replay),
        Some(Subcommand::Doctor(doctor)) => doctor::main(&doctor),
        Some(Subcommand::Diagnose(args)) => diagnose::main(&args),
        Some(Subcommand::Supervise { args }) => run::serve::main(&args),
        Some(Subcommand::Guardian { args }) => return crate::workload::guardian::main(args),
        #[cfg(feature = "rocm-smi")]
        Some(Subcommand::RocmSmiReader) => return crate::telemetry::rocm_smi_reader(),
    };
    match done {
        Ok(code) => ExitCode::from(code),
        Err(e) => {
            // nowhere else to say it if stderr is closed
            let _ = writeln!(io::stderr(), "{}", e.report());
            ExitCode::from(e.exit_code())
        }
    }
}

/// At the limit of a file's size (`ulimit -f`) a write fails, as on a full disk, instead of
/// ending us and the run with us. The signal is handled, not ignored: what we start has its
/// default again.
fn survive_file_limits() {
    let came = Arc::new(AtomicBool::new(false));
    // whatever forbids it, nothing else is lost
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, came);
}

/// Files that are open at once in a run with a screen.
const DESCRIPTORS: usize = 48;

/// Whether there is room for what a run opens: with a full table the first thing that fails
/// may be one that cannot say so.
fn have_descriptors() -> io::Result<()> {
    let opened: io::Result<Vec<_>> = (0..DESCRIPTORS)
        .map(|_| std::fs::File::open("/dev/null"))
        .collect();
    match opened {
        Err(e) if error::is_shortage(&e) => Err(e),
        // a machine without /dev/null has other worries
        _ => Ok(()),
    }
}

/// Help and version go to stdout with 0; anything else is a usage error.
fn usage(e: &clap::Error) -> ExitCode {
    if e.kind() == ErrorKind::InvalidUtf8
        && let Some(why) = not_utf8(&std::env::args_os().collect::<Vec<_>>())
    {
        let _ = writeln!(io::stderr(), "error: {why}\n");
    } else {
        let _ = e.print();
    }
    if e.use_stderr() {
        ExitCode::from(exit::USAGE)
    } else {
        ExitCode::SUCCESS
    }
}

/// Which word of a command line is not UTF-8 though it must be. The parser does not say: it is
/// asked about each of them, beside others that are.
fn not_utf8(words: &[OsString]) -> Option<String> {
    let odd = |word: &OsString| word.to_str().is_none();
    let readable = |word: &OsString| OsString::from(word.to_string_lossy().into_owned());
    let refused = |at: &usize| {
        let asked = words.iter().enumerate();
        let asked = asked.map(|(n, word)| {
            if n == *at {
                word.clone()
            } else {
                readable(word)
            }
        });
        let answer = Args::try_parse_from(asked);
        answer.is_err_and(|e| e.kind() == ErrorKind::InvalidUtf8)
    };
    let at = (1..words.len()).filter(|n| odd(&words[*n])).find(refused)?;
    let word = words[at].to_string_lossy();
    let before = words[at - 1].to_string_lossy();
    let (option, value) = match word.split_once('=') {
        Some((option, value)) if option.starts_with('-') => (Some(option), value),
        _ if before.starts_with('-') && !before.contains('=') => (Some(&*before), &*word),
        _ => (None, &*word),
    };
    let whose = option.map_or_else(String::new, |option| format!(" of `{option}`"));
    let value: String = value
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    Some(format!(
        "`{value}`{whose} is not UTF-8, as this argument must be; give the file another name, or name a link to it (`ln -s`)"
    ))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn a_word_that_is_not_utf8_is_named_with_its_option() {
        let told = |words: &[&[u8]]| {
            let mut all = vec![OsString::from("framepack-tui")];
            all.extend(words.iter().map(|w| OsStr::from_bytes(w).to_owned()));
            not_utf8(&all).unwrap_or_default()
        };
        for (words, named) in [
            (
                &[&b"run"[..], b"--profile", b"/a\xff", b"--", b"x"][..],
                "`/a\u{fffd}` of `--profile`",
            ),
            (
                &[b"run", b"--profile=/a\xff", b"--", b"x"],
                "`/a\u{fffd}` of `--profile`",
            ),
            // the folder may have any name, and so may the words of the command
            (
                &[
                    b"run",
                    b"--cwd",
                    b"/\xfe",
                    b"--profile",
                    b"/a\xff",
                    b"--",
                    b"\xff",
                ],
                "`/a\u{fffd}` of `--profile`",
            ),
            (&[b"replay", b"/a\xff"], "`/a\u{fffd}` is not"),
            (&[b"follow", b"\xffx"], "`\u{fffd}x` is not"),
            (&[b"diagnose", b"/a\xff"], "`/a\u{fffd}` is not"),
            (&[b"run", b"--", b"\xff"], ""),
        ] {
            let told = told(words);
            assert!(
                told.contains(named) && told.is_empty() == named.is_empty(),
                "{words:?}: {told}"
            );
        }
    }
}
