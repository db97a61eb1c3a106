//! The way into a command: a folder in front of `PYTHONPATH`, or the launcher where
//! Python does not heed it. Pure: what lies on the disk is asked of [`Look`].

use std::path::Path;

use crate::model::interpreter::{base, is_python};

/// Name of the launcher in the agent's folder.
const LAUNCHER: &str = "fpt_run.py";
const PYTHONPATH: &str = "PYTHONPATH";

/// What must be known of files.
pub trait Look {
    /// The first bytes of the program that a shell would run for this word; none: it
    /// cannot be read.
    fn head(&self, program: &str) -> Option<Vec<u8>>;

    /// Whether a `._pth` file lies beside this interpreter: its search path is fixed then.
    fn has_pth(&self, interpreter: &str) -> bool;
}

/// How a command is launched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    /// The command, with the launcher in it where that is the way.
    pub argv: Vec<String>,
    /// Whether it is Python, or starts Python as far as can be told; else why no agent is
    /// expected, fit for the user. The folder goes on `PYTHONPATH` all the same.
    pub python: Result<(), String>,
    /// The launcher is the way.
    pub launcher: bool,
}

/// The value of `PYTHONPATH` with the folder in front. An empty one is as good as none:
/// an empty part of it would be the working directory.
pub fn python_path(folder: &str, before: Option<&str>) -> String {
    match before.filter(|b| !b.is_empty()) {
        Some(before) => format!("{folder}:{before}"),
        None => folder.to_owned(),
    }
}

/// The way into `argv` for the agent that lies in `folder`.
pub fn way(argv: &[String], folder: &Path, look: &dyn Look) -> Way {
    let mut way = Way {
        argv: argv.to_vec(),
        python: Ok(()),
        launcher: false,
    };
    let folder = folder.to_string_lossy();
    let prefix = prefix(&mut way.argv, &folder);
    if prefix.clears {
        way.python = Err("`env -i` takes the agent's variables away".to_owned());
        return way;
    }
    let launcher = format!("{}/{LAUNCHER}", folder.trim_end_matches('/'));
    let (head, command) = argv.split_at(prefix.len.min(argv.len()));
    let Some(program) = command.first() else {
        way.python = Err("there is no command".to_owned());
        return way;
    };
    let begin = || way.argv[..head.len()].to_vec();
    if is_python(program) {
        let flags = Flags::of(&command[1..]);
        if prefix.hides || flags.deaf || look.has_pth(program) {
            return through(begin(), command, &flags, &launcher);
        }
        return way;
    }
    match shebang(look.head(program)) {
        Some(words) if words.first().is_some_and(|w| is_python(w)) => {
            let flags = Flags::of(&words[1..]);
            if !(prefix.hides || flags.deaf || look.has_pth(&words[0])) {
                return way;
            }
            // a script is given to the interpreter as the kernel would
            let words = words.into_iter().chain([program.clone()]);
            let words: Vec<String> = words.chain(command[1..].iter().cloned()).collect();
            let flags = Flags::of(&words[1..]);
            return through(begin(), &words, &flags, &launcher);
        }
        // a shell script may start Python
        Some(_) => return way,
        None => {}
    }
    if !starts_python(base(program), command) {
        way.python = Err(format!("`{program}` is no Python program that we know of"));
    }
    way
}

