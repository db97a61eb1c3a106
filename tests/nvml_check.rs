//! `scripts/nvml-check` against stubs of `nvidia-smi` and of our program, the latter with
//! the JSON that the model really writes.

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::{Path, PathBuf};
    use std::process::{Command, Output};

    use framepack_tui::model::{
        Bytes, GpuId, GpuSample, Link, Metric, ProcSample, ThrottleReason, TreeOnCard, Vendor,
    };
    use serde_json::json;
    use tempfile::TempDir;

    /// Answers of an H100 under a power cap; the old name of the throttle field and no
    /// decoder, as old drivers have it.
    const SMI: &str = r#"#!/usr/bin/env python3
import sys
card = {
    "pci.bus_id": "00000000:41:00.0", "name": "NVIDIA H100", "memory.total": "81559",
    "memory.used": "9000", "power.draw": "650.5", "enforced.power.limit": "700.00",
    "temperature.gpu": "60", "clocks.current.graphics": "1500", "clocks.current.memory": "2619",
    "utilization.gpu": "100", "utilization.memory": "40", "fan.speed": "[N/A]",
    "pcie.link.gen.current": "5", "pcie.link.width.current": "16", "pcie.link.gen.max": "5",
    "pcie.link.width.max": "16", "clocks_throttle_reasons.active": "0x0000000000000004",
}
query = sys.argv[1].split("=")[1].split(",")
if "compute-apps" in sys.argv[1]:
    print("4242, 8706, 00000000:41:00.0")
    sys.exit(0)
for q in query:
    if q not in card:
        print(f'Field "{q}" is not a valid field to query.'); sys.exit(2)
print(", ".join(card[q] for q in query))
"#;

    fn card() -> GpuSample {
        let id = GpuId("0000:41:00.0".to_owned());
        let mut s = GpuSample::unread(id, 0, Vendor::Nvidia, "NVIDIA H100".to_owned(), "nvml");
        s.vram_total = Metric::Fresh(Bytes(81559 << 20));
        s.vram_used = Metric::Fresh(Bytes(9001 << 20));
        s.power_w = Metric::Fresh(640.0);
        s.power_cap_w = Metric::Fresh(700.0);
        s.temp_edge = Metric::Fresh(61.0);
        s.sclk_mhz = Metric::Fresh(1490.0);
        s.mclk_mhz = Metric::Fresh(2619.0);
        s.busy = Metric::Fresh(99.0);
        s.mem_busy = Metric::Fresh(41.0);
        s.throttle = Metric::Fresh(vec![ThrottleReason::Power]);
        s.link = Metric::Fresh(Link {
            gts: 32.0,
            width: 16,
            max_gts: Some(32.0),
            max_width: Some(16),
        });
        s
    }

    fn tree(vram: u64) -> ProcSample {
        ProcSample {
            pid: 4242,
            on_cards: vec![TreeOnCard {
                gpu: GpuId("0000:41:00.0".to_owned()),
                source: "nvml".to_owned(),
                processes: 1,
                vram: Metric::Fresh(Bytes(vram)),
                gtt: Metric::Unsupported,
                evicted: Metric::Unsupported,
                evicted_ms: Metric::Unsupported,
                queues: Metric::Unsupported,
                cu_occupancy: Metric::Unsupported,
                engines: Vec::new(),
                busy: Metric::Fresh(97.0),
                compute_note: None,
            }],
            ..ProcSample::default()
        }
    }

    fn program(path: &Path, text: &str) {
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Runs the check over a program that says this.
    fn check(card: &GpuSample, tree: &ProcSample, more: &[&str]) -> Output {
        let dir = TempDir::new().unwrap();
        program(&dir.path().join("nvidia-smi"), SMI);
        let sources = json!([{"name": "nvml", "state": "ok", "age_ms": 0, "why": null}]);
        let told = json!({"gpus": [card], "sources": sources});
        fs::write(dir.path().join("gpus"), told.to_string()).unwrap();
        let events = [
            json!({"seq": 1, "at": 1, "event": {"kind": "line", "text": "LOAD 4242 NVIDIA H100"}}),
            json!({"seq": 2, "at": 2, "event": {"kind": "sample", "process": tree}}),
        ];
        let lines: Vec<_> = events.iter().map(ToString::to_string).collect();
        fs::write(dir.path().join("events"), lines.join("\n") + "\n").unwrap();
        let ours = dir.path().join("framepack-tui");
        program(
            &ours,
            "#!/bin/sh\ncd \"$(dirname \"$0\")\"\n[ \"$1\" = gpus ] && exec cat gpus\ncat events\nexec sleep 60\n",
        );
        let path = std::env::var("PATH").unwrap_or_default();
        Command::new("python3")
            .arg(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("scripts/nvml-check"))
            .arg(&ours)
            .args(["--settle", "0.5"])
            .args(more)
            .env("PATH", format!("{}:{path}", dir.path().display()))
            .output()
            .unwrap()
    }

    fn text(output: &Output) -> String {
        String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr)
    }

    #[test]
    fn equal_readings_are_equal() {
        let output = check(&card(), &tree(8706 << 20), &[]);
        let text = text(&output);
        assert_eq!(output.status.code(), Some(0), "{text}");
        assert!(
            text.contains("nothing differs") && !text.contains("DIFFERS"),
            "{text}"
        );
        assert!(text.contains("under load: 0000:41:00.0"), "{text}");
        assert!(text.contains("vram MiB"), "{text}");
    }

    #[test]
    fn each_difference_is_told() {
        let same = tree(8706 << 20);
        let mut cards = Vec::new();
        let mut with = |what: &'static str, change: fn(&mut GpuSample)| {
            let mut card = card();
            change(&mut card);
            cards.push((what, card));
        };
        with("vram_total", |c| {
            c.vram_total = Metric::Fresh(Bytes(81558 << 20));
        });
        with("power_cap", |c| c.power_cap_w = Metric::Unsupported);
        with("fan %", |c| c.fan_percent = Metric::Fresh(0.0));
        with("throttle", |c| c.throttle = Metric::Fresh(Vec::new()));
        with("link GT/s", |c| {
            c.link = c.link.clone().map(|l| Link { gts: 16.0, ..l });
        });
        for (what, card) in cards {
            let output = check(&card, &same, &["--no-load"]);
            let text = text(&output);
            assert_eq!(output.status.code(), Some(1), "{what}: {text}");
            let line = text.lines().find(|l| l.contains("DIFFERS")).unwrap();
            assert!(line.trim().starts_with(what), "{line}");
        }
        let output = check(&card(), &tree(1 << 30), &[]);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    }
}
