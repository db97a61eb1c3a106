//! Sockets of one network namespace: `/proc/PID/net/{tcp,tcp6,udp,udp6,unix}`.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use super::text;

/// Longest table that is read: about 100,000 TCP sockets.
const LIMIT: u64 = 16 << 20;

/// A socket, by what it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Socket {
    /// It listens for connections.
    Listener {
        /// `tcp 127.0.0.1:7860`, `unix /run/app.sock`.
        address: String,
        /// Port of TCP.
        port: Option<u16>,
    },
    /// TCP or UDP with a peer.
    Internet {
        /// `tcp` or `udp`.
        network: &'static str,
        /// Its own end.
        local: SocketAddr,
        /// The peer.
        remote: SocketAddr,
    },
    /// A connected Unix socket.
    Unix {
        /// The path that it was bound to, or that its listener was; empty for most clients.
        path: String,
    },
    /// Neither connected nor listening; `tcp`, `udp`, `unix`.
    Idle(&'static str),
}

/// The sockets of a namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SocketTable {
    /// By inode, as the links of descriptors name them.
    by_inode: HashMap<u64, Socket>,
    /// TCP sockets by both ends: the other end of one has them reversed.
    by_ends: HashMap<(SocketAddr, SocketAddr), u64>,
}

impl SocketTable {
    /// Reads the tables in the folder `net` of a process. What is not there, like IPv6
    /// where it is off, adds nothing.
    pub(super) fn read(net: &Path) -> Self {
        let mut table = Self::default();
        for (name, network) in [
            ("tcp", "tcp"),
            ("tcp6", "tcp"),
            ("udp", "udp"),
            ("udp6", "udp"),
        ] {
            let lines = text::limited(&net.join(name), LIMIT).unwrap_or_default();
            table.add_internet(&lines, network);
        }
        table.add_unix(&text::limited(&net.join("unix"), LIMIT).unwrap_or_default());
        table
    }

    /// Adds the lines of `tcp` or `udp`.
    pub(super) fn add_internet(&mut self, text: &str, network: &'static str) {
        for (inode, socket) in text.lines().filter_map(|line| internet(line, network)) {
            if let Socket::Internet {
                network: "tcp",
                local,
                remote,
            } = &socket
            {
                self.by_ends.insert((*local, *remote), inode);
            }
            self.by_inode.insert(inode, socket);
        }
    }

    /// Adds the lines of `unix`.
    pub(super) fn add_unix(&mut self, text: &str) {
        self.by_inode.extend(text.lines().filter_map(unix));
    }

    /// The socket with this inode.
    pub(super) fn get(&self, inode: u64) -> Option<&Socket> {
        self.by_inode.get(&inode)
    }

    /// The inode at the other end of a TCP connection, where that is on this machine.
    pub(super) fn other_end(&self, local: SocketAddr, remote: SocketAddr) -> Option<u64> {
        self.by_ends.get(&(remote, local)).copied()
    }

    /// Ports and paths on which one of these inodes listens.
    pub(super) fn listeners(&self, inodes: impl Iterator<Item = u64>) -> Listeners {
        let mut found = Listeners::default();
        for inode in inodes {
            if let Some(Socket::Listener { address, port }) = self.get(inode) {
                found.ports.extend(port);
                found
                    .paths
                    .extend(address.strip_prefix("unix ").map(str::to_owned));
            }
        }
        found
    }
}

/// Where the tree listens: a connection with such a local end was accepted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Listeners {
    ports: HashSet<u16>,
    paths: HashSet<String>,
}

impl Listeners {
    /// Whether the connection came from a client.
    pub(super) fn accepted(&self, socket: &Socket) -> bool {
        match socket {
            Socket::Internet { network, local, .. } => {
                *network == "tcp" && self.ports.contains(&local.port())
            }
            Socket::Unix { path } => self.paths.contains(path),
            Socket::Listener { .. } | Socket::Idle(_) => false,
        }
    }
}

/// A line of `tcp` or `udp`: `sl local remote state … inode`.
fn internet(line: &str, network: &'static str) -> Option<(u64, Socket)> {
    const LISTEN: u8 = 0x0a;
    let mut words = line.split_ascii_whitespace();
    let _slot = words.next()?.strip_suffix(':')?;
    let (local, remote) = (address(words.next()?)?, address(words.next()?)?);
    let state = u8::from_str_radix(words.next()?, 16).ok()?;
    let inode = words.nth(5)?.parse().ok().filter(|inode| *inode != 0)?;
    let socket = if network == "tcp" && state == LISTEN {
        Socket::Listener {
            address: format!("tcp {local}"),
            port: Some(local.port()),
        }
    } else if remote.port() == 0 {
        Socket::Idle(network)
    } else {
        Socket::Internet {
            network,
            local,
            remote,
        }
    };
    Some((inode, socket))
}

