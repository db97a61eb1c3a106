//! Arguments.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use serde::{Deserialize, Serialize};

pub(super) use super::vault::args::VaultArgs;
use super::worker::{DecodeArgs, EncodeArgs, OwnWorker, WorkerArgs};

use crate::model::os_text;
use crate::model::{Bytes, exit};
use crate::profile::schema::AgentUse;

/// Watches a video generation on your GPU, tells a silent hang from honest work,
/// and starts a dead run again on a fallback.
#[derive(Debug, Parser)]
#[command(name = "framepack-tui", version = env!("FPT_VERSION"), about, long_about = None)]
#[command(args_conflicts_with_subcommands = true, after_help = start_help())]
pub(super) struct Args {
    #[command(subcommand)]
    pub(super) command: Option<Subcommand>,
    #[command(flatten)]
    pub(super) start: StartArgs,
}

/// How the start screen is shown.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(super) struct StartArgs {
    /// No screen: print once what is there, for screen readers and logs
    #[arg(long)]
    pub(super) plain: bool,
    /// Draw with ASCII characters only
    #[arg(long)]
    pub(super) ascii: bool,
}

#[derive(Debug, clap::Subcommand)]
pub(super) enum Subcommand {
    /// Run a generation under supervision
    Run(Box<RunArgs>),
    /// Attach to a run that goes on, or look at one that is over
    Follow(FollowArgs),
    /// Judge a process that is running already; it is ended on your word alone
    Watch(WatchArgs),
    /// The recorded runs: list them (without a further word), show, export or remove them
    Runs(RunsArgs),
    /// What was kept of generations (without a further word a list): latents, finished
    /// sections, jobs; show, remove, send a job again
    Vault(VaultArgs),
    /// Decode latents to a video without Python: a file's, or what the vault kept of a dead run
    Decode(Box<DecodeArgs>),
    /// Encode a video to latents without Python
    Encode(Box<EncodeArgs>),
    /// Put a record through today's rules, beside what was said then
    Replay(ReplayArgs),
    /// Look the machine over: sources, rights, versions, MIOpen, environment, room
    Doctor(DoctorArgs),
    /// Say what happened in a recording: a run, a case folder, a pasted console log
    Diagnose(DiagnoseArgs),
    /// Print what every card reads: once, or as a stream
    Gpus(GpusArgs),
    /// Started by `run` itself: holds the workload, so that none of it survives us
    #[command(hide = true)]
    Guardian {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Started by `run` on a terminal: supervises it in a session of its own
    #[command(hide = true)]
    Supervise {
        #[arg(last = true)]
        args: Vec<OsString>,
    },
    /// Started by `decode` and `encode`: computes, and tells what it does
    #[command(hide = true)]
    Worker(WorkerArgs),
    /// Started by the program itself: asks librocm_smi64, which may abort or block
    #[cfg(feature = "rocm-smi")]
    #[command(hide = true)]
    RocmSmiReader,
}

#[derive(Debug, Serialize, Deserialize, clap::Args)]
#[command(after_long_help = run_help())]
pub(super) struct RunArgs {
    /// Profile: an id, or a file. Without it the best matching one is taken and named
    #[arg(long, value_name = "NAME|FILE")]
    pub(super) profile: Option<String>,
    /// VRAM cap, such as 20GiB; wins over the profile's
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true)]
    pub(super) cap: Option<Bytes>,
    /// Card to supervise: its number in the list of cards, or its PCI address. Without
    /// it the one that `HIP_VISIBLE_DEVICES` and the like show the command first
    #[arg(long, value_name = "N|PCI")]
    pub(super) gpu: Option<String>,
    /// Working directory of the command
    #[arg(long, value_name = "DIR")]
    #[serde(with = "os_text::optional_path")]
    pub(super) cwd: Option<PathBuf>,
    /// Take native stacks with each bundle of evidence: gdb stops the program for a moment
    #[arg(long)]
    pub(super) gdb: bool,
    /// End a process that stays after its result was written: SIGTERM when nothing has moved
    /// for 3 min, exit code 0
    #[arg(long)]
    pub(super) end_after_result: bool,
    /// Put the agent into the program's Python, or leave it out (docs/agent.md). Without it
    /// the profile says, else auto
    #[arg(long, value_name = "auto|off")]
    pub(super) agent: Option<AgentChoice>,
    /// Write the supervisor's own log, supervisor.log in the run's folder: for faults of
    /// framepack-tui itself. FILTER is a level (debug without it), or target=level,...
    #[arg(
        long, env = "FPT_LOG", value_name = "FILTER",
        num_args = 0..=1, require_equals = true, default_missing_value = "debug"
    )]
    pub(super) log: Option<String>,
    #[command(flatten)]
    pub(super) show: ShowArgs,
    /// The command is our own worker.
    #[arg(skip)]
    pub(super) own: Option<OwnWorker>,
    /// The command and its arguments
    #[serde(skip)]
    #[arg(last = true, required = true, value_name = "CMD", value_parser = command_word())]
    pub(super) command: Vec<String>,
}

