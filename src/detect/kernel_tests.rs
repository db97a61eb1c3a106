use proptest::prelude::*;

use super::*;

fn short(line: &str) -> String {
    read(line).map_or_else(
        || "-".to_owned(),
        |f| {
            let gpu = f.gpu.as_ref().map_or("?", |g| g.0.as_str());
            let who = match (f.pid, &f.process) {
                (Some(pid), Some(name)) => format!(" by {name} {pid}"),
                (Some(pid), None) => format!(" by {pid}"),
                _ => String::new(),
            };
            format!("{gpu} {}{who}", f.words())
        },
    )
}

/// Forms that public reports show, kernel 5.x to 7.x.
const AMDGPU: &[(&str, &str)] = &[
    (
        "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx_0.0.0 timeout, signaled seq=120, emitted seq=122",
        "? ring timeout gfx_0.0.0",
    ),
    (
        "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring sdma0 timeout, but soft recovered",
        "? ring timeout sdma0",
    ),
    (
        "amdgpu 0000:c5:00.0: amdgpu: ring comp_1.0.1 timeout, signaled seq=45, emitted seq=47",
        "0000:c5:00.0 ring timeout comp_1.0.1",
    ),
    (
        "amdgpu 0000:28:00.0: ring gfx_0.0.0 timeout, signaled seq=57638, emitted seq=57641",
        "0000:28:00.0 ring timeout gfx_0.0.0",
    ),
    (
        "amdgpu 0000:0c:00.0: amdgpu: IP block:gfx_v11_0 is hung!",
        "0000:0c:00.0 engine hang gfx_v11_0",
    ),
    (
        "[drm:mes_v11_0_submit_pkt_and_poll_completion.constprop.0 [amdgpu]] *ERROR* MES failed to response msg=3",
        "? engine hang MES",
    ),
    (
        "amdgpu 0000:c5:00.0: amdgpu: MES failed to respond to msg=REMOVE_QUEUE",
        "0000:c5:00.0 engine hang MES",
    ),
    (
        "amdgpu 0000:03:00.0: MES(1) failed to respond to msg=REMOVE_QUEUE",
        "0000:03:00.0 engine hang MES",
    ),
    (
        "amdgpu 0000:c5:00.0: amdgpu: MES might be in unrecoverable state, issue a GPU reset",
        "0000:c5:00.0 engine hang MES",
    ),
    (
        "amdgpu: qcm fence wait loop timeout expired",
        "? engine hang CP",
    ),
    (
        "amdgpu: The cp might be in an unrecoverable state due to an unsuccessful queues preemption",
        "? engine hang CP",
    ),
    (
        "amdgpu 0000:03:00.0: amdgpu: SMU: I'm not done with your previous command: SMN_C2PMSG_66:0x0000000E",
        "0000:03:00.0 engine hang SMU",
    ),
    (
        "amdgpu 0000:c5:00.0: amdgpu: Starting gfx_0.0.0 ring reset",
        "0000:c5:00.0 reset begun gfx_0.0.0",
    ),
    (
        "amdgpu 0000:c5:00.0: amdgpu: GPU reset begin!",
        "0000:c5:00.0 reset begun",
    ),
    (
        "amdgpu 0000:28:00.0: GPU reset begin!. Source:  1",
        "0000:28:00.0 reset begun",
    ),
    (
        "amdgpu 0000:04:00.0: amdgpu: Ring gfx_0.0.0 reset succeeded",
        "0000:04:00.0 reset done gfx_0.0.0",
    ),
    (
        "amdgpu 0000:c6:00.0: amdgpu: GPU reset(2) succeeded!",
        "0000:c6:00.0 reset done",
    ),
    (
        "amdgpu 0000:c5:00.0: amdgpu: Ring gfx_0.0.0 reset failed",
        "0000:c5:00.0 reset failed gfx_0.0.0",
    ),
    (
        "amdgpu 0000:0c:00.0: amdgpu: GPU reset(1) failed",
        "0000:0c:00.0 reset failed",
    ),
    (
        "amdgpu 0000:0c:00.0: amdgpu: GPU reset end with ret = -22",
        "0000:0c:00.0 reset failed",
    ),
    (
        "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* GPU Recovery Failed: -110",
        "? reset failed",
    ),
    ("[drm] VRAM is lost due to GPU reset!", "? VRAM lost"),
    (
        "amdgpu 0000:28:00.0: VRAM is lost due to GPU reset!",
        "0000:28:00.0 VRAM lost",
    ),
    (
        "amdgpu 0000:0b:00.0: amdgpu: [gfxhub] page fault (src_id:0 ring:24 vmid:8 pasid:32770, for process python pid 1796 thread python pid 1796)",
        "0000:0b:00.0 page fault gfxhub by python 1796",
    ),
    (
        "amdgpu 0000:03:00.0: amdgpu: [gfxhub] page fault (src_id:0 ring:169 vmid:0 pasid:0, for process  pid 0 thread  pid 0)",
        "0000:03:00.0 page fault gfxhub",
    ),
    (
        "amdgpu 0000:88:00.0: amdgpu: [mmhub0] no-retry page fault (src_id:0 ring:24 vmid:8 pasid:32768, for process ipython3 pid 846049 thread ipython3 pid 846049)",
        "0000:88:00.0 page fault mmhub0 by ipython3 846049",
    ),
    (
        "amdgpu 0000:05:00.0: [gfxhub] page fault (src_id:0 ring:24 vmid:7 pasid:98)",
        "0000:05:00.0 page fault gfxhub",
    ),
    (
        "amdgpu 0000:01:00.0: GPU fault detected: 147 0x0a504402",
        "0000:01:00.0 page fault",
    ),
    (
        "amdgpu 0000:03:00.0: amdgpu: Failed to evict queue 5",
        "0000:03:00.0 evict failed",
    ),
    ("amdgpu: Failed to evict process queues", "? evict failed"),
    (
        "amdgpu: Failed to suspend process pid 14368",
        "? evict failed by 14368",
    ),
    ("[TTM] Buffer eviction failed", "? evict failed"),
    (
        "[drm:amdgpu_cs_ioctl [amdgpu]] *ERROR* Not enough memory for command submission!",
        "? out of GPU memory",
    ),
    (
        "amdgpu 0000:03:00.0: amdgpu: ERROR: GPU over temperature range(SW CTF) detected!",
        "0000:03:00.0 over temperature",
    ),
    (
        "amdgpu 0000:03:00.0: amdgpu: 1 uncorrectable hardware errors detected in umc block",
        "0000:03:00.0 memory error umc",
    ),
    (
        "amdgpu 0000:03:00.0: amdgpu: device lost from bus!",
        "0000:03:00.0 lost from the bus",
    ),
];

