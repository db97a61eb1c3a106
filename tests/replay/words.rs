//! Failures that words tell of: the console's, the kernel's, the way a process ended.
//! Each in another program, on another card, and each told within five seconds.

use framepack_tui::model::VerdictId::*;
use framepack_tui::model::event::Choice;
use framepack_tui::model::{ActionId, ExitStatus, Phase, RuleState, VerdictId};

use crate::player::Outcome;
use crate::script::{
    Act, Gpu, MI300X, RTX4090, RX6700XT, RX6800, RX7900XTX, RX9070XT, STRIX_HALO, Script,
};

const SOON: f64 = 5.0;

/// A prompt of ComfyUI that fails while it samples.
fn comfyui(gpu: Gpu, prefix: &str) -> Script {
    let mut s = Script::comfyui_prompt(gpu, prefix);
    s.part_bar(0, 4, 20, 20, "");
    s.act(20, Act::Sample);
    s
}

/// What ComfyUI prints of an exception in a node.
fn exception(s: &mut Script, prefix: &str, frames: &str, class: &str, words: &str) {
    s.say(&format!(
        "{prefix}!!! Exception during processing !!! {words}"
    ));
    s.say(&format!(
        "{prefix}Traceback (most recent call last):\n  File \"execution.py\", line 510, in execute\n    output_data = await get_output_data(prompt_id)\n{frames}{class}: {words}\n"
    ));
    s.say(&format!("{prefix}Prompt executed in 12.60 seconds"));
}

fn no_restart(got: &Outcome) {
    let restart = got
        .decisions
        .iter()
        .any(|(_, d)| matches!(d.choice, Choice::Restart { .. }));
    assert!(!restart, "{}", got.story());
}

const PINS: &str = "  File \"comfy/model_management.py\", line 1121, in pin_memory\n    if torch.cuda.cudart().cudaHostRegister(ptr, size, 1) == 0:\n";

