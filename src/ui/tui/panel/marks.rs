//! What has to be known of a card beside its levels: throttled, forced, asleep, reset;
//! sources that contradict each other; what the kernel said.

use crate::model::{BusyTrust, FaultKind, GpuSample, KernelFault, Mono};
use crate::run::Snapshot;
use crate::ui::card;
use crate::ui::text::ago;
use crate::ui::tui::parts::{Parts, Row, paragraph, shortened};
use crate::ui::tui::theme::Theme;
use crate::ui::words::Tone;

use super::rank;

/// Contradictions that are shown one by one.
const SHOWN: usize = 2;

/// All of it; nothing for a card that is well.
pub(super) fn rows(s: &Snapshot, g: &GpuSample, theme: Theme, columns: usize) -> Vec<Row> {
    let mut rows: Vec<Row> = marks(g, theme, columns).into_iter().collect();
    if let BusyTrust::Untrusted { why, .. } = &s.busy_trust {
        let words = format!("busy counter not believed: {why}");
        let rank = rank::TROUBLE;
        rows.extend(paragraph(
            theme,
            "trust",
            Tone::Warn,
            &words,
            columns,
            2,
            rank,
        ));
    }
    rows.extend(disagreements(g, theme, columns));
    rows.extend(kernel(s, theme, columns));
    rows.extend(warnings(s, theme, columns));
    rows
}

/// What was wrong before the launch and stays so: one in two lines, or two in one each.
fn warnings(s: &Snapshot, theme: Theme, columns: usize) -> Vec<Row> {
    let rank = rank::TROUBLE;
    let (shown, lines) = match s.warnings.as_slice() {
        [] => return Vec::new(),
        [one] => (std::slice::from_ref(one), 2),
        several => (&several[..2], 1),
    };
    let more = s.warnings.len() - shown.len();
    let mut rows = Vec::new();
    for (at, words) in shown.iter().enumerate() {
        let label = if at == 0 { "warn" } else { "" };
        let words = if at == 1 && more > 0 {
            format!("+{more} more; {words}")
        } else {
            words.clone()
        };
        rows.extend(paragraph(
            theme,
            label,
            Tone::Warn,
            &words,
            columns,
            lines,
            rank,
        ));
    }
    rows
}

fn marks(g: &GpuSample, theme: Theme, columns: usize) -> Option<Row> {
    let state = card::state(&g.state);
    let odd = g.state.last().is_some_and(|state| state != "active");
    let held = g.throttle.last().is_some_and(|r| !r.is_empty());
    let forced = g.perf_level.last().is_some_and(|level| level != "auto");
    let dumped = card::has_core_dump(&g.resets);
    let resets = g.resets.last().and_then(|r| r.count).filter(|n| *n > 0);
    if !(odd || held || forced || dumped || resets.is_some()) {
        return None;
    }
    let mut row = Parts::labelled(theme, "card");
    if odd {
        row = row.put(0, Tone::Warn, state.short());
    }
    // before the reasons: behind them it would be read as one of them
    if forced {
        let level = card::level(&g.perf_level).short();
        row = row.put(2, Tone::Warn, format!("level {level}"));
    }
    if held {
        let why = card::throttle(&g.throttle).short();
        row = row.put(1, Tone::Warn, format!("throttled: {why}"));
    }
    if dumped {
        row = row.put(0, Tone::Bad, "core dump");
    }
    if let Some(n) = resets {
        let words = if n == 1 { "reset" } else { "resets" };
        row = row.put(
            3,
            Tone::Warn,
            format!("{n} {words} since the driver was loaded"),
        );
    }
    Some(row.row(columns, rank::TROUBLE))
}

/// Both sides of each contradiction; neither is taken for the truth.
fn disagreements(g: &GpuSample, theme: Theme, columns: usize) -> Vec<Row> {
    let more = g.disagreements.len().saturating_sub(SHOWN);
    let mut rows = Vec::new();
    for (at, d) in g.disagreements.iter().take(SHOWN).enumerate() {
        let mut words = card::disagreement(g, d);
        if at + 1 == SHOWN && more > 0 {
            words = format!("+{more} more; {words}");
        }
        let label = if at == 0 { "differ" } else { "" };
        let rank = rank::TROUBLE;
        let mut told = paragraph(theme, label, Tone::Warn, &words, columns, 3, rank);
        if let Some(row) = told.first_mut().filter(|_| at > 0) {
            row.rank = rank::STRIP;
            row.goes_on = Some((theme.ellipsis().into(), columns));
        }
        rows.extend(shortened(told, rank::STRIP));
    }
    rows
}

