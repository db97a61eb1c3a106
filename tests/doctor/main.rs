//! `framepack-tui doctor`, the real binary, on machines where something is missing,
//! forbidden, broken or wrong.
//!
//! Each test has a private mount namespace (root, or unprivileged user namespaces).
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod world;

use std::time::Duration;

use serde_json::{Value, json};
use world::World;

/// An answer of a Python with torch for ROCm in `folder`.
fn rocm(folder: &str) -> Value {
    json!({
        "version": "3.12.3", "executable": "/v/bin/python", "prefix": "/v",
        "packages": {"torch": "2.9.1+rocm6.4", "torchvision": "0.24.1", "av": "16.0"},
        "torch": {"version": "2.9.1+rocm6.4", "hip": "6.4.43484", "cuda": null, "folder": folder},
        "write_video": true, "rocm_sdk": [],
    })
}

/// A Python with this answer, by the name that one has.
fn named_python(world: &World, answer: &Value) -> String {
    let path = world.at("bin/python3.12");
    std::fs::copy(world.python_that_says(answer), &path).unwrap();
    path
}

/// A folder of torch with a libMIOpen and kernels for the card.
fn torch_folder(world: &World) -> String {
    world.put(
        "torch/lib/libMIOpen.so.1",
        b"\x7fELF\0\0MIOPEN_FIND_MODE\0MIOPEN_FIND_ENFORCE\0MIOPEN_LOG_LEVEL\0\
          MIOPEN_ENABLE_LOGGING_CMD\0MIOPEN_DEBUG_CONV_DIRECT_NAIVE_CONV_FWD\0\x003.4.0.0123abcd\0",
    );
    world.put(
        "torch/lib/rocblas/library/TensileLibrary_lazy_gfx1100.dat",
        "",
    );
    world.at("torch")
}

#[test]
fn a_machine_in_order_is_clean() {
    let mut world = World::with_card();
    world.devices("0666");
    let folder = torch_folder(&world);
    let python = world.python_that_says(&rocm(&folder));
    let seen = world.doctor(&["--python", &python]);
    assert!(
        seen.text_of("card_ok", "what").contains("gfx1100"),
        "{}",
        seen.text
    );
    assert_eq!(seen.all("device_ok").len(), 2);
    assert!(seen.text_of("torch_ok", "what").contains("HIP 6.4"));
    assert!(seen.text_of("miopen_ok", "what").contains("MIOpen 3.4.0"));
    let sources = seen.json["facts"]["sources"].as_array().unwrap();
    let card = sources
        .iter()
        .find(|s| s["name"] == "sysfs 0000:03:00.0")
        .unwrap();
    assert!(card["first_ms"].as_f64().unwrap() > 0.0, "{card}");
    assert!(card["read_ms"].is_f64(), "read more than once: {card}");
    let errors = &seen.json["summary"]["errors"];
    assert_eq!(errors, 0, "{}", seen.text);
}

#[test]
fn without_sys_it_says_so_and_goes_on() {
    let mut world = World::new();
    world.before("mount -t tmpfs none /sys");
    let seen = world.doctor(&[]);
    assert_eq!(seen.code, 1, "{}", seen.text);
    assert!(
        seen.text_of("sys_missing", "what")
            .contains("/sys is not mounted")
    );
    assert!(seen.has("no_card"));
    assert!(
        !seen.has("kfd_missing"),
        "nothing says that there is an AMD card"
    );
    assert!(seen.has("room_ok"), "the other looks go on");
}

#[test]
fn without_rights_no_group_that_opens_nothing_is_advised() {
    let mut world = World::with_card();
    world.devices("0000");
    world.as_nobody();
    let seen = world.doctor(&[]);
    assert_eq!(seen.code, 2, "{}", seen.text);
    let what = seen.text_of("kfd_not_accessible", "what");
    assert!(what.starts_with("/dev/kfd may not be opened by "), "{what}");
    assert!(what.ends_with("permission denied"), "{what}");
    let cure = seen.text_of("kfd_not_accessible", "cure");
    // the mode opens it to no group, and the group may be root
    assert!(cure.contains("to the group render"), "{cure}");
    assert!(!cure.contains("-aG root"), "{cure}");
    assert!(seen.has("render_not_accessible"));
    let devices = seen.json["facts"]["devices"]["known"].as_array().unwrap();
    assert!(devices.iter().all(|d| d["accessible"] == false));
    // the home belongs to another user: MIOpen will fail at its first convolution
    if rustix::process::geteuid().is_root() {
        assert!(seen.has("folder_not_writable"), "{}", seen.text);
    }
}

