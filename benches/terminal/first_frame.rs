//! Start until the first frame.

use std::ffi::OsString;
use std::time::Duration;

use crate::card::Card;
use crate::figures::{Figure, quick};
use crate::home::Home;
use crate::pty::Pty;
use crate::spread::Spread;
use crate::{BINARY, Outcome, peer};

const GROUP: &str = "Start until the first frame, 120x36";
const SIZE: (u16, u16) = (120, 36);
const LIMIT: Duration = Duration::from_secs(10);
/// Files that every reader of the card opens; `stall` makes opening them block.
const SENSORS: [&str; 4] = ["uevent", "vendor", "gpu_busy_percent", "mem_info_vram_used"];
/// The first frame, before anything is known.
const WAITING: &str = "looking at the machine";

/// Repeats.
fn repeats() -> usize {
    if quick() { 5 } else { 20 }
}

pub(crate) fn measure(card: &Card) -> Outcome<Vec<Figure>> {
    let mut all = Vec::new();
    all.extend(ours("sources answer", false)?);
    for file in SENSORS {
        card.tool("break", &["card0", file, "stall"])?;
    }
    let blocked = ours("no source of the card answers", true);
    for file in SENSORS {
        card.tool("break", &["card0", file, "ok"])?;
    }
    all.extend(blocked?);
    all.push(btop()?);
    all.push(radeontop()?);
    Ok(all)
}

/// First frame, and first frame with readings.
fn ours(how: &str, blocked: bool) -> Outcome<[Figure; 2]> {
    let (mut first, mut live) = (Spread::default(), Spread::default());
    let words = ["--profile", "generic-amd", "--", "sleep", "600"];
    let program: Vec<OsString> = [BINARY, "run"]
        .iter()
        .chain(&words)
        .map(Into::into)
        .collect();
    for _ in 0..repeats() {
        let home = Home::new()?;
        let pty = Pty::open(&home, SIZE, &program)?;
        let mut seen = String::new();
        let at = pty.wait_for(LIMIT, |text| {
            text.clone_into(&mut seen);
            !text.trim().is_empty()
        });
        let at = at.ok_or("no first frame")?;
        first.add((at - pty.started).as_secs_f64() * 1e3);
        if blocked && !seen.contains(WAITING) {
            return Err(format!("a first frame with blocked sources:\n{seen}").into());
        }
        let at = pty.wait_for(LIMIT, |text| {
            text.contains("HEALTHY") || text.contains("LIVE")
        });
        let at = at.ok_or_else(|| format!("no readings:\n{}", pty.text()))?;
        live.add((at - pty.started).as_secs_f64() * 1e3);
    }
    Ok([
        Figure::ours(GROUP, format!("first frame, {how}"), "ms")
            .value(first.percentile(50))
            .at_most(100.0)
            .note(first.words()),
        Figure::ours(GROUP, format!("whole dashboard, {how}"), "ms")
            .value(live.percentile(50))
            .note(live.words()),
    ])
}

fn btop() -> Outcome<Figure> {
    let mut first = Spread::default();
    for _ in 0..repeats() {
        let home = Home::new()?;
        let pty = Pty::open(&home, SIZE, &peer::btop(&home)?)?;
        let at = pty.wait_for(LIMIT, |text| !text.trim().is_empty());
        let at = at.ok_or("btop draws nothing")?;
        first.add((at - pty.started).as_secs_f64() * 1e3);
    }
    let mut figure = Figure::ours(GROUP, "first frame", "ms")
        .value(first.percentile(50))
        .note(format!("{}; it shows no GPU", first.words()));
    figure.program = peer::version("btop")?;
    Ok(figure)
}

fn radeontop() -> Outcome<Figure> {
    let mut figure = Figure::ours(GROUP, "first frame", "ms");
    figure.program = peer::version("radeontop")?;
    if let Some(why) = peer::radeontop_refuses() {
        return Ok(figure.note(format!("does not start without a real card: {why}")));
    }
    let mut first = Spread::default();
    for _ in 0..repeats() {
        let home = Home::new()?;
        let pty = Pty::open(&home, SIZE, &peer::radeontop())?;
        let at = pty.wait_for(LIMIT, |text| !text.trim().is_empty());
        let at = at.ok_or("radeontop draws nothing")?;
        first.add((at - pty.started).as_secs_f64() * 1e3);
    }
    Ok(figure.value(first.percentile(50)).note(first.words()))
}
