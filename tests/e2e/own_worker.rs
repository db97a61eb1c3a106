//! What is told of a run of our own worker beyond that of any other program: what counts as its result, and what helps it.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use framepack_tui::model::{Bytes, Event, VerdictId};

use crate::decode::{LIMIT, latents, model, words};
use crate::harness::{Finished, Home, Start};

/// A decode on a card whose program is this script; `$OUT` is the output.
fn imitated(home: &Home, output: &Path, script: &str) -> Finished {
    let program = home.path("framepack-tui-cuda");
    let out = output.display();
    let script = format!("#!/bin/sh\n[ \"$1\" = probe ] && exit 0\nOUT={out}\n{script}\n");
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let file = latents(home, "l.safetensors", [16, 2, 4, 4]);
    let mut words = words(&file, &model(), output);
    *words.last_mut().unwrap() = "cuda".into();
    Start::new(home)
        .engine("decode", &words)
        .env("FPT_CUDA_WORKER", &program)
        .start()
        .finish(LIMIT)
}

fn results(run: &Finished) -> Vec<(String, Bytes)> {
    run.all(|e| match e {
        Event::Artefact(a) => Some((a.path.clone(), a.size)),
        _ => None,
    })
}

#[test]
fn what_others_write_beside_the_output_is_no_result() {
    let home = Home::new();
    let output = home.path("out/o.gif");
    let others = "echo other > ${OUT%/*}/other.mp4; echo Saved to ${OUT%/*}/other.mp4";
    let run = imitated(&home, &output, &format!("{others}\nexit 1"));
    run.assert_exit(20);
    assert_eq!(results(&run), []);

    let late = "sleep 1; echo later > ${OUT%/*}/later.mp4";
    let script = format!("{others}\necho done > $OUT; echo Wrote $OUT\n{late}");
    let run = imitated(&home, &output, &script);
    run.assert_exit(0);
    let own = (output.display().to_string(), Bytes(5));
    assert_eq!(results(&run), [own], "{}", run.digest());
}

#[test]
fn want_of_memory_is_answered_for_a_decode() {
    let home = Home::new();
    let script = "echo 'memory allocation of 3317760 bytes failed' >&2; kill -ABRT $$";
    let run = imitated(&home, &home.path("o.gif"), script);
    run.assert_exit(20);
    let advice = run.all(|e| match e {
        Event::Verdict(v) if v.id == VerdictId::HostOom => Some(v.remedy.clone()?.why),
        Event::RunFinished { summary, .. } => Some(summary.clone()),
        _ => None,
    });
    assert!(advice.len() >= 2, "{}", run.digest());
    for text in advice {
        assert!(
            text.contains("the same command, which goes on after the frames that are finished"),
            "{text}"
        );
        assert!(text.contains("(vae_chunk, vae_tile)"), "{text}");
        assert!(!text.contains("text encoder"), "{text}");
    }
}
