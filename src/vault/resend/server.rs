//! Where a job is sent: a port of this machine, and nowhere else.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// A server on this machine. The kept jobs hold prompts and pictures: they go nowhere else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Server(SocketAddr);

/// Why an address is none that a job is sent to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServerError {
    /// Not of the form `http://127.0.0.1:7860`.
    #[error("`{0}` is no address of a server; it looks like http://127.0.0.1:7860")]
    Form(String),
    /// Another machine.
    #[error("`{0}` is not this machine; jobs are sent to 127.0.0.1, ::1 and localhost only")]
    Elsewhere(String),
}

impl Server {
    /// This port of 127.0.0.1.
    pub const fn local(port: u16) -> Self {
        Self(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port))
    }

    /// The port.
    pub const fn port(self) -> u16 {
        self.0.port()
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}", self.0)
    }
}

impl FromStr for Server {
    type Err = ServerError;

    /// Reads what servers announce: `http://127.0.0.1:7860`. `0.0.0.0` and `::` mean every
    /// address of the machine, so this one as well.
    fn from_str(text: &str) -> Result<Self, ServerError> {
        let form = || ServerError::Form(text.to_owned());
        let rest = text.trim();
        let rest = rest.strip_prefix("http://").unwrap_or(rest);
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = rest.rsplit_once(':').ok_or_else(form)?;
        let port: u16 = port.parse().map_err(|_no_port| form())?;
        let bare = host
            .strip_prefix('[')
            .map_or(Some(host), |h| h.strip_suffix(']'))
            .ok_or_else(form)?;
        if port == 0 || bare.is_empty() || bare.contains(['/', '@', '?', '#']) {
            return Err(form());
        }
        let address = match bare.parse() {
            Ok(IpAddr::V4(ip)) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            Ok(IpAddr::V6(ip)) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
            Ok(ip) if ip.is_loopback() => ip,
            Err(_) if bare.eq_ignore_ascii_case("localhost") => IpAddr::V4(Ipv4Addr::LOCALHOST),
            _ => return Err(ServerError::Elsewhere(text.to_owned())),
        };
        Ok(Self(SocketAddr::new(address, port)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> String {
        match text.parse::<Server>() {
            Ok(server) => server.to_string(),
            Err(ServerError::Form(_)) => "form".to_owned(),
            Err(ServerError::Elsewhere(_)) => "elsewhere".to_owned(),
        }
    }

    #[test]
    fn only_this_machine_is_a_server() {
        for (text, found) in [
            ("http://127.0.0.1:7860", "http://127.0.0.1:7860"),
            ("http://0.0.0.0:7861/", "http://127.0.0.1:7861"),
            ("localhost:8188", "http://127.0.0.1:8188"),
            ("http://[::1]:8188", "http://[::1]:8188"),
            ("http://[::]:8188", "http://[::1]:8188"),
            ("http://192.168.0.7:7860", "elsewhere"),
            ("http://example.org:80", "elsewhere"),
            ("http://127.0.0.1.example.org:80", "elsewhere"),
            ("https://127.0.0.1:7860", "form"),
            ("http://127.0.0.1@example.org:80", "form"),
            ("http://example.org/127.0.0.1:80", "form"),
            ("http://127.0.0.1", "form"),
            ("http://127.0.0.1:0", "form"),
            ("http://[::1:80", "form"),
            ("", "form"),
        ] {
            assert_eq!(read(text), found, "{text}");
        }
        assert_eq!(Server::local(7).port(), 7);
    }

    proptest! {
        #[test]
        fn whatever_is_read_is_loopback(text in ".{0,40}") {
            if let Ok(server) = text.parse::<Server>() {
                prop_assert!(server.0.ip().is_loopback());
            }
        }
    }
}