/// The command with the launcher between the flags and what they run.
fn through(mut begin: Vec<String>, command: &[String], flags: &Flags, launcher: &str) -> Way {
    let why = match &flags.runs {
        Runs::Input => {
            Some("Python reads its program from standard input, where PYTHONPATH does not count")
        }
        Runs::Nothing => Some("Python is started without a program"),
        Runs::Word | Runs::Rest { .. } => None,
    };
    let (flag_words, rest) = command[1..].split_at(flags.words);
    begin.push(command[0].clone());
    if let Some(why) = why {
        begin.extend(command[1..].iter().cloned());
        return Way {
            argv: begin,
            python: Err(why.to_owned()),
            launcher: false,
        };
    }
    begin.extend(flag_words.iter().cloned());
    if let Runs::Rest {
        flags,
        letter,
        text,
    } = &flags.runs
    {
        // `-Ic CODE`: the launcher stands between `-I` and `-c`
        if !flags.is_empty() {
            begin.push(format!("-{flags}"));
        }
        begin.push(launcher.to_owned());
        begin.push(format!("-{letter}"));
        if !text.is_empty() {
            begin.push(text.clone());
        }
        begin.extend(rest.iter().skip(1).cloned());
    } else {
        begin.push(launcher.to_owned());
        begin.extend(rest.iter().cloned());
    }
    Way {
        argv: begin,
        python: Ok(()),
        launcher: true,
    }
}

/// Words before the program that hand their environment on.
#[derive(Debug, Default)]
struct Prefix {
    /// How many.
    len: usize,
    /// `env -i`.
    clears: bool,
    /// `PYTHONPATH` is taken away.
    hides: bool,
}

/// Reads wrappers such as `env X=1 nice -n 5`. A `PYTHONPATH` that one of them sets gets
/// the folder in front.
fn prefix(argv: &mut [String], folder: &str) -> Prefix {
    let mut p = Prefix::default();
    while let Some(word) = argv.get(p.len) {
        let Some(wrapper) = WRAPPERS.iter().find(|w| w.name == base(word)) else {
            break;
        };
        let mut at = p.len + 1;
        let env = wrapper.name == "env";
        while let Some(option) = argv.get(at).filter(|o| o.starts_with('-')) {
            if env && matches!(option.as_str(), "-i" | "-" | "--ignore-environment") {
                p.clears = true;
            }
            let takes = wrapper.take_value.contains(&option.as_str());
            let removed = argv.get(at + 1).filter(|_| takes);
            p.hides |=
                env && (removed.is_some_and(|t| t == PYTHONPATH) || option == "-uPYTHONPATH");
            let ends = option == "--";
            at += 1 + usize::from(takes);
            if ends {
                break;
            }
        }
        while let Some(own) = argv
            .get(at)
            .and_then(|w| w.split_once('=').filter(|_| env))
            .map(|(name, value)| (name == PYTHONPATH).then(|| value.to_owned()))
        {
            if let Some(value) = own {
                argv[at] = format!("{PYTHONPATH}={}", python_path(folder, Some(&value)));
                p.hides = false;
            }
            at += 1;
        }
        p.len = at + wrapper.words;
    }
    p
}

/// A program that runs the command that follows it.
struct Wrapper {
    name: &'static str,
    /// Options whose value is the next word.
    take_value: &'static [&'static str],
    /// Words of its own before the command.
    words: usize,
}

const fn wrapper(name: &'static str, take_value: &'static [&'static str], words: usize) -> Wrapper {
    Wrapper {
        name,
        take_value,
        words,
    }
}

const WRAPPERS: &[Wrapper] = &[
    wrapper("env", &["-u", "--unset", "-C", "--chdir"], 0),
    wrapper("nice", &["-n", "--adjustment"], 0),
    wrapper("ionice", &["-c", "-n", "--class", "--classdata"], 0),
    wrapper("nohup", &[], 0),
    wrapper("setsid", &[], 0),
    wrapper("time", &["-f", "-o"], 0),
    wrapper("timeout", &["-s", "-k", "--signal", "--kill-after"], 1),
    wrapper("stdbuf", &["-i", "-o", "-e"], 0),
    wrapper("taskset", &[], 1),
    wrapper("numactl", &["-N", "-m", "-C", "-i"], 0),
    wrapper("chrt", &[], 1),
];

/// What Python runs.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Runs {
    /// The word after the flags.
    Word,
    /// A word of flags that ends in `c` or `m`: its flags before that letter, and what
    /// follows the letter in the word.
    Rest {
        flags: String,
        letter: char,
        text: String,
    },
    /// Standard input.
    Input,
    /// It is interactive, or only says its version.
    Nothing,
}

