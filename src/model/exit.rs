//! The exit codes of the program: part of its contract, with their meaning.

/// Finished, printed, or left on the user's word.
pub const DONE: u8 = 0;
/// `replay --assert`: today's rules say something else; `doctor`: warnings.
pub const DIFFERS: u8 = 1;
/// `doctor`: errors.
pub const PROBLEMS: u8 = 2;
/// Finished after a restart.
pub const RESTARTED: u8 = 10;
/// The workload failed.
pub const FAILED: u8 = 20;
/// Hung and given up.
pub const GAVE_UP: u8 = 21;
/// Processes survive SIGKILL.
pub const UNKILLABLE: u8 = 22;
/// What the command left running was ended.
pub const LEFTOVERS: u8 = 23;
/// The command line asks for what cannot be done (EX_USAGE of sysexits.h).
pub const USAGE: u8 = 64;
/// A file is not right (EX_DATAERR).
pub const DATA: u8 = 65;
/// Something that was named is not there (EX_NOINPUT).
pub const MISSING: u8 = 66;
/// A device or a service is missing or in use (EX_UNAVAILABLE).
pub const UNAVAILABLE: u8 = 69;
/// A bug of ours, or a folder of ours cannot be used (EX_SOFTWARE).
pub const INTERNAL: u8 = 70;
/// The system has no room for what every program needs (EX_OSERR).
pub const SHORTAGE: u8 = 71;
/// What is asked for is more than there is room for (EX_CANTCREAT).
pub const NO_ROOM: u8 = 73;
/// Interrupted: 128 + SIGINT.
pub const INTERRUPTED: u8 = 130;
/// Terminated: 128 + SIGTERM.
pub const TERMINATED: u8 = 143;

/// An exit code with its meaning.
#[derive(Debug, Clone, Copy)]
pub struct Meaning {
    /// The code.
    pub code: u8,
    /// What it says of a command, in few words.
    pub text: &'static str,
    /// What it says of `run`; absent: `run` never ends with it.
    pub of_run: Option<&'static str>,
}

const fn only(code: u8, text: &'static str) -> Meaning {
    Meaning {
        code,
        text,
        of_run: None,
    }
}

const fn run(code: u8, text: &'static str, of_run: &'static str) -> Meaning {
    Meaning {
        code,
        text,
        of_run: Some(of_run),
    }
}

/// Every exit code that the program ends with, in order.
#[rustfmt::skip]
pub const ALL: [Meaning; 17] = [
    run(DONE, "done, or you left", "finished or detached"),
    only(DIFFERS, "replay --assert: the rules say something else; doctor: warnings"),
    only(PROBLEMS, "doctor: errors"),
    run(RESTARTED, "finished after a restart", "finished after a restart"),
    run(FAILED, "the workload or the job failed", "the workload failed"),
    run(GAVE_UP, "hung and given up", "hung and given up"),
    run(UNKILLABLE, "processes survive SIGKILL", "processes survive SIGKILL"),
    run(LEFTOVERS, "what a command left running was ended", "what the command left running did nothing and was ended"),
    run(USAGE, "usage", "usage"),
    run(DATA, "a bad profile, record, entry or file", "bad profile or environment"),
    run(MISSING, "a command, profile, run, process, entry or file is not found", "command, profile or file not found"),
    run(UNAVAILABLE, "a demanded device or service is missing or in use", "demanded device missing or in use"),
    run(INTERNAL, "our bug, a folder of ours that cannot be used, or the supervisor was killed", "our bug, a folder of ours that cannot be used, or the supervisor was killed"),
    run(SHORTAGE, "no room for open files, processes or memory", "no room for open files, processes or memory"),
    run(NO_ROOM, "more is asked for than the card or the disk has", "cap above the card"),
    run(INTERRUPTED, "interrupted", "interrupted"),
    run(TERMINATED, "terminated", "terminated"),
];

/// `Exit codes: 0 done, …`, in lines of at most 90 columns.
pub fn words(list: impl Iterator<Item = (u8, &'static str)>) -> String {
    const COLUMNS: usize = 90;
    let (mut lines, mut line) = (Vec::new(), "Exit codes:".to_owned());
    let mut list = list.peekable();
    while let Some((code, text)) = list.next() {
        let end = if list.peek().is_some() { ',' } else { '.' };
        // a meaning with a comma in it does not run into the next one
        let end = if text.contains(", ") && end == ',' {
            ';'
        } else {
            end
        };
        for word in format!("{code} {text}{end}").split(' ') {
            if line.len() + word.len() >= COLUMNS {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.push(line);
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn sources(folder: &Path, into: &mut Vec<(String, String)>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, into);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                into.push((path.display().to_string(), text));
            }
        }
    }

    /// Codes stand in this file alone: no function that gives one, and nothing that ends with
    /// one, has a number of its own.
    #[test]
    fn no_other_file_makes_up_an_exit_code() {
        let mut all = Vec::new();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        sources(&root, &mut all);
        // the guardian and the reader of rocm-smi end for our own supervisor alone
        let inner = ["guardian.rs", "rocm_smi/reader.rs"];
        let mut functions = 0;
        for (path, text) in all {
            let code = text.split("#[cfg(test)]").next().unwrap();
            let (mut within, mut found) = (false, Vec::new());
            for line in code.lines() {
                if line.contains("fn exit_code(") {
                    (within, functions) = (true, functions + 1);
                }
                let after = line.split_once("=> ").map_or("", |(_, after)| after);
                let number = after.starts_with(|c: char| c.is_ascii_digit());
                let literal = line.split("ExitCode::from(").nth(1);
                let literal = literal.is_some_and(|l| l.starts_with(|c: char| c.is_ascii_digit()));
                let inner = inner.iter().any(|name| path.ends_with(name));
                if within && number || literal && !inner {
                    found.push(line.trim());
                }
                within &= !line.starts_with("    }") || line.starts_with("     ");
            }
            assert!(
                found.is_empty(),
                "{path}: {found:?}; name it in model::exit"
            );
        }
        assert!(
            functions >= 5,
            "{functions} functions that give an exit code"
        );
    }

    /// The page of exit codes has each, and nothing else; so it is with those of `run`.
    #[test]
    fn the_page_of_exit_codes_has_every_code() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/exit-codes.md");
        let page = std::fs::read_to_string(path).unwrap();
        let (mut all, mut of_run): (Vec<u8>, Vec<u8>) = Default::default();
        for row in page.lines().filter(|l| l.starts_with("| ")) {
            let cells: Vec<_> = row.split('|').map(str::trim).collect();
            all.extend(cells[1].parse::<u8>());
            let commands: Vec<_> = cells[2].split(", ").collect();
            let run = |c: &&str| *c == "all" || c.starts_with("`run`") || c.starts_with("`run -");
            if let (true, Some(code)) = (commands.iter().any(run), all.last()) {
                of_run.push(*code);
            }
        }
        of_run.dedup();
        let ours: Vec<u8> = ALL.iter().map(|m| m.code).collect();
        assert_eq!(all, ours);
        let list = ALL.iter().filter(|m| m.of_run.is_some());
        assert_eq!(of_run, list.map(|m| m.code).collect::<Vec<_>>());
    }

    #[test]
    fn the_words_of_codes_keep_to_their_columns() {
        let text = words(ALL.iter().map(|m| (m.code, m.text)));
        assert!(
            text.starts_with("Exit codes: 0 done, or you left; 1 replay"),
            "{text}"
        );
        assert!(text.ends_with("143 terminated."), "{text}");
        assert!(text.lines().all(|l| l.len() <= 90), "{text}");
    }
}
