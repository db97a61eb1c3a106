//! Ends that only a layer around the program tells of: Windows, containers, service managers,
//! the shell that has its user back.

use std::fs;

use framepack_tui::diagnose::report::Report;
use framepack_tui::diagnose::{Source, diagnose};
use framepack_tui::model::VerdictId;

fn judge(text: &str) -> Report {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("pasted.txt");
    fs::write(&path, text).unwrap();
    diagnose(&Source::at(&path).unwrap()).unwrap()
}

fn cause(report: &Report) -> Option<&str> {
    report.cause.as_ref().map(|c| c.id.as_str())
}

const START: &str = "\
C:\\ai\\ComfyUI_windows_portable>.\\python_embeded\\python.exe -s ComfyUI\\main.py
Checkpoint files will always be loaded safely.
Total VRAM 16368 MB, total RAM 32690 MB
pytorch version: 2.10.0+rocm7.1
Set vram state to: NORMAL_VRAM
Device: cuda:0 AMD Radeon RX 9070 XT : native
";
const UP: &str = "Starting server\n\nTo see the GUI go to: http://127.0.0.1:8188\n";
const JOB: &str =
    "got prompt\nRequested to load WAN21\n  5%|5         | 1/20 [00:09<02:59,  9.44s/it]\n";
const PAUSE: &str = "\nC:\\ai\\ComfyUI_windows_portable>pause\nPress any key to continue . . .\n";

#[test]
fn exit_codes_of_windows_are_crashes_missing_libraries_and_want_of_memory() {
    for (end, want, why) in [
        (
            "Windows fatal exception: access violation",
            VerdictId::CrashSegv,
            "native_crash_windows",
        ),
        (
            "ComfyUI process exited with code 3221225477 and signal null",
            VerdictId::CrashSegv,
            "native_crash_windows",
        ),
        (
            "Process finished with exit code -1073740791 (0xC0000409)",
            VerdictId::CrashSegv,
            "heap_damaged_windows",
        ),
        (
            "ComfyUI process exited with code 3221225501 and signal null",
            VerdictId::CrashSegv,
            "instruction_unknown_to_cpu",
        ),
        (
            "ComfyUI process exited with code 3221225781 and signal null",
            VerdictId::MissingDependency,
            "dll_missing_by_exit_code",
        ),
        (
            "ComfyUI process exited with code 3221225773 and signal null",
            VerdictId::HostOom,
            "windows_memory",
        ),
    ] {
        let got = judge(&format!("{START}{UP}{JOB}{end}\n"));
        assert_eq!(got.verdict, want, "{end}: {}", got.sentence);
        assert_eq!(cause(&got), Some(why), "{end}");
        assert!(!got.findings[0].cites.is_empty(), "{end}");
    }
}

#[test]
fn layers_around_the_program_tell_that_it_failed() {
    for end in [
        "comfy-1 exited with code 1\n",
        "comfy.service: Main process exited, code=exited, status=1/FAILURE\n",
        "    Last State:     Terminated\n      Reason:       Error\n      Exit Code:    1\n",
        "[info] ComfyUI process exited with code 1 and signal null\n",
    ] {
        let got = judge(&format!("{START}{end}"));
        assert_eq!(got.verdict, VerdictId::AppError, "{end}: {}", got.sentence);
        assert!(!got.findings[0].cites.is_empty(), "{end}");
    }
}

#[test]
fn what_ended_a_program_for_want_of_memory() {
    for (end, why) in [
        (
            "      Reason:       OOMKilled\n      Exit Code:    137\n",
            "container_ended_for_memory",
        ),
        (
            "comfy-0   0/1   OOMKilled   3 (40s ago)   9m\n",
            "container_ended_for_memory",
        ),
        (
            "            \"OOMKilled\": true,\n            \"ExitCode\": 137,\n",
            "container_ended_for_memory",
        ),
        (
            "systemd-oomd[801]: Killed /user.slice/user-1000.slice/session-3.scope due to memory pressure for /user.slice being 61.00% > 50.00%\n",
            "ended_by_oomd",
        ),
        (
            "comfyui.service: A process of this unit has been killed by the OOM killer.\n",
            "service_ended_for_memory",
        ),
        (
            "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0. Some of the step tasks have been OOM Killed.\n",
            "slurm_limit",
        ),
        (
            "Your session crashed after using all available RAM.\n",
            "notebook_memory",
        ),
    ] {
        let got = judge(&format!(
            "{}{UP}{JOB}{end}",
            &START[START.find("Total").unwrap()..]
        ));
        assert_eq!(got.verdict, VerdictId::HostOom, "{end}: {}", got.sentence);
        assert_eq!(cause(&got), Some(why), "{end}");
    }
}

