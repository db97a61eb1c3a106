//! What healthy programs do, with durations and mishaps from the dice.

use framepack_tui::model::ExitStatus;

use super::dice::Dice;
use crate::case::{Happening, Row};
use crate::script::{Act, Gpu, MI300X, RTX4090, RX6700XT, RX7900XTX, RX9070XT, STRIX_HALO, Script};

const DECODED: &str = "Decoded. Current latent shape torch.Size([1, 16, 9, 68, 90]); pixel shape torch.Size([1, 3, 33, 544, 720])";
const TRANSFORMER: &str = "DynamicSwap_HunyuanVideoTransformer3DModelPacked";
/// A run is at least this long.
const SHORTEST_S: u32 = 3600;

/// What this machine cannot tell, or tells wrongly, all the time.
fn machine(d: &mut Dice) -> (Gpu, Option<fn(&mut Row)>) {
    match d.between(0, 19) {
        0 => (STRIX_HALO, Some(|r| r.power = None)),
        1 => (
            STRIX_HALO,
            Some(|r| {
                r.busy = Some(0.0);
                r.power = Some(31.0);
                r.vram_mib = Some(512.0);
                r.gtt_mib = Some(400.0);
            }),
        ),
        2 => (
            RX7900XTX,
            Some(|r| {
                r.busy = None;
                r.power = None;
                r.vram_mib = None;
                r.gtt_mib = None;
            }),
        ),
        3 => (RTX4090, Some(|r| r.vram_mib = None)),
        4 => (RX6700XT, Some(|r| r.busy = Some(100.0))),
        5 => (MI300X, Some(|r| r.busy = Some(0.0))),
        6 => (RX9070XT, Some(|r| r.net_bps = Some(180_000.0))),
        7 => (STRIX_HALO, None),
        _ => (
            d.one_of(&[RX7900XTX, RX9070XT, RX6700XT, MI300X, RTX4090]),
            None,
        ),
    }
}

struct World {
    s: Script,
    d: Dice,
    /// Kernels of this program were built.
    warm: bool,
}

/// A run of this seed.
pub(super) fn script(seed: u64) -> Script {
    let mut d = Dice::new(seed);
    let (gpu, always) = machine(&mut d);
    let kind = d.between(0, 3);
    let s = match kind {
        0 => Script::framepack(gpu),
        1 => comfy(gpu),
        2 => Script::new(gpu, "diffusers", "python3 generate.py --prompt x"),
        _ => Script::new(gpu, "script", "python3 -u render.py"),
    };
    let mut w = World { s, d, warm: false };
    w.s.always = always;
    match kind {
        0 => {
            while w.s.awake() < SHORTEST_S {
                w.framepack_job();
                w.idle();
            }
        }
        1 => {
            while w.s.awake() < SHORTEST_S {
                w.comfy_job();
                w.idle();
            }
        }
        2 => w.diffusers_run(),
        _ => w.silent_run(),
    }
    w.s
}

fn comfy(gpu: Gpu) -> Script {
    let mut s = Script::new(gpu, "comfyui", "python3 main.py");
    s.act(12, Act::Startup);
    s.say("Set vram state to: NORMAL_VRAM");
    s.say("Traceback (most recent call last):\n  File \"nodes.py\", line 1, in load_custom_node\nModuleNotFoundError: No module named 'insightface'\nCannot import custom_nodes/pack module for custom nodes");
    s.act(3, Act::Startup);
    s.say("To see the GUI go to: http://127.0.0.1:8188");
    s.act(8, Act::Idle);
    s
}

impl World {
    fn framepack_job(&mut self) {
        self.s.say("Unloaded DynamicSwap_LlamaModel as complete.\nUnloaded AutoencoderKLHunyuanVideo as complete.");
        self.s.say("Loaded CLIPTextModel to cuda:0 as complete.");
        let t = self.d.between(5, 20);
        self.s.act(t, Act::Encode);
        let sections = self.d.between(1, 4);
        for k in (0..sections).rev() {
            let last = if k == 0 { "True" } else { "False" };
            self.s.say(&format!(
                "latent_padding_size = {}, is_last_section = {last}",
                9 * k
            ));
            self.s.say(&format!(
                "Moving {TRANSFORMER} to cuda:0 with preserved memory: 18 GB"
            ));
            self.s.vram = 20_000.0;
            self.load();
            self.steps(25, "");
            self.s.say(&format!("Unloading {TRANSFORMER} completely"));
            self.s
                .say("Loaded AutoencoderKLHunyuanVideo to cuda:0 as complete.");
            self.s.vram = 4000.0;
            self.decode("[VAE Decode] Falling back to CPU decode");
            self.s.say(DECODED);
            self.s.act(4, Act::CpuMany);
        }
    }

