//! Secrets in every place where a text can stand, and none of them in a bundle.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::Path;

use base64::prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD, Engine};
use serde_json::{Value, json};

use super::*;
use crate::model::Event;
use crate::record::redact::Own;
use crate::record::tests::samples::one_of_each;

/// Digits and letters that look random and are the same in each run of the test.
fn random(seed: u64, letters: &str, length: usize) -> String {
    let letters: Vec<char> = letters.chars().collect();
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        letters[usize::try_from(state >> 33).unwrap() % letters.len()]
    };
    (0..length).map(|_| next()).collect()
}

const HEX: &str = "0123456789abcdef";
const DIGITS: &str = "0123456789";
const SMALL: &str = "bcdfghjklmnpqrstvwxyz";
const MIXED: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const SIGNS: &str = "abcdefghijkXYZ0123456789&,;!$%+/=~^*#";

/// One secret of each kind; `n` makes it another one.
fn kinds(n: u64) -> Vec<String> {
    [issued(n), chosen(n), personal(n)].concat()
}

/// What a service issues.
fn issued(n: u64) -> Vec<String> {
    let of = |salt: u64, letters, length| random(n * 100 + salt, letters, length);
    let mixed = |salt, length| of(salt, MIXED, length);
    vec![
        format!("AKIA{}", of(1, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16)),
        mixed(2, 40),
        format!("ghp_{}", mixed(3, 36)),
        format!("github_pat_{}_{}", mixed(4, 22), mixed(5, 59)),
        format!("glpat-{}", mixed(6, 20)),
        format!("hf_{}", mixed(7, 34)),
        format!("sk-proj-{}", mixed(8, 48)),
        format!("sk-ant-api03-{}", mixed(9, 40)),
        format!("xoxb-{}-{}", of(10, DIGITS, 12), mixed(11, 24)),
        format!(
            "https://hooks.slack.com/services/T0{}/B0{}/{}",
            mixed(12, 6),
            mixed(13, 6),
            mixed(14, 24)
        ),
        format!(
            "https://discord.com/api/webhooks/{}/{}",
            of(15, DIGITS, 18),
            mixed(16, 60)
        ),
        format!("{}:AA{}", of(17, DIGITS, 9), mixed(18, 33)),
        format!("AIza{}", mixed(19, 35)),
        format!(
            "eyJhbGciOiJIUzI1NiJ9.eyJ{}.{}",
            mixed(20, 30),
            mixed(21, 40)
        ),
        format!("rk_live_{}", mixed(22, 24)),
        format!("npm_{}", mixed(23, 36)),
    ]
}

/// What a person or a program makes up: keys, passwords, numbers.
fn chosen(n: u64) -> Vec<String> {
    let of = |salt: u64, letters, length| random(n * 100 + salt, letters, length);
    let mixed = |salt, length| of(salt, MIXED, length);
    let word = |salt| of(salt, SMALL, 9);
    vec![
        // lines of a key, as they are printed one by one
        format!("b3BlbnNzaC1rZXktdjEA{}", mixed(24, 44)),
        format!("MIIEpAIBAAKCAQEA{}", mixed(25, 48)),
        // what a person thinks of
        format!("{}4711", word(26)),
        format!("{} {} {} {}", word(27), word(28), word(29), word(30)),
        of(31, SIGNS, 14),
        format!(
            "4{} {} {} {}",
            of(32, DIGITS, 3),
            of(33, DIGITS, 4),
            of(34, DIGITS, 4),
            of(35, DIGITS, 4)
        ),
        format!(
            "DE{} {} {} {}",
            of(36, DIGITS, 2),
            of(37, DIGITS, 4),
            of(38, DIGITS, 4),
            of(39, DIGITS, 4)
        ),
        format!("+49 {} {}", of(40, DIGITS, 3), of(41, DIGITS, 7)),
    ]
}

