//! The hidden `supervise`: the process that supervises a run which is started on a terminal.
//!
//! It has a session of its own, so that nothing that happens to the terminal reaches it. The
//! process that started it is only a screen.
//!
//! | descriptor | what |
//! | --- | --- |
//! | 0 | stream socket to the screen: the options of the run come first, then its [requests] |
//! | 1 | `/dev/null` |
//! | 2 | pipe to the screen, which prints it when the terminal is free |
//!
//! [requests]: crate::supervise::control::ToSupervisor

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};

use rustix::fs::OFlags;

use crate::cli::CliError;
use crate::cli::args::RunArgs;
use crate::model::os_text;
use crate::supervise::control::{ToViewer, encode};

use super::front::Front;
use super::{Ready, decided, runtime, setup};

/// This program's own file, also when it was replaced meanwhile.
const OWN_EXE: &str = "/proc/self/exe";
/// Longest text of the options.
const LONGEST_OPTIONS: u32 = 1 << 20;

/// A supervisor that was started.
#[derive(Debug)]
pub(super) struct Supervisor {
    pub(super) process: Child,
    pub(super) socket: UnixStream,
    /// What it says on its standard error.
    pub(super) words: io::PipeReader,
}

/// Starts the process.
pub(super) fn start(args: &RunArgs) -> io::Result<Supervisor> {
    let (socket, theirs) = UnixStream::pair()?;
    let (words, said) = io::pipe()?;
    // a screen that is stopped reads nothing, and must not hold up whoever writes
    rustix::fs::fcntl_setfl(&said, rustix::fs::fcntl_getfl(&said)? | OFlags::NONBLOCK)?;
    let process = Command::new(OWN_EXE)
        .args(["supervise", "--"])
        .args(args.command.iter().map(|word| os_text::to_os(word)))
        .stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(said)
        .spawn()?;
    let options = serde_json::to_vec(args)?;
    let length = u32::try_from(options.len()).map_err(io::Error::other)?;
    (&socket).write_all(&length.to_le_bytes())?;
    (&socket).write_all(&options)?;
    Ok(Supervisor {
        process,
        socket,
        words,
    })
}

/// Supervises a run whose command is `words`; gives the exit code.
pub(in crate::cli) fn main(words: &[OsString]) -> Result<u8, CliError> {
    let screen = detach().map_err(|why| CliError::System {
        what: "leave the terminal",
        why,
    })?;
    match prepare(&screen, words) {
        Ok(ready) => ready.supervise(),
        Err(why) => {
            let exit_code = why.exit_code();
            let refused = ToViewer::Refused {
                why: why.to_string(),
                report: why.report(),
                exit_code,
            };
            // a screen that is gone reads nothing
            let _ = encode(&refused).map(|line| (&screen).write_all(&line));
            Ok(exit_code)
        }
    }
}

/// Takes the socket, and leaves the session of the terminal.
fn detach() -> io::Result<UnixStream> {
    let screen = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    rustix::process::setsid()?;
    Ok(UnixStream::from(screen))
}

fn prepare(screen: &UnixStream, words: &[OsString]) -> Result<Ready, CliError> {
    let system = |what| move |why| CliError::System { what, why };
    let mut args = options(screen).map_err(system("read the options of the run"))?;
    args.command = words.iter().map(|word| os_text::from_os(word)).collect();
    let mut asked = setup::judge(&args)?;
    asked.person_watches = true;
    let runtime = runtime()?;
    let front = {
        let _signals_need_it = runtime.enter();
        let socket = screen.try_clone().map_err(system("serve the screen"))?;
        Front::for_viewers(socket)?
    };
    decided(setup::setup(&args, asked), front, runtime).map_err(|refused| refused.why)
}

fn options(mut screen: &UnixStream) -> io::Result<RunArgs> {
    let mut length = [0; 4];
    screen.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length);
    if length > LONGEST_OPTIONS {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut text = vec![0; length as usize];
    screen.read_exact(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}
