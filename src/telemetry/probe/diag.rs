//! The kernel's answers about sockets (`NETLINK_SOCK_DIAG`): byte counts of TCP, peers of
//! Unix sockets. They exist for the network namespace of this program alone.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};

/// Messages of one answer that are read.
const MOST_MESSAGES: usize = 65_536;
/// The kernel answers at once; a broken one must not hold up the probe.
const LONGEST: Duration = Duration::from_millis(500);
const HEADER: usize = 16;
/// Type of a request, and of its answers.
const BY_FAMILY: u16 = 20;

/// Bytes over a TCP connection, and when the last ones went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Connection {
    /// `tcpi_bytes_received`.
    pub(super) received: u64,
    /// `tcpi_bytes_acked`.
    pub(super) acked: u64,
    /// Milliseconds since data was sent (`tcpi_last_data_sent`); since the connection began
    /// where none was.
    pub(super) sent_ms: u32,
    /// Milliseconds since data came (`tcpi_last_data_recv`); the same.
    pub(super) received_ms: u32,
    /// Segments with data that were sent (`tcpi_data_segs_out`).
    pub(super) segments_sent: u32,
    /// Both ends are open (`TCP_ESTABLISHED`).
    pub(super) established: bool,
}

impl Connection {
    /// How long a request has been without a byte of an answer, in milliseconds.
    pub(super) fn unanswered_ms(&self) -> Option<u64> {
        // the first request comes in the kernel's tick of its connection
        let no_answer = self.segments_sent == 0 || self.received_ms < self.sent_ms;
        let asked = self.established && self.received > 0;
        (asked && no_answer).then_some(self.received_ms.into())
    }
}

/// Every TCP connection, by inode.
pub(super) fn tcp_connections() -> io::Result<HashMap<u64, Connection>> {
    const IPV4: u8 = 2;
    const IPV6: u8 = 10;
    const TCP: u8 = 6;
    /// `1 << (INET_DIAG_INFO - 1)`.
    const INFO: u8 = 2;
    /// All states but TIME_WAIT, CLOSE and LISTEN.
    const STATES: u32 = 0xfff & !(1 << 6 | 1 << 7 | 1 << 10);
    let mut connections = HashMap::new();
    for family in [IPV4, IPV6] {
        let mut request = vec![family, TCP, INFO, 0];
        request.extend(STATES.to_ne_bytes());
        request.resize(56, 0);
        ask(&request, |payload| connections.extend(tcp_message(payload)))?;
    }
    Ok(connections)
}

/// The inode at the other end of every connected Unix socket, by inode.
pub(super) fn unix_peers() -> io::Result<HashMap<u64, u64>> {
    const UNIX: u8 = 1;
    const SHOW_PEER: u32 = 4;
    let mut request = vec![UNIX, 0, 0, 0];
    request.extend(u32::MAX.to_ne_bytes());
    request.extend([0; 4]);
    request.extend(SHOW_PEER.to_ne_bytes());
    request.resize(24, 0);
    let mut peers = HashMap::new();
    ask(&request, |payload| peers.extend(unix_message(payload)))?;
    Ok(peers)
}

/// Sends a request for a whole list, and hands on what each answer carries.
fn ask(request: &[u8], mut accept: impl FnMut(&[u8])) -> io::Result<()> {
    const REQUEST_DUMP: u16 = 0x301;
    let socket = open()?;
    let length = u32::try_from(HEADER + request.len()).unwrap_or(u32::MAX);
    let mut message = Vec::new();
    message.extend(length.to_ne_bytes());
    message.extend(BY_FAMILY.to_ne_bytes());
    message.extend(REQUEST_DUMP.to_ne_bytes());
    message.extend(1_u32.to_ne_bytes());
    message.extend(0_u32.to_ne_bytes());
    message.extend(request);
    net::send(&socket, &message, SendFlags::empty())?;
    let mut buffer = vec![0; 64 << 10];
    let mut read = 0;
    while read < MOST_MESSAGES {
        let (length, _) = net::recv(&socket, buffer.as_mut_slice(), RecvFlags::empty())?;
        if length == 0 {
            break;
        }
        for message in Messages(&buffer[..length.min(buffer.len())]) {
            read += 1;
            match message {
                Message::Answer(payload) => accept(payload),
                Message::End => return Ok(()),
                Message::Error(errno) => return Err(io::Error::from_raw_os_error(errno)),
            }
        }
    }
    Ok(())
}