/// Whether the agent is put into the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
pub(super) enum AgentChoice {
    /// Where the command is Python, or starts it.
    Auto,
    /// Nowhere.
    Off,
}

impl From<AgentChoice> for AgentUse {
    fn from(choice: AgentChoice) -> Self {
        match choice {
            AgentChoice::Auto => Self::Auto,
            AgentChoice::Off => Self::Off,
        }
    }
}

/// How a run is shown.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, clap::Args)]
pub(super) struct ShowArgs {
    /// No screen: one JSON object a line on standard output
    #[arg(long, conflicts_with = "plain")]
    pub(super) headless: bool,
    /// No screen: plain lines, for screen readers and logs
    #[arg(long)]
    pub(super) plain: bool,
    /// Draw with ASCII characters only
    #[arg(long)]
    pub(super) ascii: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_long_help = FOLLOW_HELP)]
pub(super) struct FollowArgs {
    #[command(flatten)]
    pub(super) show: ShowArgs,
    /// The run: its id, the beginning of one, the path of its folder, or `last`; without
    /// it the newest that still runs, else the newest
    pub(super) run: Option<String>,
}

#[derive(Debug, clap::Args)]
#[command(after_long_help = WATCH_HELP)]
pub(super) struct WatchArgs {
    /// The process
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) pid: u32,
    /// Read its console from this file, from its end on; without it from the files that
    /// its standard output and standard error are, if they are files
    #[arg(long, value_name = "FILE")]
    pub(super) log: Option<PathBuf>,
    /// A job is in flight: silence is judged, also where the console does not say so
    #[arg(long)]
    pub(super) job: bool,
    /// Profile: an id, or a file. Without it the best matching one is taken and named
    #[arg(long, value_name = "NAME|FILE")]
    pub(super) profile: Option<String>,
    /// Card to watch: its number in the list of cards, or its PCI address. Without it
    /// the one of which the process holds most
    #[arg(long, value_name = "N|PCI")]
    pub(super) gpu: Option<String>,
    /// Take native stacks with each bundle of evidence: gdb stops the program for a moment
    #[arg(long)]
    pub(super) gdb: bool,
    #[command(flatten)]
    pub(super) show: ShowArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct RunsArgs {
    #[command(subcommand)]
    pub(super) command: Option<RunsCommand>,
}

#[derive(Debug, clap::Subcommand)]
pub(super) enum RunsCommand {
    /// One a line, newest first: id, when, state, command
    List {
        /// One JSON object a line (docs/events.md)
        #[arg(long)]
        json: bool,
    },
    /// One run: what, when, attempts, verdict, evidence, end
    Show {
        /// The run: its id, the beginning of one, the path of its folder, or `last`
        run: Option<String>,
        /// Its events, one JSON object a line (docs/events.md)
        #[arg(long)]
        json: bool,
    },
    /// Write one redacted file about a run, for a bug report
    Export(ExportArgs),
    /// Remove old records; never one of a run that goes on
    Prune(PruneArgs),
}

#[derive(Debug, clap::Args)]
#[command(after_long_help = EXPORT_HELP)]
pub(super) struct ExportArgs {
    /// The run: its id, the beginning of one, the path of its folder, or `last`
    pub(super) run: Option<String>,
    /// The file, or the folder that it goes to; without it framepack-tui-RUN.tgz here
    #[arg(long, short, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Replace a file of that name
    #[arg(long, short)]
    pub(super) force: bool,
    /// Add console lines, arguments, values of variables, paths, names, stacks and other
    /// evidence, less what looks like a secret or a prompt; `--with-text=all` leaves prompts in
    #[arg(
        long,
        value_name = "WHICH",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "searched"
    )]
    pub(super) with_text: Option<WithText>,
    /// Do not ask whether the text may go out
    #[arg(long, requires = "with_text")]
    pub(super) yes: bool,
    /// The former name of `--with-text=all`
    #[arg(long, hide = true)]
    pub(super) with_prompt: bool,
}

