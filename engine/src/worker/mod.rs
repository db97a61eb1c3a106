//! The worker: a process that decodes or encodes one file and tells its supervisor what it does, in the words
//! of the agent (docs/agent.md). It ends with the job.
//!
//! A program with a card of its own calls [`main`] with what makes its backend; without one there is the
//! processor.

mod attempt;
mod checkpoint;
mod decode;
mod disk;
mod encode;
mod job;
mod latents;
mod link;
mod memory;
mod reporter;
mod settings;
mod sizes;
mod watch;

pub use self::checkpoint::{Beginnings, Kept};
pub use self::disk::Disk;
pub use self::job::{Job, Place, Task, USAGE, Usage};
pub use self::settings::Settings;

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use candle_core::DType;
use serde_json::json;

use self::link::{Link, Subject};
use self::reporter::Reporter;
use crate::error::{Error, Result};
use crate::ops::Backend;
use crate::ops::cpu::Cpu;
use crate::ops::tiered::{Tier, Tiered, Watcher};
use crate::vae::Model;

/// The words of the command line mean nothing.
pub const EXIT_USAGE: u8 = 64;
/// A file is damaged, or does not fit another one.
pub const EXIT_DATA: u8 = 65;
/// A file is not there.
pub const EXIT_MISSING: u8 = 66;
/// The device, or a program that writes videos, is not there or too old.
pub const EXIT_DEVICE: u8 = 69;
/// The user has ended it.
pub const EXIT_STOPPED: u8 = 130;
/// Anything else.
const EXIT_FAILED: u8 = 1;

/// What a card's backend must obey.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceRequest {
    /// What it computes in.
    pub dtype: DType,
    /// Bytes of the card's memory that may be used; absent: all.
    pub cap: Option<u64>,
}

/// The card's memory as its pool counts it, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceMemory {
    /// In tensors.
    pub allocated: u64,
    /// Held by the pool.
    pub reserved: u64,
    /// Most that was in tensors.
    pub peak: u64,
    /// What the card has left; absent: that cannot be read.
    pub free: Option<u64>,
}

/// Reads the card's memory; called from another thread.
pub type MemoryProbe = Box<dyn Fn() -> Option<DeviceMemory> + Send + Sync>;

/// A card that is ready.
pub struct DeviceHandle {
    /// Computes on it.
    pub backend: Arc<dyn Backend>,
    /// `cuda:0`.
    pub device: String,
    /// What people call it.
    pub name: String,
    /// Its memory, where that can be read.
    pub memory: Option<MemoryProbe>,
}

impl std::fmt::Debug for DeviceHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeviceHandle")
            .field("device", &self.device)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Makes the backend of a card.
pub type MakeCard<'a> = &'a dyn Fn(&DeviceRequest) -> Result<DeviceHandle>;

/// Does the job that `words` (those behind the program's name) mean, and gives the exit code. `card` makes the
/// backend for `--device cuda`; absent: this program has none.
pub fn main(words: impl IntoIterator<Item = OsString>, card: Option<MakeCard<'_>>) -> u8 {
    let parent = std::os::unix::process::parent_id();
    let words: Vec<OsString> = words.into_iter().collect();
    let mut job = match Job::parse(words.clone()) {
        Ok(job) => job,
        Err(usage) => {
            complain(&format!("{usage}; usage: worker {USAGE}"));
            return EXIT_USAGE;
        }
    };
    if job.place == Place::Auto {
        job.place = card.map_or(Place::Cpu, |_| Place::Card);
    }
    let settings = Settings::from_environment();
    if job.task == Task::Probe {
        return done(probe(&job, card));
    }
    let argv = words.iter().map(|w| w.to_string_lossy().into_owned());
    let reporter = Arc::new(Reporter::new(&settings, argv.collect()));
    let socket = std::env::var_os("FPT_AGENT_SOCKET").map(PathBuf::from);
    let subject = Arc::clone(&reporter) as Arc<dyn Subject>;
    reporter.speak(Link::open(socket, parent, subject));
    reporter.send("job", json!({ "state": "started" }));
    for text in &settings.problems {
        reporter.send("problem", json!({ "text": text }));
    }
    let work = Work {
        job: &job,
        settings: &settings,
        reporter: &reporter,
        card,
    };
    let result = match job.task {
        Task::Encode => encode::run(&work),
        _ => decode::run(&work),
    }
    .map_err(|e| place_lost(&job, e));
    reporter.send(
        "job",
        match &result {
            Ok(()) => json!({ "state": "ended" }),
            Err(Error::Stopped) => json!({ "state": "ended", "error": "ended by the user" }),
            Err(e) => json!({ "state": "failed", "error": e.to_string() }),
        },
    );
    reporter.end();
    done(result.map_err(|e| (job.task.word(), e)))
}

