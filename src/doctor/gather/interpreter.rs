//! Which Python a command would use. Nothing is run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::file;
use crate::model::interpreter::{base, is_python};

/// Scripts that name scripts that name …: looked through so far.
const DEPTH: usize = 4;

/// An interpreter, and how it was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chosen {
    /// Its path; absent: there is none.
    pub(super) path: Option<PathBuf>,
    /// How.
    pub(super) by: String,
    /// The command did not tell it.
    pub(super) guessed: bool,
}

/// What the choice depends on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    /// Folder that the command would run in.
    pub(super) cwd: &'a Path,
    /// Environment that it would get.
    pub(super) env: &'a BTreeMap<String, String>,
}

/// The interpreter: the one asked for, else that of the command, else the active one.
pub(super) fn choose(asked: Option<&Path>, argv: &[String], place: Place<'_>) -> Chosen {
    if let Some(asked) = asked {
        let word = asked.to_string_lossy();
        return Chosen {
            path: place.program(&word),
            by: format!("--python {word}"),
            guessed: false,
        };
    }
    if let Some((path, by)) = place.of_command(argv, DEPTH) {
        return Chosen {
            path: Some(path),
            by,
            guessed: false,
        };
    }
    let (path, by) = place.active();
    Chosen {
        path,
        by,
        guessed: !argv.is_empty(),
    }
}

impl Place<'_> {
    /// The file that a shell would run for this word.
    pub(super) fn program(self, word: &str) -> Option<PathBuf> {
        if word.contains('/') {
            let path = self.cwd.join(word);
            return runs(&path).then_some(path);
        }
        let path = self.env.get("PATH")?;
        let folders = std::env::split_paths(path);
        folders
            .map(|f| self.cwd.join(f).join(word))
            .find(|p| runs(p))
    }

    /// The interpreter that a command line names, with words for it.
    fn of_command(self, argv: &[String], depth: usize) -> Option<(PathBuf, String)> {
        let (first, rest) = argv.split_first()?;
        if depth == 0 {
            return None;
        }
        if is_python(first) {
            return Some((self.program(first)?, "the command".to_owned()));
        }
        match base(first) {
            "env" => self.of_command(after_assignments(rest), depth - 1),
            "nice" | "nohup" | "stdbuf" | "setsid" | "time" => {
                let at = rest.iter().position(|w| is_python(w))?;
                self.of_command(&rest[at..], depth - 1)
            }
            "uv" | "poetry" | "pipenv" => self.of_runner(base(first), rest),
            "conda" | "mamba" | "micromamba" => self.of_conda(base(first), rest),
            _ => self.of_script(&self.program(first)?, depth),
        }
    }

    /// The environment of the project in the working directory.
    fn of_runner(self, runner: &str, rest: &[String]) -> Option<(PathBuf, String)> {
        if let Some(asked) = option(rest, &["--python", "-p"]).filter(|_| runner == "uv")
            && let Some(path) = self.program(asked)
        {
            return Some((path, format!("`uv --python {asked}`")));
        }
        let named = self
            .env
            .get("UV_PROJECT_ENVIRONMENT")
            .filter(|_| runner == "uv");
        let folder = named.map_or_else(
            || self.upwards(&[".venv"]),
            |f| Some(self.cwd.join(f)).filter(|f| f.is_dir()),
        )?;
        let by = format!("`{runner}` in {}", folder.display());
        python_in(&folder).map(|p| (p, by))
    }

    fn of_conda(self, runner: &str, rest: &[String]) -> Option<(PathBuf, String)> {
        let by = |what: &str| format!("`{runner} run` with {what}");
        if let Some(prefix) = option(rest, &["-p", "--prefix"]) {
            return Some((python_in(&self.cwd.join(prefix))?, by(prefix)));
        }
        let name = option(rest, &["-n", "--name"])?;
        let exe = self
            .env
            .get("CONDA_EXE")
            .or_else(|| self.env.get("MAMBA_EXE"));
        let by_exe = exe.and_then(|e| Some(Path::new(e).parent()?.parent()?.join("envs")));
        let root = self
            .env
            .get("MAMBA_ROOT_PREFIX")
            .map(|r| Path::new(r).join("envs"));
        let folders = by_exe.into_iter().chain(root);
        let found = folders.map(|f| f.join(name)).find_map(|f| python_in(&f));
        found.map(|p| (p, by(name)))
    }

    /// A script whose first line names an interpreter; pip writes a long path into the
    /// second line.
    fn of_script(self, script: &Path, depth: usize) -> Option<(PathBuf, String)> {
        let head = file::text(script, 1024)?;
        let mut lines = head.lines();
        let first = lines.next()?.strip_prefix("#!")?;
        let second = lines.next().and_then(|l| l.strip_prefix("'''exec' "));
        let line = second.unwrap_or(first);
        let words = shell_words::split(line).ok()?;
        let words: Vec<String> = match words.split_first() {
            Some((env, rest)) if base(env) == "env" => after_assignments(rest).to_vec(),
            _ => words,
        };
        let (path, _) = self.of_command(words.get(..1)?, depth - 1)?;
        Some((path, format!("the first line of {}", script.display())))
    }

    /// The interpreter of the activated environment, of one beside the program, else
    /// of the system.
    fn active(self) -> (Option<PathBuf>, String) {
        for variable in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
            let folder = self.env.get(variable).filter(|f| !f.is_empty());
            if let Some(path) = folder.and_then(|f| python_in(Path::new(f))) {
                return (Some(path), variable.to_owned());
            }
        }
        let beside = [".venv", "venv"].map(|name| self.cwd.join(name));
        if let Some((folder, path)) = beside.iter().find_map(|f| Some((f, python_in(f)?))) {
            return (
                Some(path),
                format!("the environment in {}", folder.display()),
            );
        }
        let found = ["python3", "python"]
            .into_iter()
            .find_map(|n| self.program(n));
        (found, "python3 in PATH".to_owned())
    }

    fn upwards(self, names: &[&str]) -> Option<PathBuf> {
        let folders = self.cwd.ancestors();
        let mut all = folders.flat_map(|f| names.iter().map(move |n| f.join(n)));
        all.find(|f| f.is_dir())
    }
}

