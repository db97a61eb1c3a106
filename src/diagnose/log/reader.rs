//! Reads the lines of a text into the detector.

use std::borrow::Cow;
use std::time::Instant;

use crate::causes::{Known, Pasted};
use crate::detect::verdicts::RemedyFacts;
use crate::detect::{Detector, kernel_fault, phase_of_frame, says_that_the_card_comes_back};
use crate::model::{
    Cite, Envelope, Event, ExitStatus, JobChange, Limits, Line, Mono, Phase, Remedy, Stream,
    Verdict,
};
use crate::policy::explained;
use crate::workload::adapter::{self, Adapter, AdapterKind, LaunchInfo};
use crate::workload::lines::LineSplitter;

use super::{cite, kind_of};
use crate::diagnose::join::Joiner;
use crate::diagnose::meta::Meta;
use crate::diagnose::paste::Paste;
use crate::diagnose::prefix::Prefixes;
use crate::diagnose::prompt::Prompt;
use crate::diagnose::tail::Tail;
use crate::diagnose::times::{Before, Times};
use crate::diagnose::{head, player, shell, standstill};

/// Whether the verdict itself rests on something that the text says, not only what was
/// noticed beside it.
pub(super) fn rests_on_words(verdict: &Verdict) -> bool {
    verdict
        .findings
        .first()
        .is_some_and(|f| !f.cites.is_empty())
}

/// What the lines of a text have told so far.
pub(super) struct Reader {
    pub(super) splitter: LineSplitter,
    pub(super) clock: Instant,
    pub(super) prefixes: Prefixes,
    pub(super) joiner: Joiner,
    pub(super) paste: Paste,
    pub(super) adapter: Box<dyn Adapter + Send>,
    pub(super) detector: Detector,
    pub(super) tail: Tail,
    pub(super) seq: u64,
    pub(super) kernel_lines: u64,
    /// Line of the last traceback.
    pub(super) traceback: Option<u64>,
    /// A node of ComfyUI failed.
    pub(super) node_failed: bool,
    /// How the program ended by the words of its shell, and where they stand; nothing
    /// has moved since.
    pub(super) ended: Option<(ExitStatus, Cite)>,
    pub(super) row: u64,
    /// A job has failed, and what it said is not judged yet.
    pub(super) failed: bool,
    /// The beginning of a job was seen.
    pub(super) began: bool,
    /// The failures of earlier jobs, one of each verdict.
    pub(super) earlier: Vec<Verdict>,
    /// Lines of which the middle was cut.
    pub(super) cut: u64,
    pub(super) prompt: Prompt,
    pub(super) times: Times,
    /// Where the last traceback was, if its frames tell.
    pub(super) frame: Option<Phase>,
    /// What stands beside the log, above or below it.
    pub(super) pasted: Pasted,
}

impl Reader {
    pub(super) fn new(beginning: &[u8], meta: &Meta) -> Self {
        let text = String::from_utf8_lossy(beginning);
        let lines = Paste::first_log(&text);
        let prefixes = Prefixes::of(lines.iter().map(String::as_str));
        let mut paste = Paste::of(text.lines());
        let joiner = Joiner::of(text.lines().map(|l| prefixes.strip(l)));
        let kind = if meta.argv.is_empty() {
            kind_of(beginning)
        } else {
            head::kind(meta)
        };
        if kind.runs_another() {
            paste.expect(kind);
        }
        let launch = LaunchInfo {
            argv: meta.argv.clone(),
            on_cpu: false,
        };
        let mut reader = Self {
            splitter: LineSplitter::new(1, Stream::Stderr),
            clock: Instant::now(),
            prefixes,
            joiner,
            paste,
            adapter: adapter::new(kind, &launch),
            detector: Detector::new(Limits::default(), None),
            tail: Tail::default(),
            seq: 0,
            kernel_lines: 0,
            traceback: None,
            node_failed: false,
            ended: None,
            row: 0,
            failed: false,
            began: false,
            earlier: Vec::new(),
            cut: 0,
            prompt: Prompt::default(),
            times: Times::default(),
            frame: None,
            pasted: Pasted::default(),
        };
        reader.detector.begin_attempt(Mono::ZERO, false);
        reader.post_start();
        reader
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        let mut lines = Vec::new();
        self.splitter.feed(bytes, self.clock, &mut lines);
        self.lines(lines);
    }

