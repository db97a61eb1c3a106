//! How a program ended, in the words that shells, Python, the C library, containers and
//! service managers leave behind in a pasted console.
//!
//! `Killed` and `Aborted` are ordinary words of ordinary logs: a shell's stand alone on
//! their line, or in the form of its report.

use std::sync::LazyLock;

use regex::Regex;

use crate::model::ExitStatus;

/// What may stand before the words: a bar whose line the program did not end.
const BEGIN: &str = r"^(?:.*\|.*(?:it/s|s/it)[^\]]*\])?\s*";
/// A signal in a shell's words; sh and bash write the first letter as a capital one.
const WORDS: &str = r"(?P<what>Killed|Terminated|Segmentation fault|Aborted|Abort|Bus error|Illegal (?:hardware )?instruction|Floating[- ]point exception|Trace/breakpoint trap)(?:\s\(core dumped\))?";

static FORMS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let forms = [
        // sh, bash, dash
        format!(r"{BEGIN}{WORDS}\s*$"),
        // bash of a script's child: `run.sh: line 3:  4711 Killed      python main.py`
        format!(r"^\S+: line \d+:\s+\d+ {WORDS}(?:\s|$)"),
        // jobs: `[1]+  Killed   python main.py`, `[1]    4711 killed     python main.py`
        format!(r"^\[\d+\]\s?[+-]?\s+(?:\d+\s+)?(?i:{WORDS})(?:\s{{2,}}|\s*$)"),
        format!(r"{BEGIN}-?zsh: (?i:{WORDS})(?:\s|$)"),
        // Python's fault handler
        format!(r"{BEGIN}Fatal Python error: (?i:{WORDS})\s*$"),
        // the user's own Ctrl-C, by the last line of Python's traceback
        r"^(?:\^C)*KeyboardInterrupt:?\s*$(?P<interrupt>)".to_owned(),
        // fish, GNU time, torchrun, subprocess, systemd, editors
        r"\b(?:terminated by signal|died with <Signals\.|exited, code=(?:killed|dumped), status=\d+/|interrupted by signal \d+:) ?(?P<what>[A-Z]{3,7}|\d{1,2})\b".to_owned(),
        // 128 + the signal: containers, editors
        r"(?i)\b(?:exited with code|finished with exit code|exit status|exit code:?) (?P<code>13[2-9]|143)\b".to_owned(),
        // the last words of the C library and of the C++ runtime
        r"^(?:\S+: )?(?:double free or corruption|free\(\): invalid |malloc\(\): |realloc\(\): |munmap_chunk\(\): |corrupted (?:size vs\. prev_size|double-linked list)|\*\*\* stack smashing detected|terminate called (?:after throwing|without an active))(?P<abort>)".to_owned(),
    ];
    forms.iter().filter_map(|f| Regex::new(f).ok()).collect()
});

/// How the program ended, if this line says so.
pub(super) fn end(text: &str) -> Option<ExitStatus> {
    let captures = FORMS.iter().find_map(|form| form.captures(text))?;
    let signal = if let Some(code) = captures.name("code") {
        code.as_str().parse::<i32>().ok()? - 128
    } else if captures.name("abort").is_some() {
        6
    } else if captures.name("interrupt").is_some() {
        2
    } else {
        number(captures.name("what")?.as_str())?
    };
    Some(ExitStatus::Signal(signal))
}

/// The signal of these words, of a name with or without `SIG`, or of its digits.
fn number(words: &str) -> Option<i32> {
    if let Ok(number) = words.parse() {
        return Some(number);
    }
    let words = words.to_ascii_lowercase();
    Some(match words.strip_prefix("sig").unwrap_or(&words) {
        "kill" | "killed" => 9,
        "term" | "terminated" => 15,
        "segv" | "segmentation fault" => 11,
        "abrt" | "abort" | "aborted" => 6,
        "bus" | "bus error" => 7,
        "ill" | "illegal instruction" | "illegal hardware instruction" => 4,
        "fpe" | "floating point exception" | "floating-point exception" => 8,
        "trap" | "trace/breakpoint trap" => 5,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_shells_and_others() {
        assert_eq!(FORMS.len(), 9);
        for (text, want) in [
            ("Segmentation fault", 11),
            ("KeyboardInterrupt", 2),
            ("Segmentation fault (core dumped)", 11),
            (" 40%|####      | 8/20 [00:31<00:47,  3.91s/it]Killed", 9),
            ("Aborted (core dumped)", 6),
            ("Killed", 9),
            ("Bus error (core dumped)", 7),
            ("Illegal instruction (core dumped)", 4),
            ("Fatal Python error: Segmentation fault", 11),
            ("Fatal Python error: Aborted", 6),
            ("zsh: killed     python main.py --lowvram", 9),
            ("zsh: segmentation fault (core dumped)  python main.py", 11),
            ("zsh: abort (core dumped)  python main.py", 6),
            ("zsh: illegal hardware instruction (core dumped)  python", 4),
            (
                "./webui.sh: line 304:  4711 Killed                  \"${python_cmd}\" -u launch.py",
                9,
            ),
            (
                "run.sh: line 7: 4711 Segmentation fault      (core dumped) python main.py",
                11,
            ),
            ("[1]+  Killed                  python main.py", 9),
            ("[1]    4711 killed     python main.py", 9),
            (
                "fish: Job 1, 'python main.py' terminated by signal SIGSEGV (Address boundary error)",
                11,
            ),
            ("Command terminated by signal 9", 9),
            (
                "subprocess.CalledProcessError: Command '['python', 'x.py']' died with <Signals.SIGKILL: 9>.",
                9,
            ),
            (
                "comfy.service: Main process exited, code=killed, status=9/KILL",
                9,
            ),
            (
                "comfy.service: Main process exited, code=dumped, status=6/ABRT",
                6,
            ),
            ("comfy-1 exited with code 137", 9),
            (
                "Process finished with exit code 139 (interrupted by signal 11:SIGSEGV)",
                11,
            ),
            (
                "terminate called after throwing an instance of 'std::runtime_error'",
                6,
            ),
            ("double free or corruption (!prev)", 6),
            ("free(): invalid pointer", 6),
        ] {
            assert_eq!(end(text), Some(ExitStatus::Signal(want)), "{text}");
        }
    }

    #[test]
    fn the_same_words_in_ordinary_lines() {
        for text in [
            "Killed worker 3",
            "[INFO] Killed",
            "killed",
            "Job aborted by user",
            "aborted",
            "Terminated early at step 12",
            "Prompt: a man Killed",
            "got prompt: Segmentation fault in the city",
            "If you get Segmentation fault (core dumped) lower the size",
            "exit code 0",
            "exited with code 1",
            "Aborted! 3 of 4 done",
            "[12] killed it",
        ] {
            assert_eq!(end(text), None, "{text}");
        }
    }
}
