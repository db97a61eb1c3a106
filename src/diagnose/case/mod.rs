//! A case folder (`tests/cases/README.md`): its files are read side by side, each a line or
//! a piece at a time, in the order of their times.

mod console;
mod happenings;
mod judge;
mod kernel;
mod rows;

use std::fs;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::model::ExitStatus;

use super::InputError;
use super::meta::Meta;
use super::notes::Notes;
use super::player::{Fold, Item, Place, Player};
use crate::workload::adapter::AdapterKind;
use console::Console;
use happenings::Happenings;
pub use judge::play;
pub(super) use judge::{judge, workload};
use kernel::Kernel;
use rows::{Rows, Turn};

pub(super) const CONSOLE: &str = "console.log";
const INDEX: &str = "console.idx";
const ROWS: &str = "telemetry.csv";
const KERNEL: &str = "kernel.log";
const EVENTS: &str = "events.csv";
const META: &str = "meta.toml";

/// Longest `meta.toml`.
const MOST_META: u64 = 1 << 20;
/// The recording goes on for this long, so that its last words are judged.
const SETTLE_S: f64 = 1.5;
/// Without readings the clock ticks on for this long after something happened.
const TICKS_S: f64 = 3.0;
/// Time between two ticks there.
const TICK_S: f64 = 0.5;

/// Whether a folder is a case.
pub(super) fn is_case(dir: &Path) -> bool {
    [CONSOLE, INDEX, ROWS].iter().any(|f| dir.join(f).is_file())
}

/// Reads `meta.toml`; what is missing or broken is noted. Gives what is wrong with it as well.
fn meta(dir: &Path, notes: &mut Notes) -> Result<(Meta, Option<String>), InputError> {
    let path = dir.join(META);
    let mut bytes = Vec::new();
    let read = fs::File::open(&path).and_then(|f| f.take(MOST_META).read_to_end(&mut bytes));
    match read {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            notes.say(format!(
                "{META} is missing: the program is known by the console only; maker, memory and limits of the card are not known, its readings are used without them"
            ));
            Ok((Meta::default(), None))
        }
        Err(source) => Err(InputError::Io { path, source }),
        Ok(_) => {
            let (meta, why) = Meta::lenient(&String::from_utf8_lossy(&bytes));
            if let Some(why) = &why {
                notes.say(format!(
                    "{META} is broken, only what can be read of it is used: {}",
                    why.split_whitespace().collect::<Vec<_>>().join(" ")
                ));
            }
            for gap in meta.gaps() {
                notes.say(format!("{META}: {gap}"));
            }
            Ok((meta, why))
        }
    }
}

/// A case, opened.
#[derive(Debug)]
pub(super) struct Case {
    /// What is known beforehand.
    pub(super) meta: Meta,
    console: Option<Console>,
    rows: Option<Rows>,
    kernel: Option<Kernel>,
    happenings: Happenings,
    victims: Vec<String>,
}

/// What was read.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Amount {
    pub(super) bytes: u64,
    pub(super) rows: u64,
    pub(super) kernel: u64,
    pub(super) events: u64,
    pub(super) end: f64,
}

/// How a case can be read.
#[derive(Debug)]
pub(super) enum Opened {
    /// With its times.
    Timed(Box<Case>),
    /// Its console has no times: what the program wrote and how it ended is all.
    Text(Box<Meta>, Option<ExitStatus>),
}

impl Case {
    /// Opens the files that are there; what is missing is noted.
    pub(super) fn open(dir: &Path, notes: &mut Notes) -> Result<Opened, InputError> {
        let (mut meta, broken) = meta(dir, notes)?;
        let at = |name: &str| dir.join(name);
        let happenings = Happenings::read(&at(EVENTS), notes)?;
        let console = Console::open(&at(CONSOLE), &at(INDEX), notes)?;
        if matches!(console, console::Found::Untimed) {
            return Ok(Opened::Text(Box::new(meta), happenings.exit()));
        }
        let rows = Rows::open(&at(ROWS), notes)?;
        if let (console::Found::Nothing, None, Some(why)) = (&console, &rows, broken) {
            return Err(InputError::Meta {
                path: at(META),
                why,
            });
        }
        meta.card_read = rows.as_ref().is_some_and(Rows::has_card);
        let (kernel, victims) = Kernel::open(&at(KERNEL), meta.kernel_t0, notes)?;
        Ok(Opened::Timed(Box::new(Self {
            meta,
            console: match console {
                console::Found::Timed(c) => Some(*c),
                _ => None,
            },
            rows,
            kernel,
            happenings,
            victims,
        })))
    }

    /// A player for it.
    pub(super) fn player(&self, kind: AdapterKind, fold: Fold) -> Player {
        Player::new(
            &self.meta,
            kind,
            fold,
            self.victims.iter().map(String::as_str),
            self.rows
                .as_ref()
                .and_then(Rows::first)
                .map_or(&[], std::slice::from_ref),
        )
    }

