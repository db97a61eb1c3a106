//! The agent inside the program's Python: real binary, real Python.

#[cfg(test)]
mod step;
#[cfg(test)]
mod ways;

use std::path::{Path, PathBuf};
use std::time::Duration;

use framepack_tui::model::{AgentNote, AgentWord, Event, JobChange, Phase, Speaker};

use crate::harness::{Finished, Home, Start, python};

const LIMIT: Duration = Duration::from_mins(3);

/// A Python that speaks by the agent's own functions, as its hooks do.
const WORKS: &str = "
import sys, time
state = sys.modules['fpt_agent.state']
state.link.send('job', state='started')
with state.state.span('sampling', section=1, sections=2):
    state.link.send('progress', n=1.0, total=2.0, desc='steps', unit='it')
    time.sleep(0.4)
state.link.send('job', state='ended')
print('sys.path has the folder:', any('tui/agent' in p for p in sys.path))
";

/// Nothing is said about the agent: it is there.
fn with_agent(home: &Home) -> Start<'_> {
    Start::new(home)
}

fn words(run: &Finished) -> Vec<AgentNote> {
    run.all(|e| match e {
        Event::Agent(note) => Some((**note).clone()),
        _ => None,
    })
}

fn hellos(run: &Finished) -> usize {
    let all = words(run);
    let hello = |n: &&AgentNote| matches!(n.word, AgentWord::Hello(_));
    all.iter().filter(hello).count()
}

fn lines(run: &Finished) -> String {
    let all = run.all(|e| match e {
        Event::Line(l) => Some(l.text.clone()),
        _ => None,
    });
    all.join("\n")
}

/// Events that the agent told.
fn told(run: &Finished) -> Vec<&Event> {
    let by_agent = run
        .events
        .iter()
        .filter(|h| h.envelope.from == Some(Speaker::Agent));
    by_agent.map(|h| &h.envelope.event).collect()
}

#[test]
fn phases_progress_and_jobs_of_the_agent_are_events() {
    let home = Home::new();
    let run = with_agent(&home).python(WORKS).start().finish(LIMIT);
    run.assert_exit(0);
    assert_eq!(hellos(&run), 1, "{}", run.digest());
    assert!(words(&run).iter().any(|n| n.word == AgentWord::Main));
    assert!(words(&run).iter().any(|n| n.word == AgentWord::Ended));
    let told = told(&run);
    let sampling = told.iter().any(
        |e| matches!(e, Event::Phase(p) if p.phase == Phase::Sampling && p.sections == Some(2)),
    );
    let bar = told
        .iter()
        .any(|e| matches!(e, Event::Progress(p) if (p.done - 1.0).abs() < 1e-9 && p.sampling));
    let jobs: Vec<_> = told
        .iter()
        .filter_map(|e| match e {
            Event::Job(j) => Some(j.clone()),
            _ => None,
        })
        .collect();
    assert!(sampling && bar, "{told:?}");
    assert_eq!(jobs, [JobChange::Started, JobChange::Done]);
    assert!(lines(&run).contains("sys.path has the folder: False"));

    // nothing is left but the package and the record
    let left = |sub: &str| std::fs::read_dir(home.path(sub)).unwrap().count();
    assert_eq!((left("runtime"), left("tmp")), (0, 0));
    let cache = home.path("cache/framepack-tui/agent");
    let version: PathBuf = std::fs::read_dir(cache)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    assert!(version.join("fpt_agent/link.py").is_file());
    // neither the record nor the attempt shows private folders
    let record = crate::harness::recorded_text(&home.record());
    for private in ["FPT_AGENT", "fpt_run.py", "framepack-tui/agent"] {
        assert!(!record.contains(private), "{private}");
    }
}

#[test]
fn children_that_fork_speak_for_themselves() {
    let home = Home::new();
    let program = "
import os, sys, time
state = sys.modules['fpt_agent.state']
state.state.set_phase('sampling')
pids = []
for n in range(2):
    pid = os.fork()
    if pid == 0:
        time.sleep(1.2)
        sys.exit(0)
    pids.append(pid)
for pid in pids:
    os.waitpid(pid, 0)
state.state.set_phase('save')
time.sleep(0.5)
";
    let run = with_agent(&home).python(program).start().finish(LIMIT);
    run.assert_exit(0);
    assert_eq!(hellos(&run), 3, "{:?}", words(&run));
    let phases: Vec<_> = told(&run)
        .iter()
        .filter_map(|e| match e {
            Event::Phase(p) => Some(p.phase),
            _ => None,
        })
        .collect();
    assert_eq!(phases, [Phase::Sampling, Phase::Save]);
}

/// A page that waits for its user, and a worker of its own that hangs in a convolution.
const PAGE: &str = "
import multiprocessing, sys, threading, time, types

def work():
    from fpt_agent import phases
    from fpt_agent.state import state
    tensor = types.SimpleNamespace(shape=(1, 16, 9, 64, 64), dtype='torch.float16', device='cuda:0')
    with phases.Job('worker'), state.span('vae_decode'):
        state.ops[threading.get_ident()] = 'conv3d', tensor, tensor, 'native', state.number()
        print('hangs in', threading.get_native_id(), flush=True)
        time.sleep(600)

