//! A process that is not ours, looked at: its readings, and nothing else.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::sync::mpsc;

use crate::cli::follow::profiles::Profiles;
use crate::cli::show::screen_options;
use crate::cli::{CliError, clock};
use crate::model::event::{Level, RunStarted, SCHEMA};
use crate::model::{
    ActionId, AttemptSpec, Envelope, Event, FoundProcess, GpuId, GpuSample, Health, Mono, Phase,
    Plan, RungId, Sample, Tier, Verdict, VerdictId,
};
use crate::run::snapshot::LogLine;
use crate::run::{RunState, Snapshot, follow};
use crate::supervise::Signals;
use crate::ui::lobby::kind_word;
use crate::ui::{Reach, SnapshotSlot};
use crate::workload::external::has_ended;

use super::feed::Feed;
use super::{LOOK, PERIOD, ends_us, on_runtime, system};

/// How a screen was left.
pub(super) enum Left<T> {
    /// Back to the start screen, with this.
    Back(T),
    /// A signal ended the program; its exit code.
    Ended(u8),
}

const LOOKED_AT: &str =
    "Looked at from outside: its output is not seen, so nothing is judged and nothing is ended.";
const GONE: &str = "The process has ended. How it ended cannot be seen from outside.";

/// Shows a process until the user leaves; what to say afterwards.
pub(super) fn look(
    feed: &mut Feed,
    pid: u32,
    start: u64,
    ascii: bool,
) -> Result<Left<Option<String>>, CliError> {
    let (Some(process), Some(handle)) = (feed.process(pid, start), open(pid)) else {
        return Ok(Left::Back(Some(format!("process {pid} has ended"))));
    };
    feed.sampler.set_target(Some(pid), None);
    feed.sampler.set_watched(true);
    let left = on_runtime(watch(feed, &process, &handle, ascii));
    feed.sampler.set_watched(false);
    feed.sampler.set_target(None, None);
    left
}

/// A handle that stays with this process; `None`: it is gone.
fn open(pid: u32) -> Option<OwnedFd> {
    let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
    pidfd_open(pid, PidfdFlags::empty()).ok()
}

async fn watch(
    feed: &Feed,
    process: &FoundProcess,
    handle: &OwnedFd,
    ascii: bool,
) -> Result<Left<Option<String>>, CliError> {
    let mut signals = Signals::new().map_err(system("listen to signals"))?;
    let slot = SnapshotSlot::new();
    let mut picture = Picture::new(process, &feed.sampler.sample().gpus);
    slot.publish(Arc::new(picture.snapshot()));
    slot.publish_reach(Reach::Signals("not our process"));
    let (command_to, mut commands) = mpsc::unbounded_channel();
    let screen = crate::ui::spawn(screen_options(ascii, true), slot.clone(), command_to)
        .map_err(|e| system("take over the terminal")(io::Error::other(e)))?;
    let mut profiles = Profiles::start();
    let mut ticks = tokio::time::interval(PERIOD);
    let mut looks = tokio::time::interval(LOOK);
    let left = loop {
        tokio::select! {
            biased;
            command = signals.next() => if let Some(code) = ends_us(&command) {
                break Left::Ended(code);
            },
            // nothing else can be asked for here
            _ = commands.recv() => break Left::Back(None),
            _ = ticks.tick() => {
                picture.take(feed.sampler.sample(), has_ended(handle));
                slot.publish(Arc::new(picture.snapshot()));
                profiles.show(&slot);
            }
            _ = looks.tick() => if !screen.is_alive() { break Left::Back(None) },
        }
    };
    screen.finish();
    Ok(left)
}

/// The picture of a process: a stream as a run would have it, of readings alone.
struct Picture {
    state: RunState,
    begun: Instant,
    seq: u64,
    gone: bool,
}

impl Picture {
    fn new(process: &FoundProcess, gpus: &[GpuSample]) -> Self {
        let gpu = card_of(process, gpus);
        let started = RunStarted {
            schema: SCHEMA.to_owned(),
            program: env!("CARGO_PKG_VERSION").to_owned(),
            run: format!("pid {}", process.pid),
            wall_clock: clock::now().strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
            argv: process.argv.clone(),
            cwd: String::new(),
            profile: String::new(),
            profile_why: String::new(),
            adapter: kind_word(process).to_owned(),
            gpu: gpu.clone(),
            vram_cap: None,
            interactive: false,
            plan: Plan {
                gpu,
                ..Plan::default()
            },
            attached: None,
        };
        let mut picture = Self {
            state: RunState::new(&started),
            begun: Instant::now(),
            seq: 0,
            gone: false,
        };
        picture.post(Event::RunStarted(Box::new(started)));
        picture.post(Event::AttemptStarted(Box::new(AttemptSpec {
            number: 1,
            rung: RungId::as_given(),
            action: ActionId::None,
            tier: Tier::T0,
            argv: process.argv.clone(),
            env: Vec::new(),
            settings: std::collections::BTreeMap::new(),
            on_cpu: false,
        })));
        picture.post(Event::Spawned {
            attempt: 1,
            pid: process.pid,
            pgid: process.pid,
        });
        picture.say(LOOKED_AT);
        picture
    }

