//! Names of system calls by number, for the calls in which a generation waits.

/// A table: numbers and names, sorted by number.
type Table = &'static [(u16, &'static str)];

/// The name of a call on the machine that this program is built for.
pub(super) fn name(number: u64) -> String {
    let known = match std::env::consts::ARCH {
        "x86_64" => find(X86_64, number),
        "aarch64" => find(AARCH64, number),
        _ => None,
    };
    known.map_or_else(|| format!("syscall_{number}"), str::to_owned)
}

fn find(table: Table, number: u64) -> Option<&'static str> {
    let number = u16::try_from(number).ok()?;
    let at = table.binary_search_by_key(&number, |(n, _)| *n).ok()?;
    Some(table[at].1)
}

#[rustfmt::skip]
const X86_64: Table = &[
    (0, "read"), (1, "write"), (2, "open"), (3, "close"), (4, "stat"), (5, "fstat"), (6, "lstat"), (7, "poll"),
    (8, "lseek"), (9, "mmap"), (10, "mprotect"), (11, "munmap"), (12, "brk"), (16, "ioctl"), (17, "pread64"),
    (18, "pwrite64"), (19, "readv"), (20, "writev"), (21, "access"), (23, "select"), (24, "sched_yield"),
    (25, "mremap"), (26, "msync"), (28, "madvise"), (34, "pause"), (35, "nanosleep"), (40, "sendfile"),
    (42, "connect"), (43, "accept"), (44, "sendto"), (45, "recvfrom"), (46, "sendmsg"), (47, "recvmsg"),
    (48, "shutdown"), (56, "clone"), (57, "fork"), (58, "vfork"), (59, "execve"), (60, "exit"), (61, "wait4"),
    (65, "semop"), (69, "msgsnd"), (70, "msgrcv"), (72, "fcntl"), (73, "flock"), (74, "fsync"), (75, "fdatasync"),
    (76, "truncate"), (77, "ftruncate"), (78, "getdents"), (82, "rename"), (83, "mkdir"), (87, "unlink"),
    (128, "rt_sigtimedwait"), (130, "rt_sigsuspend"), (162, "sync"), (202, "futex"), (208, "io_getevents"),
    (217, "getdents64"), (219, "restart_syscall"), (220, "semtimedop"), (221, "fadvise64"),
    (230, "clock_nanosleep"), (231, "exit_group"), (232, "epoll_wait"), (242, "mq_timedsend"),
    (243, "mq_timedreceive"), (247, "waitid"), (257, "openat"), (262, "newfstatat"), (263, "unlinkat"),
    (264, "renameat"), (270, "pselect6"), (271, "ppoll"), (275, "splice"), (276, "tee"), (277, "sync_file_range"),
    (278, "vmsplice"), (281, "epoll_pwait"), (285, "fallocate"), (288, "accept4"), (295, "preadv"),
    (296, "pwritev"), (299, "recvmmsg"), (306, "syncfs"), (307, "sendmmsg"), (313, "finit_module"),
    (316, "renameat2"), (318, "getrandom"), (322, "execveat"), (324, "membarrier"), (326, "copy_file_range"),
    (327, "preadv2"), (328, "pwritev2"), (332, "statx"), (333, "io_pgetevents"), (426, "io_uring_enter"),
    (435, "clone3"), (437, "openat2"), (441, "epoll_pwait2"), (449, "futex_waitv"), (455, "futex_wait"),
];

#[rustfmt::skip]
const AARCH64: Table = &[
    (4, "io_getevents"), (22, "epoll_pwait"), (25, "fcntl"), (29, "ioctl"), (32, "flock"), (35, "unlinkat"),
    (38, "renameat"), (45, "truncate"), (46, "ftruncate"), (47, "fallocate"), (56, "openat"), (57, "close"),
    (61, "getdents64"), (62, "lseek"), (63, "read"), (64, "write"), (65, "readv"), (66, "writev"), (67, "pread64"),
    (68, "pwrite64"), (69, "preadv"), (70, "pwritev"), (71, "sendfile"), (72, "pselect6"), (73, "ppoll"),
    (75, "vmsplice"), (76, "splice"), (77, "tee"), (79, "newfstatat"), (80, "fstat"), (81, "sync"), (82, "fsync"),
    (83, "fdatasync"), (84, "sync_file_range"), (93, "exit"), (94, "exit_group"), (95, "waitid"), (98, "futex"),
    (101, "nanosleep"), (115, "clock_nanosleep"), (124, "sched_yield"), (128, "restart_syscall"),
    (133, "rt_sigsuspend"), (137, "rt_sigtimedwait"), (182, "mq_timedsend"), (183, "mq_timedreceive"),
    (188, "msgrcv"), (189, "msgsnd"), (192, "semtimedop"), (193, "semop"), (202, "accept"), (203, "connect"),
    (206, "sendto"), (207, "recvfrom"), (210, "shutdown"), (211, "sendmsg"), (212, "recvmsg"), (214, "brk"),
    (215, "munmap"), (216, "mremap"), (220, "clone"), (221, "execve"), (222, "mmap"), (223, "fadvise64"),
    (226, "mprotect"), (227, "msync"), (233, "madvise"), (242, "accept4"), (243, "recvmmsg"), (260, "wait4"),
    (267, "syncfs"), (269, "sendmmsg"), (273, "finit_module"), (276, "renameat2"), (278, "getrandom"),
    (281, "execveat"), (283, "membarrier"), (285, "copy_file_range"), (286, "preadv2"), (287, "pwritev2"),
    (291, "statx"), (292, "io_pgetevents"), (426, "io_uring_enter"), (435, "clone3"), (437, "openat2"),
    (441, "epoll_pwait2"), (449, "futex_waitv"), (455, "futex_wait"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted_and_name_each_call_once() {
        for table in [X86_64, AARCH64] {
            assert!(table.is_sorted_by(|a, b| a.0 < b.0));
            let mut names: Vec<_> = table.iter().map(|(_, name)| *name).collect();
            names.sort_unstable();
            assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
        }
    }

    #[test]
    fn numbers_of_both_machines_are_those_of_the_kernels_headers() {
        let x86 = [(0, "read"), (202, "futex"), (232, "epoll_wait")];
        let arm = [(63, "read"), (98, "futex"), (22, "epoll_pwait")];
        for (number, call) in x86 {
            assert_eq!(find(X86_64, number), Some(call));
        }
        for (number, call) in arm {
            assert_eq!(find(AARCH64, number), Some(call));
        }
        for number in [400, 99_999, u64::MAX] {
            assert_eq!(name(number), format!("syscall_{number}"));
        }
    }
}
