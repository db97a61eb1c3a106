//! The console of a process that is not ours, as far as it lies in a file: read from its
//! end on, as it grows.
//!
//! A file may lie on a disk that does not answer: a thread of its own reads it into a
//! pipe, from which the task takes it as it takes the output of a child of ours.

use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use tokio::net::unix::pipe::Receiver;

use super::console::Reader;
use crate::model::Stream;

/// How often a file that does not grow is looked at.
const POLL: Duration = Duration::from_millis(100);
/// Looks between two questions whether another file has taken its name.
const NAME_EVERY: u32 = 10;
/// Bytes read at once.
const CHUNK: usize = 32 * 1024;

/// A file to which a process writes.
#[derive(Debug)]
pub struct ConsoleFile {
    /// Which stream it is taken for.
    pub stream: Stream,
    /// Open for reading.
    pub file: File,
    /// Its name, where it is to be followed when another file takes it (a log that is
    /// rotated).
    pub name: Option<PathBuf>,
}

/// Keeps the thread alive.
pub(super) type Token = Arc<()>;

/// Starts to read what comes from now on. Must be called within a tokio runtime.
pub(super) fn start(console: ConsoleFile, token: &Token) -> io::Result<Reader> {
    let (theirs, ours) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let mut tail = Tail::new(console)?;
    let token = Arc::downgrade(token);
    thread::Builder::new()
        .name("console".to_owned())
        .spawn(move || tail.pour(ours, &token))?;
    Ok(Box::new(Receiver::from_owned_fd(theirs)?))
}

struct Tail {
    file: File,
    name: Option<PathBuf>,
    at: u64,
}

impl Tail {
    fn new(console: ConsoleFile) -> io::Result<Self> {
        let ConsoleFile { mut file, name, .. } = console;
        let at = file.seek(SeekFrom::End(0))?;
        Ok(Self { file, name, at })
    }

    /// Until nobody reads any more.
    fn pour(&mut self, into: OwnedFd, token: &Weak<()>) {
        let mut into = File::from(into);
        let mut chunk = vec![0; CHUNK];
        let mut looks = 0;
        while token.strong_count() > 0 {
            // what cannot be read now may be readable later
            let n = self.next(&mut chunk).unwrap_or(0);
            if n > 0 {
                if into.write_all(&chunk[..n]).is_err() {
                    return;
                }
                continue;
            }
            looks += 1;
            if looks % NAME_EVERY == 0 {
                self.look_at_name();
            }
            thread::sleep(POLL);
        }
    }

    /// The bytes that have come; 0: none.
    fn next(&mut self, chunk: &mut [u8]) -> io::Result<usize> {
        let size = self.file.metadata()?.len();
        if size < self.at {
            // it was emptied, and is written anew
            self.at = self.file.seek(SeekFrom::Start(0))?;
        }
        let n = self.file.read(chunk)?;
        self.at += n as u64;
        Ok(n)
    }

    /// Changes over to the file that has taken the name; that one is read from its
    /// beginning.
    fn look_at_name(&mut self) {
        let Some(name) = &self.name else {
            return;
        };
        let identity = |m: Metadata| (m.dev(), m.ino());
        let here = self.file.metadata().map(identity);
        let there = std::fs::metadata(name).map(identity);
        if let (Ok(here), Ok(there)) = (here, there)
            && here != there
            && let Ok(file) = File::open(name)
        {
            self.file = file;
            self.at = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn tail(path: &std::path::Path) -> Tail {
        Tail::new(ConsoleFile {
            stream: Stream::Stdout,
            file: File::open(path).unwrap(),
            name: Some(path.to_owned()),
        })
        .unwrap()
    }

    fn read(tail: &mut Tail) -> String {
        let mut chunk = [0; 64];
        let n = tail.next(&mut chunk).unwrap();
        String::from_utf8_lossy(&chunk[..n]).into_owned()
    }

    #[test]
    fn only_what_comes_is_read_also_after_the_file_was_emptied_or_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        fs::write(&path, "before\n").unwrap();
        let mut tail = tail(&path);
        assert_eq!(read(&mut tail), "");
        let mut log = fs::OpenOptions::new().append(true).open(&path).unwrap();
        log.write_all(b"one\n").unwrap();
        assert_eq!(read(&mut tail), "one\n");
        log.set_len(0).unwrap();
        log.write_all(b"two\n").unwrap();
        assert_eq!(read(&mut tail), "two\n");
        fs::rename(&path, dir.path().join("log.1")).unwrap();
        fs::write(&path, "three\n").unwrap();
        assert_eq!(read(&mut tail), "");
        tail.look_at_name();
        assert_eq!(read(&mut tail), "three\n");
    }

    #[tokio::test]
    async fn it_arrives_in_the_pipe_and_the_thread_ends_with_its_token() {
        use tokio::io::AsyncReadExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        fs::write(&path, "before\n").unwrap();
        let token = Token::default();
        let console = ConsoleFile {
            stream: Stream::Stdout,
            file: File::open(&path).unwrap(),
            name: None,
        };
        let mut reader = start(console, &token).unwrap();
        let mut log = fs::OpenOptions::new().append(true).open(&path).unwrap();
        log.write_all(b"hello\n").unwrap();
        let mut bytes = [0; 16];
        let n = reader.read(&mut bytes).await.unwrap();
        assert_eq!(&bytes[..n], b"hello\n");
        drop(token);
        assert_eq!(reader.read(&mut bytes).await.unwrap(), 0, "the end");
    }
}
