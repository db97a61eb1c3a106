//! Random snapshots: every variant, extreme numbers, text of every kind.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::model::attempt::Artefact;
use crate::model::event::Survivor;
use crate::model::{
    ActionId, Answer, Answered, AttemptSpec, Budget, BusyTrust, Bytes, CardHeld, CardHolder,
    Chosens, Effective, Follow, GpuId, Health, HostSample, IdleBaseline, KillPlan, Metric, Mono,
    NextStep, Origin, Outcome, Phase, ProcSample, Progress, Questions, RungId, Setting,
    SourceState, SourceStatus, Tier, Verdict, VerdictId, Waits, WaitsFor,
};
use crate::model::{AgentOp, FaultKind, KernelFault};
use crate::run::Snapshot;
use crate::run::snapshot::LogLines;
use crate::run::snapshot::{
    AgentState, AgentView, Freshness, JobState, LadderEntry, LogKind, LogLine, Point, ResendView,
    RungState, SettingView, Stage, Working,
};

use super::base::{attempt, evidence};
use super::shelf::profiles;
use crate::ui::profiles::Profiles;
use crate::ui::slot::Reach;
use crate::ui::tui::{
    ChartChoices, Choices, DiagnoseChoices, LogChoices, LogView, Overlay, Picture, ProfileChoices,
    ProfilePane, Screen, Search,
};

#[path = "random_find.rs"]
mod find;
#[path = "random_gpu.rs"]
mod gpu;
#[path = "random_lobby.rs"]
mod lobby;
#[path = "random_trail.rs"]
mod trail;

