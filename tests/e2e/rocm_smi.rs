//! The real librocm_smi64 at the imitated card, through our bindings: its values, and
//! each of the ways in which it fails.
//!
//! `fake-amdgpu run` gives each test a `/dev/shm` of its own, where the library's locks
//! lie, so they neither meet nor stay.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use framepack_tui::model::sample::SourceState;
use framepack_tui::model::{Bytes, Event, GpuSample, Metric, Opinion, SourceStatus};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::{BINARY, Card, Finished, Home, Running, Start};

const LIMIT: Duration = Duration::from_mins(2);
const LIBRARY: &str = "FPT_ROCM_SMI_LIBRARY";

/// The reader alone, inside the tree.
struct Reader {
    child: Child,
    stdin: ChildStdin,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Reader {
    fn start(card: &Card) -> Self {
        let mut command = card.inside(BINARY);
        command.arg("rocm-smi-reader").env_remove(LIBRARY);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        Self {
            stdin: child.stdin.take().unwrap(),
            lines: BufReader::new(child.stdout.take().unwrap()).lines(),
            child,
        }
    }

    fn line(&mut self) -> Value {
        serde_json::from_str(&self.lines.next().unwrap().unwrap()).unwrap()
    }

    fn ask(&mut self) -> Value {
        writeln!(self.stdin, "{}", Card::ADDRESS).unwrap();
        let mut answer = self.line();
        answer["cards"][0].take()
    }
}

/// Whether the library is installed. Without it a test says so, and fails under CI.
fn library_is_there() -> bool {
    let there = Reader::start(&Card::rx7900xtx()).line() != json!("absent");
    let ci = std::env::var("CI").is_ok_and(|v| v == "true");
    assert!(there || !ci, "librocm_smi64 must be installed under CI");
    if !there {
        println!("librocm_smi64 is not installed (Debian: librocm-smi64-1): nothing tested");
    }
    there
}

#[test]
fn values_are_those_set_and_follow_live_changes() {
    if !library_is_there() {
        return;
    }
    let card = Card::rx7900xtx();
    card.set("busy=42 mem_busy=7 power_w=123.5 cap_w=280 vram_used=17G gtt_used=2G");
    card.set("temp=51 temp_junction=73 temp_mem=66 fan_rpm=1450");
    let mut reader = Reader::start(&card);
    let ready = reader.line();
    assert_eq!(ready["ready"]["lacks"], json!([]), "{ready}");
    let gib = |n: u64| json!({ "ok": n << 30 });
    let expected = json!({
        "id": Card::ADDRESS,
        "busy": { "ok": 42.0 }, "mem_busy": { "ok": 7.0 },
        "power_w": { "ok": 123.5 }, "power_cap_w": { "ok": 280.0 },
        "vram_used": gib(17), "vram_total": gib(24),
        "gtt_used": gib(2), "gtt_total": gib(16),
        "temp_edge": { "ok": 51.0 }, "temp_junction": { "ok": 73.0 },
        "temp_mem": { "ok": 66.0 }, "fan_rpm": { "ok": 1450.0 },
    });
    assert_eq!(reader.ask(), expected);
    card.set("busy=98 power_w=301 vram_used=20G temp_junction=90 fan_rpm=2100");
    let mut later = expected;
    for (name, value) in [
        ("busy", json!({ "ok": 98.0 })),
        ("power_w", json!({ "ok": 301.0 })),
        ("vram_used", gib(20)),
        ("temp_junction", json!({ "ok": 90.0 })),
        ("fan_rpm", json!({ "ok": 2100.0 })),
    ] {
        later[name] = value;
    }
    assert_eq!(reader.ask(), later);
    // the end of its input is its end
    drop(reader.stdin);
    assert!(reader.child.wait().unwrap().success());
}

#[test]
fn what_an_apu_does_not_offer_is_not_supported_and_no_zero() {
    if !library_is_there() {
        return;
    }
    let tree = Card::several(&["strixhalo"]);
    let mut reader = Reader::start(&tree);
    reader.line();
    let card = reader.ask();
    for name in [
        "mem_busy",
        "power_cap_w",
        "temp_junction",
        "temp_mem",
        "fan_rpm",
    ] {
        assert_eq!(card[name], "not_supported", "{name} of {card}");
    }
    assert_eq!(card["gtt_total"], json!({ "ok": 120u64 << 30 }));
}

/// A run of a command that does nothing for longer than the test.
fn start<'a>(home: &'a Home, card: &'a Card, library: Option<&Path>) -> Running<'a> {
    let start = Start::new(home).card(card).command(&["sleep", "300"]);
    match library {
        Some(library) => start.env(LIBRARY, library).start(),
        None => start.start(),
    }
}

fn wait_for_source(run: &mut Running<'_>, wanted: SourceState, words: &str) -> SourceStatus {
    let is_it = |s: &SourceStatus| {
        let why = s.why.as_deref().unwrap_or_default();
        s.name == "rocm-smi" && s.state == wanted && why.contains(words)
    };
    // every sample carries the sources; an event tells only a changed state
    let found = |e: &Event| match e {
        Event::Sample(s) => s.sources.iter().find(|s| is_it(s)).cloned(),
        _ => None,
    };
    let what = format!("rocm-smi {wanted:?} `{words}`");
    let heard = run.wait_for(&what, LIMIT, |e| found(e).is_some());
    found(&heard.envelope.event).unwrap()
}

fn wait_for_card(
    run: &mut Running<'_>,
    what: &str,
    is_it: impl Fn(&GpuSample) -> bool,
) -> GpuSample {
    let heard = run.wait_for(
        what,
        LIMIT,
        |e| matches!(e, Event::Sample(s) if s.gpus.first().is_some_and(&is_it)),
    );
    match heard.envelope.event {
        Event::Sample(s) => s.gpus[0].clone(),
        other => unreachable!("{other:?}"),
    }
}

/// Ends the run; sysfs must have gone on to the last sample.
fn end(run: Running<'_>) -> Finished {
    run.signal(Signal::INT);
    let run = run.finish(LIMIT);
    let last = run.all(|e| match e {
        Event::Sample(s) => s.gpus.first().cloned(),
        _ => None,
    });
    let vram = &last.last().unwrap().vram_total;
    assert_eq!(vram, &Metric::Fresh(Bytes(24 << 30)), "{}", run.digest());
    run
}

fn second(card: &GpuSample) -> &Opinion {
    card.second.as_deref().unwrap()
}

#[test]
fn a_read_error_that_the_library_makes_a_zero_is_told() {
    if !library_is_there() {
        return;
    }
    let (home, card) = (Home::new(), Card::rx7900xtx());
    card.set("busy=42 power_w=120");
    let mut run = start(&home, &card, None);
    let well = wait_for_card(&mut run, "an opinion", |c| {
        c.second
            .as_ref()
            .is_some_and(|s| s.busy == Metric::Fresh(42.0))
    });
    assert_eq!(well.disagreements, []);
    assert_eq!(second(&well).source, "rocm-smi");
    card.break_file("gpu_busy_percent", "eio");
    let told = wait_for_card(&mut run, "a contradiction", |c| {
        !c.disagreements.is_empty()
            && c.second
                .as_ref()
                .is_some_and(|s| s.busy == Metric::Fresh(0.0))
    });
    assert!(
        matches!(told.busy, Metric::Failed { .. }),
        "never a zero: {told:?}"
    );
    let contradiction = &told.disagreements[0];
    assert_eq!(contradiction.value, "busy");
    assert!(
        contradiction.first.contains("Input/output error"),
        "{contradiction:?}"
    );
    assert_eq!(contradiction.second, "0 %");
    let note = contradiction.note.as_deref();
    assert_eq!(note, Some("librocm_smi64 says 0 where it cannot read"));
    card.break_file("gpu_busy_percent", "ok");
    card.set("busy=42");
    wait_for_card(&mut run, "agreement", |c| {
        c.disagreements.is_empty() && c.busy == Metric::Fresh(42.0)
    });
    end(run);
}

/// 5.x aborts, built with assertions as Debian's is; 7.x says that there is none.
#[test]
fn an_abort_is_survived_and_said() {
    if !library_is_there() {
        return;
    }
    let (home, card) = (Home::new(), Card::rx7900xtx());
    card.hide_hwmon();
    let mut run = start(&home, &card, None);
    let off = wait_for_source(&mut run, SourceState::Failing, "switched off");
    let why = off.why.unwrap();
    assert!(why.contains("aborted (signal 6)"), "{why}");
    assert!(why.contains("Assertion"), "the library's last words: {why}");
    assert!(why.ends_with("sysfs goes on"), "{why}");
    end(run);
}

/// Readers are killed while they are busy until one has held the lock.
const LEAVE_A_LOCK: &str = r#"
n=0
while [ $n -lt 40 ]; do
  yes 0000:03:00.0 2>/dev/null | "$1" rocm-smi-reader >/dev/null 2>&1 &
  sleep 0.4; kill -9 $!; wait
  if echo | "$1" rocm-smi-reader 2>/dev/null | grep -q init_failed; then exec "$@"; fi
  n=$((n+1))
done
echo "no lock was left behind" >&2; exit 99"#;

#[test]
fn a_lock_left_behind_is_named_with_its_cure() {
    if !library_is_there() {
        return;
    }
    let (home, card) = (Home::new(), Card::rx7900xtx());
    let wrapper = ["sh", "-c", LEAVE_A_LOCK, "sh"];
    let start = Start::new(&home).card(&card).through(&wrapper);
    let mut run = start.command(&["sleep", "300"]).start();
    let stuck = wait_for_source(&mut run, SourceState::Failing, "lock");
    let why = stuck.why.unwrap();
    assert!(why.contains("cure: rm /dev/shm/rocm_smi_"), "{why}");
    end(run);
}

/// Builds a library that stands in for the real one.
fn stub(home: &Home, source: &str) -> PathBuf {
    let (c, so) = (home.path("stub.c"), home.path("librocm_smi64_stub.so"));
    std::fs::write(&c, source).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-o"]).arg(&so).arg(&c);
    assert!(cc.status().unwrap().success(), "cc builds the stub");
    so
}

const ONE_CARD: &str = "
int rsmi_init(unsigned long flags) { return 0; }
int rsmi_num_monitor_devices(unsigned *n) { *n = 1; return 0; }
int rsmi_dev_pci_id_get(unsigned card, unsigned long *id) { *id = 0x300; return 0; }
";

#[test]
fn a_library_without_some_functions_gives_the_rest() {
    let (home, card) = (Home::new(), Card::rx7900xtx());
    let source = format!(
        "{ONE_CARD}int rsmi_dev_busy_percent_get(unsigned card, unsigned *busy) {{ *busy = 55; return 0; }}"
    );
    let mut run = start(&home, &card, Some(&stub(&home, &source)));
    let old = wait_for_source(&mut run, SourceState::Failing, "too old for");
    let why = old.why.unwrap();
    assert!(why.contains("fan (rsmi_dev_fan_rpms_get)"), "{why}");
    assert!(!why.contains("rsmi_dev_busy_percent_get"), "{why}");
    // and a lasting contradiction is told: sysfs reads 0 %
    let told = wait_for_card(&mut run, "a contradiction", |c| !c.disagreements.is_empty());
    assert_eq!(second(&told).busy, Metric::Fresh(55.0));
    assert_eq!(second(&told).power_w, Metric::Unsupported);
    assert_eq!(told.busy, Metric::Fresh(0.0), "never in the place of sysfs");
    let contradiction = &told.disagreements[0];
    assert_eq!(
        (&*contradiction.first, &*contradiction.second),
        ("0 %", "55 %")
    );
    end(run);
}

#[test]
fn a_library_without_the_needed_functions_is_of_no_use() {
    let (home, card) = (Home::new(), Card::rx7900xtx());
    let so = stub(&home, "int rsmi_init(unsigned long flags) { return 0; }");
    let mut run = start(&home, &card, Some(&so));
    let useless = wait_for_source(&mut run, SourceState::Failing, "of no use");
    let why = useless.why.unwrap();
    assert!(why.contains("rsmi_num_monitor_devices"), "{why}");
    end(run);
}

#[test]
fn a_library_that_hangs_is_stale_then_off_and_delays_nothing() {
    let (home, card) = (Home::new(), Card::rx7900xtx());
    let source = format!(
        "#include <unistd.h>\n{ONE_CARD}int rsmi_dev_busy_percent_get(unsigned card, unsigned *busy) {{ sleep(600); return 0; }}"
    );
    let mut run = start(&home, &card, Some(&stub(&home, &source)));
    wait_for_source(&mut run, SourceState::Stale, "no answer");
    let off = wait_for_source(&mut run, SourceState::Failing, "switched off");
    assert!(off.why.unwrap().contains("twice: no answer for 10 s"));
    end(run);
}

#[test]
fn a_library_that_is_not_there_says_so() {
    let (home, card) = (Home::new(), Card::rx7900xtx());
    let mut run = start(&home, &card, Some(Path::new("/no/such/librocm_smi64.so")));
    let none = wait_for_source(&mut run, SourceState::Failing, "does not load");
    assert!(none.why.unwrap().contains("/no/such/librocm_smi64.so"));
    end(run);
}