/// What names a person, a machine or a place.
fn personal(n: u64) -> Vec<String> {
    let of = |salt: u64, letters, length| random(n * 100 + salt, letters, length);
    let mixed = |salt, length| of(salt, MIXED, length);
    let word = |salt| of(salt, SMALL, 9);
    vec![
        format!("{}.{}@{}.example.org", word(42), word(43), word(44)),
        format!("203.0.113.{} {}.{}.17.{}", n + 10, n + 20, n + 30, n + 40),
        format!(
            "2001:db8:{}:{}::{}",
            of(45, HEX, 4),
            of(46, HEX, 4),
            of(47, HEX, 4)
        ),
        format!(
            "{}:{}:{}:{}:{}:{}",
            of(48, HEX, 2),
            of(49, HEX, 2),
            of(50, HEX, 2),
            of(51, HEX, 2),
            of(52, HEX, 2),
            of(53, HEX, 2)
        ),
        format!(
            "{}-{}-4{}-a{}-{}",
            of(54, HEX, 8),
            of(55, HEX, 4),
            of(56, HEX, 3),
            of(57, HEX, 3),
            of(58, HEX, 12)
        ),
        format!("/home/{}/films/{}.mp4", word(59), word(60)),
        format!("C:\\Users\\{} {}\\Pictures", word(61), word(62)),
        format!(
            "https://{}:{}@{}.example.org/x",
            word(63),
            mixed(64, 12),
            word(65)
        ),
        format!("{}-workstation.{}.lan", word(66), word(67)),
        format!("session={}", mixed(68, 32)),
        format!(
            "machine {}.org login {} password {}",
            word(69),
            word(70),
            of(71, SIGNS, 12)
        ),
        format!(
            "a {} named {} bathes in {} at night",
            word(72),
            word(73),
            word(74)
        ),
        of(75, HEX, 64),
        format!(
            "{}-{}-{}-{}",
            mixed(76, 5).to_uppercase(),
            mixed(77, 5).to_uppercase(),
            mixed(78, 5).to_uppercase(),
            mixed(79, 5).to_uppercase()
        ),
        format!("52.{}N 13.{}E", of(80, DIGITS, 6), of(81, DIGITS, 6)),
        format!("Dr. {} {}", word(82), word(83)),
    ]
}

fn percent(text: &str) -> String {
    let each: Vec<String> = text.bytes().map(|b| format!("%{b:02X}")).collect();
    each.concat()
}

fn hex(text: &str) -> String {
    let each: Vec<String> = text.bytes().map(|b| format!("{b:02x}")).collect();
    each.concat()
}

/// The secret as programs print it.
fn encodings(secret: &str) -> Vec<String> {
    let json = serde_json::to_string(secret).unwrap();
    let each = |write: &dyn Fn(char) -> String| -> String {
        let all: Vec<String> = secret.chars().map(write).collect();
        all.concat()
    };
    vec![
        secret.to_owned(),
        format!("{{\"x\": {json}}}"),
        percent(secret),
        BASE64_STANDARD.encode(secret),
        BASE64_STANDARD_NO_PAD.encode(format!("xx{secret}")),
        hex(secret),
        each(&|c| format!("\\u{:04x}", u32::from(c))),
        each(&|c| format!("&#{};", u32::from(c))),
        // UTF-16 that was read as bytes
        secret.chars().flat_map(|c| [c, '\0']).collect(),
        secret.to_uppercase(),
        format!("the password '{secret}' was refused"),
        secret.replace(' ', "_"),
    ]
}