#[test]
fn lines_of_amdgpu_are_understood() {
    for (line, want) in AMDGPU {
        assert_eq!(short(line), *want, "{line}");
    }
}

#[test]
fn lines_of_nvidia_and_of_the_oom_killer_are_understood() {
    for (line, want) in [
        (
            "NVRM: Xid (PCI:0000:06:00): 79, GPU has fallen off the bus.",
            "0000:06:00.0 Xid 79 (fallen off the bus)",
        ),
        (
            "NVRM: Xid (PCI:0000:b3:00): 31, pid=1234, name=python3, Ch 00000008, intr 00000000. MMU Fault",
            "0000:b3:00.0 Xid 31 (GPU memory page fault) by python3 1234",
        ),
        (
            "NVRM: Xid (PCI:0000:41:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
            "0000:41:00.0 Xid 79 (fallen off the bus)",
        ),
        (
            "NVRM: Xid (0000:03:00): 14, Channel 00000001",
            "0000:03:00.0 Xid 14",
        ),
        (
            "NVRM: Xid (PCI:0000:41:00): 79 (told by NVML)",
            "0000:41:00.0 Xid 79 (fallen off the bus)",
        ),
        (
            "NVRM: Xid (PCI:?): 79 (told by NVML)",
            "? Xid 79 (fallen off the bus)",
        ),
        (
            "NVRM: GPU 0000:06:00.0: GPU has fallen off the bus.",
            "0000:06:00.0 lost from the bus",
        ),
        (
            r"NVRM: The NVIDIA GPU 0000:b3:00.0\x0aNVRM: (PCI ID: 10de:26b5) installed in this system has\x0aNVRM: fallen off the bus and is not responding to commands.",
            "0000:b3:00.0 lost from the bus",
        ),
        (
            "NVRM: fallen off the bus and is not responding to commands.",
            "? lost from the bus",
        ),
        (
            "Out of memory: Killed process 4123 (python3) total-vm:1kB, oom_score_adj:0",
            "? OOM kill by python3 4123",
        ),
        (
            "Memory cgroup out of memory: Killed process 12 (my app) total-vm:1kB",
            "? OOM kill by my app 12",
        ),
        (
            "Killed process 99 (python) total-vm:1kB, anon-rss:1kB",
            "? OOM kill by python 99",
        ),
        (
            "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/a,task_memcg=/a,task=python,pid=77,uid=0",
            "? OOM kill by python 77",
        ),
    ] {
        assert_eq!(short(line), want, "{line}");
    }
}

