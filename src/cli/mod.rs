//! The command line: the composition root.

mod args;
mod clock;
mod diagnose;
mod doctor;
mod error;
mod find;
mod follow;
mod gpus;
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

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Parser;

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
        return ExitCode::from(error::SHORTAGE);
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
    let _ = e.print();
    if e.use_stderr() {
        ExitCode::from(error::USAGE)
    } else {
        ExitCode::SUCCESS
    }
}