/// How much a fault matters to us, the least first: the card's own and ours, then what
/// follows from them, another program that was killed, another card.
fn grade(s: &Snapshot, fault: &KernelFault) -> u8 {
    use FaultKind as K;
    if fault.is_of_another(s.gpu.as_ref()) {
        return 3;
    }
    match fault.kind {
        K::OomKill => {
            let tree = s.process.as_ref().map(|p| p.pid).or(s.pid);
            if fault.pid.is_some() && fault.pid == tree {
                0
            } else {
                2
            }
        }
        K::ResetBegun | K::ResetDone | K::PageFault | K::EvictFailed | K::NoMemory => 1,
        _ => 0,
    }
}

/// `ring timeout gfx_0.0.0 on this card`, `OOM kill of firefox (pid 777)`.
fn fault_words(s: &Snapshot, fault: &KernelFault) -> String {
    let mut words = fault.words();
    let card = s.gpus.iter().find(|g| fault.gpu.as_ref() == Some(&g.id));
    if fault.gpu.is_some() && fault.gpu == s.gpu {
        words.push_str(" on this card");
    } else if let Some(g) = card {
        words = format!("{words} on GPU {}", g.index);
    } else if let Some(id) = &fault.gpu {
        words = format!("{words} on {id}");
    }
    // who was killed is no cause
    let link = if fault.kind == FaultKind::OomKill {
        "of"
    } else {
        "by"
    };
    match (&fault.process, fault.pid) {
        (Some(name), Some(pid)) => format!("{words} {link} {name} (pid {pid})"),
        (Some(name), None) => format!("{words} {link} {name}"),
        (None, Some(pid)) => format!("{words} {link} pid {pid}"),
        (None, None) => words,
    }
}

/// The fault that matters most to us, the newest of equals; the next other one; how many
/// there are besides.
fn kernel(s: &Snapshot, theme: Theme, columns: usize) -> Vec<Row> {
    let mut faults: Vec<_> = s
        .faults
        .iter()
        .rev()
        .map(|(at, fault)| (grade(s, fault), *at, fault))
        .collect();
    // stable: the newest of a grade stays first
    faults.sort_by_key(|(grade, ..)| *grade);
    let Some((worst, at, fault)) = faults.first().copied() else {
        return Vec::new();
    };
    let mut words = format!("{} {} ago", fault_words(s, fault), ago(s.now.since(at)));
    let mut rest = faults.len() - 1;
    let other = |(_, _, f): &&(u8, Mono, &KernelFault)| {
        (f.kind, &f.gpu, &f.part, f.code) != (fault.kind, &fault.gpu, &fault.part, fault.code)
    };
    if let Some((_, _, also)) = faults.iter().skip(1).find(other) {
        words = format!("{words}; also {}", fault_words(s, also));
        rest -= 1;
    }
    if rest > 0 {
        words = format!("{words}; {rest} more");
    }
    let (tone, rank) = match worst {
        0 | 1 => (Tone::Bad, rank::NEXT),
        _ => (Tone::Warn, rank::TROUBLE),
    };
    paragraph(theme, "kernel", tone, &words, columns, 2, rank)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::GpuId;
    use crate::ui::testing;

    type Told<'a> = (u64, FaultKind, Option<&'a str>, Option<(u32, &'a str)>);

    fn told(faults: &[Told<'_>]) -> String {
        let mut s = testing::healthy();
        s.now = Mono::from_secs(300);
        s.faults = faults
            .iter()
            .map(|(at, kind, gpu, who)| {
                let mut fault = KernelFault::new(*kind);
                fault.gpu = match gpu {
                    Some("ours") => s.gpu.clone(),
                    other => other.map(|id| GpuId(id.to_owned())),
                };
                fault.pid = who.map(|(pid, _)| pid);
                fault.process = who.map(|(_, name)| name.to_owned());
                (Mono::from_secs(*at), fault)
            })
            .collect();
        let theme = Theme {
            ascii: true,
            color: false,
        };
        let rows = kernel(&s, theme, 300);
        let lines: Vec<_> = rows.iter().map(|row| row.line.to_string()).collect();
        lines.join("\n")
    }

    #[test]
    fn another_program_that_was_killed_does_not_hide_a_fault_of_the_card() {
        let oom = |at| (at, FaultKind::OomKill, None, Some((777, "firefox")));
        let ring = |at| (at, FaultKind::RingTimeout, Some("ours"), None);
        assert_eq!(
            told(&[ring(60), ring(180), oom(290)]),
            "kernel  ring timeout on this card 2 min 00 s ago; also OOM kill of firefox (pid 777); 1 more"
        );
        assert_eq!(
            told(&[oom(290)]),
            "kernel  OOM kill of firefox (pid 777) 10 s ago"
        );
    }

    #[test]
    fn a_fault_of_another_card_comes_last_and_names_it() {
        let other = (290, FaultKind::RingTimeout, Some("0000:99:00.0"), None);
        let ours = (100, FaultKind::PageFault, Some("ours"), Some((9, "python")));
        assert_eq!(
            told(&[ours, other]),
            "kernel  page fault on this card by python (pid 9) 3 min 20 s ago; also ring timeout on 0000:99:00.0"
        );
    }
}