#[test]
fn stamps_of_other_logs_are_cut_off() {
    for stamp in [
        "",
        "[  950.818166] ",
        "[127033.279661] ",
        "[Thu Sep 10 14:36:16 2026] ",
        "May 26 18:09:55 fedora kernel: ",
        "Nov  4 13:30:18 odys kernel: [   12.5] ",
    ] {
        let line = format!("{stamp}amdgpu 0000:c5:00.0: amdgpu: GPU reset begin!");
        assert_eq!(short(&line), "0000:c5:00.0 reset begun", "{line}");
        let line = format!("{stamp}Out of memory: Killed process 7 (a) total-vm:1kB");
        assert_eq!(short(&line), "? OOM kill by a 7", "{line}");
    }
}

#[test]
fn what_only_looks_alike_does_not_count() {
    for line in [
        "",
        "amdgpu 0000:c5:00.0: amdgpu: ring gfx_0.0.0 uses VM inv eng 0 on hub 0",
        "[drm:amdgpu_ring_test_helper [amdgpu]] *ERROR* ring kiq_2.1.0 test failed (-110)",
        "amdgpu 0000:c5:00.0: amdgpu: MODE2 reset",
        "amdgpu 0000:c5:00.0: amdgpu: GPU psp mode1 reset",
        "amdgpu 0000:28:00.0: BACO reset",
        "amdgpu 0000:c5:00.0: amdgpu: GPU reset succeeded, trying to resume",
        "amdgpu 0000:04:00.0: [drm] device wedged, but recovered through reset",
        "amdgpu 0000:c5:00.0: amdgpu: SMU is resuming...",
        "amdgpu 0000:c5:00.0: amdgpu: recover vram bo from shadow start",
        "amdgpu 0000:c5:00.0: amdgpu: [drm] AMDGPU device coredump file has been created",
        "amdgpu 0000:c5:00.0: amdgpu:   in page starting at address 0x00007f5e85f94000 from client 10",
        "amdgpu 0000:c5:00.0: amdgpu: GCVM_L2_PROTECTION_FAULT_STATUS:0x00801031",
        "amdgpu 0000:c5:00.0: amdgpu: 0 uncorrectable hardware errors detected in umc block",
        "amdgpu 0000:c5:00.0: amdgpu: 3 correctable hardware errors detected in umc block",
        "amdgpu 0000:c5:00.0: amdgpu: GPU reset end with ret = 0",
        "amdgpu: Virtual CRAT table created for CPU",
        "[drm] amdgpu kernel modesetting enabled.",
        "[drm] Initialized amdgpu 3.61.0 for 0000:0c:00.0 on minor 1",
        "Kernel command line: amdgpu.gpu_recovery=1 amdgpu.lockup_timeout=10000 ring gfx timeout",
        "snd_hda_intel 0000:0c:00.1: GPU reset begin!",
        "python3[7]: segfault at 0 ip 0 sp 0 error 4 in libamdhip64.so",
        "python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
        "oom_reaper: reaped process 4123 (python3), now anon-rss:0kB",
        "Tasks state (memory values in pages): pid oom_score_adj name",
        "Out of memory: Kill process 4123 (python3) score 900 or sacrifice child",
        "app: if you see out of memory: Killed process 7 (x), add swap",
        "NVRM: GPU at PCI:0000:06:00: GPU-0b6b7808-c002-f593-ac86-cd8e57757b94",
        "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.158.01",
        "NVRM: nvCheckOkFailedNoLog: Check failed: GPU lost from the bus [NV",
        "NVRM: Xid handling is enabled",
    ] {
        assert_eq!(short(line), "-", "{line}");
    }
}

