use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;
use crate::model::event::{Level, SCHEMA};
use crate::model::{Command, Event, Mono, RungId, Seen, Setting, VerdictId};
use crate::record::tests::samples;

/// Longer than a machine stalls.
const LIMIT: Duration = Duration::from_secs(30);

fn request(command: Command) -> Request {
    Request {
        command,
        seen: Seen {
            attempt: 2,
            verdict: Some(VerdictId::SilentHang),
            ..Seen::default()
        },
    }
}

fn event(seq: u64) -> Arc<Envelope> {
    let text = format!("notice {seq}");
    Arc::new(Envelope {
        seq,
        at: Mono(seq * 10),
        from: None,
        event: Event::Notice {
            level: Level::Info,
            text,
        },
    })
}

/// A run's folder whose path is longer than an address of a socket.
fn folder() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("long".repeat(30));
    std::fs::create_dir(&path).unwrap();
    (dir, path)
}

fn start(folder: &Path) -> (Server, Incoming) {
    let (server, incoming, refused) = Server::start("20261130-0000-0000", folder, None).unwrap();
    assert!(refused.is_none(), "{refused:?}");
    (server, incoming)
}

fn next(link: &mut Link) -> ToViewer {
    let begun = Instant::now();
    loop {
        if let Some(message) = link.next(Duration::from_millis(50)).unwrap() {
            return message;
        }
        assert!(begun.elapsed() < LIMIT, "nothing came");
    }
}

fn seq(message: &ToViewer) -> u64 {
    match message {
        ToViewer::Event(env) => env.seq,
        other => panic!("no event: {other:?}"),
    }
}

