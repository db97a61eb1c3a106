//! Arguments.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Parser;

use crate::model::Bytes;

/// Watches a video generation on your GPU, tells a silent hang from honest work,
/// and starts a dead run again on a fallback.
#[derive(Debug, Parser)]
#[command(name = "framepack-tui", version = env!("FPT_VERSION"), about, long_about = None)]
pub(super) struct Args {
    #[command(subcommand)]
    pub(super) command: Subcommand,
}

#[derive(Debug, clap::Subcommand)]
pub(super) enum Subcommand {
    /// Run a generation under supervision
    Run(Box<RunArgs>),
    /// Started by `run` itself: holds the workload, so that none of it survives us
    #[command(hide = true)]
    Guardian {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
}

#[derive(Debug, clap::Args)]
#[command(after_long_help = RUN_HELP)]
pub(super) struct RunArgs {
    /// Profile: an id, or a file. Without it the best matching one is taken and named
    #[arg(long, value_name = "NAME|FILE")]
    pub(super) profile: Option<String>,
    /// VRAM cap, such as 20GiB; wins over the profile's
    #[arg(long, value_name = "SIZE")]
    pub(super) cap: Option<Bytes>,
    /// Card to supervise: its number in the list of cards, or its PCI address
    #[arg(long, value_name = "N|PCI")]
    pub(super) gpu: Option<String>,
    /// Working directory of the command
    #[arg(long, value_name = "DIR")]
    pub(super) cwd: Option<PathBuf>,
    /// No screen: one JSON object a line on standard output
    #[arg(long, conflicts_with = "plain")]
    pub(super) headless: bool,
    /// No screen: plain lines, for screen readers and logs
    #[arg(long)]
    pub(super) plain: bool,
    /// Draw with ASCII characters only
    #[arg(long)]
    pub(super) ascii: bool,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(super) command: Vec<String>,
}

const RUN_HELP: &str = "\
The command gets no standard input (/dev/null), its own process group, and
PYTHONUNBUFFERED=1, MIOPEN_ENABLE_LOGGING_CMD=1 and MIOPEN_LOG_LEVEL=5 unless you or
the profile say otherwise. Everything that happens is kept in
$XDG_STATE_HOME/framepack-tui/runs/.

Signals: SIGINT ends the run gracefully (twice: at once), SIGTERM likewise, SIGHUP lets
it go on without a terminal, SIGUSR1 holds an announced restart or releases it, SIGUSR2
takes evidence.

Exit codes: 0 finished, 10 finished after a restart, 20 the workload failed, 21 hung and
given up, 22 processes survive SIGKILL, 64 usage, 65 bad profile or environment, 66
command, profile or file not found, 69 demanded device missing, 70 our bug, 73 cap above
the card, 130 interrupted, 143 terminated.

Example: framepack-tui run --cap 20GiB -- python demo_gradio.py";