/// A word of a command, which may be any bytes.
fn command_word() -> impl clap::builder::TypedValueParser<Value = String> {
    use clap::builder::TypedValueParser;
    clap::builder::OsStringValueParser::new().map(|word| crate::model::os_text::from_os(&word))
}

/// Which free text goes into an exported file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum WithText {
    /// All but what looks like a secret or a prompt
    Searched,
    /// The same with prompts
    All,
}

#[derive(Debug, Clone, Copy, clap::Args)]
pub(super) struct PruneArgs {
    /// Keep the newest N whatever their age; without it and --older 100
    #[arg(long, value_name = "N")]
    pub(super) keep: Option<usize>,
    /// Remove only runs whose last event is at least so many days old
    #[arg(long, value_name = "DAYS")]
    pub(super) older: Option<u32>,
    /// Only say what would be removed
    #[arg(long)]
    pub(super) dry_run: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_long_help = REPLAY_HELP)]
pub(super) struct ReplayArgs {
    /// The run: its id, the beginning of one, the path of its folder, `last`, a file of
    /// JSON lines, or a bundle
    pub(super) run: Option<String>,
    /// Print what happens as plain lines in real time, N times as fast
    #[arg(long, value_name = "N", value_parser = speed)]
    pub(super) speed: Option<f64>,
    /// Exit with 1 where today's rules say anything earlier, later, new, or no more
    #[arg(long)]
    pub(super) assert: bool,
}

fn speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(speed) if (0.01..=1e6).contains(&speed) => Ok(speed),
        _ => Err("a number from 0.01 to 1000000".to_owned()),
    }
}

const EXPORT_HELP: &str = "\
Taken out are home folders, names of accounts and of the machine, tokens, keys and passwords,
addresses of mail, networks and devices, serial numbers, and prompts. What is private and looks
like anything else cannot be told: look through the file before you publish it. It holds a
summary (README.md), the events, the evidence, and a list of what is not in it.

Exit codes: 0 written, 64 a file of that name is there (--force replaces it), or none can be
written there, 65 the record cannot be read, 66 no such run.";

const REPLAY_HELP: &str = "\
The inputs of the record (readings, console, kernel, signals, keys) are judged anew. Verdicts,
decisions and what follows from them (attempts, evidence, signals, the end) are compared with
those in the record: the same, earlier, later, new or lost.

Exit codes: 0 replayed; 1 with --assert, and something differs; 65 the record cannot be read;
66 no such run.";

#[derive(Debug, clap::Args)]
#[command(after_long_help = DOCTOR_HELP)]
pub(super) struct DoctorArgs {
    /// One JSON object on standard output (docs/doctor.md)
    #[arg(long)]
    pub(super) json: bool,
    /// Only what is wrong or worth knowing: nothing that is in order, no facts
    #[arg(long, short, conflicts_with = "json")]
    pub(super) quiet: bool,
    /// Draw with ASCII characters only
    #[arg(long)]
    pub(super) ascii: bool,
    /// Python to ask for its versions; without it that of the command, else the active one
    #[arg(long, value_name = "PATH")]
    pub(super) python: Option<PathBuf>,
    /// Seconds that Python may take to answer
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(super) timeout: u64,
    /// Profile to look at; without it the one that a run would take
    #[arg(long, value_name = "NAME|FILE")]
    pub(super) profile: Option<String>,
    /// Working directory of the command
    #[arg(long, value_name = "DIR")]
    pub(super) cwd: Option<PathBuf>,
    /// The command that is to be run, and its arguments; it is not started
    #[arg(last = true, value_name = "CMD")]
    pub(super) command: Vec<String>,
}

const DOCTOR_HELP: &str = "\
Nothing is changed, no card is woken, neither the command nor torch is started; Python is
asked for the versions of its packages and killed if it does not answer.

Exit codes: 0 clean, 1 warnings, 2 errors; 64 usage, 65 broken profile, 66 profile or folder not found.

Example: framepack-tui doctor -- python demo_gradio.py";

#[derive(Debug, clap::Args)]
#[command(after_long_help = DIAGNOSE_HELP)]
pub(super) struct DiagnoseArgs {
    /// A run (its id, the beginning of one, its folder, or `last`), a case folder, or the
    /// text of a console; `-` reads it from standard input
    #[arg(value_name = "PATH")]
    pub(super) path: String,
    /// One JSON object on standard output (docs/diagnose.md)
    #[arg(long)]
    pub(super) json: bool,
    /// Draw with ASCII characters only
    #[arg(long)]
    pub(super) ascii: bool,
}