/// `0100007F:07E8`; the words of the address are numbers of this machine.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |n: usize| u32::from_str_radix(ip.get(8 * n..8 * n + 8)?, 16).ok();
    let ip = match ip.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?.to_ne_bytes())),
        32 => {
            let mut bytes = [0; 16];
            for (n, part) in bytes.chunks_exact_mut(4).enumerate() {
                part.copy_from_slice(&word(n)?.to_ne_bytes());
            }
            // IPv4 through a socket of IPv6 has the other end in the table of IPv4
            IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

/// A line of `unix`: `num: refs protocol flags type state inode [path]`.
fn unix(line: &str) -> Option<(u64, Socket)> {
    const ACCEPTS: u32 = 1 << 16;
    const DATAGRAM: u32 = 2;
    const CONNECTED: u32 = 3;
    let mut words = line.split_ascii_whitespace();
    words.next()?.strip_suffix(':')?;
    let mut hex = |n| u32::from_str_radix(words.nth(n)?, 16).ok();
    let (flags, kind, state) = (hex(2)?, hex(0)?, hex(0)?);
    let inode = words.next()?.parse().ok().filter(|inode| *inode != 0)?;
    let path = text::clip(&words.collect::<Vec<_>>().join(" "));
    let socket = if flags & ACCEPTS != 0 && kind != DATAGRAM {
        Socket::Listener {
            address: format!("unix {path}"),
            port: None,
        }
    } else if state == CONNECTED {
        Socket::Unix { path }
    } else {
        Socket::Idle("unix")
    };
    Some((inode, socket))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TCP: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
        0: 0100007F:1EB4 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0  0 1163 1 0 100 0 0 10 0\n\
        1: 0100007F:1EB4 0100007F:C350 01 00000000:00000000 00:00000000 00000000  0  0 1164 1 0 20 4 30 10 -1\n\
        2: 0100007F:C350 0100007F:1EB4 01 00000000:00000000 00:00000000 00000000  0  0 1165 1 0 20 4 30 10 -1\n\
        3: 0100007F:C351 0100007F:1EB4 06 00000000:00000000 03:00001767 00000000  0  0 0 3 0\n";
    const UNIX: &str = "Num       RefCount Protocol Flags    Type St Inode Path\n\
        0000000000000000: 00000002 00000000 00010000 0001 01 2001 /run/app.sock\n\
        0000000000000000: 00000003 00000000 00000000 0001 03 2002 /run/app.sock\n\
        0000000000000000: 00000003 00000000 00000000 0001 03 2003\n\
        0000000000000000: 00000002 00000000 00000000 0002 01 2004\n\
        0000000000000000: 00000002 00000000 00010000 0001 01 2005 @a b\n";

    fn table() -> SocketTable {
        let mut table = SocketTable::default();
        table.add_internet(TCP, "tcp");
        table.add_unix(UNIX);
        table
    }

    #[test]
    fn listeners_connections_and_their_other_ends_are_told_apart() {
        let table = table();
        let listener = |address: &str, port| Socket::Listener {
            address: address.to_owned(),
            port,
        };
        assert_eq!(
            table.get(1163),
            Some(&listener("tcp 127.0.0.1:7860", Some(7860)))
        );
        let Some(Socket::Internet { local, remote, .. }) = table.get(1165) else {
            panic!("{:?}", table.get(1165));
        };
        assert_eq!(remote.to_string(), "127.0.0.1:7860");
        assert_eq!(table.other_end(*local, *remote), Some(1164));
        assert_eq!(table.other_end(*remote, *remote), None);
        // one without an inode belongs to nobody any more
        assert_eq!(table.get(0), None);
        assert_eq!(table.get(2001), Some(&listener("unix /run/app.sock", None)));
        assert_eq!(table.get(2005), Some(&listener("unix @a b", None)));
        let unix = |path: &str| Socket::Unix {
            path: path.to_owned(),
        };
        assert_eq!(table.get(2003), Some(&unix("")));
        assert_eq!(table.get(2004), Some(&Socket::Idle("unix")));
    }

    #[test]
    fn a_connection_to_a_port_on_which_the_tree_listens_was_accepted() {
        let table = table();
        let ours = table.listeners([1163, 2001, 9].into_iter());
        let accepted = |inode| ours.accepted(table.get(inode).unwrap());
        assert_eq!(
            [1164, 1165, 2002, 2003].map(accepted),
            [true, false, true, false]
        );
        let nobodys = table.listeners(std::iter::empty());
        assert!(!nobodys.accepted(table.get(1164).unwrap()));
    }

    #[test]
    fn addresses_of_both_families_are_read_and_mapped_ones_are_ipv4() {
        let read = |text| address(text).map(|a| a.to_string());
        assert_eq!(read("0100007F:07E8").as_deref(), Some("127.0.0.1:2024"));
        let mapped = "0000000000000000FFFF00000100007F:0050";
        assert_eq!(read(mapped).as_deref(), Some("127.0.0.1:80"));
        let local = "00000000000000000000000001000000:0050";
        assert_eq!(read(local).as_deref(), Some("[::1]:80"));
        for other in ["", ":", "0100007F", "0100007:07E8", "é00007F:07E8"] {
            assert_eq!(read(other), None);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in ".{0,300}", cut in 0usize..500) {
            let mut table = SocketTable::default();
            table.add_internet(&text, "udp");
            table.add_unix(&text);
            table.add_internet(&TCP[..cut.min(TCP.len())], "tcp");
            table.add_unix(&UNIX[..cut.min(UNIX.len())]);
        }
    }
}
