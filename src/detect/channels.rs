//! Channels of activity: when each was last active, and whether it can be seen.
//!
//! R3: a hang needs *every* observable channel silent for the whole window, so
//! the tracker only remembers the last active moment of each channel.

use std::time::Duration;

use crate::model::{GpuId, GpuSample, Mono, ProcSample, Sample};

use super::card::{CardLevels, CardState};
use super::core_busy::CoreBusy;
use super::rates::{fresh_pool_used, max_known, rate, without_threads};
use super::threads::{CpuActivity, Credit, ThreadTracker};
use super::thresholds::{Thresholds, secs};
use super::trust::Doing;

/// One channel.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Channel {
    /// Last moment of activity.
    pub(crate) active: Mono,
    /// Last moment at which it could be read at all.
    pub(crate) seen: Option<Mono>,
}

impl Channel {
    fn see(&mut self, now: Mono, active: bool) {
        self.seen = Some(now);
        if active {
            self.active = now;
        }
    }

    /// Whether the channel can be observed at present.
    pub(crate) fn live(&self, now: Mono, t: &Thresholds) -> bool {
        self.seen.is_some_and(|s| now.since(s) <= secs(t.live_s))
    }
}

/// Present figures, for sentences.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Figures {
    /// Where the counter is believed.
    pub(crate) busy: Option<f64>,
    /// Where it is not.
    pub(crate) busy_untrusted: Option<f64>,
    pub(crate) power: Option<f64>,
    pub(crate) cpu_percent: Option<f64>,
    pub(crate) io_bps: Option<f64>,
    pub(crate) read_bps: Option<f64>,
    pub(crate) write_bps: Option<f64>,
    /// Of the whole machine.
    pub(crate) net_bps: Option<f64>,
}

/// All channels of one attempt.
#[derive(Debug, Clone)]
pub(crate) struct Channels {
    pub(crate) gpu: Channel,
    /// A model runs on the card: more than a small copy.
    pub(crate) gpu_hard: Channel,
    pub(crate) memory: Channel,
    pub(crate) cpu: Channel,
    /// Several cores at once.
    pub(crate) cpu_many: Channel,
    pub(crate) faults: Channel,
    pub(crate) io: Channel,
    /// Weights are read.
    pub(crate) reading: Channel,
    pub(crate) net: Channel,
    pub(crate) output: Channel,
    pub(crate) progress: Channel,
    pub(crate) children: Channel,
    /// A core that is busy without a break.
    pub(crate) core: CoreBusy,
    /// Last moment of a long run of a model on the card.
    pub(crate) model_ran: Mono,
    /// Since when one has run without a break.
    hard_since: Option<Mono>,
    /// The card in the last reading that told of it.
    pub(super) card_state: Option<CardState>,
    /// The busy counter says full, the power says idle: since when.
    pub(crate) contradiction_since: Option<Mono>,
    /// Whether the supervised card was ever readable in this run.
    pub(crate) gpu_expected: bool,
    pub(crate) figures: Figures,
    pub(super) levels: CardLevels,
    pub(super) threads: ThreadTracker,
    cpu_mean: f64,
    /// Denoising steps that ended while the card never showed itself busy.
    unseen_steps: u32,
    /// The card was read since the last of them.
    read_since_step: bool,
    previous: Option<Previous>,
}

#[derive(Debug, Clone)]
struct Previous {
    at: Mono,
    process: Option<ProcSample>,
    net_rx: Option<u64>,
    mem_used: Option<u64>,
}

impl Channels {
    pub(crate) fn new(now: Mono, levels: CardLevels, gpu_expected: bool) -> Self {
        let fresh = Channel {
            active: now,
            seen: None,
        };
        Self {
            gpu: fresh,
            gpu_hard: fresh,
            memory: fresh,
            cpu: fresh,
            cpu_many: fresh,
            faults: fresh,
            io: fresh,
            reading: fresh,
            net: fresh,
            output: fresh,
            progress: fresh,
            children: fresh,
            core: CoreBusy::new(now),
            model_ran: now,
            hard_since: None,
            card_state: None,
            contradiction_since: None,
            gpu_expected,
            figures: Figures::default(),
            levels,
            threads: ThreadTracker::default(),
            cpu_mean: 0.0,
            unseen_steps: 0,
            read_since_step: false,
            previous: None,
        }
    }

