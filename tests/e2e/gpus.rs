//! `framepack-tui gpus` at an imitated card: once, as JSON, as a stream, and the ways it
//! ends.

use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{BINARY, Card, Home, kill, wait_until};

const LIMIT: Duration = Duration::from_mins(1);

fn gpus(home: &Home, card: &Card, args: &[&str]) -> Command {
    let mut command = card.inside(BINARY);
    command.arg("gpus").args(args);
    home.dress(&mut command);
    command
}

fn output(mut command: Command) -> Output {
    command.stderr(Stdio::piped()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn the_readings_once_as_text_and_as_json() {
    let home = Home::new();
    let card = Card::rx7900xtx();
    card.set("busy=97 power_w=280 vram_used=17G");
    card.break_file("mem_busy_percent", "eio");
    let out = output(gpus(&home, &card, &[]));
    let shown = text(&out.stdout);
    assert!(out.status.success(), "{shown}{}", text(&out.stderr));
    for words in [
        "GPU 0  ",
        "  0000:03:00.0  ",
        "busy      97 %, memory controller failed (for ",
        "280 W",
        "17.0/24.0 GiB (71 %)",
    ] {
        assert!(shown.contains(words), "no `{words}` in:\n{shown}");
    }
    assert!(shown.lines().all(|l| l.chars().count() <= 80), "{shown}");

    let out = output(gpus(&home, &card, &["--json", "--gpu", Card::ADDRESS]));
    let value: Value = serde_json::from_slice(&out.stdout).unwrap();
    let gpu = &value["gpus"][0];
    assert_eq!(gpu["id"], Card::ADDRESS);
    assert_eq!(gpu["busy"]["fresh"], 97.0);
    assert!(gpu["mem_busy"]["failed"]["why"].is_string(), "{gpu}");

    let out = output(gpus(&home, &card, &["--gpu", "3"]));
    assert_eq!(out.status.code(), Some(69));
    let said = text(&out.stderr);
    assert!(said.contains("there is no card `3`"), "{said}");
    let out = output(gpus(&home, &card, &["--interval", "2"]));
    assert_eq!(out.status.code(), Some(64), "needs --watch");
}

#[test]
fn a_stream_follows_the_card_until_it_is_interrupted() {
    let home = Home::new();
    let card = Card::rx7900xtx();
    card.set("busy=11");
    let mut command = gpus(&home, &card, &["--json", "--watch", "--interval", "0.2"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut until = |busy: f64| {
        lines.find(|line| {
            let value: Value = serde_json::from_str(line.as_ref().unwrap()).unwrap();
            value["gpus"][0]["busy"]["fresh"] == busy
        })
    };
    assert!(until(11.0).is_some());
    card.set("busy=83");
    assert!(until(83.0).is_some());
    kill(child.id(), Signal::INT).unwrap();
    // what was written meanwhile is read, so that it can end
    assert!(until(-1.0).is_none());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_reader_that_leaves_ends_it_quietly() {
    let home = Home::new();
    let card = Card::rx7900xtx();
    let mut command = gpus(&home, &card, &["--watch", "--interval", "0.2"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    assert!(line.starts_with("GPU 0"), "{line}");
    drop(out);
    let ended = wait_until(LIMIT, || child.try_wait().unwrap().is_some());
    assert!(ended, "it goes on without a reader");
    let out = child.wait_with_output().unwrap();
    assert_eq!(
        (out.status.code(), text(&out.stderr)),
        (Some(0), String::new())
    );
}

#[test]
fn without_a_card_it_says_why() {
    let home = Home::new();
    // the program alone: this machine may have cards or none
    let mut command = Command::new(BINARY);
    command.arg("gpus").stdin(Stdio::null());
    home.dress(&mut command);
    let out = output(command);
    assert!(out.status.success());
    let shown = text(&out.stdout);
    let why = shown.starts_with("no GPU can be read") && shown.contains("  sysfs     absent");
    assert!(why || shown.starts_with("GPU 0"), "{shown}");
}
