//! Lost jobs of a server: what the vault holds of them, and sending them again. A disk and a
//! server may block, so each has a thread of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use crate::model::event::Level;
use crate::model::{Event, JobProgram, LostJob, LostJobs, RefusedPrompt, Resend, ResendWord};
use crate::vault::{
    Entry, Heard, Job, JobState, Options, ResendError, Sent, Server, Vault, VaultError, resend,
};

use super::shell::Shell;

/// A server that has announced its address answers within this.
const UP: Duration = Duration::from_mins(1);
/// One that stands still before it has the job is asked again for so long: whoever loads models
/// may hold the interpreter's lock for minutes.
const STALLED: Duration = Duration::from_mins(10);
/// Between two tries.
const RETRY: Duration = Duration::from_millis(500);
/// A server that dies breaks the stream of its job a moment before its end is known.
const LAST_WORD: Duration = Duration::from_secs(3);

/// The side of the loop that sends.
#[derive(Debug)]
pub(super) struct Sender {
    to: mpsc::UnboundedSender<Event>,
    /// The attempt that runs: a thread of an older one ends.
    present: Arc<AtomicU32>,
}

impl Sender {
    pub(super) fn new(to: mpsc::UnboundedSender<Event>) -> Self {
        Self {
            to,
            present: Arc::default(),
        }
    }
}

/// One job on its way.
struct Errand {
    to: mpsc::UnboundedSender<Event>,
    present: Arc<AtomicU32>,
    attempt: u32,
    job: LostJob,
    server: String,
    options: Options,
}

impl Shell {
    /// Where a thread puts its word.
    pub(super) fn inbox(&self) -> mpsc::UnboundedSender<Event> {
        self.sender.to.clone()
    }

    /// Asks the vault; the answer comes through the inbox.
    pub(super) fn find_lost(&mut self, attempt: u32) {
        self.sender.present.store(attempt, Ordering::Release);
        let (to, run) = (self.sender.to.clone(), self.dir.id().to_string());
        let look = move || {
            let found = Vault::open_default().and_then(|vault| vault.unfinished(&run));
            let (jobs, problem) = match found {
                Ok(entries) => (entries.iter().filter_map(lost).collect(), None),
                Err(e) => (Vec::new(), Some(e.to_string())),
            };
            // the loop is gone only when the run is over
            let _ = to.send(Event::LostJobs(LostJobs {
                attempt,
                jobs,
                problem,
            }));
        };
        self.beside("lost jobs", look, |e| {
            Event::LostJobs(LostJobs {
                attempt,
                jobs: Vec::new(),
                problem: Some(format!("start a thread: {e}")),
            })
        });
    }

    /// Begins to send; what becomes of it comes through the inbox.
    pub(super) fn send_again(&mut self, attempt: u32, job: LostJob, server: String) {
        let errand = Errand {
            to: self.sender.to.clone(),
            present: Arc::clone(&self.sender.present),
            attempt,
            job,
            server,
            options: Options {
                // between two tries it is looked whether the attempt goes on
                wait: Duration::ZERO,
                ..Options::default()
            },
        };
        let name = errand.job.job.clone();
        let send = move || errand.run(Vault::open_default());
        self.beside("send again", send, |e| {
            let why = format!("no thread could be started: {e}");
            let word = ResendWord::Failed { job: name, why };
            Event::Resend(Resend { attempt, word })
        });
    }

    /// Something came of a look or of an errand; words of an attempt that is over, or is
    /// being ended, are nobody's any more.
    pub(super) fn resend_heard(&mut self, event: Event) {
        let of = match &event {
            Event::Notice { .. } => return self.post(event),
            Event::LostJobs(lost) => lost.attempt,
            Event::Resend(resend) => resend.attempt,
            _ => return,
        };
        let present = self.attempt.as_ref().map(|a| a.number);
        let over = matches!(event, Event::Resend(_)) && (self.exit_seen || self.ending);
        if present == Some(of) && !over {
            self.post(event);
        }
    }

