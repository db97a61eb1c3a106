//! The agent of a run: how it gets into the program, what it tells, what it is asked.

use std::fmt::Write;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::agent::inject::python_path;
use crate::agent::{
    Bound, Channel, Door, Heard, Installed, Look, Said, Subject, Told, Tracker, private_dirs, way,
};
use crate::model::event::Level;
use crate::model::{AgentWay, AttemptSpec, EnvChange, EnvOrigin, Event, ProcSample, VerdictId};
use crate::record::RunDir;
use crate::supervise::evidence::OwnStacks;
use crate::vault::{Vault, VaultError};

use super::setup::Setup;
use super::shell::Shell;

/// An answer by the socket may take this long, see `docs/agent.md`.
const BY_SOCKET: Duration = Duration::from_secs(1);
/// Stacks asked for by signal are whole once the file has not grown for a while.
const BY_SIGNAL: Duration = Duration::from_millis(700);
const WHOLE: Duration = Duration::from_millis(80);
/// Processes that are asked, and bytes that are taken of a file of stacks.
const MOST_ASKED: usize = 6;
const MOST_BYTES: u64 = 512 << 10;
/// Processes among which Python is looked for.
const MOST_IN_TREE: usize = 256;
/// The socket is looked after this often.
const MENDED: Duration = Duration::from_secs(5);

const SOCKET: &str = "FPT_AGENT_SOCKET";
const CONFIG: &str = "FPT_AGENT_CONFIG";
const PYTHONPATH: &str = "PYTHONPATH";

/// What is ready before the first attempt.
#[derive(Debug)]
pub(in crate::cli) struct Ready {
    installed: Installed,
    bound: Bound,
    vault: Option<PathBuf>,
}

/// The agent's side of the loop; nothing in it where there is none.
#[derive(Debug, Default)]
pub(super) struct Side {
    ready: Option<(Installed, Option<PathBuf>)>,
    channel: Option<Channel>,
    tracker: Tracker,
    stacks_file: Option<PathBuf>,
    mended: Option<Instant>,
    told_over: bool,
}

/// Whether an agent can be put into this command, as far as can be told before anything is
/// launched.
pub(super) fn expected(argv: &[String]) -> AgentWay {
    if crate::model::worker::is_own_worker(argv) {
        // it speaks the agent's words itself
        return AgentWay::On;
    }
    match way(argv, Path::new("/"), &Disk).python {
        Ok(()) => AgentWay::On,
        Err(why) => AgentWay::Off {
            why: format!("no agent is expected: {why}"),
        },
    }
}

/// Puts the files in place and makes the socket, or says why there is no agent.
pub(super) fn prepare(dir: &RunDir, notices: &mut Vec<String>) -> Result<Ready, String> {
    let own = own_folder(dir.path()).map_err(|e| format!("failed to create its folder: {e}"))?;
    let installed = crate::agent::install(&own).map_err(|e| format!("failed to {e}"))?;
    if let Some(why) = &installed.instead {
        notices.push(format!(
            "failed to {why}; the agent lies in the run's folder instead"
        ));
    }
    let bound = Bound::new().map_err(|e| format!("failed to {e}"))?;
    Ok(Ready {
        installed,
        bound,
        vault: vault(Vault::make_default(), notices),
    })
}

/// Where the agent keeps what a hang would cost; where there is no such place, it is said.
fn vault(found: Result<Vault, VaultError>, notices: &mut Vec<String>) -> Option<PathBuf> {
    match found {
        Ok(vault) => Some(vault.root().to_owned()),
        Err(e) => {
            notices.push(format!(
                "failed to {e}; nothing of this run is kept for a rescue"
            ));
            None
        }
    }
}

/// The agent's folder in that of the run.
fn own_folder(run: &Path) -> std::io::Result<PathBuf> {
    let own = run.join("agent");
    private_dirs(&own)?;
    Ok(own)
}

impl Side {
    /// Listens, if there is something to listen to. Must be called within the runtime.
    pub(super) fn open(
        setup: &mut Setup,
    ) -> Result<(Self, Option<tokio::sync::mpsc::Receiver<Heard>>), String> {
        let Some(ready) = setup.agent.take() else {
            return Ok((Self::default(), None));
        };
        let (channel, heard) = ready.bound.listen().map_err(|e| e.to_string())?;
        let side = Self {
            ready: Some((ready.installed, ready.vault)),
            channel: Some(channel),
            ..Self::default()
        };
        Ok((side, Some(heard)))
    }

