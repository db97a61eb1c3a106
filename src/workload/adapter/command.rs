//! A command line: what it runs, and where that lies.

use crate::model::interpreter::{base, is_python};

/// Programs that run a Python program named further on.
const PYTHON_RUNNERS: &[&str] = &["accelerate", "torchrun", "uv", "conda", "poetry", "pipenv"];

fn runs_python(program: &str) -> bool {
    is_python(program) || PYTHON_RUNNERS.contains(&base(program))
}

/// The Python code that a command line runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Code<'a> {
    /// A file, as it is named.
    File(&'a str),
    /// `-m MODULE`.
    Module(&'a str),
}

impl<'a> Code<'a> {
    fn of(argv: &'a [String]) -> Option<Self> {
        if let Some(at) = argv.iter().position(|word| is_python(word)) {
            return Self::of_interpreter(&argv[at + 1..]);
        }
        let runner = argv.first().is_some_and(|p| runs_python(p));
        let mut words = argv.iter();
        while let Some(word) = words.next() {
            if runner && word == "-m" {
                return words.next().map(|module| Self::Module(module));
            }
            let end = word.len().saturating_sub(3);
            let is_file = word
                .get(end..)
                .is_some_and(|e| e.eq_ignore_ascii_case(".py"));
            if is_file && !word.starts_with('-') {
                return Some(Self::File(word));
            }
        }
        None
    }

    /// What stands behind the options of Python itself; the words after it are its own.
    fn of_interpreter(words: &'a [String]) -> Option<Self> {
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let Some(options) = word.strip_prefix('-') else {
                return Some(Self::File(word));
            };
            if let Some(long) = options.strip_prefix('-') {
                if long == "check-hash-based-pycs" {
                    words.next();
                }
                continue;
            }
            let Some((at, letter)) = options
                .char_indices()
                .find(|(_, letter)| "cmWX".contains(*letter))
            else {
                if options.is_empty() {
                    // the program comes from standard input
                    return None;
                }
                continue;
            };
            let value = Some(&options[at + 1..]).filter(|v| !v.is_empty());
            let value = value.or_else(|| words.next().map(String::as_str));
            match letter {
                'm' => return value.map(Self::Module),
                'c' => return None,
                _ => {}
            }
        }
        None
    }

    const fn named(self) -> &'a str {
        match self {
            Self::File(named) | Self::Module(named) => named,
        }
    }

    /// The name that its author gave it: of a file without its folder, of a module its package.
    fn own_name(self) -> &'a str {
        match self {
            Self::File(path) => base(path),
            Self::Module(module) => module.split('.').next().unwrap_or(module),
        }
    }

    /// The folder that it lies in. A module is found from the working directory.
    fn folder(self, cwd: &str) -> String {
        let Self::File(path) = self else {
            return cwd.to_owned();
        };
        match path.strip_prefix("./").unwrap_or(path).rsplit_once('/') {
            None => cwd.to_owned(),
            Some((folder, _)) if path.starts_with('/') => folder.to_owned(),
            Some((folder, _)) => format!("{}/{folder}", cwd.trim_end_matches('/')),
        }
    }
}

/// The script or module of a Python command line, with its path.
pub(super) fn script(argv: &[String]) -> Option<&str> {
    Code::of(argv).map(Code::named)
}

/// Whether a line of a script imports diffusers, or something of it.
pub(super) fn imports_diffusers(text: &str) -> bool {
    text.lines().any(|line| {
        let mut words = line.split_whitespace();
        let imports = matches!(words.next(), Some("import" | "from"));
        let module = words.next().unwrap_or_default();
        let module = module.split(['.', ',', ';']).next();
        imports && module == Some("diffusers")
    })
}

/// A command line, and where its program lies.
#[derive(Debug)]
pub(super) struct Command<'a> {
    argv: &'a [String],
    code: Option<Code<'a>>,
    /// The folder of the script, else the working directory.
    folder: String,
    /// What lies there; empty where it was not read.
    names: Vec<String>,
}

impl<'a> Command<'a> {
    /// `names_in` lists a folder, and gives an empty list where it cannot be read.
    pub(super) fn new(
        argv: &'a [String],
        cwd: &str,
        names_in: impl Fn(&str) -> Vec<String>,
    ) -> Self {
        let code = Code::of(argv);
        let folder = code.map_or_else(|| cwd.to_owned(), |code| code.folder(cwd));
        let names = names_in(&folder);
        Self {
            argv,
            code,
            folder,
            names,
        }
    }

    /// Of a launch whose folder says nothing new: its program is known already.
    pub(super) fn of_arguments(argv: &'a [String]) -> Self {
        Self::new(argv, "", |_| Vec::new())
    }

    /// Whether Python code is run.
    pub(super) fn is_python(&self) -> bool {
        self.code.is_some() || self.argv.first().is_some_and(|p| runs_python(p))
    }

    /// The name of the script, the package of the module or the name of the program; empty
    /// where Python runs code that has no name.
    pub(super) fn name(&self) -> &'a str {
        match self.code {
            Some(code) => code.own_name(),
            None if self.is_python() => "",
            None => self.argv.first().map_or("", |program| base(program)),
        }
    }

    /// The file that Python runs, without its folder; empty for a module.
    pub(super) fn file(&self) -> &'a str {
        match self.code {
            Some(Code::File(path)) => base(path),
            _ => "",
        }
    }

    /// The whole name of the module that Python runs; empty for a file.
    pub(super) fn module(&self) -> &'a str {
        match self.code {
            Some(Code::Module(module)) => module,
            _ => "",
        }
    }

    /// The name of the folder that the program's files lie in.
    pub(super) fn folder(&self) -> &str {
        base(self.folder.trim_end_matches('/'))
    }

    /// Whether the files of the folder are known.
    pub(super) fn lists_folder(&self) -> bool {
        !self.names.is_empty()
    }

    /// Whether this file or folder lies beside the program's files.
    pub(super) fn has_beside(&self, name: &str) -> bool {
        self.names.iter().any(|n| n == name)
    }

    /// The words behind an option, up to the next one; none: the command has it not.
    pub(super) fn values_of(&self, option: &str) -> Option<&'a [String]> {
        let at = self.argv.iter().position(|a| a == option)?;
        let rest = &self.argv[at + 1..];
        let end = rest.iter().position(|w| w.starts_with('-'));
        Some(&rest[..end.unwrap_or(rest.len())])
    }

    /// Whether one of the arguments is this word.
    pub(super) fn has_argument(&self, word: &str) -> bool {
        self.argv.iter().any(|a| a == word)
    }
}

/// Whether the user asked for the CPU altogether.
pub(super) fn asks_for_cpu(argv: &[String]) -> bool {
    argv.iter().any(|a| a == "--cpu" || a == "--device=cpu")
        || argv.windows(2).any(|w| w[0] == "--device" && w[1] == "cpu")
}

#[cfg(test)]
#[path = "command_tests.rs"]
mod tests;
