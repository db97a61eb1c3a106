//! The folder as a whole: what is listed, found, checked and removed.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::*;
use crate::model::Bytes;

const RUN: &str = "20260101-0001-00aa";
const OTHER: &str = "20260101-0002-00bb";

/// A safetensors file as the agent writes it, `data` bytes of latents.
pub(super) fn latents(data: &[u8], more: &Value) -> Vec<u8> {
    let digest = format!("{:x}", Sha256::digest(data));
    let mut metadata = json!({
        "format": "framepack-tui", "version": "1", "program": "framepack", "run": RUN,
        "attempt": "1", "section": "2", "sections": "3", "time": "1767225600.5",
        "dtype": "bfloat16", "shape": "[1, 2]", "device": "cuda:0", "sha256": digest,
        "vae_class": "diffusers.models.autoencoders.x.AutoencoderKLHunyuanVideo",
        "scaling_applied": "false", "scaling_factor": "0.476986",
    });
    for (name, value) in more.as_object().into_iter().flatten() {
        metadata[name] = value.clone();
    }
    let header = json!({
        "__metadata__": metadata,
        "latents": {"dtype": "U8", "shape": [1, data.len()], "data_offsets": [0, data.len()]},
    })
    .to_string();
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend_from_slice(data);
    bytes
}

/// Writes a file whose last change was `age` ago.
fn put(root: &Path, name: &str, bytes: &[u8], age: Duration) {
    fs::write(root.join(name), bytes).unwrap();
    let file = fs::File::options()
        .write(true)
        .open(root.join(name))
        .unwrap();
    file.set_modified(SystemTime::now() - age).unwrap();
}

/// A vault with something of each kind, `n` minutes old each.
fn filled(root: &Path) -> Vault {
    let minutes = |n: u64| Duration::from_mins(n);
    let whole = latents(&[7; 64], &json!({}));
    put(
        root,
        &format!("latents.{RUN}.1-99-001.safetensors"),
        &whole,
        minutes(9),
    );
    put(
        root,
        &format!("latents.{RUN}.1-99-002.safetensors"),
        &whole,
        minutes(8),
    );
    put(
        root,
        &format!("section.{RUN}.00ff00ff.safetensors"),
        &whole,
        minutes(7),
    );
    let job = jobs::tests::framepack();
    put(
        root,
        job["image"].as_str().unwrap(),
        b"\x89PNG\r\n\x1a\n.",
        minutes(6),
    );
    let name = format!("job.{RUN}.0123456789abcdef.json");
    put(root, &name, job.to_string().as_bytes(), minutes(5));
    let queue = jobs::tests::comfyui().to_string();
    put(
        root,
        &format!("queue.{RUN}.2.json"),
        queue.as_bytes(),
        minutes(4),
    );
    put(
        root,
        &format!("latents.{OTHER}.1-98-001.safetensors"),
        &whole[..whole.len() - 10],
        minutes(3),
    );
    put(
        root,
        &format!("queue.{OTHER}.1.json"),
        &queue.as_bytes()[..99],
        minutes(2),
    );
    put(root, "notes.txt", b"mine", minutes(1));
    Vault::at(root)
}

#[test]
fn everything_is_listed_newest_first_each_with_its_state() {
    let tmp = tempfile::tempdir().unwrap();
    assert_eq!(Vault::at(tmp.path().join("none")).list().unwrap(), []);
    let entries = filled(tmp.path()).list().unwrap();
    let told: Vec<_> = entries
        .iter()
        .map(|e| {
            let state = match &e.state {
                State::Whole(_) => "whole",
                State::Torn(_) => "torn",
                State::Foreign(_) => "foreign",
            };
            (e.kind.word(), state)
        })
        .collect();
    assert_eq!(
        told,
        [
            ("foreign", "foreign"),
            ("queue", "torn"),
            ("latents", "torn"),
            ("queue", "whole"),
            ("job", "whole"),
            ("section", "whole"),
            ("latents", "whole"),
            ("latents", "whole"),
        ]
    );
    let job = &entries[4];
    assert!(job.picture.is_some());
    let json = fs::metadata(&job.path).unwrap().len();
    assert_eq!(job.bytes, Bytes(json + 9), "with its picture");
    let newest = &entries[6];
    assert_eq!(newest.decoder(), Some("AutoencoderKLHunyuanVideo"));
    assert_eq!(
        (newest.attempt(), newest.section()),
        (Some("1"), (Some(2), Some(3)))
    );
    assert_eq!(newest.run.as_deref(), Some(RUN));
}