    fn comfy_job(&mut self) {
        self.s.say("got prompt");
        self.s.say("Requested to load WanTEModel");
        self.s.vram = 9000.0;
        self.load();
        self.s.say("loaded completely 14003.2 6419.48 True");
        self.s.act(4, Act::Encode);
        self.s.say("Requested to load WAN21");
        self.load();
        let steps = self.d.one_of(&[4, 20, 30]);
        self.steps(steps, "");
        self.s.say("Requested to load WanVAE");
        self.decode("VAE load device: cpu, offload device: cpu, dtype: torch.float32");
        self.encode_video();
        self.s.say("Prompt executed in 640.00 seconds");
    }

    fn diffusers_run(&mut self) {
        self.s.act(15, Act::Startup);
        if self.d.percent(40) {
            self.download();
        }
        self.s.bar(7, 20, "Loading pipeline components...:");
        self.s.vram = 9000.0;
        self.load();
        while self.s.awake() < SHORTEST_S {
            self.steps(30, "");
            self.decode("Decoding on the CPU, this takes several minutes");
            self.encode_video();
        }
        self.s.say("Saved out.mp4");
        self.s.exit(ExitStatus::Code(0));
    }

    /// Its output stays in a buffer.
    fn silent_run(&mut self) {
        self.s.act(20, Act::Startup);
        self.s.vram = 11_000.0;
        self.load();
        while self.s.awake() < SHORTEST_S {
            let t = self.d.between(200, 1500);
            self.s.act(t, Act::Sample);
            let t = self.d.between(20, 500);
            self.s.act(t, Act::Vae);
        }
        self.s.exit(ExitStatus::Code(0));
    }

    /// Weights come to the card: fast, from a slow disk, or out of the page cache.
    fn load(&mut self) {
        let many = self.d.between(60, 900);
        let few = self.d.between(3, 40);
        match self.d.between(0, 19) {
            0..=2 => self.s.act(many, Act::Hdd),
            3..=4 => self.s.act_with(few * 4, Act::Idle, |r| {
                r.cpu = Some(45.0);
                r.faults = Some(9000.0);
            }),
            5 => self.s.act_with(many, Act::Hdd, |r| {
                r.read_bps = Some(2.0e7);
                r.cpu = Some(3.0);
            }),
            _ => self.s.act(few, Act::Load),
        }
    }

    /// A bar, with what may come between its steps.
    fn steps(&mut self, steps: u32, desc: &str) {
        if !self.warm {
            self.warm = true;
            self.s.part_bar(0, 0, steps, 1, desc);
            self.first_run();
        }
        let pace = self.d.between(1, 12);
        let cut = self.d.between(1, steps - 1);
        self.s.part_bar(1, cut, steps, pace * cut, desc);
        self.s.act(pace * cut, Act::Sample);
        let slower = self.mishap();
        let rest = steps - cut;
        self.s
            .part_bar(cut + 1, steps, steps, pace * slower * rest, desc);
        self.s.act(pace * slower * rest, Act::Sample);
    }

    /// Kernels are built: by helpers, on all cores, by the program's word, or by MIOpen.
    fn first_run(&mut self) {
        let t = self.d.between(30, 600);
        match self.d.between(0, 7) {
            0 => self
                .s
                .act_with(t, Act::Cpu1, |r| r.children = vec!["clang-19".to_owned()]),
            1 => self.s.act(t, Act::CpuMany),
            2 => {
                self.s
                    .say("Compiling the transformer with inductor, this takes several minutes");
                self.s.act(t, Act::Cpu1);
            }
            3 => self.s.act_with(t, Act::Cpu1, |r| r.faults = Some(4000.0)),
            4 => {
                for k in 0..t / 12 {
                    if k % 5 == 0 {
                        self.s.say("MIOpen(HIP): Warning [SearchImpl] Searching the best solution in the 9 dim space. Please, be patient...");
                    }
                    self.s.say(&format!("MIOpen(HIP): Warning [SearchImpl] Runs left: {}, min time so far: 4.80, curr time: 11.0", 3000 - 40 * k));
                    self.s.act(2, Act::Vae);
                    self.s.act(10, Act::Cpu1);
                }
            }
            _ => {}
        }
    }

