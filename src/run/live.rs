//! What the user switches while watching: settings, profile, rung.
//!
//! The plan is made anew by the shell, which knows the profiles and the workload's
//! arguments, and comes back as an event; the attempt that runs keeps what it was
//! launched with.

use std::sync::Arc;
use std::time::Duration;

use crate::model::event::{Choice, Decision, Level, Replanned};
use crate::model::{
    Bytes, Chosen, Effect, Effective, Event, Follow, GpuSample, Mono, Origin, RungId, Scope,
    Setting,
};

use super::reduce::emit;
use super::snapshot::SettingView;
use super::state::{Next, Purpose, RunState, Stage, Step};

/// A held countdown that is told anew ends this long from now, or later.
const HELD: Duration = Duration::from_secs(1);

impl RunState {
    /// Switches a setting; `None`: as the profile says.
    pub(super) fn set(&mut self, setting: Setting, value: Option<&str>, out: &mut Vec<Effect>) {
        let mut chosen = self.plan.chosen.clone();
        let what = match value {
            None => {
                chosen.settings.remove(&setting);
                format!("{} as the profile says", setting.name())
            }
            Some(text) => {
                let value = match self.checked(setting, text) {
                    Ok(value) => value,
                    Err(why) => return refuse(why, out),
                };
                let what = format!("{} {value}", setting.name());
                let over = self.position.taken(&self.plan);
                chosen.settings.insert(setting, Chosen { value, over });
                what
            }
        };
        out.push(Effect::Resolve { chosen, what });
    }

    /// The value as a profile would have it, or why this run cannot have it.
    fn checked(&self, setting: Setting, text: &str) -> Result<String, String> {
        let value = setting.parse(text)?;
        if let Follow::No { why } = self.follows(setting) {
            return Err(format!("{}: {why}", setting.name()));
        }
        let total = self
            .card()
            .and_then(GpuSample::pool)
            .map(|(_, total)| total);
        if let (Setting::VramCap, Some(total), Ok(cap)) = (setting, total, value.parse::<Bytes>())
            && cap > total
        {
            return Err(format!(
                "VRAM cap: {value} is more than the card has ({total})"
            ));
        }
        Ok(value)
    }

    pub(super) fn use_profile(&mut self, id: &str, out: &mut Vec<Effect>) {
        let mut chosen = self.plan.chosen.clone();
        chosen.profile = Some(id.to_owned());
        let what = format!("profile {id}");
        out.push(Effect::Resolve { chosen, what });
    }

    /// The new plan; what runs goes on as it was launched.
    pub(super) fn replanned(&mut self, r: &Replanned) {
        // the warning is about a line: another line, another warning
        self.flags.cap_told &= self.plan.vram_cap == r.plan.vram_cap;
        // whether a person sees it is not a matter of the plan
        let countdown = self.plan.countdown;
        self.started.profile.clone_from(&r.profile);
        self.started.profile_why.clone_from(&r.profile_why);
        self.started.adapter.clone_from(&r.adapter);
        self.plan = r.plan.clone();
        self.plan.countdown = countdown;
        self.tell_settings();
    }

    /// Decides anew after a switch of the profile, where the rung that was to follow
    /// is none of the new ladder: an attempt under its name would repeat what failed.
    pub(super) fn redecide(&mut self, out: &mut Vec<Effect>) {
        let offered = |id: &RungId| {
            let mut ladder = self.plan.ladder.iter();
            ladder.any(|r| r.id == *id && r.unavailable.is_none())
        };
        let Some(old) = self.decided().cloned() else {
            return;
        };
        let Some(lost) = old.rung.clone().filter(|id| !offered(id)) else {
            return;
        };
        let verdict = &self.verdict;
        let answer = self
            .position
            .next(&self.plan, verdict.id, verdict.phase, &self.in_flight())
            .rung;
        let answer = answer.filter(|_| !old.by_user);
        let rung = answer.or_else(|| self.height());
        let mut kill_at = self.now;
        match &mut self.stage {
            Stage::Ending {
                purpose: Purpose::Restart(next),
                step,
            } => {
                next.rung = rung;
                kill_at = step.told_anew(kill_at);
            }
            Stage::Reclaiming { next, .. } | Stage::Delaying { next, .. } => next.rung = rung,
            _ => return,
        }
        self.tell_settings();
        let why = format!("the profile that you chose does not offer rung {lost}");
        self.tell_followed(kill_at, &why, out);
    }

    /// The rung on which a restart without a new one stays: that of the attempt, or
    /// the last one taken that this ladder has; `None`: the profile as given.
    fn height(&self) -> Option<RungId> {
        let taken = self.position.taken(&self.plan);
        let here = self.attempt.as_ref().map(|a| &a.rung);
        let here = taken.iter().find(|r| Some(*r) == here);
        here.or(taken.last()).cloned()
    }

    fn follows(&self, setting: Setting) -> Follow {
        let found = self.plan.follow.get(&setting).cloned();
        found.unwrap_or_else(|| Follow::No {
            why: "the record of this run does not tell whether its program can follow".to_owned(),
        })
    }

    /// Works out the settings of the attempt that would follow.
    pub(super) fn tell_settings(&mut self) {
        let rung = self.decided().and_then(|n| n.rung.clone());
        let list = self.position.effective(&self.plan, rung.as_ref());
        self.effective_next = Arc::new(self.really_in_force(list));
    }

