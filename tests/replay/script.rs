//! Scripted cases: the activities of `tests/cases/casegen.py` as a small language.

use std::cell::Cell;

use framepack_tui::model::{ExitStatus, Health, Phase, VerdictId};

use crate::case::{Action, Case, Expected, Happening, Meta, Row};
use crate::player::{self, Outcome};

/// A machine: name, vendor, architecture, VRAM, GTT, board limit, idle and busy power.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gpu {
    name: &'static str,
    vendor: &'static str,
    arch: &'static str,
    vram: u64,
    gtt: Option<u64>,
    board_w: f64,
    pub(crate) idle_w: f64,
    pub(crate) busy_w: f64,
    apu: bool,
}

const fn amd(name: &'static str, arch: &'static str, vram: u64, watts: [f64; 3]) -> Gpu {
    Gpu {
        name,
        vendor: "amd",
        arch,
        vram,
        gtt: Some(32000),
        board_w: watts[0],
        idle_w: watts[1],
        busy_w: watts[2],
        apu: false,
    }
}

pub(crate) const RX7900XTX: Gpu = amd(
    "AMD Radeon RX 7900 XTX",
    "gfx1100",
    24560,
    [355.0, 22.0, 318.0],
);
pub(crate) const RX9070XT: Gpu = amd(
    "AMD Radeon RX 9070 XT",
    "gfx1201",
    16304,
    [304.0, 17.0, 272.0],
);
pub(crate) const RX6700XT: Gpu = amd(
    "AMD Radeon RX 6700 XT",
    "gfx1031",
    12272,
    [230.0, 9.0, 180.0],
);
pub(crate) const RX6800: Gpu = amd("AMD Radeon RX 6800", "gfx1030", 16368, [250.0, 11.0, 196.0]);
pub(crate) const MI300X: Gpu = amd(
    "AMD Instinct MI300X",
    "gfx942",
    196_592,
    [750.0, 139.0, 612.0],
);
pub(crate) const W7800: Gpu = amd(
    "AMD Radeon Pro W7800",
    "gfx1100",
    32752,
    [260.0, 14.0, 240.0],
);
/// A board whose limit is little above what other cards draw at rest.
pub(crate) const W6400: Gpu = amd("AMD Radeon Pro W6400", "gfx1034", 4080, [60.0, 10.0, 52.0]);
pub(crate) const STRIX_HALO: Gpu = Gpu {
    gtt: Some(98304),
    apu: true,
    ..amd("AMD Radeon 8060S", "gfx1151", 4096, [120.0, 12.0, 58.0])
};
pub(crate) const RTX4090: Gpu = Gpu {
    vendor: "nvidia",
    gtt: None,
    ..amd(
        "NVIDIA GeForce RTX 4090",
        "sm_89",
        24564,
        [450.0, 24.0, 398.0],
    )
};

/// What the machine does for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    Idle,
    Startup,
    Load,
    Hdd,
    Encode,
    Sample,
    Vae,
    /// One busy core, the card idle.
    Cpu1,
    /// Many busy cores, the card idle.
    CpuMany,
    Download,
    /// The counter full, the power idle, a core waiting in a loop.
    Wedged,
    /// Swapping.
    Thrash,
    Dead,
}

type Change = fn(&mut Row);

pub(crate) struct Script {
    gpu: Gpu,
    case: Case,
    end: u32,
    slept: u32,
    pub(crate) vram: f64,
    /// Applied to every row: what this machine cannot tell, or tells wrongly.
    pub(crate) always: Option<Change>,
}