#[test]
fn a_closed_kernel_log_is_told_with_its_cure() {
    let mut world = World::with_card();
    world.devices("0666");
    let kmsg = world.put("dev/kmsg", "");
    world.before(format!("chmod 0000 {kmsg} /dev/kmsg"));
    world.as_nobody();
    let bin = world.at("bin");
    let path = std::env::var("PATH").unwrap();
    world.env("PATH", &format!("{bin}:{path}"));
    let journals = [
        "echo 'No journal files were opened due to insufficient permissions.' >&2; sleep 9",
        "echo 'Hint: You are currently not seeing messages from other users.' >&2; sleep 9",
    ];
    for journal in journals {
        world.program("bin/journalctl", &format!("#!/bin/sh\n{journal}\n"));
        let seen = world.doctor(&[]);
        let text = seen.text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            !text.contains("kernel log is not on this machine"),
            "{text}"
        );
        let closed = seen.all("source_failing");
        let log = closed
            .iter()
            .find(|f| f["what"].as_str().unwrap().starts_with("kernel log"))
            .unwrap_or_else(|| panic!("{}", seen.text));
        assert_eq!(log["severity"], "note");
        let cure = log["cure"].as_str().unwrap();
        for word in ["adm", "systemd-journal", "kernel.dmesg_restrict"] {
            assert!(cure.contains(word), "{cure}");
        }
    }
}

#[test]
fn a_card_without_device_nodes_is_an_error() {
    let mut world = World::with_card();
    world.before(format!(
        "mkdir -p {0} && touch {0}/null && mount --bind /dev/null {0}/null && mount --rbind {0} /dev",
        world.at("dev")
    ));
    let seen = world.doctor(&[]);
    assert_eq!(seen.code, 2);
    assert!(
        seen.has("kfd_missing") && seen.has("render_missing"),
        "{}",
        seen.text
    );
}

#[test]
fn a_home_that_cannot_be_written_to_is_told_with_its_reason() {
    let mut world = World::with_card();
    let home = world.at("home");
    world.before(format!(
        "mount --bind {home} {home} && mount -o remount,ro,bind {home}"
    ));
    let seen = world.doctor(&[]);
    assert_eq!(seen.code, 2, "{}", seen.text);
    let folders = seen.all("folder_not_writable");
    assert_eq!(folders.len(), 2, "database and kernel cache: {}", seen.text);
    for folder in folders {
        let what = folder["what"].as_str().unwrap();
        assert!(what.ends_with("read-only file system"), "{what}");
        let cure = folder["cure"].as_str().unwrap();
        assert!(cure.contains("MIOPEN_USER_DB_PATH"), "{cure}");
    }
    assert!(
        seen.text_of("place_not_writable", "what")
            .contains("your home")
    );
    assert!(!world.path("home/.config").exists(), "nothing is made");
}