/// A source of numbers for random snapshots (SplitMix64): the seed is the case.
pub(in crate::ui) struct Dice(pub(in crate::ui) u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(n.max(1)).unwrap()).unwrap()
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }

    fn some<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.below(3) > 0).then(|| f(self))
    }

    fn real(&mut self) -> f64 {
        let any = f64::from_bits(self.next());
        let small = f64::from(u32::try_from(self.below(1000)).unwrap()) / 7.0;
        self.pick(&[
            small,
            small,
            small,
            0.0,
            -0.0,
            -3.5,
            1e300,
            f64::NAN,
            f64::INFINITY,
            any,
        ])
    }

    fn int(&mut self) -> u64 {
        let small = self.next() % 1_000_000;
        let any = self.next();
        self.pick(&[0, 1, small, small, any, u64::MAX])
    }

    fn mono(&mut self) -> Mono {
        Mono(self.int())
    }

    fn bytes(&mut self) -> Bytes {
        let some = Bytes::mib(self.next() % 40_000);
        let any = Bytes(self.int());
        self.pick(&[some, any])
    }

    fn text(&mut self) -> String {
        let piece = self.pick(&[
            "",
            "silent_hang",
            "日本語の長い名前",
            "👩‍👩‍👧‍👦 family",
            "a\u{301}\u{302}\u{303}",
            "\u{1b}[31mred\u{1b}[0m\r\n\t",
            "\u{202e}evil\u{202c}",
            "/home/user/outputs/video.mp4",
            "مرحبا",
            "█▌ 48%",
            "\u{0}\u{7f}\u{ffff}",
        ]);
        piece.repeat(self.pick(&[1, 1, 1, 2, 40]))
    }

    fn metric<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> Metric<T> {
        match self.below(4) {
            0 => Metric::Fresh(f(self)),
            1 => Metric::Stale {
                value: f(self),
                age_ms: self.int(),
            },
            2 => Metric::Failed {
                why: self.text(),
                for_ms: self.int(),
            },
            _ => Metric::Unsupported,
        }
    }

    fn num(&mut self) -> Metric<f64> {
        self.metric(Self::real)
    }

    fn process(&mut self, gpu: &GpuId) -> ProcSample {
        ProcSample {
            pid: u32::MAX,
            processes: u32::MAX,
            threads: u32::MAX,
            state: self.metric(|d| d.pick(&['R', 'S', 'D', 'T', '日', '\u{1b}'])),
            wait_channel: self.metric(Self::text),
            rss: self.metric(Self::bytes),
            swap: self.metric(Self::bytes),
            d_state: self.metric(|_| u32::MAX),
            traced: self.below(2) == 0,
            stopped: Vec::new(),
            on_cards: self.list(3, |d| d.on_card(gpu.clone())),
            ..ProcSample::default()
        }
    }

    fn stage(&mut self) -> Stage {
        match self.below(10) {
            0 => Stage::Preparing,
            8 => Stage::CardHeld {
                held: Box::new(self.card_held()),
                until: self.mono(),
            },
            1 => Stage::Watching,
            2 => Stage::Countdown {
                rung: RungId(self.text()),
                kill_at: self.mono(),
                held: self.below(2) == 0,
            },
            3 => Stage::TakingEvidence { since: self.mono() },
            4 => Stage::Terminating {
                kill_at: self.mono(),
            },
            5 => Stage::Killing { since: self.mono() },
            6 => Stage::WaitingVram {
                used: self.some(Self::bytes),
                before: self.bytes(),
                until: self.mono(),
            },
            7 => Stage::Delay { until: self.mono() },
            _ => Stage::Ended,
        }
    }

    fn card_held(&mut self) -> CardHeld {
        CardHeld {
            gpu: GpuId(self.text()),
            run: self.some(Self::text),
            guardian: self.some(|_| u32::MAX),
            processes: self.list(3, |d| CardHolder {
                pid: u32::MAX,
                name: d.text(),
                state: 'S',
                vram: d.some(Self::bytes),
            }),
        }
    }

    fn rung_state(&mut self) -> RungState {
        match self.below(5) {
            0 => RungState::Tried {
                result: self.text(),
            },
            1 => RungState::Running,
            2 => RungState::Next,
            3 => RungState::Untried,
            _ => RungState::Unavailable { why: self.text() },
        }
    }

    fn freshness(&mut self) -> Freshness {
        match self.below(4) {
            0 => Freshness::CatchingUp { percent: 99 },
            1 => Freshness::CutOff,
            _ => Freshness::Live,
        }
    }

    fn outcome(&mut self) -> Outcome {
        let all = [
            Outcome::Finished { restarts: 0 },
            Outcome::Finished { restarts: u32::MAX },
            Outcome::Failed,
            Outcome::GaveUp,
            Outcome::Unkillable {
                pids: vec![1, u32::MAX],
            },
            Outcome::NotLaunched { not_found: true },
            Outcome::Interrupted { terminated: false },
        ];
        self.pick(&all)
    }

    fn verdict(&mut self) -> Verdict {
        use Health as H;
        Verdict {
            id: self.pick(VerdictId::ALL),
            health: self.pick(&[
                H::Starting,
                H::Healthy,
                H::Slow,
                H::Suspect,
                H::Hung,
                H::Failing,
                H::Failed,
                H::Finished,
                H::Blind,
            ]),
            phase: self.pick(Phase::ALL),
            section: self.some(|_| u32::MAX),
            confidence: self.real(),
            onset: self.mono(),
            sentence: self.text(),
            findings: self.list(4, Self::finding),
            considered: self.list(50, Self::considered),
            remedy: self.some(Self::remedy),
            ruled_out: self.list(3, Self::text),
            cause: None,
            action: self.pick(ActionId::ALL),
            next: self.some(|d| NextStep {
                what: d.text(),
                at: d.mono(),
            }),
            questions: self.some(|d| Box::new(d.questions())),
        }
    }

    fn questions(&mut self) -> Questions {
        let answered = |d: &mut Self| {
            let answer = d.pick(&[Answer::Yes, Answer::No, Answer::Unknown, Answer::Done]);
            let since_s = d.some(|d| d.pick(&[0.0, 71.5, 1e300, -1.0, f64::NAN]));
            Answered::new(answer, d.text(), since_s)
        };
        Questions {
            job: answered(self),
            moves: answered(self),
            waits: Waits {
                answer: self.pick(&[WaitsFor::Card, WaitsFor::None, WaitsFor::Process]),
                pid: self.some(|d| d.pick(&[1, u32::MAX])),
                tid: self.some(|d| d.pick(&[1, 77])),
                within: self.some(Self::text),
                detail: self.some(Self::text),
                for_s: self.some(|d| d.pick(&[0.0, 48.2, f64::INFINITY])),
            },
        }
    }

    fn log(&mut self) -> LogLines {
        let n = self.pick(&[0, 1, 7, 60, 500]);
        let line = |d: &mut Self| LogLine {
            at: d.mono(),
            kind: d.pick(&[LogKind::Stdout, LogKind::Stderr, LogKind::Own]),
            text: d.text(),
            phase: d.pick(Phase::ALL),
            bar: d.below(2) == 0,
            folded: d.pick(&[0, 1, u32::MAX]),
        };
        (0..n).map(|_| line(self)).collect()
    }

    fn history(&mut self) -> Arc<VecDeque<Point>> {
        let n = self.pick(&[0, 1, 2, 300]);
        let point = |d: &mut Self| Point {
            at: d.mono(),
            busy: d.some(Self::real),
            power_w: d.some(Self::real),
            mem_used: d.some(Self::bytes),
            cpu: d.some(Self::real),
            temp_c: d.some(Self::real),
            sclk_mhz: d.some(Self::real),
            io_bps: d.some(Self::real),
        };
        Arc::new((0..n).map(|_| point(self)).collect())
    }

    fn source(&mut self) -> SourceStatus {
        use SourceState as S;
        SourceStatus {
            name: self.text(),
            state: self.pick(&[S::Starting, S::Ok, S::Failing, S::Stale, S::Lost, S::Absent]),
            age_ms: self.int(),
            why: self.some(Self::text),
        }
    }

    fn job(&mut self) -> JobState {
        match self.below(4) {
            0 => JobState::Unknown,
            1 => JobState::InFlight(self.mono()),
            2 => JobState::Waiting(self.mono()),
            _ => JobState::Ended,
        }
    }

    fn resend(&mut self) -> ResendView {
        ResendView {
            by_itself: self.below(2) == 0,
            failed: self.below(2) == 0,
            waiting: if self.below(4) == 0 { 3 } else { 0 },
        }
    }

    fn agent(&mut self) -> AgentView {
        use AgentState as A;
        AgentView {
            state: self.pick(&[
                A::None,
                A::Off,
                A::Awaited,
                A::Connected,
                A::Silent,
                A::Lost,
            ]),
            came: self.below(2) == 0,
            op: self.some(|d| {
                let op = AgentOp {
                    name: d.text(),
                    shape: d.list(6, Self::int),
                    weight: d.list(6, Self::int),
                    dtype: d.text(),
                    device: d.text(),
                    tier: d.text(),
                    age_ms: d.int(),
                    tid: None,
                };
                (op, std::time::Duration::from_millis(d.int()))
            }),
            tiers: self.list(4, |d| (d.text(), d.int())),
        }
    }

    fn idle(&mut self) -> IdleBaseline {
        IdleBaseline {
            busy: self.some(Self::real),
            power_w: self.some(Self::real),
            samples: 3,
            in_use: self.some(Self::text),
        }
    }

    fn trust(&mut self) -> BusyTrust {
        let untrusted = BusyTrust::Untrusted {
            since: self.mono(),
            why: self.text(),
        };
        self.pick(&[BusyTrust::Unknown, BusyTrust::Trusted, untrusted])
    }

    fn attempt(&mut self) -> AttemptSpec {
        let mut spec = attempt(2, "", self.pick(ActionId::ALL), self.pick(Tier::ALL));
        spec.number = self.pick(&[1, 2, u32::MAX]);
        spec.rung = RungId(self.text());
        spec
    }

    fn rung(&mut self) -> LadderEntry {
        LadderEntry {
            id: RungId(self.text()),
            action: self.pick(ActionId::ALL),
            tier: self.pick(Tier::ALL),
            state: self.rung_state(),
        }
    }

    fn survivor(&mut self) -> Survivor {
        Survivor {
            pid: u32::MAX,
            name: self.text(),
            state: 'D',
            wchan: self.some(Self::text),
        }
    }

    fn host(&mut self) -> HostSample {
        HostSample {
            mem_total: self.metric(Self::bytes),
            mem_available: self.metric(Self::bytes),
            psi_mem: self.num(),
            load1: self.num(),
            ..HostSample::default()
        }
    }

    /// A snapshot of which anything can be expected but sense.
    pub(in crate::ui) fn snapshot(&mut self) -> Snapshot {
        let id = GpuId(self.text());
        let on = id.clone();
        let spec = self.attempt();
        let rungs = self.pick(&[0, 1, 5, 30]);
        Snapshot {
            attached: self.below(4) == 0,
            run: self.text(),
            now: self.mono(),
            freshness: self.freshness(),
            wall_clock: self.text(),
            argv: vec![self.text()],
            profile: self.text(),
            profile_why: self.text(),
            adapter: self.text(),
            attempt: self.some(|_| spec),
            attempt_since: self.mono(),
            pid: self.some(|_| u32::MAX),
            gpus: self.cards(&id),
            gpu: self.some(|_| id),
            card_idle: self.some(Self::idle),
            busy_trust: self.trust(),
            vram_cap: self.some(Self::bytes),
            process: self.some(|d| d.process(&on)),
            cpu_percent: self.some(Self::real),
            working: self.some(|d| Working {
                at: d.mono(),
                threads: d.list(4, |d| (d.text(), d.real())),
            }),
            read_bps: self.some(Self::real),
            write_bps: self.some(Self::real),
            host: self.host(),
            sources: self.list(8, Self::source),
            history: self.history(),
            last_output: self.some(Self::mono),
            last_progress: self.some(Self::mono),
            phase: self.pick(Phase::ALL),
            phase_since: self.mono(),
            phases: Arc::new(self.list(5, |d| (d.mono(), d.pick(Phase::ALL))).into()),
            section: self.some(|_| u32::MAX),
            sections: self.some(|_| u32::MAX),
            progress: self.some(Self::progress),
            job: self.job(),
            find: self.some(Self::find).map(Box::new),
            agent: self.agent(),
            resend: self.resend(),
            verdict: self.verdict(),
            verdict_since: self.mono(),
            trail: self.trail(),
            stage: self.stage(),
            ladder: (0..rungs).map(|_| self.rung()).collect(),
            restarts_left: u32::MAX,
            settings: Setting::ALL.into_iter().map(|s| self.setting(s)).collect(),
            effective: Arc::new(self.list(40, Self::effective)),
            effective_next: Arc::new(self.list(40, Self::effective)),
            chosen: Chosens::default(),
            budget: Budget::default(),
            kill: KillPlan::default(),
            server: self.below(2) == 0,
            results: self.pick(&[0, 1, u32::MAX]),
            decision: self.some(Self::text),
            log: self.log(),
            chatter: self.int(),
            dropped: self.list(4, |d| (d.text(), d.int())),
            evidence: vec![evidence(1, 1)],
            survivors: self.list(3, Self::survivor),
            left_running: self.list(3, Self::survivor),
            ended: self.pick(&[false, true]),
            faults: self.list(33, |d| (d.mono(), d.fault())),
            warnings: self.list(8, Dice::text),
            result: self.some(|d| Artefact {
                path: d.text(),
                size: d.bytes(),
                frames: d.some(|d| d.pick(&[1, 9, u32::MAX])),
                attempt: 1,
                rung: RungId(d.text()),
            }),
            outcome: (self.below(3) == 0).then(|| (self.outcome(), 255, self.text())),
        }
    }

    /// Fewer than `most` of something.
    fn list<T>(&mut self, most: usize, mut one: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(most)).map(|_| one(self)).collect()
    }

    fn fault(&mut self) -> KernelFault {
        KernelFault {
            kind: self.pick(&FaultKind::ALL),
            gpu: self.some(|d| GpuId(d.text())),
            part: self.some(Self::text),
            pid: self.some(|_| u32::MAX),
            process: self.some(Self::text),
            code: self.some(|d| d.pick(&[79, u32::MAX])),
        }
    }

    fn origin(&mut self) -> Origin {
        let file = self.text();
        let rung = RungId(self.text());
        self.pick(&[
            Origin::BuiltIn,
            Origin::Live,
            Origin::Rung { rung },
            Origin::Profile { file, line: 7 },
        ])
    }

    fn setting(&mut self, setting: Setting) -> SettingView {
        let (how, why) = (self.text(), self.text());
        SettingView {
            setting,
            now: self.some(Self::text),
            next: self.some(Self::text),
            origin: self.origin(),
            follow: self.pick(&[Follow::Ours, Follow::Yes { how }, Follow::No { why }]),
        }
    }

    fn effective(&mut self) -> Effective {
        Effective {
            key: self.text(),
            value: self.some(Self::text),
            origin: self.origin(),
            overrides: self.some(Self::text),
            idle: self.some(Self::text),
        }
    }

    fn progress(&mut self) -> Progress {
        Progress {
            what: self.some(Self::text),
            done: self.real(),
            total: self.some(Self::real),
            seconds_per_step: self.some(Self::real),
            sampling: self.below(2) == 0,
            closed: false,
        }
    }

    /// Profiles of which anything can be expected; often the usual ones.
    pub(in crate::ui) fn profiles(&mut self) -> Profiles {
        let mut profiles = profiles(self.below(2) == 0);
        if self.below(2) == 0 {
            return profiles;
        }
        profiles.folder = self.some(|d| d.text().into());
        let usual = profiles.list;
        let list = (0..self.below(30)).map(|_| {
            let mut e = self.pick(&usual);
            (e.id, e.path) = (self.text(), self.text());
            e.title = self.some(Self::text);
            e.description = self.some(Self::text);
            e.broken = self.some(Self::text);
            e.problems = vec![self.text(); self.below(9)];
            e.why = self.some(Self::text);
            e
        });
        profiles.list = Arc::new(list.collect());
        profiles
    }

    /// A view of `s` of which anything can be expected.
    pub(in crate::ui) fn choices(&mut self, s: &Snapshot) -> Choices {
        let log = if self.below(2) == 0 {
            self.log()
        } else {
            s.log.clone()
        };
        let view = if self.below(2) == 0 {
            LogView::Follow
        } else {
            LogView::Frozen {
                end: self.below(log.len() + 3),
                log,
            }
        };
        let charts = ChartChoices {
            zoom: self.below(2) == 0,
            range: self.some(|d| d.below(9)),
            paused: self.some(|d| Picture {
                history: d.history(),
                phases: Arc::clone(&s.phases),
                now: d.mono(),
            }),
            cursor: self.some(Self::mono),
        };
        Choices {
            watches: self.below(4) == 0,
            charts,
            screen: self.pick(&[
                Screen::Dashboard,
                Screen::Diagnose,
                Screen::Diagnose,
                Screen::Profiles,
                Screen::Profiles,
                Screen::Log,
            ]),
            follows: self.below(4) == 0,
            reach: self.pick(&[Reach::All, Reach::Signals("its supervisor has ended")]),
            diagnose: DiagnoseChoices {
                row: self.some(|d| d.pick(&[0, 1, 5, 1000, usize::MAX])),
            },
            profiles: ProfileChoices {
                pane: self.pick(&ProfilePane::ALL.map(|(pane, _)| pane)),
                marked: self.some(|d| {
                    let text = d.text();
                    d.pick(&[text, "night-run".to_owned(), "old-notes".to_owned()])
                }),
                setting: self.pick(&[0, 3, 5, usize::MAX]),
                line: self.pick(&[0, 1, 9, 1000, usize::MAX]),
            },
            overlay: if self.below(13) == 0 {
                Overlay::None
            } else {
                self.pick(&Overlay::ALL)
            },
            typed: self.some(Self::text).unwrap_or_default(),
            picked: self.pick(&[0, 1, 7, 1000, usize::MAX]),
            marked: self.pick(&[false, true]),
            log: LogChoices {
                view,
                hidden: [self.below(4) == 0, self.below(4) == 0, self.below(4) == 0],
                wrap: self.below(2) == 0,
                search: self.some(|d| {
                    let text = d.text();
                    Search::new(d.pick(&[text, "/.*".to_owned(), "a".to_owned()]))
                }),
                hit: self.some(|d| d.below(10)),
                cursor: self.some(|d| d.below(600)),
                mark: self.some(|d| d.below(600)),
            },
        }
    }
}