impl Script {
    pub(crate) fn new(gpu: Gpu, app: &str, command: &str) -> Self {
        let meta = Meta {
            app: app.to_owned(),
            argv: command.split_whitespace().map(str::to_owned).collect(),
            gpu: gpu.name.to_owned(),
            vendor: gpu.vendor.to_owned(),
            arch: gpu.arch.to_owned(),
            apu: gpu.apu,
            vram_total_mib: Some(gpu.vram),
            gtt_total_mib: gpu.gtt,
            board_power_w: Some(gpu.board_w),
            ..Meta::default()
        };
        Self {
            gpu,
            case: Case {
                name: String::new(),
                folder: None,
                meta,
                console: Vec::new(),
                rows: Vec::new(),
                before: Vec::new(),
                kernel: Vec::new(),
                events: Vec::new(),
                sleep_untold: false,
                to_the_end: false,
                expected: Expected {
                    verdict: VerdictId::Healthy,
                    accept: Vec::new(),
                    must_not: Vec::new(),
                    phase: Phase::Unknown,
                    false_alarm_case: false,
                    earliest_s: None,
                    detect_by_s: None,
                    action: Action {
                        id: String::new(),
                        auto_restart: false,
                    },
                    checkpoint: Vec::new(),
                },
            },
            end: 0,
            slept: 0,
            vram: 700.0,
            always: None,
        }
    }

    /// FramePack's page is up at 40 s.
    pub(crate) fn framepack(gpu: Gpu) -> Self {
        let mut s = Self::new(gpu, "framepack", "python3 demo_gradio.py");
        s.say("Free VRAM 22.9 GB\nHigh-VRAM Mode: False");
        s.act(10, Act::Startup);
        s.bar(4, 25, "Loading checkpoint shards:");
        s.act(25, Act::Load);
        s.say("* Running on local URL:  http://127.0.0.1:7860");
        s.act(5, Act::Idle);
        s
    }

    /// FramePack's first section up to the beginning of its decode, at 158 s.
    pub(crate) fn framepack_decode(gpu: Gpu) -> Self {
        let mut s = Self::framepack(gpu);
        s.framepack_job();
        s
    }

    /// From the page to the beginning of a decode.
    pub(crate) fn framepack_job(&mut self) {
        let s = self;
        s.say("Unloaded DynamicSwap_LlamaModel as complete.\nUnloaded AutoencoderKLHunyuanVideo as complete.");
        s.say("Loaded CLIPTextModel to cuda:0 as complete.");
        s.act(10, Act::Encode);
        s.say("latent_padding_size = 0, is_last_section = True");
        s.say("Moving DynamicSwap_HunyuanVideoTransformer3DModelPacked to cuda:0 with preserved memory: 6 GB");
        s.vram = 20_000.0;
        s.act(5, Act::Load);
        s.bar(25, 100, "");
        s.act(100, Act::Sample);
        s.say("Unloading DynamicSwap_HunyuanVideoTransformer3DModelPacked completely");
        s.say("Loaded AutoencoderKLHunyuanVideo to cuda:0 as complete.");
        s.vram = 4000.0;
        s.act(3, Act::Vae);
    }

    /// ComfyUI up to the beginning of its decode, with a prefix before each line.
    pub(crate) fn comfyui_decode(gpu: Gpu, prefix: &str) -> Self {
        let mut s = Self::comfyui_prompt(gpu, prefix);
        s.bar(20, 100, "");
        s.act(100, Act::Sample);
        s.say(&format!("{prefix}Requested to load WanVAE"));
        s.say(&format!("{prefix}loaded completely 3120.9 242.03 True"));
        s.act(4, Act::Vae);
        s
    }

    /// ComfyUI up to the beginning of its sampling.
    pub(crate) fn comfyui_prompt(gpu: Gpu, prefix: &str) -> Self {
        let mut s = Self::new(gpu, "comfyui", "python3 main.py");
        s.act(12, Act::Startup);
        s.say(&format!("{prefix}Set vram state to: NORMAL_VRAM"));
        s.say(&format!(
            "{prefix}To see the GUI go to: http://127.0.0.1:8188"
        ));
        s.act(8, Act::Idle);
        s.say(&format!("{prefix}got prompt"));
        s.say(&format!("{prefix}Requested to load WanTEModel"));
        s.vram = 9000.0;
        s.act(15, Act::Load);
        s.say(&format!("{prefix}loaded completely 14003.2 6419.48 True"));
        s.say(&format!("{prefix}Requested to load WAN21"));
        s.act(15, Act::Load);
        s
    }