    /// Folds one sample in. `net_counts`: what comes from the network may be the
    /// program's (the counter is the whole machine's). `doing`: what the card is used for.
    /// `credit`: what the work of a thread at this moment says.
    #[expect(
        clippy::too_many_arguments,
        reason = "what a reading means hangs on each of them"
    )]
    pub(crate) fn observe(
        &mut self,
        now: Mono,
        sample: &Sample,
        gpu: Option<&GpuId>,
        net_counts: bool,
        doing: Doing,
        credit: Credit,
        t: &Thresholds,
    ) {
        let dt = self.previous.as_ref().map(|p| now.since(p.at));
        let card = gpu.and_then(|id| sample.gpus.iter().find(|g| &g.id == id));
        let ours = sample.process.as_ref().zip(card);
        let ours = ours.and_then(|(p, c)| p.on_card(&c.id)?.busy.fresh().copied());
        self.observe_card(now, card, ours, doing, t);
        self.core
            .set_pressure(sample.host.psi_cpu.last().copied().unwrap_or(0.0));
        if let Some(process) = &sample.process {
            self.observe_process(now, dt, process, credit, t);
        }
        let net_rx = sample.host.net_rx_bytes.fresh().copied();
        if let (Some(rx), Some(dt)) = (net_rx, dt) {
            let before = self.previous.as_ref().and_then(|p| p.net_rx);
            let bps = before.and_then(|b| rate(b, rx, dt));
            self.figures.net_bps = bps;
            let much = bps.is_some_and(|bps| bps >= t.net_active_bps);
            self.net.see(now, net_counts && much);
        }
        let mem_used = card.and_then(fresh_pool_used);
        if let Some(used) = mem_used {
            let before = self.previous.as_ref().and_then(|p| p.mem_used);
            self.memory.see(
                now,
                before.is_some_and(|b| mib(b.abs_diff(used)) >= t.vram_step_mib),
            );
        }
        self.previous = Some(Previous {
            at: now,
            process: sample.process.clone().map(without_threads),
            net_rx,
            mem_used,
        });
    }

    /// `ours`: percent of the card that the tree uses, where the driver tells.
    fn observe_card(
        &mut self,
        now: Mono,
        card: Option<&GpuSample>,
        ours: Option<f64>,
        doing: Doing,
        t: &Thresholds,
    ) {
        self.figures.power = card.and_then(|g| g.power_w.fresh().copied());
        let mut state = card.and_then(|g| self.levels.judge(now, g, doing, t));
        // R3: what another program does on the card is no work of ours
        if let (Some(s), Some(ours)) = (&mut state, ours) {
            s.active &= ours > 0.0;
            s.hard &= ours > 0.0;
        }
        let busy = card.and_then(|g| g.busy.fresh().copied());
        let believed = !self.levels.trust().is_untrusted();
        self.figures.busy = busy.filter(|_| believed);
        self.figures.busy_untrusted = busy.filter(|_| !believed);
        self.card_state = state;
        let Some(state) = state else {
            return;
        };
        self.gpu_expected = true;
        self.read_since_step = true;
        if state.active {
            self.unseen_steps = 0;
        }
        if state.contradicts {
            self.contradiction_since.get_or_insert(now);
        } else {
            self.contradiction_since = None;
        }
        if state.hard {
            let since = *self.hard_since.get_or_insert(now);
            if now.since(since) >= secs(t.model_runs_s) {
                self.model_ran = now;
            }
        } else {
            self.hard_since = None;
        }
        self.gpu.see(now, state.active);
        self.gpu_hard.see(now, state.hard);
    }

    /// A denoising step has ended: a card whose readings move shows it.
    ///
    /// One that no reading came after is none that it did not show: steps may be shorter than the time between two
    /// readings, and one step may be told twice.
    pub(crate) fn step(&mut self) {
        if std::mem::take(&mut self.read_since_step) {
            self.unseen_steps = self.unseen_steps.saturating_add(1);
        }
    }

    /// Whether an idle reading of the card means an idle card.
    pub(crate) fn card_is_trusted(&self, t: &Thresholds) -> bool {
        self.gpu_expected && f64::from(self.unseen_steps) < t.trust_steps_count
    }

    /// Threads that did something in the last round.
    pub(crate) const fn working(&self) -> Option<&super::threads::Working> {
        self.threads.working()
    }

    /// Whether the card's own level at work is known.
    pub(crate) const fn knows_work(&self) -> bool {
        self.levels.knows_work()
    }

    fn observe_process(
        &mut self,
        now: Mono,
        dt: Option<Duration>,
        p: &ProcSample,
        credit: Credit,
        t: &Thresholds,
    ) {
        let before = self
            .previous
            .as_ref()
            .and_then(|prev| prev.process.as_ref());
        let (Some(before), Some(dt)) = (before, dt) else {
            self.threads.observe(now, &p.per_thread, credit);
            return;
        };
        let delta = |a: &crate::model::Metric<u64>, b: &crate::model::Metric<u64>| {
            rate(*a.fresh()?, *b.fresh()?, dt)
        };
        let cpu = delta(&before.cpu_ns, &p.cpu_ns).map(|ns| ns / 1e7);
        let reads = delta(&before.read_bytes, &p.read_bytes);
        let writes = delta(&before.write_bytes, &p.write_bytes);
        let read_chars = delta(&before.read_chars, &p.read_chars);
        let write_chars = delta(&before.write_chars, &p.write_chars);
        let read_bps = max_known(reads, read_chars);
        let write_bps = max_known(writes, write_chars);
        let io = match (read_bps, write_bps) {
            (None, None) => None,
            (r, w) => Some(r.unwrap_or(0.0) + w.unwrap_or(0.0)),
        };
        let minor = delta(&before.minor_faults, &p.minor_faults);
        let major = delta(&before.major_faults, &p.major_faults);
        let children_changed = before.children != p.children || before.processes != p.processes;

        self.figures.cpu_percent = cpu;
        self.figures.io_bps = io;
        self.figures.read_bps = read_bps;
        self.figures.write_bps = write_bps;
        if let Some(io) = io {
            self.io.see(now, io >= t.io_active_bps);
        }
        if let Some(bps) = read_bps {
            self.reading.see(now, bps >= t.heavy_read_bps);
        }
        if minor.is_some() || major.is_some() {
            self.faults.see(
                now,
                minor.is_some_and(|f| f >= t.minor_faults_count)
                    || major.is_some_and(|f| f >= t.major_faults_count),
            );
        }
        self.children.see(now, children_changed);
        let round = self.threads.observe(now, &p.per_thread, credit);
        self.observe_cpu(now, dt, cpu, round, t);
    }

    fn observe_cpu(
        &mut self,
        now: Mono,
        dt: Duration,
        cpu: Option<f64>,
        round: CpuActivity,
        t: &Thresholds,
    ) {
        let Some(cpu) = cpu else {
            return;
        };
        let weight = (dt.as_secs_f64() / t.cpu_smooth_s).min(1.0);
        self.cpu_mean += (cpu - self.cpu_mean) * weight;
        let active = match round {
            _ if cpu >= t.cpu_burst_pct => true,
            CpuActivity::Worked => true,
            CpuActivity::Quiet => false,
            CpuActivity::NoRound if self.threads.recent(now) => false,
            CpuActivity::NoRound => cpu >= t.cpu_active_pct && self.cpu_mean >= t.cpu_active_pct,
        };
        self.cpu_many.see(now, cpu >= t.cpu_many_pct);
        self.cpu.see(now, active);
        self.core.observe(now, cpu, t);
    }

    /// A line came.
    pub(crate) fn output(&mut self, now: Mono) {
        self.output.see(now, true);
    }

    /// A bar moved, a section was written, a phase changed.
    pub(crate) fn progress(&mut self, now: Mono) {
        self.progress.see(now, true);
    }

    /// R7: the world stood still; windows begin anew.
    pub(crate) fn cut(&mut self, now: Mono) {
        for c in [
            &mut self.gpu,
            &mut self.gpu_hard,
            &mut self.memory,
            &mut self.cpu,
            &mut self.cpu_many,
            &mut self.faults,
            &mut self.io,
            &mut self.reading,
            &mut self.net,
            &mut self.output,
            &mut self.progress,
            &mut self.children,
        ] {
            c.active = c.active.max(now);
        }
        self.core.cut();
        self.levels.cut();
        self.hard_since = None;
        self.contradiction_since = None;
        self.previous = None;
    }

    /// R4: what is missing for a judgement; `None`: enough is seen.
    pub(crate) fn blind(&self, now: Mono, t: &Thresholds) -> Option<&'static str> {
        if !self.cpu.live(now, t) {
            return Some("the process tree cannot be read");
        }
        if self.gpu_expected && !self.gpu.live(now, t) {
            return Some("the card cannot be read at present");
        }
        None
    }
}

/// Bytes as mebibytes.
#[expect(clippy::cast_precision_loss, reason = "figures for thresholds")]
pub(super) fn mib(bytes: u64) -> f64 {
    bytes as f64 / (1u64 << 20) as f64
}
