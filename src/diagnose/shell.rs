//! How a program ended, in the words that shells, Python, the C library, Windows, containers
//! and service managers leave behind in a pasted console.
//!
//! `Killed` and `Aborted` are ordinary words of ordinary logs: a shell's stand alone on
//! their line, or in the form of its report. A small exit code counts only in the words of
//! a layer around the program: programs call others and survive their ends.

use std::sync::LazyLock;

use regex::Regex;

use crate::model::{ActionId, Cite, ExitStatus, Verdict, VerdictId, windows};

/// What may stand before the words: a bar whose line the program did not end.
const BEGIN: &str = r"^(?:.*\|.*(?:it/s|s/it)[^\]]*\])?\s*";
/// A signal in a shell's words; sh and bash write the first letter as a capital one.
const WORDS: &str = r"(?P<what>Killed|Terminated|Segmentation fault|Aborted|Abort|Bus error|Illegal (?:hardware )?instruction|Floating[- ]point exception|Trace/breakpoint trap)(?:\s\(core dumped\))?";

/// Numbers that only a signal or a crash under Windows has as its exit code.
const TELLING: &str =
    r"13[2-9]|143|-10737\d{5}|32212\d{5}|0xC0[0-9a-f]{6}|-529697949|3765269347|0xE06D7363";

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
        // 128 + the signal, or a status of Windows, in whatever words
        format!(r"(?i)\b(?:exited with(?: exit)? code|finished with exit code|exit status|exit ?code|return ?code|returned|exited)\W{{1,8}}(?P<code>{TELLING})\b"),
        // docker compose, its events and lists, Kubernetes, systemd, Comfy Desktop, editors
        r"^[A-Za-z][\w.-]{0,60} exited with code (?P<code>\d{1,3})(?: \(restarting\))?\s*$".to_owned(),
        r"^\s*Exit Code:\s+(?P<code>\d{1,3})\s*$".to_owned(),
        r#"^\s*"ExitCode": (?P<code>\d{1,3}),?\s*$"#.to_owned(),
        r"\bExited \((?P<code>\d{1,3})\) (?:\w+ ){1,3}ago\b".to_owned(),
        // systemd: the unit of a program of this kind, as its journal holds those of all
        r"(?i)^\S*(?:comfy|framepack|wan2?gp|sdnext|invoke|forge|webui|diffusion|musubi)\S*\.service: Main process exited, code=exited, status=(?P<code>\d{1,3})/".to_owned(),
        r"(?i)^(?:\[\w+\]\s*)?(?:the )?(?:ComfyUI|python|terminal|backend|server|webui)? ?process(?: \d+)? (?:exited|finished|terminated|ended|stopped)\b.{0,80}?\b(?:exit )?code:? (?P<code>-?\d{1,10})\b".to_owned(),
        r"^\[process exited with code (?P<code>\d{1,10})\b".to_owned(),
        // supervisord, pm2
        r"\bexited: \S+ \(exit status (?P<code>\d{1,3}); not expected\)".to_owned(),
        r"\bexited: \S+ \(terminated by (?P<what>SIG[A-Z]+)\b".to_owned(),
        r"\bApp \[[^\]]+\] exited with code \[(?P<code>\d{1,3})\]".to_owned(),
        // bash in other languages
        r"^\s*(?:(?P<foreign>Speicherzugriffsfehler|Erreur de segmentation|Violación de segmento|段错误|Ошибка сегментирования|Getötet|Processus arrêté|Tué|已杀死|Убито)(?: \(.{1,40}\))?|(?P<foreign2>Abgebrochen|Abandon|Abortado|已放弃|Аварийный останов) \(.{1,40}\))\s*$".to_owned(),
        // `echo %ERRORLEVEL%`, `$LASTEXITCODE`
        r"^(?P<code>-10737\d{5}|32212\d{5})(?: \(0x[0-9a-fA-F]{8}\b.{0,60}\))?\s*$".to_owned(),
        // Windows: Python's fault handler, the crash handler of the C++ runtime, the event log
        r"^Windows fatal exception: (?:code )?(?P<windows>access violation|stack overflow|int divide by zero|float divide by zero|0x[0-9a-fA-F]{8})".to_owned(),
        r"^Exception [Cc]ode: ?(?P<code>0x[cC0][0-9a-fA-F]{7,15})\b".to_owned(),
        // the last words of the C library and of the C++ runtime
        r"^(?:\S+: )?(?:double free or corruption|free\(\): invalid |malloc\(\): |realloc\(\): |munmap_chunk\(\): |corrupted (?:size vs\. prev_size|double-linked list)|\*\*\* stack smashing detected|terminate called (?:after throwing|without an active))(?P<abort>)".to_owned(),
    ];
    forms.iter().filter_map(|f| Regex::new(f).ok()).collect()
});

