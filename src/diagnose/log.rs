//! The text of a console without readings: what it says is all there is. A hang says nothing;
//! only the times that a log has before its lines may show one.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::Instant;

use crate::causes::Known;
use crate::detect::{Detector, kernel_fault, says_that_the_card_comes_back};
use crate::model::{
    ActionId, Cite, CiteKind, Considered, Envelope, Event, ExitStatus, Health, JobChange, Limits,
    Line, Mono, Phase, Remedy, Stream, Verdict, VerdictId,
};
use crate::policy::{RemedyFacts, explained};
use crate::workload::adapter::{self, Adapter, AdapterKind, LaunchInfo};
use crate::workload::lines::{LineSplitter, MAX_TEXT};

use super::input::{InputError, not_text};
use super::meta::Meta;
use super::notes::Notes;
use super::paste::Paste;
use super::prefix::Prefixes;
use super::report::{Cited, Report, SourceKind, Stats};
use super::standstill::where_it_stands;
use super::story::{Names, Story};
use super::tail::Tail;
use super::times::{Before, Times};
use super::{case, head, player, prompt, shell, standstill};

/// Bytes by which the program and the prefixes are known.
const HEAD: u64 = 256 * 1024;
/// Bytes read at a time.
const PORTION: usize = 64 * 1024;
/// A traceback this many lines before the end is what ended the program.
const LAST_LINES: u64 = 60;

/// Why no rule about a job at work is asked.
const NO_READINGS: &str = "a text has no readings";

/// What is said where nothing is found.
const NO_FAULT: &str = "the text alone shows no fault; a hang cannot be seen in a pasted log";

/// Judges a file of text.
pub(super) fn file(path: &Path) -> Result<Report, InputError> {
    let failed = |source| InputError::Io {
        path: path.to_owned(),
        source,
    };
    let name = path.display().to_string();
    let file = File::open(path).map_err(failed)?;
    of(file, &name, Notes::default(), &Meta::default(), None)
}

/// Judges standard input.
pub(super) fn stdin() -> Result<Report, InputError> {
    of(
        io::stdin().lock(),
        "-",
        Notes::default(),
        &Meta::default(),
        None,
    )
}

