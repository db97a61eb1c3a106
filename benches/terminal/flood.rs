//! A child that prints 50,000 lines a second: are keys answered, is every line
//! accounted for?

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::{Duration, Instant};

use framepack_tui::model::{Envelope, Event};
use framepack_tui::record::open_text;

use crate::figures::{Figure, quick};
use crate::home::Home;
use crate::pty::Pty;
use crate::spread::Spread;
use crate::{BINARY, Outcome, cost, printer, usage};

const GROUP: &str = "A child that prints 50,000 lines a second, 120x36";
const RATE: u32 = 50_000;
/// Between two keys.
const PAUSE: Duration = Duration::from_millis(200);
/// An answer that takes longer counts as this long.
const PATIENCE: Duration = Duration::from_secs(2);
/// Stands in the list of keys and nowhere else.
const KEYS: &str = "filter: ";

/// A key, and how the screen shows that it was heard.
const ROUND: [(&str, &str, bool); 4] = [
    ("5", "[5]Log", true),
    ("?", KEYS, true),
    ("\x1b", KEYS, false),
    ("1", "[1]Dashboard", true),
];

pub(crate) fn measure() -> Outcome<Vec<Figure>> {
    let seconds: u32 = if quick() { 5 } else { 20 };
    let home = Home::new()?;
    let told = home.path("home/told");
    let mut program: Vec<OsString> = [BINARY, "run", "--profile", "generic-amd", "--"]
        .map(OsString::from)
        .to_vec();
    program.extend(printer::command(RATE, seconds, &told)?);
    let mut pty = Pty::open(&home, (120, 36), &program)?;
    pty.wait_for(Duration::from_secs(10), |text| text.contains(printer::MARK))
        .ok_or_else(|| format!("no line of the child:\n{}", pty.text()))?;
    let cpu = cost::cpu(pty.pid()?)?;
    let begun = Instant::now();
    let (mut keys, mut escape) = (Spread::default(), Spread::default());
    while begun.elapsed() + PAUSE * 4 < Duration::from_secs(seconds.into()) {
        for (key, word, there) in ROUND {
            let at = pty.press(key)?;
            let seen = pty.wait_for(PATIENCE, |text| text.contains(word) == there);
            let took = seen.map_or(PATIENCE, |t| t.saturating_duration_since(at));
            let times = if key == "\x1b" {
                &mut escape
            } else {
                &mut keys
            };
            times.add(took.as_secs_f64() * 1e3);
            std::thread::sleep(PAUSE);
        }
    }
    let used = (cost::cpu(pty.pid()?)? - cpu) / begun.elapsed().as_secs_f64();
    let rss = usage::mib(usage::rss(pty.pid()?)?);
    pty.wait_for(Duration::from_secs(30), |text| text.contains("ENDED"))
        .ok_or_else(|| format!("the run does not end:\n{}", pty.text()))?;
    std::thread::sleep(PAUSE);
    let shown = shown_dropped(&pty.text());
    pty.press("q")?;
    pty.wait_for_end(Duration::from_secs(10))?;

    let lines = Lines::read(&told, &home)?;
    let answered = |what, times: &Spread| {
        Figure::ours(GROUP, what, "ms")
            .value(times.percentile(95))
            .at_most(50.0)
            .note(times.words())
    };
    Ok(vec![
        answered("key to screen, 95 of 100 within", &keys),
        answered("Esc to screen, 95 of 100 within", &escape),
        lines.lost(),
        lines.on_screen(shown),
        Figure::ours(GROUP, "CPU meanwhile", "% of a core").value(used * 100.0),
        Figure::ours(GROUP, "memory (RSS) at the end of the flood", "MiB")
            .value(rss)
            .at_most(60.0),
    ])
}

/// The number of dropped lines on the screen: `data  dropped 1234 lines, 5 samples (record)`.
fn shown_dropped(text: &str) -> Option<u64> {
    let (_, rest) = text.split_once("dropped ")?;
    rest.split_once(" lines")?.0.parse().ok()
}

/// Where the lines went.
struct Lines {
    printed: u64,
    took: f64,
    recorded: u64,
    dropped: BTreeMap<String, u64>,
}

impl Lines {
    fn read(told: &Path, home: &Home) -> Outcome<Self> {
        let told = std::fs::read_to_string(told)?;
        let (printed, took) = told.split_once(' ').ok_or("the printer tells too little")?;
        let mut lines = Self {
            printed: printed.parse()?,
            took: took.parse()?,
            recorded: 0,
            dropped: BTreeMap::new(),
        };
        for line in BufReader::new(open_text(&home.events()?)?).lines() {
            let envelope: Envelope = serde_json::from_str(&line?)?;
            match envelope.event {
                Event::Line(l) if l.text.starts_with(printer::MARK) => lines.recorded += 1,
                Event::Dropped { what, n } => *lines.dropped.entry(what).or_default() += n,
                Event::Flood(flood) => {
                    lines.recorded += flood.lines - flood.lost();
                    *lines.dropped.entry("lines".to_owned()).or_default() += flood.lost();
                }
                _ => {}
            }
        }
        Ok(lines)
    }

    fn dropped(&self, what: &str) -> u64 {
        self.dropped.get(what).copied().unwrap_or(0)
    }

    /// Difference between the dropped lines of the record and those on the screen.
    #[expect(clippy::cast_precision_loss, reason = "a few million at most")]
    fn on_screen(&self, shown: Option<u64>) -> Figure {
        let dropped = self.dropped("lines");
        let figure = Figure::ours(GROUP, "dropped lines, screen against record", "lines")
            .value(dropped.abs_diff(shown.unwrap_or(0)) as f64)
            .at_most(0.0);
        match shown {
            Some(n) => figure.note(format!("the screen says {n}")),
            None => figure.note("the screen says nothing"),
        }
    }

    /// Lines that are neither in the record nor counted as dropped.
    #[expect(clippy::cast_precision_loss, reason = "a few million at most")]
    fn lost(&self) -> Figure {
        let counted = self.recorded + self.dropped("lines") + self.dropped("lines (record)");
        let lost = self.printed.abs_diff(counted) as f64;
        Figure::ours(
            GROUP,
            "lines neither recorded nor counted as dropped",
            "lines",
        )
        .value(lost)
        .at_most(0.0)
        .note(format!(
            "{} printed in {:.1} s, {} recorded, dropped: {:?}",
            self.printed, self.took, self.recorded, self.dropped
        ))
    }
}
