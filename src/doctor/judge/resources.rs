//! Room on disks and in memory.

use crate::doctor::facts::{Facts, Look, PlaceFact, PlaceState};
use crate::doctor::finding::{Finding, Id};
use crate::model::Bytes;

/// Less free disk than this is little: a clip, its sections and compiled kernels.
const DISK_LOW: Bytes = Bytes::gib(5);
/// Less than this and nothing can be written.
const DISK_FULL: Bytes = Bytes::mib(200);
/// Less free memory than this is little for any model.
const RAM_LOW: Bytes = Bytes::gib(8);
/// With this much memory swap is not missed.
const RAM_PLENTY: Bytes = Bytes::gib(60);

pub(super) fn judge(facts: &Facts, out: &mut Vec<Finding>) {
    for place in &facts.places {
        match &place.state {
            Look::Known(state) => disk(place, state, out),
            Look::Unknown(why) => {
                let what = format!("{} ({})", word(place), place.path);
                out.push(super::no_answer(&what, why));
            }
        }
    }
    memory(facts, out);
}

fn word(place: &PlaceFact) -> &'static str {
    match place.role.as_str() {
        "home" => "your home",
        "state" => "the folder of our records",
        "temp" => "the temporary folder",
        _ => "the working directory",
    }
}

fn disk(place: &PlaceFact, state: &PlaceState, out: &mut Vec<Finding>) {
    let PlaceState { free, total, .. } = state;
    let (name, path) = (word(place), &place.path);
    if let Some(why) = &state.not_writable {
        let what = format!("{name} {path} may not be written to: {why}");
        out.push(match place.role.as_str() {
            "temp" => Finding::error(
                Id::PlaceNotWritable,
                what,
                "export TMPDIR to a folder that may be written to",
            )
            .why("Python, MIOpen and ffmpeg need one"),
            "state" => Finding::warning(
                Id::PlaceNotWritable,
                what,
                "export XDG_STATE_HOME to a folder that may be written to",
            )
            .why("records of runs then lie in the temporary folder"),
            "cwd" => Finding::warning(
                Id::PlaceNotWritable,
                what,
                "start from a folder that may be written to, or name one with --cwd",
            )
            .why("most generations write their results there"),
            _ => Finding::warning(
                Id::PlaceNotWritable,
                what,
                "make it writable, or export HOME, HF_HOME and the MIOPEN_ folders to places that are",
            )
            .why("models, MIOpen's databases and compiled kernels are kept there"),
        });
    }
    let what = format!("{name} {path} has {free} free of {total}");
    let cure = "make room, or move results and caches (HF_HOME, MIOPEN_CUSTOM_CACHE_DIR) elsewhere";
    out.push(if *free < DISK_FULL {
        Finding::error(Id::DiskLow, what, cure)
    } else if *free < DISK_LOW && place.role != "temp" {
        Finding::warning(Id::DiskLow, what, cure)
    } else {
        Finding::ok(Id::RoomOk, what)
    });
}

fn memory(facts: &Facts, out: &mut Vec<Finding>) {
    let host = &facts.host;
    let (Some(free), Some(total)) = (
        host.mem_available.last().copied(),
        host.mem_total.last().copied(),
    ) else {
        return;
    };
    let what = format!("{free} of {total} of memory are free");
    let profile = facts.profile.known();
    let wanted = profile.and_then(|p| Some((p, p.host_ram_min?)));
    out.push(match wanted {
        Some((profile, wanted)) if free < wanted => Finding::warning(
            Id::RamBelowProfile,
            format!("{what}; profile {} asks for {wanted}", profile.id),
            "end other programs, or add swap",
        )
        .why("the kernel ends the largest process when memory runs out"),
        _ if free < RAM_LOW => Finding::warning(
            Id::RamLow,
            what,
            "end other programs, or add swap; load models in fp8 or GGUF form",
        )
        .why("models pass through memory on their way to the card"),
        _ => Finding::ok(Id::RoomOk, what),
    });
    let none = host.swap_total.last().is_some_and(|s| *s == Bytes(0));
    if none && total < RAM_PLENTY {
        out.push(
            Finding::note(Id::NoSwap, format!("there is no swap beside {total} of memory"))
                .why("offloaded models of 30 GiB and more then end by the kernel's hand instead of becoming slow")
                .cure("add a swap file of 16 GiB or more"),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{absent, found, healthy};
    use super::*;
    use crate::doctor::finding::Severity;
    use crate::model::Metric;

    fn place(facts: &mut Facts) -> &mut PlaceState {
        match &mut facts.places[0].state {
            Look::Known(state) => state,
            Look::Unknown(why) => panic!("{why}"),
        }
    }

    #[test]
    fn a_full_disk_is_worse_than_a_nearly_full_one() {
        let mut facts = healthy();
        place(&mut facts).free = Bytes::gib(2);
        assert_eq!(found(&facts, Id::DiskLow).severity, Severity::Warning);
        place(&mut facts).free = Bytes::mib(5);
        assert_eq!(found(&facts, Id::DiskLow).severity, Severity::Error);
        place(&mut facts).not_writable = Some("read-only file system".to_owned());
        found(&facts, Id::PlaceNotWritable);
    }

    #[test]
    fn memory_is_measured_by_the_profile_first() {
        let mut facts = healthy();
        facts.host.mem_available = Metric::Fresh(Bytes::gib(10));
        assert!(
            found(&facts, Id::RamBelowProfile)
                .what
                .contains("asks for 16.0 GiB")
        );
        facts.profile = Look::Unknown("none".to_owned());
        assert!(absent(&facts, Id::RamBelowProfile));
        facts.host.mem_available = Metric::Fresh(Bytes::gib(3));
        found(&facts, Id::RamLow);
        facts.host.mem_available = Metric::Failed {
            why: "x".to_owned(),
            for_ms: 1,
        };
        assert!(absent(&facts, Id::RamLow), "not known is not none");
    }

    #[test]
    fn swap_is_missed_where_memory_is_short() {
        let mut facts = healthy();
        facts.host.swap_total = Metric::Fresh(Bytes(0));
        assert!(absent(&facts, Id::NoSwap));
        facts.host.mem_total = Metric::Fresh(Bytes::gib(32));
        found(&facts, Id::NoSwap);
        facts.host.swap_total = Metric::Unsupported;
        assert!(absent(&facts, Id::NoSwap));
    }
}
