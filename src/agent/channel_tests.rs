//! Tests of the socket.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream as StdStream;

use super::*;

async fn next(heard: &mut mpsc::Receiver<Heard>) -> Heard {
    tokio::time::timeout(Duration::from_secs(20), heard.recv())
        .await
        .expect("nothing came")
        .expect("the channel is closed")
}

fn open() -> (tempfile::TempDir, Channel, mpsc::Receiver<Heard>) {
    let tmp = tempfile::tempdir_in("/tmp").unwrap();
    let (channel, heard) = Bound::below(tmp.path()).unwrap().listen().unwrap();
    (tmp, channel, heard)
}

#[tokio::test]
async fn many_speak_at_once_and_are_told_apart() {
    let (tmp, channel, mut heard) = open();
    let mode = fs::metadata(&channel.place.folder)
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700);
    let mut a = StdStream::connect(channel.path()).unwrap();
    let mut b = StdStream::connect(channel.path()).unwrap();
    a.write_all(b"{\"type\":\"bye\",\"seq\":1}\n").unwrap();
    let Heard::Said {
        conn: first, pid, ..
    } = next(&mut heard).await
    else {
        panic!()
    };
    assert_eq!(pid, std::process::id());
    b.write_all(b"{\"type\":\"problem\",\"te").unwrap();
    b.write_all(b"xt\":\"x\"}\nnoise\n{\"type\":\"bye\"}\n")
        .unwrap();
    let Heard::Said { conn: second, .. } = next(&mut heard).await else {
        panic!()
    };
    assert_ne!(first, second);
    assert!(
        matches!(next(&mut heard).await, Heard::Said { message, .. } if matches!(message.said, Said::Bye(_)))
    );
    assert_eq!(channel.door().peers().len(), 2);
    drop(a);
    assert!(matches!(next(&mut heard).await, Heard::Closed { conn, .. } if conn == first));
    drop(channel);
    assert_eq!(
        fs::read_dir(tmp.path()).unwrap().count(),
        0,
        "nothing is left"
    );
}

#[tokio::test]
async fn a_line_without_an_end_is_thrown_away_and_the_next_one_is_heard() {
    let (_tmp, channel, mut heard) = open();
    let mut a = StdStream::connect(channel.path()).unwrap();
    let writer = std::thread::spawn(move || {
        a.write_all(&vec![b'x'; 3 * LONGEST_LINE]).unwrap();
        a.write_all(b"\n{\"type\":\"bye\",\"seq\":7}\n").unwrap();
        a
    });
    let Heard::Said { message, .. } = next(&mut heard).await else {
        panic!()
    };
    assert_eq!(message.seq, Some(7));
    assert!(matches!(message.said, Said::Bye(_)));
    drop(writer.join());
}

#[tokio::test]
async fn a_flood_is_read_on_and_fills_nothing() {
    let (_tmp, channel, mut heard) = open();
    let mut a = StdStream::connect(channel.path()).unwrap();
    // ends only if it is read to its end: the buffers hold far less
    let writer = std::thread::spawn(move || {
        for _ in 0..50_000 {
            a.write_all(b"{\"type\":\"progress\",\"n\":1}\n").unwrap();
        }
    });
    while !writer.is_finished() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    writer.join().unwrap();
    let mut n = 0;
    while !matches!(next(&mut heard).await, Heard::Closed { .. }) {
        n += 1;
    }
    // what is read after the end of the writer may find room again
    assert!(n <= 2 * INBOX, "{n}");
}

#[tokio::test]
async fn a_bar_that_floods_costs_no_word_of_a_job() {
    let (_tmp, channel, mut heard) = open();
    let mut a = StdStream::connect(channel.path()).unwrap();
    let writer = std::thread::spawn(move || {
        for _ in 0..5 {
            for _ in 0..10_000 {
                a.write_all(b"{\"type\":\"progress\",\"n\":1}\n").unwrap();
            }
            a.write_all(b"{\"type\":\"job\",\"state\":\"ended\"}\n")
                .unwrap();
        }
    });
    let mut ended = 0;
    while let Heard::Said { message, .. } = next(&mut heard).await {
        ended += u32::from(message.said == Said::JobEnded);
    }
    writer.join().unwrap();
    assert_eq!(ended, 5);
}

