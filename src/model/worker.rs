//! Our own worker, `framepack-tui worker …`, as a program that is supervised.

use super::ExitStatus;

/// What it ends with where it cannot do the job and no restart would change that: the output is there, a file is
/// damaged or does not fit, a file is missing, ffmpeg or the card is missing (docs/engine.md).
const REFUSALS: [i32; 4] = [64, 65, 66, 69];
/// The one of these that a card may be the reason of.
pub const OF_DEVICE: u8 = 69;

/// Whether a command is our own worker, by whatever path; where the program has another name (a copy of the user's),
/// by the words that we hand it.
pub fn is_own_worker(argv: &[String]) -> bool {
    let Some((program, words)) = argv.split_first() else {
        return false;
    };
    let name = program.rsplit('/').next();
    if name == Some(env!("CARGO_PKG_NAME")) {
        return words.first().is_some_and(|word| word == "worker");
    }
    let words: Vec<&str> = words.iter().map(String::as_str).take(8).collect();
    matches!(
        words[..],
        [
            "worker",
            "decode" | "encode",
            "--model",
            _,
            "--output",
            _,
            "--device",
            _
        ]
    )
}

/// What our own worker makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnWork {
    /// A video of latents: finished frames are kept, and the same command goes on after them.
    Decode,
    /// Latents of a video: nothing is kept.
    Encode,
}

/// What our own worker makes by this command; `None`: it is another program, or neither.
pub fn own_work(argv: &[String]) -> Option<OwnWork> {
    match argv.get(2).filter(|_| is_own_worker(argv))?.as_str() {
        "decode" => Some(OwnWork::Decode),
        "encode" => Some(OwnWork::Encode),
        _ => None,
    }
}

/// Whether it is a decode of our own worker, which keeps finished frames and goes on after them.
pub fn is_own_decode(argv: &[String]) -> bool {
    own_work(argv) == Some(OwnWork::Decode)
}

/// A command as it is listed: of our own worker what it makes, as its user knows it; of others all words.
pub fn listed(argv: &[String]) -> String {
    let output = argv.iter().position(|word| word == "--output");
    match (argv.get(2), output.and_then(|at| argv.get(at + 1))) {
        (Some(verb), Some(output)) if is_own_worker(argv) => {
            let name = output.trim_end_matches('/').rsplit('/').next();
            let name = name.unwrap_or(output);
            format!("{} {verb} -o {name}", env!("CARGO_PKG_NAME"))
        }
        _ => argv.join(" "),
    }
}

/// The code by which our own worker says that it cannot do its job; `None`: another program, or another end.
pub fn refusal(argv: &[String], status: ExitStatus) -> Option<u8> {
    match status {
        ExitStatus::Code(code) if REFUSALS.contains(&code) && is_own_worker(argv) => {
            u8::try_from(code).ok()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_worker_is_listed_by_what_it_makes() {
        let of = |text: &str| listed(&text.split(' ').map(str::to_owned).collect::<Vec<_>>());
        let own = "/bin/framepack-tui worker decode a --model /m --output /long/way/o.mp4 --force";
        assert_eq!(of(own), "framepack-tui decode -o o.mp4");
        let folder = "framepack-tui worker encode a --output pictures/";
        assert_eq!(of(folder), "framepack-tui encode -o pictures");
        let renamed = "/opt/fpt-1.0 worker decode --model m --output o.gif --device cpu -- a";
        assert_eq!(of(renamed), "framepack-tui decode -o o.gif");
        for whole in [
            "/opt/tool worker decode --output o.gif --model m --device cpu -- a",
            "worker decode --model m --output o.gif --device cpu -- a",
            "python a.py --output o.mp4",
            "framepack-tui worker probe",
            "framepack-tui worker decode a --output",
        ] {
            assert_eq!(of(whole), whole);
        }
    }

    #[test]
    fn only_our_own_worker_refuses() {
        let argv = |text: &str| -> Vec<String> { text.split(' ').map(str::to_owned).collect() };
        let own = argv("/bin/framepack-tui worker decode a");
        assert_eq!(refusal(&own, ExitStatus::Code(65)), Some(65));
        assert_eq!(refusal(&own, ExitStatus::Code(1)), None);
        assert_eq!(refusal(&own, ExitStatus::Signal(9)), None);
        for other in ["framepack-tui run", "python framepack-tui worker", "sh"] {
            assert_eq!(refusal(&argv(other), ExitStatus::Code(65)), None, "{other}");
        }
    }
}
