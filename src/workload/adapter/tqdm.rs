//! Progress bars: tqdm's form anywhere in a piece, and a few plainer ones.
//!
//! `[desc: ]PCT%|bar| n/total [elapsed<remaining, rate]`, see tqdm's `format_meter`.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::workload::pattern;

/// One state of a bar.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// Description before the percentage.
    pub desc: Option<String>,
    /// Done so far; scaled counts (`1.2G`) are multiplied out by powers of 1000.
    pub done: f64,
    /// In all; absent where the bar does not know.
    pub total: Option<f64>,
    /// Seconds a step; absent while the bar says `?`.
    pub seconds_per_step: Option<f64>,
    /// Unit of the rate: `it`, `B`, `%`, `frame`; empty where there is none.
    pub unit: String,
    /// The counts themselves carry a unit of bytes: `1.2GB/9.8GB`.
    pub bytes: bool,
    /// Seconds on the bar's own clock, where it has one.
    pub elapsed: Option<f64>,
}

impl Bar {
    /// Whether the bar has reached its end.
    pub fn complete(&self) -> bool {
        self.total.is_some_and(|t| t > 0.0 && self.done >= t)
    }

    /// Whether bytes are counted.
    pub fn counts_bytes(&self) -> bool {
        let rate = self.unit.trim_end_matches("ytes");
        self.bytes || matches!(rate, "B" | "iB" | "b" | "bit" | "bits" | "byte")
    }

    /// Whether a bar without a name may count the steps of a generation: its unit names
    /// neither bytes nor things such as files or rows.
    pub fn counts_steps(&self) -> bool {
        let unit = self.unit.as_str();
        !self.bytes
            && matches!(
                unit,
                "" | "it"
                    | "its"
                    | "iter"
                    | "iteration"
                    | "step"
                    | "steps"
                    | "tile"
                    | "section"
                    | "clip"
            )
    }
}

static METER: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?x)
        (?: (?P<desc>[^|]*?) :\s* )?
        \b\d{1,3}% \| [^|]* \| \s*
        (?P<done>\d+(?:\.\d+)?)(?P<dscale>[kKMGTP]?) (?P<count>[A-Za-z]{0,2})
        / (?P<total>\d+(?:\.\d+)?|\?)(?P<tscale>[kKMGTP]?) (?P<counts>[A-Za-z]{0,2}) \s*
        \[ (?P<clock>[\d:?.\ daysh]+) < [\d:?.\ daysh]+
        (?: ,\s* (?P<rate>[^,\]]*) (?P<post>,[^\]]*)? )? \]",
    )
});

/// A bar without a total: `12it [00:03,  3.51it/s]`.
static COUNTER: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^(?:(?P<desc>[^|\[]*?):\s*)?\s*(?P<done>\d+(?:\.\d+)?)(?P<dscale>[kKMGTP]?)(?:it|B)\s*\[(?P<clock>[\d:]+),\s*(?P<rate>[^,\]]*)(?:,[^\]]*)?\]",
    )
});

/// A bar drawn with `=` or `#`: `|=====>    | 5/20 - 1.23s/it`, `|####  | 5/20 - 1.31GB/s`.
static DRAWN: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?:^|\s)[|\[][=>\#\-. \u{2588}]+[|\]]\s*(?P<done>\d+)\s*/\s*(?P<total>\d+)(?:\s*-\s*(?P<rate>[\d.]+\s*(?:s/it|it/s|[kKMGT]?B/s)))?",
    )
});

static RATE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^\s*(?:(?P<n>\d+(?:\.\d+)?)(?P<scale>[kKMGTP]?)(?P<unit>[^/\s\d]*)/s|(?P<s>\d+(?:\.\d+)?)s/(?P<per>\S+)|\?\s*(?P<unknown>[^/\s]*)/s)\s*$",
    )
});

static STEP: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\b(?P<desc>(?:sampling|denois\w*|diffusion|inference)(?:\s+step)?|steps?)\s*[:#]?\s*\[?(?P<done>\d+)\s*(?:/|of)\s*(?P<total>\d+)\b",
    )
});

