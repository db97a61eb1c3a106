//! Thin binary over the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|a| a == "guardian") {
        return framepack_tui::workload::guardian::main(args);
    }
    ExitCode::from(64)
}