    pub(super) fn lines(&mut self, lines: Vec<Line>) {
        for mut line in lines {
            let printed = line.text.clone();
            if self.prefixes.are_there() {
                self.prefixes.strip(&printed).clone_into(&mut line.text);
            }
            for (line, printed) in self.joiner.take(line, printed) {
                self.line(line, &printed);
            }
        }
    }

    /// Takes a whole line; `printed`: with what stood before it.
    pub(super) fn line(&mut self, mut line: Line, printed: &str) {
        self.row = line.row;
        self.cut += u64::from(line.truncated);
        if !line.bar {
            self.pasted.observe(&line.text);
        }
        let said = self.paste.read(line.row, &line.text).map(Cow::into_owned);
        let kind = said
            .as_ref()
            .and_then(|said| self.paste.other_program(line.row, said));
        // the time that passed since another program's last line is no matter of either
        if let Some(kind) = kind {
            self.other_program(kind);
        }
        self.times.line(line.row, printed, self.before());
        let Some(said) = said else {
            return;
        };
        line.text = said;
        if line.text.contains("Traceback (most recent call last)") {
            self.traceback = Some(line.row);
            self.frame = None;
        }
        self.frame = phase_of_frame(&line.text).or(self.frame);
        self.node_failed |= line.text.contains("!!! Exception during processing");
        let (seq, row) = (self.seq, self.row);
        self.prompt
            .observe(&line.text, || cite(seq, row, &line.text));
        let of_kernel =
            kernel_fault(&line.text).is_some() || says_that_the_card_comes_back(&line.text);
        let kernel = of_kernel.then(|| line.text.clone());
        let end = shell::end(&line.text);
        let events = self.adapter.feed(&line);
        let text = end.map(|_| line.text.clone());
        self.post(Event::Line(line));
        if let (Some(status), Some(text)) = (end, text) {
            self.ends(status, &text);
        }
        for event in events {
            self.times.observe(&event);
            self.goes_on(&event);
            if let Event::Job(change) = &event {
                self.next_job(change);
            }
            self.post(event);
        }
        if let Some(text) = kernel {
            self.kernel(text);
        }
    }

    /// The line at hand says how the program ended. Of several such lines the first tells
    /// most: Python's or the C library's comes before the shell's.
    fn ends(&mut self, status: ExitStatus, text: &str) {
        let (seq, row) = (self.seq, self.row);
        self.ended
            .get_or_insert_with(|| (status, cite(seq, row, text)));
    }

    /// A program that was started again has not ended.
    fn goes_on(&mut self, event: &Event) {
        let moves = match event {
            Event::Job(JobChange::Started | JobChange::Waiting) | Event::Phase(_) => true,
            Event::Progress(p) => p.done > 0.0,
            _ => false,
        };
        // the bar that the shell's words were written behind is no news
        let here = self
            .ended
            .as_ref()
            .is_some_and(|(_, c)| c.line == Some(self.row));
        if moves && !here {
            self.ended = None;
        }
    }

    /// The jobs of a server fail one by one: what failed one is judged before the next
    /// begins, when its last words have come.
    fn next_job(&mut self, change: &JobChange) {
        let over = match change {
            JobChange::Started => std::mem::take(&mut self.failed),
            JobChange::Failed { .. } => {
                self.failed = true;
                false
            }
            JobChange::Done => self.failed,
            JobChange::Waiting => false,
        };
        // a text that begins within a traceback has no word of the job but its end
        let headless =
            !self.began && self.fails_in_a_job() && self.detector.has_just_failed(Mono::ZERO);
        self.began |= matches!(change, JobChange::Started);
        if over || headless {
            let verdict = self.detector.end(None, Mono::ZERO);
            let told = rests_on_words(&verdict);
            let known = self.earlier.iter().any(|v| v.id == verdict.id);
            if told && !known && !verdict.id.is_no_fault() {
                self.earlier.push(self.prescribed(verdict));
            }
        }
    }

