//! What a pasted log shows of a hang: by its own times, by an interrupt, or by where it ends.

use std::fs;

use framepack_tui::diagnose::report::Report;
use framepack_tui::diagnose::{Source, diagnose};
use framepack_tui::model::{ActionId, Health, Phase, VerdictId};

fn judge(text: &str) -> Report {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("pasted.txt");
    fs::write(&path, text).unwrap();
    diagnose(&Source::at(&path).unwrap()).unwrap()
}

/// A job of ComfyUI up to its decode; `at`: what stands before each line.
fn comfyui(at: impl Fn(u32) -> String) -> String {
    let lines = [
        "Total VRAM 24560 MB, total RAM 64000 MB",
        "pytorch version: 2.8.0+rocm6.4",
        "Device: cuda:0 AMD Radeon RX 7900 XTX : native",
        "To see the GUI go to: http://127.0.0.1:8188",
        "got prompt",
        "Requested to load WAN21",
        "100%|##########| 20/20 [05:28<00:00, 16.40s/it]",
        "Requested to load WanVAE",
        "loaded completely; 14011.30 MB usable, 242.03 MB loaded, full load: True",
    ];
    let rows = (0..).zip(lines);
    let parts = rows.flat_map(|(n, line)| [at(n), line.to_owned(), "\n".to_owned()]);
    parts.collect()
}

fn timed(n: u32) -> String {
    format!("2026-10-01 10:{n:02}:00,100 ")
}

#[test]
fn a_job_of_which_nothing_came_for_hours_is_a_hang() {
    for after in [
        "Stopping server",
        "Exiting",
        "INFO: Shutting down",
        "GET /queue HTTP/1.1",
    ] {
        let text = comfyui(timed) + &format!("2026-10-01 12:10:00,100 {after}\n");
        let got = judge(&text);
        assert_eq!(got.verdict, VerdictId::SilentHang, "{after}");
        assert_eq!((got.health, got.phase), (Health::Hung, Phase::VaeDecode));
        assert_eq!(got.action.id, ActionId::FastFind);
        assert!(
            got.action.why.contains("VAE Decode (Tiled)"),
            "{}",
            got.action.why
        );
        assert!(
            got.sentence.contains("02:02:00 after line 9"),
            "{}",
            got.sentence
        );
        assert_eq!(got.findings[0].cites[0].line, Some(9));
    }
}

#[test]
fn a_job_that_went_on_or_was_short_is_none() {
    let long = comfyui(timed) + "2026-10-01 12:10:00,100 Prompt executed in 7500.10 seconds\n";
    let short = comfyui(timed) + "2026-10-01 10:12:00,100 Stopping server\n";
    let idle = long.clone() + "2026-10-01 23:10:00,100 Stopping server\n";
    let again = long.clone() + "2026-10-01 23:10:00,100 got prompt\n";
    for text in [long, short, idle, again] {
        let got = judge(&text);
        assert!(got.verdict.is_no_fault(), "{text}\n{}", got.sentence);
    }
}

#[test]
fn another_fault_comes_before_the_times() {
    let text = comfyui(timed)
        + "2026-10-01 12:10:00,100 !!! Exception during processing !!! HIP out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of 23.98 GiB\n"
        + "2026-10-01 12:10:00,100 Prompt executed in 7500.10 seconds\n";
    assert_eq!(judge(&text).verdict, VerdictId::GpuOom);
}

#[test]
fn where_a_text_ends_at_work_it_says_what_to_do_if_that_stands() {
    let got = judge(&comfyui(|_| String::new()));
    assert_eq!(got.verdict, VerdictId::Healthy);
    assert_eq!(got.action.id, ActionId::None);
    let why = &got.action.why;
    assert!(
        why.contains("If it stands still there") && why.contains("MIOPEN_FIND_MODE=FAST"),
        "{why}"
    );
    assert!(
        got.sentence.contains("it ends while the VAE decodes"),
        "{}",
        got.sentence
    );
    // a job that is over, and a server that waits, have no such advice
    for end in [
        "Prompt executed in 400.10 seconds\n",
        "Prompt executed in 400.10 seconds\ngot prompt\nPrompt executed in 0.10 seconds\n",
    ] {
        let why = judge(&(comfyui(|_| String::new()) + end)).action.why;
        assert!(!why.contains("stands still"), "{end}: {why}");
    }
}

#[test]
fn an_interrupt_within_a_decode_says_what_helps_it() {
    let got = judge(
        "Loading pipeline components...: 100%|##########| 5/5 [00:11<00:00,  2.28s/it]
100%|##########| 30/30 [06:01<00:00, 12.03s/it]
^CTraceback (most recent call last):
  File \"/srv/wan/run.py\", line 12, in <module>
    frames = pipe(prompt=p).frames[0]
  File \"/srv/venv/lib/python3.12/site-packages/diffusers/models/autoencoders/autoencoder_kl_wan.py\", line 1247, in decode
    decoded = self._decode(z).sample
KeyboardInterrupt
",
    );
    assert_eq!(
        (got.verdict, got.phase),
        (VerdictId::Killed, Phase::VaeDecode)
    );
    assert!(
        got.action.why.contains("If it stood still there"),
        "{}",
        got.action.why
    );
}

#[test]
fn a_download_whose_bar_stands_is_a_stall() {
    let bar = |done: &str, took: &str| {
        format!(
            "model-00001-of-00003.safetensors:  12%|#2        | {done}/4.99G [{took}<2:24:44, 503kB/s]\n"
        )
    };
    let head = "Fetching 3 files:   0%|          | 0/3 [00:00<?, ?it/s]\n".to_owned();
    let stands = head.clone() + &bar("619M", "00:41") + &bar("619M", "20:41");
    let got = judge(&stands);
    assert_eq!(
        (got.verdict, got.action.id),
        (VerdictId::DownloadStall, ActionId::ResumeDownload)
    );
    let goes_on = head + &bar("619M", "00:41") + &bar("640M", "20:41");
    assert!(judge(&goes_on).verdict.is_no_fault());
}
