//! The adapter itself: what all programs have in common, and the dialect in force.

use super::bars::{Bars, Turn};
use super::narrator::{Job, Narrator, OnCpu};
use super::program::{Dialect, total, unknown_bar};
use super::tqdm::{self, Bar};
use super::traceback::{Exception, Traceback};
use super::wording::{self, BarKind};
use super::{Adapter, AdapterKind, LaunchInfo, command};
use crate::model::{Event, Line, Phase, Stream};
use crate::workload::miopen::{self, FindReader};

/// Downloads followed at a time.
const MOST_DOWNLOADS: usize = 64;

#[derive(Debug)]
pub(super) struct Console {
    kind: AdapterKind,
    dialect: Box<dyn Dialect>,
    narrator: Narrator,
    find: FindReader,
    tracebacks: [Traceback; 2],
    last_exception: Option<String>,
    /// Names of downloads that are under way.
    downloads: Vec<String>,
    bars: Bars,
    /// For each stream: its last piece was a state of a bar that is rewritten.
    rewritten: [bool; 2],
    /// The beginning was not seen.
    joined: bool,
    /// The program is our own worker, whose last word is why it failed.
    own: bool,
}

impl Console {
    pub(super) fn new(kind: AdapterKind, launch: &LaunchInfo) -> Self {
        let server = kind.serves(&launch.argv);
        let decodes_on_cpu = launch.on_cpu || kind.decodes_on_cpu(&launch.argv);
        let on_cpu = OnCpu::new(command::asks_for_cpu(&launch.argv), decodes_on_cpu);
        Self {
            kind,
            dialect: kind.program().dialect(),
            narrator: Narrator::new(server, on_cpu),
            find: FindReader::default(),
            tracebacks: [Traceback::default(), Traceback::default()],
            last_exception: None,
            downloads: Vec::new(),
            bars: Bars::default(),
            rewritten: [false; 2],
            joined: false,
            own: crate::model::worker::is_own_worker(&launch.argv),
        }
    }

    /// Changes over when a line can only be another program's.
    fn refine(&mut self, text: &str) {
        if let Some(kind) = self.kind.refined_by(text) {
            self.kind = kind;
            self.dialect = kind.program().dialect();
        }
    }

    fn text(&mut self, text: &str, stream: Stream) {
        if self.own
            && stream == Stream::Stderr
            && let Some(why) = why_own_worker_failed(text)
        {
            self.last_exception = Some(why.to_owned());
            // names of files and weights in it are no steps
            return;
        }
        let traceback = &mut self.tracebacks[usize::from(stream == Stream::Stderr)];
        let was_open = traceback.is_open();
        if let Some(e) = traceback.feed(text) {
            self.exception(&e);
            return;
        }
        if was_open || traceback.is_open() {
            // Another stream's lines, or another thread's, can stand in between.
            if !text.starts_with(' ') && !text.contains("Traceback") {
                self.said(text);
            }
            return;
        }
        self.said(text);
    }

    fn said(&mut self, text: &str) {
        self.refine(text);
        let n = &mut self.narrator;
        if self.dialect.line(text, n) {
            return;
        }
        let before = n.job;
        wording::line(text, self.dialect.knows_steps(), n);
        self.dialect.after_common_words(before, n);
    }

    fn exception(&mut self, e: &Exception) {
        if !e.in_request {
            self.last_exception = Some(e.text.clone());
        }
        self.dialect.exception(e, &mut self.narrator);
    }

    /// `closed`: its loop was left before it was full.
    fn bar(&mut self, bar: &Bar, closed: bool) {
        if bar.desc.is_some() {
            let desc = bar.desc.clone().unwrap_or_default();
            self.refine(&desc);
        }
        let own = self.dialect.kind_of(bar, &self.narrator);
        let kind = own.unwrap_or_else(|| wording::classify(bar));
        if self.bars.turn(bar) == Turn::Repainted {
            let sampling = matches!(kind, BarKind::Sampling { said } if self.samples(bar, said));
            // steps of no job: an error that ended one is not survived by a repaint
            let sampling = sampling && self.narrator.reads_steps();
            self.narrator.progress(bar, sampling);
            if sampling && closed {
                self.dialect.bar_closed(&mut self.narrator);
            }
            return;
        }
        if kind != BarKind::Of(Phase::Download) {
            // another bar moves: what was fetched is not waited for any more
            self.downloads.clear();
        }
        match kind {
            BarKind::Sampling { said } => self.sampling(bar, said),
            BarKind::Of(Phase::Download) => self.download(bar),
            BarKind::Of(Phase::ModelLoad) if wording::names_file(bar) => self.file(bar),
            BarKind::Weights => {
                self.dialect.weights(bar, &mut self.narrator);
                self.file(bar);
            }
            BarKind::Of(phase) => {
                self.dialect.step(bar, phase, &mut self.narrator);
                self.narrator.progress(bar, false);
                self.narrator.enter(wording::follows(bar, phase));
            }
            BarKind::Other => {
                self.narrator.progress(bar, false);
                if bar.counts_steps() && !wording::counts_a_chore(bar) {
                    unknown_bar(bar, &mut self.narrator);
                }
                total(bar, &mut self.narrator);
            }
        }
    }

