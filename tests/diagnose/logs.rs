//! Console logs that people paste.

use std::fs;

use framepack_tui::diagnose::report::{Report, SourceKind};
use framepack_tui::diagnose::{InputError, Source, diagnose};
use framepack_tui::model::{ActionId, Health, Phase, VerdictId};

fn try_judge(bytes: &[u8]) -> Result<Report, InputError> {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("pasted.txt");
    fs::write(&path, bytes).unwrap();
    diagnose(&Source::at(&path)?)
}

fn judge(text: &str) -> Report {
    try_judge(text.as_bytes()).unwrap()
}

const OOM: &str = "\
Total VRAM 24560 MB, total RAM 64000 MB
Set vram state to: NORMAL_VRAM
To see the GUI go to: http://127.0.0.1:8188
got prompt
Requested to load WAN21
  0%|          | 0/20 [00:00<?, ?it/s]
!!! Exception during processing !!! HIP out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of 23.98 GiB
Traceback (most recent call last):
  File \"/app/execution.py\", line 1, in execute
torch.OutOfMemoryError: HIP out of memory. Tried to allocate 4.00 GiB.
Prompt executed in 30.10 seconds
";

#[test]
fn an_error_in_the_text_is_told_with_its_line_whatever_stands_before_it() {
    for prefix in [
        "",
        "comfy-1  | ",
        "2026-02-11T10:22:31.123456789Z ",
        "Feb 11 10:22:31 box comfy[77]: ",
    ] {
        let text: String = OOM
            .split_inclusive('\n')
            .flat_map(|l| [prefix, l])
            .collect();
        let got = judge(&text);
        assert_eq!(got.source, SourceKind::Log);
        assert_eq!(got.verdict, VerdictId::GpuOom, "{prefix}");
        assert_eq!(got.workload.adapter, "comfyui");
        assert_eq!((got.onset_s, got.detected_at_s), (None, None));
        assert!(got.history.is_empty());
        let (first, rest) = got.considered.split_first().unwrap();
        assert_eq!(first.verdict, VerdictId::GpuOom);
        assert!(
            !rest.is_empty()
                && rest
                    .iter()
                    .all(|c| c.why.contains("a text has no readings"))
        );
        let lines: Vec<_> = got.findings[0]
            .cites
            .iter()
            .filter_map(|c| c.line)
            .collect();
        assert!(lines.iter().all(|l| (7..=10).contains(l)), "{lines:?}");
    }
}

#[test]
fn a_traceback_at_the_end_of_a_script_is_told() {
    let got = judge(
        "Loading pipeline components...: 100%|####| 7/7 [00:03<00:00,  2.1it/s]\n\
         Traceback (most recent call last):\n  File \"gen.py\", line 3, in <module>\n    main()\n\
         ValueError: height must be divisible by 16\n",
    );
    assert_eq!(got.verdict, VerdictId::AppError);
    assert_eq!(got.workload.adapter, "diffusers");
    assert!(got.sentence.contains("divisible by 16"), "{}", got.sentence);
}

#[test]
fn nothing_wrong_is_said_so_and_no_hang_is_claimed() {
    let got = judge(
        "To see the GUI go to: http://127.0.0.1:8188\ngot prompt\nRequested to load WanVAE\n\
         MIOpen(HIP): Info [FindSolutionImpl] ConvHipImplicitGemm\n",
    );
    assert!(got.verdict.is_no_fault());
    assert_eq!(got.health, Health::Blind);
    assert_eq!(got.confidence, None);
    assert!(got.sentence.contains("shows no fault"), "{}", got.sentence);
    assert!(got.sentence.contains("hang cannot be seen"));
    assert_eq!(got.stats.duration_s, None);
    assert!(!got.last_words.is_empty());
    let idle = judge("To see the GUI go to: http://127.0.0.1:8188\n");
    assert_eq!(idle.verdict, VerdictId::IdleWaiting);
    assert_eq!(idle.phase, Phase::Idle);
}

