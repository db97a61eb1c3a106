//! Which sources of readings work.

use crate::doctor::facts::{Facts, SourceFact};
use crate::doctor::finding::{Finding, Id};
use crate::model::sample::SourceState;

pub(super) fn judge(facts: &Facts, out: &mut Vec<Finding>) {
    let found = !facts.cards.is_empty();
    out.extend(facts.sources.iter().map(|s| source(s, found)));
    match &facts.system.known() {
        Some(system) if !system.sysfs => out.push(
            Finding::warning(
                Id::SysMissing,
                "/sys is not mounted: no card can be seen",
                "in a container: pass /sys (it is there by default); on a machine: mount -t sysfs sysfs /sys",
            )
            .why("amdgpu tells its readings below /sys/class/drm"),
        ),
        Some(_) => {}
        None => {
            let why = facts.system.unknown().unwrap_or_default();
            out.push(super::no_answer("kernel, driver and ROCm", why));
        }
    }
}

/// `found`: some card is read, so a source that is not there is not missed.
fn source(source: &SourceFact, found: bool) -> Finding {
    let SourceFact { name, why, .. } = source;
    let why = why.as_deref().unwrap_or("no reason was given");
    match source.state {
        SourceState::Ok => Finding::ok(Id::SourceOk, format!("{name} answers{}", times(source))),
        // its absence takes away words, not judgement; most users may not read it
        SourceState::Absent if is_log(name) && of_rights(why) => Finding::note(
            Id::SourceFailing,
            format!("{name} is closed to this user: {why}"),
        )
        .why("resets and faults of the GPU are then not told as they happen")
        .cure(cure_of_failing(name)),
        // our own word for waiting: the library may well be installed
        SourceState::Absent if name == SECOND && why.starts_with("not ") => Finding::ok(
            Id::SourceAbsent,
            format!("{name}, the second opinion, was not asked: {why}"),
        ),
        SourceState::Absent => {
            let what = format!("{name} is not on this machine: {why}");
            if found {
                Finding::ok(Id::SourceAbsent, what)
            } else {
                Finding::note(Id::SourceAbsent, what)
            }
        }
        SourceState::Failing if is_log(name) => {
            Finding::note(Id::SourceFailing, format!("{name} cannot be read: {why}"))
                .why("resets and faults of the GPU are then not told as they happen")
                .cure(cure_of_failing(name))
        }
        SourceState::Failing | SourceState::Starting | SourceState::Stale | SourceState::Lost
            if name == SECOND =>
        {
            Finding::note(
                Id::SourceFailing,
                format!("{name}, the second opinion, gives none: {why}"),
            )
            .why("every reading comes from sysfs; the library is only compared with it")
        }
        // timed on doctor itself, whose helpers come and go while it looks
        SourceState::Failing if name == "clients" => Finding::note(
            Id::SourceFailing,
            format!("{name}: {why}"),
        )
        .why("a process that begins or belongs to another user hides for a moment; of a run's own processes it is read"),
        SourceState::Failing => Finding::warning(
            Id::SourceFailing,
            format!("{name} answers with errors: {why}"),
            cure_of_failing(name),
        ),
        SourceState::Starting | SourceState::Stale | SourceState::Lost => Finding::warning(
            Id::SourceNoAnswer,
            format!("{name} gives no answer: {why}"),
            "see `dmesg` for a GPU reset or a driver that hangs; a restart of the machine ends it",
        )
        .why("the read blocks in the kernel; the other sources are read all the same"),
    }
}

/// The library that is only compared with sysfs.
const SECOND: &str = "rocm-smi";

/// The kernel's own words about a card.
fn is_log(name: &str) -> bool {
    matches!(name, "kernel log" | "nvml events")
}

/// Whether a reason speaks of missing rights: the thing itself is there.
fn of_rights(why: &str) -> bool {
    const WORDS: [&str; 8] = [
        "may not",
        "rights",
        "permission",
        "permitted",
        "cannot be read",
        "needs root",
        "to this user",
        "dmesg_restrict",
    ];
    let why = why.to_lowercase();
    WORDS.iter().any(|word| why.contains(word))
}

