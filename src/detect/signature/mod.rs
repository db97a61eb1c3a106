//! Signatures of known errors in the workload's own text.
//!
//! R15: bounded matchers; advice, warnings about what might happen, and teardown
//! lines can never be a cause. A match is an observation, not yet a verdict.
//!
//! The texts are those that ROCr, the HIP and CUDA runtimes, PyTorch, MIOpen, Python and
//! the programs print; the tables name them by subject.

mod card;
mod hints;
mod level;
mod library;
mod memory;
mod noise;
mod program;

use std::sync::LazyLock;

use regex::bytes::{Regex, RegexBuilder};

use crate::causes::{Patterns, Strength, catalogue};
use crate::model::VerdictId;

pub(crate) use hints::{Hint, announces_a_move, hint};
use level::Level;
pub(crate) use level::{behind_level, is_error, is_result, is_success};

/// How much a signature explains. Of several errors in one failure the highest counts,
/// of equal ones the first: what follows is mostly its consequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// The program itself calls it a warning: it explains a failure for which there are no
    /// better words, and is none by itself.
    Warning,
    /// What any failure may leave behind: says that something failed, not what.
    Aftermath,
    /// A kind of error that has several causes.
    General,
    /// One cause.
    Specific,
    /// The runtime or the driver names the cause itself; what a program says later is
    /// its consequence.
    Root,
    /// The kernel says so, of our process or of the card that we watch.
    Kernel,
}

/// A signature: pattern (bytes, ASCII classes), what it speaks for, how much it explains.
struct Row(&'static str, VerdictId, Rank);

/// An error that a line reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reported {
    /// What it speaks for.
    pub(crate) verdict: VerdictId,
    /// How much it explains.
    pub(crate) rank: Rank,
}

struct Signatures {
    patterns: Patterns,
    reported: Vec<Reported>,
}

static SIGNATURES: LazyLock<Option<Signatures>> = LazyLock::new(|| build().ok());

fn build() -> Result<Signatures, String> {
    let all = || TABLES.iter().flat_map(|t| t.iter());
    let reported = all().map(|Row(_, verdict, rank)| Reported {
        verdict: *verdict,
        rank: *rank,
    });
    Ok(Signatures {
        patterns: Patterns::new(all().map(|r| r.0))?,
        reported: reported.collect(),
    })
}

/// One of these words, or parts of words, is in every line that a row can match: most
/// lines are told apart by them alone.
const WORDS: &str = r"(?i-u)error|fail|memory|exception|hang|fault|unable|unspecified|unexpected|unknown|uncorrect|undefined|unpickl|undetermin|can'?t|cannot|could|\bnot\b|\bno\b|n'?t |invalid|illegal|corrupt|malformed|damaged|mismatch|denied|locked|same|requires|expected|missing|lost|bus\b|reset|nan|black|exhaust|alloc|mapped|register|status|hsa_|/dev/|enospc|errno|space|quota|in use|port in range|dtype|magic|eof|truncated|incomplete|ran out|timed|launch|available|not compiled|symbol|version `|too old|sm\d|sm_|gfx|tensile|member of|built for|unsupported|non supported|is full|limit|pin_|EADDR|Distribution|hash|checksum|sha256|filesystem|badzip|unsuccess|sufficient|must be on|PTX";

static GATE: LazyLock<Option<Regex>> =
    LazyLock::new(|| RegexBuilder::new(WORDS).unicode(false).build().ok());

/// By subject; of equal ranks in one line the earlier row counts.
const TABLES: [&[Row]; 4] = [memory::ROWS, card::ROWS, library::ROWS, program::ROWS];

/// The error that a line reports, if it carries the signature of a known one.
pub(crate) fn of_line(text: &str) -> Option<Reported> {
    with_decided(text, of_tables(text), catalogue().decided(text))
}

/// The same with the verdicts that causes make of the line: of equal ranks theirs, for a
/// cause knows more than the kind of the error.
pub(crate) fn with_decided(
    text: &str,
    known: Option<Reported>,
    decided: Vec<(VerdictId, Strength, usize)>,
) -> Option<Reported> {
    let reports = decided
        .into_iter()
        .filter(|(_, _, start)| reports(text, *start));
    let by_cause = reports.map(|(verdict, strength, _)| Reported {
        verdict,
        rank: match strength {
            Strength::General => Rank::General,
            Strength::Specific => Rank::Specific,
            Strength::Root => Rank::Root,
        },
    });
    let most = match (known, by_cause.max_by_key(|r| r.rank)) {
        (Some(k), Some(c)) if k.rank > c.rank => Some(k),
        (known, by_cause) => by_cause.or(known),
    };
    most.map(|r| {
        // a black picture is never more than a warning to the program
        let warns = r.verdict != VerdictId::NanOutput && level::of(text) == Some(Level::Warning);
        Reported {
            rank: if warns { Rank::Warning } else { r.rank },
            ..r
        }
    })
}

/// Whether the words at `start` of a line report an error.
pub(crate) fn reports(text: &str, start: usize) -> bool {
    !noise::is_no_report(text.as_bytes(), start)
}

fn of_tables(text: &str) -> Option<Reported> {
    let line = text.as_bytes();
    if !GATE.as_ref()?.is_match(line) {
        return None;
    }
    let all = SIGNATURES.as_ref()?;
    let mut best: Option<Reported> = None;
    for i in all.patterns.matches(line) {
        let (regex, reported) = (all.patterns.regex(i)?, all.reported.get(i)?);
        let more = best.is_none_or(|b| reported.rank > b.rank);
        if more && !noise::is_no_report(line, regex.find(line)?.start()) {
            best = Some(*reported);
        }
    }
    best
}

/// Whether the program says that it compiles or tunes now: a busy CPU beside an idle
/// card is then expected. A setting or a step that is over says nothing.
pub(crate) fn is_compilation(text: &str) -> bool {
    static NOW: LazyLock<Option<regex::Regex>> = LazyLock::new(|| {
        regex::Regex::new(
            r"(?i)\b(compiling|compilation (started|in progress)|auto-?tuning|(building|generating) (the )?(\w+ )?(kernels?|extensions?|engine)|warming up|(first|initial) (run|launch|compil\w+)\b.{0,60}\b(minutes?|while|slow\w*|long\w*))\b",
        )
        .ok()
    });
    static NOT_NOW: LazyLock<Option<regex::Regex>> = LazyLock::new(|| {
        regex::Regex::new(
            r"(?i)\b(disabled?|skip(ped|ping)?|not|without|failed|error|finished|done|complete[d]?|if|when|to enable|took)\b",
        )
        .ok()
    });
    let hit = |r: &LazyLock<Option<regex::Regex>>| r.as_ref().is_some_and(|r| r.is_match(text));
    hit(&NOW) && !hit(&NOT_NOW)
}

/// A web server's note of a request that a page or a monitor makes by itself.
pub(crate) fn is_request(text: &str) -> bool {
    static REQUEST: LazyLock<Option<regex::Regex>> = LazyLock::new(|| {
        regex::Regex::new(r#""(GET|HEAD|OPTIONS|POST) /\S* HTTP/\d(\.\d)?" \d{3}\b"#).ok()
    });
    REQUEST.as_ref().is_some_and(|r| r.is_match(text))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
