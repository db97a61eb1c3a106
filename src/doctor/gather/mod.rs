//! Looking. Every look has a thread and a deadline of its own, so that a blocked `/sys`,
//! a dead network folder or a hanging interpreter costs its own answer and no other.

mod bounded;
mod file;
mod folders;
mod interpreter;
mod library;
mod python;
mod rights;
mod script;
mod system;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

use bounded::Pending;

use super::facts::{
    DeviceNode, Facts, FolderFact, FolderState, Libraries, Look, PlaceFact, PlaceState,
    ProfileFacts, PythonFacts, PythonOutcome, SourceFact, SystemFacts, UserFacts, WorkloadFacts,
};
use crate::model::visible::Visible;
use crate::model::{GpuId, GpuSample, HostSample};
use crate::profile::knob::knob;

/// Deadline of a look at small files.
const SMALL: Duration = Duration::from_secs(5);
/// Deadline of a look at folders.
const FOLDERS: Duration = Duration::from_secs(10);
/// Deadline of reading libMIOpen, once the interpreter has answered: it may have 1 GiB.
const LIBRARY: Duration = Duration::from_mins(1);
/// Added to the interpreter's own limit, which is kept by killing it.
const MARGIN: Duration = Duration::from_secs(5);

/// What is to be looked at.
#[derive(Debug, Clone)]
pub struct Ask {
    /// The command; empty: none.
    pub argv: Vec<String>,
    /// Family of programs that it, or the folder, suggests.
    pub adapter: String,
    /// Folder that it would run in.
    pub cwd: PathBuf,
    /// The interpreter that the user named.
    pub python: Option<PathBuf>,
    /// How long the interpreter may take.
    pub timeout: Duration,
    /// The environment.
    pub env: BTreeMap<String, String>,
    /// Folder that has `sys`, `dev`, `etc` and `opt` in it; `/` on a real machine.
    pub root: PathBuf,
    /// Folder of our records.
    pub state: Option<PathBuf>,
    /// Folder of temporary files.
    pub temp: PathBuf,
}

/// What the sampler and the catalogue of profiles add.
#[derive(Debug)]
pub struct Rest {
    /// The sources of readings.
    pub sources: Vec<SourceFact>,
    /// The cards.
    pub cards: Vec<GpuSample>,
    /// The card that a run would supervise.
    pub supervised: Option<GpuId>,
    /// What the environment of the command shows of the cards.
    pub visible: Visible,
    /// The host.
    pub host: HostSample,
    /// The profile that a run would take, or why there is none.
    pub profile: Look<ProfileFacts>,
    /// Profiles that cannot be read.
    pub broken_profiles: Vec<String>,
}

/// Looks under way.
#[derive(Debug)]
pub struct Gathering {
    system: Pending<SystemFacts>,
    user: Pending<UserFacts>,
    devices: Pending<Vec<DeviceNode>>,
    python: Pending<PythonFacts>,
    libraries: Pending<Libraries>,
    folders: Vec<(folders::Folder, Pending<FolderState>)>,
    places: Vec<(Place, Pending<Result<PlaceState, String>>)>,
    program: Pending<Option<bool>>,
    script: Option<(PathBuf, Pending<Option<bool>>)>,
    ask: Ask,
}

impl Gathering {
    /// Starts every look. Waits for none.
    pub fn start(ask: &Ask) -> Self {
        let (root, env) = (ask.root.clone(), ask.env.clone());
        let (of_user, of_devices) = (root.clone(), root.clone());
        let (python, libraries) = of_python(ask);
        let of_program = ask.clone();
        Self {
            system: Pending::start(SMALL, move || system::look(&root, &env)),
            user: Pending::start(SMALL, move || rights::user(&of_user)),
            devices: Pending::start(SMALL, move || rights::devices(&of_devices)),
            python,
            libraries,
            folders: of_folders(ask),
            places: of_places(ask),
            program: Pending::start(SMALL, move || {
                let first = of_program.argv.first()?;
                Some(of_program.place().program(first).is_some())
            }),
            script: of_script(ask),
            ask: ask.clone(),
        }
    }

    /// Waits for every look, no longer than its deadline, and puts all together.
    pub fn finish(self, rest: Rest) -> Facts {
        let Ask {
            argv, adapter, env, ..
        } = self.ask;
        let (script, script_found) = self.script.unzip();
        Facts {
            sources: rest.sources,
            cards: rest.cards,
            supervised: rest.supervised,
            visible: rest.visible,
            host: rest.host,
            system: self.system.take(),
            user: self.user.take(),
            devices: self.devices.take(),
            python: match self.python.take() {
                Look::Known(facts) => facts,
                Look::Unknown(why) => PythonFacts {
                    path: None,
                    chosen_by: "nothing".to_owned(),
                    guessed: false,
                    outcome: PythonOutcome::Failed(why),
                },
            },
            libraries: self.libraries.take(),
            folders: self.folders.into_iter().map(folder_fact).collect(),
            places: self.places.into_iter().map(place_fact).collect(),
            environment: relevant(env),
            workload: WorkloadFacts {
                argv,
                adapter,
                program_found: self.program.take().known().copied().flatten(),
                script: script.map(|path| path.display().to_string()),
                script_found: script_found.and_then(|look| look.take().known().copied().flatten()),
            },
            profile: rest.profile,
            broken_profiles: rest.broken_profiles,
        }
    }
}