    /// The attempt is over: nothing is sent to its server any more.
    pub(super) fn stop_sending(&self) {
        self.sender.present.store(0, Ordering::Release);
    }
}

/// An entry as the rules see it.
fn lost(entry: &Entry) -> Option<LostJob> {
    let of = |job: &Job| job.attempt().and_then(|a| a.parse().ok());
    let job = entry.job()?;
    Some(match job {
        // its page loads it again, and the agent says so
        Job::Studio(_) => return None,
        Job::FramePack(one) => LostJob {
            entry: entry.name.clone(),
            program: JobProgram::FramePack,
            job: one.id.clone(),
            attempt: of(job),
            failed: one.state == JobState::Failed,
            prompts: 1,
        },
        Job::ComfyUi(queue) => LostJob {
            entry: entry.name.clone(),
            program: JobProgram::ComfyUi,
            job: entry.name.clone(),
            attempt: of(job),
            failed: false,
            prompts: u32::try_from(queue.items.len()).unwrap_or(u32::MAX),
        },
    })
}

impl Errand {
    fn live(&self) -> bool {
        self.present.load(Ordering::Acquire) == self.attempt
    }

    fn tell(&self, word: ResendWord) {
        // the loop is gone only when the run is over
        let _ = self.to.send(Event::Resend(Resend {
            attempt: self.attempt,
            word,
        }));
    }

    fn fail(&self, why: String) {
        self.tell(ResendWord::Failed {
            job: self.job.job.clone(),
            why,
        });
    }

    fn run(self, vault: Result<Vault, VaultError>) {
        let server = match self.server.parse::<Server>() {
            Ok(server) => server,
            Err(e) => return self.fail(e.to_string()),
        };
        let vault = match vault {
            Ok(vault) => vault,
            Err(e) => return self.fail(format!("failed to {e}")),
        };
        match self.send(&vault, server) {
            None => {}
            Some(Ok(sent)) => self.arrived(&vault, sent),
            Some(Err(e)) => {
                if matches!(e, ResendError::Lost { .. }) {
                    sleep(LAST_WORD);
                }
                self.fail(e.to_string());
            }
        }
    }

    /// Tries until the server is up. `None`: nothing is to be said, since the attempt is over
    /// or the job is with its server already.
    fn send(&self, vault: &Vault, server: Server) -> Option<Result<Sent, ResendError>> {
        let began = Instant::now();
        let mut stalled = false;
        loop {
            let entry = match self.entry(vault) {
                Ok(entry) => entry,
                Err(why) => {
                    self.fail(why);
                    return None;
                }
            };
            if self.is_taken_over(&entry) {
                let job = self.job.job.clone();
                self.tell(ResendWord::There { job });
                return None;
            }
            if !self.live() {
                return None;
            }
            let mut taken = false;
            let sent = resend(&entry, server, self.options, &mut |heard| {
                if matches!(heard, Heard::Taken { .. }) {
                    taken = true;
                    self.tell(ResendWord::Sent {
                        job: self.job.job.clone(),
                        server: server.to_string(),
                    });
                }
            });
            let patience = match &sent {
                Err(
                    ResendError::NoServer { .. }
                    | ResendError::Refused {
                        status: 500..=599, ..
                    },
                ) => UP,
                Err(ResendError::NoAnswer { .. }) => STALLED,
                _ => Duration::ZERO,
            };
            if taken || began.elapsed() >= patience {
                return Some(sent);
            }
            if patience == STALLED && !std::mem::replace(&mut stalled, true) {
                self.say_stalled(server);
            }
            sleep(RETRY);
        }
    }

    fn say_stalled(&self, server: Server) {
        let text = format!(
            "{server} is up and does not answer; the job {} is sent as soon as it does",
            self.job.job
        );
        let level = Level::Warn;
        // the loop is gone only when the run is over
        let _ = self.to.send(Event::Notice { level, text });
    }