if __name__ == '__main__':
    from fpt_agent.state import state
    state.set_phase('idle')
    worker = multiprocessing.get_context('spawn').Process(target=work)
    worker.start()
    worker.join()
";

#[test]
fn a_worker_that_hangs_beside_an_idle_page_is_heard() {
    let home = Home::new();
    let page = home.path("page.py");
    std::fs::write(&page, PAGE).unwrap();
    let mut run = with_agent(&home)
        .command(&[python().as_os_str(), page.as_os_str()])
        .start();
    run.wait_for_line("hangs in", LIMIT);
    run.wait_for("a digest of its stack", LIMIT, |e| {
        matches!(e, Event::Agent(n)
            if matches!(&n.word, AgentWord::Beat(b) if b.op.is_some() && b.stack.is_some()))
    });
    run.signal(rustix::process::Signal::TERM);
    let run = run.finish(LIMIT);
    let all = words(&run);
    let mut beats = all.iter().filter_map(|n| match &n.word {
        AgentWord::Beat(beat) if beat.op.is_some() => Some((n.pid, beat)),
        _ => None,
    });
    let (pid, beat) = beats.next_back().unwrap();
    let text = lines(&run);
    let tid = text.lines().find_map(|l| l.strip_prefix("hangs in "));
    let tid: u32 = tid.unwrap().trim().parse().unwrap();
    let op = beat.op.as_ref().unwrap();
    assert_eq!((op.tid, beat.holder), (Some(tid), Some(tid)), "{beat:?}");
    assert_eq!((beat.job, beat.phase), (Some(true), Some(Phase::VaeDecode)));
    // phase and job are the worker's once it works
    let mains = all.iter().filter(|n| n.word == AgentWord::Main);
    let mains: Vec<u32> = mains.map(|n| n.pid).collect();
    assert_eq!(mains.last(), Some(&pid), "{mains:?}");
    assert_ne!(mains[0], pid);
    let told = told(&run);
    let phases = told.iter().filter_map(|e| match e {
        Event::Phase(p) => Some(p.phase),
        _ => None,
    });
    let phases: Vec<Phase> = phases.collect();
    assert_eq!(phases.first(), Some(&Phase::Idle), "{phases:?}");
    assert_eq!(phases.last(), Some(&Phase::VaeDecode), "{phases:?}");
    assert!(told.contains(&&Event::Job(JobChange::Started)), "{told:?}");
}

#[test]
fn another_version_of_the_messages_is_named_and_the_run_goes_on() {
    let home = Home::new();
    let program = "
import json, os, socket, time
sock = socket.socket(socket.AF_UNIX)
sock.connect(os.environ['FPT_AGENT_SOCKET'])
for message in ({'type': 'hello', 'protocol': 99, 'agent': '9.9'}, {'type': 'phase', 'phase': 'sampling'}):
    sock.sendall((json.dumps(message) + '\\n').encode())
time.sleep(0.5)
";
    // Python without an agent of ours, by another socket client of the same user
    let run = with_agent(&home)
        .command(&[
            "env".as_ref(),
            "-u".as_ref(),
            "PYTHONPATH".as_ref(),
            "sh".as_ref(),
            "-c".as_ref(),
            "exec \"$0\" -c \"$1\"".as_ref(),
            python().as_os_str(),
            program.as_ref(),
        ])
        .start()
        .finish(LIMIT);
    run.assert_exit(0);
    let all = words(&run);
    let refused = all
        .iter()
        .any(|n| matches!(n.word, AgentWord::Refused { protocol: 99, .. }));
    assert!(refused, "{all:?} {}", run.digest());
    assert!(told(&run).is_empty());
}

#[test]
fn a_socket_that_is_removed_costs_who_is_connected_nothing() {
    let home = Home::new();
    let program = "
import os, shutil, subprocess, sys, time
state = sys.modules['fpt_agent.state']
state.state.set_phase('sampling')
shutil.rmtree(os.path.dirname(os.environ['FPT_AGENT_SOCKET']))
time.sleep(7)
state.state.set_phase('save')
subprocess.run([sys.executable, '-c', 'import time; time.sleep(1)'])
";
    let run = with_agent(&home).python(program).start().finish(LIMIT);
    run.assert_exit(0);
    let save = told(&run)
        .iter()
        .any(|e| matches!(e, Event::Phase(p) if p.phase == Phase::Save));
    assert!(save, "{}", run.digest());
    assert_eq!(
        hellos(&run),
        2,
        "the socket was made again: {:?}",
        words(&run)
    );
}

/// The bundle's file of this kind.
fn evidence(run: &Finished, home: &Home, kind: &str) -> String {
    let report = run.all(|e| match e {
        Event::EvidenceTaken(r) => Some(r.clone()),
        _ => None,
    });
    let item = report[0].items.iter().find(|i| i.kind == kind);
    let item = item.unwrap_or_else(|| panic!("no {kind}: {report:#?}"));
    let file = item.file.as_ref().unwrap_or_else(|| panic!("{item:?}"));
    std::fs::read_to_string(Path::new(&home.record()).join(file)).unwrap()
}

