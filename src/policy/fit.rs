//! Whether a rung changes the operation in flight.

use crate::detect::verdicts::Depth;
use crate::model::{ActionId, Acts, AgentOp, Backend, MiopenRelease, Rung, VerdictId};

/// Tiers of a convolution, from the library's own to the CPU.
const TIERS: [&str; 4] = ["native", "split", "nocudnn", "cpu"];

/// Variables that only programs on ROCm read.
const OF_ROCM: [&str; 9] = [
    "MIOPEN_",
    "HSA_",
    "HIP_",
    "ROCR_",
    "ROCBLAS_",
    "HIPBLASLT_",
    "TENSILE_",
    "AMD_",
    "PYTORCH_HIP_",
];

/// What runs as a fault is judged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InFlight {
    /// The operation that the agent reports in flight; absent: none, or none that it watches.
    pub op: Option<AgentOp>,
    /// What the program computes with.
    pub backend: Backend,
    /// Which ROCm, as far as the program told.
    pub release: MiopenRelease,
    /// Architecture of the supervised card; absent: not known.
    pub arch: Option<String>,
    /// Architectures of which the loaded MIOpen has a shipped find database; absent: not told.
    pub find_dbs: Option<Vec<String>>,
}

/// First ROCm whose Find leaves the naive kernel out where another solver succeeded.
const SHORT_FIND: [u32; 2] = [7, 14];

impl InFlight {
    /// Why this rung changes nothing about what runs; absent: it does, or nothing says that it
    /// does not. A rung without changes starts the same once more and always fits.
    pub fn misfit(&self, rung: &Rung, verdict: VerdictId) -> Option<String> {
        self.misfit_of_changes(rung, verdict)
            .or_else(|| self.misfit_of_place(&rung.acts))
            .or_else(|| self.needless_find(rung, verdict))
    }

    /// The architecture without its features: `gfx942` of `gfx942:sramecc+:xnack-`.
    fn arch(&self) -> Option<&str> {
        self.arch.as_deref()?.split(':').next()
    }

    /// Why the change acts on another version or card.
    fn misfit_of_place(&self, acts: &Acts) -> Option<String> {
        let arch = self.arch();
        if !acts.gfx.is_empty() {
            match arch {
                Some(arch) if acts.gfx.iter().any(|g| g == arch) => {}
                Some(arch) => return Some(format!("it changes nothing on {arch}")),
                None => {
                    return Some(format!(
                        "it acts on {} alone, and the architecture of this card is not known: see `rocminfo | grep gfx`",
                        acts.gfx.join(", ")
                    ));
                }
            }
        }
        let [major, minor] = acts.rocm?;
        match self.release.rocm {
            Some(rocm) if rocm >= [major, minor] => None,
            Some([a, b]) => Some(format!(
                "it acts from ROCm {major}.{minor} on; the program runs on ROCm {a}.{b}"
            )),
            None => Some(format!(
                "it acts from ROCm {major}.{minor} on, and the program did not tell its version: see `python -c 'import torch; print(torch.version.hip)'`"
            )),
        }
    }

    /// Why fast find saves little. A search that stalls by MIOpen's own lines is another
    /// matter: its shape stands in no database.
    fn needless_find(&self, rung: &Rung, verdict: VerdictId) -> Option<String> {
        let guessed = matches!(verdict, VerdictId::SilentHang | VerdictId::SpinHang);
        if rung.action != ActionId::FastFind || !guessed {
            return None;
        }
        let [major, minor] = self.release.rocm.filter(|rocm| *rocm >= SHORT_FIND)?;
        let arch = self.arch()?;
        let shipped = self.find_dbs.as_ref()?.iter().any(|db| db == arch);
        shipped.then(|| {
            format!(
                "MIOpen has a shipped find database for {arch}, and ROCm {major}.{minor} leaves the naive kernel out of a search: fast find would save little"
            )
        })
    }

    fn misfit_of_changes(&self, rung: &Rung, verdict: VerdictId) -> Option<String> {
        if !rung.args.is_empty() {
            return None;
        }
        let stalls = verdict.definition().depth == Depth::Standstill;
        let op = self.op.as_ref().filter(|_| stalls);
        let of_env = rung.env.keys().map(|name| self.misfit_of_env(name, op));
        let settings = rung.settings.iter();
        let of_settings = settings.map(|(key, value)| self.misfit_of_setting(key, value, op));
        let mut first = None;
        for misfit in of_settings.chain(of_env) {
            // one change that fits is enough
            first.get_or_insert(misfit?);
        }
        first
    }

