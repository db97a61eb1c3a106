//! The child: `framepack-tui rocm-smi-reader`.
//!
//! | descriptor | what |
//! | --- | --- |
//! | 0 | requests; its end is our end |
//! | 1 | one line of JSON per request |
//! | 2 | whatever the library prints |

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, Signal};

use super::super::pci::PciAddress;
use super::ffi::{CallError, Library, Place, Pool};
use super::wire::{CardReading, InitFailed, Line, Ready, Value, encode};
use crate::model::GpuId;
use crate::model::time::millis;

/// Names one library and no other, for tests and for one at an unusual place.
const LIBRARY_VARIABLE: &str = "FPT_ROCM_SMI_LIBRARY";

/// How long a call that is under way may take once nobody wants its answer. Ended in
/// the middle of one, the library's lock would stay behind and stand in the way of
/// every program that uses the library.
const GRACE: Duration = Duration::from_secs(10);

/// Runs the reader until its standard input ends. The exit code is 0, or 74 where the
/// answers cannot be written.
pub fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_nobody_listens) => ExitCode::from(74),
    }
}

fn run() -> io::Result<()> {
    // An abort of the library is told in words; a core file of it helps nobody.
    // It stays dumpable, so that its maps tell who has the library's locks open.
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    rustix::process::setrlimit(Resource::Core, none)?;
    // What the library prints must not get between the answers.
    let mut answers = File::from(rustix::io::dup(rustix::stdio::stdout())?);
    rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    let requests = requests()?;
    let library = match load() {
        Ok((library, ready)) => {
            answers.write_all(&encode(&Line::Ready(ready)))?;
            library
        }
        Err(line) => return answers.write_all(&encode(&line)),
    };
    while let Ok(request) = requests.recv() {
        answers.write_all(&encode(&answer(&library, &request)))?;
    }
    Ok(())
}

/// Lines of standard input, read by a thread that ends this process when there are no
/// more and a call still blocks after a grace.
fn requests() -> io::Result<Receiver<String>> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let body = move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
        drop(sender);
        thread::sleep(GRACE);
        // Fails for no process that may signal itself.
        let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::KILL);
    };
    thread::Builder::new()
        .name("requests".to_owned())
        .spawn(body)?;
    Ok(receiver)
}

/// The library, initialised.
fn load() -> Result<(Library, Ready), Line> {
    let (name, library) = match std::env::var_os(LIBRARY_VARIABLE) {
        Some(only) => {
            let library = Library::open(&only)
                .map_err(|why| Line::Broken(format!("{LIBRARY_VARIABLE}: {why}")))?;
            (only, library)
        }
        None => open(names())?,
    };
    let lacking = library.lacks_needed();
    if !lacking.is_empty() {
        return Err(Line::Lacks(lacking));
    }
    let begun = Instant::now();
    library.init().map_err(|error| {
        let (status, words) = match error {
            CallError::Status { status, words } => (status, words),
            other => (0, format!("{other:?}")),
        };
        Line::InitFailed(InitFailed {
            status,
            words,
            took_ms: millis(begun.elapsed()),
        })
    })?;
    let ready = Ready {
        library: name.to_string_lossy().into_owned(),
        version: library.version(),
        lacks: library.lacks_values(),
    };
    Ok((library, ready))
}

/// Names to try, in order: ROCm's own folder, then the versions that the dynamic
/// linker finds, newest first (`.1` is Debian's).
fn names() -> Vec<OsString> {
    let file = "librocm_smi64.so";
    let mut names = Vec::new();
    if let Some(rocm) = std::env::var_os("ROCM_PATH").filter(|p| !p.is_empty()) {
        names.push(Path::new(&rocm).join("lib").join(file).into_os_string());
    }
    names.push(Path::new("/opt/rocm/lib").join(file).into_os_string());
    names.extend([7, 6, 5, 1].map(|n| OsString::from(format!("{file}.{n}"))));
    names.push(OsString::from(file));
    names
}

/// The first that loads. Else whether one is there that does not load.
fn open(names: Vec<OsString>) -> Result<(OsString, Library), Line> {
    let mut broken = None;
    for name in names {
        match Library::open(&name) {
            Ok(library) => return Ok((name, library)),
            Err(why) if is_not_there(&name.to_string_lossy(), &why) => {}
            Err(why) => {
                broken.get_or_insert(why);
            }
        }
    }
    Err(broken.map_or(Line::Absent, Line::Broken))
}

