//! After a restart of a server: the job that was lost is sent again.
//!
//! What the vault holds is looked up as an attempt begins; where to, the server itself
//! announces on its console. What becomes of it comes back as events.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use crate::detect::{Job, Presence};
use crate::model::event::Level;
use crate::model::{
    AgentWay, AgentWord, Effect, Event, JobChange, JobProgram, Line, LostJob, LostJobs, Resend,
    ResendWord, VerdictId,
};
use crate::policy::{LastJob, Past, fates};

use super::live::refuse;
use super::reduce::emit;
use super::snapshot::ResendView;
use super::state::{RunState, Stage};

/// A server that waits for its user has announced its address by then.
const ANNOUNCED: Duration = Duration::from_secs(10);

/// What is known of jobs that were lost.
#[derive(Debug, Clone, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "facts of one attempt, independent of each other"
)]
pub(super) struct Resending {
    /// The last job of the present attempt.
    last: LastJob,
    /// The same of the attempt before.
    before: LastJob,
    /// The present attempt was begun on the user's word: no fault of the job's.
    pub(super) by_user: bool,
    /// Some attempt has announced an address.
    served: bool,
    /// Where the present attempt serves.
    address: Option<String>,
    /// To be sent, in this order.
    todo: VecDeque<LostJob>,
    /// The vault has kept a job of the present attempt.
    kept: bool,
    /// What is being sent.
    sending: Option<LostJob>,
    /// Queues that the user is to be asked for.
    queues: Vec<LostJob>,
    /// Queues that wait for the user's word: the question was put.
    asked: Vec<LostJob>,
    /// Graphs that wait for the user's word, as last told.
    waiting: u32,
    /// A job was not or could not be sent, as last told.
    failed: bool,
    /// Entries that were to be sent and that no server has taken.
    owed: BTreeSet<String>,
    /// How often each job was sent again after a fault.
    sends: BTreeMap<String, u32>,
}

impl Resending {
    /// A new attempt: another server, and nothing is known of it.
    pub(super) fn begin_attempt(&mut self) {
        *self = Self {
            before: self.last,
            by_user: self.by_user,
            served: self.served || self.address.is_some(),
            owed: std::mem::take(&mut self.owed),
            sends: std::mem::take(&mut self.sends),
            ..Self::default()
        };
    }

    /// Facts that hold whoever decides.
    pub(super) fn facts(&mut self, event: &Event) {
        match event {
            Event::Job(JobChange::Started) => {
                self.last = LastJob::InFlight;
                self.failed = false;
            }
            Event::Agent(note) => self.kept |= keeps_a_job(&note.word),
            Event::Job(JobChange::Done) => self.last = LastJob::Ended,
            Event::Job(JobChange::Failed { .. }) => self.last = LastJob::Failed,
            Event::Job(JobChange::Waiting) if self.last == LastJob::InFlight => {
                self.last = LastJob::Ended;
            }
            Event::Resend(Resend {
                word: ResendWord::Waiting { prompts, .. },
                ..
            }) => self.waiting = *prompts,
            Event::Resend(r) if r.word.asks_for_start() => self.failed = true,
            Event::Command(crate::model::Command::Resend) => self.waiting = 0,
            _ => {}
        }
    }
}

impl RunState {
    /// Whether jobs are kept that a restart would lose.
    fn keeps_jobs(&self) -> bool {
        self.serves() && self.plan.agent == AgentWay::On && !self.is_attached()
    }

    /// Whether the program is a server, by the plan or by the address that it announced.
    pub(super) fn serves(&self) -> bool {
        self.plan.server || self.resend.served || self.resend.address.is_some()
    }

    /// Whether the job of a server can be sent again after a restart.
    pub(super) fn job_is_kept(&self) -> bool {
        self.keeps_jobs() && self.resend.kept
    }

    /// Whether a server that was killed from outside may be started again: its job can be
    /// sent again, and a rung says so by name.
    pub(super) fn killed_is_answered(&self) -> bool {
        use crate::model::Answers;
        let by_name = |r: &crate::model::Rung| matches!(&r.answers, Answers::These(v) if v.contains(&VerdictId::Killed));
        self.keeps_jobs()
            && self.detector.presence() != Presence::Silent
            && self.resend.last == LastJob::InFlight
            && self.plan.ladder.iter().any(by_name)
    }

