//! Carrying out what the core asks for. Nothing here waits.

use std::os::fd::AsFd;
use std::path::PathBuf;

use crate::model::event::{EvidenceReport, Level, Replanned};
use crate::model::{AttemptSpec, Chosens, Effect, EnvChange, Event, Mono, Outcome, Scope, Signal};
use crate::profile::schema::{ATTEMPT_DIR, expand_placeholders};
use crate::supervise::evidence::{self, EvidenceRequest};
use crate::workload::adapter::{self, LaunchInfo};
use crate::workload::external::{self, LaunchSpec};

use super::shell::Shell;

/// Our own binary, also when its file was replaced or removed during the run.
const OWN_EXE: &str = "/proc/self/exe";

impl Shell {
    /// One effect of the event of the time `at`.
    pub(super) fn carry_out(&mut self, at: Mono, effect: Effect) {
        match effect {
            Effect::Emit(event) => self.post_said(at, *event),
            Effect::Launch(spec) => self.launch(*spec),
            Effect::Attach(spec) => self.attach(*spec),
            Effect::Probe(on) => self.sampler.set_thread_detail(on),
            Effect::Capture { number, attempt } => self.capture(at, number, attempt),
            Effect::Signal {
                attempt,
                signal,
                scope,
            } => self.signal(attempt, signal, scope),
            Effect::ListSurvivors { .. } => {
                if let Some(child) = &self.child {
                    child.ask_survivors();
                }
            }
            Effect::FindLost { attempt } => self.find_lost(attempt),
            Effect::SendAgain {
                attempt,
                job,
                server,
            } => self.send_again(attempt, job, server),
            Effect::StopAfterStep { attempt } => self.stop_after_step(attempt),
            Effect::Resolve { chosen, what } => self.replan(&chosen, what),
            Effect::SaveProfile { id, chosen } => self.save_profile(&id, &chosen),
            Effect::Finish(outcome) => self.finish(outcome),
        }
    }

    /// Does what may block in a thread of its own; `failed` says that there is none.
    pub(super) fn beside(
        &mut self,
        name: &str,
        work: impl FnOnce() + Send + 'static,
        failed: impl FnOnce(std::io::Error) -> Event,
    ) {
        let thread = std::thread::Builder::new().name(name.to_owned());
        if let Err(e) = thread.spawn(work) {
            self.post(failed(e));
        }
    }

    /// Makes the plan anew; nothing here touches a disk.
    fn replan(&mut self, chosen: &Chosens, what: String) {
        let planned = match self.planner.plan(chosen) {
            Ok(planned) => planned,
            Err(e) => {
                return self.post(Event::Notice {
                    level: Level::Warn,
                    text: format!("{what} cannot be taken: {e}"),
                });
            }
        };
        self.kind = planned.kind;
        self.post(Event::Replanned(Box::new(Replanned {
            what,
            profile: planned.profile.id.value.clone(),
            profile_why: planned.why,
            adapter: planned.adapter.to_string(),
            plan: planned.plan,
        })));
        for text in planned.notices {
            // what holds as before was said before
            if !self.told.insert(text.clone()) {
                continue;
            }
            self.post(Event::Notice {
                level: Level::Info,
                text,
            });
        }
    }

    fn launch(&mut self, spec: AttemptSpec) {
        let number = spec.number;
        let launch = LaunchInfo {
            argv: spec.argv.clone(),
            on_cpu: spec.on_cpu,
        };
        self.adapter = Some(adapter::new(self.kind, &launch));
        self.finder.begin(number);
        self.gone_pending = None;
        let launched = self.expand(&spec).and_then(|mut env| {
            let argv = self.put_agent_in(&spec, &mut env);
            let launch = LaunchSpec {
                exe: PathBuf::from(OWN_EXE),
                argv,
                env,
                cwd: self.cwd.clone(),
                attempt: number,
            };
            external::launch(launch, self.lock.as_ref().map(AsFd::as_fd)).map_err(|e| e.to_string())
        });
        self.attempt = Some(spec);
        match launched {
            Ok(running) => self.child = Some(running),
            Err(why) => self.post(Event::SpawnFailed {
                attempt: number,
                why,
                not_found: false,
            }),
        }
    }