    /// The beginning of the console, to know the program by.
    pub(super) fn beginning(dir: &Path) -> Vec<u8> {
        const MOST: u64 = 256 * 1024;
        let mut bytes = Vec::new();
        // what cannot be read is told when it is read in earnest
        let _ =
            fs::File::open(dir.join(CONSOLE)).and_then(|f| f.take(MOST).read_to_end(&mut bytes));
        bytes
    }

    /// Plays it to its end; `each` is called after every step.
    pub(super) fn play(
        mut self,
        player: &mut Player,
        notes: &mut Notes,
        mut each: impl FnMut(&mut Player) -> ControlFlow<()>,
    ) -> Result<Amount, InputError> {
        let mut read = Amount::default();
        let mut clock = Clock::default();
        let timed = self.rows.is_some();
        while let Some((t, due)) = self.due() {
            if !timed {
                clock.ticks(t, player, &mut |p| {
                    let _ = each(p);
                });
            }
            clock.last = clock.last.max(t);
            let t = clock.last;
            match due {
                Due::Row => self.turn(t, player, notes, &mut clock, &mut read)?,
                Due::Console => {
                    clock.output = Some(t);
                    if let Some(console) = &mut self.console {
                        read.bytes += console.play(t, player, notes, &mut |p| {
                            let _ = each(p);
                        })?;
                    }
                }
                Due::Kernel => {
                    if let Some(kernel) = &mut self.kernel
                        && let Some(line) = kernel.take(notes)?
                    {
                        read.kernel += 1;
                        player.play(t, place(KERNEL, line.number), Item::Kernel(&line.text));
                    }
                }
                Due::Event => {
                    if let Some((_, line, happening)) = self.happenings.take() {
                        read.events += 1;
                        player.play(t, place(EVENTS, line), Item::Happened(happening));
                    }
                }
            }
            if each(player).is_break() {
                read.end = clock.last;
                return Ok(read);
            }
        }
        read.end = clock.last;
        player.end();
        let mut after = TICK_S / 2.0;
        while after <= SETTLE_S {
            player.play(clock.last + after, None, Item::Tick);
            if each(player).is_break() {
                break;
            }
            after += TICK_S;
        }
        Ok(read)
    }

    fn turn(
        &mut self,
        t: f64,
        player: &mut Player,
        notes: &mut Notes,
        clock: &mut Clock,
        read: &mut Amount,
    ) -> Result<(), InputError> {
        let Some(rows) = &mut self.rows else {
            return Ok(());
        };
        match rows.turn() {
            Some(Turn::Gap { from, seconds }) => {
                // whoever writes is awake
                let awake = clock
                    .output
                    .is_some_and(|o| o > from + TICK_S && o < t - TICK_S);
                if awake {
                    notes.often("gaps in the readings", || {
                        format!("{ROWS}: nothing from {from:.0} s to {t:.0} s, while the console goes on")
                    });
                } else {
                    player.play(t, None, Item::Slept(seconds));
                }
            }
            Some(Turn::Sample { step }) => {
                let line = rows.line();
                player.play(t, place(ROWS, line), Item::Sample(rows.row(), step));
            }
            Some(Turn::Tick) => player.play(t, None, Item::Tick),
            None => {}
        }
        rows.advance(notes)?;
        read.rows = rows.count();
        Ok(())
    }

    /// The file whose turn it is, and when.
    fn due(&self) -> Option<(f64, Due)> {
        let console = self.console.as_ref().and_then(Console::due);
        let kernel = self.kernel.as_ref().and_then(Kernel::due);
        let rows = self.rows.as_ref().and_then(Rows::due);
        let all = [
            console.map(|t| (t, 1, Due::Console)),
            kernel.map(|t| (t, 1, Due::Kernel)),
            self.happenings.due().map(|t| (t, 1, Due::Event)),
            rows.map(|(t, rank)| (t, rank, Due::Row)),
        ];
        let first = all
            .into_iter()
            .flatten()
            .min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)))?;
        Some((first.0, first.2))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    Row,
    Console,
    Kernel,
    Event,
}

/// Times never run backwards.
#[derive(Debug, Default)]
struct Clock {
    last: f64,
    ticked: f64,
    /// When the last piece of output came.
    output: Option<f64>,
}

impl Clock {
    /// Where there are no readings, time passes by itself.
    fn ticks(&mut self, until: f64, player: &mut Player, each: &mut impl FnMut(&mut Player)) {
        self.ticked = self.ticked.max(self.last);
        let end = until.min(self.last + TICKS_S);
        while self.ticked + TICK_S < end {
            self.ticked += TICK_S;
            player.play(self.ticked, None, Item::Tick);
            each(player);
        }
    }
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "the form in which it is passed on"
)]
const fn place(file: &'static str, line: u64) -> Option<Place> {
    Some(Place { file, line })
}

/// Opens a file that need not be there.
fn optional(
    path: PathBuf,
) -> Result<Option<super::lines::Lines<io::BufReader<fs::File>>>, InputError> {
    match super::lines::Lines::open(&path) {
        Ok(lines) => Ok(Some(lines)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(InputError::Io { path, source }),
    }
}

/// An error of reading a file.
fn io_error(path: &Path) -> impl Fn(io::Error) -> InputError + '_ {
    move |source| InputError::Io {
        path: path.to_owned(),
        source,
    }
}