#[test]
fn a_server_that_ends_without_a_word_has_failed() {
    let start = &START[..START.find("Total").unwrap()];
    let got = judge(&format!("{start}{PAUSE}"));
    assert_eq!(got.verdict, VerdictId::AppError, "{}", got.sentence);
    assert_eq!(cause(&got), Some("ended_in_start_without_words"));
    let got = judge(&format!("{START}{UP}{JOB}{PAUSE}"));
    assert_eq!(got.verdict, VerdictId::CrashSegv, "{}", got.sentence);
    assert_eq!(cause(&got), Some("ended_in_job_without_words_windows"));
    let linux = "$ python main.py\nCheckpoint files will always be loaded safely.\nTotal VRAM 16368 MB, total RAM 32690 MB\nSet vram state to: NORMAL_VRAM\nu@box:~/ComfyUI$\n";
    let got = judge(linux);
    assert_eq!(got.verdict, VerdictId::AppError, "{}", got.sentence);
}

#[test]
fn ends_that_are_none_or_were_meant() {
    let done = "got prompt\n100%|##########| 20/20 [00:10<00:00,  2.0it/s]\nPrompt executed in 12.00 seconds\n";
    for text in [
        // the user ended the server
        format!("{START}{UP}Stopped server\n{PAUSE}"),
        format!("{START}{UP}{JOB}^CTerminate batch job (Y/N)? y\n{PAUSE}"),
        // it waits, and somebody looked at its files
        format!("{START}{UP}{done}{PAUSE}"),
        format!("{START}{UP}{done}comfy-1 exited with code 0\n"),
        format!("{START}{UP}{done}            \"OOMKilled\": false,\n            \"ExitCode\": 0,\n"),
        // a library raised and caught it, again and again
        format!(
            "{START}Windows fatal exception: access violation\n\nStack (most recent call first):\n  File \"C:\\x\\comfy_aimdo\\control.py\", line 144 in init_devices\n{UP}"
        ),
        format!("{START}Windows fatal exception: code 0x80010108\n{UP}"),
        // an update that did not come about
        format!(
            "error: Your local changes to the following files would be overwritten by merge:\n\tnodes.py\nAborting\n{START}{UP}"
        ),
        // something else was ended for want of memory
        format!(
            "{START}{UP}{done}systemd-oomd[801]: Killed /user.slice/user-1000.slice/user@1000.service/app.slice/app-firefox-88.scope due to memory pressure for /user.slice being 61.00% > 50.00%\n"
        ),
        // pip speaks of packages that do not matter here
        format!(
            "ERROR: pip's dependency resolver does not currently take into account all the packages that are installed.\nxformers 0.0.30 requires torch==2.7.0, but you have torch 2.10.0+rocm7.1 which is incompatible.\n{START}{UP}"
        ),
        format!(
            "ERROR: ld.so: object 'libtcmalloc.so.4' from LD_PRELOAD cannot be preloaded (cannot open shared object file): ignored.\n{START}{UP}"
        ),
        "$ ./sd-cli -m z.gguf -p cat\n[INFO ] stable-diffusion.cpp:4512 - sampling completed, taking 8.30s\n[INFO ] main.cpp:712 - save result image 0 to 'output.png' (success)\n$\n".to_owned(),
    ] {
        let got = judge(&text);
        let alarm = got.verdict.severity() >= framepack_tui::model::Severity::Error;
        assert!(!alarm, "{}: {}\n{text}", got.verdict, got.sentence);
    }
}

#[test]
fn the_first_cause_is_read_where_it_stands_some_lines_above() {
    for (text, want, why) in [
        (
            "ERROR: Cannot install torch and torchaudio because these package versions have conflicting dependencies.\nTraceback (most recent call last):\n  File \"main.py\", line 1, in <module>\n    import torch\nModuleNotFoundError: No module named 'torch'\n",
            VerdictId::MissingDependency,
            "torch_not_for_this_python",
        ),
        (
            "ERROR: torch-2.10.0+rocm7.1-cp312-cp312-linux_x86_64.whl is not a supported wheel on this platform.\nTraceback (most recent call last):\n  File \"main.py\", line 1, in <module>\n    import torch\nModuleNotFoundError: No module named 'torch'\n",
            VerdictId::MissingDependency,
            "wheel_of_another_python",
        ),
        (
            "[rank0]: Traceback (most recent call last):\n[rank0]:   File \"generate.py\", line 5, in <module>\n[rank0]: torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:268, unhandled system error\ntorch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n",
            VerdictId::AppError,
            "cards_cannot_talk",
        ),
    ] {
        let got = judge(text);
        assert_eq!(got.verdict, want, "{text}: {}", got.sentence);
        assert_eq!(cause(&got), Some(why), "{text}");
    }
    // a rank's own error is quoted where no cause is known
    let got = judge(
        "[rank0]: Traceback (most recent call last):\n[rank0]:   File \"generate.py\", line 5, in <module>\n[rank0]: ValueError: the frame count is odd\ntorch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n",
    );
    assert_eq!(got.verdict, VerdictId::AppError);
    assert!(
        got.sentence.contains("frame count is odd"),
        "{}",
        got.sentence
    );
}