fn heard(incoming: &mut Incoming) -> Heard {
    let begun = Instant::now();
    loop {
        if let Ok(heard) = incoming.requests.try_recv() {
            return heard;
        }
        assert!(begun.elapsed() < LIMIT, "no request came");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until so many screens are attached.
fn attached(server: &Server, screens: usize) {
    let begun = Instant::now();
    while server.viewers() != screens {
        assert!(begun.elapsed() < LIMIT, "{} screens", server.viewers());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_screen_is_sent_what_comes_after_its_hello() {
    let (_dir, folder) = folder();
    let (server, _incoming) = start(&folder);
    let (mut early, hello) = Link::attach(&folder).unwrap();
    assert_eq!((hello.next, hello.run.as_str()), (1, "20261130-0000-0000"));
    assert_eq!(crate::model::os_text::to_os(&hello.folder), folder);
    for n in 1..=3 {
        server.accept(&event(n));
    }
    for n in 1..=3 {
        assert_eq!(seq(&next(&mut early)), n);
    }
    let (mut late, hello) = Link::attach(&folder).unwrap();
    assert_eq!(hello.next, 4, "the events before are in the record");
    attached(&server, 2);
    server.accept(&event(4));
    assert_eq!(seq(&next(&mut early)), 4);
    assert_eq!(seq(&next(&mut late)), 4);
    let mode = std::fs::metadata(folder.join(SOCKET))
        .unwrap()
        .permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    server.accept(&event(5));
    server.finish();
    assert_eq!(
        seq(&next(&mut late)),
        5,
        "what waits is sent before the end"
    );
    assert!(matches!(late.next(LIMIT), Err(LinkError::Closed)));
    assert!(!folder.join(SOCKET).exists());
    assert!(matches!(
        Link::attach(&folder),
        Err(AttachError::NoSocket(_))
    ));
}

#[test]
fn an_answer_goes_to_whoever_asked() {
    let (_dir, folder) = folder();
    let (ours, theirs) = UnixStream::pair().unwrap();
    let (server, mut incoming, _) = Server::start("r", &folder, Some(theirs)).unwrap();
    let mut own = Link::over(ours);
    assert!(matches!(next(&mut own), ToViewer::Hello(hello) if hello.next == 1));
    let (mut other, _) = Link::attach(&folder).unwrap();
    let asked = request(Command::Hold);
    other.sender().unwrap().send(asked.clone()).unwrap();
    let first = heard(&mut incoming);
    assert_eq!(first.request, asked);
    own.sender().unwrap().send(request(Command::Stop)).unwrap();
    let second = heard(&mut incoming);
    assert_eq!(second.request.command, Command::Stop);
    assert_ne!(first.viewer, second.viewer);
    server.answer(first.viewer, "no".to_owned());
    server.tell_all(ToViewer::ProfilesChanged);
    let text = "no".to_owned();
    assert_eq!(next(&mut other), ToViewer::Answer { text });
    assert_eq!(next(&mut other), ToViewer::ProfilesChanged);
    assert_eq!(next(&mut own), ToViewer::ProfilesChanged);
}

#[test]
fn a_screen_that_sends_anything_else_is_cut_off_alone() {
    let (_dir, folder) = folder();
    let (server, mut incoming) = start(&folder);
    let (mut good, _) = Link::attach(&folder).unwrap();
    let without_end = vec![b'x'; LONGEST_REQUEST + 2];
    for foreign in [
        b"hello\n".as_slice(),
        b"{}\n",
        b"\n",
        b"{\"request\":{\"command\":{\"command\":\"explode\"}}}\n",
        &without_end,
    ] {
        let (_open, path) = address(&folder).unwrap();
        let mut bad = UnixStream::connect(path).unwrap();
        attached(&server, 2);
        // it may be cut off before all is written
        let _ = bad.write_all(foreign);
        attached(&server, 1);
    }
    good.sender()
        .unwrap()
        .send(request(Command::Evidence))
        .unwrap();
    assert_eq!(heard(&mut incoming).request.command, Command::Evidence);
    server.accept(&event(1));
    assert_eq!(seq(&next(&mut good)), 1);
}

#[test]
fn a_screen_that_does_not_read_is_cut_off_and_holds_nobody_up() {
    let (_dir, folder) = folder();
    let (server, _incoming) = start(&folder);
    let (deaf, _) = Link::attach(&folder).unwrap();
    let (mut good, _) = Link::attach(&folder).unwrap();
    attached(&server, 2);
    let mut n = 0;
    let begun = Instant::now();
    while server.viewers() == 2 {
        assert!(begun.elapsed() < LIMIT, "still attached after {n} events");
        n += 1;
        server.accept(&event(n));
        assert_eq!(seq(&next(&mut good)), n);
    }
    assert_eq!(server.viewers(), 1);
    n += 1;
    server.accept(&event(n));
    assert_eq!(seq(&next(&mut good)), n);
    drop(deaf);
}

#[test]
fn another_version_is_not_attached_to() {
    let (_dir, folder) = folder();
    let (_open, path) = address(&folder).unwrap();
    let listener = UnixListener::bind(path).unwrap();
    let hello = |protocol, schema: &str| Hello {
        protocol,
        schema: schema.to_owned(),
        run: "r".to_owned(),
        folder: "/".to_owned(),
        next: 1,
    };
    for (hello, fits) in [
        (hello(PROTOCOL, SCHEMA), true),
        (hello(PROTOCOL + 1, SCHEMA), false),
        (hello(PROTOCOL, "0.9"), false),
    ] {
        let line = encode(&ToViewer::Hello(hello)).unwrap();
        let accept = std::thread::scope(|s| {
            let served = s.spawn(|| {
                let (mut stream, _) = listener.accept().unwrap();
                stream.write_all(&line).unwrap();
                stream
            });
            let attached = Link::attach(&folder);
            served.join().unwrap();
            attached
        });
        match accept {
            Ok(_) => assert!(fits),
            Err(AttachError::OtherVersion) => assert!(!fits),
            Err(other) => panic!("{other}"),
        }
    }
}

/// Even where the folder lets somebody in.
#[test]
fn another_user_is_not_heard() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can be another user");
        return;
    }
    let dir = tempfile::Builder::new().tempdir_in("/tmp").unwrap();
    let open = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    open(dir.path(), 0o755);
    let (server, mut incoming) = start(dir.path());
    open(&dir.path().join(SOCKET), 0o666);
    let program = "
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
print(repr(s.recv(10)))
";
    let nobody = std::process::Command::new("python3")
        .args(["-c", program])
        .arg(dir.path().join(SOCKET))
        .uid(65534)
        .gid(65534)
        .output();
    let Ok(nobody) = nobody else {
        eprintln!("skipped: there is no python3");
        return;
    };
    let said = String::from_utf8_lossy(&nobody.stdout);
    assert_eq!(said, "b''\n", "{}", String::from_utf8_lossy(&nobody.stderr));
    assert!(incoming.requests.try_recv().is_err());
    assert_eq!(server.viewers(), 0);
}

fn requests() -> impl Strategy<Value = Request> {
    let command = prop_oneof![
        Just(Command::Hold),
        Just(Command::Kill),
        any::<String>().prop_map(|id| Command::SaveProfile { id }),
        any::<String>().prop_map(|id| Command::TakeRung { rung: RungId(id) }),
        any::<Option<String>>().prop_map(|value| Command::Set {
            setting: Setting::FindMode,
            value,
        }),
    ];
    (command, any::<u32>()).prop_map(|(command, attempt)| Request {
        command,
        seen: Seen {
            attempt,
            ..Seen::default()
        },
    })
}

proptest! {
    #[test]
    fn messages_come_back_whatever_pieces_they_come_in(
        sent in proptest::collection::vec(requests(), 0..8),
        piece in 1_usize..200,
    ) {
        let mut bytes = Vec::new();
        for request in &sent {
            bytes.extend(encode(&ToSupervisor::Request(request.clone())).unwrap());
        }
        let mut messages = Messages::new(LONGEST_REQUEST);
        let mut came = Vec::new();
        for piece in bytes.chunks(piece) {
            messages.push(piece);
            while let Some(ToSupervisor::Request(request)) = messages.take().unwrap() {
                came.push(request);
            }
        }
        prop_assert_eq!(came, sent);
    }

    #[test]
    fn foreign_bytes_are_refused_within_bounds(
        bytes in proptest::collection::vec(any::<u8>(), 0..2000),
        piece in 1_usize..100,
    ) {
        const LONGEST: usize = 300;
        let mut messages = Messages::new(LONGEST);
        'all: for piece in bytes.chunks(piece) {
            messages.push(piece);
            loop {
                match messages.take::<ToSupervisor>() {
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(_) => break 'all,
                }
            }
            prop_assert!(messages.bytes.len() <= LONGEST);
        }
    }

    /// The body of the fuzz target `control`: bytes that nearly are messages, of both directions.
    /// What can be read comes back from its line.
    #[test]
    fn what_is_read_of_damaged_messages_comes_back(
        (nth, at, with) in (any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<Vec<u8>>()),
        cut in 0_usize..4,
    ) {
        let events = samples::one_of_each().into_iter().zip(1..);
        let events = events.map(|(event, seq)| ToViewer::Event(Box::new(Envelope {
            seq,
            at: Mono(seq),
            from: None,
            event,
        })));
        let mut lines: Vec<Vec<u8>> = events.map(|message| encode(&message).unwrap()).collect();
        lines.push(encode(&ToSupervisor::Request(request(Command::Kill))).unwrap());
        let mut bytes = lines[nth.index(lines.len())].clone();
        let from = at.index(bytes.len());
        bytes.splice(from..(from + cut).min(bytes.len()), with.into_iter().take(cut));
        comes_back::<ToSupervisor>(&bytes)?;
        comes_back::<ToViewer>(&bytes)?;
    }
}

fn comes_back<T>(bytes: &[u8]) -> Result<(), TestCaseError>
where
    T: Serialize + for<'a> Deserialize<'a> + PartialEq + std::fmt::Debug,
{
    let mut messages = Messages::new(LONGEST_REQUEST);
    for piece in bytes.chunks(37) {
        messages.push(piece);
        loop {
            let message: T = match messages.take() {
                Ok(Some(message)) => message,
                Ok(None) => break,
                Err(_) => return Ok(()),
            };
            let mut again = Messages::new(usize::MAX);
            again.push(&encode(&message).unwrap());
            prop_assert_eq!(again.take::<T>().unwrap(), Some(message));
        }
    }
    Ok(())
}
