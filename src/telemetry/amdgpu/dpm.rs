//! Tables of clocks (`pp_dpm_sclk`, `pp_dpm_mclk`): a level and a frequency a line, the
//! level in force marked with a star. RDNA4 has a level `S`, deep sleep; blanks at the
//! ends of lines vary with chip and kernel.

/// One level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Level {
    /// MHz.
    pub(crate) mhz: u32,
    /// Whether it is the one in force.
    pub(crate) marked: bool,
}

/// Reads a table; lines that are none of its rows are passed over.
pub(crate) fn parse(text: &str) -> Vec<Level> {
    text.lines().filter_map(level).collect()
}

/// The clock in force, MHz. A table without a mark tells none: the clock lies between
/// two levels, or is off.
pub(crate) fn in_force(text: &str) -> Option<u32> {
    parse(text).into_iter().find(|l| l.marked).map(|l| l.mhz)
}

fn level(line: &str) -> Option<Level> {
    let (name, rest) = line.trim().split_once(':')?;
    if name != "S" {
        name.parse::<u32>().ok()?;
    }
    let mut words = rest.split_whitespace();
    let clock = words.next()?.to_ascii_lowercase();
    let mhz = clock.strip_suffix("mhz")?.parse().ok()?;
    let marked = match words.next() {
        None => false,
        Some("*") => true,
        Some(_) => return None,
    };
    Some(Level { mhz, marked })
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_marked_level_counts_deep_sleep_included() {
        assert_eq!(in_force("0: 96Mhz \n1: 456Mhz * \n2: 772Mhz \n"), Some(456));
        assert_eq!(in_force("S: 19Mhz *\n0: 615Mhz\n1: 800Mhz\n"), Some(19));
        assert_eq!(in_force("S: 500Mhz\n1: 789Mhz *\n2: 2070Mhz\n"), Some(789));
        assert_eq!(in_force("0: 400Mhz \n1: 800Mhz \n"), None);
        assert_eq!(in_force("0: 0Mhz *\n"), Some(0));
        for bad in [
            "",
            "\n",
            "x: 5Mhz *",
            "0: Mhz *",
            "0: 5 *",
            "0: -5Mhz *",
            "0: 5Mhz ?",
        ] {
            assert_eq!(parse(bad), [], "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "(.*\n){0,6}") {
            let levels = parse(&text);
            prop_assert!(levels.len() <= text.lines().count());
        }

        #[test]
        fn a_written_table_is_read_back(
            clocks in proptest::collection::vec(0u32..10_000, 1..12),
            sleep: bool,
            marked in proptest::option::of(0usize..12),
            blanks in " {0,3}",
        ) {
            let levels: Vec<_> = clocks.iter().enumerate().map(|(n, mhz)| Level {
                mhz: *mhz,
                marked: marked == Some(n),
            }).collect();
            let mut text = String::new();
            for (n, level) in levels.iter().enumerate() {
                let name = if sleep && n == 0 { "S".to_owned() } else { n.to_string() };
                let mark = if level.marked { " *" } else { "" };
                let mhz = level.mhz;
                writeln!(text, "{name}: {mhz}Mhz{mark}{blanks}").unwrap();
            }
            prop_assert_eq!(parse(&text), levels.clone());
            let wanted = levels.iter().find(|l| l.marked).map(|l| l.mhz);
            prop_assert_eq!(in_force(&text), wanted);
        }
    }
}