/// Weights are read a tensor or a part at a time: `Loading dit.safetensors: 12/69`,
/// `umt5_xxl.gguf: 12/400 tensors`.
static PARTS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)^\s*(?P<desc>\S.{0,160}\.(?:safetensors|gguf|ckpt|pth?|sft|bin|onnx))\W{1,4}(?P<done>\d+)\s*/\s*(?P<total>\d+)\b\W*(?P<rate>(?:tensors?|keys?|layers?|blocks?|parts?|shards?|chunks?|params?)?)\W*$",
    )
});

fn number(digits: &str, scale: &str) -> Option<f64> {
    let factor = match scale {
        "k" | "K" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "P" => 1e15,
        _ => 1.0,
    };
    digits
        .parse::<f64>()
        .ok()
        .map(|n| n * factor)
        .filter(|n| n.is_finite())
}

fn group<'t>(c: &Captures<'t>, name: &str) -> &'t str {
    c.name(name).map_or("", |m| m.as_str())
}

/// Seconds a step and unit out of `15.45s/it`, `1.02it/s`, `1.2MB/s`, `?it/s`.
fn rate(text: &str) -> (Option<f64>, String) {
    let Some(c) = RATE.captures(text) else {
        return (None, String::new());
    };
    if let Some(s) = c.name("s") {
        return (number(s.as_str(), ""), group(&c, "per").to_owned());
    }
    if c.name("n").is_none() {
        return (None, group(&c, "unknown").to_owned());
    }
    let per_second = number(group(&c, "n"), group(&c, "scale")).filter(|n| *n > 0.0);
    (per_second.map(|n| 1.0 / n), group(&c, "unit").to_owned())
}

/// Seconds of `01:06:26`, `00:03` or `2.5`; days in words are not read.
fn clock(text: &str) -> Option<f64> {
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    text.split(':').try_fold(0.0, |sum, part| {
        let part: f64 = part.parse().ok()?;
        Some(sum * 60.0 + part)
    })
}

fn bar(c: &Captures<'_>) -> Option<Bar> {
    let (seconds_per_step, unit) = rate(group(c, "rate"));
    let desc = group(c, "desc").trim().trim_end_matches(':').trim();
    let bytes = |name| matches!(group(c, name), "B" | "iB");
    Some(Bar {
        bytes: bytes("count") || bytes("counts"),
        elapsed: clock(group(c, "clock")),
        desc: (!desc.is_empty()).then(|| desc.to_owned()),
        done: number(group(c, "done"), group(c, "dscale"))?,
        total: number(group(c, "total"), group(c, "tscale")),
        seconds_per_step,
        unit,
    })
}

/// The last state of a bar in a piece of text.
pub fn parse(text: &str) -> Option<Bar> {
    // The patterns are costly against the fragments that each of them needs.
    if text.contains("%|") {
        return METER.captures_iter(text).last().as_ref().and_then(bar);
    }
    if text.contains(']') && text.contains("/s") {
        return COUNTER.captures(text).as_ref().and_then(bar);
    }
    let rate = ["s/it", "it/s", "B/s"];
    if text.contains('/') && rate.iter().any(|r| text.contains(r)) {
        return DRAWN.captures(text).as_ref().and_then(bar);
    }
    None
}

/// `Step 5/20`, `Sampling 12/25`, `denoising step 3 of 8` in a line of text, or the parts of
/// a file of weights: `Loading dit.safetensors: 12/69`.
pub fn parse_step(text: &str) -> Option<Bar> {
    let step = || STEP.captures(text);
    PARTS
        .captures(text)
        .or_else(step)
        .as_ref()
        .and_then(bar)
        .filter(|b| b.total.is_some_and(|t| b.done <= t))
}