#[test]
fn the_culprit_stands_on_the_next_line() {
    let card = || Some(GpuId("0000:c5:00.0".to_owned()));
    assert_eq!(
        culprit(
            "amdgpu 0000:c5:00.0: amdgpu:  Process code pid 1048641 thread code:cs0 pid 1048662"
        ),
        Some((card(), 1_048_641, Some("code".to_owned())))
    );
    assert_eq!(
        culprit(
            "amdgpu 0000:c5:00.0: amdgpu:  for process pt_main_thread pid 12924 thread pt_main_thread pid 12924)"
        ),
        Some((card(), 12924, Some("pt_main_thread".to_owned())))
    );
    assert_eq!(
        culprit(
            "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* Process information: process My Game.exe pid 12 thread x pid 13"
        ),
        Some((None, 12, Some("My Game.exe".to_owned())))
    );
    for line in [
        "amdgpu 0000:c5:00.0: amdgpu:  Process  pid 0 thread  pid 0",
        "amdgpu: Failed to suspend process pid 14368",
        "systemd: Process x pid 12",
    ] {
        assert_eq!(culprit(line), None, "{line}");
    }
}

#[test]
fn every_form_compiles() {
    assert!(Forms::new().is_ok());
}

proptest! {
    #[test]
    fn any_text_is_survived(text in ".*") {
        let _ = (read(&text), culprit(&text));
    }

    #[test]
    fn text_behind_a_prefix_is_survived(
        prefix in prop::sample::select(vec![
            "amdgpu 0000:0c:00.0: amdgpu: ", "[drm] ", "NVRM: Xid (PCI:", "Killed process ", "oom-kill:",
        ]),
        text in "\\PC{0,80}",
    ) {
        if let Some(fault) = read(&format!("{prefix}{text}")) {
            prop_assert!(fault.pid != Some(0));
        }
    }

    #[test]
    fn an_xid_is_read_back(bus: u8, code in 1u32..200, pid in 1u32..4_000_000) {
        let line = format!("NVRM: Xid (PCI:0000:{bus:02X}:00): {code}, pid={pid}, name=python, Ch 1");
        let fault = read(&line).unwrap();
        prop_assert_eq!(fault.gpu, Some(GpuId(format!("0000:{bus:02x}:00.0"))));
        prop_assert_eq!((fault.code, fault.pid), (Some(code), Some(pid)));
    }

    #[test]
    fn a_victim_is_read_back(pid in 1u32..4_000_000, name in "[a-z][a-z0-9_:-]{0,14}") {
        let line = format!("Out of memory: Killed process {pid} ({name}) total-vm:1kB");
        let fault = read(&line).unwrap();
        prop_assert_eq!((fault.kind, fault.pid, fault.process), (FaultKind::OomKill, Some(pid), Some(name)));
    }
}