#[tokio::test]
async fn a_command_has_its_answer_or_a_deadline() {
    let (_tmp, channel, mut heard) = open();
    let stream = StdStream::connect(channel.path()).unwrap();
    let mut out = stream.try_clone().unwrap();
    out.write_all(b"{\"type\":\"problem\",\"text\":\"here\"}\n")
        .unwrap();
    let Heard::Said { conn, .. } = next(&mut heard).await else {
        panic!()
    };
    let door = channel.door();
    let asker = std::thread::spawn(move || {
        let limit = Duration::from_secs(20);
        let first = door.ask(conn, "stacks", limit);
        let second = door.ask(conn, "interrupt", limit);
        let third = door.ask(conn, "snapshot", Duration::from_millis(30));
        (first, second, third, door.ask(conn + 9, "stacks", limit))
    });
    let answerer = std::thread::spawn(move || {
        let mut lines = BufReader::new(stream).lines();
        for answer in ["\"ok\":true,\"value\":", "\"ok\":false,\"error\":"] {
            let line = lines.next().unwrap().unwrap();
            let command: Value = serde_json::from_str(&line).unwrap();
            // longer than any other line may be
            let filler = "s".repeat(if answer.contains("true") {
                2 * LONGEST_LINE
            } else {
                3
            });
            writeln!(
                out,
                "{{\"type\":\"reply\",\"seq\":{},\"id\":{},{answer}\"{filler}\"}}",
                if answer.contains("true") { 2 } else { 3 },
                command["id"]
            )
            .unwrap();
        }
        // the third is never answered
        lines.next().unwrap().unwrap();
        out
    });
    while !asker.is_finished() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let (first, second, third, fourth) = asker.join().unwrap();
    assert_eq!(first.unwrap().as_str().unwrap().len(), 2 * LONGEST_LINE);
    assert_eq!(second, Err(AskError::Refused("sss".to_owned())));
    assert_eq!(third, Err(AskError::Late(Duration::from_millis(30))));
    assert_eq!(fourth, Err(AskError::Gone));
    drop(answerer.join());
    // an answer counts as heard: the numbers of the messages have no gap
    let mut numbers = Vec::new();
    while let Heard::Said { message, .. } = next(&mut heard).await {
        numbers.push(message.seq);
    }
    assert_eq!(numbers, [Some(2), Some(3)]);
}

#[tokio::test]
async fn a_socket_that_was_removed_is_made_again_and_who_is_connected_stays() {
    let (_tmp, mut channel, mut heard) = open();
    let mut a = StdStream::connect(channel.path()).unwrap();
    a.write_all(b"{\"type\":\"bye\"}\n").unwrap();
    next(&mut heard).await;
    fs::remove_dir_all(&channel.place.folder).unwrap();
    channel.mend();
    let mut b = StdStream::connect(channel.path()).unwrap();
    for stream in [&mut a, &mut b] {
        stream.write_all(b"{\"type\":\"bye\"}\n").unwrap();
        assert!(matches!(next(&mut heard).await, Heard::Said { .. }));
    }
}

#[tokio::test]
async fn a_path_that_is_too_long_is_refused_and_a_dead_one_is_removed() {
    let tmp = tempfile::tempdir_in("/tmp").unwrap();
    let long = tmp.path().join("x".repeat(100));
    fs::create_dir(&long).unwrap();
    let error = Bound::below(&long).unwrap_err().to_string();
    assert!(error.contains("too long"), "{error}");
    assert_eq!(fs::read_dir(&long).unwrap().count(), 0);

    let dead = tmp.path().join("fpt-4194999-0");
    fs::create_dir(&dead).unwrap();
    fs::write(dead.join("s"), "").unwrap();
    let (_channel, _heard) = Bound::below(tmp.path()).unwrap().listen().unwrap();
    assert!(!dead.exists());
}
