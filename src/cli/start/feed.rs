//! Everything that the start screen shows, from its sources.

use std::time::{Duration, Instant};

use crate::cli::run::machine;
use crate::model::{FoundProcess, Metric, Sample, is_suspended};
use crate::profile::Card;
use crate::record::{RunEntry, RunStatus};
use crate::telemetry::{Guess, Processes, ProcessesConfig, Sampler, SamplerConfig};
use crate::ui::lobby::{Lobby, RunLine, RunState};
use crate::workload::adapter::AdapterKind;

use super::records::{self, Records};

/// Longest wait for every source's first answer, where the picture is taken once.
const FIRST_ANSWERS: Duration = Duration::from_secs(3);

/// A card whose memory cannot be read for so long is judged without it.
const PATIENCE_MS: u64 = 5_000;

/// The running sources.
pub(super) struct Feed {
    pub(super) sampler: Sampler,
    processes: Processes,
    records: Records,
    runs_at: String,
}

impl Feed {
    /// Starts them; waits for nothing.
    pub(super) fn start() -> Self {
        Self {
            sampler: Sampler::start(SamplerConfig::with_own_reader()),
            processes: Processes::start(ProcessesConfig::new(classify)),
            records: Records::start(),
            runs_at: records::place(),
        }
    }

    /// What is known now. Waits for no device.
    pub(super) fn lobby(&mut self) -> Lobby {
        let Sample {
            gpus,
            host,
            mut sources,
            ..
        } = self.sampler.sample();
        let (found, status) = self.processes.latest();
        // nobody is watched here, so what watches a process has nothing to say
        sources.retain(|s| s.name != "proc");
        sources.push(status);
        let lobby = Lobby {
            gpus,
            host,
            sources,
            found: self.processes.answered().then_some(found),
            runs_at: self.runs_at.clone(),
            ..Lobby::default()
        };
        if let Some(cards) = cards_to_judge_for(&lobby) {
            self.records.set_cards(cards);
        }
        let kept = self.records.kept();
        let runs = kept.runs.as_ref().map(|runs| {
            let lines: Vec<RunLine> = runs.iter().map(line).collect();
            lines
        });
        let (runs_trouble, profiles) = (kept.trouble.clone(), kept.profiles.clone());
        drop(kept);
        let supervisors = runs.iter().flatten().filter_map(|r| r.supervisor).collect();
        self.processes.set_supervisors(supervisors);
        Lobby {
            runs,
            runs_trouble,
            profiles,
            ..lobby
        }
    }

    /// What is known once every source has answered, or has had its time.
    pub(super) fn whole(&mut self) -> Lobby {
        let begun = Instant::now();
        // waits for the cards itself
        let _cards = self.sampler.cards();
        loop {
            let lobby = self.lobby();
            let judged = !lobby.profiles.is_empty();
            let done = lobby.found.is_some() && lobby.runs.is_some() && judged;
            if done || begun.elapsed() >= FIRST_ANSWERS {
                return lobby;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// A process that was found.
    pub(super) fn process(&self, pid: u32, start: u64) -> Option<FoundProcess> {
        let (found, _) = self.processes.latest();
        found.into_iter().find(|f| (f.pid, f.start) == (pid, start))
    }

    /// A recorded run.
    pub(super) fn run(&self, id: &str) -> Option<RunEntry> {
        let kept = self.records.kept();
        kept.runs.iter().flatten().find(|r| r.id == id).cloned()
    }
}

/// The cards that profiles are judged for; absent: they are still being looked for, or the
/// memory of the one that counts was not read yet. A profile that was judged without a card
/// would be the wrong one a moment later.
fn cards_to_judge_for(lobby: &Lobby) -> Option<Vec<Card>> {
    if lobby.looks_for_cards() {
        return None;
    }
    // an integrated card beside another is rarely meant
    let Some(card) = machine::choose(&lobby.gpus, None).ok().flatten() else {
        return Some(Vec::new());
    };
    // one that sleeps may not be read for hours
    let sleeps = card.state.last().is_some_and(|s| is_suspended(s));
    match &card.vram_total {
        Metric::Failed { for_ms, .. } if *for_ms < PATIENCE_MS && !sleeps => None,
        _ => Some(vec![machine::as_card(&card)]),
    }
}

fn line(run: &RunEntry) -> RunLine {
    let manifest = run.manifest.as_ref();
    let running = run.status == RunStatus::Running;
    RunLine {
        id: run.id.clone(),
        began: manifest.map(|m| m.wall_clock.clone()),
        state: match &run.status {
            RunStatus::Running => RunState::Running,
            RunStatus::Finished { outcome, exit_code } => RunState::Ended {
                outcome: outcome.clone(),
                exit_code: *exit_code,
            },
            RunStatus::Broken { why } => RunState::Broken { why: why.clone() },
        },
        argv: manifest.map(|m| m.argv.clone()).unwrap_or_default(),
        supervisor: manifest.and_then(|m| m.pid).filter(|_| running),
    }
}

/// What a command suggests. Only Python programs, and native ones that are known, are generations: an editor that has
/// `demo_gradio.py` open does not count.
fn classify(argv: &[String], cwd: &str, names: &[String]) -> Option<Guess> {
    let program = argv.first()?;
    let program = program.rsplit('/').next().unwrap_or(program);
    let python = program.starts_with("python") || program.starts_with("pypy");
    let kind = AdapterKind::detect(argv, cwd, |folder| {
        // the names of another folder are not at hand
        if folder == cwd {
            names.to_vec()
        } else {
            Vec::new()
        }
    });
    (kind.is_native() || (python && kind != AdapterKind::Generic)).then(|| Guess {
        kind: kind.as_str(),
        sure: !kind.is_guess(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str, names: &[&str]) -> Option<(&'static str, bool)> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
        classify(&words, "/x", &names).map(|g| (g.kind, g.sure))
    }

    #[test]
    fn what_runs_is_told_from_what_is_only_named() {
        assert_eq!(of("python demo_gradio.py", &[]), Some(("framepack", true)));
        assert_eq!(
            of("/e/bin/python3.12 /o/ComfyUI/main.py", &[]),
            Some(("comfyui", true))
        );
        assert_eq!(
            of("python studio.py", &["diffusers_helper"]),
            // a fork with a queue and a console of its own
            Some(("framepack-studio", true))
        );
        assert_eq!(of("python train.py", &[]), Some(("diffusers", false)));
        let native = of("sd-cli -m a.gguf", &[]);
        assert_eq!(native, Some(("stable-diffusion.cpp", true)));
        assert_eq!(of("vim demo_gradio.py", &[]), None);
        assert_eq!(of("framepack-tui run -- python demo_gradio.py", &[]), None);
        assert_eq!(
            of("/home/u/FramePack/venv/bin/python -m pip", &[]),
            Some(("diffusers", false))
        );
    }
}