    /// Whether a bar counts steps of denoising. A program that we know nothing about may
    /// count anything, unless it serves.
    fn samples(&self, bar: &Bar, said: bool) -> bool {
        let known = self.narrator.server || self.dialect.knows_steps();
        said || (known && bar.counts_steps())
    }

    fn sampling(&mut self, bar: &Bar, said: bool) {
        let sampling = self.samples(bar, said);
        let n = &mut self.narrator;
        n.progress(bar, sampling);
        if sampling && bar.done > 0.0 {
            // what went wrong before was survived
            self.last_exception = None;
        }
        let within = matches!(n.phase(), Phase::Delight | Phase::Texture);
        // a bar of files, rows or frames counts no steps
        if !said && (within || !bar.counts_steps()) {
            return;
        }
        self.dialect.bar(bar, sampling, n);
    }

    /// A bar over the parts of a file that is read. Once it is full, what follows is not
    /// known.
    fn file(&mut self, bar: &Bar) {
        let n = &mut self.narrator;
        n.progress(bar, false);
        if !bar.complete() {
            n.enter(Phase::ModelLoad);
        } else if n.phase() == Phase::ModelLoad {
            n.enter(Phase::Unknown);
        }
    }

    fn download(&mut self, bar: &Bar) {
        let name = bar.desc.clone().unwrap_or_default();
        self.downloads.retain(|d| *d != name);
        let n = &mut self.narrator;
        n.progress(bar, false);
        if !bar.complete() {
            if self.downloads.len() < MOST_DOWNLOADS {
                self.downloads.push(name);
            }
            n.enter(Phase::Download);
        } else if self.downloads.is_empty() && n.phase() == Phase::Download {
            // What was fetched is read next.
            n.enter(Phase::ModelLoad);
        }
    }
}

/// The reason in the last line of our own worker, in whichever of its two programs it is.
fn why_own_worker_failed(text: &str) -> Option<&str> {
    let said = text
        .strip_prefix("framepack-tui worker: ")
        .or_else(|| text.strip_prefix("framepack-tui: "))?;
    let jobs = ["failed to decode: ", "failed to encode: "];
    let why = jobs.iter().find_map(|job| said.strip_prefix(job));
    Some(why.unwrap_or(said))
}

impl Adapter for Console {
    fn start(&mut self) -> Vec<Event> {
        self.narrator.enter(Phase::Startup);
        if self.own {
            // its command names the job
            self.narrator.begin_script_job();
        }
        self.narrator.take()
    }

    fn join(&mut self, job: bool) -> Vec<Event> {
        self.joined = true;
        if job {
            self.narrator.assume_job();
        }
        self.narrator.enter(Phase::Unknown);
        self.narrator.take()
    }

    fn feed(&mut self, line: &Line) -> Vec<Event> {
        if miopen::is_miopen(&line.text) {
            for mark in self.find.feed(&line.text) {
                self.narrator.find(mark);
            }
            return self.narrator.take();
        }
        for mark in self.find.feed_other(&line.text) {
            self.narrator.find(mark);
        }
        let text = wording::without_prefix(&line.text);
        // a bar ends its line when its loop is left; one that goes on is rewritten
        let stream = usize::from(line.stream == Stream::Stderr);
        let ended = std::mem::replace(&mut self.rewritten[stream], line.bar) && !line.bar;
        if let Some(bar) = tqdm::parse(text) {
            let closed = ended && !bar.complete();
            self.bar(&bar, closed);
            if closed {
                self.narrator.close_bar();
            }
        } else if let Some(bar) = tqdm::parse_step(text) {
            self.bar(&bar, false);
        } else {
            self.text(text, line.stream);
        }
        if self.joined && self.narrator.in_the_middle() {
            self.narrator.assume_job();
        }
        if self.narrator.begins_job() {
            self.last_exception = None;
        }
        if self.find.is_open()
            && self.narrator.moved_on()
            && let Some(mark) = self.find.close()
        {
            self.narrator.find(mark);
        }
        self.narrator.take()
    }