    /// Puts this attempt's own folder where a rung asks for a fresh one (R19:
    /// nothing of the user's is deleted).
    fn expand(&self, spec: &AttemptSpec) -> Result<Vec<EnvChange>, String> {
        let dir = self
            .dir
            .path()
            .join("attempt")
            .join(spec.number.to_string());
        let text = dir.display().to_string();
        let mut env = spec.env.clone();
        for change in &mut env {
            let Some(value) = change.value.as_mut() else {
                continue;
            };
            if value.contains(ATTEMPT_DIR) {
                *value = expand_placeholders(value, &text);
                std::fs::create_dir_all(&value)
                    .map_err(|e| format!("failed to create {value}: {e}"))?;
            }
        }
        Ok(env)
    }

    fn capture(&mut self, at: Mono, number: u32, attempt: u32) {
        let mut request = EvidenceRequest {
            number,
            attempt,
            dir: self.dir.evidence_dir(number),
            pids: self.pid.into_iter().collect(),
            guardian: self.child.as_ref().and_then(|c| c.guardian_pid),
            own_stacks: self.agent.stacks(),
            beats: self.agent.beats(),
            ..self.ask_always.clone()
        };
        self.ring.fill(&mut request);
        let to = self.evidence_to.clone();
        let thread = std::thread::Builder::new().name(format!("evidence {number}"));
        let spawned = thread.spawn(move || {
            request.gpu_roots = card_folders();
            // the loop is gone only when the run is over
            let _ = to.send(EvidenceReport {
                asked: Some(at),
                ..evidence::collect(&request)
            });
        });
        if let Err(e) = spawned {
            // the kill must not wait for a bundle that nobody takes
            let report = EvidenceReport {
                number,
                attempt,
                dir: String::new(),
                items: vec![crate::model::event::EvidenceItem {
                    kind: "bundle".to_owned(),
                    file: None,
                    bytes: 0,
                    failed: Some(format!("no thread could be started: {e}")),
                    absent: false,
                }],
                took_ms: 0,
                asked: Some(at),
            };
            let _ = self.evidence_to.send(report);
        }
    }

    fn signal(&mut self, attempt: u32, signal: Signal, scope: Scope) {
        self.ending = true;
        let asked = self.child.as_ref().is_some_and(|c| c.signal(signal, scope));
        if asked {
            self.signals_owed.push_back((signal, scope));
        } else {
            // nobody is left to ask, or the way to the guardian is blocked
            let reached = self.signal_group(signal);
            self.post(Event::SignalSent {
                attempt,
                signal,
                scope,
                reached,
            });
        }
    }

    /// Past the guardian, straight to the process group: 1 if it was there.
    pub(super) fn signal_group(&self, signal: Signal) -> u32 {
        let pid = self
            .pgid
            .and_then(|p| i32::try_from(p).ok())
            .filter(|p| *p > 1)
            .and_then(rustix::process::Pid::from_raw);
        let number = match signal {
            Signal::Int => rustix::process::Signal::INT,
            Signal::Term => rustix::process::Signal::TERM,
            Signal::Kill => rustix::process::Signal::KILL,
        };
        let sent = pid.map(|p| rustix::process::kill_process_group(p, number));
        u32::from(matches!(sent, Some(Ok(()))))
    }

    fn finish(&mut self, outcome: Outcome) {
        self.ended = Some(outcome);
    }
}

/// Device folders of the AMD cards, for the collector of the card's state.
fn card_folders() -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir("/sys/class/drm") else {
        return Vec::new();
    };
    let mut folders: Vec<PathBuf> = entries
        .flatten()
        .filter(|e| {
            let name = e.file_name();
            let name = name.to_string_lossy();
            name.strip_prefix("card")
                .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
        })
        .map(|e| e.path().join("device"))
        .filter(|d| {
            std::fs::read_to_string(d.join("vendor")).is_ok_and(|v| v.trim_end() == "0x1002")
        })
        .collect();
    folders.sort();
    folders
}