    fn misfit_of_env(&self, name: &str, op: Option<&AgentOp>) -> Option<String> {
        let of_rocm = OF_ROCM.iter().any(|prefix| name.starts_with(prefix));
        if let Some(other) = self.backend.beside_rocm().filter(|_| of_rocm) {
            return Some(format!(
                "{name} is read on ROCm alone; the program runs on {other}"
            ));
        }
        let op = op.filter(|_| name.starts_with("MIOPEN_"))?;
        if !op.is_convolution() {
            return Some(format!("it changes convolutions; {} is in flight", op.name));
        }
        if !op.is_on_card() {
            return Some(format!(
                "it changes MIOpen's work on the card; {} runs on the CPU",
                op.name
            ));
        }
        (op.tier == "nocudnn")
            .then(|| format!("it changes MIOpen's work; {} runs without MIOpen", op.name))
    }

    fn misfit_of_setting(&self, key: &str, value: &str, op: Option<&AgentOp>) -> Option<String> {
        let changed = match key {
            "conv_tier" => "conv3d",
            "conv2d_tier" => "conv2d",
            "vae_device" if value == "cpu" => {
                let op = op.filter(|op| !op.is_on_card())?;
                return Some(format!("{} runs on the CPU already", op.name));
            }
            _ => return None,
        };
        if self.backend == Backend::Vulkan {
            return Some(format!(
                "it changes torch's {changed}; the program runs on Vulkan"
            ));
        }
        let op = op?;
        if op.name != changed {
            return Some(format!("it changes {changed}; {} is in flight", op.name));
        }
        if !op.is_on_card() {
            return Some(format!("{changed} runs on the CPU already"));
        }
        let rank = |tier: &str| TIERS.iter().position(|t| *t == tier);
        (rank(&op.tier) >= rank(value))
            .then(|| format!("{changed} runs by tier {} already", op.tier))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ActionId, Answers, RungId, Tier};

    fn rung(env: &[&str], settings: &[(&str, &str)]) -> Rung {
        Rung {
            id: RungId("r".to_owned()),
            action: ActionId::EnvToggle,
            tier: Tier::T1,
            answers: Answers::Any,
            phases: Vec::new(),
            env: env
                .iter()
                .map(|name| ((*name).to_owned(), Some("1".to_owned())))
                .collect(),
            args: Vec::new(),
            settings: settings
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect(),
            cost: None,
            source: None,
            alters_result: None,
            unavailable: None,
            acts: Acts::default(),
        }
    }

    fn op(name: &str, device: &str, tier: &str) -> InFlight {
        InFlight {
            op: Some(AgentOp {
                name: name.to_owned(),
                shape: vec![1, 16, 9, 64, 64],
                weight: Vec::new(),
                dtype: "float16".to_owned(),
                device: device.to_owned(),
                tier: tier.to_owned(),
                tid: None,
                age_ms: 60_000,
            }),
            backend: Backend::Hip,
            ..InFlight::default()
        }
    }

    fn on(backend: Backend) -> InFlight {
        InFlight {
            backend,
            ..InFlight::default()
        }
    }

    fn on_rocm(rocm: Option<[u32; 2]>, arch: Option<&str>, find_dbs: &[&str]) -> InFlight {
        InFlight {
            backend: Backend::Hip,
            release: MiopenRelease { rocm, miopen: None },
            arch: arch.map(str::to_owned),
            find_dbs: Some(find_dbs.iter().map(|a| (*a).to_owned()).collect()),
            ..InFlight::default()
        }
    }

    #[test]
    fn a_rung_is_taken_where_its_change_acts() {
        let mut ck_off = rung(&["MIOPEN_DEBUG_CONV_IMPLICIT_GEMM"], &[]);
        ck_off.acts = Acts {
            rocm: Some([7, 11]),
            gfx: vec!["gfx1100".to_owned(), "gfx1201".to_owned()],
        };
        for (rocm, arch, words) in [
            (Some([7, 11]), Some("gfx1100"), None),
            (Some([10, 0]), Some("gfx1201:xnack-"), None),
            (
                Some([7, 2]),
                Some("gfx1100"),
                Some("from ROCm 7.11 on; the program runs on ROCm 7.2"),
            ),
            (
                None,
                Some("gfx1100"),
                Some("did not tell its version: see `python -c"),
            ),
            (
                Some([7, 14]),
                Some("gfx1030"),
                Some("changes nothing on gfx1030"),
            ),
            (Some([7, 14]), None, Some("see `rocminfo | grep gfx`")),
        ] {
            let got = on_rocm(rocm, arch, &[]).misfit(&ck_off, VerdictId::SilentHang);
            match (got.as_deref(), words) {
                (None, None) => {}
                (Some(got), Some(words)) => assert!(got.contains(words), "{got}"),
                (got, _) => panic!("{rocm:?} {arch:?}: {got:?}"),
            }
        }
    }