    /// Takes the next readings; `gone`: the process has ended.
    fn take(&mut self, sample: Sample, gone: bool) {
        self.post(Event::Sample(Box::new(sample)));
        if gone && !self.gone {
            self.gone = true;
            self.say(GONE);
        }
    }

    fn say(&mut self, sentence: &str) {
        self.post(Event::Verdict(Box::new(Verdict {
            id: VerdictId::Healthy,
            health: Health::Blind,
            phase: Phase::Startup,
            section: None,
            confidence: 0.0,
            onset: self.now(),
            sentence: sentence.to_owned(),
            findings: Vec::new(),
            ruled_out: Vec::new(),
            considered: Vec::new(),
            remedy: None,
            action: ActionId::None,
            next: None,
            questions: None,
            cause: None,
        })));
        self.post(Event::Notice {
            level: Level::Info,
            text: sentence.to_owned(),
        });
    }

    fn now(&self) -> Mono {
        Mono(crate::model::time::millis(self.begun.elapsed()))
    }

    fn post(&mut self, event: Event) {
        self.seq += 1;
        let env = Envelope {
            seq: self.seq,
            at: self.now(),
            from: None,
            event,
        };
        follow(&mut self.state, &env);
    }

    /// What a run of ours would have is taken away: attempt, ladder, budget.
    fn snapshot(&self) -> Snapshot {
        let all = self.state.snapshot();
        let ours = |line: &&LogLine| [LOOKED_AT, GONE].contains(&line.text.as_str());
        let words = all.log.iter().filter(ours).cloned().collect();
        Snapshot {
            attempt: None,
            ladder: Vec::new(),
            restarts_left: 0,
            log: words,
            pid: all.pid.filter(|_| !self.gone),
            phases: Arc::default(),
            ..all
        }
    }
}

/// The card that the process uses: the one it holds most of, else the only one.
fn card_of(process: &FoundProcess, gpus: &[GpuSample]) -> Option<GpuId> {
    let held = process.memory.iter().max_by_key(|m| (m.vram, m.gtt));
    match (held, gpus) {
        (Some(held), _) => Some(held.gpu.clone()),
        (None, [only]) => Some(only.id.clone()),
        (None, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Vendor;
    use crate::model::{Bytes, CardMemory, Metric, ProcSample};

    fn process(memory: &[(&str, u64)]) -> FoundProcess {
        FoundProcess {
            pid: 41,
            start: 7,
            kind: Some("comfyui".to_owned()),
            name: "python".to_owned(),
            argv: vec!["python".to_owned(), "main.py".to_owned()],
            memory: memory
                .iter()
                .map(|(gpu, gib)| CardMemory {
                    gpu: GpuId((*gpu).to_owned()),
                    vram: Some(Bytes::gib(*gib)),
                    gtt: None,
                })
                .collect(),
            hidden: None,
            cpu_percent: None,
            age_ms: None,
            others: 0,
            supervisor: None,
        }
    }

    fn gpu(id: &str) -> GpuSample {
        let mut g = GpuSample::unread(
            GpuId(id.to_owned()),
            0,
            Vendor::Amd,
            "card".to_owned(),
            "sysfs",
        );
        g.busy = Metric::Fresh(55.0);
        g
    }

    #[test]
    fn a_picture_claims_nothing_but_readings() {
        let sample = || Sample {
            gpus: vec![gpu("a"), gpu("b")],
            process: Some(ProcSample {
                pid: 41,
                ..ProcSample::default()
            }),
            ..Sample::default()
        };
        let mut picture = Picture::new(&process(&[("a", 1), ("b", 9)]), &sample().gpus);
        picture.take(sample(), false);
        let s = picture.snapshot();
        assert!(s.is_foreign() && s.attempt.is_none() && s.outcome.is_none());
        assert_eq!((s.pid, s.gpu), (Some(41), Some(GpuId("b".to_owned()))));
        assert_eq!(
            (s.verdict.health, s.verdict.sentence.as_str()),
            (Health::Blind, LOOKED_AT)
        );
        assert_eq!(s.history.back().and_then(|p| p.busy), Some(55.0));
        assert_eq!(s.log.len(), 1);

        picture.take(Sample::default(), true);
        picture.take(Sample::default(), true);
        let s = picture.snapshot();
        assert_eq!((s.pid, s.log.len()), (None, 2));
        assert_eq!(s.verdict.sentence, GONE);
    }

    #[test]
    fn a_card_is_not_guessed_among_several() {
        let two = [gpu("a"), gpu("b")];
        assert_eq!(card_of(&process(&[]), &two), None);
        assert_eq!(
            card_of(&process(&[]), &two[..1]),
            Some(GpuId("a".to_owned()))
        );
    }

    #[test]
    fn a_process_that_ends_is_noticed() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let handle = open(child.id()).unwrap();
        assert!(!has_ended(&handle));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(has_ended(&handle));
    }
}