/// How the program ended, if this line says so.
pub(super) fn end(text: &str) -> Option<ExitStatus> {
    let captures = FORMS.iter().find_map(|form| form.captures(text))?;
    if let Some(code) = captures.name("code") {
        return of_code(code.as_str());
    }
    if let Some(what) = captures.name("windows") {
        return of_exception(what.as_str());
    }
    if let Some(words) = captures.name("foreign") {
        return Some(ExitStatus::Signal(foreign(words.as_str())));
    }
    if captures.name("foreign2").is_some() {
        return Some(ExitStatus::Signal(6));
    }
    let signal = if captures.name("abort").is_some() {
        6
    } else if captures.name("interrupt").is_some() {
        2
    } else {
        number(captures.name("what")?.as_str())?
    };
    Some(ExitStatus::Signal(signal))
}

/// The end that an exit code means; `None`: success, or the user's own Ctrl-C.
fn of_code(text: &str) -> Option<ExitStatus> {
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let code = match hex {
        // a log of 64 bits has zeros before the 32 of the code
        Some(hex) => i64::from_str_radix(hex, 16).ok()?,
        None => text.parse().ok()?,
    };
    // a negative number and its 32 bits without a sign are the same status of Windows
    let code = match u32::try_from(code) {
        Ok(bits) => i32::from_ne_bytes(bits.to_ne_bytes()),
        Err(_) => i32::try_from(code).ok()?,
    };
    match code {
        // the user's own Ctrl-C is no failure
        0 | 130 | windows::INTERRUPTED => None,
        // a shell's 128 + the signal
        132..=139 | 143 => Some(ExitStatus::Signal(code - 128)),
        _ => Some(ExitStatus::Code(code)),
    }
}

/// The signal of a shell's words in another language than English.
fn foreign(words: &str) -> i32 {
    let killed = ["Getötet", "Processus arrêté", "Tué", "已杀死", "Убито"];
    if killed.contains(&words) { 9 } else { 11 }
}

