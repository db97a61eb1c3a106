//! The sockets of the tree: whose other end is where, and what went over those that lead
//! out of it.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::diag::{self, Connection};
use super::process::Process;
use super::sockets::{Listeners, Socket, SocketTable};
use crate::model::{PeerTraffic, WaitTarget};

/// The sockets that the processes of the tree hold.
#[derive(Debug, Default)]
pub(super) struct Network {
    spaces: Vec<Namespace>,
    /// Place of each process's namespace in that list.
    of_process: HashMap<u32, usize>,
    /// Processes that hold each inode.
    holders: HashMap<u64, BTreeSet<u32>>,
    /// The other end of each Unix socket of our own namespace.
    unix_peers: HashMap<u64, u64>,
}

/// A network namespace with sockets of the tree in it.
#[derive(Debug)]
struct Namespace {
    /// Its link; none where that is hidden: then it is one of its own.
    name: Option<PathBuf>,
    /// It is that of this program, of which the kernel tells more.
    own: bool,
    table: SocketTable,
    inodes: BTreeSet<u64>,
    listeners: Listeners,
}

impl Network {
    /// Reads the tables of every namespace in which the processes hold sockets.
    pub(super) fn read(proc: &Path, processes: &[Process]) -> Self {
        let own = fs::read_link(proc.join("self/ns/net")).ok();
        let mut network = Self::default();
        for process in processes {
            let inodes: Vec<u64> = process.sockets().collect();
            if inodes.is_empty() {
                continue;
            }
            for inode in &inodes {
                network
                    .holders
                    .entry(*inode)
                    .or_default()
                    .insert(process.pid);
            }
            let place = network.namespace(&process.dir, own.as_deref());
            network.of_process.insert(process.pid, place);
            network.spaces[place].inodes.extend(inodes);
        }
        for space in &mut network.spaces {
            space.listeners = space.table.listeners(space.inodes.iter().copied());
        }
        let has_unix = |space: &&Namespace| {
            let mut sockets = space
                .inodes
                .iter()
                .filter_map(|inode| space.table.get(*inode));
            space.own && sockets.any(|socket| matches!(socket, Socket::Unix { .. }))
        };
        if network.spaces.iter().any(|space| has_unix(&space)) {
            // without them the other end of such a socket is not known
            network.unix_peers = diag::unix_peers().unwrap_or_default();
        }
        network
    }

    fn namespace(&mut self, dir: &Path, own: Option<&Path>) -> usize {
        let name = fs::read_link(dir.join("ns/net")).ok();
        let known = self
            .spaces
            .iter()
            .position(|s| s.name.is_some() && s.name == name);
        known.unwrap_or_else(|| {
            self.spaces.push(Namespace {
                own: name.is_some() && name.as_deref() == own,
                name,
                table: SocketTable::read(&dir.join("net")),
                inodes: BTreeSet::new(),
                listeners: Listeners::default(),
            });
            self.spaces.len() - 1
        })
    }

    /// Addresses on which a process listens.
    pub(super) fn listens(&self, process: &Process) -> Vec<String> {
        let Some(space) = self.space(process.pid) else {
            return Vec::new();
        };
        let address = |inode| match space.table.get(inode) {
            Some(Socket::Listener { address, .. }) => Some(address.clone()),
            _ => None,
        };
        let all: BTreeSet<String> = process.sockets().filter_map(address).collect();
        all.into_iter().collect()
    }

    /// What a wait of this process on a socket is for; none: the kernel lists no such one.
    pub(super) fn target(&self, pid: u32, inode: u64) -> Option<WaitTarget> {
        let space = self.space(pid)?;
        let socket = space.table.get(inode)?;
        let accepted = space.listeners.accepted(socket);
        let inside = self.inside(space, inode, socket, pid);
        Some(match socket {
            Socket::Listener { address, .. } => WaitTarget::Listener {
                address: address.clone(),
            },
            Socket::Internet {
                network, remote, ..
            } => WaitTarget::Peer {
                network: (*network).to_owned(),
                address: remote.to_string(),
                inside,
                accepted,
            },
            Socket::Unix { path } => WaitTarget::Peer {
                network: "unix".to_owned(),
                address: self.unix_address(space, inode, path),
                inside,
                accepted,
            },
            Socket::Idle(network) => WaitTarget::Other {
                what: format!("{network} socket without a peer"),
            },
        })
    }

    fn space(&self, pid: u32) -> Option<&Namespace> {
        self.spaces.get(*self.of_process.get(&pid)?)
    }

    /// The process of the tree that holds the other end: another one than `pid`, or that
    /// one itself where it alone holds both.
    fn inside(&self, space: &Namespace, inode: u64, socket: &Socket, pid: u32) -> Option<u32> {
        let other = self.other_end(space, inode, socket)?;
        let holders = self.holders.get(&other)?;
        let mut others = holders.iter().filter(|holder| **holder != pid);
        others.next().or_else(|| holders.first()).copied()
    }

    fn other_end(&self, space: &Namespace, inode: u64, socket: &Socket) -> Option<u64> {
        match socket {
            Socket::Internet { local, remote, .. } => space.table.other_end(*local, *remote),
            Socket::Unix { .. } => self.unix_peers.get(&inode).copied(),
            Socket::Listener { .. } | Socket::Idle(_) => None,
        }
    }

    /// A client has no path of its own: that of its peer is where it is connected to.
    fn unix_address(&self, space: &Namespace, inode: u64, path: &str) -> String {
        let peer = self
            .unix_peers
            .get(&inode)
            .and_then(|peer| space.table.get(*peer));
        match peer {
            Some(Socket::Unix { path: of_peer }) if path.is_empty() => of_peer.clone(),
            _ => path.to_owned(),
        }
    }

    /// The connections between the tree and others. The kernel is asked for byte counts only
    /// where there is one.
    pub(super) fn traffic(&self) -> io::Result<PeerTraffic> {
        let mut traffic = PeerTraffic::default();
        let (mut opened, mut accepted) = (Vec::new(), Vec::new());
        for space in &self.spaces {
            for inode in &space.inodes {
                let Some(socket) = space.table.get(*inode) else {
                    continue;
                };
                let other = self.other_end(space, *inode, socket);
                if other.is_some_and(|other| self.holders.contains_key(&other)) {
                    continue;
                }
                let by_client = space.listeners.accepted(socket);
                match socket {
                    Socket::Internet { network: "tcp", .. } if space.own && by_client => {
                        accepted.push(*inode);
                    }
                    Socket::Internet { network: "tcp", .. } if space.own => opened.push(*inode),
                    Socket::Internet { .. } | Socket::Unix { .. } if !by_client => {
                        traffic.uncounted += 1;
                    }
                    _ => {}
                }
            }
        }
        if opened.is_empty() && accepted.is_empty() {
            return Ok(traffic);
        }
        // one that is not listed has been closed since
        let connections = diag::tcp_connections()?;
        for connection in opened.iter().filter_map(|inode| connections.get(inode)) {
            traffic.connections += 1;
            traffic.received = traffic.received.saturating_add(connection.received);
            traffic.sent = traffic.sent.saturating_add(connection.acked);
        }
        let accepted = accepted.iter().filter_map(|inode| connections.get(inode));
        traffic.unanswered_ms = accepted.filter_map(Connection::unanswered_ms).collect();
        traffic.unanswered_ms.sort_unstable_by(|a, b| b.cmp(a));
        traffic.unanswered_ms.truncate(PeerTraffic::MOST_REQUESTS);
        Ok(traffic)
    }
}
