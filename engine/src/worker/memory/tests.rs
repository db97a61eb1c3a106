use std::fs;

use proptest::prelude::*;

use super::groups::{Mount, Version, folders, groups, limit, mounts, plain, stat};
use super::*;

const MIB: u64 = 1 << 20;
const MEMINFO: &str = "MemTotal:       8388608 kB\nMemAvailable:    4194304 kB\nSwapTotal: 0 kB\n";
const FREE: u64 = 4096 * MIB;

/// A machine: what it writes to these paths, where `@` is its root.
fn machine_of(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text = text.replace('@', root.path().to_str().unwrap());
        fs::write(path, text).unwrap();
    }
    root
}

fn memory_of(files: &[(&str, &str)]) -> Memory {
    let root = machine_of(&[&[("proc/meminfo", MEMINFO)], files].concat());
    let memory = Memory::by(&root.path().join("proc"));
    let plain = |text: String| text.replace(root.path().to_str().unwrap(), "@");
    Memory {
        limit: memory.limit.map(plain),
        problems: memory.problems.into_iter().map(plain).collect(),
        ..memory
    }
}

const TWO: [(&str, &str); 2] = [
    ("proc/self/cgroup", "0::/user.slice/run\n"),
    (
        "proc/self/mountinfo",
        "31 23 0:28 / /sys rw - sysfs sysfs rw\n35 31 0:32 / @/cg rw,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n",
    ),
];

#[test]
fn the_least_of_a_group_and_those_above_it_decides() {
    let own = |max: &'static str| ("cg/user.slice/run/memory.max", max);
    let files = [
        ("cg/user.slice/run/memory.current", "104857600\n"),
        (
            "cg/user.slice/run/memory.stat",
            "anon 5\nfile 9\ninactive_file 20971520\n",
        ),
        ("cg/user.slice/memory.current", "209715200\n"),
        ("cg/user.slice/memory.stat", "inactive_file 0\n"),
    ];
    let of = |max, above, high| {
        let limits = [
            own(max),
            ("cg/user.slice/memory.max", above),
            ("cg/user.slice/run/memory.high", high),
        ];
        memory_of(&[&TWO[..], &files, &limits].concat())
    };
    // 300 MiB less 100 that are used, of which 20 are a file's
    let memory = of("314572800\n", "max\n", "max\n");
    assert_eq!(memory.left, Some(beside(220 * MIB)));
    assert_eq!(
        memory.limit.as_deref(),
        Some("the memory limit of the control group @/cg/user.slice/run")
    );
    assert_eq!(memory.problems, Vec::<String>::new());
    let memory = of("314572800\n", "314572800\n", "max\n");
    assert_eq!(memory.left, Some(beside(100 * MIB)));
    assert!(memory.limit.unwrap().ends_with("@/cg/user.slice"));
    assert_eq!(
        of("max\n", "max\n", "209715200\n").left,
        Some(beside(120 * MIB))
    );
    // less than is used already: zero, which is not the same as no limit
    assert_eq!(of("1\n", "max\n", "max\n").left, Some(0));
    let memory = of("max\n", "max\n", "max\n");
    assert_eq!((memory.left, memory.limit), (Some(FREE), None));
    // what is more than is free limits nothing
    let memory = of("1099511627776\n", "max\n", "max\n");
    assert_eq!((memory.left, memory.limit), (Some(FREE), None));
}

/// What there is at the very most.
fn most_of(meminfo: &str, files: &[(&str, &str)]) -> (u64, String) {
    let root = machine_of(&[&[("proc/meminfo", meminfo)], files].concat());
    let proc = root.path().join("proc");
    let most = Most::by(&proc, Place::Cpu).unwrap();
    // where it is not the host that computes, its limits count for nothing
    let elsewhere = [Place::Card, Place::Auto].map(|place| Most::by(&proc, place));
    for elsewhere in elsewhere {
        assert_eq!(elsewhere.map(|most| most.bytes), machine_by(&proc));
    }
    let words = most.words.replace(root.path().to_str().unwrap(), "@");
    (most.bytes / MIB, words)
}