/// Names of strange files, and how what is said of them begins.
const STRANGE: [(&str, &str); 13] = [
    ("latents.r.1-1-1.safetensors", "foreign: it is of version 9"),
    (
        "latents.r.1-1-2.safetensors",
        "foreign: it is no safetensors file: it has 0 bytes",
    ),
    (
        "section.r.aa.safetensors",
        "foreign: it is no safetensors file",
    ),
    ("job.r.aa.json", "foreign: it is no job"),
    ("job.r.bb.json", "torn: its picture job.20260101-0001-00aa"),
    ("job.r.cc.png", "torn: the picture of a job that is gone"),
    ("queue.r.1.json", "foreign: name and content do not fit"),
    (
        ".part-4194305-1",
        "torn: half written, and its writer is gone",
    ),
    ("step.r.aa.safetensors", "whole"),
    ("latents.r.x.txt", "foreign: its name is none"),
    ("latents.r.dir.safetensors", "foreign: it is a folder"),
    ("job.r.dd.json", "foreign: it is no regular file"),
    ("queue.r.2.json", "foreign: it is no regular file"),
];

#[test]
fn strange_files_are_entries_with_words() {
    let tmp = tempfile::tempdir().unwrap();
    let root = tmp.path();
    let now = Duration::ZERO;
    put(
        root,
        "latents.r.1-1-1.safetensors",
        &latents(&[1], &json!({"version": "9"})),
        now,
    );
    put(root, "latents.r.1-1-2.safetensors", b"", now);
    put(
        root,
        "section.r.aa.safetensors",
        b"{\"a\": 1} and more garbage",
        now,
    );
    put(root, "job.r.aa.json", b"[]", now);
    put(
        root,
        "job.r.bb.json",
        jobs::tests::framepack().to_string().as_bytes(),
        now,
    );
    put(root, "job.r.cc.png", b"a lone picture", now);
    put(
        root,
        "queue.r.1.json",
        jobs::tests::framepack().to_string().as_bytes(),
        now,
    );
    put(
        root,
        &format!(".part-{}-1", std::process::id()),
        b"half",
        now,
    );
    put(root, ".part-4194305-1", b"half", now);
    put(root, "latents.r.x.txt", b"", now);
    let step = String::from_utf8(latents(&[1], &json!({}))[8..].to_vec()).unwrap();
    let step = step.replace("\"latents\":", "\"out\":");
    let length = u64::to_le_bytes(step.len() as u64 - 1);
    let step = [&length[..], step.as_bytes()].concat();
    put(root, "step.r.aa.safetensors", &step, now);
    fs::create_dir(root.join("latents.r.dir.safetensors")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", root.join("job.r.dd.json")).unwrap();
    let pipe = rustix::fs::FileType::Fifo;
    let mode = rustix::fs::Mode::RUSR;
    rustix::fs::mknodat(rustix::fs::CWD, root.join("queue.r.2.json"), pipe, mode, 0).unwrap();
    let why = |name: &str| {
        let entries = Vault::at(root).list().unwrap();
        let found = entries.into_iter().find(|e| e.name == name);
        match found
            .unwrap_or_else(|| panic!("{name} is not listed"))
            .state
        {
            State::Whole(_) => "whole".to_owned(),
            State::Torn(why) => format!("torn: {why}"),
            State::Foreign(why) => format!("foreign: {why}"),
        }
    };
    for (name, words) in STRANGE {
        let said = why(name);
        assert!(said.starts_with(words), "{name}: {said}");
    }
    let mine = format!(".part-{}-1", std::process::id());
    assert!(why(&mine).ends_with("is writing it"), "{}", why(&mine));
}

#[test]
fn an_entry_is_meant_by_number_name_or_beginning() {
    let tmp = tempfile::tempdir().unwrap();
    let entries = filled(tmp.path()).list().unwrap();
    let find = |asked: &str| match Vault::find(&entries, asked) {
        Ok(entry) => entry.name,
        Err(FindError::None { .. }) => "none".to_owned(),
        Err(FindError::Several { which, .. }) => format!("{} of them", which.len()),
    };
    assert_eq!(find("1"), "notes.txt");
    assert_eq!(find("5"), format!("job.{RUN}.0123456789abcdef.json"));
    assert_eq!(
        find("section"),
        format!("section.{RUN}.00ff00ff.safetensors")
    );
    assert_eq!(
        find("0123"),
        format!("job.{RUN}.0123456789abcdef.json"),
        "what follows the run"
    );
    assert_eq!(
        find("1-99-002"),
        format!("latents.{RUN}.1-99-002.safetensors")
    );
    assert_eq!(find("latents"), "3 of them");
    for none in ["", "0", "9", "-1", "nothing", "../notes.txt"] {
        assert_eq!(find(none), "none", "{none:?}");
    }
}

#[test]
fn a_digest_holds_until_a_byte_is_changed() {
    let tmp = tempfile::tempdir().unwrap();
    let vault = filled(tmp.path());
    let entry = |asked: &str| Vault::find(&vault.list().unwrap(), asked).unwrap();
    assert_eq!(Digest::of(&entry("section")).unwrap(), Digest::Holds);
    assert_eq!(Digest::of(&entry("job")).unwrap(), Digest::NotTold);
    let path = entry("section").path;
    let mut bytes = fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&path, bytes).unwrap();
    assert_eq!(Digest::of(&entry("section")).unwrap(), Digest::Differs);
}