    fn finish(&mut self, success: bool) -> Vec<Event> {
        if let Some(mark) = self.find.close() {
            self.narrator.find(mark);
        }
        let n = &mut self.narrator;
        if n.job != Job::NotYet {
            n.server = false;
        }
        if success {
            n.done();
        } else {
            let last = self.last_exception.as_deref();
            n.fail_at_exit(last.or_else(|| self.dialect.last_error()));
        }
        n.server = false;
        self.narrator.take()
    }

    fn kind(&self) -> AdapterKind {
        self.kind
    }

    fn is_server(&self) -> bool {
        self.narrator.server
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::model::JobChange;
    use crate::workload::lines::LineSplitter;

    fn why(argv: &str, stream: Stream) -> Option<String> {
        let launch = LaunchInfo {
            argv: argv.split(' ').map(str::to_owned).collect(),
            on_cpu: false,
        };
        let mut console = Console::new(AdapterKind::Generic, &launch);
        console.start();
        let (mut lines, mut splitter) = (Vec::new(), LineSplitter::new(1, stream));
        let said = b"framepack-tui worker: failed to decode: no room\n";
        splitter.feed(said, Instant::now(), &mut lines);
        for line in &lines {
            console.feed(line);
        }
        let end = console.finish(false);
        end.iter().find_map(|event| match event {
            Event::Job(JobChange::Failed { why }) => why.clone(),
            _ => None,
        })
    }

    /// Whether each state of a bar that these bytes show was closed.
    fn closed(said: &str) -> Vec<bool> {
        let launch = LaunchInfo {
            argv: ["python", "a.py"].map(str::to_owned).to_vec(),
            on_cpu: false,
        };
        let mut console = Console::new(AdapterKind::Generic, &launch);
        console.start();
        let (mut lines, mut splitter) = (Vec::new(), LineSplitter::new(1, Stream::Stderr));
        splitter.feed(said.as_bytes(), Instant::now(), &mut lines);
        splitter.flush(&mut lines);
        let events = lines.iter().flat_map(|line| console.feed(line));
        let bars = events.filter_map(|event| match event {
            Event::Progress(p) => Some(p.closed),
            _ => None,
        });
        bars.collect()
    }

    #[test]
    fn a_bar_that_ends_its_line_before_it_is_full_was_closed() {
        let state = |n| format!("\r {n}%|##  | {n}/20 [00:02<00:03, 5.00it/s]");
        let left = [state(3), state(4), state(4), "\ncancelled\n".to_owned()].concat();
        assert_eq!(closed(&left), [false, false, true]);
        let full = [state(3), state(20), "\n".to_owned()].concat();
        assert_eq!(closed(&full), [false, false]);
        // a file of lines: no state is rewritten
        let lines = left.replace('\r', "\n");
        assert_eq!(closed(&lines), [false; 3]);
        assert_eq!(closed(&[state(3), state(4)].concat()), [false, false]);
    }

    #[test]
    fn the_last_word_of_our_own_worker_is_no_step_of_its_job() {
        let launch = LaunchInfo {
            argv: ["framepack-tui", "worker", "decode"]
                .map(str::to_owned)
                .to_vec(),
            on_cpu: true,
        };
        let mut console = Console::new(AdapterKind::Generic, &launch);
        console.start();
        let (mut lines, mut splitter) = (Vec::new(), LineSplitter::new(1, Stream::Stderr));
        let said = b"framepack-tui worker: failed to decode: l.safetensors: latents: its number 0 is infinite: decode it again\n\
            framepack-tui worker: l.mp4: Decoding latents\n";
        splitter.feed(said, Instant::now(), &mut lines);
        let events: Vec<Event> = lines.iter().flat_map(|line| console.feed(line)).collect();
        assert_eq!((lines.len(), events), (2, Vec::new()));
    }

    #[test]
    fn our_own_worker_fails_for_the_reason_that_it_gave() {
        let own = "/bin/framepack-tui worker decode a --model m --output o";
        assert_eq!(why(own, Stream::Stderr), Some("no room".to_owned()));
        assert_eq!(why(own, Stream::Stdout), None);
        assert_eq!(why("python a.py", Stream::Stderr), None);
    }
}