/// Flags of Python.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Flags {
    /// Whole words before what it runs.
    words: usize,
    /// It does not heed `PYTHONPATH` or `sitecustomize`.
    deaf: bool,
    runs: Runs,
}

impl Flags {
    /// Reads the words after the interpreter.
    fn of(words: &[String]) -> Self {
        let mut f = Self {
            words: 0,
            deaf: false,
            runs: Runs::Nothing,
        };
        while let Some(word) = words.get(f.words) {
            if word == "-" {
                f.runs = Runs::Input;
                return f;
            }
            let Some(letters) = word.strip_prefix('-') else {
                f.runs = Runs::Word;
                return f;
            };
            if let Some(long) = letters.strip_prefix('-') {
                // one long option takes a word
                f.words += 1 + usize::from(long == "check-hash-based-pycs");
                continue;
            }
            let mut takes = 0;
            for (at, letter) in letters.char_indices() {
                let rest = &letters[at + letter.len_utf8()..];
                match letter {
                    'I' | 'E' | 'S' => f.deaf = true,
                    'c' | 'm' => {
                        f.runs = Runs::Rest {
                            flags: letters[..at].to_owned(),
                            letter,
                            text: rest.to_owned(),
                        };
                        return f;
                    }
                    'W' | 'X' => {
                        takes = usize::from(rest.is_empty());
                        break;
                    }
                    _ => {}
                }
            }
            f.words += 1 + takes;
        }
        f.words = f.words.min(words.len());
        f
    }
}

/// The interpreter of a script and its words: one behind `env` is that.
fn shebang(head: Option<Vec<u8>>) -> Option<Vec<String>> {
    let head = head?;
    let line = head.strip_prefix(b"#!")?.split(|b| *b == b'\n').next()?;
    let line = String::from_utf8_lossy(line);
    let mut words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    if words.first().is_some_and(|w| base(w) == "env") {
        words.remove(0);
        words.retain({
            let mut before = true;
            move |w| {
                before &= w.starts_with('-') || w.contains('=');
                !before
            }
        });
    }
    (!words.is_empty()).then_some(words)
}

/// Programs that start Python, or whatever they are told to.
const STARTERS: &[&str] = &[
    "uv",
    "uvx",
    "accelerate",
    "torchrun",
    "deepspeed",
    "poetry",
    "pipenv",
    "pdm",
    "hatch",
    "rye",
    "pixi",
    "conda",
    "mamba",
    "micromamba",
    "pyenv",
    "gradio",
    "streamlit",
    "jupyter",
    "comfy",
    "make",
    "just",
    "xvfb-run",
    "sh",
    "bash",
    "dash",
    "zsh",
    "fish",
    "ksh",
];

/// By its name; `sh -c` by what it is told.
fn starts_python(name: &str, command: &[String]) -> bool {
    let shell = name.ends_with("sh");
    let told = shell
        .then(|| {
            command
                .iter()
                .position(|w| w.starts_with('-') && w.ends_with('c'))
        })
        .flatten()
        .and_then(|at| command.get(at + 1));
    if let Some(text) = told {
        return ["python", ".py", ".sh"].iter().any(|w| text.contains(w)) || starters(text);
    }
    let suffix = name.rsplit_once('.').map(|(_, suffix)| suffix);
    STARTERS.contains(&name) || matches!(suffix, Some("py" | "sh"))
}

fn starters(text: &str) -> bool {
    let mut words = text.split(|c: char| c.is_whitespace() || c == ';' || c == '&' || c == '|');
    words.any(|w| STARTERS.contains(&base(w)))
}

#[cfg(test)]
#[path = "inject_tests.rs"]
mod tests;