fn open() -> Result<OwnedFd, Errno> {
    let socket = net::socket_with(
        AddressFamily::NETLINK,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        Some(net::netlink::SOCK_DIAG),
    )?;
    for way in [sockopt::Timeout::Recv, sockopt::Timeout::Send] {
        sockopt::set_socket_timeout(&socket, way, Some(LONGEST))?;
    }
    net::connect(&socket, &net::netlink::SocketAddrNetlink::new(0, 0))?;
    Ok(socket)
}

/// A message of netlink.
#[derive(Debug, PartialEq, Eq)]
enum Message<'a> {
    /// What was asked for.
    Answer(&'a [u8]),
    /// The list is whole.
    End,
    /// The kernel refuses, with this error.
    Error(i32),
}

/// The messages of one datagram.
struct Messages<'a>(&'a [u8]);

impl<'a> Iterator for Messages<'a> {
    type Item = Message<'a>;

    fn next(&mut self) -> Option<Message<'a>> {
        const ERROR: u16 = 2;
        const DONE: u16 = 3;
        loop {
            let length = usize::try_from(number(self.0, 0)?).ok()?;
            let kind = number(self.0, 4)? & 0xffff;
            let payload = self.0.get(HEADER..length)?;
            self.0 = self.0.get(aligned(length)..).unwrap_or_default();
            return Some(match u16::try_from(kind).ok()? {
                BY_FAMILY => Message::Answer(payload),
                DONE => Message::End,
                // zero is a receipt
                ERROR => match number(payload, 0)?.cast_signed() {
                    0 => continue,
                    errno => Message::Error(errno.saturating_neg()),
                },
                _ => continue,
            });
        }
    }
}

/// Inode and connection from `inet_diag_msg` and the `tcp_info` behind it.
fn tcp_message(payload: &[u8]) -> Option<(u64, Connection)> {
    const LENGTH: usize = 72;
    const INFO: u16 = 2;
    const ESTABLISHED: u8 = 1;
    let inode = u64::from(number(payload, LENGTH - 4)?);
    let info = attribute(payload.get(LENGTH..)?, INFO)?;
    let connection = Connection {
        acked: long(info, 120)?,
        received: long(info, 128)?,
        sent_ms: number(info, 44)?,
        received_ms: number(info, 52)?,
        segments_sent: number(info, 156)?,
        established: info.first() == Some(&ESTABLISHED),
    };
    (inode != 0).then_some((inode, connection))
}

/// Inodes of both ends from `unix_diag_msg` and what is behind it.
fn unix_message(payload: &[u8]) -> Option<(u64, u64)> {
    const LENGTH: usize = 16;
    const PEER: u16 = 2;
    let inode = number(payload, 4)?;
    let peer = number(attribute(payload.get(LENGTH..)?, PEER)?, 0)?;
    (peer != 0).then_some((inode.into(), peer.into()))
}

/// The value of the first attribute of this type.
fn attribute(mut bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    const HEADER: usize = 4;
    loop {
        let head = number(bytes, 0)?.to_ne_bytes();
        let length = usize::from(u16::from_ne_bytes([head[0], head[1]]));
        let value = bytes.get(HEADER..length)?;
        if u16::from_ne_bytes([head[2], head[3]]) == wanted {
            return Some(value);
        }
        bytes = bytes.get(aligned(length)..)?;
    }
}

