//! What of a paste is a log: the fences of an issue, and where another program's log begins.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

use super::report::ReadPart;
use crate::workload::adapter::AdapterKind;

/// Parts that are told.
const MOST_PARTS: usize = 64;

/// The message in a report of an error that ComfyUI makes for issues.
static MESSAGE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^\W{0,4}Exception (?P<what>Type|Message)\W{1,6}(?P<text>.+?)\**\s*$").ok()
});

/// Languages of fences that hold no log.
const NO_LOG: &[&str] = &[
    "python",
    "py",
    "json",
    "yaml",
    "yml",
    "toml",
    "diff",
    "cpp",
    "c",
    "js",
    "nix",
    "dockerfile",
    "rust",
    "html",
    "xml",
    "mermaid",
    "suggestion",
];

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Paste {
    /// Only what stands in fences is a log.
    fenced: bool,
    /// A fence is open, and what is in it is a log.
    open: Option<bool>,
    /// The kind of the exception that an error report has named.
    exception: Option<String>,
    program: Option<AdapterKind>,
    /// The last line that showed it.
    shown_by: String,
    parts: Vec<ReadPart>,
}

/// The language of a fence's line; none: the line is no fence.
fn fence(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches([' ', '>']);
    let rest = rest
        .strip_prefix("```")
        .or_else(|| rest.strip_prefix("~~~"))?;
    let word = rest.trim_start_matches(['`', '~']).trim();
    (!word.contains(['`', ' ']) && word.len() < 20).then_some(word)
}

fn is_log(language: &str) -> bool {
    !NO_LOG.contains(&language.to_ascii_lowercase().as_str())
}

