//! Tests of what follows from what processes say.

use super::*;
use crate::agent::protocol::{Message, parse};
use crate::model::agent::AgentOp;

const HELLO: &str =
    r#"{"type":"hello","protocol":1,"agent":"0.1.0","python":"3.11.4","stacks_signal":"SIGUSR2"}"#;

struct World {
    tracker: Tracker,
    now: Mono,
    seq: BTreeMap<u64, u64>,
}

impl World {
    fn new(server: bool) -> Self {
        let mut tracker = Tracker::default();
        tracker.begin(Mono::ZERO, server);
        Self {
            tracker,
            now: Mono::ZERO,
            seq: BTreeMap::new(),
        }
    }

    fn message(&mut self, conn: u64, line: &str) -> Message {
        let seq = self.seq.entry(conn).or_default();
        *seq += 1;
        Message {
            seq: Some(*seq),
            ..parse(line.as_bytes()).unwrap()
        }
    }

    fn say(&mut self, pid: u32, line: &str) -> Vec<String> {
        let conn = u64::from(pid);
        let message = self.message(conn, line);
        let told = self
            .tracker
            .heard(self.now, Heard::Said { conn, pid, message });
        words(&told)
    }

    fn close(&mut self, pid: u32) -> Vec<String> {
        let conn = u64::from(pid);
        words(&self.tracker.heard(self.now, Heard::Closed { conn, pid }))
    }

    fn tick(&mut self, ms: u64, lives: bool, python: bool) -> Vec<String> {
        self.now = Mono(self.now.0 + ms);
        let python = || if python { vec![7] } else { Vec::new() };
        words(&self.tracker.tick(self.now, &|_| lives, &python))
    }
}

/// `7 hello`, `agent phase`.
fn words(told: &[Told]) -> Vec<String> {
    told.iter()
        .map(|(from, event)| {
            let value = serde_json::to_value(event).unwrap();
            match from {
                None => format!("{} {}", value["pid"], value["word"].as_str().unwrap()),
                Some(_) => format!("agent {}", value["kind"].as_str().unwrap()),
            }
        })
        .collect()
}

