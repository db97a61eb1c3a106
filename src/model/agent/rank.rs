//! Whose word counts: while the agent of the process that generates knows a phase, guesses
//! from the console do not; where it knows none, they do.

use std::borrow::Cow;

use crate::model::event::{Envelope, Event, Speaker};
use crate::model::progress::{JobChange, PhaseChange};
use crate::model::vocab::Phase;

use super::AgentWord;

/// What the process that counts and the console have told of so far in an attempt.
///
/// Each envelope goes to [`AgentRank::heed`] first, and what that gives to
/// [`AgentRank::observe`].
#[derive(Debug, Clone, Default)]
pub struct AgentRank {
    main: Option<u32>,
    /// The agent's phase, and its section where the agent itself counts them.
    phase: Option<(Phase, Option<u32>)>,
    /// Its last phase in which a job was in flight.
    worked: Option<Phase>,
    /// It is idle, and the console is further than the agent's last phase of a job, or the
    /// agent has seen no phase of one: what the program does after its pipeline, or in a loop
    /// of its own, is known to the console alone.
    is_behind: bool,
    progress: bool,
    /// Whether a job runs by the agent's last word; absent: it has reported none.
    job: Option<bool>,
    console: Console,
}

/// What the console is taken to say, whether or not it counted.
#[derive(Debug, Clone, Default)]
struct Console {
    phase: Option<PhaseChange>,
    progress: bool,
    /// A job that it began while the agent had none.
    job: bool,
}

impl Console {
    fn section(&self) -> Option<u32> {
        self.phase.as_ref().and_then(|p| p.section)
    }
}

/// Whether the word says no more than that nothing better is known: a program with a loop
/// of its own is in `startup` for the agent between two decodes.
const fn is_vague(phase: Phase) -> bool {
    !phase.says_something()
}

impl AgentRank {
    /// Folds in what is no phase, progress or job.
    pub fn observe(&mut self, env: &Envelope) {
        match &env.event {
            Event::AttemptStarted(_) => *self = Self::default(),
            Event::Agent(note) => match note.word {
                AgentWord::Main => {
                    // jobs are those of the tree, whichever process phases come from
                    let job = self.job.filter(|_| self.main.is_some());
                    self.begin(Some(note.pid));
                    self.job = job;
                }
                AgentWord::Ended | AgentWord::Lost if self.main == Some(note.pid) => {
                    self.begin(None);
                }
                _ => {}
            },
            _ => {}
        }
    }

    fn begin(&mut self, main: Option<u32>) {
        *self = Self {
            main,
            console: std::mem::take(&mut self.console),
            ..Self::default()
        };
    }

    /// The process that counts.
    pub const fn main(&self) -> Option<u32> {
        self.main
    }

    /// Whether the agent knows what the program does.
    fn knows(&self) -> bool {
        !self.is_behind && self.phase.is_some_and(|(phase, _)| !is_vague(phase))
    }

    /// Whether the agent's job in flight rules out what the console says: that a server waits
    /// for its user, as it did before the job, or that all is done.
    fn contradicts(&self, phase: Phase) -> bool {
        matches!(phase, Phase::Idle | Phase::Done) && self.job == Some(true)
    }

