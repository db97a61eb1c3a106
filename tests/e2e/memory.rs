//! Whose memory it is that fills the card.

use std::process::{Command, Stdio};
use std::time::Duration;

use framepack_tui::model::sample::SourceState;
use framepack_tui::model::{Bytes, Event, Metric, Sample};

use crate::harness::{Card, Home, Start, python};

/// A process of this test that ends with it.
struct Stranger(std::process::Child);

impl Stranger {
    fn start() -> Self {
        let mut command = Command::new("sleep");
        command.arg("600").stdin(Stdio::null());
        Self(command.spawn().unwrap())
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn the_trees_memory_is_shown_and_that_of_others_apart() {
    let home = Home::new();
    let card = Card::rx7900xtx();
    card.set("vram_used=20G");
    let stranger = Stranger::start();
    card.client_elsewhere(stranger.0.id(), Bytes::gib(9));
    let mut command = card.client(Bytes::gib(8));
    // a child that uses no card belongs to the tree as well
    let program = "import subprocess; subprocess.run(['sleep', '8'])";
    command.extend([python().into_os_string(), "-c".into(), program.into()]);
    let run = Start::new(&home)
        .card(&card)
        .options(&["--profile", "generic-amd"])
        .command(&command)
        .start()
        .finish(Duration::from_mins(2));
    run.assert_exit(0);
    let samples: Vec<Sample> = run.all(|e| match e {
        Event::Sample(s) => Some(Sample::clone(s)),
        _ => None,
    });
    let held = |s: &Sample| {
        let on = s.process.as_ref()?.on_cards.first()?.clone();
        (on.vram == Metric::Fresh(Bytes::gib(8))).then_some(on)
    };
    let sample = samples.iter().rfind(|s| held(s).is_some());
    let sample = sample.unwrap_or_else(|| panic!("its memory was never shown{}", run.digest()));
    let on = held(sample).unwrap();
    assert_eq!((on.gpu.0.as_str(), on.processes), (Card::ADDRESS, 1));
    assert!(matches!(on.source.as_str(), "fdinfo" | "kfd"), "{on:?}");
    let note = on.compute_note.as_deref().unwrap_or_default();
    assert!(note.starts_with("no per-process % for ROCm"), "{note}");
    let others = sample.gpus[0].held_by_others(sample.process.as_ref());
    assert_eq!(others, Some(Bytes::gib(12)));
    let source = sample.sources.iter().find(|s| s.name == "clients").unwrap();
    assert_eq!(source.state, SourceState::Ok, "{source:?}");
    // before it opened the card, all of it was others'
    let before = samples.iter().find_map(|s| {
        let on = s.process.as_ref()?.on_cards.first()?;
        (on.processes == 0).then(|| s.gpus[0].held_by_others(s.process.as_ref()))
    });
    assert!(
        before.is_none_or(|b| b == Some(Bytes::gib(20))),
        "{before:?}"
    );
}
