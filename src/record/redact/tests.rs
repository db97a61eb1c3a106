//! Planted secrets in every form; and what must stay.

use base64::prelude::{BASE64_STANDARD, Engine};
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn own() -> Own {
    Own {
        homes: vec!["/home/marlene".to_owned()],
        users: vec!["marlene".to_owned()],
        hosts: vec!["tuxbox".to_owned()],
        secrets: vec!["s3cr3t/value+1".to_owned()],
    }
}

fn redactor(with_prompt: bool, lines: &[&str]) -> Redactor {
    let mut redactor = Redactor::new(&own(), with_prompt);
    for line in lines {
        redactor.learn(line);
    }
    redactor.seal();
    redactor
}

#[test]
fn names_have_the_same_placeholder_everywhere() {
    let mut r = redactor(false, &["see /home/bob/x"]);
    for (text, want) in [
        ("/home/marlene/app", "<home>/app"),
        ("marlene@tuxbox: hello", "<user1>@<host>: hello"),
        ("/data/marlene_work", "/data/<user1>_work"),
        ("/home/bob/x of bob", "/home/<user2>/x of <user2>"),
        (
            "/media/bob/disk/m.safetensors",
            "/media/<user2>/disk/m.safetensors",
        ),
        ("marlenes bobbin", "marlenes bobbin"),
        ("/home/user/app", "/home/user/app"),
    ] {
        assert_eq!(r.text(text), want);
    }
    assert_eq!(r.counts()["user"], 5);
}

#[test]
fn a_secret_is_found_in_every_form() {
    let mut r = redactor(false, &["HF_TOKEN=pl4nted-v4lue"]);
    let secret = "pl4nted-v4lue";
    let nested =
        serde_json::to_string(&json!({ "x": json!({"y": "s3cr3t/value+1"}).to_string() })).unwrap();
    for text in [
        secret.to_owned(),
        format!("x{secret}y"),
        secret.to_uppercase(),
        BASE64_STANDARD.encode(format!("user:{secret}")),
        secret
            .bytes()
            .map(|b| format!("%{b:02X}"))
            .collect::<Vec<_>>()
            .concat(),
        secret
            .bytes()
            .map(|b| format!("\\u00{b:02x}"))
            .collect::<Vec<_>>()
            .concat(),
        secret
            .bytes()
            .map(|b| format!("{b:02x}"))
            .collect::<Vec<_>>()
            .concat(),
        "s3cr3t%2Fvalue%2B1 s3cr3t\\/value+1".to_owned(),
        nested,
    ] {
        let redacted = r.text(&text);
        assert!(
            redacted.contains("<token:") || redacted.contains("<data>"),
            "{text}: {redacted}"
        );
        for left in ["v4lue", "value+1", "value%2B1"] {
            assert!(
                !redacted.to_lowercase().contains(left),
                "{text}: {redacted}"
            );
        }
    }
}

/// What is replaced as it stands is replaced in every encoding.
#[test]
fn what_names_a_person_or_a_machine_is_found_in_encodings() {
    let mut r = redactor(false, &["gen.py --prompt 'a lonely woman bathing in milk'"]);
    for plain in [
        "10.1.2.3",
        "192.168.178.20:7860",
        "2001:db8:1:2::5",
        "fe80::1c2d",
        "00:1a:2b:3c:4d:5e",
        "/home/bob/films/out.mp4",
        "/home/marlene",
        "C:\\Users\\Bob\\Pictures",
        "/media/bobby/disk/m.safetensors",
        "by marlene today",
        "on tuxbox now",
        "jo.doe@mail.example.org",
        "password: hunter22",
        "a lonely woman",
        "8d2f4c1a-0000-1111-2222-123456789abc",
    ] {
        assert_ne!(r.text(plain), plain, "as it stands");
        let utf16: Vec<u8> = plain.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let hex = |between: &str| {
            let each: Vec<String> = plain.bytes().map(|b| format!("{b:02x}")).collect();
            each.join(between)
        };
        let codes: Vec<String> = plain.bytes().map(|b| b.to_string()).collect();
        let once = BASE64_STANDARD.encode(plain);
        for text in [
            once.clone(),
            BASE64_STANDARD.encode(format!("x={plain}; y")),
            format!("id-{}", once.trim_end_matches('=')),
            BASE64_STANDARD.encode(&once),
            BASE64_STANDARD.encode(utf16),
            hex(""),
            hex(" "),
            format!("0x{}", hex("")),
            format!("%{}", hex("%")),
            format!("\\x{}", hex("\\x")),
            format!("[{}]", codes.join(", ")),
        ] {
            let redacted = r.text(&format!("got {text} there"));
            assert!(!redacted.contains(&text), "{plain}: {redacted}");
        }
    }
}