    /// What counts of an event, whoever told it; `None`: nothing.
    ///
    /// A phase of the agent is completed by what only the console knows of it (section, a
    /// step on the CPU), and where the agent knows no phase any more, the console's stands
    /// in its place. Whatever is no phase, progress or job counts as it is.
    pub fn heed<'a>(&mut self, env: &'a Envelope) -> Option<Cow<'a, Envelope>> {
        let by_agent = env.from == Some(Speaker::Agent);
        let counts = match &env.event {
            Event::Phase(p) => {
                let heard = if by_agent {
                    self.by_agent(p)
                } else {
                    self.by_console(p)
                }?;
                if heard == *p {
                    return Some(Cow::Borrowed(env));
                }
                return Some(Cow::Owned(Envelope {
                    event: Event::Phase(heard),
                    ..env.clone()
                }));
            }
            Event::Progress(_) if by_agent => {
                self.progress = true;
                self.knows() || !self.console.progress
            }
            Event::Progress(_) => {
                self.console.progress = true;
                !(self.progress && self.knows())
            }
            Event::Job(change) if by_agent => {
                self.job = Some(*change == JobChange::Started);
                self.console.job = false;
                true
            }
            Event::Job(change) => self.job_of_console(change),
            _ => true,
        };
        counts.then_some(Cow::Borrowed(env))
    }

    /// A job that the console sees begin while the agent has none is one that the agent does
    /// not see, and its end counts, too.
    fn job_of_console(&mut self, change: &JobChange) -> bool {
        match self.job {
            None => true,
            Some(true) => false,
            Some(false) => {
                let begins = *change == JobChange::Started;
                std::mem::replace(&mut self.console.job, begins) || begins
            }
        }
    }

    fn by_agent(&mut self, p: &PhaseChange) -> Option<PhaseChange> {
        let knew = self.knows();
        let was = self.phase.replace((p.phase, p.section));
        self.is_behind = false;
        if p.phase.is_of_a_job() {
            self.worked = Some(p.phase);
        }
        let contradicts = |g: &&PhaseChange| self.contradicts(g.phase);
        let guess = self.console.phase.as_ref().filter(|g| !contradicts(g));
        if is_vague(p.phase)
            && let Some(guess) = guess.filter(|g| !is_vague(g.phase))
        {
            if !knew {
                // it knew nothing before and knows nothing now
                return None;
            }
            let is_over = was.is_some_and(|(was, _)| was == guess.phase);
            if !is_over {
                return Some(guess.clone());
            }
        }
        let mut p = p.clone();
        if let Some(guess) = guess {
            if p.section.is_none() {
                p.section = guess.section;
                p.sections = p.sections.or(guess.sections);
            }
            p.on_cpu |= guess.on_cpu && guess.phase == p.phase;
        }
        Some(p)
    }

    fn by_console(&mut self, p: &PhaseChange) -> Option<PhaseChange> {
        let before = self.console.section();
        self.console.phase = Some(p.clone());
        let idle = self.phase.is_some_and(|(phase, _)| phase == Phase::Idle);
        if idle && p.phase.is_of_a_job() && self.worked.is_none_or(|worked| p.phase > worked) {
            self.is_behind = true;
        }
        let (phase, own_section) = match self.phase {
            Some(known) if self.knows() => known,
            _ if self.contradicts(p.phase) => return None,
            _ => return Some(p.clone()),
        };
        if p.phase == phase && (p.section.is_some() || p.on_cpu) {
            return Some(p.clone());
        }
        // a line can come behind the agent's word for what it announced
        let news = own_section.is_none() && p.section.is_some() && p.section != before;
        news.then(|| PhaseChange {
            phase,
            on_cpu: false,
            ..p.clone()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::time::Mono;

    fn phase(phase: Phase) -> Event {
        Event::Phase(PhaseChange {
            phase,
            section: None,
            sections: None,
            on_cpu: false,
        })
    }

    struct Run(AgentRank);

    impl Run {
        fn new() -> Self {
            let mut run = Self(AgentRank::default());
            run.main(7);
            run
        }

        fn main(&mut self, pid: u32) {
            let word = AgentWord::Main;
            let note = super::super::AgentNote { pid, word };
            self.0
                .observe(&envelope(None, Event::Agent(Box::new(note))));
        }

        fn hears(&mut self, from: Option<Speaker>, event: Event) -> bool {
            self.0.heed(&envelope(from, event)).is_some()
        }
    }

    fn envelope(from: Option<Speaker>, event: Event) -> Envelope {
        Envelope {
            seq: 1,
            at: Mono::ZERO,
            from,
            event,
        }
    }

    const AGENT: Option<Speaker> = Some(Speaker::Agent);

    #[test]
    fn behind_its_pipeline_an_idle_server_is_where_the_console_says() {
        let mut run = Run::new();
        assert!(run.hears(AGENT, phase(Phase::Sampling)));
        assert!(!run.hears(None, phase(Phase::VaeDecode)), "a guess");
        assert!(run.hears(AGENT, phase(Phase::Idle)));
        assert!(!run.hears(None, phase(Phase::Sampling)), "a late line");
        assert!(run.hears(None, phase(Phase::VaeDecode)));
        // until the agent knows better, all phases of the console count
        assert!(run.hears(None, phase(Phase::Idle)));
        assert!(run.hears(AGENT, phase(Phase::Sampling)));
        assert!(!run.hears(None, phase(Phase::Save)));
    }

    #[test]
    fn a_server_with_a_job_in_flight_is_not_idle() {
        let mut run = Run::new();
        assert!(run.hears(None, phase(Phase::Idle)), "it is up");
        assert!(run.hears(AGENT, Event::Job(JobChange::Started)));
        assert!(run.hears(AGENT, phase(Phase::VaeDecode)));
        let unknown = run
            .0
            .heed(&envelope(AGENT, phase(Phase::Unknown)))
            .map(|e| e.event.clone());
        assert_eq!(unknown, Some(phase(Phase::Unknown)));
        assert!(!run.hears(None, phase(Phase::Idle)), "a late line");
        assert!(run.hears(AGENT, Event::Job(JobChange::Done)));
        assert!(run.hears(None, phase(Phase::Idle)));
    }

    #[test]
    fn a_job_that_the_agent_does_not_see_is_the_consoles() {
        let job = Event::Job;
        let mut run = Run::new();
        assert!(run.hears(None, job(JobChange::Started)), "no agent's yet");
        assert!(run.hears(AGENT, job(JobChange::Started)));
        assert!(
            !run.hears(None, job(JobChange::Done)),
            "the agent's goes on"
        );
        assert!(run.hears(AGENT, job(JobChange::Done)));
        assert!(!run.hears(None, job(JobChange::Done)), "it was the same");
        assert!(run.hears(None, job(JobChange::Started)));
        assert!(run.hears(None, job(JobChange::Done)));
        assert!(!run.hears(None, job(JobChange::Done)));
        // of another process of the tree, too
        run.main(8);
        assert!(!run.hears(None, job(JobChange::Waiting)));
    }
}