impl Ask {
    fn place(&self) -> interpreter::Place<'_> {
        interpreter::Place {
            cwd: &self.cwd,
            env: &self.env,
        }
    }

    fn home(&self) -> PathBuf {
        let home = self.env.get("HOME").filter(|h| !h.is_empty());
        PathBuf::from(home.map_or("/", String::as_str))
    }
}

/// The interpreter first; where it has its libraries is known only then.
fn of_python(ask: &Ask) -> (Pending<PythonFacts>, Pending<Libraries>) {
    let (sender, answered) = mpsc::channel();
    let limit = ask.timeout + MARGIN;
    let asked = ask.clone();
    let python = Pending::start(limit, move || {
        let facts = ask_python(&asked);
        // nobody looks for libraries any more
        let _ = sender.send(facts.answer().cloned());
        facts
    });
    let asked = ask.clone();
    let libraries = Pending::start(limit + LIBRARY, move || {
        let answer = answered.recv().ok().flatten();
        library::look(&asked.root, &asked.env, answer.as_ref())
    });
    (python, libraries)
}

fn ask_python(ask: &Ask) -> PythonFacts {
    let chosen = interpreter::choose(ask.python.as_deref(), &ask.argv, ask.place());
    let outcome = match &chosen.path {
        Some(path) => python::ask(path, &ask.cwd, ask.timeout),
        None => PythonOutcome::Missing(format!("{} was not found", chosen.by)),
    };
    PythonFacts {
        path: chosen.path.map(|p| p.display().to_string()),
        chosen_by: chosen.by,
        guessed: chosen.guessed,
        outcome,
    }
}

/// The script of the command, and whether it is there; not known where something other
/// than its absence stands in the way.
fn of_script(ask: &Ask) -> Option<(PathBuf, Pending<Option<bool>>)> {
    let path = ask.cwd.join(script::of_command(&ask.argv)?);
    let looked_at = path.clone();
    let look = Pending::start(SMALL, move || looked_at.try_exists().ok());
    Some((path, look))
}

fn of_folders(ask: &Ask) -> Vec<(folders::Folder, Pending<FolderState>)> {
    let all = folders::of_miopen(&ask.env, &ask.home(), &ask.temp);
    let start = |folder: folders::Folder| {
        let looked_at = folder.clone();
        (
            folder,
            Pending::start(FOLDERS, move || folders::look(&looked_at)),
        )
    };
    all.into_iter().map(start).collect()
}

fn folder_fact((folder, state): (folders::Folder, Pending<FolderState>)) -> FolderFact {
    FolderFact {
        role: folder.role.to_owned(),
        path: folder.path.display().to_string(),
        set_by: folder.set_by.map(str::to_owned),
        state: state.take(),
    }
}

/// A folder that needs room: its role and path.
type Place = (&'static str, PathBuf);

fn of_places(ask: &Ask) -> Vec<(Place, Pending<Result<PlaceState, String>>)> {
    let state = ask.state.clone().map(|path| ("state", path));
    let all = [
        ("home", ask.home()),
        ("cwd", ask.cwd.clone()),
        ("temp", ask.temp.clone()),
    ];
    let start = |place: Place| {
        let path = place.1.clone();
        let look = move || folders::place(&path).map_err(|e| file::words(&e));
        (place, Pending::start(SMALL, look))
    };
    all.into_iter().chain(state).map(start).collect()
}

fn place_fact(((role, path), state): (Place, Pending<Result<PlaceState, String>>)) -> PlaceFact {
    PlaceFact {
        role: role.to_owned(),
        path: path.display().to_string(),
        state: match state.take() {
            Look::Known(Ok(state)) => Look::Known(state),
            Look::Known(Err(why)) | Look::Unknown(why) => Look::Unknown(why),
        },
    }
}

/// Variables that concern the GPU or its libraries; nobody else's business is shown.
fn relevant(mut env: BTreeMap<String, String>) -> BTreeMap<String, String> {
    const PREFIXES: [&str; 9] = [
        "MIOPEN_", "HSA_", "HIP_", "ROCR_", "ROCM_", "AMD_", "GPU_", "TORCH_", "PYTORCH_",
    ];
    const NAMES: [&str; 5] = [
        "CUDA_VISIBLE_DEVICES",
        "COMFYUI_ENABLE_MIOPEN",
        "LD_LIBRARY_PATH",
        "VIRTUAL_ENV",
        "CONDA_PREFIX",
    ];
    env.retain(|name, _| {
        let gpu = PREFIXES.iter().any(|p| name.starts_with(p));
        gpu || knob(name).is_some() || NAMES.contains(&name.as_str())
    });
    env
}
