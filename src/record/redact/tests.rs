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
        r.text("feathers now, with gr\\u00fcne feathers"),
        "feathers now, <prompt>"
    );
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

proptest! {
    /// Whatever stands around it.
    #[test]
    fn a_known_secret_never_stays(before in "\\PC{0,12}", after in "\\PC{0,12}") {
        let mut r = redactor(false, &[]);
        let redacted = r.text(&format!("{before}s3cr3t/value+1{after}"));
        prop_assert!(!redacted.contains("s3cr3t/value+1"), "{}", redacted);
    }

    #[test]
    fn no_text_breaks_it(text in "[\\PC\\n]{0,200}") {
        let mut r = redactor(false, &["--prompt a b c d", &text]);
        r.text(&text);
    }
}
