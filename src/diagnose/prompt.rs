//! Whether the shell has its user back: its prompt, or what a start script of Windows asks
//! for before it closes its window. Whatever ran before has ended.

use std::sync::LazyLock;

use regex::Regex;

use crate::model::{Cite, JobChange, Phase, Verdict, VerdictId};

use super::standstill::is_work;
use super::tail::Tail;

static BACK: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?x)
        ^(?:\([^)]{1,40}\)\ ?)?(?:PS\ )?[A-Z]:\\[^>|<]{0,200}>\s*(?:pause)?\s*$
        |^(?:\([^)]{1,40}\)\ ?)?(?:\[?[\w.-]{1,40}@[\w.-]{1,60}[\ :][^$\#%|]{0,100}\]?)?[$\#%]\s*$
        |^(?:Press\ any\ key\ to\ (?:continue|close|exit)
            |Press\ Enter\ to\ (?:continue|close|exit)
            |Dr.{1,2}cken\ Sie\ eine\ beliebige\ Taste
            |Appuyez\ sur\ une\ touche
            |Presione\ una\ tecla
            |Pressione\ qualquer\ tecla
            |Premere\ un\ tasto
            |Aby\ kontynuowa.{1,2},\ naci.{1,2}nij
            |Для\ продолжения\ нажмите
            |请按任意键继续
            |請按任意鍵繼續
            |続行するには)",
    )
    .ok()
});

/// Words by which a user ends a program on purpose.
static ON_PURPOSE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)^\^C|\bTerminate batch job\b|\bBatchvorgang abbrechen\b|\bKeyboardInterrupt\b|^Stopped server\b|^(?:usage|Keyboard interruption)\b|\bShutting down\b",
    )
    .ok()
});

/// Follows whether the shell has its user back.
#[derive(Debug, Default)]
pub(super) struct Prompt {
    /// The first line of the prompt: nothing but the prompt came after it.
    back: Option<Cite>,
    /// The user ended the program, or started it for its help alone.
    on_purpose: bool,
}

impl Prompt {
    /// Takes a line.
    pub(super) fn observe(&mut self, text: &str, cite: impl FnOnce() -> Cite) {
        self.on_purpose |= is_on_purpose(text);
        if is_back(text) {
            self.back.get_or_insert_with(cite);
        } else if !text.trim().is_empty() {
            self.back = None;
        }
    }

    /// The line that shows that the program has ended, unless its user wanted that.
    pub(super) fn ended_alone(&self) -> Option<&Cite> {
        self.back.as_ref().filter(|_| !self.on_purpose)
    }
}

/// The verdict over a program that ended in its start or in the middle of a job without a word;
/// none: it had come to the end of its work. `tells`: it tells of each result.
pub(super) fn silent_end(
    mut verdict: Verdict,
    tail: &Tail,
    cite: &Cite,
    tells: bool,
) -> Option<Verdict> {
    if tells && has_delivered(tail) {
        return None;
    }
    let (id, place) = match (&tail.job, tail.phase) {
        (None, phase) if tells && is_work(phase) => {
            (VerdictId::CrashSegv, "in the middle of its job")
        }
        (None, Phase::Startup) => (VerdictId::AppError, "in its start"),
        (Some(JobChange::Started), _) => (VerdictId::CrashSegv, "in the middle of its job"),
        _ => return None,
    };
    verdict.id = id;
    verdict.phase = tail.phase;
    verdict.sentence = format!(
        "the program ended {place} without a word about why: \"{}\" follows its last line",
        cite.text
    );
    verdict.confidence = 0.7;
    verdict.findings.truncate(1);
    if let Some(first) = verdict.findings.first_mut() {
        first.verdict = id;
        first.text.clone_from(&verdict.sentence);
        first.seqs = vec![cite.seq];
        first.cites = vec![cite.clone()];
    }
    if let Some(own) = verdict.considered.first_mut() {
        own.verdict = id;
        own.why.clone_from(&verdict.sentence);
    }
    Some(verdict)
}

/// Whether the last lines tell of a result.
fn has_delivered(tail: &Tail) -> bool {
    tail.words().iter().any(|w| w.text.contains("save result "))
}

/// Whether a line is the shell's prompt, or the question of a script that has ended.
fn is_back(text: &str) -> bool {
    BACK.as_ref().is_some_and(|r| r.is_match(text.trim_start()))
}

/// Whether a line says that the user wanted the end, or that nothing was to be run.
fn is_on_purpose(text: &str) -> bool {
    ON_PURPOSE.as_ref().is_some_and(|r| r.is_match(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_and_questions_of_scripts() {
        for text in [
            "$",
            "$ ",
            "u@box:~/ComfyUI$ ",
            "(venv) u@box:~/ComfyUI$",
            "[u@box ComfyUI]$",
            "root@9f3c2b1a0d4e:/app#",
            "C:\\ai\\ComfyUI>",
            "E:\\ComfyUI_windows_portable>pause",
            "(venv) PS D:\\ComfyUI> ",
            "Press any key to continue . . .",
            "Drücken Sie eine beliebige Taste . . .",
            "请按任意键继续. . .",
        ] {
            assert!(is_back(text), "{text}");
        }
        for text in [
            "$ python main.py",
            "got prompt",
            "u@box:~/ComfyUI$ python main.py",
            "C:\\ai\\ComfyUI>.venv\\Scripts\\python.exe main.py",
            " 50%",
            "100%",
            "cost: 5 $",
            "# a comment",
            "",
        ] {
            assert!(!is_back(text), "{text}");
        }
        assert!(is_on_purpose("^CTerminate batch job (Y/N)? y"));
        assert!(is_on_purpose("Stopped server"));
        assert!(!is_on_purpose("got prompt"));
    }
}