const fn aligned(length: usize) -> usize {
    length.saturating_add(3) & !3
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let part = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_ne_bytes(part.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    let part = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_ne_bytes(part.try_into().ok()?))
}

/// Reads a datagram as both kinds of answer, for the fuzz target.
pub(super) fn survive(bytes: &[u8]) -> usize {
    let answers = Messages(bytes).filter_map(|message| match message {
        Message::Answer(payload) => Some(payload),
        Message::End | Message::Error(_) => None,
    });
    answers
        .map(|a| usize::from(tcp_message(a).is_some()) + usize::from(unix_message(a).is_some()))
        .sum()
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    use proptest::prelude::*;

    use super::*;

    fn message(kind: u16, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(HEADER + payload.len()).unwrap();
        let mut bytes = length.to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0; 10]);
        bytes.extend(payload);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn inode(of: &impl AsRawFd) -> u64 {
        let link = std::fs::read_link(format!("/proc/self/fd/{}", of.as_raw_fd())).unwrap();
        let link = link.to_str().unwrap().to_owned();
        link["socket:[".len()..link.len() - 1].parse().unwrap()
    }

    #[test]
    fn answers_errors_and_the_end_are_told_apart() {
        let mut bytes = message(2, &0_i32.to_ne_bytes());
        bytes.extend(message(BY_FAMILY, b"abcde"));
        bytes.extend(message(2, &(-13_i32).to_ne_bytes()));
        bytes.extend(message(3, b""));
        let all: Vec<_> = Messages(&bytes).collect();
        let expected = [Message::Answer(b"abcde"), Message::Error(13), Message::End];
        assert_eq!(all, expected);
    }

    #[test]
    fn bytes_of_a_real_connection_are_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        server.write_all(&[7; 5000]).unwrap();
        client.read_exact(&mut [0; 5000]).unwrap();
        client.write_all(&[7; 300]).unwrap();
        server.read_exact(&mut [0; 300]).unwrap();
        let begun = std::time::Instant::now();
        let counts = loop {
            let counts = tcp_connections().unwrap();
            let of_client = counts[&inode(&client)];
            assert_eq!(of_client.received, 5000);
            // its first byte is that of the connection itself; the last
            // acknowledgement may be under way
            if (300..=301).contains(&of_client.acked) {
                break counts;
            }
            assert!(begun.elapsed() < LONGEST * 20, "{of_client:?}");
        };
        assert!(!counts.contains_key(&inode(&listener)));
    }

    #[test]
    fn a_real_request_is_unanswered_until_a_byte_goes_back() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let of_server = inode(&server);
        let unanswered = || tcp_connections().unwrap()[&of_server].unanswered_ms();
        // the times have the resolution of the kernel's tick
        let until = |expected: bool| {
            let begun = std::time::Instant::now();
            while unanswered().is_some() != expected {
                assert!(begun.elapsed() < LONGEST * 20, "never {expected}");
            }
        };
        assert_eq!(unanswered(), None, "nothing was asked");
        client.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        until(true);
        std::thread::sleep(Duration::from_millis(20));
        server.write_all(b"HTTP/1.1 200 OK\r\n").unwrap();
        until(false);
        std::thread::sleep(Duration::from_millis(20));
        client.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        until(true);
        client.shutdown(std::net::Shutdown::Both).unwrap();
        until(false);
    }

    #[test]
    fn both_ends_of_a_real_pair_name_each_other() {
        let (a, b) = UnixStream::pair().unwrap();
        let peers = unix_peers().unwrap();
        assert_eq!(peers.get(&inode(&a)), Some(&inode(&b)));
        assert_eq!(peers.get(&inode(&b)), Some(&inode(&a)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>) {
            survive(&bytes);
            survive(&message(BY_FAMILY, &bytes));
            let _ = attribute(&bytes, 2);
        }
    }
}