fn cure_of_failing(name: &str) -> &'static str {
    match name {
        "kernel log" => {
            "to see GPU resets as they happen: sudo usermod -aG adm $USER (or systemd-journal) and log in again, or sudo sysctl kernel.dmesg_restrict=0"
        }
        "nvml events" => {
            "error reports (Xid) stand in the kernel log as well: make that readable, sudo usermod -aG adm $USER (or systemd-journal) and log in again"
        }
        "nvml" => "see what `nvidia-smi` says; after a driver update restart the machine",
        _ => "see `dmesg` for errors of amdgpu; in a container pass /dev/kfd and /dev/dri",
    }
}

/// How long a read takes.
fn times(source: &SourceFact) -> String {
    let ms = |v: f64| match v {
        v if v < 0.1 => "under 0.1 ms".to_owned(),
        v if v < 10.0 => format!("{v:.1} ms"),
        v => format!("{v:.0} ms"),
    };
    match (source.first_ms, source.read_ms) {
        (Some(first), Some(read)) => {
            format!(", {} a read (the first {})", ms(read), ms(first))
        }
        (Some(first), None) => format!(", {} for the first read", ms(first)),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{found, healthy};
    use super::*;
    use crate::doctor::facts::Look;
    use crate::doctor::finding::Severity;

    fn with(state: SourceState, why: &str) -> Facts {
        let mut facts = healthy();
        facts.sources[0].state = state;
        facts.sources[0].why = Some(why.to_owned());
        facts
    }

    #[test]
    fn absent_failing_and_silent_are_three_things() {
        let mut absent = with(SourceState::Absent, "no library");
        assert_eq!(found(&absent, Id::SourceAbsent).severity, Severity::Ok);
        absent.cards.clear();
        assert_eq!(found(&absent, Id::SourceAbsent).severity, Severity::Note);
        let failing = found(&with(SourceState::Failing, "EIO"), Id::SourceFailing);
        assert!(failing.what.ends_with("errors: EIO") && failing.cure.is_some());
        let mut log = with(SourceState::Failing, "operation not permitted");
        log.sources[0].name = "kernel log".to_owned();
        let log = found(&log, Id::SourceFailing);
        assert_eq!(log.severity, Severity::Note, "most users may not read it");
        for (name, why) in [
            ("kernel log", "journalctl may not show kernel lines"),
            (
                "kernel log",
                "/dev/kmsg cannot be read: needs root, or kernel.dmesg_restrict 0; and there is no journalctl",
            ),
            (
                "nvml events",
                "error reports (Xid) are not told to this user",
            ),
        ] {
            let mut closed = with(SourceState::Absent, why);
            closed.sources[0].name = name.to_owned();
            let closed = found(&closed, Id::SourceFailing);
            assert_eq!(closed.severity, Severity::Note);
            assert!(closed.what.starts_with(name) && !closed.what.contains("this machine"));
            assert!(closed.cure.unwrap().contains("adm"));
        }
        let mut gone = with(SourceState::Absent, "/dev/kmsg is not there");
        gone.sources[0].name = "kernel log".to_owned();
        assert!(
            found(&gone, Id::SourceAbsent)
                .what
                .contains("is not on this machine")
        );
        let silent = found(
            &with(SourceState::Stale, "the read blocks"),
            Id::SourceNoAnswer,
        );
        assert_eq!(silent.severity, Severity::Warning);
    }

    #[test]
    fn a_read_has_its_time() {
        let ok = found(&healthy(), Id::SourceOk);
        assert_eq!(
            ok.what,
            "sysfs 0000:03:00.0 answers, 0.4 ms a read (the first 2.5 ms)"
        );
    }

    #[test]
    fn without_sys_nothing_is_concluded() {
        let mut facts = healthy();
        facts.system_mut().sysfs = false;
        found(&facts, Id::SysMissing);
        facts.system = Look::Unknown("no answer within 5 s".to_owned());
        let blind = found(&facts, Id::CheckNoAnswer);
        assert!(blind.what.contains("no answer within 5 s"));
    }
}
