//! Arguments of `vault`.

use std::time::Duration;

use crate::model::Bytes;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct VaultArgs {
    #[command(subcommand)]
    pub(super) command: Option<VaultCommand>,
}

#[derive(Debug, clap::Subcommand)]
pub(super) enum VaultCommand {
    /// One a line, newest first: number, what, run, attempt, age, size, what is in it
    List {
        /// One JSON object a line (docs/vault.md)
        #[arg(long)]
        json: bool,
    },
    /// One entry: decoder, shape, section, run, attempt, age, size, whether it is whole
    #[command(after_long_help = SHOW_HELP)]
    Show {
        /// The entry: its number in the list, or the beginning of its name or of what
        /// follows the run in it
        entry: String,
        /// One JSON object (docs/vault.md)
        #[arg(long)]
        json: bool,
    },
    /// Remove entries; never the newest of its kind of a run that goes on
    #[command(after_long_help = PRUNE_HELP)]
    Prune(PruneArgs),
    /// Send a job again to a server on this machine, and follow it to its end
    #[command(after_long_help = RESEND_HELP)]
    Resend(ResendArgs),
}

#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("meant").required(true).multiple(true)
    .args(["keep", "older", "run", "entries"])))]
pub(super) struct PruneArgs {
    /// Keep this much, such as 500MiB or 0, and remove the oldest beyond it
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(super) keep: Option<Bytes>,
    /// Remove only what is at least so old, such as 3days or 12h
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(super) older: Option<Duration>,
    /// Remove only what is of this run: its id, or the beginning of it
    #[arg(long, value_name = "ID")]
    pub(super) run: Option<String>,
    /// These entries, as for `show`
    #[arg(
        value_name = "ENTRY",
        conflicts_with_all = ["keep", "older", "run"]
    )]
    pub(super) entries: Vec<String>,
    /// Only say what would be removed
    #[arg(long)]
    pub(super) dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct ResendArgs {
    /// The entry, as for `show`: a job of FramePack or a queue of ComfyUI
    pub(super) entry: String,
    /// Port of the server on 127.0.0.1
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) port: u16,
    /// How long to wait for the server to come up
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    pub(super) wait: Duration,
    /// Leave the entry in the vault also when the job is done
    #[arg(long)]
    pub(super) keep: bool,
}

/// A size; nothing is nothing without a unit, too.
fn size(text: &str) -> Result<Bytes, String> {
    match text.trim() {
        "0" => Ok(Bytes(0)),
        text => text.parse::<Bytes>().map_err(|e| e.to_string()),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|e| format!("{e}; write such as 3days, 12h or 30s"))
}

const SHOW_HELP: &str = "\
All data of the entry are read, to see whether they are what was written. The prompt is shown
where it was stored: always with a job of FramePack, with latents only where the setting
vault_prompt is on.

Exit codes: 0 whole, 65 torn, changed, of another version or none of ours, 66 no such entry.";

const PRUNE_HELP: &str = "\
Nothing is asked. With --keep the oldest go until no more than SIZE is left; --older and --run
narrow down what may go, and alone remove all of it. Files that are none of the vault's go only
by name.

Exit codes: 0 removed, 64 nothing is named, 66 no such entry or run, 70 it cannot be removed.";

const RESEND_HELP: &str = "\
A job of FramePack is followed until it is over. Leaving earlier (Ctrl-C) hangs up: the page's
generator stops, and what the worker still makes is not told to anybody. Graphs of ComfyUI are put
into its queue, front to back, without those that are in it already. The entry goes when as many
files came as the job has sections, or every graph is queued.

Exit codes: 0 done, 20 the job failed, was refused or lost, 65 the entry is no whole job, 66 no
such entry, 69 no server answers.

Example: framepack-tui vault resend 1 --port 7860";
