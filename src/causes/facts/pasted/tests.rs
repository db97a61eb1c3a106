use super::*;

fn of(text: &str) -> Pasted {
    let mut pasted = Pasted::default();
    for line in text.lines() {
        pasted.observe(line);
    }
    pasted
}

#[test]
fn memory_as_free_and_windows_print_it() {
    assert!(patterns().is_ok());
    for (text, full) in [
        (
            "$ free -m\nMem: 31990 31402 204 310 383 121\nSwap: 8191 8188 3",
            Some(true),
        ),
        (
            "$ free -h\nMem:            31Gi        30Gi       201Mi       310Mi       383Mi       121Mi\nSwap:          8.0Gi       8.0Gi        10Mi",
            Some(true),
        ),
        (
            "Mem: 32757760 1002400 29002400 310 383 28002400\nSwap: 0 0 0",
            Some(false),
        ),
        ("$ free -g\nMem: 125 40 3 1 81 84\nSwap: 7 7 0", Some(false)),
        (
            "Mem: 31Gi 30Gi 201Mi 310Mi 383Mi 121Mi\nSwap: 64Gi 1.0Gi 63Gi",
            Some(false),
        ),
        (
            "Total Physical Memory:     16,311 MB\nAvailable Physical Memory: 402 MB",
            Some(true),
        ),
        ("Memory: 3 GB\ngot prompt", None),
    ] {
        assert_eq!(of(text).memory_full(), full, "{text}");
    }
    assert_eq!(
        of("$ free -m\nMem: 31990 1 1 1 1 1").ram(),
        Some(31990 << 20)
    );
}

#[test]
fn groups_masks_and_disks() {
    for (text, want) in [
        ("me@box:~$ groups\nme adm video render", Some(true)),
        ("$ groups\nme sudo video", Some(false)),
        (
            "uid=1000(me) gid=1000(me) groups=1000(me),44(video),992(render)",
            Some(true),
        ),
        ("uid=0(root) gid=0(root) groups=0(root)", Some(true)),
        ("the groups of the node", None),
    ] {
        assert_eq!(of(text).in_groups(), want, "{text}");
    }
    let masks = of("# ROCR_VISIBLE_DEVICES=1\n# CUDA_VISIBLE_DEVICES=1\n# HIP_VISIBLE_DEVICES=");
    assert_eq!(masks.two_masks(), Some(true));
    assert_eq!(
        masks.masks().as_deref(),
        Some("CUDA_VISIBLE_DEVICES=1 ROCR_VISIBLE_DEVICES=1")
    );
    assert_eq!(of("set HIP_VISIBLE_DEVICES=1").two_masks(), Some(false));
    for (text, want) in [
        (
            "nas:/home nfs4 10737418240 81234 26139 76% /home",
            Some(true),
        ),
        ("//srv/share cifs 1000 10 990 1% /mnt", Some(true)),
        ("scratch on /scratch type lustre (rw,flock)", Some(true)),
        ("/dev/nvme0n1p2 ext4 1000 10 990 1% /", None),
    ] {
        assert_eq!(of(text).network_disk, want, "{text}");
    }
    assert_eq!(
        of("  Name:                    gfx1100").card_listed,
        Some(true)
    );
    assert_eq!(
        of("hsa_init Failed, possibly no card").card_listed,
        Some(false)
    );
}

#[test]
fn versions_as_tools_and_people_write_them() {
    let needs = |package: &str, than: &str| PastedNeeds {
        older: [(package.to_owned(), than.to_owned())].into(),
        ..PastedNeeds::default()
    };
    for (text, package, than, want) in [
        (
            "Name: safetensors\nVersion: 0.4.5",
            "safetensors",
            "0.7",
            true,
        ),
        ("safetensors==0.7.0", "safetensors", "0.7", false),
        (
            "bitsandbytes               0.45.1",
            "bitsandbytes",
            "0.49",
            true,
        ),
        (
            "(windows: RX 9070, Adrenalin 25.3.2)",
            "adrenalin",
            "25.6.1",
            true,
        ),
        (
            "AMD Software: Adrenalin Edition 25.10.2",
            "adrenalin",
            "25.6.1",
            false,
        ),
        ("optimum_quanto   0.2.7", "optimum-quanto", "0.3", true),
        ("loaded in 0.45", "loaded", "9", false),
    ] {
        assert_eq!(of(text).meets(&needs(package, than)), want, "{text}");
    }
}

#[test]
fn torch_and_the_index_that_it_came_from() {
    for (text, want) in [
        ("pytorch version: 2.4.1+cpu", Some(("2.4.1", "cpu"))),
        ("torch==2.6.0+rocm6.2.4", Some(("2.6.0", "rocm6.2.4"))),
        ("torch                2.7.0+cu128", Some(("2.7.0", "cu128"))),
        ("torch   2.9.0a0+rocm7.0.0rc20250820", None),
        ("pytorch version: 2.4.1", None),
    ] {
        assert_eq!(of(text).torch(), want, "{text}");
    }
}

#[test]
fn remarks_about_files() {
    for (text, want) in [
        ("(checked the sha256 of every file, all match)", Some(true)),
        ("checksum is identical to the page", Some(true)),
        ("the sha256 does not match", Some(false)),
        ("hash of the model: 6ce0161689", None),
    ] {
        assert_eq!(of(text).checksum_matches, want, "{text}");
    }
}

