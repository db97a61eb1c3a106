//! The real binary in a real terminal (a PTY): first frame, answers to keys under a
//! flood of lines, and what watching costs. Peers beside it where there are some.
//!
//!     cargo bench --bench terminal [first|flood|cost]
//!
//! Everything runs in a mount namespace of its own with the imitated card at `/sys`.

#[path = "../support/card.rs"]
mod card;
#[path = "../support/figures.rs"]
mod figures;
#[path = "../support/inside.rs"]
mod inside;
#[path = "../support/spread.rs"]
mod spread;
#[path = "../support/tree.rs"]
mod tree;
#[path = "../support/usage.rs"]
mod usage;

mod cost;
mod first_frame;
mod flood;
mod home;
mod peer;
mod printer;
mod pty;

use std::error::Error;
use std::process::ExitCode;

/// The program.
const BINARY: &str = env!("CARGO_BIN_EXE_framepack-tui");

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<ExitCode> {
    if tree::lived()? {
        return Ok(ExitCode::SUCCESS);
    }
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [mode, rest @ ..] = args.as_slice()
        && mode == printer::MODE
    {
        printer::print(rest)?;
        return Ok(ExitCode::SUCCESS);
    }
    let Some(card) = inside::card() else {
        return inside::enter(&args);
    };
    let wanted = |part: &str| {
        let chosen: Vec<_> = args.iter().filter(|a| !a.starts_with('-')).collect();
        chosen.is_empty() || chosen.iter().any(|a| *a == part)
    };
    if wanted("first") {
        figures::write("first_frame", &first_frame::measure(&card)?)?;
    }
    if wanted("flood") {
        figures::write("flood", &flood::measure()?)?;
    }
    if wanted("cost") {
        figures::write("cost", &cost::measure()?)?;
    }
    Ok(ExitCode::SUCCESS)
}