const DIAGNOSE_HELP: &str = "\
A record and a case are judged to their end by today's rules. A pasted text shows
only what it says: a hang shows in it where its lines have times.

Exit codes: 0 judged, whatever the verdict; 64 usage, 65 a file is broken, of another
version or no text, 66 no such run or file.

Examples: framepack-tui diagnose last
          docker logs comfyui 2>&1 | framepack-tui diagnose -";

#[derive(Debug, clap::Args)]
#[command(after_long_help = GPUS_HELP)]
pub(super) struct GpusArgs {
    /// One JSON object a line
    #[arg(long)]
    pub(super) json: bool,
    /// Again and again, until Ctrl-C
    #[arg(long)]
    pub(super) watch: bool,
    /// Time between two readings, such as 2 (seconds) or 500ms
    #[arg(long, value_name = "TIME", default_value = "1s", requires = "watch", value_parser = super::gpus::interval)]
    pub(super) interval: Duration,
    /// Only this card: its number in the list of cards, or its PCI address
    #[arg(long, value_name = "N|PCI")]
    pub(super) gpu: Option<String>,
    /// Print ASCII characters only
    #[arg(long)]
    pub(super) ascii: bool,
}

fn start_help() -> String {
    let codes = exit::ALL.iter().map(|m| (m.code, m.text));
    format!("{START_HELP}\n\n{}", exit::words(codes))
}

const START_HELP: &str = "\
Without a command the start screen is shown: the cards, the generations found running,
the recorded runs and the profiles, with one key to start a command.";

const GPUS_HELP: &str = "\
Cards are in the order of their PCI addresses; HIP or CUDA and a number is the place in the
list that programs see. What a card does not offer is `--`, what failed says why, what is
old says how old; a card that sleeps is not woken.

Exit codes: 0 printed, also where there is no card (it says why); 69 the card that was
asked for is not there.";

const FOLLOW_HELP: &str = "\
Leaving (q, Ctrl-C) does not touch the run. While it goes on, all keys work as where it was
started, over a socket in the run's folder; where that cannot be reached, stop, kill, hold and
evidence are sent as signals.

Exit codes: 0 the run is over, or you left; 65 the record is broken; 66 no such run.";

const WATCH_HELP: &str = "\
The process is read in /proc and not touched: leaving (q, Ctrl-C, SIGINT, SIGTERM, SIGHUP)
leaves it alone. It is never ended or started again by itself; a hang is told with evidence
and advice. On the screen k and s end it, and ask first. SIGUSR2 takes evidence.
A terminal or a pipe cannot be read from outside: without a console whether a job is in
flight is not known, and silence is judged only with --job. The record is one like a run's.

Exit codes: 0 you left, or it ended and how is not known; 20 it ended and console or kernel
say that it failed; 22 it survives SIGKILL; 64 not a process to watch (process 1, the
kernel's, one above this program, one that a run supervises); 66 no such process or log;
69 no such card; 130 you ended it.

Example: framepack-tui watch --pid $(pgrep -f demo_gradio.py) --job";

fn run_help() -> String {
    let of_run = exit::ALL.iter().filter_map(|m| Some((m.code, m.of_run?)));
    let codes = exit::words(of_run);
    format!(
        "{RUN_HELP}\n\n{codes}\n\nExample: framepack-tui run --cap 20GiB -- python demo_gradio.py"
    )
}

const RUN_HELP: &str = "\
The command gets no standard input (/dev/null), its own process group, the variable
FRAMEPACK_TUI_MARK (by which whatever it leaves behind is found and ended), and
PYTHONUNBUFFERED=1, MIOPEN_ENABLE_LOGGING_CMD=1 and MIOPEN_LOG_LEVEL=5 unless you or
the profile say otherwise. Everything that happens is kept in
$XDG_STATE_HOME/framepack-tui/runs/.

On a terminal this is only the screen of a supervisor in a session of its own: detaching (q)
ends the screen with 0, and `framepack-tui follow` attaches again.

Signals: SIGINT ends the run gracefully (twice: at once), SIGTERM likewise, SIGHUP lets
it go on without a terminal, SIGUSR1 holds an announced restart or releases it, SIGUSR2
takes evidence.";