    #[test]
    fn fast_find_is_not_advised_where_a_search_is_short_already() {
        let mut fast = rung(&["MIOPEN_FIND_MODE", "MIOPEN_FIND_ENFORCE"], &[]);
        fast.action = ActionId::FastFind;
        let misfit = |rocm, dbs: &[&str], verdict| {
            on_rocm(rocm, Some("gfx1201"), dbs).misfit(&fast, verdict)
        };
        let hang = VerdictId::SilentHang;
        let why = misfit(Some([7, 14]), &["gfx1201", "gfx942"], hang).unwrap();
        assert!(why.contains("find database for gfx1201"), "{why}");
        assert_eq!(misfit(Some([7, 13]), &["gfx1201"], hang), None);
        assert_eq!(misfit(None, &["gfx1201"], hang), None, "not claimed");
        assert_eq!(misfit(Some([7, 14]), &["gfx942"], hang), None);
        let stall = VerdictId::FindStall;
        assert_eq!(misfit(Some([7, 14]), &["gfx1201"], stall), None);
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "one pair after the other")]
    fn a_rung_answers_only_what_it_changes() {
        let split = rung(&[], &[("conv_tier", "split")]);
        let fast = rung(&["MIOPEN_FIND_MODE", "MIOPEN_FIND_ENFORCE"], &[]);
        let tiles = rung(&["MIOPEN_FIND_MODE"], &[("vae_tile", "256")]);
        let decode_on_cpu = rung(&[], &[("vae_device", "cpu")]);
        let sdma = rung(&["HSA_ENABLE_SDMA"], &[]);
        let again = rung(&[], &[]);
        let conv3d = op("conv3d", "cuda:0", "native");
        let conv2d = op("conv2d", "cuda:0", "native");
        let cpu = op("conv3d", "cpu", "native");
        for (what, rung, in_flight, words) in [
            ("split, conv3d", &split, &conv3d, None),
            (
                "split, conv2d",
                &split,
                &conv2d,
                Some("it changes conv3d; conv2d is in flight"),
            ),
            (
                "split, conv3d split",
                &split,
                &op("conv3d", "cuda:0", "split"),
                Some("tier split already"),
            ),
            (
                "split, conv3d on the CPU",
                &split,
                &cpu,
                Some("on the CPU already"),
            ),
            (
                "split, attention",
                &split,
                &op("sdpa", "cuda:0", ""),
                Some("sdpa is in flight"),
            ),
            ("fast find, conv2d", &fast, &conv2d, None),
            (
                "fast find, conv3d by conv2d's",
                &fast,
                &op("conv3d", "cuda:0", "split"),
                None,
            ),
            (
                "fast find, no cudnn",
                &fast,
                &op("conv3d", "cuda:0", "nocudnn"),
                Some("without MIOpen"),
            ),
            ("fast find, CPU", &fast, &cpu, Some("runs on the CPU")),
            (
                "fast find, attention",
                &fast,
                &op("sdpa", "cuda:0", ""),
                Some("sdpa is in flight"),
            ),
            (
                "fast find, Vulkan",
                &fast,
                &on(Backend::Vulkan),
                Some("runs on Vulkan"),
            ),
            (
                "fast find, CUDA",
                &fast,
                &on(Backend::Cuda),
                Some("runs on CUDA"),
            ),
            (
                "fast find, no card",
                &fast,
                &on(Backend::Cpu),
                Some("runs on the CPU"),
            ),
            ("fast find, unknown", &fast, &on(Backend::Unknown), None),
            (
                "split, Vulkan",
                &split,
                &on(Backend::Vulkan),
                Some("runs on Vulkan"),
            ),
            ("split, CUDA", &split, &on(Backend::Cuda), None),
            ("SDMA, CUDA", &sdma, &on(Backend::Cuda), Some("ROCm alone")),
            (
                "SDMA, attention on ROCm",
                &sdma,
                &op("sdpa", "cuda:0", ""),
                None,
            ),
            ("tiles, CPU", &tiles, &cpu, None),
            ("tiles, Vulkan", &tiles, &on(Backend::Vulkan), None),
            ("CPU decode, card", &decode_on_cpu, &conv3d, None),
            (
                "CPU decode, CPU",
                &decode_on_cpu,
                &cpu,
                Some("on the CPU already"),
            ),
            ("once more, anything", &again, &cpu, None),
        ] {
            let got = in_flight.misfit(rung, VerdictId::SilentHang);
            match (got.as_deref(), words) {
                (None, None) => {}
                (Some(got), Some(words)) => assert!(got.contains(words), "{what}: {got}"),
                (got, _) => panic!("{what}: {got:?}"),
            }
        }
    }

    #[test]
    fn arguments_of_the_program_may_change_anything() {
        let mut rung = rung(&["MIOPEN_FIND_MODE"], &[]);
        rung.args = vec!["--vae-on-cpu".to_owned()];
        let vulkan = on(Backend::Vulkan);
        assert_eq!(vulkan.misfit(&rung, VerdictId::SilentHang), None);
    }

    #[test]
    fn an_error_is_no_operation_in_flight() {
        let split = rung(&[], &[("conv_tier", "split")]);
        let conv2d = op("conv2d", "cuda:0", "native");
        assert_eq!(conv2d.misfit(&split, VerdictId::GpuOom), None);
    }
}