fn names(entries: &[Entry]) -> Vec<&str> {
    entries.iter().map(|e| e.name.as_str()).collect()
}

#[test]
fn pruning_takes_the_oldest_and_spares_the_newest_of_a_living_run() {
    let tmp = tempfile::tempdir().unwrap();
    let entries = filled(tmp.path()).list().unwrap();
    let now = SystemTime::now();
    let nobody = BTreeSet::new();
    let all = plan(&entries, Wish::default(), &nobody, now);
    assert_eq!(all.remove.len(), entries.len() - 1, "not the user's notes");
    let latents = entries[6].bytes.0;
    let ours: u64 = entries[1..].iter().map(|e| e.bytes.0).sum();
    let keep = Wish {
        keep: Some(Bytes(ours - latents - 1)),
        ..Wish::default()
    };
    let first = format!("latents.{RUN}.1-99-001.safetensors");
    let second = format!("latents.{RUN}.1-99-002.safetensors");
    assert_eq!(
        names(&plan(&entries, keep, &nobody, now).remove),
        [&first, &second]
    );
    let living: BTreeSet<_> = [RUN.to_owned()].into();
    let spared = plan(&entries, keep, &living, now);
    let left: Vec<_> = spared.kept.iter().map(|(e, why)| (e.kind, *why)).collect();
    assert!(
        spared
            .remove
            .iter()
            .all(|e| e.run.as_deref() == Some(OTHER))
    );
    assert_eq!(
        left[..3],
        [
            (Kind::Latents, Kept::Living),
            (Kind::Latents, Kept::Newest),
            (Kind::Section, Kept::Newest)
        ]
    );
    let of_it = Wish {
        run: Some(RUN),
        ..Wish::default()
    };
    let asked_for = plan(&entries, of_it, &living, now);
    assert_eq!(names(&asked_for.remove), [&first], "its user has named it");
    assert!(asked_for.kept.iter().all(|(_, why)| *why == Kept::Newest));
    let nothing = Wish {
        keep: Some(Bytes(0)),
        ..Wish::default()
    };
    let over = plan(&entries, nothing, &nobody, now);
    assert_eq!(over.remove.len(), entries.len() - 1, "not the user's notes");
    let others = plan(&entries, nothing, &living, now);
    assert_eq!((others.remove.len(), others.kept.len()), (2, 5));
    let older = Wish {
        older: Some(Duration::from_secs(7 * 60 + 30)),
        ..Wish::default()
    };
    assert_eq!(plan(&entries, older, &nobody, now).remove.len(), 2);
    let run = Wish {
        run: Some(OTHER),
        ..Wish::default()
    };
    assert_eq!(plan(&entries, run, &nobody, now).remove.len(), 2);
    let named = Plan::of(&entries[..2], &entries, &nobody);
    assert_eq!(
        names(&named.remove)[0],
        "notes.txt",
        "by name whatever it is"
    );
    let named = Plan::of(&entries[3..5], &entries, &living);
    assert_eq!((named.remove.len(), named.kept.len()), (0, 2));
}

