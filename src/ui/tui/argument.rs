//! What a command of the palette is told besides its name. Pure.

use jiff::civil::DateTime;

use crate::model::{Follow, Mono, Setting};
use crate::run::Snapshot;
use crate::run::snapshot::RungState;

use super::chart::RANGES;

/// What may, or has to, follow the name of a command.
#[derive(Debug, Clone, Copy)]
pub(super) struct Argument {
    /// What it is called: `TIME`.
    pub(super) name: &'static str,
    /// What it looks like, after the name of the command.
    pub(super) example: &'static str,
    /// The command does nothing without it.
    pub(super) needed: bool,
    /// Reads it; the error says what to write.
    pub(super) parse: fn(&str, &Snapshot) -> Result<Value, String>,
}

/// An argument that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    /// Words as they were typed.
    Text(String),
    /// A moment of the run.
    Time(Mono),
    /// An index into [`RANGES`].
    Range(usize),
    /// A value of a setting, as the supervisor takes it; absent: as the profile says.
    Choice(Option<String>),
    /// An index into the ladder.
    Rung(usize),
}

/// A moment, by the clock on the wall or since the run began.
pub(super) const TIME: Argument = Argument {
    name: "TIME",
    example: "14:03, or since the begin 00:14:03",
    needed: true,
    parse: time,
};

/// Words to look for.
pub(super) const WORD: Argument = Argument {
    name: "[WORD]",
    example: "vram, or /^step [0-9]",
    needed: false,
    parse: words,
};

/// A file.
pub(super) const FILE: Argument = Argument {
    name: "[FILE]",
    example: "~/run.log; without one into the folder of the run",
    needed: false,
    parse: words,
};

/// How far the charts go back.
pub(super) const SPAN: Argument = Argument {
    name: "[SPAN]",
    example: "30s, 1m, 2m, 5m, 10m or all; without one automatic",
    needed: false,
    parse: range,
};

/// A rung of the ladder.
pub(super) const RUNG: Argument = Argument {
    name: "[RUNG]",
    example: "3, or fast_find; without one a list",
    needed: false,
    parse: rung,
};

fn rung(text: &str, s: &Snapshot) -> Result<Value, String> {
    let number = text.parse::<usize>().ok().filter(|n| *n < s.ladder.len());
    let named = || s.ladder.iter().position(|e| e.id.0 == text);
    let Some((at, entry)) = number
        .or_else(named)
        .and_then(|n| Some((n, s.ladder.get(n)?)))
    else {
        let ids: Vec<_> = s.ladder.iter().skip(1).map(|e| e.id.0.as_str()).collect();
        return Err(match ids.len() {
            0 => "this ladder has no rung to take".to_owned(),
            last => format!("write 1 to {last}, or one of {}", ids.join(", ")),
        });
    };
    match &entry.state {
        _ if at == 0 => Err("a run never goes back to where it began".to_owned()),
        RungState::Unavailable { why } => Err(format!("{} cannot be taken: {why}", entry.id)),
        _ => Ok(Value::Rung(at)),
    }
}

/// A value of a setting.
const fn choice(
    example: &'static str,
    parse: fn(&str, &Snapshot) -> Result<Value, String>,
) -> Argument {
    Argument {
        name: "VALUE",
        example,
        needed: true,
        parse,
    }
}

/// A VRAM cap.
pub(super) const CAP: Argument = choice("21G, or `profile`: as the profile says", |text, s| {
    setting(Setting::VramCap, text, s)
});
/// A find mode.
pub(super) const FIND: Argument = choice("FAST, HYBRID, NORMAL or `profile`", |text, s| {
    setting(Setting::FindMode, text, s)
});
/// A size of chunks.
pub(super) const CHUNK: Argument = choice("4 (latent frames), or `profile`", |text, s| {
    setting(Setting::ChunkSize, text, s)
});
/// A size of tiles.
pub(super) const TILE: Argument = choice("256 (pixels), or `profile`", |text, s| {
    setting(Setting::TileSize, text, s)
});
/// A precision.
pub(super) const PRECISION: Argument =
    choice("float32, float16, bfloat16 or `profile`", |text, s| {
        setting(Setting::Precision, text, s)
    });
