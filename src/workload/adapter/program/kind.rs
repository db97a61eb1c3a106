//! Which program a command line, a line or a whole console shows, and what is asked about it.

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use regex::Regex;

use super::super::command::Command;
use super::super::wording;
use super::{AdapterKind, AfterRestart, Program, Rank};

/// One pattern of each program that has one. One by one they cost less than as a set: most
/// begin with a literal, and so fail at the first letters of a line.
struct Patterns(Vec<(Regex, AdapterKind)>);

impl Patterns {
    fn of(pattern: impl Fn(&'static dyn Program) -> Option<&'static str>) -> Self {
        let all = AdapterKind::ALL.iter();
        let with = all.filter_map(|kind| Some((pattern(kind.program())?, *kind)));
        let compiled = with.map(|(text, kind)| (crate::workload::pattern(text), kind));
        Self(compiled.collect())
    }

    fn whose(&self, text: &str) -> impl Iterator<Item = AdapterKind> {
        let found = self
            .0
            .iter()
            .filter(move |(pattern, _)| pattern.is_match(text));
        found.map(|(_, kind)| *kind)
    }
}

static BANNERS: LazyLock<Patterns> = LazyLock::new(|| Patterns::of(Program::banner));
static UNMISTAKABLE: LazyLock<Patterns> = LazyLock::new(|| Patterns::of(Program::unmistakable));

/// Lines that are looked at.
const MOST_LINES: usize = 20_000;

impl AdapterKind {
    /// The word for it in profiles, events and reports.
    pub fn as_str(self) -> &'static str {
        self.program().name()
    }

    /// The spelling of its makers, on screen.
    pub fn title(self) -> &'static str {
        self.program().title()
    }

    /// Whether an instruction names it.
    pub fn is_named_in(self, instruction: &str) -> bool {
        let is_known = self.program().rank() > Rank::Anything;
        is_known && instruction.contains(self.program().short_title())
    }

    /// Whether an instruction tells to start it.
    pub fn is_started_by(self, instruction: &str) -> bool {
        let start = format!("tart {}", self.program().short_title());
        self.is_named_in(instruction) && instruction.contains(&start)
    }

    /// Whether its lines may be those of any program: nothing is known of it, or it starts what
    /// its user chose.
    pub fn may_be_any(self) -> bool {
        let program = self.program();
        program.rank() == Rank::Anything || program.is_launcher()
    }

    /// The program that it starts with arguments of its user's.
    pub fn starts(self) -> Option<Self> {
        self.program().starts()
    }

    /// A sentence that says where its user enters arguments of the programs that it starts.
    pub fn place_of_arguments(self) -> Option<&'static str> {
        self.program().place_of_arguments()
    }

    /// The kind that a command line suggests. `cwd` is the folder it will run in;
    /// `names_in` lists a folder, and gives an empty list where it cannot be read.
    ///
    /// The script, module or program decides, with the folder that it lies in. Other words
    /// say nothing: a model called FramePack is no FramePack program, and any program may
    /// run from an environment in FramePack's folder.
    pub fn detect(argv: &[String], cwd: &str, names_in: impl Fn(&str) -> Vec<String>) -> Self {
        if argv.is_empty() || crate::model::worker::is_own_worker(argv) {
            return Self::Generic;
        }
        let command = Command::new(argv, cwd, names_in);
        let mut all = Self::ALL.iter().copied();
        all.find(|kind| kind.program().is_run_by(&command))
            .unwrap_or(Self::Generic)
    }

    /// The kind that the lines of a console show, where nothing else is known: the first line
    /// that only one program prints, else the program of which most lines are typical.
    pub fn detect_lines<'a>(lines: impl Iterator<Item = &'a str>) -> Self {
        let mut typical = vec![0_u32; Self::ALL.len()];
        let mut proof: Option<(Self, &str)> = None;
        for line in lines.take(MOST_LINES) {
            let text = wording::without_prefix(line);
            let of_program = || Self::of_line(text).filter(|k| k.program().rank() >= Rank::Family);
            if let Some(kind) = Self::of_banner(line).or_else(of_program) {
                // a line that was taken for ComfyUI's may be of a program that runs its code
                if proof.is_none_or(|(first, by)| first == kind || kind.prints_too(by)) {
                    proof = Some((kind, text));
                }
            }
            for (count, kind) in typical.iter_mut().zip(Self::ALL) {
                *count += u32::from(kind.program().is_typical(text));
            }
        }
        if let Some((kind, _)) = proof {
            return kind;
        }
        let seen = typical
            .iter()
            .zip(Self::ALL)
            .filter(|(count, _)| **count > 0);
        // words of a library decide only where none of a program were seen
        seen.max_by_key(|(count, kind)| (kind.program().rank() >= Rank::Family, **count))
            .map_or(Self::Generic, |(_, kind)| *kind)
    }

    /// The program that alone prints such a line; of several the one of the highest rank.
    fn of_line(text: &str) -> Option<Self> {
        UNMISTAKABLE.whose(text).max_by_key(|k| k.program().rank())
    }

    /// The kind to which a console of this one changes over with a line.
    pub(in super::super) fn refined_by(self, text: &str) -> Option<Self> {
        let rank = self.program().rank();
        if rank == Rank::Program {
            return None;
        }
        Self::of_line(text).filter(|kind| kind.program().rank() > rank)
    }

    /// Whether its command line suggests a server that waits for jobs.
    pub fn serves(self, argv: &[String]) -> bool {
        self.program().serves(&Command::of_arguments(argv))
    }

    /// Whether nothing more is known than the library that the program is written with.
    pub fn is_guess(self) -> bool {
        self.program().rank() <= Rank::Library
    }

    /// Whether its command has it decode on the CPU.
    pub(in super::super) fn decodes_on_cpu(self, argv: &[String]) -> bool {
        self.program().decodes_on_cpu(&Command::of_arguments(argv))
    }

    /// Whether it is no Python program.
    pub fn is_native(self) -> bool {
        self.program().is_native()
    }

    /// The program whose log begins with this line, in a text that may hold several.
    pub fn of_banner(line: &str) -> Option<Self> {
        BANNERS.whose(line).next()
    }

    /// Whether it prints lines of another program.
    pub fn runs_another(self) -> bool {
        !self.program().prints_too().is_empty()
    }

    /// Whether it prints this line of another program as its own, because it runs its code.
    pub fn prints_too(self, text: &str) -> bool {
        let beginnings = self.program().prints_too();
        beginnings.iter().any(|words| text.starts_with(words))
    }

    /// The folder that its users run it in: a name, and what lies there beside the program.
    pub fn home(self) -> (&'static str, &'static [&'static str]) {
        self.program().home()
    }

    /// The arguments by which it follows a setting; none: no argument is known.
    pub(in crate::workload) fn arguments(
        self,
        name: &str,
        value: &str,
    ) -> Result<Option<Vec<String>>, String> {
        self.program().arguments(name, value)
    }

    /// Groups of flags of which a command may have one.
    pub(in crate::workload) fn rival_flags(self) -> &'static [&'static [&'static str]] {
        self.program().rival_flags()
    }

    /// The variable that switches MIOpen on, in a program that switches it off on AMD cards.
    pub fn miopen_switch(self) -> Option<&'static str> {
        self.program().miopen_switch()
    }

    /// Whether an argument has torch tune every convolution.
    pub fn autotunes(self, argv: &[String]) -> bool {
        self.program().autotunes(&Command::of_arguments(argv))
    }

    /// What a restart means for its work.
    pub fn after_restart(self) -> AfterRestart {
        self.program().after_restart()
    }

    /// Whether it writes its videos with torchvision, and ends at its start without it.
    pub fn needs_torchvision(self) -> bool {
        self.program().needs_torchvision()
    }
}

