//! The adapter itself: what all programs have in common, and the dialect in force.

use super::bars::{Bars, Turn};
use super::comfyui::{self, Comfyui};
use super::framepack::{self, Framepack};
use super::narrator::{Job, Narrator, OnCpu};
use super::tqdm::{self, Bar};
use super::traceback::{Exception, Traceback};
use super::wording::{self, BarKind};
use super::{Adapter, AdapterKind, LaunchInfo, detect, scripts};
use crate::model::{Event, Line, Phase, Stream};
use crate::workload::miopen::{self, FindReader};

/// Downloads followed at a time.
const MOST_DOWNLOADS: usize = 64;

#[derive(Debug)]
enum Dialect {
    Framepack(Framepack),
    Comfyui(Comfyui),
    Diffusers,
    Generic,
}

impl Dialect {
    fn new(kind: AdapterKind) -> Self {
        match kind {
            AdapterKind::Framepack => Self::Framepack(Framepack::default()),
            AdapterKind::Comfyui => Self::Comfyui(Comfyui::default()),
            AdapterKind::Diffusers => Self::Diffusers,
            AdapterKind::Generic => Self::Generic,
        }
    }

    const fn kind(&self) -> AdapterKind {
        match self {
            Self::Framepack(_) => AdapterKind::Framepack,
            Self::Comfyui(_) => AdapterKind::Comfyui,
            Self::Diffusers => AdapterKind::Diffusers,
            Self::Generic => AdapterKind::Generic,
        }
    }
}

#[derive(Debug)]
pub(super) struct Console {
    dialect: Dialect,
    narrator: Narrator,
    find: FindReader,
    tracebacks: [Traceback; 2],
    last_exception: Option<String>,
    /// Names of downloads that are under way.
    downloads: Vec<String>,
    bars: Bars,
    /// The beginning was not seen.
    joined: bool,
    /// The program is our own worker, whose last word is why it failed.
    own: bool,
}

impl Console {
    pub(super) fn new(kind: AdapterKind, launch: &LaunchInfo) -> Self {
        let server = detect::expects_server(kind, &launch.argv);
        let on_cpu = OnCpu::new(detect::asks_for_cpu(&launch.argv), launch.on_cpu);
        Self {
            dialect: Dialect::new(kind),
            narrator: Narrator::new(server, on_cpu),
            find: FindReader::default(),
            tracebacks: [Traceback::default(), Traceback::default()],
            last_exception: None,
            downloads: Vec::new(),
            bars: Bars::default(),
            joined: false,
            own: crate::model::worker::is_own_worker(&launch.argv),
        }
    }

    /// Changes over when a line can only be another program's.
    fn refine(&mut self, text: &str) {
        let is = match self.dialect {
            Dialect::Framepack(_) if !comfyui::is_unmistakable(text) => return,
            Dialect::Comfyui(_) => return,
            _ if comfyui::is_unmistakable(text) => AdapterKind::Comfyui,
            _ if framepack::is_unmistakable(text) => AdapterKind::Framepack,
            Dialect::Generic if text.contains("Loading pipeline components") => {
                AdapterKind::Diffusers
            }
            _ => return,
        };
        self.dialect = Dialect::new(is);
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
        let known = match &mut self.dialect {
            Dialect::Framepack(f) => f.line(text, n),
            Dialect::Comfyui(c) => c.line(text, n),
            Dialect::Diffusers | Dialect::Generic => scripts::line(text, n),
        };
        if known {
            return;
        }
        let before = n.job;
        wording::line(text, !matches!(self.dialect, Dialect::Generic), n);
        // A server of unknown make ends its job with the result.
        let plain = matches!(self.dialect, Dialect::Diffusers | Dialect::Generic);
        if plain && n.server && before == Job::InFlight && n.phase() == Phase::Save {
            n.done();
        }
    }

    fn exception(&mut self, e: &Exception) {
        if !e.in_request {
            self.last_exception = Some(e.text.clone());
        }
        let n = &mut self.narrator;
        // ComfyUI says itself which exception ended a job; a script goes on or exits.
        match &mut self.dialect {
            Dialect::Framepack(f) => f.exception(e, n),
            // a server whose jobs are its requests: the request failed, so did the job
            Dialect::Diffusers | Dialect::Generic if n.server && fails(e, n.in_flight()) => {
                if e.is_interrupt() {
                    n.wait();
                } else {
                    n.fail(Some(&e.text));
                }
            }
            Dialect::Comfyui(_) | Dialect::Diffusers | Dialect::Generic => {}
        }
    }

    fn bar(&mut self, bar: &Bar) {
        if bar.desc.is_some() {
            let desc = bar.desc.clone().unwrap_or_default();
            self.refine(&desc);
        }
        let kind = wording::classify(bar);
        if self.bars.turn(bar) == Turn::Repainted {
            let sampling = matches!(kind, BarKind::Sampling { said } if self.samples(bar, said));
            // steps of no job: an error that ended one is not survived by a repaint
            let sampling = sampling && self.narrator.reads_steps();
            self.narrator.progress(bar, sampling);
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
            BarKind::Of(phase) => {
                if matches!(self.dialect, Dialect::Diffusers | Dialect::Generic) {
                    scripts::step(bar, phase, &mut self.narrator);
                }
                self.narrator.progress(bar, false);
                self.narrator.enter(wording::follows(bar, phase));
            }
            BarKind::Other => {
                self.narrator.progress(bar, false);
                scripts::total(bar, &mut self.narrator);
            }
        }
    }

    /// Whether a bar counts steps of denoising. A program that we know nothing about may
    /// count anything, unless it serves.
    fn samples(&self, bar: &Bar, said: bool) -> bool {
        let known = self.narrator.server || !matches!(self.dialect, Dialect::Generic);
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
        match &mut self.dialect {
            Dialect::Framepack(f) => f.bar(bar, n),
            Dialect::Comfyui(c) => c.bar(bar, n),
            Dialect::Generic if !sampling => scripts::unnamed_bar(bar, n),
            Dialect::Diffusers | Dialect::Generic => scripts::bar(bar, n),
        }
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

/// Whether an exception that a server of unknown make printed ended its job: not what its
/// own code stumbled over, nor an extension beside the job.
const fn fails(e: &Exception, in_flight: bool) -> bool {
    in_flight && !e.by_server && (e.in_request || !e.aside)
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
        if let Some(bar) = tqdm::parse(text) {
            self.bar(&bar);
        } else if let Some(bar) = tqdm::parse_step(text) {
            self.bar(&bar);
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
            n.fail_at_exit(self.last_exception.as_deref());
        }
        n.server = false;
        self.narrator.take()
    }

    fn kind(&self) -> AdapterKind {
        self.dialect.kind()
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