/// Every text of a value, each time replaced by another one.
fn with_each_text(value: &Value, texts: &mut dyn FnMut() -> String, out: &mut Vec<Value>) {
    fn walk(value: &Value, path: &mut Vec<String>, found: &mut Vec<String>) {
        match value {
            Value::String(_) => found.push(format!("/{}", path.join("/"))),
            Value::Array(list) => {
                for (n, item) in list.iter().enumerate() {
                    path.push(n.to_string());
                    walk(item, path, found);
                    path.pop();
                }
            }
            Value::Object(map) => {
                for (key, item) in map {
                    path.push(key.replace('~', "~0").replace('/', "~1"));
                    walk(item, path, found);
                    path.pop();
                }
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    walk(value, &mut Vec::new(), &mut found);
    // readers refuse a stream of another version
    for place in found.iter().filter(|p| *p != "/schema") {
        let mut changed = value.clone();
        *changed.pointer_mut(place).unwrap() = Value::String(texts());
        if serde_json::from_value::<Event>(changed.clone()).is_ok() {
            out.push(changed);
        }
    }
}

fn planted() -> Vec<String> {
    (1..=4).flat_map(kinds).collect()
}

/// A record and evidence that hold each of them.
fn record(run: &Path, secrets: &[String]) {
    let mut n = 0;
    let mut text = || {
        n += 1;
        let forms = encodings(&secrets[n % secrets.len()]);
        forms[n / 7 % forms.len()].clone()
    };
    let samples = one_of_each();
    let mut events = vec![serde_json::to_value(&samples[0]).unwrap()];
    for event in &samples {
        with_each_text(
            &serde_json::to_value(event).unwrap(),
            &mut text,
            &mut events,
        );
    }
    for (n, secret) in secrets.iter().enumerate() {
        for said in encodings(secret).into_iter().skip(n % 4).step_by(4) {
            events.push(json!({"kind": "line", "attempt": 1, "stream": "stdout", "text": said}));
        }
    }
    let mut argv = vec!["python".to_owned(), "--prompt".to_owned()];
    argv.extend(secrets.iter().cloned());
    events[0]["argv"] = json!(argv);
    let env: Vec<Value> = secrets
        .iter()
        .enumerate()
        .map(|(n, s)| json!({"name": format!("MIOPEN_X{n}"), "value": s, "origin": "user", "overrides": s}))
        .collect();
    events[0]["plan"]["env"] = json!(env);
    let lines = events
        .iter()
        .zip(1_u64..)
        .map(|(event, seq)| json!({"seq": seq, "at": seq, "event": event}).to_string() + "\n");
    fs::create_dir_all(run.join("evidence/001")).unwrap();
    let lines: String = lines.collect();
    fs::write(run.join("events.jsonl"), &lines).unwrap();
    let manifest = json!({"format": "1.0", "program": "0.1.0", "run": "20261127-2231-7f3a",
        "wall_clock": "2026-11-27T22:31:00+01:00", "argv": argv, "pid": 7});
    fs::write(run.join("manifest.json"), manifest.to_string()).unwrap();
    let all: Vec<String> = secrets
        .iter()
        .zip(0..)
        .flat_map(|(s, n)| encodings(s).into_iter().skip(n % 3).step_by(3))
        .collect();
    for name in [
        "python_stacks.txt",
        "threads.txt",
        "environment.txt",
        "kernel.txt",
        "maps.txt",
    ] {
        fs::write(run.join("evidence/001").join(name), all.join("\n")).unwrap();
    }
    fs::write(
        run.join("evidence/001/log_tail.jsonl"),
        lines.lines().take(40).collect::<Vec<_>>().join("\n") + "\n" + &all.join("\n"),
    )
    .unwrap();
    let items: Vec<Value> = all
        .iter()
        .map(|s| json!({"kind": s, "file": s, "bytes": 1, "why": s}))
        .collect();
    fs::write(
        run.join("evidence/001/index.json"),
        json!({"items": items}).to_string(),
    )
    .unwrap();
    for secret in secrets.iter().filter(|s| !s.contains('/')) {
        fs::write(run.join("evidence/001").join(secret), secret).unwrap();
    }
}

fn members(file: &Path) -> BTreeMap<String, String> {
    let packed = flate2::read::MultiGzDecoder::new(fs::File::open(file).unwrap());
    let mut found = BTreeMap::new();
    for entry in tar::Archive::new(packed).entries().unwrap() {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().display().to_string();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        found.insert(name, String::from_utf8(bytes).unwrap());
    }
    found
}

#[test]
fn none_of_the_planted_secrets_is_in_a_bundle_as_it_is_by_default() {
    let secrets = planted();
    assert!(secrets.len() >= 150 && kinds(1).len() >= 30);
    let tmp = tempfile::tempdir().unwrap();
    let run = tmp.path().join("run");
    record(&run, &secrets);
    let out = tmp.path().join("bundle.tgz");
    let wanted = Wanted {
        out: &out,
        replace: false,
        text: FreeText::Masked,
    };
    let made = export(&run, "20261127-2231-7f3a", &Own::default(), wanted).unwrap();
    let members = members(&out);
    let all: Vec<String> = members
        .iter()
        .map(|(name, text)| format!("{name}\n{text}"))
        .collect();
    let all = all.concat().to_lowercase();
    for secret in &secrets {
        for form in encodings(secret) {
            let escaped = serde_json::to_string(&form).unwrap().to_lowercase();
            for form in [
                form.to_lowercase(),
                escaped[1..escaped.len() - 1].to_owned(),
            ] {
                let at = all.find(&form);
                assert_eq!(
                    at,
                    None,
                    "{secret}: {:?}",
                    at.map(|at| &all[at.saturating_sub(200)..at + 80])
                );
            }
        }
    }
    // what is left can be read, and says what there was
    let read = open(&out).unwrap();
    assert_eq!(read.warnings(), []);
    let original = crate::record::Record::open(&run).unwrap();
    assert_eq!(read.events().len(), original.envelopes.len());
    let kind = |e: &crate::model::Envelope| std::mem::discriminant(&e.event);
    let kinds = |all: &[crate::model::Envelope]| all.iter().map(kind).collect::<Vec<_>>();
    assert_eq!(kinds(read.events()), kinds(&original.envelopes));
    assert!(made.contents.masked["console lines"] > 400);
    assert!(
        made.contents
            .left_out
            .iter()
            .any(|l| l.contains("threads.txt") && l.contains("--with-text"))
    );
}

/// Readings and closed words are the same, and equal lines are still equal.
#[test]
fn what_a_bundle_is_for_stays() {
    let tmp = tempfile::tempdir().unwrap();
    let run = tmp.path().join("run");
    record(&run, &["hunter2".to_owned()]);
    let out = tmp.path().join("bundle.tgz");
    let wanted = Wanted {
        out: &out,
        replace: false,
        text: FreeText::Masked,
    };
    export(&run, "x", &Own::default(), wanted).unwrap();
    let members = members(&out);
    let events = &members["framepack-tui-run/events.jsonl"];
    for kept in [
        "\"gfx1100\"",
        "\"0000:0c:00.0\"",
        "{\"fresh\":98.0}",
        "futex_wait_queue",
        "\"silent_hang\"",
    ] {
        assert!(events.contains(kept), "no {kept}");
    }
    assert!(members["framepack-tui-run/README.md"].contains("**Verdict: "));
}

/// The stream in a bundle, with text, of a run in `folder` with these lines.
fn exported_with_text<'a>(folder: &Path, lines: impl Iterator<Item = &'a str>) -> String {
    let run = folder.join("run");
    fs::create_dir_all(&run).unwrap();
    let started = serde_json::to_value(&one_of_each()[0]).unwrap();
    let mut record = json!({"seq": 1, "at": 0, "event": started}).to_string() + "\n";
    for (line, seq) in lines.zip(2..) {
        let event = json!({"kind": "line", "attempt": 1, "stream": "stdout", "text": line});
        record += &(json!({"seq": seq, "at": seq, "event": event}).to_string() + "\n");
    }
    fs::write(run.join("events.jsonl"), record).unwrap();
    let out = folder.join("bundle.tgz");
    let wanted = Wanted {
        out: &out,
        replace: false,
        text: FreeText::Searched,
    };
    export(&run, "x", &Own::default(), wanted).unwrap();
    members(&out)["framepack-tui-run/events.jsonl"].clone()
}

#[test]
fn with_text_the_second_net_takes_what_stands_on_several_lines() {
    let tmp = tempfile::tempdir().unwrap();
    let lines = [
        "-----BEGIN RSA PRIVATE KEY-----",
        "Proc-Type: 4,ENCRYPTED",
        "plantedkeybodywithoutdigits",
        "-----END RSA PRIVATE KEY-----",
        "DB_PASSWORD=planted&one,two;three",
        "the password 'plantedquote' was refused",
        "machine hub.example.org",
        "  login plantedjane",
        "  password plantednet",
        "{'sessionid': 'plantedcookie', 'theme': 'dark'}",
        "prompt: \"a plantedheron that stands",
        "plantedwading in a river\", seed 3",
        "saved C:\\Users\\Plantedmarlene Doe\\out.mp4",
        "key 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822c",
        "Sampling 3/25",
    ];
    let events = exported_with_text(tmp.path(), lines.iter().copied());
    assert!(
        events.contains("Sampling 3/25") && events.contains("BEGIN RSA")
            || events.contains("<token")
    );
    for line in events.lines() {
        let lower = line.to_lowercase();
        let left = lower.contains("planted") || lower.contains("three") || lower.contains("9f86d");
        assert!(!left, "{line}");
    }
    let counts = free_text(&tmp.path().join("run")).unwrap();
    assert_eq!(counts["console lines"], lines.len() as u64);
}

/// A bundle comes from somebody else: neither members nor what they unpack to are endless.
#[test]
fn a_bundle_of_endless_members_is_refused() {
    let tmp = tempfile::tempdir().unwrap();
    let many = tmp.path().join("many.tgz");
    let pack =
        |path: &Path, fill: &dyn Fn(&mut tar::Builder<flate2::write::GzEncoder<fs::File>>)| {
            let file = fs::File::create(path).unwrap();
            let packed = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
            let mut archive = tar::Builder::new(packed);
            fill(&mut archive);
            archive.into_inner().unwrap().finish().unwrap();
        };
    pack(&many, &|archive| {
        for n in 0..10_000 {
            let mut header = tar::Header::new_gnu();
            header.set_size(0);
            archive
                .append_data(&mut header, format!("x/{n}"), &b""[..])
                .unwrap();
        }
    });
    let why = open(&many).unwrap_err().to_string();
    assert!(why.contains("more than 2000 members"), "{why}");
    let bomb = tmp.path().join("bomb.tgz");
    pack(&bomb, &|archive| {
        let mut header = tar::Header::new_gnu();
        header.set_size(2 << 30);
        let zeros = std::io::repeat(0).take(2 << 30);
        archive.append_data(&mut header, "x/filler", zeros).unwrap();
    });
    let why = open(&bomb).unwrap_err().to_string();
    assert!(why.contains("unpacks to more than"), "{why}");
}

/// Whole kinds, each of several inputs that no pattern was written for; `planted` must go.
const SECOND_NET: &[(&str, &[&str])] = &[
    (
        "cookies",
        &[
            "<SimpleCookie: fp_user='planted; x' theme='dark'>",
            "jar now <RequestsCookieJar[<Cookie a=b for hub/>, <Cookie c=planted for hub/>]>",
            "LWPCookieJar: [Cookie(version=0, name=\"k\", value=\"planted\", port=None)]",
            "response.cookies: {'k': 'planted'}",
            "sent headers=[('cookie', 'k=planted'), ('x', 'y')]",
            "{'domain': 'hub', 'httpOnly': True, 'name': 'k', 'value': 'planted'}",
            "wget --header 'Cookie: k=planted'",
        ],
    ),
    (
        "passwords in other languages",
        &[
            "WLAN-Passwort f\u{fc}r Gast: planted",
            "Mot de passe de l'utilisateur : planted",
            "La contrase\u{f1}a es \u{ab}planted\u{bb}",
            "\u{41f}\u{430}\u{440}\u{43e}\u{43b}\u{44c} \u{434}\u{43b}\u{44f} root: planted",
            "\u{8bf7}\u{8f93}\u{5165}\u{5bc6}\u{7801}\u{ff1a}planted",
            "L\u{f6}senordet \u{e4}r planted",
            "Has\u{142}o u\u{17c}ytkownika: planted",
        ],
    ),
    (
        "prompts of several lines",
        &[
            "prompt: a heron of glass,\n plantedmarlene beside it",
            "Prompt:\nplantedheron bathes in milk",
            "  \"positive_prompt\": [\n \"a heron\",\n \"planted in milk\"\n ]",
            "prompt = '''\na heron\nplanted in milk'''",
            "gen.py --prompt a heron \\\n  planted in milk",
        ],
    ),
    (
        "words that ask",
        &[
            "Password for jane: \nplanted1",
            "Passphrase:\nplanted-1",
            "Kennwort:\n  planted.1",
            "Enter password:\nPlanted",
            "API key:\nplanted9",
        ],
    ),
    (
        "secrets of programs",
        &[
            "db: postgresql://jane:planted@db.example.org/x",
            "smtp login('jane', password='planted')",
            "os.environ['HF_TOKEN'] = 'planted-value'",
            "export CIVITAI_API_KEY=planted_value",
            "{\"client_secret\": \"planted\"}",
            "sshpass -p 'planted1' ssh jane@hub",
            "mysql -u root -pplanted1 films",
            "aws_secret_access_key = planted/value",
            "X-Api-Key: planted-value",
            "Authorization: Token planted",
            "?access_token=planted&x=1",
            "redis://:planted@cache:6379/0",
            "htpasswd: jane:$apr1$planted$planted",
            "jane:$6$planted$plantedplanted:19000:0:99999:7:::",
            "otpauth://totp/hub:jane?secret=PLANTED&issuer=hub",
            "WIFI:S:home;T:WPA;P:planted1;;",
            "Enter passphrase for key: planted1",
            "ANSIBLE_VAULT_PASSWORD: planted",
            "token: planted-token-value",
            "secret: planted",
        ],
    ),
];

#[test]
fn with_text_the_second_net_takes_whole_kinds() {
    let mut left = Vec::new();
    for (kind, texts) in SECOND_NET {
        for text in *texts {
            let tmp = tempfile::tempdir().unwrap();
            let lines = text.lines().chain(["Sampling 3/25 stays"]);
            let events = exported_with_text(tmp.path(), lines);
            assert!(events.contains("Sampling 3/25 stays"), "{text}: {events}");
            let lower = events.to_lowercase();
            if let Some(at) = lower.find("planted") {
                let around = &lower[lower.floor_char_boundary(at.saturating_sub(60))..at + 12];
                left.push(format!("{kind}: {text}: {around}"));
            }
        }
    }
    assert!(left.is_empty(), "{left:#?}");
}
