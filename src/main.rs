//! Thin binary over the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    framepack_tui::cli::main()
}