#[test]
fn a_python_that_hangs_is_killed_with_what_it_started() {
    let world = World::new();
    let python = world.program(
        "bin/hanging-python",
        &format!(
            "#!/bin/sh\nsleep 1000 &\necho $! >> {0}\necho $$ >> {0}\nwait\n",
            world.at("pids")
        ),
    );
    let seen = world.doctor(&["--python", &python, "--timeout", "1"]);
    assert_eq!(seen.code, 1, "{}", seen.text);
    let what = seen.text_of("python_no_answer", "what");
    assert!(
        what.ends_with("gave no answer within 1 s and was killed"),
        "{what}"
    );
    let pids = std::fs::read_to_string(world.path("pids")).unwrap();
    assert_eq!(pids.lines().count(), 4, "two reports: {pids}");
    for pid in pids.lines() {
        let alive = || {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
            stat.is_ok_and(|s| !s.contains(") Z "))
        };
        for _ in 0..100 {
            if !alive() {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        assert!(!alive(), "{pid} outlives the report");
    }
}

#[test]
fn a_python_that_is_missing_or_prints_something_else_is_told_as_that() {
    let world = World::new();
    let missing = world.doctor(&["--python", "/nowhere/python"]);
    assert_eq!(missing.code, 1);
    assert!(
        missing
            .text_of("python_missing", "what")
            .contains("/nowhere/python")
    );
    assert!(!missing.has("torch_missing"), "nothing is known of torch");
    let garbage = world.program(
        "bin/garbage",
        "#!/bin/sh\nprintf 'hello \\033[2J \\377\\n'; echo trouble >&2; exit 3\n",
    );
    let seen = world.doctor(&["--python", &garbage]);
    let what = seen.text_of("python_failed", "what");
    assert!(what.contains("hello") && what.contains("trouble"), "{what}");
    assert!(what.contains("exit status: 3"), "{what}");
    let endless = world.program("bin/endless", "#!/bin/sh\nyes y\n");
    let seen = world.doctor(&["--python", &endless, "--timeout", "2"]);
    assert!(
        seen.has("python_no_answer") || seen.has("python_failed"),
        "{}",
        seen.text
    );
}

#[test]
fn the_real_probe_reads_torch_without_starting_it() {
    let mut world = World::with_card();
    let started = world.at("started");
    world.put(
        "site/torch/__init__.py",
        format!("open({started:?}, 'w')\nraise RuntimeError('imported')\n"),
    );
    world.put(
        "site/torch/version.py",
        "from typing import Optional\n__version__ = '2.9.0+cu128'\ncuda: Optional[str] = '12.8'\nhip: Optional[str] = None\n",
    );
    world.put("site/torchvision/__init__.py", "");
    world.put(
        "site/torchvision/io/video.py",
        "from ..fb import write_video\n",
    );
    let site = world.at("site");
    world.env("PYTHONPATH", &site);
    // modules of the working directory with names of the standard library
    for name in ["json", "re", "sysconfig", "email", "csv"] {
        world.put(
            &format!("work/{name}.py"),
            format!("open({started:?}, 'w')\nraise RuntimeError('imported')\n"),
        );
    }
    let seen = world.doctor(&["--", "python3", "demo_gradio.py"]);
    assert_eq!(seen.code, 2, "{}", seen.text);
    let what = seen.text_of("torch_wrong_build", "what");
    assert_eq!(
        what,
        "torch 2.9.0+cu128 is built for CUDA 12.8; the card is AMD's"
    );
    assert_eq!(seen.the("no_video_writer")["severity"], "error");
    assert!(!world.path("started").exists(), "torch was imported");
    assert_eq!(seen.json["facts"]["python"]["chosen_by"], "the command");
    assert!(!seen.has("python_guessed"));
}

#[test]
fn naive_records_unread_names_and_misleading_values_are_found() {
    let mut world = World::with_card();
    let folder = torch_folder(&world);
    let python = world.python_that_says(&rocm(&folder));
    let key = "96-6-482-834-3x3x3-96-4-480-832-1-0x0x0-1x1x1-1x1x1-0-NCDHW-FP16-F";
    world.put(
        "home/.config/miopen/gfx1100_48.HIP.3_4_0_0123abcd.ufdb.txt",
        format!(
            "{key}=ConvDirectNaiveConvFwd:8123.4,0,miopenConvolutionFwdAlgoDirect\n\
             1-2=GemmFwdRest:1.5,0,miopenConvolutionFwdAlgoGEMM\nbroken\n"
        ),
    );
    world.env("MIOPEN_SEARCH_CUTOFF", "1");
    world.env("MIOPEN_FIND_MODE", "DYNAMIC");
    world.env("MIOPEN_FIND_TIME_LIMIT", "30");
    world.env("PYTORCH_HIP_ALLOC_CONF", "expandable_segments:True");
    world.env("HSA_OVERRIDE_GFX_VERSION", "10.3.0");
    let seen = world.doctor(&["--python", &python]);
    assert_eq!(seen.code, 2, "{}", seen.text);
    let what = seen.text_of("naive_records", "what");
    assert!(
        what.starts_with("1 of 2 records") && what.ends_with(key),
        "{what}"
    );
    assert!(seen.text_of("bad_records", "what").starts_with("1 lines"));
    let ignored = seen.text_of("miopen_name_ignored", "what");
    assert!(
        ignored.ends_with("MIOPEN_SEARCH_CUTOFF (read from ROCm 7.11 on)"),
        "{ignored}"
    );
    assert_eq!(seen.the("env_bad_value")["severity"], "error");
    assert!(seen.has("env_no_effect"));
    assert!(
        seen.text_of("allocator_deprecated", "cure")
            .contains("PYTORCH_ALLOC_CONF")
    );
    assert_eq!(seen.the("gfx_override_needless")["severity"], "warning");
    let names = &seen.json["facts"]["libraries"]["known"]["miopen"]["known"]["names"];
    assert_eq!(names.as_array().unwrap().len(), 5, "{names}");
}

#[test]
fn a_read_that_blocks_costs_its_own_answer_only() {
    let world = World::with_card();
    world.tool(&["break", "ROOT", "card0", "gpu_busy_percent", "stall"]);
    let seen = world.doctor(&[]);
    // a second opinion that reads the same file may be silent as well
    let silent = seen.all("source_no_answer");
    let of_card = "sysfs 0000:03:00.0 gives no answer";
    assert!(
        silent
            .iter()
            .any(|f| f["what"].as_str().unwrap().starts_with(of_card)),
        "{}",
        seen.text
    );
    assert!(seen.has("source_ok"), "the others answer: {}", seen.text);
    assert!(
        !seen.has("no_card"),
        "a silent card is a card: {}",
        seen.text
    );
}

#[test]
fn comfyui_is_known_by_its_folder() {
    let world = World::with_card();
    for name in [
        "work/main.py",
        "work/nodes.py",
        "work/comfy/x",
        "work/custom_nodes/x",
    ] {
        world.put(name, "");
    }
    let seen = world.doctor(&[]);
    assert!(seen.has("comfyui_miopen_off"), "{}", seen.text);
    let gone = world.doctor(&["--", "no-such-program"]);
    assert_eq!(gone.the("command_missing")["severity"], "error");
    assert!(gone.has("python_guessed"));
}

#[test]
fn a_script_is_looked_for_where_the_command_would_run() {
    let mut world = World::with_card();
    world.devices("0666");
    let folder = torch_folder(&world);
    let python = named_python(&world, &rocm(&folder));
    let gone = world.doctor(&["--", &python, "-u", "demo_gradio.py", "--port", "1"]);
    assert_eq!(gone.code, 2, "{}", gone.text);
    let what = gone.text_of("command_missing", "what");
    let path = world.at("work/demo_gradio.py");
    assert_eq!(what, format!("the script {path} was not found"));
    let workload = &gone.json["facts"]["workload"];
    assert_eq!(workload["script"], path.as_str());
    assert_eq!(workload["script_found"], false);
    world.put("elsewhere/demo_gradio.py", "");
    let there = world.doctor(&[
        "--cwd",
        &world.at("elsewhere"),
        "--",
        &python,
        "demo_gradio.py",
    ]);
    assert!(!there.has("command_missing"), "{}", there.text);
    assert_eq!(there.json["facts"]["workload"]["script_found"], true);
}

#[test]
fn framepack_without_torchvision_is_an_error() {
    let world = World::with_card();
    let folder = torch_folder(&world);
    let mut answer = rocm(&folder);
    answer["write_video"] = Value::Null;
    answer["packages"]
        .as_object_mut()
        .unwrap()
        .remove("torchvision");
    let python = named_python(&world, &answer);
    world.put("work/demo_gradio.py", "");
    let seen = world.doctor(&["--", &python, "demo_gradio.py"]);
    assert_eq!(seen.the("no_video_writer")["severity"], "error");
    let cure = seen.text_of("no_video_writer", "cure");
    assert!(cure.contains("torch==2.9.1+rocm6.4 torchvision"), "{cure}");
}
