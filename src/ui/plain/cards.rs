//! What the cards read, as text for people and screen readers.

use crate::model::{GpuSample, Metric, Sample};
use crate::ui::card;
use crate::ui::text::{clean, number, pad, percent, wrap};
use crate::ui::words::{self, Reading, Tone, quantity, reading};

/// Columns of the text.
const COLUMNS: usize = 80;
/// Columns before a value: two of margin and the label.
const LABEL: usize = 12;
/// Most lines that one row is wrapped to.
const LINES: usize = 6;

/// Every card of the sample with its values, the host's memory, and the sources that are
/// not well; where there is no card, why. No line is longer than 80 columns. With
/// `ascii`, nothing outside ASCII.
pub fn cards_text(sample: &Sample, ascii: bool) -> String {
    let mut page = Page {
        text: String::new(),
        ascii,
    };
    if sample.gpus.is_empty() {
        no_card(sample, &mut page);
    }
    for g in &sample.gpus {
        one(g, &mut page);
    }
    let some_absent = page.text.contains("--");
    host(sample, &mut page);
    for source in &sample.sources {
        let (words, tone) = words::source(source);
        if matches!(tone, Tone::Warn | Tone::Bad) && !sample.gpus.is_empty() {
            page.row("source", &format!("{} {words}", source.name));
        }
    }
    if some_absent {
        page.row("--", "not offered by this card, its driver or this machine");
    }
    page.text
}

/// The text as it grows.
struct Page {
    text: String,
    ascii: bool,
}

impl Page {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// A label and what belongs to it, wrapped beside the label.
    fn row(&mut self, label: &str, value: &str) {
        let value = clean(value, self.ascii);
        let label = clean(label, self.ascii);
        let mut label = label.as_str();
        for line in wrap(&value, COLUMNS - LABEL, LINES, "...") {
            let head = format!("  {}", pad(label, LABEL - 3, "."));
            self.line(&format!("{head} {line}"));
            label = "";
        }
    }

    /// Values with their names in one row.
    fn list(&mut self, label: &str, values: &[(&str, Reading)]) {
        let each = values.iter().map(|(name, r)| match *name {
            "" => say(r),
            name => format!("{name} {}", say(r)),
        });
        self.row(label, &each.collect::<Vec<_>>().join(", "));
    }
}

/// A value with what is wrong with it.
fn say(r: &Reading) -> String {
    match &r.note {
        Some(note) if r.tone != Tone::Dim => format!("{} ({note})", r.text),
        _ => r.text.clone(),
    }
}

/// Why there is no card, from the sources that look for one.
fn no_card(sample: &Sample, page: &mut Page) {
    page.line("no GPU can be read on this machine");
    for source in &sample.sources {
        let looks = ["sysfs", "nvml", "rocm-smi"]
            .iter()
            .any(|name| source.name.starts_with(name));
        if looks {
            page.row(&source.name, &words::source(source).0);
        }
    }
}

/// The reason that every value of a card failed for, where it is one for all.
fn all_failed(g: &GpuSample) -> Option<Reading> {
    fn why<T>(metric: &Metric<T>) -> Option<&String> {
        match metric {
            Metric::Failed { why, .. } => Some(why),
            _ => None,
        }
    }
    let busy = why(&g.busy)?;
    let alike = why(&g.power_w) == Some(busy)
        && why(&g.vram_used) == Some(busy)
        && why(&g.temp_edge) == Some(busy);
    alike.then(|| quantity(&g.busy, 0, "%"))
}

fn one(g: &GpuSample, page: &mut Page) {
    let mut head = vec![format!("GPU {}", g.index), g.name.clone()];
    head.extend(g.arch.clone());
    head.push(g.id.to_string());
    head.extend(card::compute_index(g));
    head.push(format!("({})", g.source));
    let head = clean(&head.join("  "), page.ascii);
    for (at, line) in wrap(&head, COLUMNS - 4, 2, "...").iter().enumerate() {
        page.line(&format!("{}{line}", if at == 0 { "" } else { "    " }));
    }
    if let Some(instead) = card::unread(g) {
        let note = instead.note.map_or_else(String::new, |n| format!(" ({n})"));
        page.row("state", &format!("{}{note}", instead.text));
    } else if let Some(failed) = all_failed(g) {
        page.row("readings", &say(&failed));
    } else {
        values(g, page);
    }
    second(g, page);
}

fn values(g: &GpuSample, page: &mut Page) {
    let c = |m: &Metric<f64>, unit| quantity(m, 0, unit);
    page.list(
        "state",
        &[
            ("", card::state(&g.state)),
            ("level", card::level(&g.perf_level)),
        ],
    );
    page.list(
        "busy",
        &[
            ("", c(&g.busy, "%")),
            ("memory controller", c(&g.mem_busy, "%")),
            ("video engine", c(&g.video_busy, "%")),
        ],
    );
    page.list(
        card::power_label(g),
        &[("", c(&g.power_w, "W")), ("limit", c(&g.power_cap_w, "W"))],
    );
    memory(g, page);
    page.list(
        "temp",
        &[
            ("edge", c(&g.temp_edge, "C")),
            ("junction", c(&g.temp_junction, "C")),
            ("mem", c(&g.temp_mem, "C")),
        ],
    );
    page.list(
        "clocks",
        &[
            ("sclk", c(&g.sclk_mhz, "MHz")),
            ("mclk", c(&g.mclk_mhz, "MHz")),
        ],
    );
    match (g.fan_rpm.is_supported(), g.fan_percent.is_supported()) {
        (true, true) => page.list(
            "fan",
            &[("", c(&g.fan_rpm, "rpm")), ("", c(&g.fan_percent, "%"))],
        ),
        (false, true) => page.list("fan", &[("", c(&g.fan_percent, "%"))]),
        (_, false) => page.list("fan", &[("", c(&g.fan_rpm, "rpm"))]),
    }
    page.row("throttled", &say(&card::throttle(&g.throttle)));
    page.row("link", &say(&card::link(&g.link)));
    page.row("resets", &say(&card::resets(&g.resets)));
}

