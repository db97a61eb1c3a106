//! Latents and models that are not what they should be: what is said of them is true.

use std::path::{Path, PathBuf};

use framepack_tui::model::{Event, Phase, Verdict, VerdictId};

use crate::decode::{LIMIT, latents, lines, model, refused, words};
use crate::harness::{Finished, Home, Start, root};

fn last_verdict(run: &Finished) -> Verdict {
    let verdicts = run.all(|e| match e {
        Event::Verdict(v) => Some((**v).clone()),
        _ => None,
    });
    verdicts.last().cloned().unwrap()
}

/// Gives the latents another first number, of as many bytes.
fn spoil(path: &Path, number: f32) {
    let mut bytes = std::fs::read(path).unwrap();
    let header = u64::from_le_bytes(bytes[..8].try_into().unwrap());
    let begin = 8 + usize::try_from(header).unwrap();
    bytes[begin..begin + 4].copy_from_slice(&number.to_le_bytes());
    std::fs::write(path, bytes).unwrap();
}

/// The reason comes by two ways, on the console and by the link, and in any order: the
/// verdict is always the same.
#[test]
fn latents_that_are_no_numbers_are_no_damaged_model_and_no_decode_begins() {
    for (number, want) in [
        (f32::NAN, "NaN stands at number 0 of tensor latents: "),
        (f32::INFINITY, "an infinity stands at number 0 of tensor"),
        (f32::NEG_INFINITY, "an infinity stands at number 0"),
    ] {
        let home = Home::new();
        let file = latents(&home, "l.safetensors", [16, 2, 4, 4]);
        spoil(&file, number);
        let run = Start::new(&home)
            .engine("decode", &words(&file, &model(), &home.path("o.gif")))
            .start()
            .finish(LIMIT);
        let verdict = last_verdict(&run);
        assert_eq!(verdict.id, VerdictId::AppError, "{}", run.digest());
        assert!(verdict.sentence.contains(want), "{}", verdict.sentence);
        assert!((verdict.confidence - 0.9).abs() < 1e-9, "{verdict:?}");
        assert_eq!(verdict.phase, Phase::ModelLoad, "{}", run.digest());
        let phases = run.all(|e| match e {
            Event::Phase(p) => Some(p.phase),
            _ => None,
        });
        assert!(!phases.contains(&Phase::VaeDecode), "{phases:?}");
    }
}

#[test]
fn whole_numbers_are_refused_as_latents_before_a_run_begins() {
    let home = Home::new();
    let file = latents(&home, "l.safetensors", [16, 2, 4, 4]);
    let bytes = std::fs::read(&file).unwrap();
    let at = bytes.windows(3).position(|w| w == b"F32").unwrap();
    let changed = [&bytes[..at], b"I32", &bytes[at + 3..]].concat();
    std::fs::write(&file, changed).unwrap();
    let words = words(&file, &model(), &home.path("o.gif"));
    let (code, text) = refused(&home, "decode", &words, &[]);
    assert_eq!(code, 65, "{text}");
    assert!(text.contains("tensor latents is stored as I32"), "{text}");
}

/// HunyuanVideo's tiny model, whose configuration does not know of its attention.
fn without_attention(home: &Home) -> PathBuf {
    let from = root().join("engine/tests/fixtures/hunyuan_vae_tiny");
    let to = home.path("model");
    std::fs::create_dir(&to).unwrap();
    let weights = "diffusion_pytorch_model.safetensors";
    std::fs::copy(from.join(weights), to.join(weights)).unwrap();
    let config = std::fs::read_to_string(from.join("config.json")).unwrap();
    let (yes, no) = (
        "\"mid_block_add_attention\": true",
        "\"mid_block_add_attention\": false",
    );
    assert!(config.contains(yes), "{config}");
    std::fs::write(to.join("config.json"), config.replace(yes, no)).unwrap();
    to
}

#[test]
fn weights_that_are_not_used_are_told_of() {
    let home = Home::new();
    let file = latents(&home, "l.safetensors", [16, 1, 4, 4]);
    let words = words(&file, &without_attention(&home), &home.path("o.gif"));
    let run = Start::new(&home)
        .engine("decode", &words)
        .start()
        .finish(LIMIT);
    run.assert_exit(0);
    let said = "weights of the decoder that are in the file are not used";
    let text = lines(&run);
    assert_eq!(text.matches(said).count(), 1, "{text}");
    assert!(text.contains("decoder.mid_block.attentions.0."), "{text}");
}
