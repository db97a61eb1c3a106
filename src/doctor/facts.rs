//! What was gathered, before anything is judged. Plain data; `docs/doctor.md` has every field.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::model::sample::SourceState;
use crate::model::visible::Visible;
use crate::model::{Bytes, GpuId, GpuSample, HostSample, Vendor};
use crate::profile::knob::release;

/// Something that was looked at: known, or why it is not.
///
/// JSON: `{"known": …}` or `{"unknown": "no answer within 10 s"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Look<T> {
    /// The answer.
    Known(T),
    /// Why there is none.
    Unknown(String),
}

impl<T> Look<T> {
    /// The answer, if there is one.
    pub const fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Unknown(_) => None,
        }
    }

    /// Why there is no answer.
    pub fn unknown(&self) -> Option<&str> {
        match self {
            Self::Known(_) => None,
            Self::Unknown(why) => Some(why),
        }
    }
}

/// Everything that the judges look at.
#[derive(Debug, Clone, Serialize)]
pub struct Facts {
    /// The sources of readings.
    pub sources: Vec<SourceFact>,
    /// The cards, each as in a `sample` of the event stream (`docs/events.md`).
    pub cards: Vec<GpuSample>,
    /// The card that a run of this command would supervise; absent: there is none.
    pub supervised: Option<GpuId>,
    /// What the environment of the command shows of the cards.
    pub visible: Visible,
    /// The host, likewise.
    pub host: HostSample,
    /// Kernel, driver, ROCm, container.
    pub system: Look<SystemFacts>,
    /// Who we are.
    pub user: Look<UserFacts>,
    /// Device nodes of `/dev`.
    pub devices: Look<Vec<DeviceNode>>,
    /// The interpreter and its packages.
    pub python: PythonFacts,
    /// MIOpen's and rocBLAS's files.
    pub libraries: Look<Libraries>,
    /// MIOpen's folders.
    pub folders: Vec<FolderFact>,
    /// Folders that need room.
    pub places: Vec<PlaceFact>,
    /// Variables of the environment that concern the GPU or its libraries.
    pub environment: BTreeMap<String, String>,
    /// The command.
    pub workload: WorkloadFacts,
    /// The profile that a run would take.
    pub profile: Look<ProfileFacts>,
    /// Profiles of the user that cannot be read, in words.
    pub broken_profiles: Vec<String>,
}

impl Facts {
    /// Whether an AMD card is there, whether or not its driver holds it.
    pub(super) fn amd(&self) -> bool {
        self.amd_cards().next().is_some() || self.unbound().next().is_some()
    }

    /// AMD cards that are read.
    pub(super) fn amd_cards(&self) -> impl Iterator<Item = &GpuSample> {
        self.cards.iter().filter(|c| c.vendor == Vendor::Amd)
    }

    /// The card that a run would supervise.
    pub(super) fn supervised(&self) -> Option<&GpuSample> {
        let id = self.supervised.as_ref()?;
        self.cards.iter().find(|c| c.id == *id)
    }

    /// The card that a run would supervise, where it is AMD's.
    pub(super) fn supervised_amd(&self) -> Option<&GpuSample> {
        self.supervised().filter(|c| c.vendor == Vendor::Amd)
    }

    /// AMD cards beside the supervised one that the command may see as well.
    pub(super) fn other_amd(&self) -> impl Iterator<Item = &GpuSample> {
        let shown = move |at: usize| match &self.visible {
            Visible::These { cards, .. } => cards.contains(&at),
            // where it is not known, one too many does less harm
            Visible::All | Visible::Nothing { .. } | Visible::Unknown { .. } => true,
        };
        let all = self.cards.iter().enumerate();
        all.filter(move |(at, c)| {
            c.vendor == Vendor::Amd && shown(*at) && self.supervised.as_ref() != Some(&c.id)
        })
        .map(|(_, c)| c)
    }

    /// Whether a run here would use ROCm.
    pub(super) fn rocm_matters(&self) -> bool {
        self.supervised_amd().is_some() || self.torch().is_some_and(|t| t.hip.is_some())
    }

    /// AMD display devices that another driver holds, or none.
    pub(super) fn unbound(&self) -> impl Iterator<Item = &PciDisplay> {
        let all = self.system.known().into_iter().flat_map(|s| &s.amd_devices);
        all.filter(|d| d.driver.as_deref() != Some("amdgpu"))
    }

    /// Whether an NVIDIA card is read.
    pub(super) fn nvidia(&self) -> bool {
        self.cards.iter().any(|c| c.vendor == Vendor::Nvidia)
    }

    /// Whether MIOpen has anything to do here: an AMD card, or a torch for one.
    pub(super) fn miopen_matters(&self) -> bool {
        self.amd() || self.torch().is_some_and(|t| t.hip.is_some())
    }