fn memory(g: &GpuSample, page: &mut Page) {
    for (label, used, total) in [
        ("vram", &g.vram_used, &g.vram_total),
        ("gtt", &g.gtt_used, &g.gtt_total),
    ] {
        let mut words = say(&card::used_of(used, total));
        if let Metric::Failed { .. } = total {
            let total = reading(total, ToString::to_string);
            words = format!("{words}, size {}", say(&total));
        }
        let share = used
            .fresh()
            .zip(total.last())
            .and_then(|(used, total)| percent(used.as_gib_f64(), total.as_gib_f64()));
        if let Some(share) = share {
            words = format!("{words} ({} %)", number(share, 0));
        }
        page.row(label, &words);
    }
    if let Some(words) = card::unified(g) {
        page.row("unified", &words);
    }
}

/// What another source says, and where the two contradict each other.
fn second(g: &GpuSample, page: &mut Page) {
    if let Some(o) = &g.second {
        let both = card::opinions(g, o).into_iter();
        let theirs: Vec<_> = both.map(|(name, _, theirs)| (name, theirs)).collect();
        page.list(&o.source, &theirs);
    }
    for d in &g.disagreements {
        page.row("differ", &card::disagreement(g, d));
    }
}

fn host(sample: &Sample, page: &mut Page) {
    let size = |m| say(&reading(m, ToString::to_string));
    page.line("host");
    page.row(
        "memory",
        &format!(
            "{} of {} available",
            size(&sample.host.mem_available),
            size(&sample.host.mem_total)
        ),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{SourceState, SourceStatus};
    use crate::ui::testing::{cards, healthy};

    fn sample(gpus: Vec<GpuSample>) -> Sample {
        Sample {
            gpus,
            host: healthy().host,
            ..Sample::default()
        }
    }

    fn source(name: &str, state: SourceState, why: &str) -> SourceStatus {
        SourceStatus {
            name: name.to_owned(),
            state,
            age_ms: 12_000,
            why: Some(why.to_owned()),
        }
    }

    #[test]
    fn the_cards_of_a_machine() {
        let mut s = sample(vec![cards::disagreeing(), cards::apu()]);
        s.gpus[0].temp_edge = Metric::Failed {
            why: "temp1_input: Input/output error".to_owned(),
            for_ms: 12_000,
        };
        s.gpus[0].sclk_mhz = Metric::Stale {
            value: 2410.0,
            age_ms: 4_000,
        };
        s.sources.push(source(
            "rocm-smi",
            SourceState::Failing,
            "rsmi_init said 8: another process died while it held the lock /dev/shm/rocm_smi_card0",
        ));
        let text = cards_text(&s, true);
        assert!(text.is_ascii());
        insta::assert_snapshot!(text);
    }

    #[test]
    fn no_card_says_why_and_an_unread_one_too() {
        let mut s = sample(Vec::new());
        s.sources = vec![
            source(
                "sysfs",
                SourceState::Absent,
                "/sys/class/drm has no card of AMD",
            ),
            source(
                "nvml",
                SourceState::Absent,
                "libnvidia-ml.so.1 is not there",
            ),
            source("host", SourceState::Ok, ""),
        ];
        let text = cards_text(&s, false);
        assert!(
            text.starts_with("no GPU can be read on this machine\n"),
            "{text}"
        );
        assert!(
            text.contains("  sysfs     absent: /sys/class/drm has no"),
            "{text}"
        );

        let failed = || Metric::Failed {
            why: "not read yet".to_owned(),
            for_ms: 3_000,
        };
        let mut unread = cards::complete();
        (unread.busy, unread.power_w, unread.temp_edge) = (failed(), failed(), failed());
        unread.vram_used = Metric::Failed {
            why: "not read yet".to_owned(),
            for_ms: 3_000,
        };
        let text = cards_text(&sample(vec![unread]), false);
        assert!(
            text.contains("readings  failed (for 3 s: not read yet)"),
            "{text}"
        );
        assert!(!text.contains("busy"), "{text}");
    }

    #[test]
    fn a_card_that_sleeps_has_not_failed() {
        let text = cards_text(&sample(vec![cards::asleep()]), false);
        assert!(
            text.contains("  state     asleep, not read (reading would wake it)\n"),
            "{text}"
        );
        assert!(!text.contains("failed") && !text.contains("busy"), "{text}");
    }

    #[test]
    fn whatever_a_card_says_no_line_is_too_long() {
        for seed in 0..300 {
            let mut dice = crate::ui::testing::Dice(seed);
            let s = dice.snapshot();
            let sample = Sample {
                gpus: s.gpus,
                process: None,
                host: s.host,
                sources: s.sources,
            };
            let text = cards_text(&sample, true);
            assert!(text.is_ascii(), "{text}");
            for line in text.lines() {
                assert!(line.len() <= COLUMNS, "{line}");
            }
        }
    }
}
