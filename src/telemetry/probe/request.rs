//! What a system call asks for by its arguments: descriptors, a process, a time limit.

use super::memory::Memory;

/// Descriptors of one call that are looked at.
pub(super) const MOST_DESCRIPTORS: usize = 64;

/// What a call waits for, as its arguments say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Subject {
    /// Its arguments name nothing.
    Nothing,
    /// Any of these descriptors.
    Descriptors(Vec<u32>),
    /// The descriptors that this epoll watches.
    Epoll(u32),
    /// A lock on the file behind this descriptor.
    Lock(u32),
    /// A child process; none: any.
    Child(Option<u32>),
}

/// A call's arguments, decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    /// What it waits for.
    pub(super) subject: Subject,
    /// Its time limit; of one that ends at a set moment, the time left.
    pub(super) timeout_ms: Option<u64>,
}

/// The clocks at the time of the look, nanoseconds: time limits may be moments.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Clocks {
    /// `CLOCK_MONOTONIC`.
    pub(super) monotonic: u64,
    /// `CLOCK_REALTIME`.
    pub(super) realtime: u64,
}

impl Clocks {
    /// The clocks now.
    pub(super) fn now() -> Self {
        use rustix::time::{ClockId, clock_gettime};
        let read = |clock| {
            let time = clock_gettime(clock);
            let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
            let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
            seconds.saturating_mul(NANOS).saturating_add(nanos)
        };
        Self {
            monotonic: read(ClockId::Monotonic),
            realtime: read(ClockId::Realtime),
        }
    }

    fn of(self, clock: u32) -> Option<u64> {
        match clock {
            // CLOCK_REALTIME, CLOCK_TAI apart: nobody sleeps by it
            0 => Some(self.realtime),
            1 => Some(self.monotonic),
            _ => None,
        }
    }
}

const NANOS: u64 = 1_000_000_000;
const MILLI: u64 = 1_000_000;

/// Decodes the arguments of the call with this name.
pub(super) fn decode(call: &str, args: &[u64; 6], memory: &dyn Memory, clocks: Clocks) -> Request {
    let limits = Limits { memory, clocks };
    Request {
        subject: subject(call, args, memory),
        timeout_ms: limits.of(call, args),
    }
}

fn subject(call: &str, args: &[u64; 6], memory: &dyn Memory) -> Subject {
    const F_SETLKW: u32 = 7;
    const F_OFD_SETLKW: u32 = 38;
    let first = descriptor(args[0]);
    match call {
        "poll" | "ppoll" => Subject::Descriptors(polled(args, memory)),
        "select" | "pselect6" => Subject::Descriptors(selected(args, memory)),
        "epoll_wait" | "epoll_pwait" | "epoll_pwait2" => {
            first.map_or(Subject::Nothing, Subject::Epoll)
        }
        "flock" => first.map_or(Subject::Nothing, Subject::Lock),
        "fcntl" if matches!(low(args[1]), F_SETLKW | F_OFD_SETLKW) => {
            first.map_or(Subject::Nothing, Subject::Lock)
        }
        "wait4" => Subject::Child(u32::try_from(int(args[0])).ok().filter(|pid| *pid > 0)),
        "waitid" => waited(args),
        "splice" | "tee" | "copy_file_range" | "sendfile" => {
            let second = if call == "splice" || call == "copy_file_range" {
                args[2]
            } else {
                args[1]
            };
            Subject::Descriptors(first.into_iter().chain(descriptor(second)).collect())
        }
        "read" | "write" | "readv" | "writev" | "pread64" | "pwrite64" | "preadv" | "pwritev"
        | "preadv2" | "pwritev2" | "recvfrom" | "recvmsg" | "recvmmsg" | "sendto" | "sendmsg"
        | "sendmmsg" | "connect" | "accept" | "accept4" | "shutdown" | "close" | "fsync"
        | "fdatasync" | "syncfs" | "sync_file_range" | "fallocate" | "ftruncate" | "getdents"
        | "getdents64" | "lseek" | "fstat" | "ioctl" | "fcntl" | "vmsplice" | "io_uring_enter"
        | "mq_timedsend" | "mq_timedreceive" => Subject::Descriptors(first.into_iter().collect()),
        _ => Subject::Nothing,
    }
}