    /// Whether the library that was read contains this name; `None`: none was read, or
    /// too few names stand in it to conclude anything.
    pub(super) fn miopen_knows(&self, name: &str) -> Option<bool> {
        const FEWEST: usize = 3;
        let library = self.libraries.known()?.miopen.as_ref()?.known()?;
        (library.names.len() >= FEWEST).then(|| library.names.contains(name))
    }

    /// ROCm that torch is built for, by its version of HIP.
    pub(super) fn rocm(&self) -> Option<[u32; 2]> {
        release(self.torch()?.hip.as_deref()?)
    }

    /// Whether the loaded MIOpen has a shipped find database for this architecture; absent:
    /// not known.
    pub(super) fn has_find_db(&self, arch: &str) -> Option<bool> {
        let dbs = self.libraries.known()?.find_dbs.as_ref()?;
        Some(dbs.archs.contains(arch))
    }

    /// Whether this is WSL2.
    pub(super) fn wsl(&self) -> bool {
        self.system.known().is_some_and(|s| s.wsl)
    }

    /// torch, as the interpreter told of it.
    pub(super) fn torch(&self) -> Option<&TorchFacts> {
        self.python.answer()?.torch.as_ref()
    }
}

/// A source of readings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SourceFact {
    /// Its name, as in every sample.
    pub name: String,
    /// How it is doing.
    pub state: SourceState,
    /// Why it is not `ok`.
    pub why: Option<String>,
    /// How long its first read took, in milliseconds; absent: it has not ended.
    pub first_ms: Option<f64>,
    /// How long its latest read took, in milliseconds.
    pub read_ms: Option<f64>,
}

/// The system.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SystemFacts {
    /// Release of the kernel.
    pub kernel: String,
    /// Whether `/sys/class` is there.
    pub sysfs: bool,
    /// Whether the amdgpu module is loaded.
    pub amdgpu_loaded: bool,
    /// Version of the amdgpu module; only one that was built by DKMS tells it.
    pub amdgpu_version: Option<String>,
    /// Version of the ROCm installation, by its `.info/version`.
    pub rocm: Option<String>,
    /// Where that installation is.
    pub rocm_path: Option<String>,
    /// `docker`, `podman`, …: what says that this is a container.
    pub container: Option<String>,
    /// WSL2.
    pub wsl: bool,
    /// Display devices of AMD on the PCI bus.
    pub amd_devices: Vec<PciDisplay>,
}

/// A display device on the PCI bus.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PciDisplay {
    /// PCI address.
    pub address: String,
    /// Driver that holds it; absent: none.
    pub driver: Option<String>,
}

/// The user.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct UserFacts {
    /// Name, where `/etc/passwd` has it.
    pub name: Option<String>,
    /// Number.
    pub uid: u32,
    /// Groups in force, by name where there is one, else by number.
    pub groups: Vec<String>,
    /// Groups that `/etc/group` gives the user and that are not in force yet.
    pub not_in_force: Vec<String>,
}

/// A node of `/dev`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeviceNode {
    /// Its path.
    pub path: String,
    /// PCI address of its card, where `/sys` tells it.
    pub pci: Option<String>,
    /// Group that owns it, by name where there is one.
    pub group: String,
    /// Its mode, octal.
    pub mode: String,
    /// Whether we may read and write, by its rights. It is not opened: opening
    /// `/dev/kfd` makes us a client of the driver.
    pub accessible: bool,
    /// The system's words where not.
    pub why: Option<String>,
}

/// The interpreter that was asked.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PythonFacts {
    /// Its path; absent: none was found.
    pub path: Option<String>,
    /// How it was chosen: `--python`, the command, `VIRTUAL_ENV`, ….
    pub chosen_by: String,
    /// The command itself did not tell an interpreter, so this one is a guess.
    pub guessed: bool,
    /// What came of asking it.
    pub outcome: PythonOutcome,
}

impl PythonFacts {
    /// Its answer.
    pub fn answer(&self) -> Option<&PythonAnswer> {
        match &self.outcome {
            PythonOutcome::Answered(answer) => Some(answer),
            _ => None,
        }
    }
}

/// What came of asking an interpreter.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PythonOutcome {
    /// It answered.
    Answered(Box<PythonAnswer>),
    /// There is none, in words.
    Missing(String),
    /// It did not answer within so many seconds and was killed.
    NoAnswer(u64),
    /// It answered with an error or with something else, in words.
    Failed(String),
}

/// What an interpreter tells. torch is not imported: its files are read.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PythonAnswer {
    /// Version of Python.
    pub version: String,
    /// `sys.executable`.
    pub executable: String,
    /// `sys.prefix`.
    pub prefix: String,
    /// Versions of the packages that matter, by name.
    pub packages: BTreeMap<String, String>,
    /// torch.
    pub torch: Option<TorchFacts>,
    /// Whether torchvision defines `write_video`; absent without torchvision.
    pub write_video: Option<bool>,
    /// Its environment was made by uv, which puts no pip into it.
    pub uv: bool,
    /// It belongs to the distribution and refuses pip (PEP 668).
    pub externally_managed: bool,
    /// Folders of the `_rocm_sdk_…` wheels.
    pub rocm_sdk: Vec<String>,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
}