/// Judges the console of a case that has no times.
pub(super) fn of_case(
    path: &Path,
    meta: &Meta,
    exit: Option<ExitStatus>,
    notes: Notes,
) -> Result<Report, InputError> {
    let failed = |source| InputError::Io {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(failed)?;
    of(file, &path.display().to_string(), notes, meta, exit)
}

/// The family of programs that a console's beginning shows.
pub(super) fn kind_of(beginning: &[u8]) -> AdapterKind {
    let lines = Paste::first_log(&String::from_utf8_lossy(beginning));
    let prefixes = Prefixes::of(lines.iter().map(String::as_str));
    AdapterKind::detect_lines(lines.iter().map(|l| prefixes.strip(l)))
}

fn of(
    mut input: impl Read,
    name: &str,
    mut notes: Notes,
    meta: &Meta,
    exit: Option<ExitStatus>,
) -> Result<Report, InputError> {
    let failed = |source| InputError::Io {
        path: name.into(),
        source,
    };
    let mut beginning = Vec::new();
    input
        .by_ref()
        .take(HEAD)
        .read_to_end(&mut beginning)
        .map_err(failed)?;
    let empty = beginning.trim_ascii().is_empty();
    let empty = empty.then_some("it is empty; paste what the program printed on its console");
    if let Some(what) = not_text(&beginning).or(empty) {
        let name = if name == "-" { "standard input" } else { name };
        return Err(InputError::NoText {
            name: name.to_owned(),
            what,
        });
    }
    let mut reader = Reader::new(&beginning, meta);
    if reader.prefixes.are_there() {
        notes.say("the times and names before the lines are taken off and not judged");
    }
    reader.bytes(&beginning);
    drop(beginning);
    let mut portion = vec![0; PORTION];
    loop {
        match input.read(&mut portion) {
            Ok(0) => break,
            Ok(n) => reader.bytes(portion.get(..n).unwrap_or_default()),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(failed(e)),
        }
    }
    Ok(reader.report(name, notes, meta, exit))
}

/// Whether the verdict itself rests on something that the text says, not only what was
/// noticed beside it.
fn rests_on_words(verdict: &Verdict) -> bool {
    verdict
        .findings
        .first()
        .is_some_and(|f| !f.cites.is_empty())
}

struct Reader {
    splitter: LineSplitter,
    clock: Instant,
    prefixes: Prefixes,
    paste: Paste,
    adapter: Box<dyn Adapter + Send>,
    detector: Detector,
    tail: Tail,
    seq: u64,
    kernel_lines: u64,
    /// Line of the last traceback.
    traceback: Option<u64>,
    /// A node of ComfyUI failed.
    node_failed: bool,
    /// How the program ended by the words of its shell, and where they stand; nothing
    /// has moved since.
    ended: Option<(ExitStatus, Cite)>,
    row: u64,
    /// A job has failed, and what it said is not judged yet.
    failed: bool,
    /// The beginning of a job was seen.
    began: bool,
    /// The failures of earlier jobs, one of each verdict.
    earlier: Vec<Verdict>,
    /// Lines of which the middle was cut.
    cut: u64,
    prompt: prompt::Prompt,
    times: Times,
    /// Where the last traceback was, if its frames tell.
    frame: Option<Phase>,
}

impl Reader {
    fn new(beginning: &[u8], meta: &Meta) -> Self {
        let text = String::from_utf8_lossy(beginning);
        let lines = Paste::first_log(&text);
        let prefixes = Prefixes::of(lines.iter().map(String::as_str));
        let paste = Paste::of(text.lines());
        let kind = if meta.argv.is_empty() {
            kind_of(beginning)
        } else {
            head::kind(meta)
        };
        let launch = LaunchInfo {
            argv: meta.argv.clone(),
            on_cpu: false,
        };
        let mut reader = Self {
            splitter: LineSplitter::new(1, Stream::Stderr),
            clock: Instant::now(),
            prefixes,
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
            prompt: prompt::Prompt::default(),
            times: Times::default(),
            frame: None,
        };
        reader.detector.begin_attempt(Mono::ZERO, false);
        reader.post_start();
        reader
    }

    fn bytes(&mut self, bytes: &[u8]) {
        let mut lines = Vec::new();
        self.splitter.feed(bytes, self.clock, &mut lines);
        self.lines(lines);
    }

    fn lines(&mut self, lines: Vec<Line>) {
        for mut line in lines {
            self.times.line(line.row, &line.text, self.before());
            if self.prefixes.are_there() {
                let text = std::mem::take(&mut line.text);
                self.prefixes.strip(&text).clone_into(&mut line.text);
            }
            self.row = line.row;
            self.cut += u64::from(line.truncated);
            let said = self.paste.read(line.row, &line.text).map(Cow::into_owned);
            let Some(said) = said else {
                continue;
            };
            line.text = said;
            if let Some(kind) = self.paste.other_program(line.row, &line.text) {
                self.other_program(kind);
            }
            if line.text.contains("Traceback (most recent call last)") {
                self.traceback = Some(line.row);
                self.frame = None;
            }
            self.frame = standstill::phase_of_frame(&line.text).or(self.frame);
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
        let told = rests_on_words(&verdict);
        if told && !verdict.id.is_no_fault() {
            self.earlier.push(self.prescribed(verdict));
        }
        self.adapter = adapter::new(kind, &LaunchInfo::default());
        self.detector = Detector::new(Limits::default(), None);
        self.detector.begin_attempt(Mono::ZERO, false);
        (self.traceback, self.failed, self.began) = (None, false, false);
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
    fn prescribed(&self, mut verdict: Verdict) -> Verdict {
        let remedy = self.remedy(&mut verdict);
        verdict.action = remedy.action;
        verdict.remedy = Some(remedy);
        verdict
    }

    /// What is known beside the words.
    fn known(&self) -> Known<'_> {
        Known {
            container: self.prefixes.are_of_a_container(),
            program: Some(self.adapter.kind().as_str()),
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

    fn post(&mut self, event: Event) {
        self.tail.observe(&event);
        self.seq += 1;
        self.detector.observe(&Envelope {
            seq: self.seq,
            at: Mono::ZERO,
            from: None,
            event,
        });
    }

    fn in_flight(&self) -> bool {
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

    /// The hang that the log's own times show; where somebody ended the program it is the reason.
    fn stood(&self, fault: Option<&Verdict>) -> Option<Verdict> {
        let stood = self.times.stood()?;
        if fault.is_some_and(|f| f.id != VerdictId::Killed) {
            return None;
        }
        let blank = self.detector.end(Some(ExitStatus::Code(0)), Mono::ZERO);
        let mut verdict = self.prescribed(standstill::verdict(blank, stood));
        verdict.remedy = verdict
            .remedy
            .map(|r| standstill::with_tiles(r, stood.phase));
        Some(verdict)
    }

    /// What to do if the program stands still where the text ends.
    fn if_it_stands(&self, tail: &Tail) -> Option<&'static str> {
        let in_force = self.detector.actions_in_force(&self.known());
        standstill::advice(tail, self.detector.backend_in_text(), &in_force)
    }

    /// The judgement over the whole text; none: it shows no fault.
    fn judge(&mut self, exit: Option<ExitStatus>) -> Option<Verdict> {
        let mut lines = Vec::new();
        self.splitter.flush(&mut lines);
        self.lines(lines);
        let by_shell = self.ended.take().filter(|_| exit.is_none());
        let exit = exit.or(by_shell.as_ref().map(|(status, _)| *status));
        let recent = |at: u64| self.row.saturating_sub(at) <= LAST_LINES;
        let fatal = self.traceback.is_some_and(recent);
        if exit.is_some() || (self.in_flight() && fatal) || !self.adapter.is_server() && fatal {
            for event in self.adapter.finish(exit == Some(ExitStatus::Code(0))) {
                self.post(event);
            }
        }
        let verdict = self.detector.end(exit, Mono::ZERO);
        let mut verdict = self.prescribed(verdict);
        if let Some((status, cite)) = &by_shell {
            tell_shell(&mut verdict, *status, cite);
        }
        let told = rests_on_words(&verdict);
        (exit.is_some() || told).then_some(verdict)
    }

    fn report(
        mut self,
        name: &str,
        mut notes: Notes,
        meta: &Meta,
        exit: Option<ExitStatus>,
    ) -> Report {
        let before = self.tail.clone();
        let ends = exit.is_some() || self.ended.is_some();
        let mut fault = self.judge(exit).or_else(|| self.silent_end());
        if let Some(stood) = self.stood(fault.as_ref()) {
            self.earlier.extend(fault.replace(stood));
        } else if let Some(ended) = fault.as_mut().filter(|f| f.id == VerdictId::Killed) {
            self.explain_interrupt(ended, &before);
        }
        let fault = fault.map(not_asked);
        let names = InLog { name };
        let same = |v: &Verdict| fault.as_ref().is_some_and(|f| f.id == v.id);
        let mut earlier = std::mem::take(&mut self.earlier);
        earlier.retain(|v| !same(v));
        let told = fault.is_some() || !earlier.is_empty();
        if self.cut > 0 {
            notes.say(format!(
                "{} longer than {} KiB: the middle is cut and not judged",
                if self.cut == 1 {
                    "one line is".to_owned()
                } else {
                    format!("{} lines are", self.cut)
                },
                MAX_TEXT / 1024
            ));
        }
        notes.say(
            "text without readings: no reading of the card was judged; silence shows only where the lines have times, and slowness does not",
        );
        if !ends && fault.is_none() {
            notes.say("whether and how the program ended is not known");
        }
        let end = fault.unwrap_or_else(|| self.nothing(&before));
        let mut story = Story::default();
        for verdict in earlier.into_iter().map(not_asked) {
            story.tell(0.0, &verdict, &names);
        }
        story.tell(0.0, &end, &names);
        let mut report = story.report(SourceKind::Log, (&end, 0.0), &names, notes);
        report.history.clear();
        (report.onset_s, report.detected_at_s) = (None, None);
        report.confidence = report.confidence.filter(|_| told);
        name.clone_into(&mut report.path);
        report.find.clone_from(&self.tail.find);
        report.last_words = self.tail.words();
        report.read = self.paste.parts(self.adapter.kind().as_str());
        report.workload = case::workload(meta, self.adapter.kind());
        report.stats = Stats {
            lines: self.tail.lines,
            rows: 0,
            kernel_lines: self.kernel_lines,
            dropped: 0,
            duration_s: None,
        };
        report
    }

    /// A server that ended by itself without a word.
    fn silent_end(&self) -> Option<Verdict> {
        let cite = self
            .prompt
            .ended_alone()
            .filter(|_| self.adapter.is_server())?;
        let verdict = self.detector.end(Some(ExitStatus::Unknown), Mono::ZERO);
        let verdict = prompt::silent_end(verdict, &self.tail, cite)?;
        Some(self.prescribed(verdict))
    }

    /// Somebody who interrupts a job may have waited for it in vain.
    fn explain_interrupt(&self, ended: &mut Verdict, before: &Tail) {
        let mut at = before.clone();
        if let Some(phase) = self.frame {
            (at.phase, at.job) = (phase, Some(JobChange::Started));
            ended.phase = phase;
        }
        let remedy = ended.remedy.as_mut();
        let Some(remedy) = remedy.filter(|r| r.action == ActionId::None) else {
            return;
        };
        if let Some(advice) = self.if_it_stands(&at) {
            ended.phase = at.phase;
            remedy.why = format!("{}. If it stood still there: {advice}", remedy.why);
        }
    }

    /// What is said where the text shows no fault.
    fn nothing(&self, tail: &Tail) -> Verdict {
        let (id, health) = match tail.job {
            Some(JobChange::Waiting) => (VerdictId::IdleWaiting, Health::Healthy),
            Some(JobChange::Done) => (VerdictId::Healthy, Health::Healthy),
            _ => (VerdictId::Healthy, Health::Blind),
        };
        let mut verdict = self.detector.end(Some(ExitStatus::Code(0)), Mono::ZERO);
        verdict.id = id;
        verdict.health = health;
        verdict.phase = tail.phase;
        verdict.findings.clear();
        verdict.sentence = format!("{NO_FAULT}; {}", where_it_stands(tail));
        if let Some(advice) = self.if_it_stands(tail) {
            verdict.remedy = Some(standstill::nothing_but(format!(
                "nothing, as far as the text tells. If it stands still there for more than some minutes: {advice}"
            )));
        }
        let mut verdict = not_asked(verdict);
        if let Some(own) = verdict.considered.first_mut() {
            own.verdict = id;
            own.why.clone_from(&verdict.sentence);
        }
        verdict
    }
}

/// A line as evidence.
pub(super) fn cite(seq: u64, row: u64, text: &str) -> Cite {
    Cite {
        seq,
        at: Mono::ZERO,
        kind: CiteKind::Console,
        line: Some(row),
        text: text.trim().chars().take(Cite::MOST).collect(),
    }
}

/// The rules about a job at work need what a text does not hold.
fn not_asked(mut verdict: Verdict) -> Verdict {
    let rules = verdict.considered.iter_mut();
    for rule in rules.filter(|c| c.is_not_asked()) {
        rule.why = format!("{}{NO_READINGS}", Considered::NOT_ASKED);
    }
    verdict
}

/// The shell's words as evidence, and what they leave open.
fn tell_shell(verdict: &mut Verdict, status: ExitStatus, cite: &Cite) {
    let words = format!("\"{}\"", cite.text);
    let killed = matches!(status, ExitStatus::Signal(9));
    if verdict.id == VerdictId::Killed && verdict.cause.is_some() {
        verdict.sentence = format!("{} Its last words: {words}", verdict.sentence);
    } else if verdict.id == VerdictId::Killed && killed {
        verdict.sentence =
            format!("{words}: the program was killed from outside; the text does not say by whom");
    } else if verdict.id == VerdictId::Killed && matches!(status, ExitStatus::Signal(2)) {
        verdict.sentence = format!("{words}: the user interrupted the program (Ctrl-C)");
        verdict.action = ActionId::None;
        if let Some(remedy) = &mut verdict.remedy {
            (remedy.action, remedy.tier) = (ActionId::None, 0);
            "it was interrupted on purpose; start it again when you like"
                .clone_into(&mut remedy.why);
        }
    } else if verdict.id == VerdictId::Killed {
        verdict.sentence =
            format!("{words}: the program was ended from outside; by whom is not known");
    } else if verdict.id == VerdictId::CrashSegv
        && verdict.cause.is_none()
        && matches!(status, ExitStatus::Signal(_))
    {
        verdict.sentence = format!("{words}: the program crashed, without a word about why");
    }
    if let Some(first) = verdict.findings.first_mut()
        && first.cites.is_empty()
    {
        first.text.clone_from(&verdict.sentence);
        first.seqs = vec![cite.seq];
        first.cites = vec![cite.clone()];
    }
}

struct InLog<'a> {
    name: &'a str,
}

impl Names for InLog<'_> {
    fn cited(&self, cite: &Cite) -> Cited {
        let of_text = matches!(cite.kind, CiteKind::Console | CiteKind::Kernel);
        Cited {
            kind: cite.kind,
            file: of_text.then(|| self.name.to_owned()),
            line: cite.line,
            t_s: None,
            text: cite.text.clone(),
        }
    }

    fn seconds(&self, _at: Mono) -> f64 {
        0.0
    }
}
