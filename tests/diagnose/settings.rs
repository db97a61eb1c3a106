//! Cures of pasted logs in which the program printed its settings: nothing that is in force
//! is advised, and what is at fault is named. The texts are of our own making.

use std::fs;

use framepack_tui::diagnose::{Source, diagnose};

fn cure(text: &str) -> (String, String) {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("pasted.txt");
    fs::write(&path, text).unwrap();
    let report = diagnose(&Source::at(&path).unwrap()).unwrap();
    let cause = report.cause.map(|c| c.id).unwrap_or_default();
    (cause, report.action.why)
}

/// ComfyUI up to a job that runs out of memory.
fn comfyui(settings: &str, job: &str, error: &str) -> String {
    format!(
        "Total VRAM 16368 MB, total RAM 64210 MB\nAMD arch: gfx1101\n{settings}\nStarting server\n\
         To see the GUI go to: http://127.0.0.1:8188\ngot prompt\n{job}\n\
         !!! Exception during processing !!! {error}\nTraceback (most recent call last):\n  \
         File \"execution.py\", line 510, in execute\ntorch.OutOfMemoryError: {error}\n\n\
         Prompt executed in 9.10 seconds\n"
    )
}

const OOM: &str = "HIP out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.98 GiB of which 1.20 GiB is free.";
const STEP: &str = "  25%|##5       | 5/20 [00:40<02:00,  8.0s/it]";

struct Case {
    text: String,
    cause: &'static str,
    says: &'static str,
    never: &'static [&'static str],
}

fn cases() -> Vec<Case> {
    let case = |text: String, cause, says, never| Case {
        text,
        cause,
        says,
        never,
    };
    let load = "Requested to load WAN21";
    let raised = format!(
        "Traceback (most recent call last):\n  File \"run.py\", line 3\ntorch.OutOfMemoryError: {OOM}\n"
    );
    vec![
        case(
            comfyui("Set vram state to: NORMAL_VRAM", load, OOM),
            "load_does_not_fit",
            "--lowvram",
            &[],
        ),
        case(
            comfyui("Set vram state to: LOW_VRAM", load, OOM),
            "low_vram_already",
            "quantised",
            &["--lowvram", "--novram"],
        ),
        case(
            comfyui(
                "Set vram state to: NORMAL_VRAM\nDynamicVRAM support detected and enabled",
                STEP,
                OOM,
            ),
            "dynamic_vram_already",
            "fewer frames",
            &["--lowvram"],
        ),
        case(
            comfyui("Set vram state to: HIGH_VRAM", STEP, OOM),
            "high_vram_mode",
            "--highvram",
            &["--lowvram"],
        ),
        case(
            format!(
                "High-VRAM Mode: True\nlatent_padding_size = 9, is_last_section = False\n{STEP}\n{raised}"
            ),
            "framepack_high_vram_mode",
            "high_vram = False",
            &["--highvram"],
        ),
        case(
            format!(
                "High-VRAM Mode: False\nlatent_padding_size = 9, is_last_section = False\n\
                 Moving DynamicSwap_HunyuanVideoTransformer3DModelPacked to cuda:0 with preserved memory: 6 GB\n{STEP}\n{raised}"
            ),
            "framepack_preserves_too_little",
            "above 6 GB",
            &["--highvram"],
        ),
        case(
            format!(
                "INFO:musubi_tuner.wan_generate_video:Using device: cuda\n\
                 INFO:musubi_tuner.wan_generate_video:Enable swap 20 blocks to CPU from device: cuda\n{STEP}\n{raised}"
            ),
            "musubi_swaps_already",
            "above 20",
            &["--blocks_to_swap 20"],
        ),
        case(
            format!(
                "Loading Model 'ckpts/wan.safetensors' ...\nProfile 'VerylowRAM_LowVRAM' sets the following options:\n{STEP}\n\
                 Traceback (most recent call last):\n  File \"/o/Wan2GP/wgp.py\", line 7868, in generate_media\ntorch.OutOfMemoryError: {OOM}\n"
            ),
            "wangp_smallest_profile",
            "fewer frames",
            &["--profile"],
        ),
    ]
}

#[test]
fn nothing_that_is_in_force_is_advised() {
    for c in cases() {
        let (cause, why) = cure(&c.text);
        assert_eq!(cause, c.cause, "{}\n{why}", c.text);
        assert!(why.contains(c.says), "{cause}: {why}");
        for never in c.never {
            assert!(!why.contains(never), "{cause}: {why}");
        }
        assert!(!why.contains("[[") && !why.contains("]]"), "{why}");
    }
}