/// Verdict, card, prefix of the log, frames, class and words of the exception.
type Failure = (
    VerdictId,
    Gpu,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

const NODES: &[Failure] = &[
    (
        NoKernelImage,
        RTX4090,
        "",
        "",
        "torch.AcceleratorError",
        "CUDA error: no kernel image is available for execution on the device",
    ),
    (
        DtypeMismatch,
        RX9070XT,
        "[INFO] ",
        "",
        "RuntimeError",
        "mat1 and mat2 must have the same dtype, but got Half and Float",
    ),
    (
        DtypeMismatch,
        RTX4090,
        "",
        "",
        "RuntimeError",
        "Input type (c10::Half) and bias type (float) should be the same",
    ),
    (
        DeviceMismatch,
        RX7900XTX,
        "",
        "",
        "RuntimeError",
        "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!",
    ),
    (
        DeviceMismatch,
        RTX4090,
        "[ERROR] ",
        "",
        "ValueError",
        "Cannot generate a cpu tensor from a generator of type cuda.",
    ),
    (
        BlasError,
        MI300X,
        "",
        "",
        "RuntimeError",
        "CUDA error: HIPBLAS_STATUS_INTERNAL_ERROR when calling `hipblasLtMatmul(...)`",
    ),
    (
        BlasError,
        RTX4090,
        "",
        "",
        "RuntimeError",
        "CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasGemmEx(...)`",
    ),
    (
        PinnedMemory,
        RTX4090,
        "",
        PINS,
        "torch.AcceleratorError",
        "CUDA error: out of memory",
    ),
    (
        PinnedMemory,
        RX7900XTX,
        "",
        "",
        "RuntimeError",
        "HIP error: resource already mapped",
    ),
    (
        CorruptModel,
        RX6700XT,
        "",
        "",
        "safetensors_rust.SafetensorError",
        "Error while deserializing header: MetadataIncompleteBuffer",
    ),
    (
        DiskFull,
        RTX4090,
        "",
        "",
        "OSError",
        "[Errno 28] No space left on device: 'output/ComfyUI_0001.png'",
    ),
    (
        MemoryFault,
        RTX4090,
        "",
        "",
        "torch.AcceleratorError",
        "CUDA error: an illegal memory access was encountered",
    ),
    (
        MissingDependency,
        RX7900XTX,
        "",
        "",
        "ModuleNotFoundError",
        "No module named 'sageattention'",
    ),
    (
        GttExhausted,
        STRIX_HALO,
        "",
        "",
        "torch.OutOfMemoryError",
        "HIP out of memory. Tried to allocate 5.00 GiB. GPU 0 has a total capacity of 96.00 GiB of which 1.20 GiB is free.",
    ),
    (
        AppError,
        RTX4090,
        "",
        "",
        "KeyError",
        "'transformer_blocks.0.attn'",
    ),
];

#[test]
fn a_node_of_comfyui_fails() {
    for (want, gpu, prefix, frames, class, words) in NODES.iter().copied() {
        let mut s = comfyui(gpu, prefix);
        let onset = s.now();
        exception(&mut s, prefix, frames, class, words);
        s.act(40, Act::Idle);
        let got = s.is_fault(want, Phase::Sampling, onset, onset + SOON);
        let (_, main) = got.main().unwrap();
        assert!(main.onset.0 > 0 && !main.findings.is_empty());
        let cites = &main.findings[0].cites;
        assert!(cites.iter().all(|c| c.line.is_some()), "{cites:?}");
        let remedy = main.remedy.as_ref().expect("what follows");
        assert_eq!(remedy.action, main.action);
        if !remedy.auto_restart {
            no_restart(&got);
        }
    }
}

const CODE: ExitStatus = ExitStatus::Code(1);
const ABORT: ExitStatus = ExitStatus::Signal(6);

/// Verdict, card, last words, how it ended.
const SCRIPTS: &[(VerdictId, Gpu, &str, ExitStatus)] = &[
    (
        GpuUnavailable,
        RTX4090,
        "Traceback (most recent call last):\n  File \"generate.py\", line 3, in <module>\nRuntimeError: No CUDA GPUs are available",
        CODE,
    ),
    (
        GpuUnavailable,
        RTX4090,
        "/venv/torch/cuda/__init__.py:138: UserWarning: CUDA initialization: CUDA unknown error - this may be due to an incorrectly set up environment\n  return torch._C._cuda_getDeviceCount() > 0\nTraceback (most recent call last):\n  File \"generate.py\", line 3, in <module>\nRuntimeError: No CUDA GPUs are available",
        CODE,
    ),
    (
        PermissionKfd,
        RX6700XT,
        "Unable to open /dev/kfd read-write: Permission denied\nTraceback (most recent call last):\n  File \"generate.py\", line 3, in <module>\nRuntimeError: No HIP GPUs are available",
        CODE,
    ),
    (
        MissingDependency,
        RX7900XTX,
        "Traceback (most recent call last):\n  File \"generate.py\", line 1, in <module>\n    import diffusers\nModuleNotFoundError: No module named 'diffusers'",
        CODE,
    ),
    (
        CpuFallback,
        RTX4090,
        "Traceback (most recent call last):\n  File \"generate.py\", line 9, in <module>\nAssertionError: Torch not compiled with CUDA enabled",
        CODE,
    ),
    (
        NoKernelImage,
        STRIX_HALO,
        "\nrocBLAS error: Cannot read /venv/torch/lib/rocblas/library/TensileLibrary.dat: Illegal seek for GPU arch : gfx1151\n List of available TensileLibrary Files : ",
        ABORT,
    ),
    (
        HostOom,
        RTX4090,
        "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\nFatal Python error: Aborted",
        ABORT,
    ),
    (
        GpuReset,
        RX9070XT,
        "HW Exception by GPU node-1 (Agent handle: 0x3508fba0) reason :GPU Hang\nFatal Python error: Aborted",
        ABORT,
    ),
    (
        MemoryFault,
        MI300X,
        "Memory access fault by GPU node-4 (Agent handle: 0x31a0c7b0) on address 0x7412a607e000. Reason: Unknown.\nFailed to create GPU coredump: File exists\nGPU core dump failed",
        ABORT,
    ),
    (
        MiopenDb,
        MI300X,
        "MIOpen Error: /src/rocm-libraries/projects/miopen/src/sqlite_db.cpp:227: Internal error while accessing SQLite database: disk I/O error\nTraceback (most recent call last):\n  File \"generate.py\", line 3, in <module>\nRuntimeError: miopenStatusInternalError",
        CODE,
    ),
    // the first of a chain is the root
    (
        CorruptModel,
        RTX4090,
        "Traceback (most recent call last):\n  File \"loader.py\", line 3, in load\nsafetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge\n\nDuring handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n  File \"generate.py\", line 3, in <module>\nOSError: Unable to load weights from checkpoint file",
        CODE,
    ),
    (
        DtypeMismatch,
        RX7900XTX,
        "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\nRuntimeError: expected scalar type Half but found Float\n\nThe above exception was the direct cause of the following exception:\n\nTraceback (most recent call last):\n  File \"generate.py\", line 3, in <module>\nRuntimeError: step 3 failed",
        CODE,
    ),
    // what the end of a process drags along displaces nothing
    (
        GpuOom,
        RX7900XTX,
        "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\ntorch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB.\nException ignored in: <function A.__del__>\nRuntimeError: HIP error: unspecified launch failure\n/usr/lib/python3.12/multiprocessing/resource_tracker.py:254: UserWarning: resource_tracker: There appear to be 1 leaked semaphore objects\nFatal Python error: Aborted",
        ABORT,
    ),
];

#[test]
fn a_script_ends_by_its_error() {
    for (want, gpu, said, status) in SCRIPTS.iter().copied() {
        let mut s = Script::diffusers(gpu);
        s.say("Encoding prompt");
        s.act(4, Act::Encode);
        let onset = s.now();
        s.say(said);
        s.exit(status);
        let got = s.is_fault(want, Phase::TextEncode, onset, onset + SOON);
        let rules = &got.main().unwrap().1.considered;
        assert_eq!((rules[0].verdict, rules[0].state), (want, RuleState::Match));
        assert!(
            rules.len() > 10
                && rules[1..]
                    .iter()
                    .all(framepack_tui::model::Considered::is_not_asked)
        );
    }
}

#[test]
fn what_was_survived_explains_nothing() {
    let killed = [
        // an optional part, long before
        "Traceback (most recent call last):\n  File \"attn.py\", line 1, in <module>\nModuleNotFoundError: No module named 'flash_attn'",
        "MIOpen(HIP): Warning [SQLiteBase] Unable to read system database file:/opt/rocm/share/miopen/db/gfx1100.kdb Performance may degrade",
        "torch.OutOfMemoryError: HIP out of memory. Tried",
        "Lower the size if you get HIP out of memory",
    ];
    for said in killed {
        let mut s = Script::diffusers(RX7900XTX);
        s.say(said);
        s.act(10, Act::Encode);
        s.part_bar(0, 11, 30, 40, "");
        s.act(40, Act::Sample);
        let onset = s.now();
        s.exit(ExitStatus::Signal(15));
        s.is_fault(VerdictId::Killed, Phase::Sampling, onset, onset + SOON);
    }
    // and another exception is another story
    let mut s = Script::diffusers(RX7900XTX);
    s.say("RuntimeError: CUDA error: HIPBLAS_STATUS_NOT_SUPPORTED when calling `x`");
    s.act(30, Act::Encode);
    let onset = s.now();
    s.say(
        "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\nValueError: bad size",
    );
    s.exit(ExitStatus::Code(1));
    let got = s.play();
    let (t, main) = got.main().expect("a verdict");
    assert_eq!(main.id, VerdictId::AppError, "{}", got.story());
    assert!(t >= onset && t <= onset + SOON);
}

#[test]
fn a_port_that_is_taken() {
    let mut s = Script::new(RTX4090, "comfyui", "python3 main.py");
    s.act(12, Act::Startup);
    let onset = s.now();
    s.say("Traceback (most recent call last):\n  File \"main.py\", line 9, in <module>\nOSError: [Errno 98] error while attempting to bind on address ('127.0.0.1', 8188): address already in use");
    s.exit(ExitStatus::Code(1));
    let got = s.is_fault(VerdictId::PortInUse, Phase::Startup, onset, onset + SOON);
    no_restart(&got);

    // a server that stays up without its page
    let mut s = Script::new(RX7900XTX, "framepack", "python3 demo_gradio.py");
    s.act(12, Act::Startup);
    let onset = s.now();
    s.say("Traceback (most recent call last):\n  File \"demo_gradio.py\", line 9, in <module>\nOSError: Cannot find empty port in range: 7860-7860. You can specify a different port");
    s.act(40, Act::Idle);
    s.is_fault(
        VerdictId::PortInUse,
        Phase::Startup,
        onset,
        onset + SOON + 1.0,
    );
}

#[test]
fn a_job_that_a_program_of_unknown_make_buries() {
    // a script that catches everything and waits
    let mut s = Script::diffusers(RX9070XT);
    s.part_bar(0, 11, 30, 40, "");
    s.act(40, Act::Sample);
    let onset = s.now();
    s.say("Traceback (most recent call last):\n  File \"worker.py\", line 9, in run\nRuntimeError: expected scalar type BFloat16 but found Half");
    s.act(40, Act::Idle);
    s.is_fault(
        VerdictId::DtypeMismatch,
        Phase::Sampling,
        onset,
        onset + SOON,
    );

    // the same words, and the job goes on
    let mut s = Script::diffusers(RX9070XT);
    s.part_bar(0, 11, 30, 40, "");
    s.act(40, Act::Sample);
    s.say("Traceback (most recent call last):\n  File \"preview.py\", line 9, in run\nRuntimeError: expected scalar type BFloat16 but found Half");
    s.act(8, Act::Sample);
    s.part_bar(12, 30, 30, 60, "");
    s.act(60, Act::Sample);
    s.act(10, Act::Vae);
    s.exit(ExitStatus::Code(0));
    s.is_calm(&[], VerdictId::Finished);
}

/// What gradio's own frames make of a job that failed within a request.
const REQUEST: &str = "  File \"site-packages/gradio/queueing.py\", line 626, in process_events\n    response = await route_utils.call_process_api(\n";

#[test]
fn a_known_error_after_which_nothing_moves_is_told_soon_whatever_one_core_does() {
    let framepack = |command: &str| {
        let mut s = Script::new(RX7900XTX, "framepack", command);
        s.say("Free VRAM 22.9 GB\nHigh-VRAM Mode: False");
        s.act(10, Act::Startup);
        s.say("* Running on local URL:  http://127.0.0.1:7860");
        s.act(5, Act::Idle);
        s.say("Loaded CLIPTextModel to cuda:0 as complete.");
        s.act(5, Act::Encode);
        s.say("latent_padding_size = 0, is_last_section = True");
        s
    };
    let page = || {
        let mut s = Script::new(RX6800, "wan", "python3 wgp.py");
        s.act(10, Act::Startup);
        s.say("* Running on local URL:  http://127.0.0.1:7860");
        s.act(5, Act::Idle);
        s
    };
    let programs = [
        (framepack("python3 demo_gradio.py"), ""),
        (framepack("python3 studio.py"), ""),
        (framepack("python3 demo_gradio.py"), REQUEST),
        (framepack("python3 endframe.py"), ""),
        (page(), REQUEST),
        (Script::diffusers(RX9070XT), ""),
        (Script::comfyui_prompt(RX6700XT, ""), ""),
    ];
    for (n, (mut s, frames)) in programs.into_iter().enumerate() {
        s.part_bar(0, 11, 25, 40, "");
        s.act(40, Act::Sample);
        let onset = s.now();
        let words = "HIP out of memory. Tried to allocate 2.25 GiB. GPU 0 has a total capacity of 15.98 GiB of which 1.05 GiB is free.";
        if n == 6 {
            exception(&mut s, "", "", "torch.OutOfMemoryError", words);
        } else {
            s.say(&format!("Traceback (most recent call last):\n{frames}  File \"app.py\", line 31, in worker\n    y = f(x)\ntorch.OutOfMemoryError: {words}"));
        }
        // a helper thread, or a page that polls
        s.act(60, Act::Cpu1);
        s.is_fault(VerdictId::GpuOom, Phase::Sampling, onset, onset + SOON);
    }
}

#[test]
fn a_black_result_is_told_although_the_prompt_succeeds() {
    let mut s = Script::comfyui_decode(RX7900XTX, "");
    s.act(6, Act::Vae);
    let onset = s.now();
    s.say("/home/u/ComfyUI/nodes.py:1607: RuntimeWarning: invalid value encountered in cast\n  img = Image.fromarray(np.clip(i, 0, 255).astype(np.uint8))");
    s.act(1, Act::Idle);
    s.say("Prompt executed in 133.81 seconds");
    s.act(40, Act::Idle);
    let got = s.is_fault(VerdictId::NanOutput, Phase::VaeDecode, onset, onset + SOON);
    assert_eq!(got.decisions[0].1.choice, Choice::Advise);
    assert_eq!(got.main().unwrap().1.action, ActionId::Fp32Upcast);
}

#[test]
fn the_kernel_names_our_own_page_fault() {
    let fault =
        "amdgpu 0000:0c:00.0: amdgpu: [gfxhub] page fault (src_id:0 ring:24 vmid:8 pasid:32791)";
    let by = |name: &str, pid: u32| {
        format!("amdgpu 0000:0c:00.0: amdgpu:  Process {name} pid {pid} thread {name} pid {pid}")
    };
    // a recording holds no pid: the name tells whose it is
    for (name, pid, want) in [
        ("python3", 4242, VerdictId::MemoryFault),
        ("Xorg", 99, VerdictId::CrashSegv),
    ] {
        let mut s = comfyui(RX6700XT, "");
        let onset = s.now();
        s.kernel(fault);
        s.kernel(&by(name, pid));
        s.exit(ExitStatus::Signal(6));
        s.is_fault(want, Phase::Sampling, onset, onset + SOON);
    }
}

#[test]
fn a_card_that_is_lost_takes_the_job_with_it() {
    let mut s = comfyui(RTX4090, "");
    let onset = s.now();
    s.kernel("NVRM: Xid (PCI:0000:0c:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.");
    s.act_with(60, Act::Idle, |r| {
        r.busy = None;
        r.power = None;
        r.vram_mib = None;
    });
    let got = s.is_fault(VerdictId::GpuReset, Phase::Sampling, onset, onset + SOON);
    let (_, main) = got.main().unwrap();
    assert_eq!(main.action, ActionId::RebootHost);
    no_restart(&got);
}

#[test]
fn a_reset_decides_by_the_drivers_word() {
    for (last, action) in [
        (
            "amdgpu 0000:0c:00.0: amdgpu: GPU reset(2) succeeded!",
            ActionId::RetrySame,
        ),
        (
            "amdgpu 0000:0c:00.0: amdgpu: GPU reset end with ret = -62",
            ActionId::RebootHost,
        ),
    ] {
        let mut s = Script::framepack_decode(RX7900XTX);
        let onset = s.now();
        s.kernel(
            "amdgpu 0000:0c:00.0: amdgpu: ring comp_1.0.0 timeout, signaled seq=4, emitted seq=6",
        );
        s.kernel("amdgpu 0000:0c:00.0: amdgpu: GPU reset begin!");
        s.kernel(last);
        s.act(1, Act::Idle);
        s.say("RuntimeError: HIP error: unspecified launch failure");
        s.exit(ExitStatus::Signal(6));
        let got = s.is_fault(VerdictId::GpuReset, Phase::VaeDecode, onset, onset + SOON);
        assert_eq!(got.main().unwrap().1.action, action, "{last}");
    }
}

#[test]
fn a_reset_that_the_job_survives_is_no_verdict() {
    let mut s = comfyui(RX7900XTX, "");
    s.kernel(
        "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx_0.0.0 timeout, but soft recovered",
    );
    s.kernel("amdgpu 0000:0c:00.0: amdgpu: GPU reset begin!");
    s.kernel("amdgpu 0000:0c:00.0: amdgpu: GPU reset(1) succeeded!");
    s.part_bar(5, 20, 20, 80, "");
    s.act(80, Act::Sample);
    s.act(5, Act::Vae);
    s.say("Prompt executed in 140.00 seconds");
    s.act(20, Act::Idle);
    s.is_calm(&[], VerdictId::IdleWaiting);
}

#[test]
fn the_storm_names_its_companion() {
    let mut s = Script::framepack(RX7900XTX);
    s.say("Loaded CLIPTextModel to cuda:0 as complete.");
    s.act(10, Act::Encode);
    s.say("latent_padding_size = 0, is_last_section = True");
    s.say("Moving DynamicSwap_HunyuanVideoTransformer3DModelPacked to cuda:0 with preserved memory: 6 GB");
    s.act(5, Act::Load);
    s.bar(25, 50, "");
    s.act(50, Act::Sample);
    s.say("Offloading DynamicSwap_HunyuanVideoTransformer3DModelPacked from cuda:0 to preserve memory: 8 GB");
    s.say("Loaded AutoencoderKLHunyuanVideo to cuda:0 as complete.");
    s.act(3, Act::Vae);
    let onset = s.now();
    s.repeat(
        "HSA exception: MemoryRegion::BlockAllocator::alloc failed.",
        0.2,
        9,
    );
    s.act(3, Act::Cpu1);
    s.say("terminate called after throwing an instance of 'rocr::hsa_exception'\nFatal Python error: Aborted");
    s.exit(ExitStatus::Signal(6));
    let got = s.play();
    let (t, main) = got.main().expect("a verdict");
    assert_eq!(main.id, VerdictId::BlockAllocator, "{}", got.story());
    assert!(t <= onset + 3.0 + SOON);
    assert_eq!(main.action, ActionId::FullUnload);
    assert_eq!(main.findings[0].count, 9);
    let lines = &main.findings[0].cites;
    assert!(lines[0].line < lines[1].line, "first and last: {lines:?}");
    let also: Vec<_> = main.findings.iter().map(|f| f.verdict).collect();
    assert!(also.contains(&VerdictId::OffloadRisk), "{also:?}");
}

#[test]
fn a_failed_prompt_is_told_although_the_next_one_begins_at_once() {
    let mut s = comfyui(RX7900XTX, "");
    s.say("got prompt");
    let onset = s.now();
    exception(
        &mut s,
        "",
        "",
        "RuntimeError",
        "expected scalar type Half but found Float",
    );
    s.part_bar(0, 20, 20, 60, "");
    s.act(60, Act::Sample);
    s.say("Prompt executed in 60.00 seconds");
    s.act(20, Act::Idle);
    let got = s.play();
    let (t, main) = got.main().expect("a verdict");
    assert_eq!(main.id, VerdictId::DtypeMismatch, "{}", got.story());
    assert!(t >= onset && t <= onset + SOON);
    assert!(got.decisions.is_empty(), "{}", got.story());
    let last = got.shown().last().map(|(_, v)| v.id);
    assert_eq!(last, Some(VerdictId::IdleWaiting));
}

/// Those that notice when a number of the rules changes, for [`crate::mutation`].
pub(crate) const ALL: &[(&str, fn())] = &[
    (
        "words::a_known_error_after_which_nothing_moves_is_told_soon_whatever_one_core_does",
        a_known_error_after_which_nothing_moves_is_told_soon_whatever_one_core_does,
    ),
    ("words::a_node_of_comfyui_fails", a_node_of_comfyui_fails),
    (
        "words::a_script_ends_by_its_error",
        a_script_ends_by_its_error,
    ),
    (
        "words::what_was_survived_explains_nothing",
        what_was_survived_explains_nothing,
    ),
    ("words::a_port_that_is_taken", a_port_that_is_taken),
    (
        "words::a_job_that_a_program_of_unknown_make_buries",
        a_job_that_a_program_of_unknown_make_buries,
    ),
    (
        "words::a_black_result_is_told_although_the_prompt_succeeds",
        a_black_result_is_told_although_the_prompt_succeeds,
    ),
    (
        "words::the_kernel_names_our_own_page_fault",
        the_kernel_names_our_own_page_fault,
    ),
    (
        "words::a_card_that_is_lost_takes_the_job_with_it",
        a_card_that_is_lost_takes_the_job_with_it,
    ),
    (
        "words::a_reset_decides_by_the_drivers_word",
        a_reset_decides_by_the_drivers_word,
    ),
    (
        "words::a_reset_that_the_job_survives_is_no_verdict",
        a_reset_that_the_job_survives_is_no_verdict,
    ),
    (
        "words::the_storm_names_its_companion",
        the_storm_names_its_companion,
    ),
    (
        "words::a_failed_prompt_is_told_although_the_next_one_begins_at_once",
        a_failed_prompt_is_told_although_the_next_one_begins_at_once,
    ),
];