#[test]
fn the_process_that_works_is_the_one_that_counts() {
    let mut w = World::new(false);
    assert_eq!(w.say(7, HELLO), ["7 hello", "7 main"]);
    assert_eq!(w.say(8, HELLO), ["8 hello"]);
    assert_eq!(
        w.say(8, r#"{"type":"torch","version":"2"}"#),
        ["8 main", "8 torch"]
    );
    // a launcher that draws a bar is no generation
    assert_eq!(
        w.say(7, r#"{"type":"progress","n":1,"total":3}"#),
        Vec::<String>::new()
    );
    let phase = r#"{"type":"phase","phase":"sampling"}"#;
    assert_eq!(w.say(8, phase), ["agent phase"]);
    assert_eq!(w.say(8, phase), Vec::<String>::new(), "no news");
    assert_eq!(
        w.say(8, r#"{"type":"job","state":"started"}"#),
        ["agent job"]
    );
    // a second one that works does not take its place
    assert_eq!(w.say(7, phase), Vec::<String>::new());
    assert_eq!(w.say(8, r#"{"type":"bye"}"#), Vec::<String>::new());
    // the phase that it was in all along is that of the run from here on
    assert_eq!(w.close(8), ["8 ended", "7 main", "agent phase"]);
    assert_eq!(w.tracker.subjects().len(), 1);
    assert_eq!(words(&w.tracker.end_all()), ["7 ended"]);
}

#[test]
fn a_server_waits_after_its_job() {
    let mut w = World::new(true);
    w.say(7, HELLO);
    w.say(7, r#"{"type":"job","state":"started"}"#);
    let ended = w.say(7, r#"{"type":"job","state":"failed","error":"no"}"#);
    assert_eq!(ended, ["agent job", "agent job"]);
}

#[test]
fn a_job_whose_word_was_lost_is_known_by_the_heartbeats() {
    let beat = |job: &str| format!(r#"{{"type":"beat","job":"{job}"}}"#);
    let jobs = |w: &mut World, line: &str| {
        let conn = 7;
        let message = w.message(conn, line);
        let heard = Heard::Said {
            conn,
            pid: 7,
            message,
        };
        let told = w.tracker.heard(w.now, heard);
        told.into_iter()
            .filter_map(|(_, event)| match event {
                Event::Job(change) => Some(change),
                _ => None,
            })
            .collect::<Vec<_>>()
    };
    for server in [true, false] {
        let mut w = World::new(server);
        w.say(7, HELLO);
        assert_eq!(jobs(&mut w, r#"{"type":"beat","job":null}"#), []);
        assert_eq!(jobs(&mut w, &beat("running")), []);
        assert_eq!(jobs(&mut w, &beat("running")), [JobChange::Started]);
        assert_eq!(jobs(&mut w, &beat("running")), []);
        // one alone may be older than the word before it
        assert_eq!(jobs(&mut w, &beat("idle")), []);
        assert_eq!(jobs(&mut w, &beat("running")), []);
        assert_eq!(jobs(&mut w, &beat("idle")), []);
        let lost = jobs(&mut w, &beat("idle"));
        assert_eq!(lost, [JobChange::Waiting][..usize::from(server)]);
        let started = jobs(&mut w, r#"{"type":"job","state":"started"}"#);
        assert_eq!(started, [JobChange::Started]);
        assert_eq!(jobs(&mut w, &beat("running")), []);
        let ended = jobs(&mut w, r#"{"type":"job","state":"ended"}"#);
        let both = [JobChange::Done, JobChange::Waiting];
        assert_eq!(ended, both[..=usize::from(server)]);
        assert_eq!(jobs(&mut w, &beat("idle")), []);
        assert_eq!(jobs(&mut w, &beat("idle")), []);
    }
}

#[test]
fn who_lives_without_a_connection_is_lost_and_may_come_back() {
    let mut w = World::new(false);
    w.say(7, HELLO);
    assert_eq!(w.close(7), Vec::<String>::new());
    assert_eq!(w.tick(500, true, true), Vec::<String>::new());
    assert_eq!(w.tick(600, true, true), ["7 lost"]);
    assert_eq!(w.tick(600, true, true), Vec::<String>::new());
    assert!(w.tracker.subjects().is_empty());
    assert_eq!(w.say(7, HELLO), ["7 hello", "7 main"]);
    w.close(7);
    assert_eq!(
        w.say(7, HELLO),
        Vec::<String>::new(),
        "back at once: no word"
    );
    w.close(7);
    assert_eq!(w.tick(1100, false, false), ["7 ended"]);
}

#[test]
fn silence_is_told_once_where_python_runs() {
    let mut w = World::new(false);
    assert_eq!(w.tick(20_000, true, false), Vec::<String>::new());
    // a shell that takes its time before it starts Python is no complaint
    assert_eq!(w.tick(500, true, true), Vec::<String>::new());
    // nor is a Python that lives for a moment
    assert_eq!(w.tick(500, true, false), Vec::<String>::new());
    assert_eq!(w.tick(3000, true, true), Vec::<String>::new());
    assert_eq!(w.tick(3000, true, true), Vec::<String>::new());
    assert_eq!(w.tick(1000, true, true), ["0 silent"]);
    assert_eq!(w.tick(500, true, true), Vec::<String>::new());
    let mut w = World::new(false);
    w.say(7, HELLO);
    w.say(7, r#"{"type":"bye"}"#);
    w.close(7);
    assert_eq!(w.tick(20_000, true, true), Vec::<String>::new());
}

#[test]
fn another_version_is_named_and_not_heard() {
    let mut w = World::new(false);
    let hello = HELLO.replace("\"protocol\":1", "\"protocol\":2");
    assert_eq!(w.say(7, &hello), ["7 refused"]);
    assert_eq!(
        w.say(7, r#"{"type":"phase","phase":"sampling"}"#),
        Vec::<String>::new()
    );
    assert_eq!(w.close(7), Vec::<String>::new());
    assert_eq!(w.tick(2000, false, false), Vec::<String>::new());
}

#[test]
fn a_gap_in_the_numbers_is_a_loss() {
    let mut w = World::new(false);
    w.say(7, HELLO);
    *w.seq.get_mut(&7).unwrap() += 3;
    assert_eq!(
        w.say(7, r#"{"type":"problem","text":"x"}"#),
        ["7 dropped", "7 problem"]
    );
}

#[test]
fn a_heartbeat_is_told_when_it_says_something_or_each_five_seconds() {
    let mut w = World::new(false);
    w.say(7, HELLO);
    let beat = |op: Option<AgentOp>| {
        let ops: Vec<_> = op
            .into_iter()
            .map(|op| {
                serde_json::json!({"name": op.name, "shape": op.shape, "age_s": op.age_ms / 1000})
            })
            .collect();
        serde_json::json!({"type": "beat", "ops": ops, "calls": 3}).to_string()
    };
    let op = |age_ms| {
        Some(AgentOp {
            name: "conv3d".to_owned(),
            shape: vec![1],
            weight: Vec::new(),
            dtype: String::new(),
            device: String::new(),
            tier: String::new(),
            age_ms,
            tid: None,
        })
    };
    let mut told = Vec::new();
    for (second, op) in [
        (0, None),
        (1, None),
        (2, op(0)),
        (3, op(1000)),
        (4, op(2000)),
        // another call of the same shape
        (5, op(0)),
        (6, op(1000)),
        (10, op(5000)),
        (11, None),
    ] {
        w.now = Mono(second * 1000);
        if !w.say(7, &beat(op)).is_empty() {
            told.push(second);
        }
    }
    assert_eq!(told, [0, 3, 5, 6, 11]);
    assert_eq!(w.tracker.beats().len(), 1);
}

#[test]
fn a_bar_is_told_four_times_a_second_and_its_end_at_once() {
    let mut w = World::new(false);
    w.say(7, HELLO);
    w.say(7, r#"{"type":"phase","phase":"sampling"}"#);
    let mut told = 0;
    for n in 1..=100 {
        w.now = Mono(n * 10);
        let bar = format!(r#"{{"type":"progress","n":{n},"total":100}}"#);
        told += w.say(7, &bar).len();
    }
    assert_eq!(told, 5);
}

#[test]
fn a_signal_that_the_program_took_for_itself_is_not_sent() {
    let mut w = World::new(false);
    w.say(7, HELLO);
    let by_signal = |w: &World| w.tracker.subjects()[0].by_signal;
    assert!(by_signal(&w));
    w.say(7, r#"{"type":"beat","stacks_signal":null}"#);
    assert!(!by_signal(&w));
    // an agent that says nothing of it in its heartbeats
    w.say(7, r#"{"type":"beat"}"#);
    assert!(!by_signal(&w));
    w.say(7, r#"{"type":"beat","stacks_signal":"SIGUSR2"}"#);
    assert!(by_signal(&w));
}

const JOB: &str = r#"{"type":"job","state":"started"}"#;
const END: &str = r#"{"type":"job","state":"ended"}"#;
const SAMPLING: &str = r#"{"type":"phase","phase":"sampling"}"#;

fn hello_of_rank(rank: u32) -> String {
    HELLO.replace('}', &format!(r#","rank":{rank}}}"#))
}

/// A heartbeat, in a phase and with a convolution in flight for so many seconds.
fn beat_of(phase: &str, job: &str, op: Option<u64>) -> String {
    let ops: Vec<_> = op
        .into_iter()
        .map(|age| serde_json::json!({"name": "conv3d", "shape": [1], "age_s": age, "tid": 71}))
        .collect();
    serde_json::json!({"type": "beat", "phase": phase, "job": job, "ops": ops}).to_string()
}

#[test]
fn of_two_ranks_the_one_that_hangs_is_seen() {
    let mut w = World::new(false);
    w.say(8, &hello_of_rank(1));
    w.say(8, SAMPLING);
    assert_eq!(w.say(7, &hello_of_rank(0)), ["7 hello"]);
    // rank 0 comes first among equals
    assert_eq!(w.say(7, SAMPLING), ["7 main", "agent phase"]);
    assert_eq!(w.say(7, JOB), ["agent job"]);
    assert_eq!(w.say(8, JOB), Vec::<String>::new(), "the same job");
    let decode = r#"{"type":"phase","phase":"vae_decode"}"#;
    assert_eq!(w.say(8, decode), Vec::<String>::new());
    // rank 1 hangs in a convolution, rank 0 waits for it
    let mut told = Vec::new();
    for second in 0..=20 {
        w.now = Mono(second * 1000);
        told.extend(w.say(7, &beat_of("sampling", "running", None)));
        told.extend(w.say(8, &beat_of("vae_decode", "running", Some(second))));
    }
    let at = told.iter().position(|t| t == "8 main").unwrap();
    assert_eq!(told[at + 1], "agent phase");
    assert_eq!(told.iter().filter(|t| t.ends_with("main")).count(), 1);
    assert!(told.iter().filter(|t| *t == "7 beat").count() >= 4);
    assert!(told.iter().filter(|t| *t == "8 beat").count() >= 4);
    assert_eq!(w.tracker.subjects()[0].pid, 8);
    // the operation ends: rank 0 again
    let ends = w.say(8, &beat_of("vae_decode", "running", None));
    assert_eq!(ends, ["8 beat", "7 main", "agent phase"]);
    // the job ends with the last of them, and has failed if one has
    let failed = r#"{"type":"job","state":"failed","error":"no"}"#;
    assert_eq!(w.say(8, failed), Vec::<String>::new());
    assert!(!w.tracker.has_told_end());
    let conn = 7;
    let message = w.message(conn, END);
    let heard = Heard::Said {
        conn,
        pid: 7,
        message,
    };
    let told = w.tracker.heard(w.now, heard);
    let want = Event::Job(JobChange::Failed {
        why: Some("no".to_owned()),
    });
    assert!(told.iter().any(|(_, event)| *event == want), "{told:?}");
    assert!(w.tracker.has_told_end());
}

#[test]
fn a_worker_of_an_idle_page_is_the_one_that_counts_while_it_works() {
    let mut w = World::new(true);
    w.say(7, HELLO);
    w.say(7, r#"{"type":"torch","version":"2"}"#);
    let idle = r#"{"type":"phase","phase":"idle"}"#;
    assert_eq!(w.say(7, idle), ["agent phase"]);
    assert_eq!(w.say(7, &beat_of("idle", "idle", None)), ["7 beat"]);
    assert_eq!(w.say(8, HELLO), ["8 hello"]);
    let quiet = beat_of("startup", "idle", None);
    assert_eq!(w.say(8, &quiet), Vec::<String>::new(), "nothing to say");
    assert_eq!(w.say(8, JOB), ["8 main", "agent job"]);
    assert_eq!(w.say(8, SAMPLING), ["agent phase"]);
    let mut told = Vec::new();
    for second in 1..=20 {
        w.now = Mono(second * 1000);
        told.extend(w.say(7, &beat_of("idle", "idle", None)));
        told.extend(w.say(8, &beat_of("sampling", "running", None)));
    }
    assert_eq!(told, ["8 beat"; 4]);
    assert_eq!(w.tracker.subjects()[0].pid, 8);
    // it waits again: the page says so, and the worker's last beat that it does nothing
    assert_eq!(w.say(8, END), ["agent job", "agent job"]);
    assert_eq!(w.say(8, idle), ["agent phase"]);
    assert_eq!(w.say(8, &beat_of("idle", "idle", None)), ["8 beat"]);
}

#[test]
fn a_page_that_waits_counts_again_once_its_worker_has_ended_its_job() {
    let mut w = World::new(false);
    w.say(7, HELLO);
    w.say(7, r#"{"type":"phase","phase":"idle"}"#);
    w.say(8, HELLO);
    w.say(8, JOB);
    w.say(8, SAMPLING);
    let unknown = r#"{"type":"phase","phase":"unknown"}"#;
    w.say(8, END);
    assert_eq!(
        w.say(8, unknown),
        ["agent phase", "7 main", "agent phase"],
        "its phase is idle"
    );
}

#[test]
fn a_worker_that_ends_or_is_lost_takes_its_job_along() {
    for ends in [true, false] {
        let mut w = World::new(true);
        w.say(7, HELLO);
        w.say(8, HELLO);
        w.say(8, JOB);
        w.close(8);
        let told = w.tick(1100, !ends, true);
        if ends {
            assert_eq!(told, ["8 ended", "agent job", "7 main"], "the page waits");
        } else {
            assert_eq!(told, ["8 lost", "7 main"], "it may go on with it");
            assert_eq!(w.say(8, HELLO), ["8 hello", "8 main"]);
            assert_eq!(w.say(8, END), ["agent job", "agent job"]);
        }
    }
    // a script's end will tell
    let mut w = World::new(false);
    w.say(7, HELLO);
    w.say(8, HELLO);
    w.say(8, JOB);
    w.close(8);
    assert_eq!(w.tick(1100, false, true), ["8 ended", "7 main"]);
    // all at once: none is the main one for a moment
    w.say(8, HELLO);
    w.say(8, JOB);
    w.say(8, SAMPLING);
    assert_eq!(words(&w.tracker.end_all()), ["7 ended", "8 ended"]);
}

#[test]
fn a_worker_that_becomes_another_program_leaves_its_job_behind() {
    let mut w = World::new(true);
    w.say(7, HELLO);
    w.say(8, HELLO);
    w.say(8, JOB);
    // the same number, and messages that are counted from the start
    w.seq.insert(8, 0);
    assert_eq!(
        w.say(8, HELLO),
        ["8 ended", "agent job", "7 main", "8 hello"]
    );
    assert_eq!(w.tracker.subjects()[0].pid, 7);
    assert_eq!(w.say(8, JOB), ["8 main", "agent job"]);
}

#[test]
fn a_launcher_with_a_job_of_its_own_does_not_end_that_of_its_server() {
    let mut w = World::new(false);
    w.say(7, HELLO);
    w.say(7, r#"{"type":"torch","version":"2"}"#);
    assert_eq!(w.say(7, JOB), ["agent job"]);
    w.say(8, HELLO);
    assert_eq!(w.say(8, JOB), Vec::<String>::new());
    assert_eq!(w.say(7, END), ["8 main"]);
    assert_eq!(w.say(8, SAMPLING), ["agent phase"]);
    // what a script does behind a part of its own still comes through
    assert_eq!(w.say(8, END), ["agent job"]);
    let decode = r#"{"type":"phase","phase":"vae_decode"}"#;
    assert_eq!(w.say(8, decode), ["agent phase"]);
    let bar = r#"{"type":"progress","n":1,"total":3}"#;
    assert_eq!(w.say(8, bar), ["agent progress"]);
}

#[test]
fn a_phase_whose_message_was_lost_is_known_by_the_heartbeats() {
    let mut w = World::new(false);
    w.say(7, HELLO);
    w.say(7, SAMPLING);
    let unknown = beat_of("unknown", "idle", None);
    assert_eq!(w.say(7, &unknown), ["7 beat"], "one may be older");
    assert_eq!(w.say(7, &unknown), ["agent phase"]);
    assert_eq!(w.say(7, &unknown), Vec::<String>::new());
}

#[test]
fn the_last_counts_of_lower_tiers_come_with_the_goodbye() {
    let mut w = World::new(false);
    w.say(7, HELLO);
    let native = r#"{"type":"bye","calls":9,"tiers":{"conv3d.native.ok":9}}"#;
    assert_eq!(w.say(7, native), Vec::<String>::new());
    let mut w = World::new(false);
    w.say(7, HELLO);
    let lower = r#"{"type":"bye","calls":9,"tiers":{"conv3d.native.ok":5,"conv3d.cpu.ok":4}}"#;
    assert_eq!(w.say(7, lower), ["7 beat"]);
}
