//! Asks an interpreter what it has. It is killed, with all that it started, when it
//! does not answer in time.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde::Deserialize;

use super::file;
use crate::doctor::facts::{PythonAnswer, PythonOutcome, TorchFacts};
use crate::model::time::millis;

/// What it is given to run. torch is not imported: that is slow and may touch the card.
const PROBE: &str = include_str!("probe.py");
/// Begins the line of the answer; start-up files of the user may print as well.
const MARK: &str = "framepack-tui-doctor:";
/// More output than this is no answer.
const LONGEST: u64 = 1 << 20;
/// Once it has ended, how long its output may still take.
const LAST_WORDS: Duration = Duration::from_secs(2);

#[derive(Debug, Deserialize)]
struct Raw {
    version: String,
    executable: String,
    prefix: String,
    packages: BTreeMap<String, String>,
    torch: Option<RawTorch>,
    write_video: Option<bool>,
    #[serde(default)]
    uv: bool,
    #[serde(default)]
    externally_managed: bool,
    rocm_sdk: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct RawTorch {
    version: Option<String>,
    hip: Option<String>,
    cuda: Option<String>,
    folder: String,
}

/// Asks the interpreter at `path`, run in `cwd`.
pub(super) fn ask(path: &Path, cwd: &Path, limit: Duration) -> PythonOutcome {
    let begun = Instant::now();
    let child = Command::new(path)
        .args(["-c", PROBE, MARK])
        .current_dir(cwd)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(e) => {
            let why = format!("{} cannot be run: {}", path.display(), file::words(&e));
            return PythonOutcome::Missing(why);
        }
    };
    let output = child.stdout.take().map(reader);
    let errors = child.stderr.take().map(reader);
    let ended = wait(&mut child, begun, limit);
    // whatever it has started must not outlive this
    end_group(&mut child);
    let Some(status) = ended else {
        return PythonOutcome::NoAnswer(limit.as_secs());
    };
    let text = |of: Option<Receiver<String>>| {
        of.and_then(|r| r.recv_timeout(LAST_WORDS).ok())
            .unwrap_or_default()
    };
    let (output, errors) = (text(output), text(errors));
    match read_answer(&output) {
        Ok(mut answer) => {
            answer.took_ms = millis(begun.elapsed());
            PythonOutcome::Answered(Box::new(answer))
        }
        Err(why) => PythonOutcome::Failed(format!(
            "{why} ({status}){}",
            errors
                .lines()
                .rfind(|l| !l.trim().is_empty())
                .map(|l| format!(": {}", short(l)))
                .unwrap_or_default()
        )),
    }
}

/// Reads a pipe to its end, on a thread of its own: whoever holds the other end may
/// live for ever.
fn reader(pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    // without a thread there is no output, and that is told as no answer
    let _ = thread::Builder::new().spawn(move || {
        let mut bytes = Vec::new();
        // what came before an error still counts
        let _ = pipe.take(LONGEST).read_to_end(&mut bytes);
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}

fn wait(child: &mut Child, begun: Instant, limit: Duration) -> Option<std::process::ExitStatus> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if begun.elapsed() < limit => thread::sleep(Duration::from_millis(5)),
            _ => return None,
        }
    }
}

fn end_group(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // gone already: all the better
        let _ = kill_process_group(group, Signal::KILL);
    }
    let begun = Instant::now();
    // one in uninterruptible sleep is left to init
    while matches!(child.try_wait(), Ok(None)) && begun.elapsed() < LAST_WORDS {
        thread::sleep(Duration::from_millis(5));
    }
}

fn short(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}

/// The answer within the output.
fn read_answer(output: &str) -> Result<PythonAnswer, String> {
    let line = output.lines().rev().find_map(|l| l.strip_prefix(MARK));
    let Some(line) = line else {
        let said = output.lines().find(|l| !l.trim().is_empty());
        return Err(said.map_or_else(
            || "it printed nothing".to_owned(),
            |l| format!("it printed `{}`, not the answer", short(l)),
        ));
    };
    let raw: Raw = serde_json::from_str(line).map_err(|e| format!("its answer is broken: {e}"))?;
    Ok(PythonAnswer {
        version: raw.version,
        executable: raw.executable,
        prefix: raw.prefix,
        packages: raw.packages,
        torch: raw.torch.map(|t| TorchFacts {
            version: t.version.unwrap_or_default(),
            hip: t.hip,
            cuda: t.cuda,
            folder: t.folder,
        }),
        write_video: raw.write_video,
        uv: raw.uv,
        externally_managed: raw.externally_managed,
        rocm_sdk: raw.rocm_sdk,
        took_ms: 0,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_answer_is_found_among_what_else_is_printed() {
        let json = r#"{"version":"3.12.1","executable":"/p","prefix":"/","packages":{"torch":"2.9"},"torch":{"version":"2.9.0+rocm6.4","hip":"6.4.1","cuda":null,"folder":"/t"},"write_video":true,"rocm_sdk":[]}"#;
        let answer = read_answer(&format!("hello\n{MARK}{json}\nbye\n")).unwrap();
        let torch = answer.torch.unwrap();
        assert_eq!(torch.hip.as_deref(), Some("6.4.1"));
        assert_eq!(torch.release(), Some((2, 9)));
        assert_eq!(read_answer("").unwrap_err(), "it printed nothing");
        assert!(read_answer("Hi\n").unwrap_err().contains("`Hi`"));
        assert!(
            read_answer(&format!("{MARK}{{}}"))
                .unwrap_err()
                .contains("broken")
        );
    }

    proptest! {
        #[test]
        fn any_output_is_survived(text in "\\PC{0,80}", marked: bool) {
            let text = if marked { format!("{MARK}{text}") } else { text };
            prop_assert!(read_answer(&text).is_err());
        }
    }
}