    /// Something that is nobody's fault. Gives how many times slower it goes on.
    fn mishap(&mut self) -> u32 {
        let t = self.d.between(60, 2400);
        match self.d.between(0, 39) {
            // Ctrl-Z
            0 => {
                self.s.happens(Happening::Stopped);
                self.s.act_with(t, Act::Idle, |r| r.cpu = Some(0.0));
                self.s.happens(Happening::Continued);
                self.s.act(3, Act::Sample);
            }
            // the lid
            1 => {
                self.s.sleep(t * 10);
                self.s.act(6, Act::Idle);
            }
            // a source is lost and comes back
            2 => self.s.act_with(t.min(300), Act::Sample, |r| {
                r.busy = None;
                r.power = None;
                r.vram_mib = None;
            }),
            3 => self.s.act_with(t.min(300), Act::Sample, |r| {
                r.cpu = None;
                r.read_bps = None;
                r.write_bps = None;
            }),
            // another program on the card
            4 | 5 => return 2,
            // heat, and a pace that is a tenth
            6 => return self.d.one_of(&[3, 4, 10]),
            // a native call
            7 => self.s.act(t.min(58), Act::Cpu1),
            // swapping that ends
            8 => self.s.act(t.min(240), Act::Thrash),
            _ => {}
        }
        1
    }

    /// A decode: silent, on the card, by slow kernels, in tiles, or on the CPU.
    fn decode(&mut self, on_cpu: &str) {
        let t = self.d.between(4, 120);
        match self.d.between(0, 19) {
            0 => {
                self.s.say(on_cpu);
                self.s.act(t * 12, Act::CpuMany);
            }
            1 | 2 => self.s.act_with(t * 7, Act::Vae, |r| {
                // the counter is full, the kernels are poor
                if r.busy.is_some_and(|b| b > 0.0) {
                    r.busy = Some(100.0);
                }
                r.power = r.power.map(|p| p * 0.6);
            }),
            3 => {
                self.s.act(t.min(12), Act::Vae);
                self.s.say("Warning: Ran out of memory when regular VAE decoding, retrying with tiled VAE decoding.");
                self.s.act(t * 2, Act::Vae);
            }
            4 => {
                self.s.bar(12, t + 12, "Decoding tiles:");
                self.s.act(t + 12, Act::Vae);
            }
            _ => self.s.act(t, Act::Vae),
        }
    }

    fn encode_video(&mut self) {
        let t = self.d.between(5, 300);
        match self.d.between(0, 3) {
            0 => self.s.act_with(t, Act::CpuMany, |r| {
                r.children = vec!["ffmpeg".to_owned()];
            }),
            1 => self
                .s
                .act_with(t.min(30), Act::CpuMany, |r| r.write_bps = Some(3e6)),
            _ => self.s.act(2, Act::Cpu1),
        }
    }

    fn download(&mut self) {
        for k in 0..4 {
            let t = self.d.between(40, 300);
            self.s.part_bar(
                25 * k,
                25 * k + 24,
                100,
                t,
                "model-00001-of-00004.safetensors:",
            );
            self.s.act(t, Act::Download);
            let dip = self.d.between(0, 14);
            self.s.act(dip, Act::Idle);
        }
        self.s
            .part_bar(100, 100, 100, 1, "model-00001-of-00004.safetensors:");
        self.s.act(1, Act::Download);
    }

    /// A server that waits: alone, beside a game, with a poller, with a stuck counter.
    fn idle(&mut self) {
        let t = self.d.between(20, 1500);
        let poll = self.d.percent(50);
        if poll {
            self.s.repeat(
                "INFO:     127.0.0.1:51240 - \"GET /queue/status HTTP/1.1\" 200 OK",
                5.0,
                t / 5,
            );
        }
        match self.d.between(0, 5) {
            0 => self.s.act_with(t, Act::Idle, |r| r.cpu = Some(100.3)),
            1 => self.s.act_with(t, Act::Idle, |r| {
                if r.busy.is_some() {
                    r.busy = Some(100.0);
                }
                r.power = r.power.map(|p| p * 4.0);
            }),
            2 => self.s.act_with(t, Act::Sample, |r| r.cpu = Some(0.6)),
            3 => {
                self.s.act(t / 2, Act::Idle);
                self.s.sleep(t * 12);
                self.s.act(t / 2, Act::Idle);
            }
            _ => self.s.act(t, Act::Idle),
        }
    }
}