#[test]
fn a_survived_traceback_is_no_fault() {
    let mut text = "Traceback (most recent call last):\n  File \"nodes.py\", line 1\nModuleNotFoundError: No module named 'x'\nCannot import pack\n".to_owned();
    text.push_str("To see the GUI go to: http://127.0.0.1:8188\n");
    assert!(judge(&text).verdict.is_no_fault());
}

#[test]
fn what_is_no_text_is_refused_with_a_cure() {
    for (bytes, cure) in [
        (&b"\x1f\x8b\x08\0\0\0\0\0"[..], "gunzip"),
        (b"\x28\xb5\x2f\xfd\0", "zstd -d"),
        (b"\xff\xfeg\0o\0t\0", "iconv"),
        (b"\0\x01\x02\x03\x04\x05\x06\x07\x08", "no text"),
        (b" \n\n", "empty"),
        (b"", "empty"),
    ] {
        let error = try_judge(bytes).unwrap_err();
        assert!(error.to_string().contains(cure), "{error}");
        assert!(!error.is_missing());
    }
}

#[test]
fn one_line_of_many_megabytes_and_bad_bytes() {
    let mut bytes = vec![b'x'; 6 << 20];
    bytes.extend(b"\n\xff\xfe caf\xe9\nFatal: CUDA out of memory. Tried to allocate 2.00 GiB\n");
    let got = try_judge(&bytes).unwrap();
    assert_eq!(got.stats.lines, 3);
    assert_eq!(got.last_words.last().unwrap().line, Some(3));
}

#[test]
fn the_words_of_a_shell_tell_how_the_program_ended() {
    let begin = "Loading pipeline components...: 100%|##########| 5/5 [00:12<00:00,  2.4s/it]\n";
    let bar = "  40%|####      | 8/20 [00:31<00:47,  3.91s/it]";
    for (end, want, line) in [
        ("\nKilled\n", VerdictId::Killed, 3),
        ("Killed\n$ \n", VerdictId::Killed, 2),
        ("\nzsh: killed     python gen.py\n", VerdictId::Killed, 3),
        (
            "\nSegmentation fault (core dumped)\n",
            VerdictId::CrashSegv,
            3,
        ),
        (
            "\nFatal Python error: Segmentation fault\n\nThread 0x00007f (most recent call first):\n  File \"a.py\", line 3 in f\nSegmentation fault\n",
            VerdictId::CrashSegv,
            3,
        ),
        ("\nAborted (core dumped)\n", VerdictId::CrashSegv, 3),
        ("\nBus error (core dumped)\n", VerdictId::CrashSegv, 3),
        (
            "\nMemory access fault by GPU node-1 (Agent handle: 0x55d0) on address 0x7f. Reason: Unknown.\nAborted (core dumped)\n",
            VerdictId::MemoryFault,
            3,
        ),
    ] {
        let got = judge(&format!("{begin}{bar}{end}"));
        assert_eq!(got.verdict, want, "{end}: {}", got.sentence);
        let cite = &got.findings[0].cites[0];
        assert_eq!(cite.line, Some(line), "{end}");
        assert!(
            !got.notes
                .iter()
                .any(|n| n.contains("how the program ended"))
        );
    }
    let got = judge(&format!("{begin}{bar}\nKilled\n"));
    assert!(got.sentence.contains("does not prove"), "{}", got.sentence);
    assert!(got.action.why.contains("dmesg"), "{}", got.action.why);
}

#[test]
fn the_same_words_in_a_log_and_a_program_that_was_started_again() {
    for text in [
        "got prompt\nKilled worker 3\nJob aborted\nPrompt executed in 30.10 seconds\n",
        "got prompt\nSegmentation fault (core dumped)\n$ python main.py\nTo see the GUI go to: http://127.0.0.1:8188\ngot prompt\n100%|##########| 20/20 [00:10<00:00,  2.0it/s]\nPrompt executed in 30.10 seconds\n",
    ] {
        let got = judge(text);
        assert!(got.verdict.is_no_fault(), "{text}: {}", got.verdict);
    }
}