/// The descriptors of a `pollfd` list which are waited for.
fn polled(args: &[u64; 6], memory: &dyn Memory) -> Vec<u32> {
    const SIZE: usize = 8;
    let count = usize::try_from(args[1]).unwrap_or(usize::MAX);
    let mut bytes = vec![0; count.min(MOST_DESCRIPTORS) * SIZE];
    if memory.read(args[0], &mut bytes).is_none() {
        return Vec::new();
    }
    let list = bytes.as_chunks::<SIZE>().0.iter();
    list.filter_map(|&[a, b, c, d, ..]| u32::try_from(i32::from_ne_bytes([a, b, c, d])).ok())
        .collect()
}

/// The descriptors of the three sets of `select`.
fn selected(args: &[u64; 6], memory: &dyn Memory) -> Vec<u32> {
    const MOST_BITS: u64 = 1024;
    let bits = u64::from(low(args[0])).min(MOST_BITS);
    // the kernel reads whole words
    let length = usize::try_from(bits.div_ceil(64) * 8).unwrap_or(0);
    let mut any = vec![0_u8; length];
    for set in &args[1..4] {
        let mut bytes = vec![0; length];
        if memory.read(*set, &mut bytes).is_some() {
            any.iter_mut().zip(bytes).for_each(|(a, b)| *a |= b);
        }
    }
    let is_set = |n: &u32| {
        let byte = usize::try_from(n / 8).ok().and_then(|at| any.get(at));
        byte.is_some_and(|byte| byte >> (n % 8) & 1 == 1)
    };
    let all = 0..u32::try_from(bits).unwrap_or(0);
    all.filter(is_set).take(MOST_DESCRIPTORS).collect()
}

fn waited(args: &[u64; 6]) -> Subject {
    const P_PID: u32 = 1;
    const P_PIDFD: u32 = 3;
    match low(args[0]) {
        P_PID => Subject::Child(Some(low(args[1]))),
        P_PIDFD => Subject::Descriptors(vec![low(args[1])]),
        _ => Subject::Child(None),
    }
}

/// Reads time limits.
struct Limits<'a> {
    memory: &'a dyn Memory,
    clocks: Clocks,
}

impl Limits<'_> {
    fn of(&self, call: &str, args: &[u64; 6]) -> Option<u64> {
        const ABSOLUTE: u64 = 1;
        match call {
            "poll" => u64::try_from(int(args[2])).ok(),
            "epoll_wait" | "epoll_pwait" => u64::try_from(int(args[3])).ok(),
            "ppoll" | "rt_sigtimedwait" => self.span(args[2]),
            "epoll_pwait2" | "semtimedop" => self.span(args[3]),
            "pselect6" | "io_getevents" | "io_pgetevents" | "recvmmsg" => self.span(args[4]),
            "select" => self.timeval(args[4]),
            "nanosleep" => self.span(args[0]),
            "clock_nanosleep" if args[1] & ABSOLUTE == 0 => self.span(args[2]),
            "clock_nanosleep" => self.left(args[2], low(args[0])),
            "mq_timedsend" | "mq_timedreceive" => self.left(args[4], 0),
            "futex" => self.futex(args),
            "futex_waitv" => self.left(args[3], low(args[4])),
            "futex_wait" => self.left(args[4], low(args[5])),
            _ => None,
        }
    }

    /// `FUTEX_WAIT` takes a span, the others a moment.
    fn futex(&self, args: &[u64; 6]) -> Option<u64> {
        const CLOCK_REALTIME: u32 = 256;
        let operation = low(args[1]);
        let clock = u32::from(operation & CLOCK_REALTIME == 0);
        match operation & 127 {
            0 => self.span(args[3]),
            // WAIT_BITSET, WAIT_REQUEUE_PI, LOCK_PI2
            9 | 11 | 13 => self.left(args[3], clock),
            // LOCK_PI
            6 => self.left(args[3], 0),
            _ => None,
        }
    }

    /// A `timespec` as milliseconds; its parts are 64 bits wide on both machines.
    fn span(&self, address: u64) -> Option<u64> {
        self.pair(address, 1).map(|nanos| nanos / MILLI)
    }

    fn timeval(&self, address: u64) -> Option<u64> {
        self.pair(address, 1000).map(|nanos| nanos / MILLI)
    }

    /// Milliseconds until a moment of this clock.
    fn left(&self, address: u64, clock: u32) -> Option<u64> {
        let now = self.clocks.of(clock)?;
        let until = self.pair(address, 1)?;
        Some(until.saturating_sub(now) / MILLI)
    }

    /// Seconds and parts of `unit` nanoseconds, as nanoseconds.
    fn pair(&self, address: u64, unit: u64) -> Option<u64> {
        let mut bytes = [0; 16];
        self.memory.read(address, &mut bytes)?;
        let half = |n: usize| {
            let part = <[u8; 8]>::try_from(&bytes[n..n + 8]).ok()?;
            u64::try_from(i64::from_ne_bytes(part)).ok()
        };
        let parts = half(8)?.saturating_mul(unit);
        Some(half(0)?.saturating_mul(NANOS).saturating_add(parts))
    }
}