/// Whether the dynamic linker did not find the library itself; one that lacks another
/// library names that one.
fn is_not_there(name: &str, error: &str) -> bool {
    error.contains("No such file") && error.contains(name)
}

fn answer(library: &Library, request: &str) -> Line {
    let count = match library.count() {
        Ok(count) => count,
        Err(error) => return Line::Failed(words(error).unwrap_or_default()),
    };
    let mut cards = Vec::new();
    for card in 0..count {
        // a card that does not tell its address cannot be matched to one of ours
        let Ok(id) = library.pci_id(card).map(|raw| address(raw).id()) else {
            continue;
        };
        if request.split_whitespace().any(|wanted| wanted == id.0) {
            cards.push(read(library, card, id));
        }
    }
    Line::Cards(cards)
}

/// Domain in the upper half, bus, device and function in the lower 16 bits. Newer
/// releases put the number of a partition into bits 28 to 31.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the bits that are left over belong to other parts of the address"
)]
const fn address(raw: u64) -> PciAddress {
    PciAddress {
        domain: (raw >> 32) as u32,
        bus: (raw >> 8) as u8,
        device: (raw >> 3) as u8 & 0x1f,
        function: raw as u8 & 7,
    }
}

fn read(library: &Library, card: u32, id: GpuId) -> CardReading {
    let degrees = |place| value(library.temperature(card, place).map(|t| real(t) / 1e3));
    CardReading {
        id,
        busy: value(library.busy(card).map(f64::from)),
        mem_busy: value(library.memory_busy(card).map(f64::from)),
        power_w: value(library.power(card).map(watts)),
        power_cap_w: value(library.power_cap(card).map(watts)),
        vram_used: value(library.memory_used(card, Pool::Vram)),
        vram_total: value(library.memory_total(card, Pool::Vram)),
        gtt_used: value(library.memory_used(card, Pool::Gtt)),
        gtt_total: value(library.memory_total(card, Pool::Gtt)),
        temp_edge: degrees(Place::Edge),
        temp_junction: degrees(Place::Junction),
        temp_mem: degrees(Place::Memory),
        fan_rpm: value(library.fan(card).map(real)),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a card draws less than 9e15 uW")]
fn watts(microwatts: u64) -> f64 {
    microwatts as f64 / 1e6
}

#[expect(
    clippy::cast_precision_loss,
    reason = "revolutions and millidegrees are small"
)]
const fn real(number: i64) -> f64 {
    number as f64
}

fn value<T>(answer: Result<T, CallError>) -> Value<T> {
    match answer {
        Ok(value) => Value::Ok(value),
        Err(error) => words(error).map_or(Value::NotSupported, Value::Error),
    }
}

/// What there is to say of an error; none where the value is simply not offered.
fn words(error: CallError) -> Option<String> {
    match error {
        CallError::Lacking | CallError::NotSupported => None,
        CallError::Status { words, .. } => Some(words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_the_kernel() {
        let id = |raw| address(raw).id().0;
        assert_eq!(id(0x300), "0000:03:00.0");
        assert_eq!(id(0x0001_0000_0000_c1fa), "10000:c1:1f.2");
        // partition 3 of the same card
        assert_eq!(id(0x3000_0300), "0000:03:00.0");
    }

    #[test]
    fn no_library_under_any_name_is_absent_and_one_that_does_not_load_is_broken() {
        let name = |n: &str| OsString::from(n);
        let none = vec![name("/no/such/a.so"), name("no_such_b.so.7")];
        assert_eq!(open(none).err(), Some(Line::Absent));
        let not_elf = tempfile::NamedTempFile::new().unwrap();
        let one = vec![name("/no/such/a.so"), not_elf.path().into()];
        assert!(matches!(open(one).err(), Some(Line::Broken(why)) if !why.is_empty()));
    }

    #[test]
    fn a_library_that_is_not_there_is_told_from_one_that_lacks_another() {
        let error = Library::open("librocm_smi64_no_such.so".as_ref())
            .err()
            .unwrap();
        assert!(is_not_there("librocm_smi64_no_such.so", &error), "{error}");
        let other = "libdrm.so.2: cannot open shared object file: No such file or directory";
        assert!(!is_not_there("/opt/rocm/lib/librocm_smi64.so", other));
    }
}