/// Stacks are taken while `body` runs in a function `hangs_here`.
fn stacks_while(body: &str) -> (Home, Finished) {
    stacks_after(body, Duration::from_millis(300))
}

/// The same after so long.
fn stacks_after(body: &str, wait: Duration) -> (Home, Finished) {
    let home = Home::new();
    let program = format!(
        "
import ctypes, sys, time
def hangs_here():
    {body}
print('hangs', flush=True)
hangs_here()
"
    );
    let mut run = with_agent(&home).python(&program).start();
    run.wait_for_line("hangs", LIMIT);
    // the signal takes evidence
    std::thread::sleep(wait);
    run.signal(rustix::process::Signal::USR2);
    run.wait_for("evidence", LIMIT, |e| matches!(e, Event::EvidenceTaken(_)));
    // what a signal of ours would have brought about is heard, too
    std::thread::sleep(wait.saturating_sub(Duration::from_secs(2)));
    run.signal(rustix::process::Signal::TERM);
    let run = run.finish(LIMIT);
    (home, run)
}

#[test]
fn stacks_come_by_the_socket_while_the_interpreter_runs() {
    let (home, run) = stacks_while("time.sleep(60)");
    let text = evidence(&run, &home, "python_stacks");
    assert!(
        text.contains("by the agent") && text.contains("hangs_here"),
        "{text}"
    );
    assert!(evidence(&run, &home, "agent").contains("\"beat\""));
}

#[test]
fn stacks_come_by_signal_while_native_code_holds_the_lock() {
    // PyDLL keeps the interpreter's lock while it sleeps
    let (home, run) = stacks_while("ctypes.PyDLL(None).sleep(60)");
    let text = evidence(&run, &home, "python_stacks");
    assert!(
        text.contains("SIGUSR2") && text.contains("hangs_here"),
        "{text}"
    );
}

/// A program whose own the signal is gets none of ours, also where nothing else would tell its
/// stacks.
#[test]
fn a_signal_that_the_program_has_taken_is_not_sent() {
    let taken = "
    import signal
    signal.signal(signal.SIGUSR2, lambda *_: print('MINE', flush=True))
    time.sleep(1)
    ctypes.PyDLL(None).sleep(12)
    print('awake', flush=True)
    time.sleep(60)";
    let (_home, run) = stacks_after(taken, Duration::from_secs(3));
    let report = run.all(|e| match e {
        Event::EvidenceTaken(r) => Some(r.clone()),
        _ => None,
    });
    let stacks = report[0].items.iter().find(|i| i.kind == "python_stacks");
    let why = stacks.and_then(|i| i.failed.clone()).unwrap_or_default();
    assert!(why.contains("cannot be asked for by signal"), "{report:#?}");
    assert!(!lines(&run).contains("MINE"), "{}", lines(&run));
}

#[test]
fn a_rung_wins_over_the_users_tier_and_the_profile_does_not() {
    let home = Home::new();
    let profile = home.path("mine.toml");
    std::fs::write(
        &profile,
        "schema = 1\n[profile]\nid = \"mine\"\nversion = \"1.0.0\"\ntitle = \"t\"\n[workload.settings]\nconv_tier = \"split\"\n",
    )
    .unwrap();
    let run = with_agent(&home)
        .options(&["--profile", profile.to_str().unwrap()])
        .env("FPT_CONV_TIER", "cpu")
        .python("import os, sys; c = sys.modules['fpt_agent.config'].config; print('tier', c.text('conv_tier'), os.environ['FPT_CONV_TIER'])")
        .start()
        .finish(LIMIT);
    run.assert_exit(0);
    assert!(lines(&run).contains("tier cpu cpu"), "{}", lines(&run));
    let said = run.all(|e| match e {
        Event::Notice { text, .. } if text.contains("FPT_CONV_TIER") => Some(text.clone()),
        _ => None,
    });
    assert_eq!(
        said,
        ["your FPT_CONV_TIER=cpu shadows conv_tier = split of the profile"]
    );
}

/// The connection breaks for good while the program works: what is lost is said, and the
/// program comes to its end.
#[test]
fn a_connection_that_breaks_is_said_and_the_program_goes_on() {
    let home = Home::new();
    let program = "
import os, sys, time
state = sys.modules['fpt_agent.state']
state.state.set_phase('sampling')
time.sleep(0.5)
state.link.path = '/nonexistent'
state.link.sock.shutdown(2)
time.sleep(3)
open('result.txt', 'w').write('done')
";
    let run = with_agent(&home).python(program).start().finish(LIMIT);
    run.assert_exit(0);
    let lost = words(&run)
        .into_iter()
        .find(|n| n.word == AgentWord::Lost)
        .unwrap_or_else(|| panic!("nothing is said{}", run.digest()));
    assert!(lost.words().unwrap().contains("the console counts again"));
    assert!(home.dir().join("result.txt").is_file());
}