/// Memory to keep free.
pub(super) const PRESERVED: Argument =
    choice("6G, or `profile`: as the profile says", |text, s| {
        setting(Setting::PreservedMemory, text, s)
    });

/// The word for what a profile says, in the place of a value.
const PROFILE: &str = "profile";

fn setting(which: Setting, text: &str, s: &Snapshot) -> Result<Value, String> {
    if text == PROFILE {
        return Ok(Value::Choice(None));
    }
    let view = s.settings.iter().find(|v| v.setting == which);
    if let Some(Follow::No { why }) = view.map(|v| &v.follow) {
        return Err(format!("this run cannot follow: {why}"));
    }
    which.parse(text).map(|value| Value::Choice(Some(value)))
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "the form of every parser of an argument"
)]
fn words(text: &str, _: &Snapshot) -> Result<Value, String> {
    Ok(Value::Text(text.to_owned()))
}

fn range(text: &str, _: &Snapshot) -> Result<Value, String> {
    let text = text.to_lowercase().replace(' ', "");
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let ms = match (number.parse::<u64>(), unit) {
        (Ok(n), "s") => n.checked_mul(1_000),
        (Ok(n), "m" | "min") => n.checked_mul(60_000),
        _ => None,
    };
    RANGES
        .iter()
        .position(|r| match r {
            Some((range, _)) => ms == Some(*range),
            None => text == "all",
        })
        .map(Value::Range)
        .ok_or_else(|| "write 30s, 1m, 2m, 5m, 10m or all".to_owned())
}

/// Seconds in a day.
const DAY: u64 = 86_400;

fn time(text: &str, s: &Snapshot) -> Result<Value, String> {
    let numbers: Option<Vec<u64>> = text
        .split(':')
        .map(|part| {
            let two = part.len() <= 3 && part.bytes().all(|b| b.is_ascii_digit());
            part.parse().ok().filter(|_| two)
        })
        .collect();
    let clock = match numbers.as_deref() {
        Some([h, m]) if *m < 60 => Some((h * 3600 + m * 60, 60)),
        Some([h, m, s]) if *m < 60 && *s < 60 => Some((h * 3600 + m * 60 + s, 1)),
        _ => None,
    };
    let Some((seconds, exact)) = clock else {
        return Err("write a time as 14:03, or since the begin as 00:14:03".to_owned());
    };
    let since = (exact == 1 && seconds <= s.now.0 / 1000).then(|| Mono::from_secs(seconds));
    let begin = s.wall_clock.parse::<DateTime>().ok();
    let at = since.or_else(|| on_the_wall(begin?, seconds, exact, s.now));
    at.map(Value::Time).ok_or_else(|| {
        let from = begin.map_or_else(String::new, |b| {
            format!("it began at {} and ", b.time().strftime("%H:%M:%S"))
        });
        format!("outside of this run: {from}is {} old", s.now.clock())
    })
}