#[test]
fn prompts_go_unless_they_are_asked_for() {
    let argv = json!({"argv": ["python", "gen.py", "--prompt", "A crimson fox over Lisbon", "--seed", "7"]});
    let mut r = Redactor::new(&own(), false);
    r.learn_json(&argv);
    r.seal();
    assert_eq!(
        r.json(&argv)["argv"],
        json!(["python", "gen.py", "--prompt", "<prompt>", "--seed", "7"])
    );
    assert_eq!(
        r.text("wrote out/a_crimson_fox_over_lis.mp4"),
        "wrote out/<prompt>.mp4"
    );
    assert_eq!(r.text("Prompt: anything at all"), "Prompt: <prompt>");
    let mut kept = Redactor::new(&own(), true);
    kept.learn_json(&argv);
    kept.seal();
    assert_eq!(kept.json(&argv), argv);
}

#[test]
fn an_option_with_its_own_value_does_not_take_the_next() {
    let argv = json!([
        "--negative_prompt=ugly wombat teeth",
        "--output",
        "--token=abcdef123",
        "--steps"
    ]);
    let mut r = redactor(false, &[]);
    r.learn_json(&argv);
    r.seal();
    let shown = r.json(&argv).to_string();
    assert!(
        shown.contains("--output") && shown.contains("--steps"),
        "{shown}"
    );
    assert!(
        !shown.contains("wombat") && !shown.contains("abcdef123"),
        "{shown}"
    );
    assert_eq!(r.text("--output output"), "--output output");
}

#[test]
fn each_line_of_a_prompt_is_known() {
    let mut r = redactor(false, &[]);
    r.learn_json(&json!([
        "--prompt",
        "a purple hippo\nwith gr\u{fc}ne feathers\nnow"
    ]));
    r.seal();
    assert_eq!(r.text("with gr\u{fc}ne feathers"), "<prompt>");
    assert_eq!(
        r.text("its feathers now, with gr\\u00fcne feathers"),
        "its feathers now, <prompt>"
    );
    // a line that begins with the end of a prompt: it was broken there
    assert_eq!(r.text("feathers now, 3/25"), "<prompt>, 3/25");
    assert_eq!(r.text("it ends now"), "it ends now");
}

#[test]
fn variables_and_settings_are_known_by_their_name() {
    let event = json!({
        "env": [{"name": "HF_TOKEN", "value": "abc def ghi", "origin": "user", "overrides": "old one"}],
        "env_before": {"CIVITAI_API_KEY": "zzz zzz"},
        "effective": [{"key": "env.MY_SECRET", "value": "qqqqqqq", "origin": {"from": "environment"}}],
    });
    let mut r = Redactor::new(&own(), false);
    r.learn_json(&event);
    r.seal();
    let redacted = r.json(&event).to_string();
    for secret in ["abc def", "old one", "zzz", "qqq"] {
        assert!(!redacted.contains(secret), "{redacted}");
    }
    for kept in [
        "HF_TOKEN",
        "env.MY_SECRET",
        "environment",
        "\"origin\":\"user\"",
    ] {
        assert!(redacted.contains(kept), "no {kept}: {redacted}");
    }
    assert!(r.text("said: abc def ghi").starts_with("said: <token:"));
}

