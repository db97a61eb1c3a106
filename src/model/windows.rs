//! Exit codes of Windows: a program that crashes there has its exception as exit code.
//!
//! The numbers are Microsoft's `NTSTATUS` values, read as signed 32 bits.

/// The user pressed Ctrl-C or closed the window.
pub const INTERRUPTED: i32 = -1_073_741_510;

/// What an exception means that ended a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The program crashed in native code.
    Crash(&'static str),
    /// A library could not be loaded at the start.
    Library(&'static str),
    /// Windows had no memory to give.
    Memory(&'static str),
}

/// Whether an exit code is an exception of Windows.
pub const fn is_failure(code: i32) -> bool {
    // severity "error" and no other bit of the first eight; and the C++ runtime's exception
    (code >> 24) == -64 || code == CPP_EXCEPTION
}

const CPP_EXCEPTION: i32 = -529_697_949;

/// What an exit code means; none: it is no exception of Windows.
pub const fn failure(code: i32) -> Option<Failure> {
    if !is_failure(code) {
        return None;
    }
    Some(match code {
        -1_073_741_819 => Failure::Crash("access violation"),
        -1_073_741_818 => Failure::Crash("a file that is mapped into memory could not be read"),
        -1_073_741_795 => Failure::Crash("an instruction that this processor does not know"),
        -1_073_741_571 => Failure::Crash("stack overflow"),
        -1_073_740_940 => Failure::Crash("damaged heap"),
        -1_073_740_791 => Failure::Crash("the program or a library stopped itself"),
        -1_073_741_515 => Failure::Library("a DLL was not found"),
        -1_073_741_511 => Failure::Library("a DLL lacks a function"),
        -1_073_741_512 => Failure::Library("a DLL lacks a function of that number"),
        -1_073_741_502 => Failure::Library("a DLL could not start"),
        -1_073_741_701 => Failure::Library("a DLL is damaged or for 32 bits"),
        -1_073_741_801 | -1_073_741_670 | -1_073_741_523 => Failure::Memory("no memory is left"),
        CPP_EXCEPTION => Failure::Crash("an exception of C++ that nothing caught"),
        _ => Failure::Crash("an exception in native code"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_sorted_by_what_they_mean() {
        let of = |bits: u32| failure(i32::from_ne_bytes(bits.to_ne_bytes()));
        assert_eq!(of(0xC000_0005), Some(Failure::Crash("access violation")));
        assert!(matches!(of(0xC000_0135), Some(Failure::Library(_))));
        assert!(matches!(of(0xC000_0139), Some(Failure::Library(_))));
        assert!(matches!(of(0xC000_0142), Some(Failure::Library(_))));
        assert!(matches!(of(0xC000_007B), Some(Failure::Library(_))));
        assert!(matches!(of(0xC000_0017), Some(Failure::Memory(_))));
        assert!(matches!(of(0xC000_012D), Some(Failure::Memory(_))));
        assert!(matches!(of(0xE06D_7363), Some(Failure::Crash(_))));
        for code in [0, 1, -1, 137, 255, -9] {
            assert_eq!(failure(code), None, "{code}");
        }
        assert_eq!(
            INTERRUPTED,
            i32::from_ne_bytes(0xC000_013A_u32.to_ne_bytes())
        );
    }
}
