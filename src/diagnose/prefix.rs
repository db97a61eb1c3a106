//! What containers, journals and forums put before each line of a console.

use std::sync::LazyLock;

use regex::Regex;

/// Lines that are looked at.
const SAMPLE: usize = 200;
/// Share of them that must have a prefix, in percent.
const SHARE: usize = 80;
/// Prefixes within each other.
const DEEPEST: usize = 4;

/// What docker compose writes before a line.
const COMPOSE: &str = r"^[A-Za-z][\w.-]{0,60}\s*\| ?";

/// What SwarmUI writes before a line: time and level.
const SWARM: &str =
    r"^(?:\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d\.\d{3} \[(?:Verbose|Debug|Info|Init|Warning|Error)\] ";

/// What it writes before the lines of a program that it runs.
static OF_BACKEND: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^\[ComfyUI(?:-\d+| Install \([^)]{1,40}\))/STD(?:OUT|ERR)\] ?").ok()
});

/// What docker's builder writes before a line: the number of the step and its seconds. Lines of
/// its own stand between.
static OF_BUILD: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^#\d+ (?:\d+\.\d+ )?").ok());
/// So many lines with it are of a build.
const LEAST_OF_BUILD: usize = 3;

static KNOWN: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let patterns = [
        // before the loggers', whose time is its beginning
        SWARM,
        // journalctl -o short-iso; before the next, which is its beginning
        r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S* [\w.-]+ [^\s:\[]+\[\d+\]: ?",
        // docker logs -t; kubectl logs --timestamps; CRI files
        r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)? (?:std(?:out|err) [FP] )?",
        // journalctl, syslog: Feb 11 10:22:31 host unit[123]:
        r"^[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)? [\w.-]+ [^\s:\[]+(?:\[\d+\])?: ?",
        // ts: Feb 11 10:22:31
        r"^[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)? ",
        // journalctl without its time: unit[123]:
        r"^[\w@.-]{1,60}\[\d{2,7}\]: ",
        // docker compose: service-1  |
        COMPOSE,
        // a logger's or ts's: [2026-02-11 10:22:31.123], 2026-02-11 10:22:31, [10:22:31]
        r"^\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?\]? ?",
        r"^\[\d\d:\d\d:\d\d(?:[.,]\d+)?\] ?",
        // SwarmUI's without its time: [Warning] [ComfyUI-0/STDERR]
        r"^\[(?:Verbose|Debug|Info|Init|Warning|Error)\] (?:\[[^\]]{1,60}/STD(?:OUT|ERR)\] )?",
        // quoted mail and Markdown
        r"^> ?",
    ];
    patterns.iter().filter_map(|p| Regex::new(p).ok()).collect()
});

/// The prefixes that the lines of a text have in common.
#[derive(Debug, Clone, Default)]
pub(super) struct Prefixes(Vec<&'static Regex>);

impl Prefixes {
    /// Of the lines at the beginning of a text.
    pub(super) fn of<'a>(lines: impl Iterator<Item = &'a str>) -> Self {
        let mut rest: Vec<&str> = lines
            .filter(|l| !l.trim().is_empty())
            .take(SAMPLE)
            .collect();
        let mut found = Self::default();
        if let Some(of_build) = OF_BUILD.as_ref() {
            let timed = |l: &&&str| of_build.find(l).is_some_and(|m| m.as_str().contains('.'));
            if rest.iter().filter(timed).count() >= LEAST_OF_BUILD {
                found.0.push(of_build);
                rest = rest.iter().map(|l| cut(of_build, l)).collect();
            }
        }
        while found.0.len() < DEEPEST && rest.len() >= 2 {
            let has = |r: &&Regex| {
                rest.iter().filter(|l| r.is_match(l)).count() * 100 >= SHARE * rest.len()
            };
            let Some(prefix) = KNOWN.iter().find(has) else {
                break;
            };
            found.0.push(prefix);
            rest = rest.iter().map(|l| cut(prefix, l)).collect();
            rest.retain(|l| !l.trim().is_empty());
        }
        // not before each line: SwarmUI has lines of its own between
        if found.0.iter().any(|p| p.as_str() == SWARM) {
            found.0.extend(OF_BACKEND.as_ref());
        }
        found
    }

    /// A line without them.
    pub(super) fn strip<'a>(&self, line: &'a str) -> &'a str {
        self.0.iter().fold(line, |line, prefix| cut(prefix, line))
    }

    /// Whether containers write them.
    pub(super) fn are_of_a_container(&self) -> bool {
        self.0.iter().any(|p| p.as_str() == COMPOSE)
    }

    /// Whether there are any.
    pub(super) fn are_there(&self) -> bool {
        !self.0.is_empty()
    }
}

fn cut<'a>(prefix: &Regex, line: &'a str) -> &'a str {
    prefix.find(line).map_or(line, |m| &line[m.end()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stripped(text: &str) -> Vec<&str> {
        let prefixes = Prefixes::of(text.lines());
        text.lines().map(|l| prefixes.strip(l)).collect()
    }

    #[test]
    fn every_pattern_is_valid() {
        assert_eq!(KNOWN.len(), 11);
        assert!(OF_BACKEND.is_some() && OF_BUILD.is_some());
    }

    #[test]
    fn containers_journals_and_quotes() {
        for text in [
            "2026-02-11T10:22:31.123456789Z got prompt\n2026-02-11T10:22:32Z Requested to load X",
            "Feb 11 10:22:31 box comfy[123]: got prompt\nFeb 11 10:22:32 box comfy[123]: Requested to load X",
            "2026-02-11T10:22:31+0100 box python3[123]: got prompt\n2026-02-11T10:22:32+0100 box python3[123]: Requested to load X",
            "comfy-1  | got prompt\ncomfy-1  | Requested to load X",
            "comfy-1  | 2026-02-11T10:22:31Z got prompt\ncomfy-1  | 2026-02-11T10:22:31Z Requested to load X",
            "> got prompt\n> Requested to load X",
            "2026-02-11 10:22:31.123 [Info] got prompt\n2026-02-11 10:22:31.124 [Warning] [ComfyUI-1/STDERR] Requested to load X",
            "10:22:31.123 [Init] got prompt\n10:22:31.124 [Debug] [ComfyUI Install (Linux Script)/STDOUT] Requested to load X",
            "[2026-02-11 10:22:31.123] got prompt\n[2026-02-11 10:22:31.124] Requested to load X",
        ] {
            assert_eq!(
                stripped(text),
                ["got prompt", "Requested to load X"],
                "{text}"
            );
        }
    }

    #[test]
    fn a_build_of_docker_has_lines_of_its_own_between() {
        let build = "$ docker build .\n => [2/3] RUN make\n#14 0.31 a\n#14 1.22 b\n#14 1.30 c\n#14 ERROR: d\n------";
        let all = stripped(build);
        assert_eq!(all[2..6], ["a", "b", "c", "ERROR: d"]);
        assert_eq!(all[1], " => [2/3] RUN make");
        let few = "#1 first of two\n#2 second";
        assert_eq!(stripped(few), ["#1 first of two", "#2 second"]);
    }

    #[test]
    fn a_bar_and_a_table_are_no_prefix() {
        for text in [
            " 41%|####      | 12/29 [00:19<00:26]\ngot prompt\nx",
            "name | size\ngot prompt\nRequested to load X\nloaded",
        ] {
            let lines: Vec<&str> = text.lines().collect();
            assert_eq!(stripped(text), lines);
        }
    }
}