    /// An attempt after the first begins: what was lost with the one before?
    pub(super) fn ask_for_lost(&mut self, out: &mut Vec<Effect>) {
        if self.keeps_jobs() {
            out.push(Effect::FindLost {
                attempt: self.attempt_number(),
            });
        } else if self.plan.server {
            note(
                "the server was restarted and waits for a job: press Start again",
                out,
            );
        }
    }

    /// What an event means for lost jobs.
    pub(super) fn resend_event(&mut self, event: &Event, out: &mut Vec<Effect>) {
        let number = self.attempt_number();
        match event {
            Event::Line(line) if line.attempt == number && self.resend.address.is_none() => {
                self.resend.address = announced(line);
                if self.resend.address.is_some() {
                    self.send_next(out);
                }
            }
            Event::LostJobs(lost) if lost.attempt == number => self.decide_lost(lost, out),
            Event::Resend(r) if r.attempt == number => self.resent(&r.word, out),
            _ => {}
        }
    }

    fn decide_lost(&mut self, lost: &LostJobs, out: &mut Vec<Effect>) {
        let past = Past {
            attempt: lost.attempt.saturating_sub(1),
            last: self.resend.before,
            owed: &self.resend.owed,
            sends: &self.resend.sends,
        };
        let fates = fates(&lost.jobs, &past, &self.plan.budget);
        let none = fates.send.is_empty() && fates.ask.is_empty() && fates.give_up.is_empty();
        for (job, why) in fates.give_up {
            self.tell_resend(
                ResendWord::GivenUp {
                    job: Some(job),
                    why,
                },
                out,
            );
        }
        let was_lost = matches!(self.resend.before, LastJob::InFlight | LastJob::Failed);
        match &lost.problem {
            Some(why) if was_lost => {
                let why = format!("failed to {why}");
                self.tell_resend(ResendWord::GivenUp { job: None, why }, out);
            }
            None if none && was_lost => {
                let why = "the vault holds no job of this run that was not done".to_owned();
                self.tell_resend(ResendWord::GivenUp { job: None, why }, out);
            }
            None if !none => {}
            _ => note("the server was restarted; no job was lost with it", out),
        }
        self.resend.todo = fates.send.into();
        self.resend.owed = self.resend.todo.iter().map(|j| j.entry.clone()).collect();
        self.resend.queues = fates.ask;
        self.send_next(out);
    }

    /// Sends what is next, once it is known where to.
    fn send_next(&mut self, out: &mut Vec<Effect>) {
        let Some(server) = self.resend.address.clone() else {
            return;
        };
        if !self.resend.queues.is_empty() {
            let resend = &mut self.resend;
            resend.asked.append(&mut resend.queues);
            resend.waiting = resend.asked.iter().map(|q| q.prompts).sum();
            let word = ResendWord::waiting(&resend.asked, &server);
            self.tell_resend(word, out);
        }
        if self.resend.sending.is_some() {
            return;
        }
        let Some(job) = self.resend.todo.pop_front() else {
            return;
        };
        if job.program == JobProgram::FramePack && !self.resend.by_user {
            *self.resend.sends.entry(job.job.clone()).or_default() += 1;
        }
        let word = ResendWord::Sending {
            job: job.job.clone(),
            server: server.clone(),
        };
        self.tell_resend(word, out);
        out.push(Effect::SendAgain {
            attempt: self.attempt_number(),
            job: job.clone(),
            server,
        });
        self.resend.sending = Some(job);
    }

    /// What came of it.
    fn resent(&mut self, word: &ResendWord, out: &mut Vec<Effect>) {
        let resend = &mut self.resend;
        let ours = |job: &str| resend.sending.as_ref().is_some_and(|s| s.job == job);
        match word {
            ResendWord::Sent { job, .. } if ours(job) => {
                let entry = resend.sending.as_ref().map(|s| s.entry.clone());
                entry.map(|e| resend.owed.remove(&e));
            }
            ResendWord::There { job }
            | ResendWord::Done { job, .. }
            | ResendWord::Ended { job, .. }
            | ResendWord::Queued { job, .. }
                if ours(job) =>
            {
                if let Some(sent) = resend.sending.take() {
                    resend.owed.remove(&sent.entry);
                }
                self.send_next(out);
            }
            ResendWord::Failed { job, .. } if ours(job) => {
                if let Some(sent) = resend.sending.take() {
                    resend.owed.remove(&sent.entry);
                    if sent.program == JobProgram::ComfyUi {
                        // the user may ask once more
                        resend.queues.push(sent);
                    }
                }
                self.send_next(out);
            }
            _ => {}
        }
    }