#[test]
fn a_missing_module_is_found_in_what_quotes_it() {
    let traceback =
        "Traceback (most recent call last):\n  File \"run.py\", line 9, in <module>\n    main()\n";
    let chain = "ModuleNotFoundError: No module named 'fast_nodes'\n\nThe above exception was the direct cause of the following exception:\n\n";
    for end in [
        "ValueError: Can't import the nodes: No module named 'fast_nodes'",
        "RuntimeError: the nodes cannot be loaded (you may need to install it): No module named 'fast_nodes'",
        "ValueError: sage was asked for (ModuleNotFoundError(\"No module named 'fast_nodes'\"))",
        &format!("{chain}{traceback}ValueError: the attention that was asked for cannot be used"),
    ] {
        let got = judge(&format!("Loading\n{traceback}{end}\n"));
        assert_eq!(got.verdict, VerdictId::MissingDependency, "{end}");
        assert!(got.action.why.contains("fast_nodes"), "{}", got.action.why);
    }
}

#[test]
fn an_error_of_an_earlier_job_stays_the_verdict() {
    let next = "got prompt\n100%|##########| 20/20 [00:10<00:00,  2.0it/s]\nPrompt executed in 12.00 seconds\n";
    let alone = judge(OOM);
    let got = judge(&format!("{OOM}{next}"));
    assert_eq!(got.verdict, VerdictId::GpuOom, "{}", got.sentence);
    assert_eq!(got.action.id, alone.action.id);
    assert_eq!(got.findings[0].cites[0].line, Some(7));
    assert!(got.confidence.is_some());
    // once, however often it failed
    let got = judge(&format!("{OOM}{next}{OOM}{next}"));
    let same = got
        .findings
        .iter()
        .filter(|f| f.verdict == VerdictId::GpuOom);
    assert_eq!(same.count(), 1);
}

#[test]
fn a_text_that_begins_within_a_traceback() {
    let end = "  File \"/app/ldm/model.py\", line 9, in forward\n    x = x + y\ntorch.OutOfMemoryError: Allocation on device\n\nGot an OOM, unloading all loaded models.\nPrompt executed in 33.14 seconds\n";
    assert_eq!(judge(end).verdict, VerdictId::GpuOom);
    let good =
        "got prompt\n100%|####| 20/20 [00:10<00:00, 2.0it/s]\nPrompt executed in 12.0 seconds\n";
    assert_eq!(judge(&format!("{end}{good}")).verdict, VerdictId::GpuOom);
}

#[test]
fn the_end_of_a_long_line_is_judged_and_the_cut_is_told() {
    let long = "x, ".repeat(40_000);
    let got = judge(&format!(
        "Traceback (most recent call last):\n  File \"gen.py\", line 3, in <module>\nRuntimeError: {long} HIP out of memory. Tried to allocate 2.00 GiB\n"
    ));
    assert_eq!(got.verdict, VerdictId::GpuOom, "{}", got.sentence);
    let told = |n: &String| n.contains("one line is longer than 8 KiB");
    assert!(got.notes.iter().any(told), "{:?}", got.notes);
    assert!(!judge(OOM).notes.iter().any(|n| n.contains("KiB")));
}

#[test]
fn a_card_that_came_back_needs_no_reboot() {
    let begin = "[  123.456] amdgpu 0000:03:00.0: amdgpu: ring gfx_0.0.0 timeout, signaled seq=1, emitted seq=3\n[  124.100] amdgpu 0000:03:00.0: amdgpu: GPU reset begin!\n";
    for (end, action, tier) in [
        (
            "[  125.000] amdgpu 0000:03:00.0: amdgpu: GPU reset(2) succeeded!\n",
            ActionId::RetrySame,
            2,
        ),
        (
            "[  125.000] amdgpu 0000:03:00.0: amdgpu: GPU reset(2) failed\n",
            ActionId::RebootHost,
            4,
        ),
        ("", ActionId::RebootHost, 4),
    ] {
        let got = judge(&format!("{begin}{end}"));
        assert_eq!(got.verdict, VerdictId::GpuReset);
        assert_eq!((got.action.id, got.action.tier), (action, tier), "{end}");
        let cites = &got.findings[0].cites;
        assert!(cites.iter().all(|c| !c.text.contains("succeeded")));
    }
}

