//! MIOpen's lines about a Find into marks.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::{Entry, driver, entry, key, release};
use crate::model::{Convolution, FindFigures, FindMark, MiopenRelease, Workspace};
use crate::workload::pattern;

/// Follows the search of one process: at most one Find is open at a time.
#[derive(Debug, Default)]
pub struct FindReader {
    open: Option<String>,
    /// Opened by a driver line, so that the driver line of the convolution closes it.
    by_driver: bool,
    /// Which convolution it is for was told.
    named: bool,
    solver: String,
    advance: String,
    mode: String,
    release: MiopenRelease,
    workspace: Option<Workspace>,
}

static DRIVER: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"MIOpenDriver(?:\.exe)?\s+(?P<args>\S.*)$"));
static FIND_START: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^Find Start: (?P<key>[^,\s]+)(?:,\s*findMode: (?P<mode>\S+))?"));
static FIND_ENDED: LazyLock<Regex> = LazyLock::new(|| pattern(r"^Find Ended: (?P<key>\S+)"));
static MODE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^MIOPEN_FIND_MODE(?: = (?P<mode>\S+)| is set to (?P<set>\w+))"));
static SOLVER: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?x)
        ^Evaluating\ Solver:\ (?:[^:\s]+:)?(?P<evaluated>[\w<>]+)
        |^Starting\ search:\ (?P<started>[\w<>]+)
        |^(?P<tuned>[\w<>]+):\ Searching\ the\ best\ solution\ among
        |^(?P<visited>[A-Z]\w*(?:<[^>]*>)?)(?:\ \(not\ searchable\))?$",
    )
});
static RUNS_LEFT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"Runs left: (?P<left>\d+)(?:, min time so far: (?P<best>[\d.e+]+))?")
});
static TUNING: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^(?P<i>\d+)/(?P<failed>\d+)/(?P<n>\d+) (?P<best>[\d.e+]+),? .*ETA:\s*(?P<eta>[\d.]+)\s*sec",
    )
});
static BETTER: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^#(?P<i>\d+)/\d+/(?P<n>\d+) (?P<t>[\d.e+]+) < "));
static TIMED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^(?:solution\(current vs best\): )?(?P<solver>\w+(?:<[^>]*>)?): .*?(?P<ms>\d[\d.e+]*) (?:<|>=?) (?P<best>[\d.e+]+)",
    )
});
static WORKSPACE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"Solver <(?P<solver>\w+(?:<[^>]*>)?)>, workspace required: (?P<required>\d+), provided ptr: \S+ size: (?P<provided>\d+)",
    )
});

/// Driver arguments that name the convolution: without program, solver id and timing flag.
fn driver_key(message: &str) -> Option<String> {
    let c = DRIVER.captures(message)?;
    let mut words = c["args"].split_whitespace();
    let mut key: Vec<&str> = Vec::new();
    while let Some(w) = words.next() {
        if matches!(w, "-S" | "-t") {
            words.next();
        } else {
            key.push(w);
        }
    }
    Some(key.join(" "))
}

impl FindReader {
    /// Whether a Find is open.
    pub const fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Takes a line and gives what it says about the search, and about the versions.
    pub fn feed(&mut self, text: &str) -> Vec<FindMark> {
        let mut out = Vec::new();
        self.release(text, &mut out);
        if let Some(e) = entry(text) {
            self.entry(e, &mut out);
        } else if text.contains("MIOpen Error:") {
            out.extend(self.close());
        }
        out
    }

    /// Takes a line of the program itself: it may tell the versions.
    pub fn feed_other(&mut self, text: &str) -> Vec<FindMark> {
        let mut out = Vec::new();
        self.release(text, &mut out);
        out
    }

    fn release(&mut self, text: &str, out: &mut Vec<FindMark>) {
        if let Some(told) = release::of_line(text) {
            let before = self.release;
            self.release.learn(told);
            if self.release != before {
                out.push(FindMark::Release(self.release));
            }
        }
    }