    /// Whether what failed was a job though its beginning is cut off: no traceback of a start
    /// is there, or ComfyUI's words for the failure of a node are.
    const fn fails_in_a_job(&self) -> bool {
        self.traceback.is_none() || self.node_failed
    }

    /// The log of another program begins: what the one before told is judged, and nothing of
    /// it is known to the next.
    fn other_program(&mut self, kind: AdapterKind) {
        let exit = self.ended.take().map(|(status, _)| status);
        if exit.is_some() || self.traceback.is_some() {
            for event in self.adapter.finish(exit == Some(ExitStatus::Code(0))) {
                self.post(event);
            }
        }
        let verdict = self.detector.end(exit, Mono::ZERO);
        let told = rests_on_words(&verdict) && !verdict.id.is_no_fault();
        let fault = told.then(|| self.prescribed(verdict));
        let fault = fault.or_else(|| self.silent_end());
        let stood = self.stood(fault.as_ref());
        self.earlier.extend(fault);
        self.earlier.extend(stood);
        self.adapter = adapter::new(kind, &LaunchInfo::default());
        self.detector = Detector::new(Limits::default(), None);
        self.detector.begin_attempt(Mono::ZERO, false);
        (self.traceback, self.failed, self.began) = (None, false, false);
        (self.frame, self.node_failed) = (None, false);
        (self.times, self.prompt) = (Times::default(), Prompt::default());
        self.tail.next_program();
        self.post_start();
    }

    fn post_start(&mut self) {
        for event in self.adapter.start() {
            self.post(event);
        }
    }

    /// What is to be done about it, by all that the text has told so far.
    fn remedy(&self, verdict: &mut Verdict) -> Remedy {
        let facts = RemedyFacts {
            recovered: self.detector.card_recovered(),
            naive: self.detector.runs_naive(),
            copies: self.detector.was_copying(),
            cause: self.detector.explain(verdict, &self.known()),
            in_force: self.detector.actions_in_force(&self.known()),
            ..RemedyFacts::default()
        };
        explained(verdict, &facts)
    }

    /// A verdict with what is to be done about it.
    pub(super) fn prescribed(&self, mut verdict: Verdict) -> Verdict {
        let remedy = self.remedy(&mut verdict);
        verdict.action = remedy.action;
        verdict.remedy = Some(remedy);
        verdict
    }

    /// What is known beside the words.
    pub(super) fn known(&self) -> Known<'_> {
        Known {
            container: self.prefixes.are_of_a_container(),
            program: Some(self.adapter.kind().as_str()),
            pasted: Some(&self.pasted),
            ..Known::default()
        }
    }

    /// A kernel log that was pasted with the rest.
    fn kernel(&mut self, text: String) {
        self.kernel_lines += 1;
        let argv = ["python".to_owned()];
        if let Some(pid) = player::victim(&argv, std::iter::once(text.as_str())) {
            self.post(Event::Spawned {
                attempt: 1,
                pid,
                pgid: pid,
            });
        }
        self.post(Event::Kernel { text });
    }

    pub(super) fn post(&mut self, event: Event) {
        self.tail.observe(&event);
        self.seq += 1;
        self.detector.observe(&Envelope {
            seq: self.seq,
            at: Mono::ZERO,
            from: None,
            event,
        });
    }

    pub(super) fn in_flight(&self) -> bool {
        matches!(self.tail.job, Some(JobChange::Started))
    }

    /// Whether a job is at work: a script is one from its first phase on.
    fn is_at_work(&self) -> bool {
        self.in_flight() || self.tail.job.is_none() && standstill::is_work(self.tail.phase)
    }

    fn before(&self) -> Before {
        Before {
            in_flight: self.is_at_work(),
            phase: self.tail.phase,
            searches: self.tail.find.is_some(),
        }
    }
}
