//! MIOpen's databases, kernel cache and lock folder.

use crate::doctor::facts::{Facts, FolderFact, FolderState, Look, NaiveRecord, Records};
use crate::doctor::finding::{Finding, Id};

/// A naive kernel that is quicker than this, in milliseconds, holds nobody up.
const SLOW_MS: f64 = 50.0;

pub(super) fn judge(facts: &Facts, out: &mut Vec<Finding>) {
    let matters = facts.miopen_matters();
    for folder in &facts.folders {
        match &folder.state {
            Look::Known(state) if state.exists || matters => one(folder, state, out),
            Look::Known(_) => {}
            Look::Unknown(why) => {
                let what = format!("{} ({})", word(folder), folder.path);
                out.push(super::no_answer(&what, why));
            }
        }
    }
}

fn word(folder: &FolderFact) -> &'static str {
    match folder.role.as_str() {
        "user_db" => "MIOpen's user database",
        "kernel_cache" => "MIOpen's kernel cache",
        _ => "MIOpen's lock folder",
    }
}

fn one(folder: &FolderFact, state: &FolderState, out: &mut Vec<Finding>) {
    let path = &folder.path;
    let name = word(folder);
    if let Some(why) = &state.not_writable {
        let what = format!("{name} {path} may not be written to: {why}");
        out.push(match folder.role.as_str() {
            "locks" => Finding::warning(
                Id::FolderNotWritable,
                what,
                format!("sudo rm -r {path} while nothing generates, or export TMPDIR to a folder of your own"),
            )
            .why("another user made it; every access to the database then waits 60 s and fails with `Db lock has failed to lock`"),
            _ => Finding::error(
                Id::FolderNotWritable,
                what,
                "export MIOPEN_USER_DB_PATH and MIOPEN_CUSTOM_CACHE_DIR to folders that may be written to",
            )
            .why("MIOpen makes its folders at the first convolution, and fails there when it cannot"),
        });
    } else if !state.exists {
        if folder.role != "locks" {
            out.push(
                Finding::note(Id::FolderAbsent, format!("{name} {path} does not exist yet"))
                    .why("it is made at the first convolution; the first run searches and compiles, and is slow by design"),
            );
        }
    } else {
        out.push(Finding::ok(
            Id::FolderOk,
            format!("{name} {path}: {}", size(state)),
        ));
    }
    if let Some(network) = state.network.as_ref().filter(|_| folder.role != "locks") {
        out.push(
            Finding::warning(
                Id::FolderOnNetwork,
                format!("{name} {path} lies on {network}"),
                "export MIOPEN_USER_DB_PATH and MIOPEN_CUSTOM_CACHE_DIR to folders of a local disk",
            )
            .why("MIOpen then keeps it in the temporary folder without a word: search and compilation start anew after each restart of the machine"),
        );
    }
    if let Some(records) = &state.records {
        of_records(folder, records, out);
    }
}

fn size(state: &FolderState) -> String {
    let more = if state.truncated { "more than " } else { "" };
    let archs = state
        .archs
        .iter()
        .map(|(arch, bytes)| format!("{arch} {bytes}"));
    let archs: Vec<String> = archs.collect();
    let archs = if archs.is_empty() {
        String::new()
    } else {
        format!(" ({})", super::list(archs.iter().map(String::as_str), 6))
    };
    format!(
        "{more}{} in {more}{} files{archs}",
        state.bytes, state.files
    )
}

fn of_records(folder: &FolderFact, records: &Records, out: &mut Vec<Finding>) {
    if let Some(worst) = records.slowest.first() {
        let NaiveRecord { key, ms, file } = worst;
        let what = format!(
            "{} of {} records have the naive kernel as their fastest solver, the slowest {ms:.0} ms a launch: {key}",
            records.naive, records.read
        );
        let cure = format!(
            "use smaller VAE tiles or chunks; while nothing generates, delete that line from {}/{file} and it is searched anew",
            folder.path
        );
        let finding = if *ms >= SLOW_MS {
            Finding::warning(Id::NaiveRecords, what, cure)
        } else {
            Finding::note(Id::NaiveRecords, what).cure(cure)
        };
        out.push(finding.why("GEMM drops out where its workspace is too large; the naive kernel is tens to hundreds of times slower and is what a stalled VAE decode is made of"));
    }
    let unreadable = records.unreadable.iter().map(String::as_str);
    if records.bad > 0 || !records.unreadable.is_empty() {
        let files = super::list(unreadable, 3);
        let files = if files.is_empty() {
            String::new()
        } else {
            format!("; not readable: {files}")
        };
        out.push(
            Finding::note(
                Id::BadRecords,
                format!(
                    "{} lines of {} are no records{files}",
                    records.bad, folder.path
                ),
            )
            .why("MIOpen skips them and searches anew"),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{absent, found, healthy};
    use super::*;
    use crate::doctor::finding::Severity;

    fn state(facts: &mut Facts, nth: usize) -> &mut FolderState {
        match &mut facts.folders[nth].state {
            Look::Known(state) => state,
            Look::Unknown(why) => panic!("{why}"),
        }
    }

    #[test]
    fn naive_records_weigh_by_their_time() {
        let mut facts = healthy();
        let records = state(&mut facts, 0).records.as_mut().unwrap();
        records.naive = 2;
        records.slowest = vec![NaiveRecord {
            key: "96-6".to_owned(),
            ms: 8123.0,
            file: "gfx1100_48.HIP.ufdb.txt".to_owned(),
        }];
        let slow = found(&facts, Id::NaiveRecords);
        assert_eq!(slow.severity, Severity::Warning);
        assert!(slow.what.contains("2 of 40") && slow.what.contains("8123 ms"));
        assert!(slow.cure.unwrap().contains("gfx1100_48.HIP.ufdb.txt"));
        let records = state(&mut facts, 0).records.as_mut().unwrap();
        records.slowest[0].ms = 0.3;
        assert_eq!(found(&facts, Id::NaiveRecords).severity, Severity::Note);
    }

    #[test]
    fn a_folder_that_may_not_be_written_stops_miopen() {
        let mut facts = healthy();
        state(&mut facts, 1).not_writable = Some("read-only file system".to_owned());
        let bad = found(&facts, Id::FolderNotWritable);
        assert_eq!(bad.severity, Severity::Error);
        assert!(bad.what.contains("read-only file system"));
        let mut facts = healthy();
        state(&mut facts, 2).not_writable = Some("permission denied".to_owned());
        assert_eq!(
            found(&facts, Id::FolderNotWritable).severity,
            Severity::Warning
        );
    }

    #[test]
    fn absent_on_a_network_and_broken_are_told() {
        let mut facts = healthy();
        state(&mut facts, 0).exists = false;
        // the lock folder is made and left by any program
        state(&mut facts, 2).exists = false;
        found(&facts, Id::FolderAbsent);
        state(&mut facts, 1).network = Some("NFS".to_owned());
        found(&facts, Id::FolderOnNetwork);
        state(&mut facts, 0).records.as_mut().unwrap().bad = 3;
        assert!(found(&facts, Id::BadRecords).what.starts_with("3 lines"));
        state(&mut facts, 0).exists = false;
        facts.cards.clear();
        facts.system_mut().amd_devices.clear();
        facts.answer_mut().torch = None;
        assert!(absent(&facts, Id::FolderAbsent), "nobody needs it");
        facts.folders[0].state = Look::Unknown("no answer within 10 s".to_owned());
        assert!(absent(&facts, Id::BadRecords));
        found(&facts, Id::CheckNoAnswer);
    }
}
