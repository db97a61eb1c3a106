//! The fold of a diagnosis: a recording is judged to its end by today's rules, and
//! nothing follows from it.
//!
//! A run that is supervised ends with the first fault. A recording goes on: what it shows
//! later may be worse, or prove that it was none.

use std::time::Duration;

use crate::model::{Effect, Envelope, Event, Health, Verdict};

use super::state::{RunState, Stage};

/// A record may lack the word that the last process is gone.
const NO_WORD: Duration = Duration::from_secs(1);

/// Folds one envelope of a recording into the state; gives the judgements that are news.
/// Judgements and decisions of the recording itself change nothing.
pub fn rejudge(state: &mut RunState, env: &Envelope) -> Vec<Verdict> {
    state.now = state.now.max(env.at);
    let Some(env) = state.detector.heed(env) else {
        return Vec::new();
    };
    let env = &*env;
    state.remember(env);
    state.detector.ignore_tracer(state.evidence_touches());
    state.observe(env);
    state.facts(&env.event);
    let mut out = Vec::new();
    match &env.event {
        Event::AttemptStarted(spec) => {
            state.followed.signalled = false;
            state.begin_attempt(spec);
        }
        Event::SignalSent { .. } => state.followed.signalled = true,
        Event::Sample(_) | Event::Tick => state.rejudge_now(&mut out),
        _ => {}
    }
    let told = out.into_iter().filter_map(|effect| match effect {
        Effect::Emit(event) => match *event {
            Event::Verdict(verdict) => Some(*verdict),
            _ => None,
        },
        _ => None,
    });
    told.collect()
}

impl RunState {
    fn rejudge_now(&mut self, out: &mut Vec<Effect>) {
        match self.stage {
            Stage::Watching => self.rejudge_running(out),
            Stage::Draining { status, since, .. }
                if self.drained() && (self.flags.gone || self.ago(since) >= NO_WORD) =>
            {
                if !self.followed.signalled {
                    let verdict = self.detector.end(Some(status), self.now);
                    if !self.is_untold(status, &verdict) {
                        self.latched = None;
                        self.show(verdict, out);
                    }
                }
                self.detector.end_attempt();
                self.stage = Stage::Over;
            }
            _ => {}
        }
    }

    fn rejudge_running(&mut self, out: &mut Vec<Effect>) {
        let mut verdict = match &self.latched {
            Some(v) => (**v).clone(),
            None => self.detector.assess(self.now),
        };
        self.without_job(&mut verdict);
        // a second rule agrees: the fault keeps its name
        let renamed = verdict.health == Health::Hung
            && self
                .shown
                .is_some_and(|s| s.health == Health::Hung && s.id != verdict.id);
        // a job that failed a moment ago is judged when its last words have come
        if self.job_failed.is_none() && !renamed {
            self.show(verdict, out);
        }
        self.judge_failed_job(out);
    }
}