    /// How the evidence asks for stacks; none where nobody can be asked.
    pub(super) fn stacks(&self) -> Option<OwnStacks> {
        let door = self.channel.as_ref()?.door();
        let subjects = self.tracker.subjects();
        if subjects.is_empty() {
            return None;
        }
        let file = self.stacks_file.clone();
        Some(OwnStacks::new(move || {
            stacks(&door, &subjects, file.as_deref())
        }))
    }

    /// The process that generates, and the way to it.
    fn main(&self) -> Option<(Door, Subject)> {
        let door = self.channel.as_ref()?.door();
        let main = self.tracker.main()?;
        Some((door, main))
    }

    /// The last heartbeats.
    pub(super) fn beats(&self) -> Vec<String> {
        self.tracker.beats()
    }
}

impl Shell {
    /// Puts the agent into what is launched; gives the command.
    pub(super) fn put_agent_in(
        &mut self,
        spec: &AttemptSpec,
        env: &mut Vec<EnvChange>,
    ) -> Vec<String> {
        let now = self.now();
        self.agent.tracker.begin(now, self.state.is_server());
        let mut set = |name: &str, value: Option<String>| {
            env.retain(|c| c.name != name);
            env.push(EnvChange {
                name: name.to_owned(),
                value,
                origin: EnvOrigin::Supervisor,
                overrides: None,
            });
        };
        let (Some((installed, vault)), Some(channel)) = (&self.agent.ready, &self.agent.channel)
        else {
            // a supervisor that itself was started by another one's program hands nothing on
            set(SOCKET, None);
            set(CONFIG, None);
            return spec.argv.clone();
        };
        let own = self.dir.path().join("agent");
        let stacks_file = own.join(format!("stacks-{}.txt", spec.number));
        let config = json!({
            "run": self.dir.id().to_string(),
            "attempt": spec.number,
            "resume": spec.number > 1,
            "after": self.state.answers().map(VerdictId::as_str),
            "stacks_file": stacks_file,
            "vault": vault,
            "conv_memory": own.join("conv.json"),
            "settings": self.state.agent_settings(spec),
            "time_scale": self.time_scale(),
        });
        set(SOCKET, Some(channel.path().display().to_string()));
        set(CONFIG, Some(config.to_string()));
        let folder = installed.folder.display().to_string();
        let before = self.planner.exported.get(PYTHONPATH).map(String::as_str);
        set(PYTHONPATH, Some(python_path(&folder, before)));
        let way = way(&spec.argv, &installed.folder, &Disk);
        self.agent.stacks_file = Some(stacks_file);
        self.override_users_tier(spec, env);
        way.argv
    }

    /// R11a: a rung wins over what the user has exported, and says so; the profile does
    /// not, and that is said once.
    fn override_users_tier(&mut self, spec: &AttemptSpec, env: &mut Vec<EnvChange>) {
        for (key, variable) in [("conv_tier", "FPT_CONV_TIER"), ("conv", "FPT_CONV")] {
            let own = self
                .planner
                .exported
                .get(variable)
                .filter(|v| !v.is_empty());
            let (Some(own), Some(value)) = (own.cloned(), spec.settings.get(key)) else {
                continue;
            };
            if own == *value {
                continue;
            }
            let text = if let Some(rung) = self.state.setter(key) {
                env.push(EnvChange {
                    name: variable.to_owned(),
                    value: Some(value.clone()),
                    origin: EnvOrigin::Rung,
                    overrides: Some(own.clone()),
                });
                format!("rung {rung} sets {key} = {value} in the place of your {variable}={own}")
            } else if std::mem::replace(&mut self.agent.told_over, true) {
                continue;
            } else {
                format!("your {variable}={own} shadows {key} = {value} of the profile")
            };
            self.post(Event::Notice {
                level: Level::Info,
                text,
            });
        }
    }

    /// Asks for the end of the job after this step; the answer comes as a notice.
    pub(super) fn stop_after_step(&mut self, attempt: u32) {
        let main = self.agent.main();
        let present = self.attempt.as_ref().is_some_and(|a| a.number == attempt);
        let Some((door, subject)) = main.filter(|_| present) else {
            return self.post(Event::Notice {
                level: Level::Warn,
                text: "nobody is there to end the job after a step: stop the run instead"
                    .to_owned(),
            });
        };
        let to = self.inbox();
        let ask = move || {
            let (level, text) = match door.ask(subject.conn, "stop_after_step", BY_SOCKET) {
                Ok(_) => (
                    Level::Info,
                    "the job ends after this step, once its progress bar moves".to_owned(),
                ),
                Err(e) => (
                    Level::Warn,
                    format!("failed to end the job after this step: {e}; stop the run instead"),
                ),
            };
            // the loop may be over
            let _ = to.send(Event::Notice { level, text });
        };
        self.beside("end after step", ask, |e| Event::Notice {
            level: Level::Warn,
            text: format!("failed to start a thread: {e}; stop the run instead"),
        });
    }

