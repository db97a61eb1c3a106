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
        SourceState::Absent => {
            let what = format!("{name} is not on this machine: {why}");
            if found {
                Finding::ok(Id::SourceAbsent, what)
            } else {
                Finding::note(Id::SourceAbsent, what)
            }
        }
        // its absence takes away words, not judgement; most users may not read it
        SourceState::Failing if name == "kernel log" => {
            Finding::note(Id::SourceFailing, format!("{name} cannot be read: {why}"))
                .why("resets and faults of the GPU are then not told as they happen")
                .cure(cure_of_failing(name))
        }
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

fn cure_of_failing(name: &str) -> &'static str {
    match name {
        "kernel log" => {
            "to see GPU resets as they happen: sudo usermod -aG adm $USER (or systemd-journal) and log in again, or sudo sysctl kernel.dmesg_restrict=0"
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
