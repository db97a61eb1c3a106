//! `decode`, `encode` and the hidden `worker`: the embedded engine as a program that is run like any other.

mod args;
mod cuda;
mod disk;
mod source;

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use framepack_engine::worker::{self as engine, Job, Place, Task};
use serde::{Deserialize, Serialize};

pub(super) use self::args::{DecodeArgs, EncodeArgs, WorkerArgs};
use self::args::{Device, HowArgs};
pub(super) use self::cuda::CudaError;
use super::args::{AgentChoice, RunArgs};
use super::run::setup::complain;
use super::{CliError, run};
use crate::model::os_text;

/// What a run of our own worker has that others have not.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct OwnWorker {
    /// No card is needed.
    pub(super) on_cpu: bool,
    /// Said at the beginning.
    pub(super) notices: Vec<String>,
    /// What it writes.
    #[serde(with = "os_text::path")]
    pub(super) output: PathBuf,
}

/// Latents to a video.
pub(super) fn decode(args: DecodeArgs) -> Result<u8, CliError> {
    let (input, model) = match (&args.from_vault, args.latents) {
        (Some(asked), _) => {
            let entry = source::entry(asked)?;
            let model = args.model.map_or_else(|| source::model(&entry), Ok)?;
            (entry.path, model)
        }
        (None, latents) => (latents.unwrap_or_default(), args.model.unwrap_or_default()),
    };
    let job = Job {
        task: Task::Decode,
        input,
        model,
        output: args.output,
        place: Place::Cpu,
        force: args.how.force,
        fps: args.fps,
        item: args.item.and_then(|item| usize::try_from(item).ok()),
        scaling_applied: args.scaling_applied,
    };
    supervised(job, args.how)
}

/// A video to latents.
pub(super) fn encode(args: EncodeArgs) -> Result<u8, CliError> {
    let job = Job {
        task: Task::Encode,
        input: args.video,
        model: args.model,
        output: args.output,
        place: Place::Cpu,
        force: args.how.force,
        fps: args.fps,
        item: None,
        scaling_applied: None,
    };
    supervised(job, args.how)
}

/// Runs the job as any other program.
fn supervised(job: Job, how: HowArgs) -> Result<u8, CliError> {
    let mut job = job.normal();
    let disk = job.check().map_err(|why| CliError::Engine {
        what: job.task.word(),
        why: Box::new(why),
    })?;
    let mut notices = Vec::new();
    if let Some(disk) = disk {
        notices.extend(disk::judge(&disk, disk::room(&disk.folder))?);
    }
    job.place = place(how.device, &mut notices)?;
    let on_cpu = job.place == Place::Cpu;
    if on_cpu {
        notices.extend(of_the_card(&how));
    }
    let command = command(&job)?;
    run::main(RunArgs {
        profile: how.profile,
        cap: how.cap,
        gpu: how.gpu,
        cwd: None,
        log: std::env::var("FPT_LOG").ok(),
        gdb: false,
        end_after_result: false,
        agent: Some(AgentChoice::Auto),
        show: how.show,
        own: Some(OwnWorker {
            on_cpu,
            notices,
            output: job.output,
        }),
        command,
    })
}

/// What a worker of ours may leave beside its output.
pub(super) struct Leftovers {
    job: Job,
    before: engine::Beginnings,
}

impl Leftovers {
    /// Before the worker with this command line is started.
    pub(super) fn before(argv: &[String]) -> Option<Self> {
        // the file of this program, and `worker`
        let words = argv.iter().skip(2).map(|word| os_text::to_os(word));
        let job = Job::parse(words).ok()?;
        let before = job.beginnings();
        Some(Self { job, before })
    }

    /// Removes what a worker that was killed could not, and says what is kept for the next one.
    pub(super) fn tidy(&self) {
        self.job.tidy();
        if let Some(kept) = self.job.kept(&self.before) {
            complain(&kept.to_string());
        }
    }
}

/// What was asked for and concerns a card, where none is used.
fn of_the_card(how: &HowArgs) -> Vec<String> {
    let cap = how.cap.map(|cap| format!("--cap {cap}"));
    let gpu = how.gpu.as_ref().map(|gpu| format!("--gpu {gpu}"));
    let said = |option: String| {
        format!(
            "{option} concerns the card and changes nothing here: it is computed on the processor, in what memory is free"
        )
    };
    cap.into_iter().chain(gpu).map(said).collect()
}

/// Where it is computed. What a card that cannot be used says becomes a notice where nobody asked for it.
fn place(device: Device, notices: &mut Vec<String>) -> Result<Place, CliError> {
    let usable = || cuda::find().and_then(|program| cuda::probe(&program));
    match device {
        Device::Cpu => Ok(Place::Cpu),
        Device::Cuda => Ok(usable().map(|()| Place::Card)?),
        Device::Auto => match usable() {
            Ok(()) => Ok(Place::Card),
            Err(CudaError::NoProgram) => Ok(Place::Cpu),
            Err(e) => {
                notices.push(format!("on the processor: {e}"));
                Ok(Place::Cpu)
            }
        },
    }
}

/// The command line of the job.
fn command(job: &Job) -> Result<Vec<String>, CliError> {
    let own = std::env::current_exe().map_err(|why| CliError::System {
        what: "find this program's own file",
        why,
    })?;
    let words = [own.into_os_string(), "worker".into()];
    let words = words.into_iter().chain(job.words());
    Ok(words
        .map(|word| crate::model::os_text::from_os(&word))
        .collect())
}

/// The worker itself; on the card it becomes the program that has it.
pub(super) fn worker(args: WorkerArgs) -> Result<u8, CliError> {
    let place = Job::parse(args.words.clone()).map_or(Place::Cpu, |job| job.place);
    let usable = |program: &PathBuf| cuda::probe(program).is_ok();
    let program = match place {
        Place::Card => Some(cuda::find()?),
        Place::Auto => cuda::find().ok().filter(usable),
        Place::Cpu => None,
    };
    if let Some(program) = program {
        // it comes back only when it could not be started
        let why = Command::new(&program).args(&args.words).exec();
        return Err(CudaError::Refused {
            program,
            why: why.to_string(),
        }
        .into());
    }
    Ok(engine::main(args.words, None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::worker::is_own_worker;

    #[test]
    fn our_command_is_known_as_ours_whatever_the_program_is_called() {
        for words in [
            "decode a --model m --output o.gif --fps 8 --item 2 --force",
            "encode a --model m --output o.safetensors",
        ] {
            let job = Job::parse(words.split(' ').map(Into::into)).unwrap();
            let mut command = command(&job).unwrap();
            // the program of this test has another name than the real one
            assert!(is_own_worker(&command), "{command:?}");
            command[0] = "/opt/fpt".to_owned();
            assert!(is_own_worker(&command), "{command:?}");
            command[1] = "run".to_owned();
            assert!(!is_own_worker(&command), "{command:?}");
        }
    }
}