#[test]
fn a_job_goes_with_its_picture() {
    let tmp = tempfile::tempdir().unwrap();
    let vault = filled(tmp.path());
    let job = Vault::find(&vault.list().unwrap(), "job").unwrap();
    vault.remove(&job).unwrap();
    vault.remove(&job).unwrap();
    assert!(!job.picture.unwrap().exists());
    assert!(Vault::find(&vault.list().unwrap(), "job").is_err());
}

#[test]
fn a_runs_unfinished_jobs_are_each_job_and_each_queue_oldest_first() {
    let tmp = tempfile::tempdir().unwrap();
    let vault = filled(tmp.path());
    let old = jobs::tests::comfyui().to_string();
    let name = format!("queue.{RUN}.1.json");
    put(tmp.path(), &name, old.as_bytes(), Duration::from_mins(20));
    let found = vault.unfinished(RUN).unwrap();
    let kinds: Vec<_> = found.iter().map(|e| e.name.as_str()).collect();
    let job = format!("job.{RUN}.0123456789abcdef.json");
    assert_eq!(kinds, [job.as_str(), &name, &format!("queue.{RUN}.2.json")]);
    assert_eq!(vault.unfinished(OTHER).unwrap(), []);
}

/// `docs/vault.md` names each field that `--json` tells and each that is read.
#[test]
fn the_page_names_every_field() {
    let page = include_str!("../../docs/vault.md");
    let tmp = tempfile::tempdir().unwrap();
    let entries = filled(tmp.path()).list().unwrap();
    let now = SystemTime::now();
    let mut fields = BTreeSet::new();
    for entry in &entries {
        let told = serde_json::to_value(entry.told(1, now, Some(Digest::of(entry)))).unwrap();
        fields.extend(told.as_object().unwrap().keys().cloned());
        fields.extend(
            told["job"]
                .as_object()
                .into_iter()
                .flat_map(|j| j.keys().cloned()),
        );
        fields.extend(
            entry
                .header()
                .into_iter()
                .flat_map(|h| h.metadata.keys().cloned()),
        );
    }
    for read in [jobs::tests::framepack(), jobs::tests::comfyui()] {
        fields.extend(read.as_object().unwrap().keys().cloned());
        let items = read["items"].as_array().into_iter().flatten();
        fields.extend(items.flat_map(|i| i.as_object().unwrap().keys().cloned()));
    }
    fields.extend(INPUTS.map(str::to_owned));
    let missing: Vec<_> = fields
        .iter()
        .filter(|f| !page.contains(&format!("`{f}`")))
        .collect();
    assert!(
        missing.is_empty(),
        "docs/vault.md does not name {missing:?}"
    );
    assert!(page.contains(&format!("Version {VERSION}")));
}