#[test]
fn of_a_limit_all_counts_that_it_grants_with_its_swap() {
    let swap = "MemTotal:       8388608 kB\nMemAvailable:    4194304 kB\nSwapTotal: 1048576 kB\n";
    let of = |max: &str, swap_max: &str, meminfo| {
        let files = [
            ("cg/user.slice/run/memory.max", max),
            ("cg/user.slice/run/memory.swap.max", swap_max),
            ("cg/user.slice/run/memory.current", "314572800\n"),
        ];
        most_of(meminfo, &[&TWO[..], &files].concat())
    };
    let words = |mib: u32| {
        format!(
            "the memory limit of the control group @/cg/user.slice/run grants {mib} MiB with swap"
        )
    };
    // that it is used up is no matter: it may be free again
    assert_eq!(of("314572800\n", "0\n", swap), (300, words(300)));
    assert_eq!(of("314572800\n", "104857600\n", swap), (400, words(400)));
    assert_eq!(of("314572800\n", "max\n", swap), (1324, words(1324)));
    assert_eq!(of("314572800\n", "max\n", MEMINFO), (300, words(300)));
    let machine = "this machine has 9216 MiB with its swap".to_owned();
    assert_eq!(of("max\n", "max\n", swap), (9216, machine.clone()));
    assert_eq!(of("1099511627776\n", "0\n", swap), (9216, machine.clone()));
    // not understood: no limit
    assert_eq!(of("plenty\n", "0\n", swap), (9216, machine));
    let limits = "Max address space         629145600            unlimited            bytes\n";
    let (mib, said) = most_of(swap, &[("proc/self/limits", limits)]);
    assert_eq!(
        (mib, &*said),
        (600, "the limit of the address space (ulimit -v) is 600 MiB")
    );
}

#[test]
fn of_version_one_swap_counts_where_it_is_counted() {
    let swap = "MemTotal:       8388608 kB\nSwapTotal: 1048576 kB\n";
    let of = |together: &[(&str, &str)]| {
        let files = [
            ("proc/self/cgroup", "4:memory:/\n"),
            (
                "proc/self/mountinfo",
                "35 31 0:32 / @/m rw - cgroup cgroup rw,memory\n",
            ),
            ("m/memory.limit_in_bytes", "314572800\n"),
        ];
        most_of(swap, &[&files, together].concat()).0
    };
    let together = |bytes| [("m/memory.memsw.limit_in_bytes", bytes)];
    assert_eq!(of(&together("419430400\n")), 400);
    assert_eq!(of(&together("9223372036854771712\n")), 1324);
    assert_eq!(of(&[]), 1324);
}

#[test]
fn what_cannot_be_understood_is_said_and_is_no_limit() {
    let wrong = [
        ("cg/user.slice/run/memory.max", "plenty\n"),
        ("cg/user.slice/memory.max", "-1\n"),
    ];
    let memory = memory_of(&[&TWO[..], &wrong].concat());
    assert_eq!((memory.left, memory.limit), (Some(FREE), None));
    assert_eq!(
        memory.problems,
        [
            "@/cg/user.slice/run/memory.max: not as it is known: a limit that it names is not heeded",
            "@/cg/user.slice/memory.max: not as it is known: a limit that it names is not heeded",
        ]
    );
    // a folder cannot be read as a file
    let folder = [("cg/user.slice/run/memory.max/x", "")];
    let memory = memory_of(&[&TWO[..], &folder].concat());
    assert_eq!((memory.left, memory.problems.len()), (Some(FREE), 1));
    // nothing there at all: an older kernel, or none of it is mounted
    let memory = memory_of(&[]);
    assert_eq!(
        memory,
        Memory {
            left: Some(FREE),
            ..Memory::default()
        }
    );
}

#[test]
fn version_one_is_heeded_beside_version_two() {
    let of = |limit| {
        memory_of(&[
            (
                "proc/self/cgroup",
                "5:devices:/x\n4:cpu,memory:/docker/ab\n0::/\n",
            ),
            (
                "proc/self/mountinfo",
                "35 31 0:32 /docker/ab @/m\\040m rw - cgroup cgroup rw,memory\n36 31 0:33 / @/d rw - cgroup cgroup rw,devices\n41 31 0:38 / @/u rw - cgroup2 cgroup2 rw\n",
            ),
            ("m m/memory.limit_in_bytes", limit),
            ("m m/memory.usage_in_bytes", "209715200\n"),
            (
                "m m/memory.stat",
                "inactive_file 1\ntotal_inactive_file 104857600\n",
            ),
        ])
    };
    let memory = of("314572800\n");
    assert_eq!(memory.left, Some(beside(200 * MIB)));
    assert!(memory.limit.unwrap().ends_with("@/m m"));
    let memory = of("9223372036854771712\n");
    assert_eq!((memory.left, memory.limit), (Some(FREE), None));
}

#[test]
fn the_address_space_is_a_limit_too() {
    let of = |soft: &str| {
        let limits = format!(
            "Limit                     Soft Limit           Hard Limit           Units\nMax address space         {soft}            unlimited            bytes\n"
        );
        memory_of(&[
            ("proc/self/limits", &limits),
            (
                "proc/self/status",
                "Name:\tx\nVmPeak:\t  400000 kB\nVmSize:\t  102400 kB\n",
            ),
        ])
    };
    let memory = of("629145600");
    assert_eq!(memory.left, Some(beside(500 * MIB)));
    assert_eq!(
        memory.limit.as_deref(),
        Some("the limit of the address space (ulimit -v) of 600 MiB")
    );
    assert_eq!(of("unlimited").limit, None);
    assert_eq!(of("some").problems.len(), 1);
}