/// torch, by its `version.py`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TorchFacts {
    /// Version.
    pub version: String,
    /// `torch.version.hip`.
    pub hip: Option<String>,
    /// `torch.version.cuda`.
    pub cuda: Option<String>,
    /// Its folder.
    pub folder: String,
}

impl TorchFacts {
    /// Major and minor version.
    pub(super) fn release(&self) -> Option<(u32, u32)> {
        let mut parts = self.version.split('.');
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    }
}

/// Files of MIOpen and rocBLAS.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Libraries {
    /// Every libMIOpen that may be loaded, the likeliest first.
    pub found: Vec<LibraryFile>,
    /// What the first of them contains.
    pub miopen: Option<Look<MiopenLibrary>>,
    /// Architectures that the rocBLAS of the same place has kernels for; absent: its
    /// folder was not found.
    pub rocblas_archs: Option<BTreeSet<String>>,
    /// That folder.
    pub rocblas_path: Option<String>,
    /// Find databases that come with the first MIOpen; absent: their folder was not found.
    pub find_dbs: Option<FindDbs>,
}

/// Find databases that come with MIOpen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FindDbs {
    /// Their folder.
    pub path: String,
    /// Architectures in the names of the files.
    pub archs: BTreeSet<String>,
}

/// A file of MIOpen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LibraryFile {
    /// Its path, links followed.
    pub path: String,
    /// Why it may be loaded: `torch`, `rocm_sdk`, `ld_library_path`, `rocm`, `system`.
    pub origin: String,
}

/// What a libMIOpen contains. It was read, not loaded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct MiopenLibrary {
    /// Size.
    pub bytes: Bytes,
    /// Version, where its header, its name or a text in it tells it.
    pub version: Option<String>,
    /// Every `MIOPEN_…` name that stands in it as a text of its own.
    pub names: BTreeSet<String>,
}

/// One of MIOpen's folders.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FolderFact {
    /// `user_db`, `kernel_cache` or `locks`.
    pub role: String,
    /// Its path.
    pub path: String,
    /// The variable that names it; absent: MIOpen's default.
    pub set_by: Option<String>,
    /// What is there.
    pub state: Look<FolderState>,
}

/// A folder.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct FolderState {
    /// Whether it exists. If not, the rest is about the nearest folder above it.
    pub exists: bool,
    /// Why it may not be written to; absent: it may.
    pub not_writable: Option<String>,
    /// Name of a network file system that it lies on.
    pub network: Option<String>,
    /// Size of its files.
    pub bytes: Bytes,
    /// How many.
    pub files: u64,
    /// There are more files than were counted.
    pub truncated: bool,
    /// Size of the files of each architecture, by the name in their names.
    pub archs: BTreeMap<String, Bytes>,
    /// Records of the user find-db.
    pub records: Option<Records>,
}

/// Records of the user find-db.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Records {
    /// Records that were read.
    pub read: u64,
    /// Lines that are no records.
    pub bad: u64,
    /// Records whose fastest solver is the naive kernel.
    pub naive: u64,
    /// The slowest of those, slowest first.
    pub slowest: Vec<NaiveRecord>,
    /// Files that could not be read, in words.
    pub unreadable: Vec<String>,
}

/// A record whose fastest solver is the naive kernel.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NaiveRecord {
    /// Its key: shapes, layout, type and direction.
    pub key: String,
    /// Milliseconds of one launch.
    pub ms: f64,
    /// Name of the file.
    pub file: String,
}

/// A folder that needs room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlaceFact {
    /// `home`, `state`, `temp`, `cwd`.
    pub role: String,
    /// Its path.
    pub path: String,
    /// What is known.
    pub state: Look<PlaceState>,
}

/// Room of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlaceState {
    /// Bytes that we may still fill.
    pub free: Bytes,
    /// Size of the file system.
    pub total: Bytes,
    /// Why it may not be written to; absent: it may.
    pub not_writable: Option<String>,
}

/// The command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct WorkloadFacts {
    /// Its words; empty: none was given.
    pub argv: Vec<String>,
    /// The family that it, or the folder, suggests.
    pub adapter: String,
    /// Whether its program exists; absent without a command.
    pub program_found: Option<bool>,
    /// The file that it hands to Python; absent: none, or its words leave it open.
    pub script: Option<String>,
    /// Whether that exists; absent: not known.
    pub script_found: Option<bool>,
}

/// The profile that a run would take.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ProfileFacts {
    /// Its id.
    pub id: String,
    /// Why this one.
    pub why: String,
    /// Names of the variables that it sets.
    pub sets: BTreeSet<String>,
    /// Host memory that it asks for.
    pub host_ram_min: Option<Bytes>,
}