impl Paste {
    /// By the lines at the beginning of a text.
    pub(super) fn of<'a>(lines: impl Iterator<Item = &'a str>) -> Self {
        let (mut open, mut within, mut fences) = (None, 0_u32, 0_u32);
        for line in lines {
            match (fence(line), open) {
                (Some(language), None) => {
                    fences += 1;
                    open = Some(is_log(language));
                }
                (Some(_), Some(_)) => open = None,
                (None, Some(true)) if !line.trim().is_empty() => within += 1,
                _ => {}
            }
        }
        // one fence alone may be a prompt of a shell or the end of a cut paste
        Self {
            fenced: fences > 0 && within >= 2,
            ..Self::default()
        }
    }

    /// The lines of a beginning that are the log of its first program: by them its wording
    /// and what stands before each line are known.
    pub(super) fn first_log(beginning: &str) -> Vec<String> {
        let mut paste = Self::of(beginning.lines());
        let mut lines = Vec::new();
        for line in beginning.split(['\n', '\r']) {
            if let Some(words) = paste.read(1, line) {
                if paste.other_program(1, &words).is_some() {
                    break;
                }
                lines.push(words.into_owned());
            }
        }
        lines
    }

    /// The text of a line as far as it is a log; none: it is not.
    pub(super) fn read<'t>(&mut self, row: u64, text: &'t str) -> Option<Cow<'t, str>> {
        let reported = self.reported(text);
        let said = if !self.fenced {
            Some(reported.map_or(Cow::Borrowed(text), Cow::Owned))
        } else if let Some(language) = fence(text) {
            self.open = if self.open.is_none() {
                self.begin(row);
                Some(is_log(language))
            } else {
                None
            };
            return None;
        } else if self.open == Some(true) && reported.is_none() {
            Some(Cow::Borrowed(text))
        } else {
            reported.map(Cow::Owned)
        };
        if said.is_some() {
            self.extend(row);
        }
        said
    }

    /// The exception of an error report, as Python would have printed it.
    fn reported(&mut self, text: &str) -> Option<String> {
        if !text.contains("Exception ") {
            return None;
        }
        let found = MESSAGE.as_ref()?.captures(text)?;
        let words = &found["text"];
        if &found["what"] == "Type" {
            self.exception = Some(words.to_owned());
            return None;
        }
        let kind = self.exception.take();
        let kind = kind.as_deref().unwrap_or("Exception");
        Some(if words.starts_with(kind) {
            words.to_owned()
        } else {
            format!("{kind}: {words}")
        })
    }

    /// The program of a text is known before its first line.
    pub(super) const fn expect(&mut self, program: AdapterKind) {
        self.program = Some(program);
    }

    /// The wording of another program whose log begins with this line.
    pub(super) fn other_program(&mut self, row: u64, text: &str) -> Option<AdapterKind> {
        let kind = AdapterKind::of_banner(text)?;
        if self.program.is_some_and(|p| p.prints_too(text)) {
            return None;
        }
        let shown_by = std::mem::replace(&mut self.shown_by, text.to_owned());
        match self.program.replace(kind) {
            Some(before) if before == kind => None,
            // the line that showed it was a copy of the other program's
            Some(_) if kind.prints_too(&shown_by) && !shown_by.is_empty() => {
                if let Some(part) = self.parts.last_mut() {
                    kind.as_str().clone_into(&mut part.program);
                }
                None
            }
            Some(_) => {
                if let Some(part) = self.parts.last_mut() {
                    part.to_line = row.saturating_sub(1).max(part.from_line);
                }
                self.begin(row);
                self.extend(row);
                Some(kind)
            }
            None => {
                if let Some(part) = self.parts.last_mut() {
                    kind.as_str().clone_into(&mut part.program);
                }
                None
            }
        }
    }

    /// What was read, with the program whose wording `rest` names where no line told it.
    pub(super) fn parts(&self, rest: &str) -> Vec<ReadPart> {
        let mut parts = self.parts.clone();
        for part in &mut parts {
            if part.program.is_empty() {
                rest.clone_into(&mut part.program);
            }
        }
        parts
    }

    /// A part ends before this line.
    fn begin(&mut self, row: u64) {
        if self.parts.len() < MOST_PARTS {
            self.parts.push(ReadPart {
                from_line: row,
                to_line: 0,
                program: self
                    .program
                    .map_or_else(String::new, |kind| kind.to_string()),
            });
        }
    }

    fn extend(&mut self, row: u64) {
        if self.parts.is_empty() {
            self.begin(row);
        }
        if let Some(part) = self.parts.last_mut() {
            if part.to_line == 0 {
                part.from_line = row;
            }
            part.to_line = row;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of a text that are read, and its parts.
    fn read(text: &str) -> (Vec<String>, Vec<(u64, u64, String)>) {
        let mut paste = Paste::of(text.lines());
        let mut said = Vec::new();
        for (n, line) in text.lines().enumerate() {
            let row = n as u64 + 1;
            if let Some(words) = paste.read(row, line) {
                paste.other_program(row, &words);
                said.push(words.into_owned());
            }
        }
        let parts = paste.parts("generic").into_iter();
        let parts = parts.map(|p| (p.from_line, p.to_line, p.program)).collect();
        (said, parts)
    }

    #[test]
    fn a_text_without_fences_is_read_whole() {
        let (said, parts) = read("a\nb `x`\n```\n");
        assert_eq!(said.len(), 3);
        assert_eq!(parts, [(1, 3, "generic".to_owned())]);
    }

    #[test]
    fn of_an_issue_the_fences_are_read() {
        let text = "### Expected\nIt works, no out of memory\n### Logs\n```powershell\ngot prompt\nx\n```\nThanks\n```python\nraise X\n```\n";
        let (said, parts) = read(text);
        assert_eq!(said, ["got prompt", "x"]);
        assert_eq!(parts[0], (5, 6, "generic".to_owned()));
    }

    #[test]
    fn the_message_of_an_error_report_is_read_as_python_prints_it() {
        let text = "# ComfyUI Error Report\n- **Exception Type:** RuntimeError\n- **Exception Message:** HIP error: invalid device function\n## Stack Trace\n```\n  File \"a.py\", line 1\n    x()\n```\n";
        let (said, _) = read(text);
        assert_eq!(said[0], "RuntimeError: HIP error: invalid device function");
    }

    #[test]
    fn another_programs_log_begins_with_its_banner() {
        let text = "ggml_vulkan: Found 1 Vulkan devices:\nx\nTotal VRAM 16304 MB, total RAM 64055 MB\ngot prompt\n";
        let (_, parts) = read(text);
        let names: Vec<_> = parts.iter().map(|p| (p.0, p.1, p.2.as_str())).collect();
        assert_eq!(names, [(1, 2, "stable-diffusion.cpp"), (3, 4, "comfyui")]);
    }
}
