//! Text that speaks of an error without one having happened here (R15): advice,
//! settings, conditions, code, quotations, errors that were answered.

use std::sync::LazyLock;

use regex::bytes::{Regex, RegexBuilder};

/// Before the words of an error: what makes them no report.
const BEFORE: &[&str] = &[
    // code, an echoed source line, a box of rich's around one, a quotation
    r"^\s*(?:(?:import|from|catch|except|raise|if|elif|assert|return|try|with|def|class|print|logger|logging|warnings)\b|#|//|/\*|\*|>|\x60|\xe2\x94\x82|\|)",
    r"^ {3,}\S",
    r"^\s*File \x22",
    // a condition
    r"(?i)\b(?:if|when|whenever|unless|in case(?: of)?|should) (?:you|it|this|these|that|the|there|an?|your|any|reserved|not|on|for|of|gets?|still|see\w*)\b",
    r"(?i)\bcould (?:be|cause|lead|result|run|happen|still|also|trigger|mean)\b",
    // a question, and what others tell
    r"(?i)^\W*(?:which|what|how|why|should|does|do|can i|could i|has (?:any|some)one|is (?:it|there)|are there)\b[^?]{1,300}\?",
    r"(?i)\b(?:people|everyone|everybody|somebody|someone|others|many|they) (?:say|said|report|claim|write|get|see|tell)s?\b",
    // settings and help
    r"(?i)^\W*(?:tips?|hints?|notes?|advice|help|usage|suggestions?|recommend\w*|examples?|try|use|set|consider|see|see also|troubleshooting|faq|tldr|docs?)\b",
    r"(?i)\b(?:please|try|consider) (?:see|use|set|reduc\w+|lower\w*|run\w*|check|read)\b.{0,60}$",
    // answered or expected
    r"(?i)\b(?:caught|handled|handling|handles|ignor(?:ed|ing|es)|recovered from|recovering from|suppress\w*|retr(?:y|ies|ying) (?:on|after)|surviv\w+|no longer|no more|without|catch\w*|watch\w* for) (?:an? |any |the |previous |harmless )?(?:\w+ )?$",
    r"(?i)\bon (?:an? |any )?$",
    // a user's own words
    r"(?i)\b(?:got |the |positive |negative |your )?(?:prompt|caption|title|description|text|tags?)s?\b\W{0,3}[:=]",
    r"(?i)\bprompt\W{0,3}[:=]",
];

/// The same where no exception is told with it: what might be, or is guarded against. The
/// message of an exception that was raised may advise as well.
const MIGHT: &str = r"(?i)\b(?:may|might|would|can[ ,]|to avoid|avoids?|avoiding|to prevent|prevents?|preventing|risk of|likely|possible|potential\w*|against|instead of|reduces?|helps? with|usually|often|sometimes|typically|e\.g\.|such as|similar to|known issue|fix(?:es|ed)? for|workaround for|simulat\w+)\b.{0,60}$";

/// The last line of a traceback.
const RAISED: &str = r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception): ";

/// Anywhere in a line: the program answers the error itself.
const ANSWERED: &[&str] = &[
    r"(?i)\b(?:retrying|will retry|falling back|falls back|fell back|fallback to|using (?:the |a )?fallback|trying again|trying (?:\w+ ){1,4}instead|continuing (?:without|anyway|with)|continue without|switching to|(?:will be )?skipp(?:ed|ing)\b|will be disabled|is disabled|disabling|not critical|non-critical|can be (?:safely )?ignored|safe to ignore|ignoring|harmless|proceeding without|using .{1,30} instead)\b",
    // MIOpen without the databases that are shipped with it is slow, no more
    r"(?i)\bsystem (?:find-|perf-)?(?:db|database)\b.{0,200}\bperformance may degrade\b",
    r"(?i)\bsome optimi[sz]ations will not be (?:available|enabled)\b|\berror caught was\b|\boverriding blas backend\b",
    // optional parts that are announced as absent
    r"(?i)\b(?:optional|not installed!|is not installed!)(?:\W|$)",
    r"(?i)\b(?:IMPORT FAILED|Cannot import .{1,200} module for custom nodes)\b",
];

fn set(patterns: &[&str]) -> Vec<Regex> {
    patterns
        .iter()
        .filter_map(|p| RegexBuilder::new(p).unicode(false).build().ok())
        .collect()
}

static BEFORES: LazyLock<Vec<Regex>> = LazyLock::new(|| set(BEFORE));
static ANSWERS: LazyLock<Vec<Regex>> = LazyLock::new(|| set(ANSWERED));

static MIGHTS: LazyLock<Vec<Regex>> = LazyLock::new(|| set(&[MIGHT]));
static RAISES: LazyLock<Vec<Regex>> = LazyLock::new(|| set(&[RAISED]));

/// Whether the words of an error at `start` of this line report none. PyTorch appends
/// advice to the very line that reports the error, so what follows it counts only where
/// it says that the program answers.
pub(super) fn is_no_report(line: &[u8], start: usize) -> bool {
    if STATUS.iter().any(|r| r.is_match(line)) {
        return false;
    }
    let before = &line[..start.min(line.len())];
    // ComfyUI's refusal of a workflow is no prompt of a user
    let before = before.strip_prefix(b"invalid prompt: ").unwrap_or(before);
    is_quoted(line, before)
        || BEFORES.iter().any(|r| r.is_match(before))
        || (MIGHTS.iter().any(|r| r.is_match(before)) && !RAISES.iter().any(|r| r.is_match(line)))
        || ANSWERS.iter().any(|r| r.is_match(line))
}

/// A field of a container's status, which is indented as code is.
static STATUS: LazyLock<Vec<Regex>> =
    LazyLock::new(|| set(&[r"^\s*\x22?(?:Reason|OOMKilled)\x22?:\s+\x22?(?:OOMKilled|true)\b"]));

/// Words before a quotation that make it the message of an error.
static MESSAGE: LazyLock<Vec<Regex>> =
    LazyLock::new(|| set(&[r"(?i)error|exception|fail|\bmessage\b|\bwhat\(\)"]));

/// An odd number of quotation marks stands before the words, and no error is told with
/// them. A log of JSON lines has all its words in such marks.
fn is_quoted(line: &[u8], before: &[u8]) -> bool {
    let odd = |mark: u8| before.split(|b| *b == mark).count() % 2 == 0;
    !matches!(line.first(), Some(b'{' | b'"'))
        && (odd(b'"') || odd(b'`'))
        && !MESSAGE.iter().any(|r| r.is_match(before))
}

#[cfg(test)]
pub(super) fn all_compile() -> bool {
    MIGHTS.len() + RAISES.len() == 2
        && BEFORES.len() == BEFORE.len()
        && ANSWERS.len() == ANSWERED.len()
}
