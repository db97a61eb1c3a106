//! How many times faster the clock of a run goes than that of the machine.
//!
//! End-to-end tests wait for limits of minutes. With a factor of 4 every limit of the core
//! passes in a quarter of the time, without any limit being another: the run's clock is
//! faster, and what was counted over real time is counted over that of the run, so rates
//! stay what they are. A record holds times of the run and replays like any other.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::agent::AgentBeat;
use super::probe::{Probe, Wait};
use super::sample::{Metric, Sample};

/// The factor. Users have no way to it but the hidden variable of the tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct TimeScale(u32);

impl TimeScale {
    /// Both clocks go alike.
    pub const REAL: Self = Self(1);
    /// The largest factor: beyond it the rounds of the sampler come too close to the
    /// resolution of CPU times, which is 10 ms.
    pub const MOST: u32 = 4;

    /// The factor.
    pub const fn factor(self) -> u32 {
        self.0
    }

    /// Whether both clocks go alike; by reference for serde.
    pub const fn is_real(&self) -> bool {
        self.0 == 1
    }

    /// What passes on the run's clock during this real time.
    pub fn run_time(self, real: Duration) -> Duration {
        real.saturating_mul(self.0)
    }

    /// The real time in which this passes on the run's clock.
    pub fn real_time(self, run: Duration) -> Duration {
        run / self.0
    }

    fn count(self, total: &mut u64) {
        *total = total.saturating_mul(self.0.into());
    }

    /// Turns totals and ages of a reading into those on the run's clock.
    pub fn apply_to_sample(self, sample: &mut Sample) {
        if self.is_real() {
            return;
        }
        for source in &mut sample.sources {
            self.count(&mut source.age_ms);
        }
        self.total(&mut sample.host.net_rx_bytes);
        let Some(process) = &mut sample.process else {
            return;
        };
        for total in [
            &mut process.cpu_ns,
            &mut process.minor_faults,
            &mut process.major_faults,
            &mut process.read_bytes,
            &mut process.write_bytes,
            &mut process.read_chars,
            &mut process.write_chars,
            &mut process.switches,
        ] {
            self.total(total);
        }
        for thread in &mut process.per_thread {
            self.count(&mut thread.run_ns);
            self.count(&mut thread.switches);
        }
        for card in &mut process.on_cards {
            self.total(&mut card.evicted_ms);
            for engine in &mut card.engines {
                self.count(&mut engine.ns);
            }
        }
    }

    /// The same for a probe.
    pub fn apply_to_probe(self, probe: &mut Probe) {
        if let Metric::Fresh(traffic) | Metric::Stale { value: traffic, .. } = &mut probe.network {
            self.count(&mut traffic.received);
            self.count(&mut traffic.sent);
            for age in &mut traffic.unanswered_ms {
                self.count(age);
            }
        }
        for thread in probe.processes.iter_mut().flat_map(|p| &mut p.threads) {
            self.count(&mut thread.run_ns);
            self.count(&mut thread.major_faults);
            self.count(&mut thread.minor_faults);
            for bytes in [&mut thread.read, &mut thread.written]
                .into_iter()
                .flatten()
            {
                self.count(&mut bytes.0);
            }
            if let Wait::Call {
                timeout_ms: Some(timeout),
                ..
            } = &mut thread.wait
            {
                self.count(timeout);
            }
        }
    }

    /// The same for a heartbeat of the agent.
    pub fn apply_to_beat(self, beat: &mut AgentBeat) {
        self.count(&mut beat.cpu_ms);
        if let Some(op) = &mut beat.op {
            self.count(&mut op.age_ms);
        }
    }

    fn total(self, metric: &mut Metric<u64>) {
        match metric {
            Metric::Fresh(total) => self.count(total),
            Metric::Stale { value, age_ms } => {
                self.count(value);
                self.count(age_ms);
            }
            Metric::Failed { for_ms, .. } => self.count(for_ms),
            Metric::Unsupported => {}
        }
    }
}

impl Default for TimeScale {
    fn default() -> Self {
        Self::REAL
    }
}

impl TryFrom<u32> for TimeScale {
    type Error = &'static str;

    fn try_from(factor: u32) -> Result<Self, Self::Error> {
        if (1..=Self::MOST).contains(&factor) {
            Ok(Self(factor))
        } else {
            Err("a time scale is a whole number from 1 to 4")
        }
    }
}

impl From<TimeScale> for u32 {
    fn from(scale: TimeScale) -> Self {
        scale.0
    }
}

impl std::str::FromStr for TimeScale {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let factor: u32 = text.parse().unwrap_or(0);
        factor.try_into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ProcSample;
    use crate::model::probe::{PeerTraffic, ProbedProcess, ProbedThread};
    use crate::model::sample::ThreadSample;

    fn all() -> impl Iterator<Item = TimeScale> {
        (1..=TimeScale::MOST).map(|factor| factor.try_into().unwrap())
    }

