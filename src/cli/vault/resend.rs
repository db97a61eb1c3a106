//! `framepack-tui vault resend`: a job is sent again by hand.

use crate::cli::CliError;
use crate::vault::{Heard, Options, Sent, Server, Vault, resend};

use super::args::ResendArgs;
use super::{chosen, print, printable};

/// Sends it, says what is heard, and removes the entry when nothing of it is left to do.
pub(super) fn main(vault: &Vault, args: &ResendArgs) -> Result<u8, CliError> {
    let (_, entry) = chosen(&vault.list()?, &args.entry)?;
    let options = Options {
        wait: args.wait,
        ..Options::default()
    };
    let mut trouble = None;
    let sent = resend(&entry, Server::local(args.port), options, &mut |heard| {
        // the job goes on, whoever reads
        trouble = say(&heard).err().or(trouble.take());
    })?;
    let (told, left) = summary(&sent);
    print([printable(&told)])?;
    if let Some(left) = left {
        return Err(CliError::NotDone(printable(&left)));
    }
    if !args.keep {
        vault.remove(&entry)?;
    }
    trouble.map_or(Ok(0), Err)
}

fn say(heard: &Heard) -> Result<(), CliError> {
    let line = match heard {
        Heard::Taken { id } => format!("taken: {id}"),
        Heard::Progress(text) => text.clone(),
        Heard::File(path) => format!("file {path}"),
        Heard::Queued { id } => format!("queued: {id}"),
    };
    print([printable(&line)])
}

/// The last line, and what is left to be done.
fn summary(sent: &Sent) -> (String, Option<String>) {
    let whole = sent.is_whole();
    match sent {
        Sent::FramePack { files, sections } => {
            let of = sections
                .map(|n| format!(" for {n} sections"))
                .unwrap_or_default();
            let told = format!("the job is over: {} files{of}", files.len());
            let left = "it failed or was stopped; the server's console says why".to_owned();
            (told, (!whole).then_some(left))
        }
        Sent::ComfyUi {
            queued,
            there,
            refused,
        } => {
            let told = format!(
                "{} graphs queued, {} were in the queue already, {} refused",
                queued.len(),
                there.len(),
                refused.len()
            );
            let first = refused.first();
            let left = first.map(|(id, why)| format!("the server refuses {id}: {why}"));
            (told, left)
        }
    }
}