/// The low half of a register, which is all that an `int` argument is.
pub(super) const fn low(register: u64) -> u32 {
    (register & 0xffff_ffff) as u32
}

const fn int(register: u64) -> i32 {
    low(register).cast_signed()
}

/// A descriptor; none where it is negative.
fn descriptor(register: u64) -> Option<u32> {
    u32::try_from(int(register)).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NONE: (u64, &[u8]) = (0, &[]);
    const NOW: Clocks = Clocks {
        monotonic: 50 * NANOS,
        realtime: 9_000 * NANOS,
    };

    fn timespec(seconds: i64, parts: i64) -> Vec<u8> {
        [seconds.to_ne_bytes(), parts.to_ne_bytes()].concat()
    }

    fn limit(call: &str, args: [u64; 6], bytes: &[u8]) -> Option<u64> {
        decode(call, &args, &(0x1000, bytes), NOW).timeout_ms
    }

    #[test]
    fn limits_are_read_from_arguments_or_memory_and_a_missing_one_is_none() {
        let minus_one = 0xffff_ffff;
        assert_eq!(limit("poll", [0, 0, 250, 0, 0, 0], &[]), Some(250));
        assert_eq!(limit("poll", [0, 0, minus_one, 0, 0, 0], &[]), None);
        assert_eq!(limit("epoll_wait", [4, 0, 8, 0, 0, 0], &[]), Some(0));
        assert_eq!(limit("epoll_wait", [4, 0, 8, minus_one, 0, 0], &[]), None);
        let five = timespec(5, 1_000_000);
        assert_eq!(
            limit("nanosleep", [0x1000, 0, 0, 0, 0, 0], &five),
            Some(5001)
        );
        assert_eq!(limit("ppoll", [0, 0, 0x1000, 0, 0, 0], &five), Some(5001));
        let timeval = timespec(0, 20_000);
        assert_eq!(limit("select", [0, 0, 0, 0, 0x1000, 0], &timeval), Some(20));
        // futex: a span, moments of both clocks, no limit
        assert_eq!(limit("futex", [1, 128, 0, 0x1000, 0, 0], &five), Some(5001));
        let moment = timespec(53, 0);
        assert_eq!(
            limit("futex", [1, 137, 0, 0x1000, 0, 0], &moment),
            Some(3000)
        );
        let moment = timespec(9_002, 0);
        assert_eq!(
            limit("futex", [1, 393, 0, 0x1000, 0, 0], &moment),
            Some(2000)
        );
        assert_eq!(limit("futex", [1, 128, 0, 0, 0, 0], &five), None);
        // a moment that has passed has nothing left
        let past = timespec(49, 0);
        assert_eq!(
            limit("clock_nanosleep", [1, 1, 0x1000, 0, 0, 0], &past),
            Some(0)
        );
        assert_eq!(
            limit("clock_nanosleep", [1, 0, 0x1000, 0, 0, 0], &past),
            Some(49_000)
        );
        // memory that is not there
        assert_eq!(limit("nanosleep", [0x9000, 0, 0, 0, 0, 0], &five), None);
    }

    #[test]
    fn poll_and_select_name_their_descriptors() {
        let mut list = Vec::new();
        for (fd, events) in [(3_i32, 1_i16), (-1, 1), (7, 4)] {
            list.extend(fd.to_ne_bytes());
            list.extend(events.to_ne_bytes());
            list.extend([0, 0]);
        }
        let memory = (0x1000, list.as_slice());
        let asked =
            |call: &str, args, memory: &dyn Memory| decode(call, &args, memory, NOW).subject;
        let of_poll = asked("poll", [0x1000, 3, 0, 0, 0, 0], &memory);
        assert_eq!(of_poll, Subject::Descriptors(vec![3, 7]));
        // more than its memory holds: nothing can be said
        let of_poll = asked("ppoll", [0x1000, 9, 0, 0, 0, 0], &memory);
        assert_eq!(of_poll, Subject::Descriptors(Vec::new()));
        let sets = [(1_u64 << 5).to_ne_bytes(), (1_u64 << 9).to_ne_bytes()].concat();
        let memory = (0x1000, sets.as_slice());
        let of_select = asked("select", [10, 0x1000, 0, 0x1008, 0, 0], &memory);
        assert_eq!(of_select, Subject::Descriptors(vec![5, 9]));
    }

    #[test]
    fn the_other_calls_name_theirs() {
        let asked = |call: &str, args| decode(call, &args, &NONE, NOW).subject;
        assert_eq!(
            asked("recvfrom", [6, 0, 0, 0, 0, 0]),
            Subject::Descriptors(vec![6])
        );
        assert_eq!(asked("epoll_wait", [5, 0, 0, 0, 0, 0]), Subject::Epoll(5));
        assert_eq!(asked("flock", [3, 2, 0, 0, 0, 0]), Subject::Lock(3));
        assert_eq!(asked("fcntl", [3, 7, 0, 0, 0, 0]), Subject::Lock(3));
        assert_eq!(
            asked("fcntl", [3, 3, 0, 0, 0, 0]),
            Subject::Descriptors(vec![3])
        );
        assert_eq!(
            asked("wait4", [0xffff_ffff_ffff_ffff, 0, 0, 0, 0, 0]),
            Subject::Child(None)
        );
        assert_eq!(
            asked("wait4", [41, 0, 0, 0, 0, 0]),
            Subject::Child(Some(41))
        );
        assert_eq!(
            asked("waitid", [1, 41, 0, 0, 0, 0]),
            Subject::Child(Some(41))
        );
        assert_eq!(
            asked("waitid", [3, 9, 0, 0, 0, 0]),
            Subject::Descriptors(vec![9])
        );
        assert_eq!(asked("futex", [3, 0, 0, 0, 0, 0]), Subject::Nothing);
        assert_eq!(
            asked("splice", [3, 0, 4, 0, 0, 0]),
            Subject::Descriptors(vec![3, 4])
        );
    }

    proptest! {
        #[test]
        fn any_arguments_are_survived(args: [u64; 6], base in 0u64..64, bytes: Vec<u8>) {
            let calls = ["poll", "ppoll", "select", "pselect6", "futex", "nanosleep", "waitid",
                         "clock_nanosleep", "wait4", "fcntl", "epoll_pwait2", "futex_waitv", "read"];
            for call in calls {
                for at in [args, args.map(|a| a % 64)] {
                    let request = decode(call, &at, &(base, bytes.as_slice()), NOW);
                    if let Subject::Descriptors(list) = request.subject {
                        prop_assert!(list.len() <= MOST_DESCRIPTORS);
                    }
                }
            }
        }
    }
}