/// Where the folder of the output has gone meanwhile, that is what has to be said.
fn place_lost(job: &Job, e: Error) -> Error {
    let folder = match job.output.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => std::path::Path::new("."),
    };
    match e {
        Error::Io { .. } if !folder.exists() => Error::Io {
            path: job.output.clone(),
            source: std::io::Error::new(
                std::io::ErrorKind::NotFound,
                format!(
                    "its folder {} is gone, removed or no longer mounted: make it again, or name another",
                    folder.display()
                ),
            ),
        },
        other => other,
    }
}

/// The exit code; an error is said.
fn done(result: std::result::Result<(), (&'static str, Error)>) -> u8 {
    let Err((what, e)) = result else {
        return 0;
    };
    complain(&format!("failed to {what}: {e}"));
    exit_code(&e)
}

/// The exit code for an error.
pub fn exit_code(e: &Error) -> u8 {
    match e {
        Error::Usage(_) | Error::Exists(_) | Error::InTheWay { .. } => EXIT_USAGE,
        Error::Stopped => EXIT_STOPPED,
        Error::Io { source, .. } if cannot_be_opened(source) => EXIT_MISSING,
        Error::File { .. }
        | Error::Lost { .. }
        | Error::Weight { .. }
        | Error::Argument(_)
        // in the highest precision: no other attempt mends what went in
        | Error::NotFinite {
            dtype: "float32", ..
        } => EXIT_DATA,
        Error::Program { .. } | Error::Device(_) => EXIT_DEVICE,
        _ => EXIT_FAILED,
    }
}

/// Whether this is what the system says of a path that leads to no file that may be opened.
fn cannot_be_opened(e: &std::io::Error) -> bool {
    use std::io::ErrorKind::{InvalidFilename, NotADirectory, NotFound, PermissionDenied};
    /// ELOOP, which has no stable kind.
    const LOOP: i32 = 40;
    matches!(
        e.kind(),
        NotFound | PermissionDenied | NotADirectory | InvalidFilename
    ) || e.raw_os_error() == Some(LOOP)
}

fn complain(text: &str) {
    // nowhere else to say it if stderr is closed
    let _ = writeln!(std::io::stderr(), "framepack-tui worker: {text}");
}

/// Says something on the console.
fn say(text: &str) {
    let mut out = std::io::stdout();
    // whoever does not listen misses nothing that is not told by the link
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// Says which card there is.
fn probe(job: &Job, card: Option<MakeCard<'_>>) -> std::result::Result<(), (&'static str, Error)> {
    let wanted = DeviceRequest {
        dtype: DType::F32,
        cap: None,
    };
    let made = made(job.place, &wanted, card);
    let made = made.map_err(|e| ("use the device", e))?;
    say(&json!({ "device": made.device, "name": made.name }).to_string());
    Ok(())
}

fn made(place: Place, wanted: &DeviceRequest, card: Option<MakeCard<'_>>) -> Result<DeviceHandle> {
    match (place, card) {
        (Place::Cpu | Place::Auto, _) => Ok(DeviceHandle {
            backend: Arc::new(Cpu),
            device: "cpu".to_owned(),
            name: "the processor".to_owned(),
            memory: None,
        }),
        (Place::Card, Some(make)) => make(wanted),
        (Place::Card, None) => Err(Error::Device(
            "this program computes on the processor alone; framepack-tui-cuda has the card"
                .to_owned(),
        )),
    }
}

/// A job, and what belongs to it.
struct Work<'a> {
    job: &'a Job,
    settings: &'a Settings,
    reporter: &'a Arc<Reporter>,
    card: Option<MakeCard<'a>>,
}

/// A backend that tells what it does.
struct Ready {
    backend: Arc<dyn Backend>,
    name: String,
    /// The card's, when it was made.
    memory: Option<DeviceMemory>,
}

impl Work<'_> {
    fn place(&self) -> Place {
        if self.settings.on_cpu() {
            Place::Cpu
        } else {
            self.job.place
        }
    }

    /// What the settings ask for, else half precision on a card.
    fn dtype(&self) -> DType {
        match (self.place(), self.settings.dtype()) {
            (Place::Card, Some("float16")) => DType::F16,
            (Place::Card, None | Some("bfloat16")) => DType::BF16,
            _ => DType::F32,
        }
    }

    /// What of a model the user did not name, and what it makes of the settings.
    fn about(&self, model: &Model) {
        if let Some(variant) = model.weights().variant() {
            say(&format!(
                "the weights are the variant {variant}: the folder has no others"
            ));
        }
        if let Some(single) = model.weights().passed_over() {
            say(&format!(
                "the weights are those that the index names, as diffusers takes them: {} is not read",
                single.display()
            ));
        }
        if let Some(config) = model.foreign_config() {
            say(&format!(
                "the model is told by its tensors: {} beside it is of another class and is not heeded",
                config.display()
            ));
        }
        for text in sizes::altered(model.config(), self.settings) {
            self.reporter.send("problem", json!({ "text": text }));
        }
    }

    /// Something that costs no more than words: on the console and to the supervisor.
    fn problem(&self, text: &str) {
        say(text);
        self.reporter.send("problem", json!({ "text": text }));
    }

    /// What is tried next after an error, and why.
    fn retreat(&self, e: &Error, what: &str, to: &str) {
        say(&format!("{e}: once more with {what} {to}"));
        self.reporter.send(
            "fix",
            json!({ "what": what, "to": to, "because": e.to_string() }),
        );
    }

    /// Bytes of host memory that this process can still have; what limits them, or cannot be read, is said.
    fn host_memory(&self) -> Option<u64> {
        let memory = memory::Memory::now();
        for text in &memory.problems {
            self.problem(text);
        }
        if let (Some(limit), Some(left)) = (&memory.limit, memory.left) {
            say(&format!("{limit} leaves {} MiB for the work", left >> 20));
        }
        memory.left
    }

    /// Makes the device ready; what the settings ask of it is told.
    fn device(&self, place: Place, dtype: DType) -> Result<Ready> {
        let wanted = DeviceRequest {
            dtype,
            cap: self.settings.cap(),
        };
        // one device at a time: two pools would be twice the cap
        self.reporter.leave_device();
        let made = made(place, &wanted, self.card)?;
        let memory = made.memory.as_ref().and_then(|memory| memory());
        self.reporter.device(&made.device, made.memory);
        if let (Place::Cpu, Some(asked)) = (place, self.settings.dtype())
            && asked != "float32"
        {
            let text =
                format!("vae_dtype = {asked}: on the processor everything is computed in float32");
            self.reporter.send("problem", json!({ "text": text }));
        }
        let others: Vec<Tier> = match place {
            Place::Card => vec![("cpu", Arc::new(Cpu) as Arc<dyn Backend>)],
            Place::Cpu | Place::Auto => Vec::new(),
        };
        let watcher = Arc::clone(self.reporter) as Arc<dyn Watcher>;
        let backend = Tiered::new(("native", made.backend), others, watcher);
        Ok(Ready {
            backend: Arc::new(backend),
            name: made.name,
            memory,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_is_lost_meanwhile_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("gone/o.gif");
        let mut words: Vec<OsString> = ["decode", "l", "--model", "m", "--output"]
            .map(OsString::from)
            .into();
        words.push(output.clone().into());
        let job = Job::parse(words).unwrap();
        let lost = || crate::error::io(&output)(std::io::Error::other("ffmpeg: no such file"));
        let e = place_lost(&job, lost());
        assert!(e.to_string().contains("gone is gone, removed"), "{e}");
        assert_eq!(exit_code(&e), EXIT_MISSING);
        assert!(matches!(place_lost(&job, Error::Stopped), Error::Stopped));
        std::fs::create_dir(folder.path().join("gone")).unwrap();
        let e = place_lost(&job, lost());
        assert!(e.to_string().ends_with("ffmpeg: no such file"), "{e}");
        // a program that broke off is a failure as any: its words tell the rest
        assert_eq!(exit_code(&e), EXIT_FAILED);
    }

    #[test]
    fn what_cannot_be_opened_has_a_code_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("l");
        std::os::unix::fs::symlink(&path, &path).unwrap();
        let file = folder.path().join("f");
        std::fs::write(&file, "").unwrap();
        let long = folder.path().join("x".repeat(300));
        for path in [path, file.join("x"), long, folder.path().join("no")] {
            let e = crate::error::open(&path).unwrap_err();
            assert_eq!(exit_code(&e), EXIT_MISSING, "{e}");
        }
        let of = |kind| exit_code(&crate::error::io(&file)(std::io::Error::from(kind)));
        assert_eq!(of(std::io::ErrorKind::PermissionDenied), EXIT_MISSING);
        assert_eq!(of(std::io::ErrorKind::StorageFull), EXIT_FAILED);
        let none = |dtype| Error::NotFinite {
            half: "the decoder",
            dtype,
        };
        assert_eq!(exit_code(&none("float32")), EXIT_DATA);
        assert_eq!(exit_code(&none("bfloat16")), EXIT_FAILED);
    }
}