#[test]
fn some_of_a_limit_is_kept_free() {
    assert_eq!(beside(1000 * MIB), (1000 - 50 - 64) * MIB);
    assert_eq!((beside(60 * MIB), beside(0)), (0, 0));
}

#[test]
fn this_machine_says_what_it_has() {
    let memory = Memory::now();
    assert!(memory.left.is_some_and(|left| left > 0), "{memory:?}");
    assert_eq!(memory.problems, Vec::<String>::new());
    assert!(machine() >= memory.left);
    let most = Most::at(Place::Cpu).map(|most| most.bytes);
    assert!(machine() >= most && most >= memory.left, "{most:?}");
}

#[test]
fn a_group_is_found_where_it_is_mounted() {
    let mount = |root: &str, point: &str| Mount {
        version: Version::Two,
        root: root.into(),
        point: point.into(),
    };
    let of = |group: &str, mounts: &[Mount]| -> Vec<String> {
        let folders = folders(Version::Two, Path::new(group), mounts);
        folders
            .iter()
            .map(|f| f.join("").display().to_string())
            .collect()
    };
    let whole = mount("/", "/cg");
    assert_eq!(
        of("/a/b", std::slice::from_ref(&whole)),
        ["/cg/a/b/", "/cg/a/", "/cg/"]
    );
    // part of it is mounted besides
    let part = mount("/z", "/part");
    assert_eq!(of("/a", &[part.clone(), whole]), ["/cg/a/", "/cg/"]);
    assert_eq!(
        of("/z/a", std::slice::from_ref(&part)),
        ["/part/a/", "/part/"]
    );
    // the words of a host, or of above the container's own root
    assert_eq!(of("/a", std::slice::from_ref(&part)), ["/part/"]);
    assert_eq!(of("/../a", &[mount("/", "/cg")]), ["/cg/"]);
    assert_eq!(of("/a", &[]), Vec::<String>::new());
    assert_eq!(
        folders(Version::One, Path::new("/z"), &[part]),
        Vec::<PathBuf>::new()
    );
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let words = prop::sample::select(vec![
        "0::/",
        "memory",
        ",",
        ":",
        "/",
        " - ",
        "cgroup2 x ",
        "cgroup x rw,memory",
        "\n",
        "\\040",
        "\\",
        "max",
        "inactive_file 7",
        "kB",
        "VmSize:",
        "Max address space ",
        "9",
        " ",
        "\u{e4}",
    ]);
    let word = prop_oneof![
        words.prop_map(|word| word.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..4)
    ];
    prop::collection::vec(word, 0..40).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn any_bytes_are_survived(text in bytes(), more in bytes()) {
        for (version, group) in groups(&text) {
            prop_assert!(group.is_absolute());
            let mounts = mounts(&more);
            for folder in folders(version, &group, &mounts) {
                prop_assert!(mounts.iter().any(|mount| folder.starts_with(&mount.point)));
                let plain = |path: &Path| !path.components().any(|c| c == std::path::Component::ParentDir);
                prop_assert!(plain(&folder) || !mounts.iter().all(|mount| plain(&mount.point)));
            }
        }
        let _ = (limit(&text), stat(&text, "inactive_file"), kib(&text, "VmSize:"), address_space(&text));
        prop_assert!(plain(&text).len() <= text.len());
    }

    #[test]
    fn numbers_are_read_back(n in 0_u64..1 << 62, kb in 0_u64..1 << 50) {
        prop_assert_eq!(limit(format!("{n}\n").as_bytes()), Some(Some(n)));
        prop_assert_eq!(stat(format!("anon 1\ninactive_file {n}\n").as_bytes(), "inactive_file"), Some(n));
        prop_assert_eq!(kib(format!("VmSize:\t {kb} kB\n").as_bytes(), "VmSize:"), Some(kb << 10));
        let line = format!("Max address space         {n}   unlimited    bytes\n");
        prop_assert_eq!(address_space(line.as_bytes()), Some(Some(n)));
    }

    #[test]
    fn any_name_is_read_back(name in prop::collection::vec(1_u8..=255, 1..20)) {
        let octal = |byte: &u8| match byte {
            b' ' | b'\t' | b'\n' | b'\\' => format!("\\{byte:03o}").into_bytes(),
            byte => vec![*byte],
        };
        let written: Vec<u8> = name.iter().flat_map(octal).collect();
        prop_assert_eq!(plain(&written), name);
    }
}