    #[test]
    fn a_factor_from_one_to_four_and_nothing_else() {
        for text in ["1", "2", "3", "4"] {
            let scale: TimeScale = text.parse().unwrap();
            assert_eq!(scale.factor().to_string(), text);
        }
        for text in ["", "0", "5", "-1", "1.5", " 2", "two", "99999999999"] {
            assert!(text.parse::<TimeScale>().is_err(), "{text}");
        }
        assert!(serde_json::from_str::<TimeScale>("9").is_err());
        assert_eq!(serde_json::from_str::<TimeScale>("4").unwrap().factor(), 4);
    }

    #[test]
    fn limits_keep_their_ratios_and_come_back() {
        for scale in all() {
            let of = |s| scale.real_time(Duration::from_secs(s)).as_secs_f64();
            for (a, b) in [(45, 120), (2, 45), (60, 900)] {
                let ratio =
                    f64::from(u32::try_from(a).unwrap()) / f64::from(u32::try_from(b).unwrap());
                assert!((of(a) / of(b) - ratio).abs() < 1e-6);
                assert_eq!(
                    scale.run_time(scale.real_time(Duration::from_secs(a * 12))),
                    Duration::from_secs(a * 12)
                );
            }
        }
    }

    /// Two readings, 6 s of real time apart.
    fn readings() -> [Sample; 2] {
        [1, 7].map(|second: u64| Sample {
            process: Some(ProcSample {
                cpu_ns: Metric::Fresh(second * 1_000_000_000),
                read_bytes: Metric::Fresh(second * 65_536),
                switches: Metric::Fresh(second * 40),
                per_thread: vec![ThreadSample {
                    pid: 1,
                    tid: 2,
                    name: "python".to_owned(),
                    state: 'R',
                    run_ns: second * 500_000_000,
                    switches: second * 20,
                    wchan: None,
                }],
                ..ProcSample::default()
            }),
            ..Sample::default()
        })
    }

    #[test]
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    fn rates_are_those_of_the_machine_at_any_scale() {
        let real = Duration::from_secs(6);
        for scale in all() {
            let [before, after] = readings().map(|mut sample| {
                scale.apply_to_sample(&mut sample);
                sample.process.unwrap()
            });
            let elapsed = scale.run_time(real).as_secs_f64();
            let rate = |get: fn(&ProcSample) -> u64| (get(&after) - get(&before)) as f64 / elapsed;
            let same = |rate: f64, want: f64| (rate - want).abs() < 1e-6;
            assert!(same(rate(|p| *p.read_bytes.fresh().unwrap()), 65_536.0));
            assert!(same(rate(|p| *p.cpu_ns.fresh().unwrap()), 1e9));
            assert!(same(rate(|p| p.per_thread[0].run_ns), 5e8));
            // CPU time of one wake-up is a measurement: it does not change
            let thread = &after.per_thread[0];
            assert_eq!(thread.run_ns / thread.switches, 25_000_000);
        }
    }

    #[test]
    fn what_is_no_total_is_left_alone() {
        let scale: TimeScale = 4.try_into().unwrap();
        let mut probe = Probe {
            processes: vec![ProbedProcess {
                pid: 7,
                threads: vec![ProbedThread {
                    tid: 7,
                    name: "python".to_owned(),
                    state: 'S',
                    run_ns: 10,
                    read: Some(crate::model::Bytes(100)),
                    written: None,
                    major_faults: 3,
                    minor_faults: 4,
                    wait: Wait::Call {
                        call: "poll".to_owned(),
                        timeout_ms: Some(2500),
                        on: Vec::new(),
                        channel: None,
                    },
                }],
                ..ProbedProcess::default()
            }],
            network: Metric::Fresh(PeerTraffic {
                received: 5,
                sent: 6,
                connections: 2,
                uncounted: 1,
                unanswered_ms: vec![30],
            }),
            ..Probe::default()
        };
        scale.apply_to_probe(&mut probe);
        let thread = &probe.processes[0].threads[0];
        assert_eq!((probe.processes[0].pid, thread.tid), (7, 7));
        assert_eq!((thread.run_ns, thread.major_faults), (40, 12));
        assert_eq!(thread.read.unwrap().0, 400);
        let network = probe.network.fresh().unwrap();
        assert_eq!((network.received, network.sent), (20, 24));
        assert_eq!((network.connections, network.uncounted), (2, 1));
        assert_eq!(network.unanswered_ms, [120]);
        let Wait::Call { timeout_ms, .. } = &thread.wait else {
            panic!("{thread:?}");
        };
        assert_eq!(*timeout_ms, Some(10_000));

        let mut sample = Sample {
            process: Some(ProcSample {
                pid: 9,
                threads: 12,
                d_state: Metric::Fresh(3),
                rss: Metric::Fresh(crate::model::Bytes(1 << 30)),
                ..ProcSample::default()
            }),
            ..Sample::default()
        };
        let before = sample.clone();
        scale.apply_to_sample(&mut sample);
        assert_eq!(sample, before);
    }
}