/// What Python's fault handler calls an exception of Windows; none: one that programs catch
/// and go on after, such as a connection of COM that was lost.
fn of_exception(what: &str) -> Option<ExitStatus> {
    let code = match what {
        "access violation" => "0xC0000005",
        "stack overflow" => "0xC00000FD",
        "int divide by zero" => "0xC0000094",
        "float divide by zero" => "0xC000008E",
        code if code.to_ascii_lowercase().starts_with("0xc") => code,
        _ => return None,
    };
    of_code(code)
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

/// The shell's words as evidence, and what they leave open.
pub(super) fn tell_shell(verdict: &mut Verdict, status: ExitStatus, cite: &Cite) {
    let words = format!("\"{}\"", cite.text);
    let killed = matches!(status, ExitStatus::Signal(9));
    if verdict.id == VerdictId::Killed && verdict.cause.is_some() {
        verdict.sentence = format!("{} Its last words: {words}", verdict.sentence);
    } else if verdict.id == VerdictId::Killed && killed {
        verdict.sentence =
            format!("{words}: the program was killed from outside; the text does not say by whom");
    } else if verdict.id == VerdictId::Killed && matches!(status, ExitStatus::Signal(2)) {
        verdict.sentence = format!("{words}: the user interrupted the program (Ctrl-C)");
        verdict.action = ActionId::None;
        if let Some(remedy) = &mut verdict.remedy {
            (remedy.action, remedy.tier) = (ActionId::None, 0);
            "it was interrupted on purpose; start it again when you like"
                .clone_into(&mut remedy.why);
        }
    } else if verdict.id == VerdictId::Killed {
        verdict.sentence =
            format!("{words}: the program was ended from outside; by whom is not known");
    } else if verdict.id == VerdictId::CrashSegv
        && verdict.cause.is_none()
        && matches!(status, ExitStatus::Signal(_))
    {
        verdict.sentence = format!("{words}: the program crashed, without a word about why");
    }
    if let Some(first) = verdict.findings.first_mut()
        && first.cites.is_empty()
    {
        first.text.clone_from(&verdict.sentence);
        first.seqs = vec![cite.seq];
        first.cites = vec![cite.clone()];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_shells_and_others() {
        assert_eq!(FORMS.len(), 23);
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
            ("Speicherzugriffsfehler (Speicherabzug geschrieben)", 11),
            ("段错误 (核心已转储)", 11),
            ("Getötet", 9),
            ("Abgebrochen (Speicherabzug geschrieben)", 6),
            ("exited: comfyui (terminated by SIGSEGV; not expected)", 11),
            ("      Exit Code:    137", 9),
            ("            \"ExitCode\": 137,", 9),
            (
                "4f2a  comfy  \"python main.py\"  Exited (137) 2 minutes ago",
                9,
            ),
        ] {
            assert_eq!(end(text), Some(ExitStatus::Signal(want)), "{text}");
        }
    }

    #[test]
    fn exit_codes_of_windows_and_of_layers_around_the_program() {
        let violation = -1_073_741_819;
        for (text, want) in [
            ("Windows fatal exception: access violation", violation),
            ("ComfyUI process exited (exit code 3221225477).", violation),
            (
                "ComfyUI process exited with code 3221225477 and signal null",
                violation,
            ),
            (
                "Process finished with exit code -1073741819 (0xC0000005)",
                violation,
            ),
            ("Exception Code: 0xC0000005", violation),
            ("Exception code: 0xc0000005", violation),
            ("3221225477", violation),
            ("-1073741819", violation),
            ("-1073741819 (0xC0000005, Access Violation)", violation),
            ("Windows fatal exception: code 0xc0000374", -1_073_740_940),
            ("Windows fatal exception: stack overflow", -1_073_741_571),
            (
                "subprocess.CalledProcessError: Command 'x' returned non-zero exit status 3221225501.",
                -1_073_741_795,
            ),
            ("python.exe exited with code -1073740791", -1_073_740_791),
            // a layer around the program reports the program's own failure
            ("comfy-1 exited with code 1", 1),
            (
                "comfyui.service: Main process exited, code=exited, status=1/FAILURE",
                1,
            ),
            (
                "[info] ComfyUI process exited with code 1 and signal null",
                1,
            ),
            ("      Exit Code:    1", 1),
            ("exited: comfyui (exit status 1; not expected)", 1),
            ("[process exited with code 1 (0x00000001)]", 1),
            ("The terminal process terminated with exit code: 1", 1),
            ("c0ffee  comfy  \"python\"  Exited (1) 5 seconds ago", 1),
        ] {
            assert_eq!(end(text), Some(ExitStatus::Code(want)), "{text}");
        }
        // COM's lost connection and a C++ exception are caught by whoever raised them
        for text in [
            "Windows fatal exception: code 0x80010108",
            "Windows fatal exception: code 0xe06d7363",
        ] {
            assert_eq!(end(text), None, "{text}");
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
            "git pull exited with code 1, going on with the old version",
            "comfy-1 exited with code 0",
            "Exit Code:    0",
            "comfy-1 exited with code 130",
            "bluetooth.service: Main process exited, code=exited, status=1/FAILURE",
            "comfyui.service: Main process exited, code=exited, status=0/SUCCESS",
            "ComfyUI process exited with code 3221225786 and signal null",
            "python3 -m pip returned 1",
            "tile 3221225477 of many",
            "Aborted! 3 of 4 done",
            "[12] killed it",
        ] {
            assert_eq!(end(text), None, "{text}");
        }
    }
}