    /// A diffusers script up to the end of its loading, at 60 s.
    pub(crate) fn diffusers(gpu: Gpu) -> Self {
        let mut s = Self::new(gpu, "diffusers", "python3 generate.py --prompt x");
        s.act(30, Act::Startup);
        s.bar(7, 25, "Loading pipeline components...:");
        s.vram = 9000.0;
        s.act(30, Act::Load);
        s
    }

    /// Seconds in which the machine was awake.
    pub(crate) const fn awake(&self) -> u32 {
        self.end
    }

    /// The second at which the script stands.
    pub(crate) fn now(&self) -> f64 {
        f64::from(self.end) + f64::from(self.slept)
    }

    /// A line now.
    pub(crate) fn say(&mut self, text: &str) {
        // in the order in which they were written
        let t = self.now() + 0.1;
        self.case
            .console
            .push((t, format!("{text}\n").into_bytes()));
    }

    /// A line every `every` seconds, `times` times from now on.
    pub(crate) fn repeat(&mut self, text: &str, every: f64, times: u32) {
        for k in 0..times {
            let t = self.now() + 0.15 + every * f64::from(k);
            self.case
                .console
                .push((t, format!("{text}\n").into_bytes()));
        }
    }

    /// A whole tqdm bar over the next seconds.
    pub(crate) fn bar(&mut self, steps: u32, seconds: u32, desc: &str) {
        self.part_bar(0, steps, steps, seconds, desc);
    }

    /// Steps `from..=to` of a bar over the next seconds.
    pub(crate) fn part_bar(&mut self, from: u32, to: u32, steps: u32, seconds: u32, desc: &str) {
        let each = f64::from(seconds) / f64::from((to - from).max(1));
        for k in from..=to {
            let t = self.now() + 0.2 + each * f64::from(k - from) * 0.98;
            let pct = 100 * k / steps;
            let mut text =
                format!("\r{desc} {pct}%|#####     | {k}/{steps} [00:01<00:09, 1.20s/it]");
            if k == steps {
                text.push('\n');
            }
            self.case.console.push((t, text.into_bytes()));
        }
    }

    /// The machine does this for so many seconds.
    pub(crate) fn act(&mut self, seconds: u32, act: Act) {
        self.act_with(seconds, act, |_| {});
    }

    /// The same with readings of its own.
    pub(crate) fn act_with(&mut self, seconds: u32, act: Act, mut change: impl FnMut(&mut Row)) {
        for _ in 0..seconds {
            let mut row = self.row(act);
            change(&mut row);
            if let Some(always) = self.always {
                always(&mut row);
            }
            self.case.rows.push(row);
            self.end += 1;
        }
    }

    /// From now on the card draws so much of what it did at work.
    pub(crate) fn scale_power(&mut self, share: f64) {
        self.gpu.busy_w *= share;
    }

    /// The machine sleeps.
    pub(crate) fn sleep(&mut self, seconds: u32) {
        self.slept += seconds;
    }

    pub(crate) fn kernel(&mut self, text: &str) {
        self.case.kernel.push((self.now() + 0.1, text.to_owned()));
    }

    pub(crate) fn happens(&mut self, what: Happening) {
        self.case.events.push((self.now(), what));
    }

    pub(crate) fn exit(&mut self, status: ExitStatus) {
        self.case
            .events
            .push((self.now() + 0.4, Happening::Exit(status)));
        self.act(1, Act::Idle);
        self.act(8, Act::Dead);
    }

