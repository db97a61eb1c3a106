//! The parsers of a probe, for the fuzz target.

use super::request::{self, Clocks};
use super::sockets::SocketTable;
use super::{call, call_table, descriptors, diag, files, locks};

/// Reads the bytes as each of the formats of a probe.
pub(crate) fn survive(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (head, tail) = text.split_once('\0').unwrap_or((&text, &text));
    if let Ok(call::Place::Call { number, args }) = call::parse(head) {
        let name = call_table::name(number);
        let memory = (args[0] & !0xff, tail.as_bytes());
        request::decode(&name, &args, &memory, Clocks::default());
    }
    let mut table = SocketTable::default();
    table.add_internet(&text, "tcp");
    table.add_internet(&text, "udp");
    table.add_unix(&text);
    let held = locks::parse(&text, 64);
    let _ = locks::holder(&held, 1, Some((8, 1, 77)));
    let _ = (descriptors::watched(&text), descriptors::access(&text));
    let _ = (descriptors::pidfd(&text), files::mapped(&text));
    diag::survive(bytes);
}