    /// The entry as it is now.
    fn entry(&self, vault: &Vault) -> Result<Entry, String> {
        let all = vault.list().map_err(|e| format!("failed to {e}"))?;
        let found = all.into_iter().find(|e| e.name == self.job.entry);
        found.ok_or_else(|| "it is not in the vault any more".to_owned())
    }

    /// Whether the agent of this attempt has the job in its hands: somebody has started it.
    fn is_taken_over(&self, entry: &Entry) -> bool {
        let attempt = entry.attempt().and_then(|a| a.parse::<u32>().ok());
        self.job.program == JobProgram::FramePack && attempt >= Some(self.attempt)
    }

    fn arrived(&self, vault: &Vault, sent: Sent) {
        let whole = sent.is_whole();
        // what the agent has taken over it forgets itself
        let done = vault.list().ok().and_then(|all| {
            let found = all.into_iter().find(|e| e.name == self.job.entry);
            found.filter(|e| whole && !self.is_taken_over(e))
        });
        if let Some(entry) = done
            && let Err(e) = vault.remove(&entry)
        {
            self.tell(ResendWord::Failed {
                job: self.job.job.clone(),
                why: format!("failed to {e}"),
            });
        }
        let job = self.job.job.clone();
        match sent {
            Sent::FramePack { files, .. } if whole => self.tell(ResendWord::Done {
                job,
                files: count(files.len()),
            }),
            Sent::FramePack { files, sections } => self.tell(ResendWord::Ended {
                job,
                files: count(files.len()),
                of: sections,
            }),
            Sent::ComfyUi {
                queued,
                there,
                refused,
            } => self.tell(ResendWord::Queued {
                job,
                queued: count(queued.len()),
                there: count(there.len()),
                refused: refused
                    .into_iter()
                    .map(|(prompt, why)| RefusedPrompt { prompt, why })
                    .collect(),
            }),
        }
    }
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const JOB: &str = "job.r.0123.json";

    /// A job that was last seen in this attempt.
    fn kept(root: &Path, attempt: u32) -> Vault {
        let inputs: serde_json::Map<_, _> = crate::vault::INPUTS
            .iter()
            .map(|name| ((*name).to_owned(), 1.into()))
            .collect();
        let job = serde_json::json!({
            "version": 1, "program": "framepack", "run": "r", "attempt": attempt, "id": "0123",
            "state": "started", "error": null, "image": "job.r.0123.png", "inputs": inputs,
        });
        std::fs::write(root.join(JOB), job.to_string()).unwrap();
        std::fs::write(root.join("job.r.0123.png"), b"\x89PNG\r\n\x1a\n").unwrap();
        Vault::at(root)
    }

    /// The job on its way to a port on which nobody serves.
    fn errand(vault: &Vault, attempt: u32) -> (Errand, mpsc::UnboundedReceiver<Event>) {
        let (to, heard) = mpsc::unbounded_channel();
        let entries = vault.unfinished("r").unwrap();
        let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let errand = Errand {
            to,
            present: Arc::new(AtomicU32::new(attempt)),
            attempt,
            job: lost(&entries[0]).unwrap(),
            server: format!("http://{}", nobody.local_addr().unwrap()),
            options: Options {
                wait: Duration::ZERO,
                answer: Duration::from_millis(300),
                ..Options::default()
            },
        };
        (errand, heard)
    }

    fn words(mut heard: mpsc::UnboundedReceiver<Event>) -> Vec<ResendWord> {
        let mut words = Vec::new();
        while let Ok(Event::Resend(resend)) = heard.try_recv() {
            words.push(resend.word);
        }
        words
    }

    #[test]
    fn the_entry_of_the_vault_is_the_rules_job() {
        let tmp = tempfile::tempdir().unwrap();
        let (errand, _) = errand(&kept(tmp.path(), 1), 2);
        let job = &errand.job;
        assert_eq!((job.entry.as_str(), job.job.as_str()), (JOB, "0123"));
        assert_eq!((job.attempt, job.failed), (Some(1), false));
    }