    /// The program went on by its own lines: what was open is over. A search that only
    /// warnings told of has no closing line of its own.
    pub fn close(&mut self) -> Option<FindMark> {
        self.by_driver = false;
        self.solver.clear();
        self.advance.clear();
        self.workspace = None;
        self.open.take().map(|key| FindMark::Closed { key })
    }

    fn entry(&mut self, e: Entry<'_>, out: &mut Vec<FindMark>) {
        match e.function {
            "LogCmdFindConvolution" => {
                out.extend(self.close());
                if let Some(key) = driver_key(e.message) {
                    let conv = driver::convolution(&key);
                    self.open(key, conv, out);
                    self.by_driver = true;
                }
            }
            "LogCmdConvolution" => {
                let key = driver_key(e.message);
                if self.open.is_some() && (!self.by_driver || self.open == key) {
                    out.extend(self.close());
                }
            }
            _ => self.message(e, out),
        }
    }

    fn message(&mut self, e: Entry<'_>, out: &mut Vec<FindMark>) {
        let m = e.message;
        if let Some(c) = MODE.captures(m) {
            let mode = c.name("mode").or_else(|| c.name("set"));
            self.mode(mode.map_or("", |m| m.as_str()), out);
        } else if let Some(c) = FIND_START.captures(m) {
            let conv = key::convolution(&c["key"]);
            if self.open.is_none() {
                self.open(c["key"].to_owned(), conv, out);
            } else if !self.named {
                self.named = conv.is_some();
                out.extend(conv.map(FindMark::Convolution));
            }
            self.mode(c.name("mode").map_or("", |m| m.as_str()), out);
        } else if FIND_ENDED.is_match(m) || m.starts_with("FW Chosen Algorithm:") {
            out.extend(self.close());
        } else if m.starts_with("requestAlgoCount = ") && e.function.starts_with("Find") {
            if self.open.is_none() {
                self.open(FindMark::UNNAMED.to_owned(), None, out);
            }
        } else if e.function == "SearchImpl" && m.starts_with("Searching the best solution") {
            // Each of these begins the tuning of one more convolution.
            if !self.by_driver {
                out.extend(self.close());
                self.open(FindMark::UNNAMED.to_owned(), None, out);
            }
            self.solver("SearchImpl", out);
        } else {
            self.solver_or_advance(e, out);
        }
    }

    fn solver_or_advance(&mut self, e: Entry<'_>, out: &mut Vec<FindMark>) {
        let m = e.message;
        if let Some(c) = SOLVER.captures(m) {
            let visited = c
                .name("visited")
                .filter(|_| e.function == "FindSolutionImpl");
            let named = ["evaluated", "started", "tuned"]
                .iter()
                .find_map(|n| c.name(n));
            if let Some(name) = named.or(visited) {
                self.solver(name.as_str(), out);
            }
        } else if let Some(c) = WORKSPACE.captures(m) {
            self.workspace(&c, out);
        } else if let Some((figures, detail)) = timing(m) {
            self.advance(detail, figures, out);
        } else if let Some(detail) = other_advance(e) {
            self.advance(detail, FindFigures::default(), out);
        }
    }

    fn open(&mut self, key: String, conv: Option<Convolution>, out: &mut Vec<FindMark>) {
        self.open = Some(key.clone());
        self.named = conv.is_some();
        out.push(FindMark::Opened { key });
        out.extend(conv.map(FindMark::Convolution));
    }

    fn workspace(&mut self, c: &Captures<'_>, out: &mut Vec<FindMark>) {
        let number = |name: &str| c[name].parse::<u64>().ok();
        let (Some(required), Some(provided)) = (number("required"), number("provided")) else {
            return;
        };
        let said = Workspace {
            solver: c["solver"].to_owned(),
            required,
            provided,
        };
        if self.workspace.as_ref() != Some(&said) {
            self.workspace = Some(said.clone());
            out.push(FindMark::Workspace(said));
        }
    }

    fn solver(&mut self, name: &str, out: &mut Vec<FindMark>) {
        if self.solver != name {
            name.clone_into(&mut self.solver);
            out.push(FindMark::Solver {
                name: name.to_owned(),
            });
        }
    }