#[test]
fn disks_of_df() {
    let of_disks = |text: &str| {
        let pasted = of(text);
        (pasted.place("full_disk"), pasted.place("free_disk"))
    };
    let words = |full: &str, free: &str| (Some(full.to_owned()), Some(free.to_owned()));
    for (text, want) in [
        (
            "$ df -h\nFilesystem Size Used Avail Use% Mounted on\ntmpfs 6.3G 6.3G 0 100% /run\n/dev/nvme0n1p2 98G 93G 0 100% /\n/dev/sda1 3.6T 1.2T 2.3T 35% /data",
            words("/", "/data (2355.2 GiB free)"),
        ),
        (
            "/dev/loop3 65M 65M 0 100% /snap/core\noverlay 50G 50G 20K 100% /\nnas:/pool 1.0T 100G 900G 10% /models",
            words("/", "/models (900.0 GiB free)"),
        ),
        (
            "/dev/sda2 ext4 102626232 101600000 12000 99% /home\n/dev/sdb1 ext4 102626232 1600000 101026232 2% /mnt/b",
            words("/home", "/mnt/b (96.3 GiB free)"),
        ),
        (
            "rpool/ROOT 40G 40G 0 100% /\n/dev/sdb1 40G 38G 2.0G 95% /mnt/b",
            (Some("/".to_owned()), None),
        ),
        ("/dev/sda1 98G 40G 53G 43% /", (None, None)),
        ("step 100% /data", (None, None)),
    ] {
        assert_eq!(of_disks(text), want, "{text}");
    }
}

#[test]
fn what_holds_the_card() {
    for (text, want) in [
        (
            "$ rocm-smi --showpids\nPID PROCESS NAME GPU(s) VRAM USED SDMA USED CU OCCUPANCY\n4711 ollama 1 21474836480 0 0",
            Some("ollama (20.0 GiB)"),
        ),
        (
            "| N/A 45C P8 12W / 170W | 11500MiB / 12288MiB | 0% Default |\n|    0   N/A  N/A      4711      C   /usr/bin/llama-server      10240MiB |",
            Some("llama-server (10.0 GiB)"),
        ),
        (
            "GPU: 0\n    PROCESS_INFO:\n        NAME: koboldcpp\n        PID: 12\n        MEMORY_USAGE:\n            VRAM_MEM: 9.5 GB",
            Some("koboldcpp (9.5 GiB)"),
        ),
        ("4711 python3 1 21474836480 0 0", None),
        (
            "GPU[0] : VRAM Total Memory (B): 17163091968\n12 Xorg 1 214748364 0 0",
            None,
        ),
        ("100 200 300", None),
    ] {
        assert_eq!(of(text).place("holder").as_deref(), want, "{text}");
    }
    for (text, want) in [
        (
            "GPU[0] : VRAM Total Memory (B): 17163091968",
            17_163_091_968,
        ),
        (
            "|   7711MiB /  8192MiB |     12%      Default |",
            8192 << 20,
        ),
        ("        TOTAL_VRAM: 24560 MB", 24560 << 20),
    ] {
        assert_eq!(of(text).card_memory(), Some(want), "{text}");
    }
}

#[test]
fn the_compute_device_and_who_may_open_it() {
    let there = "crw-rw---- 1 root render 236, 0 Aug 14 10:58 /dev/kfd";
    let mine = "$ groups\nme adm render";
    let others = "$ groups\nme adm video";
    for (text, exists, in_groups) in [
        (there.to_owned(), Some(true), None),
        (format!("{there}\n{mine}"), Some(true), Some(true)),
        (format!("{there}\n{others}"), Some(true), Some(false)),
        (
            "ls: cannot access '/dev/kfd': No such file or directory".to_owned(),
            Some(false),
            None,
        ),
        ("the device /dev/kfd".to_owned(), None, None),
    ] {
        let pasted = of(&text);
        assert_eq!(pasted.machine.kfd_exists(), exists, "{text}");
        assert_eq!(pasted.in_groups(), in_groups, "{text}");
    }
    for (text, want) in [
        ("$ docker run -it --gpus all image", Some(false)),
        (
            "docker run --device=/dev/kfd --device=/dev/dri image",
            Some(true),
        ),
        (
            "docker run -it \\\n  --device /dev/kfd \\\n  image",
            Some(true),
        ),
        ("docker run -it \\\n  --gpus all image", Some(false)),
        ("    devices:\n      - /dev/kfd:/dev/kfd", Some(true)),
        ("docker logs comfyui", None),
    ] {
        assert_eq!(of(text).machine.kfd_passed(), want, "{text}");
    }
}

#[test]
fn releases_of_kernels_and_drivers() {
    let older = |what: &str, than: &str| PastedNeeds {
        older: [(what.to_owned(), than.to_owned())].into(),
        ..PastedNeeds::default()
    };
    for (text, what, than, want) in [
        (
            "Linux box 5.4.0-216-generic #236-Ubuntu SMP x86_64 GNU/Linux",
            "kernel",
            "5.15",
            true,
        ),
        (
            "Linux box 6.14.0-37-generic #1 SMP x86_64 GNU/Linux",
            "kernel",
            "6.8",
            false,
        ),
        (
            "| NVIDIA-SMI 535.183.01 Driver Version: 535.183.01 CUDA Version: 12.2 |",
            "cuda-driver",
            "12.8",
            true,
        ),
        (
            "| NVIDIA-SMI 580.65.06 Driver Version: 580.65.06 CUDA Version: 13.0 |",
            "cuda-driver",
            "12.8",
            false,
        ),
        ("the kernel 5.4", "kernel", "6.0", false),
    ] {
        assert_eq!(of(text).meets(&older(what, than)), want, "{text}");
    }
}