    /// Something came from a process.
    pub(super) fn agent_heard(&mut self, mut heard: Heard) {
        let now = self.now();
        if let Heard::Said { message, .. } = &mut heard
            && let Said::Beat { beat, .. } = &mut message.said
        {
            self.time_scale().apply_to_beat(beat);
        }
        let told = self.agent.tracker.heard(now, heard);
        self.agent_told(told);
    }

    /// Time passes for the agent.
    pub(super) fn agent_tick(&mut self, process: Option<&ProcSample>) {
        let Some(channel) = &mut self.agent.channel else {
            return;
        };
        if self.agent.mended.is_none_or(|at| at.elapsed() >= MENDED) {
            self.agent.mended = Some(Instant::now());
            channel.mend();
        }
        if self.pid.is_none() {
            return;
        }
        let root = self.pid;
        let python = || {
            let children = process.map(|p| p.children.as_slice()).unwrap_or_default();
            let named = children.iter().any(|c| c.starts_with("python"));
            root.map_or_else(Vec::new, |root| pythons(root, named))
        };
        let now = self.now();
        let told = self.agent.tracker.tick(now, &lives, &python);
        self.agent_told(told);
    }

    /// The process group of the attempt, or its root, has come to its end.
    pub(super) fn agent_ended(&mut self) {
        let told = self.agent.tracker.end_all();
        self.agent_told(told);
    }

    /// Whether the attempt is our own worker, which has told how its job ended.
    pub(super) fn has_own_worker_told(&self) -> bool {
        let attempt = self.attempt.as_ref();
        let is_own = attempt.is_some_and(|a| crate::model::worker::is_own_worker(&a.argv));
        is_own && self.agent.tracker.has_told_end()
    }

    fn agent_told(&mut self, told: Vec<Told>) {
        for (from, event) in told {
            self.post_from(from, event);
        }
    }
}

/// Files, as the kernel would find them.
struct Disk;

impl Disk {
    fn find(program: &str) -> Option<PathBuf> {
        if program.contains('/') {
            return Some(PathBuf::from(program));
        }
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path)
            .map(|dir| dir.join(program))
            .find(|p| p.is_file())
    }
}

impl Look for Disk {
    fn head(&self, program: &str) -> Option<Vec<u8>> {
        let mut head = Vec::new();
        let path = Self::find(program).filter(|p| p.is_file())?;
        let file = std::fs::File::open(path).ok()?;
        file.take(256).read_to_end(&mut head).ok()?;
        Some(head)
    }

    fn has_pth(&self, interpreter: &str) -> bool {
        let Some(dir) = Self::find(interpreter).and_then(|p| Some(p.parent()?.to_owned())) else {
            return false;
        };
        std::fs::read_dir(dir)
            .into_iter()
            .flatten()
            .flatten()
            .any(|e| e.file_name().to_string_lossy().ends_with("._pth"))
    }
}

/// Whether a process is there and no zombie.
fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(')')
        .and_then(|(_, rest)| rest.trim().chars().next());
    state.is_some_and(|s| !matches!(s, 'Z' | 'X'))
}

/// The Python processes of the tree below `root`. `named`: a child has such a name; where
/// the kernel lists no children it stands for one without a number.
fn pythons(root: u32, named: bool) -> Vec<u32> {
    if !named {
        return Some(root)
            .filter(|pid| runs_python(*pid))
            .into_iter()
            .collect();
    }
    let mut tree = vec![root];
    let mut next = 0;
    while let Some(pid) = tree
        .get(next)
        .copied()
        .filter(|_| tree.len() < MOST_IN_TREE)
    {
        next += 1;
        tree.extend(children(pid));
    }
    tree.retain(|pid| runs_python(*pid));
    if tree.is_empty() {
        tree.push(0);
    }
    tree
}

fn children(pid: u32) -> Vec<u32> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let lists = threads
        .flatten()
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    let numbers = |list: String| {
        let numbers = list.split_whitespace().filter_map(|n| n.parse().ok());
        numbers.collect::<Vec<u32>>()
    };
    lists.flat_map(numbers).collect()
}