/// The last time in the run at which a clock showed so many seconds of the day, read
/// to `exact` seconds. A clock that was set meanwhile is not known here.
fn on_the_wall(begin: DateTime, seconds: u64, exact: u64, now: Mono) -> Option<Mono> {
    let t = begin.time();
    let part = |n: i8| u64::from(n.unsigned_abs());
    let first = part(t.hour()) * 3600 + part(t.minute()) * 60 + part(t.second());
    if seconds >= DAY {
        return None;
    }
    let after = (seconds + DAY - first) % DAY;
    // the minute in which the run began counts from its begin
    let after = if DAY - after < exact { 0 } else { after };
    let now = now.0 / 1000;
    let whole_days = now.checked_sub(after)? / DAY * DAY;
    Some(Mono::from_secs(after + whole_days))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ui::testing;

    fn at(text: &str, s: &Snapshot) -> Result<u64, String> {
        time(text, s).map(|v| match v {
            Value::Time(t) => t.0 / 1000,
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn a_time_is_on_the_wall_or_since_the_begin() {
        let mut s = testing::healthy();
        for (text, seconds) in [
            ("00:14:03", 843),
            ("0:00:00", 0),
            ("14:03", 158),
            ("14:03:20", 178),
            // the run began at 14:00:22
            ("14:00", 0),
        ] {
            assert_eq!(at(text, &s), Ok(seconds), "{text}");
        }
        for (text, says) in [
            ("14:30", "it began at 14:00:22 and is 00:14:32 old"),
            ("13:59", "outside of this run"),
            ("00:15:00", "outside of this run"),
            ("25:00", "outside of this run"),
            ("noon", "write a time as 14:03"),
            ("14:60", "write a time as 14:03"),
            ("14", "write a time as 14:03"),
            ("99999999999999999999:00", "write a time as 14:03"),
        ] {
            let said = at(text, &s).unwrap_err();
            assert!(said.contains(says), "{text}: {said}");
        }
        s.now = Mono::from_secs(2 * DAY + 60);
        assert_eq!(at("14:01", &s), Ok(2 * DAY + 38), "the last such time");
        assert_eq!(at("14:05", &s), Ok(DAY + 278), "today it is not yet 14:05");
        s.wall_clock = "?".to_owned();
        assert!(at("14:01", &s).is_err());
    }

    #[test]
    fn a_span_is_one_of_those_that_charts_have() {
        let s = testing::healthy();
        for (at, text) in ["30s", "1m", "2 min", "5M", "600s", "all"]
            .into_iter()
            .enumerate()
        {
            assert_eq!(range(text, &s), Ok(Value::Range(at)), "{text}");
        }
        for text in [
            "",
            "7m",
            "m",
            "-1m",
            "99999999999999999999m",
            "18446744073709551615m",
        ] {
            assert!(range(text, &s).unwrap_err().contains("10m or all"));
        }
    }

    #[test]
    fn a_rung_has_a_number_and_a_name() {
        let mut s = testing::healthy();
        assert_eq!(rung("2", &s), Ok(Value::Rung(2)));
        assert_eq!(rung("tiled_vae", &s), Ok(Value::Rung(2)));
        for (text, says) in [
            ("0", "never goes back"),
            ("as_given", "never goes back"),
            ("3", "full_unload cannot be taken: needs the agent"),
            ("9", "write 1 to 4, or one of fast_find, tiled_vae"),
            ("", "write 1 to 4"),
        ] {
            let said = rung(text, &s).unwrap_err();
            assert!(said.contains(says), "{text}: {said}");
        }
        s.ladder.clear();
        assert_eq!(
            rung("1", &s),
            Err("this ladder has no rung to take".to_owned())
        );
    }

    #[test]
    fn a_value_is_read_as_its_setting_takes_it() {
        let mut s = testing::healthy();
        let read = |which, text: &str, s: &Snapshot| match setting(which, text, s) {
            Ok(Value::Choice(value)) => Ok(value.unwrap_or_else(|| "(profile)".to_owned())),
            Ok(other) => panic!("{other:?}"),
            Err(why) => Err(why),
        };
        for v in &mut s.settings {
            v.follow = Follow::Ours;
        }
        assert_eq!(read(Setting::VramCap, "21G", &s).as_deref(), Ok("21 GiB"));
        assert_eq!(read(Setting::FindMode, "fast", &s).as_deref(), Ok("FAST"));
        assert_eq!(read(Setting::TileSize, "256", &s).as_deref(), Ok("256"));
        assert_eq!(
            read(Setting::FindMode, "profile", &s).as_deref(),
            Ok("(profile)")
        );
        let why = read(Setting::FindMode, "quick", &s).unwrap_err();
        assert!(why.contains("is not one of NORMAL, FAST"), "{why}");
        for v in &mut s.settings {
            v.follow = Follow::No {
                why: "it has no tiling".to_owned(),
            };
        }
        let why = read(Setting::TileSize, "256", &s).unwrap_err();
        assert_eq!(why, "this run cannot follow: it has no tiling");
    }

    proptest! {
        #[test]
        fn no_text_breaks_a_parser(text in "[0-9: a-z]{0,20}|.{0,20}", now in any::<u64>()) {
            let mut s = testing::healthy();
            s.now = Mono(now);
            if let Ok(Value::Time(t)) = time(&text, &s) {
                prop_assert!(t <= s.now, "{text}");
            }
            let _ = (range(&text, &s), rung(&text, &s));
        }
    }
}
