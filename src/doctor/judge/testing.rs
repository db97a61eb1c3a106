//! A healthy machine, to be made ill by each test.

use std::collections::{BTreeMap, BTreeSet};

use crate::doctor::facts::{
    DeviceNode, Facts, FolderFact, FolderState, Libraries, LibraryFile, Look, MiopenLibrary,
    PciDisplay, PlaceFact, PlaceState, ProfileFacts, PythonAnswer, PythonFacts, PythonOutcome,
    Records, SourceFact, SystemFacts, TorchFacts, UserFacts, WorkloadFacts,
};
use crate::doctor::finding::{Finding, Id};
use crate::model::sample::SourceState;
use crate::model::visible::Visible;
use crate::model::{Bytes, GpuId, GpuSample, HostSample, Metric, Vendor};

/// Address of its card.
pub(crate) const CARD: &str = "0000:03:00.0";

/// An RX 7900 XTX with ROCm 6.4 and torch 2.9, nothing wrong.
pub(crate) fn healthy() -> Facts {
    Facts {
        sources: vec![SourceFact {
            name: format!("sysfs {CARD}"),
            state: SourceState::Ok,
            why: None,
            first_ms: Some(2.5),
            read_ms: Some(0.4),
        }],
        cards: vec![card()],
        supervised: Some(GpuId(CARD.to_owned())),
        visible: Visible::All,
        host: HostSample {
            mem_total: Metric::Fresh(Bytes::gib(64)),
            mem_available: Metric::Fresh(Bytes::gib(50)),
            swap_total: Metric::Fresh(Bytes::gib(8)),
            swap_used: Metric::Fresh(Bytes(0)),
            ..HostSample::default()
        },
        system: Look::Known(SystemFacts {
            kernel: "6.14.0".to_owned(),
            sysfs: true,
            amdgpu_loaded: true,
            rocm: Some("6.4.1".to_owned()),
            rocm_path: Some("/opt/rocm".to_owned()),
            amd_devices: vec![PciDisplay {
                address: CARD.to_owned(),
                driver: Some("amdgpu".to_owned()),
            }],
            ..SystemFacts::default()
        }),
        user: Look::Known(UserFacts {
            name: Some("ada".to_owned()),
            uid: 1000,
            groups: vec!["ada".to_owned(), "render".to_owned()],
            not_in_force: Vec::new(),
        }),
        devices: Look::Known(vec![
            node("/dev/kfd", None),
            node("/dev/dri/renderD128", Some(CARD)),
        ]),
        python: python(),
        libraries: Look::Known(libraries()),
        folders: folders(),
        places: vec![PlaceFact {
            role: "home".to_owned(),
            path: "/home/ada".to_owned(),
            state: Look::Known(PlaceState {
                free: Bytes::gib(200),
                total: Bytes::gib(900),
                not_writable: None,
            }),
        }],
        environment: BTreeMap::new(),
        workload: WorkloadFacts {
            argv: vec!["python".to_owned(), "demo_gradio.py".to_owned()],
            adapter: "framepack".to_owned(),
            program_found: Some(true),
            script: Some("/home/ada/FramePack/demo_gradio.py".to_owned()),
            script_found: Some(true),
        },
        profile: Look::Known(ProfileFacts {
            id: "rx7900xtx-safe".to_owned(),
            why: "gfx1100".to_owned(),
            sets: BTreeSet::from(["MIOPEN_FIND_MODE".to_owned()]),
            host_ram_min: Some(Bytes::gib(16)),
        }),
        broken_profiles: Vec::new(),
    }
}

/// The healthy machine with the graphics of a Ryzen beside the card, before or after it
/// on the bus; the card is supervised and HIP counts it as 0.
pub(crate) fn beside_an_apu(apu_first: bool) -> Facts {
    let mut facts = healthy();
    facts.cards[0].compute_index = Some(0);
    let mut apu = card();
    apu.id = GpuId(if apu_first { "0000:01:00.0" } else { APU }.to_owned());
    apu.name = "AMD Raphael".to_owned();
    apu.arch = Some("gfx1036".to_owned());
    apu.apu = true;
    apu.compute_index = Some(1);
    facts.system_mut().amd_devices.push(PciDisplay {
        address: apu.id.0.clone(),
        driver: Some("amdgpu".to_owned()),
    });
    facts.cards.insert(usize::from(!apu_first), apu);
    facts
}

/// Address of an APU behind the card.
pub(crate) const APU: &str = "0000:7a:00.0";

