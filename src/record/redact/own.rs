//! What is private about this machine and its user.

use std::fs;
use std::io::Read;

/// Names that say nothing about anybody.
const GENERIC: [&str; 22] = [
    "root",
    "user",
    "users",
    "admin",
    "nobody",
    "guest",
    "daemon",
    "ubuntu",
    "debian",
    "fedora",
    "arch",
    "linux",
    "docker",
    "runner",
    "default",
    "public",
    "shared",
    "localhost",
    "host",
    "home",
    "gpu",
    "localdomain",
];

/// Whether a name of an account or a machine is everybody's.
pub(super) fn is_generic(name: &str) -> bool {
    GENERIC.iter().any(|g| name.eq_ignore_ascii_case(g))
}

/// A file of the system, which is short.
fn read_some(path: &str) -> String {
    const MOST: u64 = 4 << 20;
    let mut text = String::new();
    let read = fs::File::open(path).and_then(|f| f.take(MOST).read_to_string(&mut text));
    read.map(|_| text).unwrap_or_default()
}

/// What is known to be private before anything is read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Own {
    /// Home folders.
    pub homes: Vec<String>,
    /// Names of accounts.
    pub users: Vec<String>,
    /// Names of the machine.
    pub hosts: Vec<String>,
    /// Values of exported variables whose names say that they are secret.
    pub secrets: Vec<String>,
}

impl Own {
    /// Of this machine, its user and the environment of this process.
    pub fn of_this_machine() -> Self {
        let mut own = Self::default();
        for name in ["USER", "LOGNAME", "SUDO_USER"] {
            own.users.extend(std::env::var(name).ok());
        }
        own.homes.extend(std::env::var("HOME").ok());
        own.passwd(&read_some("/etc/passwd"));
        let node = rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned();
        let file = read_some("/etc/hostname");
        for host in [node.as_str(), file.trim()] {
            own.hosts.push(host.to_owned());
            own.hosts.extend(host.split('.').next().map(str::to_owned));
        }
        for (name, value) in std::env::vars_os() {
            if let (Some(name), Some(value)) = (name.to_str(), value.to_str())
                && super::patterns::is_secret_name(name)
            {
                own.secrets.push(value.to_owned());
            }
        }
        own
    }

    /// The account of this process, and those of people: their homes lie below `/home`.
    fn passwd(&mut self, text: &str) {
        let uid = rustix::process::geteuid().as_raw().to_string();
        for line in text.lines() {
            let fields: Vec<&str> = line.split(':').collect();
            let [name, _, id, _, full, home, ..] = fields[..] else {
                continue;
            };
            if id == uid || home.starts_with("/home/") {
                self.users.push(name.to_owned());
                self.homes.push(home.to_owned());
                let full = full.split(',').next().unwrap_or_default().trim();
                // one word of it may be a word of any text
                if full.contains(' ') {
                    self.users.push(full.to_owned());
                }
            }
        }
    }
}