/// The spelling that a program's makers use, of the word for it in events.
pub fn title_of(adapter: &str) -> &str {
    match adapter.parse::<AdapterKind>() {
        Ok(kind) => kind.title(),
        Err(_later_version) => adapter,
    }
}

/// Whether a lost queue of the server of this name in events waits for its user's word.
pub fn queue_waits_for_user(adapter: &str) -> bool {
    let kind = adapter.parse::<AdapterKind>();
    kind.is_ok_and(|kind| kind.program().queue_waits_for_user())
}

impl fmt::Display for AdapterKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A word that names no adapter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownAdapter(pub String);

impl fmt::Display for UnknownAdapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: Vec<_> = AdapterKind::ALL.iter().map(|k| k.as_str()).collect();
        write!(
            f,
            "unknown adapter `{}`; known are {}",
            self.0,
            known.join(", ")
        )
    }
}

impl std::error::Error for UnknownAdapter {}

impl FromStr for AdapterKind {
    type Err = UnknownAdapter;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let mut all = Self::ALL.iter().copied();
        all.find(|k| k.as_str() == s)
            .ok_or_else(|| UnknownAdapter(s.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_round_trip() {
        for k in AdapterKind::ALL {
            assert_eq!(k.to_string().parse(), Ok(*k));
        }
        let e = "ComfyUI".parse::<AdapterKind>().unwrap_err();
        assert!(e.to_string().contains("comfyui"));
    }

    #[test]
    fn the_page_of_programs_names_each() {
        let page = include_str!("../../../../docs/programs.md");
        for kind in AdapterKind::ALL {
            let row = format!("| `{kind}` |");
            assert!(page.contains(&row), "docs/programs.md has no {row}");
        }
        // one row in each of its tables
        for table in page.split("## After a restart") {
            assert_eq!(table.matches("\n| `").count(), AdapterKind::ALL.len());
        }
    }

    #[test]
    fn a_console_changes_over_only_to_what_says_more() {
        use AdapterKind::{Comfyui, Diffusers, Framepack, FramepackStudio, Generic, Invokeai};
        let padding = "latent_padding_size = 9, is_last_section = False";
        let studio = "Starting worker function for job 1f";
        let comfyui = "To see the GUI go to: http://127.0.0.1:8188";
        for (from, text, to) in [
            (Generic, "Loading pipeline components...", Some(Diffusers)),
            (Diffusers, "Loading pipeline components...", None),
            (Diffusers, padding, Some(Framepack)),
            (Framepack, studio, Some(FramepackStudio)),
            (Framepack, comfyui, Some(Comfyui)),
            (FramepackStudio, padding, None),
            (Comfyui, padding, None),
            (Invokeai, comfyui, None),
            (Generic, "hello", None),
        ] {
            assert_eq!(from.refined_by(text), to, "{from}: {text}");
        }
    }

    #[test]
    fn every_program_has_its_own_words() {
        for (at, k) in AdapterKind::ALL.iter().enumerate() {
            let others = &AdapterKind::ALL[at + 1..];
            assert!(others.iter().all(|o| o.as_str() != k.as_str()), "{k}");
            assert!(others.iter().all(|o| o.title() != k.title()), "{k}");
        }
        assert_eq!(title_of("comfyui"), "ComfyUI");
        assert_eq!(
            title_of("a word of a later version"),
            "a word of a later version"
        );
    }
}
