//! Interpreters by the word that a command line names them with.

/// The last part of a path.
pub(crate) fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether a word names Python: `python`, `/usr/bin/python3.11`, `pypy3`, `python3.14t`; not a
/// program whose name only begins so.
pub(crate) fn is_python(word: &str) -> bool {
    let name = base(word);
    let version = name
        .strip_prefix("python")
        .or_else(|| name.strip_prefix("pypy"));
    version.is_some_and(|v| {
        let v = v.strip_suffix('t').unwrap_or(v);
        v.bytes().all(|b| b.is_ascii_digit() || b == b'.')
    })
}
