//! The numbers that the rules turn on, in one place: named, documented, and open to a
//! test that halves and doubles each. What makes a single reading (a thread at work, the
//! card's level at rest or after a wake) is a constant beside its measurement.
//!
//! R1 to R7 are the project's own requirements on detection: limits of each fault,
//! no false kill, activity before time, enough evidence or none, limits per phase,
//! hysteresis, no judgement while the world stands still.

use std::time::Duration;

use crate::model::TimeScale;

/// One threshold, for tests that go through all of them.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Its name, as in [`Thresholds`].
    pub name: &'static str,
    /// What it is, with unit and source.
    pub doc: &'static str,
    /// Reads it.
    pub get: fn(&Thresholds) -> f64,
    /// Sets it.
    pub set: fn(&mut Thresholds, f64),
}

macro_rules! thresholds {
    ( $( $(#[doc = $doc:literal])+ $name:ident = $value:expr, )+ ) => {
        /// The numbers of the rules. `_s` seconds, `_pct` percent, `_bps` bytes a
        /// second, `_w` watts, `_mib` mebibytes, `_share` a part of one, `_factor` a
        /// multiple, `_count` a number of things.
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub struct Thresholds {
            $( $(#[doc = $doc])+ pub $name: f64, )+
        }

        impl Thresholds {
            /// The values that are in force.
            pub const DEFAULT: Self = Self { $( $name: $value, )+ };

            const FIELDS: &'static [Field] = &[
                $( Field {
                    name: stringify!($name),
                    doc: concat!($($doc),+),
                    get: |t| t.$name,
                    set: |t, value| t.$name = value,
                }, )+
            ];
        }
    };
}

thresholds! {
    // silence (R1)
    /// `silent_hang`: every channel silent for this long (R1).
    silence_s = 45.0,
    /// The same while a model is loaded (R1).
    silence_load_s = 60.0,
    /// The same where no milestone has come, where the phase is not known (R5: the
    /// longest), and for mesh work.
    silence_long_s = 120.0,
    /// `download_stall`: no bytes for this long (R1).
    silence_download_s = 60.0,
    /// Silence shorter than this is no sign of anything (R1: first sign within 20 s).
    silence_sign_s = 15.0,
    /// Lower bound of every learned limit (R1, R5).
    learned_floor_s = 45.0,
    /// Completed observations before anything learned counts (R5).
    learned_after_count = 5.0,
    /// A learned limit is this many times the longest silence seen in the phase.
    learned_factor = 5.0,

    // the job (docs/judgement.md)
    /// Memory of the card that the tree holds beyond an open context: a sign of a generation.
    sign_vram_mib = 64.0,
    /// Bytes that a known program has read in a recording: a sign of a generation.
    sign_read_mib = 256.0,
    /// A server that announces no jobs has one once its card works for this long.
    unannounced_s = 10.0,
    /// Probes are taken once the job was not seen to move for this long.
    probe_after_s = 8.0,
    /// Bytes to and from peers outside the tree that are no keep-alive.
    network_job_bps = 4_000.0,
    /// Over this window.
    network_window_s = 10.0,
    /// Mean load of another thread that takes the place of a holder that waits.
    handed_over_pct = 50.0,
    /// A wait for a peer, a lock or time is shown after this long.
    remote_wait_s = 60.0,
    /// `not_ended`: the result is written and nothing moves for this long.
    not_ended_s = 60.0,
    /// A download without a byte is started again only after this long.
    download_restart_s = 900.0,
    /// An operation of a resting card in flight for this long is slow, at twice that hung.
    op_slow_s = 300.0,
    /// Or this many times the longest of its kind, where that is longer.
    op_slow_factor = 5.0,
    /// The limit of silence is at least this many times the longest stay in the phase that
    /// this run completed.
    longest_stay_factor = 1.5,

    // search
    /// Multiple of the plan's `find_limit` in force (R1: 120 s itself).
    find_factor = 1.0,
    /// Part of that limit from which on a search without an advance is a sign.
    find_sign_share = 0.5,

    // spin
    /// Multiple of the plan's `spin_limit` in force (R1: 120 s itself).
    spin_factor = 1.0,
    /// More patience where honest CPU work and a spin look alike: no card to be seen,
    /// or texture steps, where views are rendered and baked by either.
    spin_alike_factor = 5.0,
    /// More patience where the busy cores are explained: compilation by the program's
    /// word, several cores at once, or a card whose readings do not move.
    spin_explained_factor = 15.0,
    /// The sign of a spin comes at most this long before its limit.
    spin_sign_s = 60.0,
    /// A limit is never shorter than this many times the longest such phase (R1).
    spin_longest_factor = 5.0,
    /// Several cores were busy this shortly before.
    spin_just_now_s = 30.0,

    // busy_idle
    /// `busy_idle` where the card's own level at work is known (R1).
    busy_idle_s = 60.0,
    /// The same where only the power limit says what is little (R1).
    busy_idle_unknown_s = 120.0,
    /// A shorter contradiction is no sign of anything (R1: first sign within 20 s).
    busy_idle_sign_s = 20.0,
    /// No step for this many times the usual one (R1).
    busy_idle_steps_factor = 5.0,

    // storm
    /// Copies of a known error that make a storm (R15).
    storm_count = 20.0,
    /// Part of the silence limit from which on a storm without an advance is a sign.
    storm_sign_share = 1.0 / 3.0,

    // hysteresis
    /// Assessments that must agree before a hang is declared (R6).
    confirm_count = 3.0,
    /// Seconds between two of them (R1).
    confirm_s = 2.0,
    /// Calm assessments that end a suspicion or a warning (R6).
    calm_count = 3.0,
    /// Seconds between two of those: a period of the sampler.
    calm_s = 0.5,
    /// A limit is raised by this after a hang that ended by itself, or that the user
    /// called a false alarm (R6).
    ratchet_factor = 1.5,

    // when nothing can be seen (R4, R7)
    /// A channel that was not read for this long is not observed: more than 3 periods.
    live_s = 2.0,
    /// Right after the launch nothing has been read yet: no judgement, no blindness.
    warm_up_s = 5.0,
    /// Samples come twice a second; where none came for this long, we ourselves or the
    /// machine stood still.
    unseen_s = 5.0,
    /// After an attempt the card's averages need this long to come to rest.
    settle_s = 3.0,

    // channels (R3)
    /// Storage bytes below which I/O is background.
    io_active_bps = 65_536.0,
    /// Network bytes below which it is background: a web page that refreshes its lists
    /// reaches some 100 kB/s.
    net_active_bps = 262_144.0,
    /// Minor faults a second above which memory is being filled.
    minor_faults_count = 500.0,
    /// Major faults a second above which mapped files are being read.
    major_faults_count = 5.0,
    /// Change of the card's memory between two samples that counts.
    vram_step_mib = 32.0,
    /// CPU that only several threads reach together: no loop that waits.
    cpu_many_pct = 150.0,
    /// Bytes read that speak of weights, not of a log or a cache.
    heavy_read_bps = 4_194_304.0,
    /// CPU of the tree (smoothed) above which it works, where no thread can be looked
    /// at: a web page that asks for the state of a queue stays below it.
    cpu_active_pct = 3.0,
    /// One second's CPU that is work whatever the mean says.
    cpu_burst_pct = 25.0,
    /// Time constant of the smoothed CPU.
    cpu_smooth_s = 5.0,
    /// Denoising steps that a card must have shown itself busy for, if its readings
    /// move at all.
    trust_steps_count = 3.0,
    /// A card that works hard for this long runs a model: tuning keeps it busy in bursts.
    model_runs_s = 20.0,

    // a busy core
    /// CPU of the tree from which on a core counts as busy.
    core_busy_pct = 80.0,
    /// The same where some task waits for a CPU all the time; in between, in between.
    core_crowded_pct = 20.0,
    /// A dip of this length is no break.
    core_dip_s = 3.0,

    // the card
    /// Busy counter above which the card works, where its level at rest is not known.
    busy_active_pct = 5.0,
    /// What the counter may exceed its idle level by before it counts.
    busy_above_idle_pct = 10.0,
    /// A counter at or above this claims full work (R1).
    busy_full_pct = 95.0,
    /// A counter at or above this tells of a workload, not of a small copy.
    busy_hard_pct = 30.0,
    /// A counter at or above this shows the level at work.
    busy_at_work_pct = 50.0,
    /// Time of the memory controller above which a card works whose busy counter is not
    /// believed: a counter that is stuck stands beside 0 % there.
    traffic_pct = 15.0,
    /// Share of the card's own power at work under which "fully busy" contradicts (R1).
    contradiction_share = 0.4,
    /// The same of the board's limit, for a card that was never seen at work: real work
    /// at full load draws more even where memory is its bottleneck.
    contradiction_cap_share = 0.25,
    /// Watts above rest a busy percent that are next to nothing: 5 W for full work.
    next_to_nothing_w = 0.05,
    /// A reading of power moves if it was once above rest by this factor.
    power_moves_factor = 1.25,
    /// And by as many watts.
    power_moves_w = 2.0,
    /// Watts above rest that are work where the counter is silent.
    power_active_w = 30.0,
    /// Or this share of the way to its own level at work.
    power_active_work_share = 0.35,
    /// Or of the way to the board's limit: an H200 that rests at 79 W draws 123 W of
    /// 700 W while a hung program holds its context (read by us, driver 580).
    power_active_cap_share = 0.25,

    // the busy counter's word
    /// A claim of work without a job is a lie after this long.
    lie_s = 5.0,
    /// A claim that stood this long before a launch goes on to count (three readings).
    lie_before_s = 0.9,
    /// The same for a server that waits: a page may still end something.
    lie_waiting_s = 10.0,

    // pace
    /// First steps of a bar that are no measure: kernels are compiled, caches filled.
    pace_warm_count = 1.0,
    /// Steps of a kind behind its usual pace.
    pace_usual_count = 3.0,
    /// `crawl`: a step takes more than this many times the usual one (its definition:
    /// less than a fifth of its own earlier pace).
    crawl_factor = 5.0,
    /// Beside an earlier bar of the run: the card draws less than this share of what it drew
    /// then, or a larger job explains the pace.
    crawl_power_share = 0.75,
    /// Slow steps in a row that must have ended.
    crawl_steps_count = 2.0,
    /// And how long they have lasted at least: a floor, as every learned limit has (R1).
    crawl_s = 45.0,
    /// `throttled`: steps take this many times the usual.
    throttled_factor = 1.25,
    /// And the card draws less than this share of what it drew at the usual pace.
    throttled_power_share = 0.85,
    /// Slow steps in a row that must have ended.
    throttled_steps_count = 3.0,
    /// And how long it has lasted at least.
    throttled_s = 30.0,
    /// Clocks and power explain a step that is slower by at most this, over the share
    /// of power that is left; one that is slower still has another cause.
    throttled_most_factor = 3.0,
    /// How busy a card must be for its power to say something of its clocks.
    throttled_busy_pct = 90.0,

    // memory
    /// `vram_spill`: this share of the VRAM is in use.
    spill_vram_share = 0.97,
    /// And so much system memory more is mapped for the card than before the launch.
    spill_gtt_mib = 1024.0,
    /// And steps take this many times the usual.
    spill_factor = 2.0,
    /// Slow steps in a row that must have ended.
    spill_steps_count = 2.0,
    /// And how long it has lasted at least.
    spill_s = 20.0,
    /// Where the job spilled from its first step there is no usual pace: the card then
    /// draws less than this share of its limit.
    spill_cap_share = 0.6,
    /// And a step takes at least this long.
    spill_step_s = 8.0,
    /// `thrash`: bytes read and bytes written, each at least this.
    thrash_io_bps = 16_777_216.0,
    /// Threads in uninterruptible sleep.
    thrash_threads_count = 1.0,
    /// CPU of the tree below this is little.
    thrash_cpu_pct = 60.0,
    /// How long it has lasted (R1).
    thrash_s = 30.0,
    /// A break of this length does not count: swapping comes in waves.
    thrash_dip_s = 6.0,
    /// Time in which tasks waited for memory (PSI) that speaks of swapping by itself.
    thrash_psi_pct = 20.0,
    /// A launch that fails with this share of the VRAM in use failed for want of it.
    full_share = 0.985,
    /// And it was in use this shortly before, in seconds.
    full_before_s = 10.0,
    /// `offload_risk`: cards of at most this much VRAM (24 GiB, and what drivers add).
    offload_vram_mib = 24_700.0,
    /// And less than this share of it is free when the VAE comes: what the advice leaves.
    offload_free_share = 0.75,
    /// Or less than this, where that is less: a decode fits into it.
    offload_free_mib = 10_240.0,

    /// A job that ends within this time at its pace is not started again for being slow.
    ends_soon_s = 120.0,
    /// `vram_spill` without growing mapped memory: the card draws less than this share of
    /// what it drew at the usual pace.
    spill_power_share = 0.6,

    // where it runs
    /// `cpu_fallback`: the job's steps keep the CPU this busy ...
    fallback_cpu_pct = 180.0,
    /// ... and the card idle for this long from the first step on ...
    fallback_s = 45.0,
    /// ... or this long where the program said that it runs on the CPU ...
    fallback_said_s = 10.0,
    /// ... with so much of the card's memory at most taken since the launch.
    fallback_vram_mib = 1024.0,
    /// `device_mismatch`: the card claims full work at little power, with the words of
    /// two devices, for this long.
    mismatch_s = 40.0,
    /// The same without words, which is told but never answered.
    mismatch_unsaid_s = 90.0,
    /// A step of such a job takes at least this long.
    mismatch_step_s = 8.0,
    /// Steps that must have ended where there are no words.
    mismatch_steps_count = 3.0,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Thresholds {
    /// All of them.
    pub const fn fields() -> &'static [Field] {
        Self::FIELDS
    }

    /// The numbers for a run whose clock goes this fast. Its limits pass on that clock as they
    /// are; what the machine and the supervisor themselves need takes real time.
    #[must_use]
    pub fn at_scale(mut self, scale: TimeScale) -> Self {
        let of_machine = |f: &&Field| OF_MACHINE.contains(&f.name);
        for field in Self::FIELDS.iter().filter(of_machine) {
            let real = (field.get)(&self);
            (field.set)(&mut self, real * f64::from(scale.factor()));
        }
        self
    }
}

/// Times that a busy machine, or a card, needs at any time scale.
const OF_MACHINE: &[&str] = &["live_s", "warm_up_s", "unseen_s", "settle_s"];

/// A threshold in seconds as a time; what cannot be one is none.
pub(super) fn secs(s: f64) -> Duration {
    Duration::try_from_secs_f64(s).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn limits_stay_at_any_time_scale_and_needs_of_the_machine_take_real_time() {
        let scale = TimeScale::try_from(4).unwrap();
        let scaled = Thresholds::DEFAULT.at_scale(scale);
        for name in OF_MACHINE {
            assert!(
                Thresholds::fields().iter().any(|f| f.name == *name),
                "{name}"
            );
        }
        for field in Thresholds::fields() {
            let (real, at_scale) = ((field.get)(&Thresholds::DEFAULT), (field.get)(&scaled));
            let want = if OF_MACHINE.contains(&field.name) {
                4.0
            } else {
                1.0
            };
            assert!((at_scale / real - want).abs() < 1e-9, "{}", field.name);
        }
        assert_eq!(
            Thresholds::DEFAULT.at_scale(TimeScale::REAL),
            Thresholds::DEFAULT
        );
    }

    #[test]
    fn every_field_can_be_read_and_set_by_its_name() {
        let mut t = Thresholds::default();
        let names: BTreeSet<_> = Thresholds::fields().iter().map(|f| f.name).collect();
        assert_eq!(names.len(), Thresholds::fields().len());
        for f in Thresholds::fields() {
            let was = (f.get)(&t);
            assert!(was > 0.0 && !f.doc.trim().is_empty(), "{}", f.name);
            (f.set)(&mut t, was * 2.0);
            assert_eq!((f.get)(&t).to_bits(), (was * 2.0).to_bits(), "{}", f.name);
        }
        assert_ne!(t, Thresholds::DEFAULT);
    }
}
