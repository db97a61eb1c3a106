//! The line of `/proc/PID/task/TID/syscall`.

use super::super::file;

/// Where a thread is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// On a CPU, or ready for one.
    Running,
    /// Blocked, but in no system call: a page fault, a stop.
    Outside,
    /// In a system call.
    Call {
        /// Its number.
        number: u64,
        /// Its arguments, as far as it has any.
        args: [u64; 6],
    },
}

/// Reads `running`, `-1 SP PC` or `NUMBER ARG0 … ARG5 SP PC`.
pub(super) fn parse(text: &str) -> Result<Place, String> {
    place(text).ok_or_else(|| format!("syscall: `{}` has another form", file::short(text)))
}

fn place(text: &str) -> Option<Place> {
    let mut words = text.split_ascii_whitespace();
    let number = match words.next()? {
        "running" => return Some(Place::Running),
        "-1" => return Some(Place::Outside),
        number => number.parse().ok()?,
    };
    let mut args = [0; 6];
    for arg in &mut args {
        let digits = words.next()?.strip_prefix("0x")?;
        *arg = u64::from_str_radix(digits, 16).ok()?;
    }
    Some(Place::Call { number, args })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn all_three_forms_are_read() {
        assert_eq!(parse("running\n"), Ok(Place::Running));
        assert_eq!(parse("-1 0x7ffe 0x7f00\n"), Ok(Place::Outside));
        let futex = "202 0x7f01 0x89 0x0 0x7ffc 0x0 0xffffffff 0x7ffe 0x7fb0\n";
        let args = [0x7f01, 0x89, 0, 0x7ffc, 0, 0xffff_ffff];
        assert_eq!(parse(futex), Ok(Place::Call { number: 202, args }));
        for other in ["", "0", "202 7f01", "x 0x0", "202 0x0 0x0 0x0 0x0 0x0"] {
            let error = parse(other).unwrap_err();
            assert!(error.contains("another form"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in ".{0,200}") {
            let _ = parse(&text);
        }

        #[test]
        fn any_call_is_read_back(number: u64, args: [u64; 6]) {
            let words: Vec<String> = args.iter().map(|a| format!("{a:#x}")).collect();
            let text = format!("{number} {} 0x1 0x2\n", words.join(" "));
            prop_assert_eq!(parse(&text), Ok(Place::Call { number, args }));
        }
    }
}