/// Its card.
pub(crate) fn card() -> GpuSample {
    let id = GpuId(CARD.to_owned());
    let name = "AMD Radeon RX 7900 XTX".to_owned();
    let mut card = GpuSample::unread(id, 0, Vendor::Amd, name, "sysfs");
    card.arch = Some("gfx1100".to_owned());
    card.state = Metric::Fresh("active".to_owned());
    card.vram_total = Metric::Fresh(Bytes::gib(24));
    card.perf_level = Metric::Fresh("auto".to_owned());
    card
}

fn node(path: &str, pci: Option<&str>) -> DeviceNode {
    DeviceNode {
        path: path.to_owned(),
        pci: pci.map(str::to_owned),
        group: "render".to_owned(),
        mode: "0660".to_owned(),
        accessible: true,
        why: None,
    }
}

fn python() -> PythonFacts {
    PythonFacts {
        path: Some("/home/ada/v/bin/python".to_owned()),
        chosen_by: "the command".to_owned(),
        guessed: false,
        outcome: PythonOutcome::Answered(Box::new(PythonAnswer {
            version: "3.12.3".to_owned(),
            executable: "/home/ada/v/bin/python".to_owned(),
            prefix: "/home/ada/v".to_owned(),
            packages: ["av", "diffusers", "torch", "torchvision"]
                .map(|n| (n.to_owned(), "1.0".to_owned()))
                .into(),
            torch: Some(TorchFacts {
                version: "2.9.1+rocm6.4".to_owned(),
                hip: Some("6.4.43484".to_owned()),
                cuda: None,
                folder: "/home/ada/v/torch".to_owned(),
            }),
            write_video: Some(true),
            uv: false,
            externally_managed: false,
            rocm_sdk: Vec::new(),
            took_ms: 180,
        })),
    }
}

fn libraries() -> Libraries {
    Libraries {
        found: vec![LibraryFile {
            path: "/home/ada/v/torch/lib/libMIOpen.so".to_owned(),
            origin: "torch".to_owned(),
        }],
        miopen: Some(Look::Known(MiopenLibrary {
            bytes: Bytes::mib(300),
            version: Some("3.4.0".to_owned()),
            names: [
                "MIOPEN_FIND_MODE",
                "MIOPEN_FIND_ENFORCE",
                "MIOPEN_LOG_LEVEL",
            ]
            .map(str::to_owned)
            .into(),
        })),
        rocblas_archs: Some(["gfx1030", "gfx1100"].map(str::to_owned).into()),
        rocblas_path: Some("/home/ada/v/torch/lib/rocblas/library".to_owned()),
        find_dbs: None,
    }
}

fn folders() -> Vec<FolderFact> {
    let folder = |role: &str, path: &str| FolderFact {
        role: role.to_owned(),
        path: path.to_owned(),
        set_by: None,
        state: Look::Known(FolderState {
            exists: true,
            bytes: Bytes::mib(12),
            files: 4,
            archs: BTreeMap::from([("gfx1100".to_owned(), Bytes::mib(12))]),
            records: (role == "user_db").then(|| Records {
                read: 40,
                ..Records::default()
            }),
            ..FolderState::default()
        }),
    };
    vec![
        folder("user_db", "/home/ada/.config/miopen"),
        folder("kernel_cache", "/home/ada/.cache/miopen"),
        folder("locks", "/tmp/miopen-lockfiles"),
    ]
}

impl Facts {
    /// With a variable in the environment.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.environment.insert(name.to_owned(), value.to_owned());
        self
    }

    /// The interpreter's answer, to be changed.
    pub(crate) fn answer_mut(&mut self) -> &mut PythonAnswer {
        match &mut self.python.outcome {
            PythonOutcome::Answered(answer) => answer,
            other => panic!("{other:?}"),
        }
    }

    /// What libMIOpen contains, to be changed.
    pub(crate) fn library_mut(&mut self) -> &mut MiopenLibrary {
        match &mut self.libraries {
            Look::Known(Libraries {
                miopen: Some(Look::Known(library)),
                ..
            }) => library,
            other => panic!("{other:?}"),
        }
    }

    /// The system, to be changed.
    pub(crate) fn system_mut(&mut self) -> &mut SystemFacts {
        match &mut self.system {
            Look::Known(system) => system,
            Look::Unknown(why) => panic!("{why}"),
        }
    }
}

/// The finding of this id, which must be there once.
pub(crate) fn found(facts: &Facts, id: Id) -> Finding {
    let all = super::all(facts);
    let mut found: Vec<_> = all.iter().filter(|f| f.id == id).cloned().collect();
    assert_eq!(found.len(), 1, "{id:?} in {all:#?}");
    found.remove(0)
}

/// Whether there is no finding of this id.
pub(crate) fn absent(facts: &Facts, id: Id) -> bool {
    super::all(facts).iter().all(|f| f.id != id)
}