/// `env`'s own options and assignments left out.
pub(super) fn after_assignments(words: &[String]) -> &[String] {
    let mut rest = words;
    while let Some((word, more)) = rest.split_first() {
        rest = match word.as_str() {
            // these take a value
            "-u" | "--unset" | "-C" | "--chdir" => more.get(1..).unwrap_or_default(),
            w if w.starts_with('-') || w.contains('=') => more,
            _ => break,
        };
    }
    rest
}

/// Value of an option, up to the end of the options.
fn option<'w>(words: &'w [String], names: &[&str]) -> Option<&'w str> {
    let words = words.split(|w| w == "--").next()?;
    words.iter().enumerate().find_map(|(i, word)| {
        let joined = word.split_once('=').filter(|(n, _)| names.contains(n));
        joined.map(|(_, value)| value).or_else(|| {
            let next = words.get(i + 1)?;
            names.contains(&word.as_str()).then_some(next.as_str())
        })
    })
}

/// The interpreter of an environment.
fn python_in(folder: &Path) -> Option<PathBuf> {
    let all = ["bin/python", "bin/python3"].map(|p| folder.join(p));
    all.into_iter().find(|p| runs(p))
}

fn runs(path: &Path) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    struct Tree(tempfile::TempDir, BTreeMap<String, String>);

    impl Tree {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let bin = dir.path().join("bin");
            fs::create_dir_all(&bin).unwrap();
            let env = BTreeMap::from([("PATH".to_owned(), bin.display().to_string())]);
            let tree = Self(dir, env);
            tree.put("bin/python3", "");
            tree
        }

        fn put(&self, name: &str, text: &str) -> String {
            let path = self.0.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            path.display().to_string()
        }

        /// Path below the tree, and whether it is a guess.
        fn chosen(&self, line: &str) -> (String, bool) {
            let argv: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            let place = Place {
                cwd: self.0.path(),
                env: &self.1,
            };
            let chosen = choose(None, &argv, place);
            let path = chosen.path.map(|p| {
                let below = p.strip_prefix(self.0.path()).unwrap_or(&p);
                below.display().to_string()
            });
            (path.unwrap_or_default(), chosen.guessed)
        }
    }

    #[test]
    fn the_command_tells_its_interpreter() {
        let tree = Tree::new();
        tree.put("v/bin/python", "");
        let long = tree.put("v/bin/python3.12", "");
        tree.put("bin/tool", &format!("#!{long}\nimport x\n"));
        tree.put(
            "bin/accelerate",
            &format!("#!/bin/sh\n'''exec' {long} \"$0\" \"$@\"\n"),
        );
        tree.put("by-env", "#!/usr/bin/env -S python3 -u\n");
        let own = |p: &str| (p.to_owned(), false);
        assert_eq!(tree.chosen("python3 demo.py"), own("bin/python3"));
        assert_eq!(tree.chosen("v/bin/python demo.py"), own("v/bin/python"));
        assert_eq!(
            tree.chosen("env A=b -u X v/bin/python demo.py"),
            own("v/bin/python")
        );
        assert_eq!(tree.chosen("nice -n 5 python3 x.py"), own("bin/python3"));
        assert_eq!(tree.chosen("tool"), own("v/bin/python3.12"));
        assert_eq!(
            tree.chosen("accelerate launch x.py"),
            own("v/bin/python3.12")
        );
        assert_eq!(tree.chosen("./by-env"), own("bin/python3"));
        assert_eq!(
            tree.chosen("conda run -p v python x.py"),
            own("v/bin/python")
        );
    }

    #[test]
    fn what_tells_none_is_a_guess() {
        let mut tree = Tree::new();
        tree.put("bin/start", "#!/bin/sh\nexec something\n");
        let guess = |p: &str| (p.to_owned(), true);
        assert_eq!(tree.chosen("start"), guess("bin/python3"));
        assert_eq!(tree.chosen("nothing-like-this"), guess("bin/python3"));
        assert_eq!(tree.chosen(""), ("bin/python3".to_owned(), false));
        tree.put("venv/bin/python", "");
        assert_eq!(tree.chosen("start"), guess("venv/bin/python"));
        tree.put("w/bin/python", "");
        let active = tree.0.path().join("w").display().to_string();
        tree.1.insert("VIRTUAL_ENV".to_owned(), active);
        assert_eq!(tree.chosen("start"), guess("w/bin/python"));
    }

    #[test]
    fn a_runner_uses_the_environment_of_its_project() {
        let tree = Tree::new();
        tree.put(".venv/bin/python", "");
        assert_eq!(tree.chosen("uv run demo.py").0, ".venv/bin/python");
        assert_eq!(
            tree.chosen("uv run --python python3 demo.py").0,
            "bin/python3"
        );
    }
}
