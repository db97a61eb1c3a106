//! Which recorded run is meant.

use std::io::{self, Write};
use std::path::Path;

use crate::record::{RunEntry, RunStatus, Store};

use super::CliError;

/// Ids that an error message names.
const NAMED: usize = 5;

/// Every recorded run, newest first, those in the temporary folder included.
pub(super) fn all() -> Result<Vec<RunEntry>, CliError> {
    Ok(with_fallback(in_state_folder()?, in_fallback()))
}

fn in_state_folder() -> Result<Vec<RunEntry>, CliError> {
    let store = Store::open_default()?;
    store.list().map_err(|why| CliError::System {
        what: "list the recorded runs",
        why,
    })
}

fn in_fallback() -> Vec<RunEntry> {
    let fallback = Store::fallback();
    // anybody may make a folder there; nothing readable there is nothing to show
    if fallback.is_there().unwrap_or_default() {
        fallback.list().unwrap_or_default()
    } else {
        Vec::new()
    }
}

fn with_fallback(mut runs: Vec<RunEntry>, others: Vec<RunEntry>) -> Vec<RunEntry> {
    runs.extend(others);
    runs.sort_by(|a, b| b.newness().cmp(&a.newness()));
    runs
}

/// The runs to look at, newest first. Where the state folder cannot be used, those in the
/// temporary folder, where such runs are recorded; that is said on standard error.
///
/// # Errors
/// Where the state folder cannot be used, and no run lies in the temporary one.
pub(super) fn to_look_at() -> Result<Vec<RunEntry>, CliError> {
    let others = in_fallback();
    match in_state_folder() {
        Ok(runs) => Ok(with_fallback(runs, others)),
        Err(refused) if others.is_empty() => Err(refused),
        Err(refused) => {
            note(&format!(
                "{refused}; until then only the runs in {} are found",
                Store::fallback().root().display()
            ));
            Ok(others)
        }
    }
}

/// Says on standard error what has to be known of an answer.
fn note(text: &str) {
    let line = |c: char| if c.is_control() { ' ' } else { c };
    let text: String = text.chars().map(line).collect();
    // without a reader there is nobody to be told
    let _ = writeln!(io::stderr(), "framepack-tui: {text}");
}

/// The run that `asked` means: an id, the beginning of one, a folder, or `last`.
pub(super) fn run(asked: Option<&str>) -> Result<RunEntry, CliError> {
    let folder = asked.filter(|a| a.contains('/') || Path::new(a).is_dir());
    if let Some(folder) = folder {
        return RunEntry::at(Path::new(folder)).ok_or_else(|| CliError::NoSuchRun {
            asked: folder.to_owned(),
            there: "a run's folder holds events.jsonl.gz".to_owned(),
        });
    }
    let run = choose(asked, to_look_at()?)?;
    let by_time = matches!(asked, None | Some("last"));
    if by_time && run.path.starts_with(Store::fallback().root()) {
        note(&format!(
            "run {} lies in {}: the state folder could not be used when it began",
            run.id,
            run.path.display()
        ));
    }
    Ok(run)
}

fn choose(asked: Option<&str>, mut runs: Vec<RunEntry>) -> Result<RunEntry, CliError> {
    let found: Vec<usize> = match asked {
        None | Some("last") => {
            let newest = (!runs.is_empty()).then_some(0);
            let running = runs.iter().position(|r| r.status == RunStatus::Running);
            let Some(chosen) = running.or(newest) else {
                return Err(CliError::NoRuns);
            };
            vec![chosen]
        }
        Some(asked) => match runs.iter().position(|r| r.id == asked) {
            Some(exact) => vec![exact],
            None if asked.is_empty() => Vec::new(),
            None => (0..runs.len())
                .filter(|i| runs[*i].id.starts_with(asked))
                .collect(),
        },
    };
    let ids = |which: &mut dyn Iterator<Item = usize>| -> Vec<String> {
        which.take(NAMED).map(|i| runs[i].id.clone()).collect()
    };
    let asked = asked.unwrap_or_default().to_owned();
    match found[..] {
        [chosen] => Ok(runs.swap_remove(chosen)),
        [] if runs.is_empty() => Err(CliError::NoSuchRun {
            asked,
            there: "no run is recorded yet".to_owned(),
        }),
        [] => Err(CliError::NoSuchRun {
            asked,
            there: format!("the newest are {}", ids(&mut (0..runs.len())).join(", ")),
        }),
        _ => Err(CliError::AmbiguousRun {
            asked,
            which: ids(&mut found.iter().copied()),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Outcome;

    fn runs() -> Vec<RunEntry> {
        let entry = |id: &str, status| RunEntry {
            id: id.to_owned(),
            path: id.into(),
            manifest: None,
            status,
        };
        vec![
            entry(
                "20260102-0003-00cc",
                RunStatus::Finished {
                    outcome: Outcome::Left,
                    exit_code: 0,
                },
            ),
            entry("20260102-0002-00bb", RunStatus::Running),
            entry("20260101-0001-00aa", RunStatus::Running),
        ]
    }

    fn chosen(asked: Option<&str>) -> String {
        match choose(asked, runs()) {
            Ok(run) => run.id,
            Err(e) => format!("{} {e}", e.exit_code()),
        }
    }

    #[test]
    fn the_newest_that_runs_comes_before_the_newest() {
        assert_eq!(chosen(None), "20260102-0002-00bb");
        assert_eq!(chosen(Some("last")), "20260102-0002-00bb");
        let over: Vec<_> = runs().into_iter().take(1).collect();
        assert_eq!(choose(None, over).unwrap().id, "20260102-0003-00cc");
        assert_eq!(choose(None, Vec::new()).unwrap_err().exit_code(), 66);
    }

    #[test]
    fn an_id_or_its_beginning_as_long_as_it_names_one() {
        assert_eq!(chosen(Some("20260101")), "20260101-0001-00aa");
        assert_eq!(chosen(Some("20260102-0003-00cc")), "20260102-0003-00cc");
        assert_eq!(
            chosen(Some("20260102")),
            "66 `20260102` may be any of these runs: 20260102-0003-00cc, 20260102-0002-00bb; \
             write more of the id"
        );
        let none = chosen(Some("2027"));
        assert!(none.starts_with("66 there is no run `2027`"), "{none}");
        assert!(chosen(Some("")).starts_with("66 "));
    }
}
