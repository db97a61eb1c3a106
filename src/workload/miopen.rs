//! MIOpen's log lines about its convolution search (Find).
//!
//! Forms as in MIOpen's `src/logger.cpp`, `src/ocl/convolutionocl.cpp`,
//! `src/conv/solver_finders.cpp` and `generic_search.hpp`, ROCm 5.7 to 7.x; what a
//! release prints depends on `MIOPEN_LOG_LEVEL` and `MIOPEN_ENABLE_LOGGING_CMD`.

use std::sync::LazyLock;

use regex::Regex;

use super::pattern;
use crate::model::FindMark;

/// A MIOpen line taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry<'t> {
    level: &'t str,
    function: &'t str,
    message: &'t str,
}

static ENTRY: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"MIOpen(?:\([A-Za-z]+\))?[ \d.]*(?:\([^)]*\))?: (?P<level>Error|Warning|Info2?|Trace|Command|Fatal) \[(?P<function>[^\]]*)\] ?(?P<message>.*)$",
    )
});

static API_CALL: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^\s*(?:\d+ )?MIOpen(?:\([A-Za-z]+\))?[ \d.]*(?:\([^)]*\))?: (?:miopenStatus_t |const char\s*\*|\}|\w+ = )",
    )
});

fn entry(text: &str) -> Option<Entry<'_>> {
    if !text.contains("MIOpen") {
        return None;
    }
    let c = ENTRY.captures(text)?;
    let get = |name| c.name(name).map_or("", |m| m.as_str());
    Some(Entry {
        level: get("level"),
        function: get("function"),
        message: get("message").trim(),
    })
}

/// Whether a line is there only because a supervisor asked MIOpen to talk: its
/// information and command lines. Warnings and errors are not chatter.
pub fn is_chatter(text: &str) -> bool {
    match entry(text) {
        Some(e) => matches!(e.level, "Info" | "Info2" | "Trace" | "Command"),
        None => text.contains("MIOpen") && API_CALL.is_match(text),
    }
}

/// Whether MIOpen wrote the line, at any level.
pub fn is_miopen(text: &str) -> bool {
    text.contains("MIOpen")
        && (text.contains("MIOpen Error:") || entry(text).is_some() || API_CALL.is_match(text))
}