/// Where a tqdm bar ends in `text`, if there is one.
pub fn end_of_bar(text: &str) -> Option<usize> {
    if !text.contains("%|") {
        return None;
    }
    METER.find(text).map(|m| m.end())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn forms_of_bars() {
        let b = parse("  0%|          | 0/25 [00:00<?, ?it/s]").unwrap();
        assert_eq!(
            (b.done, b.total, b.seconds_per_step),
            (0.0, Some(25.0), None)
        );
        let b = parse(" 38%|███▊      | 3/8 [00:03<00:05,  1.02s/it]").unwrap();
        assert_eq!((b.done, b.seconds_per_step), (3.0, Some(1.02)));
        assert!(!b.complete() && b.desc.is_none());
        let b = parse("100%|##########| 25/25 [1:06:26<00:00, 0.25it/s]").unwrap();
        assert!(b.complete());
        assert_eq!(b.seconds_per_step, Some(4.0));
        let b = parse("x: 40%|4 | 20.0/50.0 [00:01<00:02, 2it/s, loss=0.1]").unwrap();
        assert_eq!(
            (b.done, b.total, b.desc.as_deref()),
            (20.0, Some(50.0), Some("x"))
        );
        let b = parse("Diffusion Sampling::  10%|█  | 5/50 [00:01<00:02, 2it/s]").unwrap();
        assert_eq!(b.desc.as_deref(), Some("Diffusion Sampling"));
        let b = parse("noise  5%|5 | 1/20 [00:01<?, ?it/s]").unwrap();
        assert_eq!((b.desc, b.done), (None, 1.0));
    }

    #[test]
    fn byte_bars_and_other_units() {
        let b = parse("model.safetensors:  12%|█▏   | 1.2G/9.8G [00:10<01:20, 105MB/s]").unwrap();
        assert_eq!(b.desc.as_deref(), Some("model.safetensors"));
        assert_eq!((b.done, b.total), (1.2e9, Some(9.8e9)));
        assert!(b.counts_bytes());
        let b = parse("model-1.safetensors:   8%|# | 8/100 [00:07<01:22, 1.11%/s]").unwrap();
        assert_eq!(b.unit, "%");
        let b = parse("t:  33%|███ | 40/121 [00:02<00:04, 19.1it/s, now=None]").unwrap();
        assert_eq!((b.done, b.total), (40.0, Some(121.0)));
    }

    #[test]
    fn bars_of_other_makers() {
        let b = parse("12it [00:03,  3.51it/s]").unwrap();
        assert_eq!((b.done, b.total), (12.0, None));
        let b = parse("  |=====>              | 5/20 - 1.23s/it").unwrap();
        assert_eq!(
            (b.done, b.total, b.seconds_per_step),
            (5.0, Some(20.0), Some(1.23))
        );
        let b = parse_step("Sampling 12/25").unwrap();
        assert_eq!((b.done, b.total), (12.0, Some(25.0)));
        let b = parse_step("Denoising step 3 of 8").unwrap();
        assert_eq!((b.done, b.total), (3.0, Some(8.0)));
        assert_eq!(parse_step("steps=20, 1/2 done"), None);
    }

    #[test]
    fn text_that_is_no_bar() {
        for t in [
            "",
            "100%",
            "50%|",
            "GPU 20%| 3",
            "[1/3] compiling",
            "a/b it/s",
        ] {
            assert_eq!(parse(t), None, "{t}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in ".{0,200}") {
            let _ = parse(&text);
            let _ = parse_step(&text);
            if let Some(e) = end_of_bar(&text) {
                prop_assert!(text.is_char_boundary(e));
            }
        }

        #[test]
        fn counts_come_back(done in 0u32..500, more in 0u32..500, rate in 1u32..9000) {
            let total = done + more;
            let rate = f64::from(rate) / 100.0;
            let text = format!(" 7%|##  | {done}/{total} [00:07<01:02, {rate:.2}s/it]");
            let b = parse(&text).unwrap();
            prop_assert_eq!((b.done, b.total), (f64::from(done), Some(f64::from(total))));
            prop_assert!((b.seconds_per_step.unwrap() - rate).abs() < 1e-9);
        }
    }
}