    fn row(&self, act: Act) -> Row {
        let g = &self.gpu;
        // small, repeatable noise
        let noise = f64::from(self.end * 37 % 11) / 11.0;
        let sometimes = |each: u32, v: f64| {
            if self.end.is_multiple_of(each) {
                v
            } else {
                0.0
            }
        };
        let (busy, power) = match act {
            Act::Encode => (60.0, g.idle_w + (g.busy_w - g.idle_w) * 0.45),
            Act::Sample => (98.0, g.busy_w),
            Act::Vae => (93.0, g.busy_w * 0.86),
            Act::Wedged => (100.0, g.idle_w + (g.busy_w - g.idle_w) * 0.18),
            _ => (sometimes(23, 2.0), g.idle_w + noise),
        };
        let cpu = match act {
            Act::Idle => 0.4 + sometimes(11, 1.5),
            Act::Hdd | Act::Thrash => 6.0 + noise,
            Act::Download => 22.0,
            Act::CpuMany => 1400.0,
            Act::Dead => 0.0,
            Act::Load => 85.0,
            _ => 99.5 + noise,
        };
        let read = match act {
            Act::Startup => 9e7,
            Act::Load => 6e8,
            Act::Hdd => 1.1e8,
            Act::Thrash => 1.6e8,
            _ => 0.0,
        };
        let write = match act {
            Act::Download => 4e7,
            Act::Thrash => 1.4e8,
            _ => sometimes(29, 12_000.0),
        };
        Row {
            t: self.now(),
            busy: Some(busy),
            power: Some(power),
            vram_mib: Some(self.vram),
            gtt_mib: g.gtt.map(|_| 180.0),
            cpu: Some(cpu),
            read_bps: Some(read),
            write_bps: Some(write),
            net_bps: Some(if act == Act::Download { 4.3e7 } else { 900.0 }),
            d_state: Some(if act == Act::Thrash { 4.0 } else { 0.0 }),
            alive: act != Act::Dead,
            ..Row::default()
        }
    }

    pub(crate) fn play(&self) -> Outcome {
        player::play(&self.case)
    }

    /// No alarm, no suspicion, nothing restarted; these stand at their times, and the
    /// last at the end.
    pub(crate) fn is_calm(&self, states: &[(f64, VerdictId)], end: VerdictId) {
        let got = self.is_quiet();
        let story = got.story();
        for (t, want) in states {
            let right = got.at(*t) == Some(*want);
            require(right, Broken::State, || {
                format!("at {t} s {:?}, not {want}\n{story}", got.at(*t))
            });
        }
        let last = got.shown().last().map(|(_, v)| v.id);
        require(last == Some(end), Broken::State, || {
            format!("at the end {last:?}, not {end}\n{story}")
        });
    }

    /// No alarm, no suspicion, nothing restarted.
    pub(crate) fn is_quiet(&self) -> Outcome {
        let got = self.play();
        let story = got.story();
        let alarm = got.verdicts.iter().find(|(_, v)| !v.id.is_no_fault());
        require(alarm.is_none(), Broken::Alarm, || {
            format!("an alarm\n{story}")
        });
        require(got.decisions.is_empty(), Broken::Alarm, || {
            format!("a decision\n{story}")
        });
        got
    }

    /// No alarm and nothing restarted, but a suspicion may come and go.
    pub(crate) fn is_spared(&self) -> Outcome {
        let got = self.play();
        let story = got.story();
        let alarm = got.shown().find(|(_, v)| !v.id.is_no_fault());
        require(alarm.is_none(), Broken::Alarm, || {
            format!("an alarm\n{story}")
        });
        require(got.decisions.is_empty(), Broken::Alarm, || {
            format!("a decision\n{story}")
        });
        got
    }

    /// The same, and this stands at the end.
    pub(crate) fn is_calm_but_suspicious(&self, end: VerdictId) {
        let got = self.is_spared();
        let last = got.shown().last().map(|(_, v)| v.id);
        require(last == Some(end), Broken::State, || {
            format!("at the end {last:?}, not {end}\n{}", got.story())
        });
    }

    /// The first fault that is told is this one, at a time between these.
    pub(crate) fn tells(&self, want: VerdictId, from: f64, by: f64) -> Outcome {
        let got = self.play();
        in_time(&got, want, from, by);
        let first = got.shown().find(|(_, v)| !v.id.is_no_fault());
        let is_it = first.is_some_and(|(_, v)| v.id == want);
        require(is_it, Broken::Other, || {
            format!("another fault before {want}\n{}", got.story())
        });
        got
    }