    /// The same figures twice are no advance.
    fn advance(&mut self, detail: String, figures: FindFigures, out: &mut Vec<FindMark>) {
        if self.advance != detail {
            self.advance.clone_from(&detail);
            if figures != FindFigures::default() {
                out.push(FindMark::Figures(figures));
            }
            out.push(FindMark::Advance { detail });
        }
    }

    fn mode(&mut self, mode: &str, out: &mut Vec<FindMark>) {
        if !mode.is_empty() && self.mode != mode {
            mode.clone_into(&mut self.mode);
            out.push(FindMark::Mode {
                mode: mode.to_owned(),
            });
        }
    }
}

/// A time of MIOpen's, ms. What it begins a comparison with (the largest number of its
/// type, or just a huge one) is no time: no kernel runs for days.
fn time(text: &str) -> Option<f64> {
    const NO_TIME: f64 = 1e9;
    let ms: f64 = text.parse().ok()?;
    (ms.is_finite() && ms < NO_TIME).then_some(ms)
}

/// The figures of a line that counts or times, and the same in words.
fn timing(message: &str) -> Option<(FindFigures, String)> {
    let number = |text: &str| text.parse::<u64>().ok();
    let mut figures = FindFigures::default();
    let words = if let Some(c) = RUNS_LEFT.captures(message) {
        let best = c.name("best").map(|b| b.as_str());
        figures.left = number(&c["left"]);
        figures.best_ms = best.and_then(time);
        let best = best.filter(|_| figures.best_ms.is_some());
        let best = best.map(|b| format!(", best {b} ms")).unwrap_or_default();
        format!("{} runs left{best}", &c["left"])
    } else if let Some(c) = TUNING.captures(message) {
        figures.tried = number(&c["i"]);
        figures.total = number(&c["n"]);
        figures.best_ms = time(&c["best"]);
        // before the first configuration has run there is no estimate, and 0 stands there
        figures.eta_s = time(&c["eta"]).filter(|_| figures.tried != Some(0));
        let best = figures.best_ms.map(|_| format!(", best {} ms", &c["best"]));
        let eta = figures.eta_s.map(|_| format!(", {} s to go", &c["eta"]));
        let (best, eta) = (best.unwrap_or_default(), eta.unwrap_or_default());
        format!("{} of {}{best}{eta}", &c["i"], &c["n"])
    } else if let Some(c) = BETTER.captures(message) {
        figures.tried = number(&c["i"]);
        figures.total = number(&c["n"]);
        figures.best_ms = time(&c["t"]);
        format!("{} of {}, better: {} ms", &c["i"], &c["n"], &c["t"])
    } else {
        let c = TIMED.captures(message)?;
        figures.solver = Some(c["solver"].to_owned());
        figures.ms = time(&c["ms"]);
        figures.best_ms = time(&c["best"]);
        format!("{} took {} ms", &c["solver"], &c["ms"])
    };
    Some((figures, words))
}

/// Lines that show that the search went on, other than counts and times.
fn other_advance(e: Entry<'_>) -> Option<String> {
    let m = e.message;
    let first = |rest: &str| {
        rest.split([':', ',', ';'])
            .next()
            .unwrap_or_default()
            .trim()
            .to_owned()
    };
    for (head, said) in [
        ("Selected: ", "selected"),
        ("Skipping Naive Solver: ", "skipped"),
        ("Skipping (Slow) Solver: ", "skipped"),
        ("Unable to load binary for: ", "compiling"),
        ("Saving binary for: ", "compiled"),
        ("Done: ", "tuned"),
    ] {
        if let Some(rest) = m.strip_prefix(head) {
            return Some(format!("{said} {}", first(rest)));
        }
    }
    if e.function == "run"
        && let Some(rest) = m.strip_prefix("kernel_name = ")
    {
        return Some(format!("launched {}", first(rest)));
    }
    if m.contains("...Score:") {
        return Some(m.chars().take(80).collect());
    }
    m.starts_with("Find-db regenerating")
        .then(|| "no record, measuring".to_owned())
}
