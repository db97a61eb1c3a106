//! MIOpen's library and the variables that it really reads.

use crate::doctor::facts::{Facts, Libraries, Look, MiopenLibrary};
use crate::doctor::finding::{Finding, Id};
use crate::profile::knob::knob;

/// Names that are told one by one.
const NAMED: usize = 8;

pub(super) fn judge(facts: &Facts, out: &mut Vec<Finding>) {
    let libraries = match &facts.libraries {
        Look::Known(libraries) => libraries,
        Look::Unknown(why) => {
            out.push(super::no_answer("MIOpen's library", why));
            return;
        }
    };
    let Some(first) = libraries.found.first() else {
        if facts.torch().is_some_and(|t| t.hip.is_some()) {
            out.push(
                Finding::warning(
                    Id::MiopenMissing,
                    "libMIOpen.so was not found",
                    "set ROCM_PATH or LD_LIBRARY_PATH to the ROCm that torch uses, or install MIOpen (package miopen-hip)",
                )
                .why("looked beside torch, in the wheels of ROCm, in LD_LIBRARY_PATH, $ROCM_PATH, /opt/rocm and the system's folders"),
            );
        }
        return;
    };
    match &libraries.miopen {
        Some(Look::Known(library)) => {
            out.push(read(&first.path, &first.origin, library));
            ignored(facts, out);
            out.extend(super::search::judge(facts));
        }
        Some(Look::Unknown(why)) => out.push(Finding::warning(
            Id::MiopenUnreadable,
            format!("{} could not be read: {why}", first.path),
            format!("chmod a+r {}", first.path),
        )),
        None => {}
    }
    out.extend(several(libraries));
}

fn read(path: &str, origin: &str, library: &MiopenLibrary) -> Finding {
    let version = library.version.as_deref().unwrap_or("version not told");
    Finding::ok(
        Id::MiopenOk,
        format!(
            "MIOpen {version} ({}, {path}) contains {} MIOPEN_ names",
            of(origin),
            library.names.len()
        ),
    )
}

fn of(origin: &str) -> &str {
    match origin {
        "torch" => "torch's own",
        "rocm_sdk" => "of the ROCm wheels",
        "ld_library_path" => "by LD_LIBRARY_PATH",
        "rocm" => "of the ROCm installation",
        _ => "the system's",
    }
}

/// Names that are set although this library does not contain them.
fn ignored(facts: &Facts, out: &mut Vec<Finding>) {
    // what no version reads is told with the environment
    let dead = |name: &str| knob(name).is_some_and(|k| k.no_effect);
    let unknown = |name: &&String| {
        name.starts_with("MIOPEN_") && !dead(name) && facts.miopen_knows(name) == Some(false)
    };
    let why = "a name that does not stand in libMIOpen.so is never read; it belongs to an older or newer version, or is misspelt";
    let of_user: Vec<&String> = facts.environment.keys().filter(unknown).collect();
    if !of_user.is_empty() {
        let names: Vec<String> = of_user.iter().map(|n| since(n)).collect();
        let names = super::list(names.iter().map(String::as_str), NAMED);
        out.push(
            Finding::note(
                Id::MiopenNameIgnored,
                format!("set, but not known to the installed MIOpen, so ignored: {names}"),
            )
            .why(why)
            .cure(format!("unset {}", of_user[0])),
        );
    }
    let Some(profile) = facts.profile.known() else {
        return;
    };
    let of_profile: Vec<&String> = profile.sets.iter().filter(unknown).collect();
    if !of_profile.is_empty() {
        let names = super::list(of_profile.iter().map(|n| n.as_str()), NAMED);
        out.push(
            Finding::note(
                Id::ProfileNameIgnored,
                format!(
                    "profile {} sets what the installed MIOpen ignores: {names}",
                    profile.id
                ),
            )
            .why(why),
        );
    }
}

/// A name, with the ROCm from which it is read where that is known.
fn since(name: &str) -> String {
    let first = knob(name).and_then(|k| k.since.as_deref());
    first.map_or_else(
        || name.to_owned(),
        |rocm| format!("{name} (read from ROCm {rocm} on)"),
    )
}

/// The loader may take another one.
fn several(libraries: &Libraries) -> Option<Finding> {
    let first = libraries.found.first()?;
    let by_path = libraries
        .found
        .iter()
        .find(|f| f.origin == "ld_library_path")?;
    (by_path.path != first.path).then(|| {
        Finding::warning(
            Id::MiopenSeveral,
            format!(
                "LD_LIBRARY_PATH offers another MIOpen: {} beside {}",
                by_path.path, first.path
            ),
            "unset LD_LIBRARY_PATH for the generation, or take ROCm's folder out of it",
        )
        .why("whichever the loader takes, libraries of two ROCm versions in one process end in crashes; the first was looked at")
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{absent, found, healthy};
    use super::*;
    use crate::doctor::facts::LibraryFile;
    use crate::doctor::finding::Severity;

    fn libraries(facts: &mut Facts) -> &mut Libraries {
        match &mut facts.libraries {
            Look::Known(libraries) => libraries,
            Look::Unknown(why) => panic!("{why}"),
        }
    }

    #[test]
    fn names_that_the_library_lacks_are_ignored_by_it() {
        let mut facts = healthy().with("MIOPEN_SEARCH_CUTOFF", "1");
        let ignored = found(&facts, Id::MiopenNameIgnored);
        assert_eq!(ignored.severity, Severity::Note);
        let name = "MIOPEN_SEARCH_CUTOFF (read from ROCm 7.11 on)";
        assert!(ignored.what.ends_with(name), "{}", ignored.what);
        if let Look::Known(profile) = &mut facts.profile {
            profile.sets.insert("MIOPEN_NAIVE_TIMEOUT".to_owned());
            profile.sets.insert("PYTHONUNBUFFERED".to_owned());
        }
        let of_profile = found(&facts, Id::ProfileNameIgnored);
        assert!(of_profile.what.ends_with("ignores: MIOPEN_NAIVE_TIMEOUT"));
    }

    #[test]
    fn nothing_is_concluded_from_a_library_without_names() {
        let mut facts = healthy().with("MIOPEN_SEARCH_CUTOFF", "1");
        libraries(&mut facts).miopen = Some(Look::Known(MiopenLibrary::default()));
        assert!(absent(&facts, Id::MiopenNameIgnored));
        libraries(&mut facts).miopen = Some(Look::Unknown("permission denied".to_owned()));
        found(&facts, Id::MiopenUnreadable);
    }

    #[test]
    fn missing_several_and_not_looked_at_differ() {
        let mut facts = healthy();
        libraries(&mut facts).found.push(LibraryFile {
            path: "/x/libMIOpen.so.1".to_owned(),
            origin: "ld_library_path".to_owned(),
        });
        found(&facts, Id::MiopenSeveral);
        libraries(&mut facts).found.clear();
        found(&facts, Id::MiopenMissing);
        facts.answer_mut().torch = None;
        assert!(absent(&facts, Id::MiopenMissing), "nothing needs it");
        facts.libraries = Look::Unknown("no answer".to_owned());
        found(&facts, Id::CheckNoAnswer);
    }
}