fn runs_python(pid: u32) -> bool {
    let exe = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    let name = exe.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("python") || name.starts_with("pypy")
}

/// The stacks of each process: by the socket, or where the interpreter does not answer,
/// by the signal that the agent said to be ready for.
fn stacks(door: &Door, subjects: &[Subject], file: Option<&Path>) -> Result<String, String> {
    let mut text = String::new();
    let mut why = Vec::new();
    let asked: Vec<_> = subjects.iter().take(MOST_ASKED).collect();
    // side by side: one that hangs must not cost the others their time
    let answers: Vec<_> = std::thread::scope(|scope| {
        let handles: Vec<_> = asked
            .iter()
            .map(|s| scope.spawn(|| door.ask(s.conn, "stacks", BY_SOCKET)))
            .collect();
        handles
            .into_iter()
            .map(|h| {
                h.join()
                    .unwrap_or(Err(crate::agent::channel::AskError::Gone))
            })
            .collect()
    });
    for (subject, answer) in asked.into_iter().zip(answers) {
        let pid = subject.pid;
        match answer {
            Ok(value) => {
                let _ = writeln!(text, "==== process {pid}, by the agent");
                text.push_str(&of_threads(&value));
            }
            Err(e) => match by_signal(door, *subject, file) {
                Ok(told) => {
                    let _ = writeln!(
                        text,
                        "==== process {pid}, by SIGUSR2 (the interpreter gave {e}: native code may hold its lock)"
                    );
                    text.push_str(&told);
                }
                Err(also) => why.push(format!("process {pid}: {e}; {also}")),
            },
        }
    }
    if text.is_empty() {
        return Err(why.join("; "));
    }
    for line in why {
        let _ = writeln!(text, "==== {line}");
    }
    Ok(text)
}

/// The answer of `stacks`, as text.
fn of_threads(value: &Value) -> String {
    let mut text = String::new();
    for thread in value.as_array().into_iter().flatten() {
        let name = thread["thread"].as_str().unwrap_or("?");
        let ident = thread["ident"].as_u64().unwrap_or_default();
        let _ = writeln!(text, "Thread {name} ({ident:#x}), innermost call last:");
        for frame in thread["frames"].as_array().into_iter().flatten() {
            let _ = writeln!(text, "  {}", frame.as_str().unwrap_or("?"));
        }
    }
    text
}

fn by_signal(door: &Door, subject: Subject, file: Option<&Path>) -> Result<String, String> {
    let (true, Some(file)) = (subject.by_signal, file) else {
        return Err("its stacks cannot be asked for by signal".to_owned());
    };
    // its connection holds: the number is still that process's
    let there = door
        .peers()
        .iter()
        .any(|p| p.conn == subject.conn && p.pid == subject.pid);
    let pid = i32::try_from(subject.pid).ok().and_then(Pid::from_raw);
    let (true, Some(pid)) = (there, pid) else {
        return Err("it is gone".to_owned());
    };
    let size = || file.metadata().map_or(0, |m| m.len());
    let before = size();
    kill_process(pid, Signal::USR2).map_err(|e| format!("SIGUSR2: {e}"))?;
    let begun = Instant::now();
    let (mut last, mut grown) = (before, begun);
    while begun.elapsed() < BY_SIGNAL && (last == before || grown.elapsed() < WHOLE) {
        std::thread::sleep(Duration::from_millis(10));
        let now = size();
        if now != last {
            (last, grown) = (now, Instant::now());
        }
    }
    let mut bytes = Vec::new();
    let read = std::fs::File::open(file).and_then(|mut f| {
        f.seek(SeekFrom::Start(before))?;
        f.take(MOST_BYTES).read_to_end(&mut bytes)
    });
    match read {
        Ok(0) => Err("nothing was written after SIGUSR2".to_owned()),
        Ok(_) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(e) => Err(format!("its stacks cannot be read: {e}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vault_without_a_place_is_said() {
        let mut said = Vec::new();
        let there = vault(Ok(Vault::at("/v")), &mut said);
        assert_eq!((there, said.len()), (Some(PathBuf::from("/v")), 0));
        let source = std::io::ErrorKind::NotFound.into();
        let path = PathBuf::from("/v");
        let what = "read";
        let none = vault(Err(VaultError::Io { what, path, source }), &mut said);
        assert_eq!((none, said.len()), (None, 1));
        assert!(said[0].contains("nothing of this run is kept"), "{said:?}");
    }
}
