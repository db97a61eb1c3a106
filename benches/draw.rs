//! What a frame, a snapshot and a fold cost.
//!
//!     cargo bench --bench draw
//!
//! Times come from divan; bytes a frame are written to `target/bench/draw.json`.

#[path = "support/figures.rs"]
mod figures;
#[path = "support/spread.rs"]
mod spread;
#[path = "support/terminal_sink.rs"]
mod terminal_sink;
#[path = "support/workload.rs"]
mod workload;

use std::cell::RefCell;
use std::error::Error;
use std::time::Instant;

use divan::{Bencher, black_box};
use framepack_tui::model::{Envelope, Event, Health, Line, Mono, Stream};
use framepack_tui::run::reduce;
use framepack_tui::run::snapshot::Stage;
use framepack_tui::ui::Theme;
use framepack_tui::ui::tui::{Screen, ViewOptions, draw};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use figures::Figure;
use spread::Spread;
use terminal_sink::Sink;
use workload::Workload;

/// Sizes of terminals: columns and rows.
const SIZES: [(u16, u16); 3] = [(80, 24), (120, 36), (200, 60)];

fn main() -> Result<(), Box<dyn Error>> {
    divan::main();
    // `cargo bench -- --list` and a run of chosen benchmarks write nothing
    if std::env::args().skip(1).all(|a| a == "--bench") {
        figures::write("draw", &frames()?)?;
    }
    Ok(())
}

/// A job of which the last section is being sampled, with full charts and a full log.
fn healthy() -> Workload {
    let mut run = Workload::start();
    for _ in 0..2200 {
        run.half_second(false);
        run.tick();
    }
    for n in 0..500 {
        run.line(&format!(
            "step {n}: sigma 0.{n:03}, 23.1 GB of VRAM free, the next section begins after this"
        ));
        run.half_second(false);
    }
    run.stream.clear();
    run
}

/// The same, silent until its kill is announced.
fn hung() -> Workload {
    let mut run = healthy();
    for _ in 0..2400 {
        if matches!(run.state.snapshot().stage, Stage::Countdown { .. }) {
            break;
        }
        run.half_second(true);
        run.tick();
    }
    assert_eq!(run.state.snapshot().verdict.health, Health::Hung);
    run.stream.clear();
    run
}

fn state(name: &str) -> Workload {
    match name {
        "hung" => hung(),
        _ => healthy(),
    }
}

fn options(screen: &str) -> ViewOptions {
    let mut options = ViewOptions::new(Theme {
        ascii: false,
        color: true,
    });
    match screen {
        "log" => options.choices.screen = Screen::Log,
        "zoom" => options.choices.charts.zoom = true,
        _ => {}
    }
    options
}

/// Draws over and over what stands on the screen already.
fn drawing(bencher: Bencher<'_, '_>, (width, height): (u16, u16), screen: &str, is: &str) {
    let snapshot = state(is).state.snapshot();
    assert_eq!(snapshot.history.len(), 1200);
    assert_eq!(snapshot.log.len(), 500);
    let options = options(screen);
    let backend = TestBackend::new(width, height);
    // it cannot fail in memory
    let Ok(mut terminal) = Terminal::new(backend);
    bencher.bench_local(|| {
        terminal
            .draw(|frame| draw(frame, black_box(&snapshot), &options))
            .is_ok()
    });
}

#[divan::bench(args = SIZES_AND_STATES, sample_count = 200)]
fn dashboard(bencher: Bencher<'_, '_>, case: &Case) {
    drawing(bencher, case.size, "dashboard", case.state);
}

#[divan::bench(args = SIZES_AND_STATES, sample_count = 200)]
fn zoomed_charts(bencher: Bencher<'_, '_>, case: &Case) {
    drawing(bencher, case.size, "zoom", case.state);
}

#[divan::bench(args = SIZES_AND_STATES, sample_count = 200)]
fn log_screen(bencher: Bencher<'_, '_>, case: &Case) {
    drawing(bencher, case.size, "log", case.state);
}

/// A size and a state, printed as `200x60_hung`.
struct Case {
    size: (u16, u16),
    state: &'static str,
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}x{}_{}", self.size.0, self.size.1, self.state)
    }
}