    /// A suspicion of this comes until then.
    pub(crate) fn suspects(&self, want: VerdictId, by: f64) -> Outcome {
        let got = self.play();
        let first = (got.verdicts.iter())
            .find(|(_, v)| v.id == want && v.health == Health::Suspect)
            .map(|(t, _)| *t);
        require(first.is_some_and(|t| t <= by), Broken::Late, || {
            format!(
                "first sign of {want} at {first:?}, not by {by}\n{}",
                got.story()
            )
        });
        got
    }

    /// Played on after a fault, as a diagnosis.
    pub(crate) const fn play_on(&mut self) {
        self.case.to_the_end = true;
    }

    /// The card reads so before the launch, so many times, half a second apart.
    pub(crate) fn before(&mut self, readings: usize, change: impl Fn(&mut Row)) {
        let mut row = self.row(Act::Idle);
        change(&mut row);
        self.case.before = vec![row; readings];
    }

    /// Whether the supervisor is told of a sleep, as a run is, or has only the clock.
    pub(crate) const fn tell_sleep(&mut self, told: bool) {
        self.case.sleep_untold = !told;
    }

    /// This is told of a job that lives, in this phase, between two times; nothing is
    /// restarted.
    pub(crate) fn is_told(&self, want: VerdictId, phase: Phase, from: f64, by: f64) -> Outcome {
        let got = self.play();
        let story = got.story();
        in_time(&got, want, from, by);
        let (t, main) = got.main().expect("a verdict");
        assert_eq!((main.id, main.phase), (want, phase), "\n{story}");
        assert_eq!(main.health, Health::Slow, "\n{story}");
        assert!(
            t >= from && t <= by,
            "{t:.1} s, not in {from}..{by}\n{story}"
        );
        let others = got
            .shown()
            .filter(|(_, v)| !v.id.is_no_fault() && v.id != want);
        assert_eq!(others.count(), 0, "only that\n{story}");
        assert!(got.decisions.is_empty(), "\n{story}");
        got
    }

    /// This fault, in this phase, between two times.
    pub(crate) fn is_fault(&self, want: VerdictId, phase: Phase, from: f64, by: f64) -> Outcome {
        let got = self.play();
        let story = got.story();
        in_time(&got, want, from, by);
        let (t, main) = got.main().expect("a verdict");
        assert_eq!((main.id, main.phase), (want, phase), "\n{story}");
        assert!(
            t >= from && t <= by,
            "{t:.1} s, not in {from}..{by}\n{story}"
        );
        let others = got
            .shown()
            .filter(|(_, v)| !v.id.is_no_fault() && v.id != want);
        assert_eq!(others.count(), 0, "only that\n{story}");
        assert!(!got.decisions.is_empty(), "something follows\n{story}");
        got
    }
}

/// Told at all, and neither too late nor too early.
fn in_time(got: &Outcome, want: VerdictId, from: f64, by: f64) {
    let first = got.shown().find(|(_, v)| v.id == want).map(|(t, _)| t);
    require(first.is_some_and(|t| t <= by), Broken::Late, || {
        format!("{want} at {first:?}, not by {by}\n{}", got.story())
    });
    require(first.is_some_and(|t| t >= from), Broken::Other, || {
        format!("{want} at {first:?}, before {from}\n{}", got.story())
    });
}

/// In which way a story went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Broken {
    /// An alarm or a suspicion where there must be none.
    Alarm,
    /// A fault is told too late, or not at all.
    Late,
    /// Another state than the right one, none of them a fault.
    State,
    /// Anything else: too early, another action, another phase.
    Other,
}

thread_local! {
    static BROKEN: Cell<Option<Broken>> = const { Cell::new(None) };
}

/// In which way the last story of this thread that went wrong did.
pub(crate) fn broken() -> Broken {
    BROKEN.take().unwrap_or(Broken::Other)
}

/// Asserts, and remembers what it means if it does not hold.
pub(crate) fn require(holds: bool, how: Broken, message: impl FnOnce() -> String) {
    if !holds {
        BROKEN.set(Some(how));
        panic!("{}", message());
    }
}
