//! Draws the screen of a run as it stood at a moment, from its record.
//!
//!     cargo run --example screen -- RUN_DIR [SECONDS] [80x24]
//!
//! RUN_DIR holds `events.jsonl.gz`; a file of JSON lines, as `--headless` prints them,
//! will do as well. SECONDS counts from the beginning of the run; without it the end
//! is drawn.

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use framepack_tui::model::{Event, Mono};
use framepack_tui::record::Record;
use framepack_tui::run::{RunState, follow};
use framepack_tui::ui::Theme;
use framepack_tui::ui::tui::{ViewOptions, draw};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let path = args
        .next()
        .ok_or("usage: screen RUN_DIR [SECONDS] [80x24]")?;
    let until = match args.next() {
        Some(secs) => Mono::ZERO + Duration::from_secs_f64(secs.parse()?),
        None => Mono(u64::MAX),
    };
    let size = args.next().unwrap_or_else(|| "80x24".to_owned());
    let (width, height) = size.split_once('x').ok_or("a size is written 80x24")?;

    let path = Path::new(&path);
    let record = Record::open(path)?;
    let mut envelopes = record.envelopes.iter();
    let Some(Event::RunStarted(started)) = envelopes.next().map(|e| &e.event) else {
        return Err("the record does not begin with run_started".into());
    };
    let mut state = RunState::new(started);
    for env in envelopes.take_while(|e| e.at <= until) {
        follow(&mut state, env);
    }

    let theme = Theme {
        ascii: false,
        color: false,
    };
    let mut terminal = Terminal::new(TestBackend::new(width.parse()?, height.parse()?))?;
    let snapshot = state.snapshot();
    terminal.draw(|frame| draw(frame, &snapshot, &ViewOptions::new(theme)))?;
    let mut out = std::io::stdout().lock();
    let buffer = terminal.backend().buffer();
    for row in buffer.content().chunks(usize::from(buffer.area.width)) {
        let line: String = row.iter().map(ratatui::buffer::Cell::symbol).collect();
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}