#[test]
fn a_prompt_needs_no_option() {
    let prompt = "a lonely woman named Gertrud's \"sister\" bathing in milk";
    let code = "import sys; print('all is well and done')";
    let event = json!({"argv": ["python3", "-c", code, prompt, "out.mp4"]});
    let mut r = Redactor::new(&own(), false);
    r.learn_json(&event);
    r.seal();
    let shown = r.json(&event).to_string();
    assert!(
        shown.contains("all is well") && shown.contains("out.mp4"),
        "{shown}"
    );
    assert!(
        !shown.contains("Gertrud") && !shown.contains("milk"),
        "{shown}"
    );
    for text in [
        "a lonely woman named Gertrud&#x27;s &quot;sister&quot; bathing in milk",
        "a+lonely+woman+named+Gertrud%27s+%22sister%22+bathing+in+milk",
        "a lonely woman named\nGertrud's \"sister\" bathing\n in milk",
        "title: a lonely wom\u{2026}",
        "a lonely",
        "in milk",
        "Gertru...",
    ] {
        let left = r.text(text);
        for word in ["lonely", "wom", "Gertru", "sister", "milk"] {
            assert!(!left.contains(word), "{text}: {left}");
        }
    }
    let mut kept = Redactor::new(&own(), true);
    kept.learn_json(&event);
    kept.seal();
    assert_eq!(kept.json(&event), event);
}

#[test]
fn scraps_and_phrases_of_a_secret_go() {
    let mut r = redactor(
        false,
        &["password: correct horse battery", "x hf_abcDEF123456ghi"],
    );
    for text in [
        "correct\n  horse battery",
        "correct+horse+battery correct%20horse%20battery",
        "got correct horse bat... of",
        "token=hf_abcDEF\u{2026}",
    ] {
        let left = r.text(text);
        for word in ["horse", "batt", "hf_abc", "bat."] {
            assert!(!left.contains(word), "{text}: {left}");
        }
    }
    assert_eq!(r.text("that is correct"), "that is correct");
    assert_eq!(r.text("a horse..."), "a horse...");
}

#[test]
fn options_that_take_a_login_are_known_in_a_list() {
    let argv = json!({"argv": ["curl", "-u", "jane:pw12345", "--ngrok", "zzz yyy", "python", "-u", "gen.py"]});
    let mut r = Redactor::new(&own(), false);
    r.learn_json(&argv);
    r.seal();
    let shown = r.json(&argv);
    let want = json!([
        "curl",
        "-u",
        "<token:2>",
        "--ngrok",
        "<token:3>",
        "python",
        "-u",
        "gen.py"
    ]);
    assert_eq!(shown["argv"], want);
    assert_eq!(r.json(&shown), shown);
}

#[test]
fn what_a_reader_of_a_report_needs_stays() {
    let mut r = redactor(false, &["gen.py --prompt 'a lonely woman bathing in milk'"]);
    for text in [
        "MIOpen(HIP): Warning [IsEnoughWorkspace] Solver <GemmFwdRest>, workspace required: 1024, provided: 0",
        "MIOpen(HIP): Info [FindConvFwdAlgorithm] FW Chosen Algorithm: ConvHipImplicitGemmGroupFwdXdlops, 0, 1.5",
        "MIOpen(HIP): Info2 [SetValues] 4-16-16-3x3-4-16-16-1-1x1-1x1-1x1-0-NCHW-FP16-F, content inserted",
        "amdgpu 0000:0c:00.0: amdgpu: GPU reset begin! Source: 1",
        "Memory access fault by GPU node-1 (Agent handle: 0x55d0c8a3b2f0) on address 0x7f3c12a40000.",
        "torch 2.4.1+rocm6.1, commit c5239407cccf7156ea886aa0c55ad015a3bf4f1b",
        "blake3 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "run 20261128-134618-7f3c, RX 7900 XTX (gfx1100), 24560 MiB",
        "tensor [1, 16, 21, 64, 64] bfloat16; key=0, step 3/25",
        "Loading checkpoint shards... Sampling...",
        "shape [1, 16, 21, 64, 64, 64, 64, 64, 64]",
        "/usr/lib/python3.12/dist-packages/torch/nn/modules/conv.py:720 in forward",
    ] {
        assert_eq!(r.text(text), text);
    }
}

