use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixListener;

use super::*;

#[derive(Default)]
struct Me {
    alone: Mutex<Vec<Urgency>>,
}

impl Me {
    fn asked(&self) -> Vec<Urgency> {
        self.alone.lock().unwrap().clone()
    }
}

/// The process that has started this one.
fn parent() -> u32 {
    std::os::unix::process::parent_id()
}

impl Subject for Me {
    fn hello(&self) -> Value {
        json!({ "protocol": 1 })
    }
    fn beat(&self) -> Value {
        json!({ "phase": "vae_decode" })
    }
    fn obey(&self, command: &str) -> Result<Value, String> {
        match command {
            "snapshot" => Ok(self.beat()),
            _ => Err("no such command".to_owned()),
        }
    }
    fn alone(&self, how: Urgency) {
        self.alone.lock().unwrap().push(how);
    }
}

#[test]
fn hello_comes_first_numbers_count_up_and_commands_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let listener = UnixListener::bind(&path).unwrap();
    let link = Link::open(Some(path), parent(), Arc::new(Me::default()));
    let (mut supervisor, _) = listener.accept().unwrap();
    link.send("job", json!({ "state": "started" }));
    supervisor
        .write_all(b"{\"id\":7,\"cmd\":\"snapshot\"}\nrubbish\n")
        .unwrap();
    let mut told: Vec<Value> = Vec::new();
    let mut lines = BufReader::new(supervisor.try_clone().unwrap()).lines();
    while told.iter().filter(|m| m["type"] == "reply").count() < 2 {
        let next = lines.next().unwrap().unwrap();
        told.push(serde_json::from_str(&next).unwrap());
    }
    link.send("bye", json!({}));
    link.close();
    told.extend(lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap()));
    let kinds: Vec<&str> = told.iter().filter_map(|m| m["type"].as_str()).collect();
    assert_eq!((kinds[0], kinds[kinds.len() - 1]), ("hello", "bye"));
    assert!(
        kinds.contains(&"job") && kinds.contains(&"beat"),
        "{kinds:?}"
    );
    for (at, message) in told.iter().enumerate() {
        assert_eq!(message["seq"], at + 1);
        assert_eq!(message["pid"], std::process::id());
    }
    let replies: Vec<&Value> = told.iter().filter(|m| m["type"] == "reply").collect();
    assert_eq!(replies[0]["value"]["phase"], "vae_decode");
    assert_eq!(
        (&replies[0]["id"], &replies[0]["ok"]),
        (&json!(7), &json!(true))
    );
    assert_eq!(replies[1]["ok"], false);
}

#[test]
fn without_a_supervisor_nothing_is_kept() {
    let link = Link::open(None, parent(), Arc::new(Me::default()));
    link.send("job", json!({}));
    assert!(lock(&link.queue).messages.is_empty());
    link.close();
}

fn line(path: PathBuf, parent: u32, subject: &Arc<Me>) -> Line {
    let subject = Arc::clone(subject) as Arc<dyn Subject>;
    Line::new(path, parent, subject, Arc::default())
}

#[test]
fn who_is_left_by_supervisor_and_parent_ends_and_by_one_of_them_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let listener = UnixListener::bind(&path).unwrap();
    let me = Arc::new(Me::default());
    // as long as there is one of the two
    for (parent, connected) in [(parent(), false), (0, true), (parent(), true)] {
        let mut line = line(path.clone(), parent, &me);
        if connected {
            line.connect();
        }
        line.alone = Some((Instant::now(), Some(Urgency::Module)));
        line.end_alone();
        assert_eq!(line.alone, None, "{parent} {connected}");
    }
    drop(listener);
    let mut line = line(path, 0, &me);
    line.end_alone();
    assert_eq!(me.asked(), [], "a supervisor may come back");
    for ago in [ALONE, ALONE, ALONE + CHUNK, ALONE + CHUNK + MODULE] {
        let Some((since, _)) = &mut line.alone else {
            panic!("it is alone");
        };
        *since = Instant::now().checked_sub(ago).unwrap();
        line.end_alone();
    }
    // each once
    let all = [Urgency::Chunk, Urgency::Module, Urgency::Now];
    assert_eq!(me.asked(), all);
}