/// Follows the search of one process: at most one Find is open at a time.
#[derive(Debug, Default)]
pub struct FindReader {
    open: Option<String>,
    /// Opened by a driver line, so that the driver line of the convolution closes it.
    by_driver: bool,
    solver: String,
    advance: String,
    mode: String,
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
static RUNS_LEFT: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"Runs left: (?P<left>\d+)(?:, min time so far: (?P<best>[\d.]+))?"));
static TUNING: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^(?P<i>\d+)/(?P<failed>\d+)/(?P<n>\d+) (?P<best>[\d.e+]+),? .*ETA:\s*(?P<eta>[\d.]+)\s*sec",
    )
});
static BETTER: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^#(?P<i>\d+)/\d+/(?P<n>\d+) (?P<t>[\d.e+]+) < "));
static TIMED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^(?:solution\(current vs best\): )?(?P<solver>\w+(?:<[^>]*>)?): .*?(?P<ms>\d[\d.e+]*) (?:<|>=?) [\d.e+]+",
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

    /// Takes a line and gives what it says about the search.
    pub fn feed(&mut self, text: &str) -> Vec<FindMark> {
        let mut out = Vec::new();
        if let Some(e) = entry(text) {
            self.entry(e, &mut out);
        } else if text.contains("MIOpen Error:") {
            out.extend(self.close());
        }
        out
    }

    /// The program went on by its own lines: what was open is over. A search that only
    /// warnings told of has no closing line of its own.
    pub fn close(&mut self) -> Option<FindMark> {
        self.by_driver = false;
        self.solver.clear();
        self.advance.clear();
        self.open.take().map(|key| FindMark::Closed { key })
    }

    fn entry(&mut self, e: Entry<'_>, out: &mut Vec<FindMark>) {
        match e.function {
            "LogCmdFindConvolution" => {
                out.extend(self.close());
                if let Some(key) = driver_key(e.message) {
                    self.open(key, out);
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
            if self.open.is_none() {
                self.open(c["key"].to_owned(), out);
            }
            self.mode(c.name("mode").map_or("", |m| m.as_str()), out);
        } else if FIND_ENDED.is_match(m) || m.starts_with("FW Chosen Algorithm:") {
            out.extend(self.close());
        } else if m.starts_with("requestAlgoCount = ") && e.function.starts_with("Find") {
            if self.open.is_none() {
                self.open(FindMark::UNNAMED.to_owned(), out);
            }
        } else if e.function == "SearchImpl" && m.starts_with("Searching the best solution") {
            // Each of these begins the tuning of one more convolution.
            if !self.by_driver {
                out.extend(self.close());
                self.open(FindMark::UNNAMED.to_owned(), out);
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
        } else if let Some(c) = RUNS_LEFT.captures(m) {
            let best = c.name("best").map(|b| format!(", best {} ms", b.as_str()));
            self.advance(
                format!("{} runs left{}", &c["left"], best.unwrap_or_default()),
                out,
            );
        } else if let Some(c) = TUNING.captures(m) {
            let (i, n, best, eta) = (&c["i"], &c["n"], &c["best"], &c["eta"]);
            self.advance(format!("{i} of {n}, best {best} ms, {eta} s to go"), out);
        } else if let Some(c) = BETTER.captures(m) {
            self.advance(
                format!("{} of {}, better: {} ms", &c["i"], &c["n"], &c["t"]),
                out,
            );
        } else if let Some(detail) = other_advance(e) {
            self.advance(detail, out);
        }
    }

    fn open(&mut self, key: String, out: &mut Vec<FindMark>) {
        self.open = Some(key.clone());
        out.push(FindMark::Opened { key });
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
    fn advance(&mut self, detail: String, out: &mut Vec<FindMark>) {
        if self.advance != detail {
            self.advance.clone_from(&detail);
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

/// Lines that show that the search went on, other than counts.
fn other_advance(e: Entry<'_>) -> Option<String> {
    let m = e.message;
    if let Some(c) = TIMED.captures(m) {
        return Some(format!("{} took {} ms", &c["solver"], &c["ms"]));
    }
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ARGS: &str = "convfp16 -n 1 -c 96 --in_d 6 -H 482 -W 834 -k 96 -m conv -g 1 -F 1";

    fn marks(lines: &[&str]) -> Vec<FindMark> {
        let mut r = FindReader::default();
        lines.iter().flat_map(|l| r.feed(l)).collect()
    }

    #[test]
    fn a_find_opens_and_closes_by_driver_lines() {
        let find =
            format!("MIOpen(HIP): Command [LogCmdFindConvolution] ./bin/MIOpenDriver {ARGS} -t 1");
        let run = format!(
            "1234 MIOpen: Command [LogCmdConvolution] ./bin/MIOpenDriver {ARGS} -t 1 -S 85"
        );
        let other = "MIOpen(HIP): Command [LogCmdConvolution] ./bin/MIOpenDriver conv -n 2 -t 1";
        let key = ARGS.to_owned();
        assert_eq!(
            marks(&[&find, other, &run, &run]),
            [
                FindMark::Opened { key: key.clone() },
                FindMark::Closed { key }
            ]
        );
    }

    #[test]
    fn the_whole_story_at_level_five() {
        let got = marks(&[
            "MIOpen(HIP): Info [] MIOPEN_FIND_MODE = DYNAMIC_HYBRID(5)",
            "MIOpen(HIP) 12.5: Info [FindConvFwdAlgorithm] requestAlgoCount = 1, workspace = 150994944",
            "MIOpen(HIP): Info [TryLoad] Find-db regenerating.",
            "MIOpen(HIP): Info [FindSolutionImpl] GemmFwdRest (not searchable)",
            "MIOpen(HIP): Info [EvaluateInvokers] Evaluating Solver: miopenConvolutionFwdAlgoDirect:ConvDirectNaiveConvFwd",
            "MIOpen(HIP): Info [EvaluateInvokers] GemmFwdRest: : 41.2 < 3.40282e+38",
            "MIOpen(HIP): Info [FindCore] Selected: GemmFwdRest: x: 41.2, workspace_sz = 1",
            "MIOpen(HIP): Info [FillFindReturnParameters] FW Chosen Algorithm: GemmFwdRest , 150994944, 5.31",
        ]);
        assert_eq!(
            got,
            [
                FindMark::Mode {
                    mode: "DYNAMIC_HYBRID(5)".into()
                },
                FindMark::Opened {
                    key: "a convolution".into()
                },
                FindMark::Advance {
                    detail: "no record, measuring".into()
                },
                FindMark::Solver {
                    name: "GemmFwdRest".into()
                },
                FindMark::Solver {
                    name: "ConvDirectNaiveConvFwd".into()
                },
                FindMark::Advance {
                    detail: "GemmFwdRest took 41.2 ms".into()
                },
                FindMark::Advance {
                    detail: "selected GemmFwdRest".into()
                },
                FindMark::Closed {
                    key: "a convolution".into()
                },
            ]
        );
    }

    #[test]
    fn start_and_end_lines_of_newer_releases() {
        let got = marks(&[
            "MIOpen(HIP): Warning [operator()] Find Start: 96-6-482-834-3x3x3-F, findMode: DYNAMIC_HYBRID(5)",
            "MIOpen(HIP): Warning [operator()] Find Ended: 96-6-482-834-3x3x3-F",
        ]);
        let key = "96-6-482-834-3x3x3-F".to_owned();
        assert_eq!(
            got,
            [
                FindMark::Opened { key: key.clone() },
                FindMark::Mode {
                    mode: "DYNAMIC_HYBRID(5)".into()
                },
                FindMark::Closed { key }
            ]
        );
    }

    #[test]
    fn tuning_advances_only_when_the_figures_move() {
        let got = marks(&[
            "MIOpen(HIP): Warning [SearchImpl] Searching the best solution in the 9 dim space. Please, be patient...",
            "MIOpen(HIP): Warning [SearchImpl] Runs left: 412, min time so far: 4.800, curr time: 11.000",
            "MIOpen(HIP): Warning [SearchImpl] Runs left: 412, min time so far: 4.800, curr time: 12.000",
            "MIOpen(HIP): Warning [SearchImpl] Runs left: 315, min time so far: 4.500, curr time: 12.000",
            "MIOpen(HIP): Warning [GenericSearch] ConvHipX: Searching the best solution among 480 (spare)...",
            "MIOpen(HIP): Warning [Monitor] 12/0/480 3.1, best within recent 7: 3.1 #9 128,64, ETA:171.2 sec.",
            "MIOpen(HIP): Warning [GenericSearch] #13/0/480 2.9 < 3.1 128,32",
        ]);
        let advances: Vec<_> = got
            .iter()
            .filter_map(|m| match m {
                FindMark::Advance { detail } => Some(detail.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(
            advances,
            [
                "412 runs left, best 4.800 ms",
                "315 runs left, best 4.500 ms",
                "12 of 480, best 3.1 ms, 171.2 s to go",
                "13 of 480, better: 2.9 ms",
            ]
        );
        assert!(got.contains(&FindMark::Solver {
            name: "ConvHipX".into()
        }));
    }

    #[test]
    fn chatter_is_what_we_asked_for() {
        for t in [
            "MIOpen(HIP): Info [Find] x",
            "77 MIOpen(HIP): Command [LogCmdConvolution] ./bin/MIOpenDriver conv",
            "MIOpen(HIP): miopenStatus_t miopenSetTensor(...){",
            "MIOpen(HIP): handle = stream: 0, device_id: 0",
            "MIOpen(HIP): }",
        ] {
            assert!(is_chatter(t), "{t}");
            assert!(is_miopen(t), "{t}");
        }
        for t in [
            "MIOpen(HIP): Warning [SearchImpl] Runs left: 3",
            "MIOpen(HIP): Error [x] y",
            "MIOpen Error: /a.cpp:275: No suitable algorithm was found",
            "[MIOpen Fallback] Fallback system initialized",
            "plain",
        ] {
            assert!(!is_chatter(t), "{t}");
        }
        assert!(!is_miopen("[MIOpen Fallback] Fallback system initialized"));
    }

    proptest! {
        #[test]
        fn never_panics(text in ".{0,200}") {
            let _ = is_chatter(&text);
            let mut r = FindReader::default();
            let _ = r.feed(&text);
            let _ = r.feed(&format!("MIOpen(HIP): Info [SearchImpl] {text}"));
            let _ = r.feed(&format!("MIOpen(HIP): Info [run] kernel_name = {text}"));
            let _ = r.feed(&format!("MIOpen(HIP): Command [LogCmdFindConvolution] ./bin/MIOpenDriver {text}"));
        }
    }
}