    /// The settings that can be switched, for the screen.
    pub(super) fn view_settings(&self) -> Vec<SettingView> {
        let view = |setting: Setting| {
            let path = setting.path();
            let of = |list: &[Effective]| list.iter().find(|e| e.key == path).cloned();
            let next = of(&self.effective_next);
            let now = match setting {
                Setting::VramCap => next.clone(),
                _ => of(&self.effective),
            };
            let said = |e: Option<Effective>| e.filter(|e| e.idle.is_none()).and_then(|e| e.value);
            SettingView {
                setting,
                now: said(now),
                origin: next.as_ref().map_or(Origin::BuiltIn, |e| e.origin.clone()),
                next: said(next),
                follow: self.follows(setting),
            }
        };
        Setting::ALL.into_iter().map(view).collect()
    }

    /// Ends the attempt, so that the next one has what was chosen.
    pub(super) fn apply_now(&mut self, out: &mut Vec<Effect>) {
        let next = Next {
            rung: self.height(),
            by_user: true,
        };
        self.follow_with(
            &next,
            true,
            "you asked for a restart with what you chose",
            out,
        );
    }

    /// Takes the rung that the user chose.
    pub(super) fn take_rung(&mut self, rung: &RungId, out: &mut Vec<Effect>) {
        let Some(found) = self.plan.ladder.iter().find(|r| r.id == *rung) else {
            return refuse(format!("there is no rung {rung} on this ladder"), out);
        };
        if let Some(why) = &found.unavailable {
            return refuse(format!("rung {rung} cannot be taken: {why}"), out);
        }
        let next = Next {
            rung: Some(rung.clone()),
            by_user: true,
        };
        if self.follow_with(&next, false, "you chose the rung", out) {
            self.hear(rung, out);
        }
    }

    /// A rung that is taken again is later than every choice: none silences it.
    fn hear(&self, rung: &RungId, out: &mut Vec<Effect>) {
        let mut chosen = self.plan.chosen.clone();
        for choice in chosen.settings.values_mut() {
            choice.over.retain(|r| r != rung);
        }
        if chosen != self.plan.chosen {
            let what = format!("rung {rung} over what was chosen before");
            out.push(Effect::Resolve { chosen, what });
        }
    }

    /// Makes `next` follow. What ends already goes on ending, at once if `hurry`;
    /// what nothing ends is ended for it. `false`: it was refused.
    fn follow_with(&mut self, next: &Next, hurry: bool, why: &str, out: &mut Vec<Effect>) -> bool {
        let now = self.now;
        let mut kill_at = now;
        let mut signal = false;
        match &mut self.stage {
            Stage::Preparing => return refused("the first attempt has not begun", out),
            Stage::Over => return false,
            Stage::Draining { .. } | Stage::PostMortem { .. } => {
                return refused("the program has just ended by itself", out);
            }
            Stage::Reclaiming { .. } | Stage::Delaying { .. } if hurry => {
                // the rung that answers what failed is not given up for it
                return refused("no attempt runs; the next one has what you chose", out);
            }
            Stage::Reclaiming { next: old, .. } | Stage::Delaying { next: old, .. } => {
                *old = next.clone();
            }
            Stage::Ending {
                purpose: Purpose::User { .. } | Purpose::Conclude(_),
                ..
            } => return refused("the run is being ended", out),
            Stage::Ending { purpose, step } => {
                match purpose {
                    // what was announced as an answer to a fault stays one
                    Purpose::Restart(_) if hurry => {}
                    Purpose::Restart(old) => old.rung.clone_from(&next.rung),
                    _ => *purpose = Purpose::Restart(next.clone()),
                }
                if !hurry {
                    kill_at = step.told_anew(now);
                } else if matches!(step, Step::Countdown { .. }) {
                    *step = Step::AwaitEvidence { since: now };
                }
            }
            Stage::Launching | Stage::Watching => {
                signal = true;
                self.stage = Stage::Ending {
                    purpose: Purpose::Restart(next.clone()),
                    step: Step::Terminating {
                        kill_at: now + self.plan.kill.grace,
                    },
                };
            }
        }
        self.tell_settings();
        self.tell_followed(kill_at, why, out);
        if signal {
            self.signal(self.plan.kill.first, Scope::Group, out);
        }
        true
    }

    fn tell_followed(&mut self, kill_at: Mono, why: &str, out: &mut Vec<Effect>) {
        let Some(next) = self.decided().cloned() else {
            return;
        };
        let rung = next.rung.unwrap_or_else(RungId::as_given);
        // as after every decision: what is left once the attempt that follows has begun
        let spends = !next.by_user && matches!(self.stage, Stage::Ending { .. });
        let left = self.budget.left(&self.plan.budget, self.now);
        let decision = Decision {
            attempt: self.attempt_number(),
            verdict: self.verdict.id,
            choice: Choice::Restart {
                rung,
                kill_at,
                by_user: next.by_user,
            },
            why: why.to_owned(),
            skipped: Vec::new(),
            restarts_left: left.saturating_sub(spends.into()),
        };
        self.decision = Some(decision.why.clone());
        out.push(emit(Event::Decision(Box::new(decision))));
    }
}

impl Step {
    /// When the kill begins that is told anew at `now`; a countdown that is held is
    /// given a time to come, which tells readers that it is still held.
    fn told_anew(&mut self, now: Mono) -> Mono {
        let Self::Countdown { kill_at, held } = self else {
            return now;
        };
        if *held {
            *kill_at = (*kill_at).max(now + HELD);
        }
        *kill_at
    }
}

/// The same, for what was not done.
fn refused(why: &str, out: &mut Vec<Effect>) -> bool {
    refuse(why, out);
    false
}

/// Says why nothing is done.
pub(super) fn refuse(why: impl Into<String>, out: &mut Vec<Effect>) {
    out.push(emit(Event::Notice {
        level: Level::Warn,
        text: why.into(),
    }));
}
