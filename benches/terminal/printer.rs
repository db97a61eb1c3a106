//! The workload that prints: this program in another mode.

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::Outcome;

/// First argument of that mode.
pub(crate) const MODE: &str = "--print";
/// Time between two batches of lines.
const BATCH: Duration = Duration::from_millis(2);
/// How a line begins.
pub(crate) const MARK: &str = "flood line";

/// The command that prints so many lines a second for so many seconds and then writes
/// the number of lines, and how long it took, to a file.
pub(crate) fn command(rate: u32, seconds: u32, told: &Path) -> Outcome<Vec<OsString>> {
    Ok(vec![
        std::env::current_exe()?.into(),
        MODE.into(),
        rate.to_string().into(),
        seconds.to_string().into(),
        told.into(),
    ])
}

/// Prints. The lines are due by the clock: whoever reads slowly makes them late, and
/// they are printed all the same.
pub(crate) fn print(args: &[String]) -> Outcome<()> {
    let [rate, seconds, told] = args else {
        return Err("usage: --print RATE SECONDS FILE".into());
    };
    let (rate, seconds): (u32, u32) = (rate.parse()?, seconds.parse()?);
    let mut out = std::io::stdout().lock();
    let begun = Instant::now();
    let mut printed = 0_u64;
    let all = u64::from(rate) * u64::from(seconds);
    let mut batch = Vec::new();
    while printed < all {
        let due = begun.elapsed().as_millis() * u128::from(rate) / 1000;
        let due = u64::try_from(due)?.min(all);
        batch.clear();
        for n in printed..due {
            writeln!(
                batch,
                "{MARK} {n:09}: sigma 0.417, 23.1 GB of VRAM free, nothing out of the ordinary"
            )?;
        }
        printed = due;
        out.write_all(&batch)?;
        out.flush()?;
        std::thread::sleep(BATCH);
    }
    let took = begun.elapsed().as_secs_f64();
    std::fs::write(told, format!("{printed} {took}"))?;
    Ok(())
}