#[test]
fn the_users_own_interruption_is_no_error_of_the_program() {
    let text = "Loading pipeline components...: 100%|##########| 5/5 [00:12<00:00,  2.4s/it]\n 40%|####      | 8/20 [00:31<00:47,  3.91s/it]^CTraceback (most recent call last):\n  File \"gen.py\", line 9, in <module>\n    main()\nKeyboardInterrupt\n";
    let got = judge(text);
    assert_eq!(got.verdict, VerdictId::Killed, "{}", got.sentence);
    assert_eq!((got.action.id, got.action.tier), (ActionId::None, 0));
    assert!(!got.action.auto_restart);
    assert!(got.sentence.contains("the user interrupted"));
    assert_eq!(got.findings[0].cites[0].line, Some(5));
    let after = judge(
        "Traceback (most recent call last):\n  File \"gen.py\", line 9, in <module>\ntorch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB\n^CKeyboardInterrupt\n",
    );
    assert_eq!(after.verdict, VerdictId::GpuOom);
}

/// A ComfyUI that stands in the middle of its job at ten o'clock.
const IN_A_JOB: &str = "\
2026-02-11 10:00:01,100 Total VRAM 24560 MB, total RAM 64000 MB
2026-02-11 10:00:02,100 To see the GUI go to: http://127.0.0.1:8188
2026-02-11 10:00:03,100 got prompt
2026-02-11 10:00:04,100 Requested to load WAN21
";

#[test]
fn the_time_until_another_programs_log_is_no_standstill() {
    let later = "\
2026-02-11 15:30:01,100 ggml_vulkan: Found 1 Vulkan devices:
2026-02-11 15:30:02,100 [INFO ] stable-diffusion.cpp:720  - loading diffusion model from 'a.gguf'
";
    let got = judge(&format!("{IN_A_JOB}{later}"));
    assert_eq!(got.read.len(), 2, "{:?}", got.read);
    assert!(got.verdict.is_no_fault(), "{}", got.sentence);
}

#[test]
fn nothing_of_one_program_is_known_to_the_next() {
    let sdcpp = "ggml_vulkan: Found 1 Vulkan devices:\n[INFO ] stable-diffusion.cpp:720  - loading diffusion model from 'a.gguf'\n";
    let comfyui = IN_A_JOB.replace("2026-02-11 10:00:01,100 ", "");
    // it ended without a word, and only it
    let got = judge(&format!("{comfyui}C:\\ComfyUI>pause\n\n{sdcpp}"));
    assert_eq!(got.verdict, VerdictId::CrashSegv, "{}", got.sentence);
    // the frame of the first is no place of the second's interruption
    let decodes = "Traceback (most recent call last):\n  File \"/a/vae.py\", line 3, in decode\nValueError: x\n";
    let stopped = "^CTraceback (most recent call last):\nKeyboardInterrupt\n";
    let got = judge(&format!("{comfyui}{decodes}{sdcpp}{stopped}"));
    // the error of the first is in the decode; the interruption of the second is not
    let of_the_first = got.verdict == VerdictId::AppError;
    assert!(
        of_the_first || got.phase != Phase::VaeDecode,
        "{}",
        got.sentence
    );
}

#[test]
fn sentences_begin_with_a_capital_letter() {
    for text in [
        "got prompt\nTraceback (most recent call last):\nKeyError: 'x'\n",
        "Device 0: x\nKilled\n",
        "hello\n",
        OOM,
    ] {
        let got = judge(text);
        for words in [&got.sentence, &got.action.why] {
            assert!(words.starts_with(|c: char| c.is_uppercase()), "{words}");
        }
        assert!(
            !got.sentence.contains("!!! Exception during"),
            "{}",
            got.sentence
        );
    }
}