    #[test]
    fn a_server_that_never_comes_up_is_left_with_its_attempt() {
        let tmp = tempfile::tempdir().unwrap();
        let vault = kept(tmp.path(), 1);
        let (errand, heard) = errand(&vault, 2);
        let present = Arc::clone(&errand.present);
        let sender = std::thread::spawn(move || errand.run(Ok(vault)));
        present.store(3, Ordering::Release);
        sender.join().unwrap();
        assert_eq!(words(heard), [], "another attempt's thread sends it");
        assert!(tmp.path().join(JOB).exists());
    }

    /// A FramePack that lets the first two requests stand and then works.
    fn stalls(listener: &std::net::TcpListener) {
        use std::io::{Read, Write};
        let mut open = Vec::new();
        for (n, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            if n < 2 {
                open.push(stream);
                continue;
            }
            let (mut asked, pause) = (Vec::new(), Duration::from_millis(100));
            stream.set_read_timeout(Some(pause)).unwrap();
            // until nothing more comes
            let _waiting = stream.read_to_end(&mut asked);
            let asked = String::from_utf8_lossy(&asked).into_owned();
            let body = match asked.split(' ').nth(1).unwrap() {
                "/gradio_api/upload" => r#"["/a.png"]"#,
                "/gradio_api/call/process" => r#"{"event_id": "e"}"#,
                _ => "event: complete\ndata: [{\"path\": \"/o/a.mp4\"}]\n\n",
            };
            let length = body.len();
            let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length";
            write!(stream, "{head}: {length}\r\n\r\n{body}").unwrap();
        }
    }

    #[test]
    fn a_server_that_stalls_gets_the_job_once_it_answers() {
        let tmp = tempfile::tempdir().unwrap();
        let vault = kept(tmp.path(), 1);
        let (mut errand, mut heard) = errand(&vault, 2);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        errand.server = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || stalls(&listener));
        errand.run(Ok(vault));
        let (mut told, mut said) = (Vec::new(), Vec::new());
        while let Ok(event) = heard.try_recv() {
            match event {
                Event::Resend(resend) => told.push(resend.word),
                Event::Notice { text, .. } => said.push(text),
                other => panic!("{other:?}"),
            }
        }
        assert!(
            matches!(
                &told[..],
                [ResendWord::Sent { .. }, ResendWord::Ended { files: 1, .. }]
            ),
            "{told:?}"
        );
        assert_eq!(said.len(), 1, "once, and not each time: {said:?}");
        assert!(said[0].contains("does not answer"), "{said:?}");
    }

    #[test]
    fn a_job_that_was_started_in_the_browser_is_not_sent_as_well() {
        let tmp = tempfile::tempdir().unwrap();
        let vault = kept(tmp.path(), 2);
        let (errand, heard) = errand(&vault, 2);
        errand.run(Ok(vault));
        let job = "0123".to_owned();
        assert_eq!(words(heard), [ResendWord::There { job }]);
    }

    #[test]
    fn an_entry_that_is_gone_and_an_address_elsewhere_are_told() {
        let tmp = tempfile::tempdir().unwrap();
        let vault = kept(tmp.path(), 1);
        let (first, heard) = errand(&vault, 2);
        let (mut other, heard_too) = errand(&vault, 2);
        other.server = "http://192.168.0.7:7860".to_owned();
        other.run(Ok(vault.clone()));
        std::fs::remove_file(tmp.path().join(JOB)).unwrap();
        first.run(Ok(vault));
        for (heard, why) in [(heard, "not in the vault"), (heard_too, "not this machine")] {
            let words = words(heard);
            assert!(
                matches!(&words[..], [ResendWord::Failed { why: told, .. }] if told.contains(why)),
                "{words:?}"
            );
        }
    }
}