    /// The user's word for the queues.
    pub(super) fn user_resends(&mut self, out: &mut Vec<Effect>) {
        if self.resend.asked.is_empty() {
            return refuse("no queue waits to be sent again", out);
        }
        let asked = std::mem::take(&mut self.resend.asked);
        self.resend.todo.extend(asked);
        self.send_next(out);
    }

    /// A server that waits for its user and has not said where it serves.
    pub(super) fn miss_address(&mut self, out: &mut Vec<Effect>) {
        let resend = &self.resend;
        let nothing = resend.todo.is_empty() && resend.queues.is_empty();
        let waits =
            matches!(self.detector.job(), Job::Waiting(since) if self.ago(since) >= ANNOUNCED);
        if nothing || !waits || resend.address.is_some() || self.stage != Stage::Watching {
            return;
        }
        let todo: Vec<LostJob> = self.resend.todo.drain(..).collect();
        let queues = std::mem::take(&mut self.resend.queues);
        for job in todo.into_iter().chain(queues) {
            self.resend.owed.remove(&job.entry);
            let why = "the server has not announced its address on its console".to_owned();
            let word = ResendWord::GivenUp {
                job: Some(job.job),
                why,
            };
            self.tell_resend(word, out);
        }
    }

    fn tell_resend(&self, word: ResendWord, out: &mut Vec<Effect>) {
        out.push(emit(Event::Resend(Resend {
            attempt: self.attempt_number(),
            word,
        })));
    }

    /// How it stands, for the screen.
    pub(super) fn view_resend(&self) -> ResendView {
        ResendView {
            by_itself: self.keeps_jobs(),
            waiting: self.resend.waiting,
            failed: self.resend.failed,
        }
    }
}

/// Whether the agent says that the vault holds a job that can be sent again.
fn keeps_a_job(word: &AgentWord) -> bool {
    matches!(word, AgentWord::Vault(v) if v.what == "saved" && matches!(v.of.as_str(), "job" | "queue"))
}

fn note(text: &str, out: &mut Vec<Effect>) {
    out.push(emit(Event::Notice {
        level: Level::Info,
        text: text.to_owned(),
    }));
}

/// Words in front of the address in the lines of servers: Gradio, ComfyUI, uvicorn, others.
const ANNOUNCES: [&str; 7] = [
    "running on",
    "local url",
    "to see the gui go to",
    "serving on",
    "serving at",
    "listening on",
    "listening at",
];
/// Addresses of this machine; others are none that a job is sent to.
const HERE: [&str; 4] = ["127.", "0.0.0.0", "localhost", "[::"];

/// The address that a server announces in this line, as far as a job is sent there.
fn announced(line: &Line) -> Option<String> {
    let (before, rest) = line.text.split_once("http://")?;
    let before = before.to_lowercase();
    if !ANNOUNCES.iter().any(|words| before.contains(words)) {
        return None;
    }
    let host = rest.split(|c: char| c.is_whitespace() || c == '/').next()?;
    let here = HERE.iter().any(|h| host.starts_with(h)) && host.contains(':');
    here.then(|| format!("http://{host}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Stream;
    use proptest::prelude::*;

    fn found(text: &str) -> Option<String> {
        announced(&Line {
            attempt: 1,
            row: 0,
            stream: Stream::Stdout,
            text: text.to_owned(),
            bar: false,
            truncated: false,
            chatter: false,
        })
    }

    #[test]
    fn servers_announce_where_they_serve() {
        for (text, address) in [
            (
                "* Running on local URL:  http://127.0.0.1:7860",
                Some("http://127.0.0.1:7860"),
            ),
            (
                "[INFO] To see the GUI go to: http://0.0.0.0:8188",
                Some("http://0.0.0.0:8188"),
            ),
            (
                "INFO: Uvicorn running on http://[::1]:8000/ (Press CTRL+C to quit)",
                Some("http://[::1]:8000"),
            ),
            ("* Running on public URL: https://1234.gradio.live", None),
            ("Running on local URL:  http://192.168.0.7:7860", None),
            ("see http://127.0.0.1:7860 for help", None),
            ("running on http://127.0.0.1", None),
            ("", None),
        ] {
            assert_eq!(found(text).as_deref(), address, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_line_makes_it_panic(text in "(running on |local url: )?(http://)?.{0,40}") {
            if let Some(address) = found(&text) {
                prop_assert!(address.starts_with("http://"));
            }
        }
    }
}