const fn case(at: usize, state: &'static str) -> Case {
    Case {
        size: SIZES[at],
        state,
    }
}

const SIZES_AND_STATES: [Case; 6] = [
    case(0, "healthy"),
    case(0, "hung"),
    case(1, "healthy"),
    case(1, "hung"),
    case(2, "healthy"),
    case(2, "hung"),
];

#[divan::bench(args = ["healthy", "hung"])]
fn snapshot(bencher: Bencher<'_, '_>, is: &str) {
    let run = state(is);
    bencher.bench_local(|| run.state.snapshot());
}

/// A sample while the screen holds the last snapshot, as it always does: the history
/// is shared, and has to be copied before it is written.
#[divan::bench(args = ["healthy", "hung"], sample_count = 1000, sample_size = 1)]
fn reduce_sample(bencher: Bencher<'_, '_>, is: &str) {
    let mut run = state(is);
    run.half_second(is == "hung");
    let sample = run.stream.iter().find_map(|e| match &e.event {
        sample @ Event::Sample(_) => Some(sample.clone()),
        _ => None,
    });
    if let Some(sample) = sample {
        folding(bencher, run, sample);
    }
}

/// A line while the screen holds the last snapshot: the log has to be copied.
#[divan::bench(sample_count = 1000, sample_size = 1)]
fn reduce_line(bencher: Bencher<'_, '_>) {
    let line = Event::Line(Line {
        attempt: 1,
        row: 0,
        stream: Stream::Stdout,
        text: "Moving DynamicSwap_LlamaModel to cuda:0 with preserved memory: 6 GB".to_owned(),
        bar: false,
        truncated: false,
        chatter: false,
    });
    folding(bencher, healthy(), line);
}

fn folding(bencher: Bencher<'_, '_>, run: Workload, event: Event) {
    let first = run.state.snapshot().now;
    let state = RefCell::new(run.state);
    let env = RefCell::new(Envelope {
        seq: 1 << 40,
        at: first,
        from: None,
        event,
    });
    bencher
        .with_inputs(|| state.borrow().snapshot())
        .bench_local_values(|held| {
            let mut env = env.borrow_mut();
            env.seq += 1;
            env.at = Mono(env.at.0 + 1);
            (reduce(&mut state.borrow_mut(), &env), held)
        });
}

/// Bytes and time of frames on their way to a terminal.
fn frames() -> Result<Vec<Figure>, Box<dyn Error>> {
    const GROUP: &str = "One frame on its way to a terminal";
    let rounds = if figures::quick() { 40 } else { 400 };
    let mut all = Vec::new();
    for (width, height) in SIZES {
        for screen in ["dashboard", "zoom", "log"] {
            let options = options(screen);
            let mut run = healthy();
            let (mut first, mut next) = (Spread::default(), Spread::default());
            let (mut first_ms, mut next_ms) = (Spread::default(), Spread::default());
            for _ in 0..rounds {
                let mut sink = Sink::new(width, height)?;
                for (bytes, ms) in [(&mut first, &mut first_ms), (&mut next, &mut next_ms)] {
                    run.half_second(false);
                    run.stream.clear();
                    let snapshot = run.state.snapshot();
                    let begun = Instant::now();
                    // bytes of a frame are far below what an f64 holds
                    bytes.add(u32::try_from(sink.draw(&snapshot, &options)?)?.into());
                    ms.add(begun.elapsed().as_secs_f64() * 1e3);
                }
            }
            for (which, bytes, ms) in [("first", first, first_ms), ("next", next, next_ms)] {
                let what = |what| format!("{screen} {width}x{height}, {which} frame, {what}");
                let mut time = Figure::ours(GROUP, what("time"), "ms")
                    .value(ms.percentile(50))
                    .note(ms.words());
                if (width, height) == (200, 60) {
                    time = time.at_most(4.0);
                }
                all.push(time);
                all.push(
                    Figure::ours(GROUP, what("bytes"), "bytes")
                        .value(bytes.percentile(50))
                        .note(bytes.words()),
                );
            }
        }
    }
    Ok(all)
}
