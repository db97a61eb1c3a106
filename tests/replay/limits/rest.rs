//! The card's own level between two attempts.

use framepack_tui::model::event::{RunStarted, SCHEMA};
use framepack_tui::model::{
    Effect, Envelope, Event, ExitReport, ExitStatus, GpuId, GpuSample, Metric, Mono, Plan,
    ProcSample, Sample, Vendor,
};
use framepack_tui::run::{RunState, reduce};

use super::{Limit, limit};
use crate::player::numbers;
use crate::script::{Broken, require};

const PERIOD_MS: u64 = 500;

/// A run that is told what the card reads, twice a second.
struct Run {
    state: RunState,
    seq: u64,
    now: Mono,
    launched: bool,
}

impl Run {
    fn new() -> Self {
        let card = GpuId("0000:0c:00.0".to_owned());
        let argv = vec!["python3".to_owned(), "generate.py".to_owned()];
        let started = RunStarted {
            schema: SCHEMA.to_owned(),
            program: String::new(),
            run: "story".to_owned(),
            wall_clock: String::new(),
            argv: argv.clone(),
            cwd: "/".to_owned(),
            profile: String::new(),
            profile_why: String::new(),
            adapter: "generic".to_owned(),
            gpu: Some(card.clone()),
            vram_cap: None,
            interactive: false,
            attached: None,
            plan: Plan {
                argv,
                gpu: Some(card),
                ..Plan::default()
            },
        };
        let mut run = Self {
            state: RunState::with_thresholds(&started, numbers()),
            seq: 0,
            now: Mono::ZERO,
            launched: false,
        };
        run.post(Event::RunStarted(Box::new(started)));
        run
    }

    fn post(&mut self, event: Event) {
        self.seq += 1;
        let env = Envelope {
            seq: self.seq,
            at: self.now,
            from: None,
            event,
        };
        for effect in reduce(&mut self.state, &env) {
            self.launched |= matches!(effect, Effect::Launch(_));
        }
    }

    /// What the card reads, so many times.
    fn reads(&mut self, times: u32, busy: f64, watts: f64, lives: bool) {
        for _ in 0..times {
            let id = GpuId("0000:0c:00.0".to_owned());
            let mut card = GpuSample::unread(id, 0, Vendor::Amd, "card".to_owned(), "story");
            card.busy = Metric::Fresh(busy);
            card.power_w = Metric::Fresh(watts);
            card.power_cap_w = Metric::Fresh(300.0);
            let process = lives.then(|| ProcSample {
                pid: 7,
                processes: 1,
                state: Metric::Fresh('R'),
                ..ProcSample::default()
            });
            self.post(Event::Sample(Box::new(Sample {
                gpus: vec![card],
                process,
                ..Sample::default()
            })));
            self.now.0 += PERIOD_MS;
        }
    }

    /// An attempt that works and ends, after these readings.
    fn attempt(&mut self, busy: f64, watts: f64) {
        self.reads(4, busy, watts, false);
        assert!(self.launched, "the card was read");
        self.post(Event::Spawned {
            attempt: 1,
            pid: 7,
            pgid: 7,
        });
        self.reads(20, 98.0, 280.0, true);
        let status = ExitStatus::Code(1);
        self.post(Event::Exited(ExitReport { attempt: 1, status }));
        self.post(Event::GroupGone { attempt: 1 });
    }

    /// Watts at rest, as far as known.
    fn rest(&self) -> Option<f64> {
        let level = self.state.snapshot().card_idle?;
        level.power_w.filter(|_| level.in_use.is_none())
    }
}

pub(super) const ALL: &[Limit] = &[limit(
    "settle_s",
    // averages fall for three seconds
    || {
        let mut run = Run::new();
        run.attempt(0.0, 20.0);
        run.reads(7, 30.0, 90.0, false);
        let rest = run.rest();
        require(rest == Some(20.0), Broken::State, || format!("{rest:?}"));
    },
    // another program has left the card meanwhile
    || {
        let mut run = Run::new();
        run.attempt(90.0, 200.0);
        run.reads(11, 0.0, 20.0, false);
        let rest = run.rest();
        require(rest == Some(20.0), Broken::Late, || format!("{rest:?}"));
    },
)];