/// Nothing is counted here: it would be minutes if a line were read again for each of its
/// parts.
#[test]
fn a_long_line_of_anything_is_done() {
    let mut r = redactor(
        false,
        &["password: correct horse battery", "--prompt a b c d e f g"],
    );
    for part in [
        "a",
        "a.",
        "sk-",
        "key ",
        "key=",
        "token ",
        "a b c ",
        "...",
        "a...",
        "<",
        "<token:1>",
        "&amp;",
        "\\u0041",
        "/bot1:",
        "-u a:b ",
        "x://",
        "hf_A1",
        "password: ",
        "\"",
        "--auth ",
        "a@",
        "1:",
    ] {
        let line = part.repeat((64 << 10) / part.len()) + " hf_A1b2C3d4E5f6";
        let left = r.text(&line);
        assert!(!left.contains("hf_A1b2C3d4E5f6"), "{part}");
    }
}

/// A secret of the table.
fn issued_secret() -> impl Strategy<Value = String> {
    (
        0..issued::ISSUED.len(),
        "[a-z]{4}[A-Z]{5}[0-9]{5}[A-Za-z0-9]{8,24}",
    )
        .prop_map(|(n, body)| {
            let form = &issued::ISSUED[n];
            if form.signs.contains(&b':') {
                format!("{}123456789:{body}", form.begin)
            } else {
                format!("{}{body}", form.begin)
            }
        })
}

proptest! {
    /// Whatever stands around it.
    #[test]
    fn a_known_secret_never_stays(before in "\\PC{0,12}", after in "\\PC{0,12}") {
        let mut r = redactor(false, &[]);
        let redacted = r.text(&format!("{before}s3cr3t/value+1{after}"));
        prop_assert!(!redacted.contains("s3cr3t/value+1"), "{}", redacted);
    }

    #[test]
    fn an_issued_secret_never_stays(before in "\\PC{0,24}", secret in issued_secret(), after in "\\PC{0,24}") {
        let mut r = redactor(false, &[]);
        let redacted = r.text(&format!("{before}{secret}{after}"));
        let body = secret.trim_start_matches(|c: char| !c.is_ascii_digit());
        prop_assert!(!redacted.contains(&secret) && !redacted.contains(body), "{}", redacted);
    }

    #[test]
    fn what_was_redacted_is_redacted(parts in proptest::collection::vec(prop_oneof![
        issued_secret(),
        "[ =:,'\"&?/@.-]{1,3}",
        "\\PC{0,8}",
        prop::sample::select(vec![
            "password", "token", "key", "-u ", "jane:pw", "--auth ", "prompt: ", "a red fox runs", "auth=(",
            "Logged in as ", "https://", "x1y2z3w4.gradio.live", "/home/bob/", "...", "10.1.2.3", "s3cr3t/value+1",
            "correct horse battery", "marlene",
        ]).prop_map(str::to_owned),
    ], 0..8)) {
        let text = parts.concat();
        let mut r = redactor(false, &["password: correct horse battery", "--prompt 'a red fox runs'", &text]);
        let once = r.text(&text);
        prop_assert_eq!(r.text(&once), once);
    }

    #[test]
    fn no_text_breaks_it(text in "[\\PC\\n]{0,200}") {
        let mut r = redactor(false, &["--prompt a b c d", &text]);
        r.text(&text);
    }
}
