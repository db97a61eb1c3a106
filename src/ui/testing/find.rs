//! Runs in which MIOpen's Find is open.

use super::healthy;
use crate::model::{
    Bytes, ConvDirection, ConvLayout, ConvType, Convolution, FindFigures, FindMark, FindState,
    Health, Metric, MiopenRelease, Mono, NextStep, Phase, VerdictId,
};
use crate::run::Snapshot;
use crate::run::snapshot::{Card, FindView};

pub(super) fn convolution(input: [u32; 3]) -> Convolution {
    Convolution {
        dims: 3,
        dtype: ConvType::Bf16,
        direction: ConvDirection::Forward,
        layout: ConvLayout::ChannelsFirst,
        transposed: false,
        n: 1,
        c: 128,
        k: 128,
        groups: 1,
        input,
        kernel: [3; 3],
        pad: [1; 3],
        stride: [1; 3],
        dilation: [1; 3],
    }
}

fn view(marks: &[(u64, FindMark)], rocm: [u32; 2]) -> Option<Box<FindView>> {
    let mut open = None;
    for (at, mark) in marks {
        FindState::fold(&mut open, Mono::from_secs(*at), mark);
    }
    let release = MiopenRelease {
        rocm: Some(rocm),
        miopen: None,
    };
    let card = Card {
        arch: Some("gfx1100".to_owned()),
        vram: Some(Bytes::gib(24)),
    };
    open.map(|state| Box::new(FindView::of(state, release, &card)))
}

fn opened(at: u64, input: [u32; 3]) -> [(u64, FindMark); 2] {
    let key = "k".to_owned();
    let conv = FindMark::Convolution(convolution(input));
    [(at, FindMark::Opened { key }), (at, conv)]
}

fn solver(name: &str) -> FindMark {
    FindMark::Solver {
        name: name.to_owned(),
    }
}

fn decodes(s: &mut Snapshot) {
    s.phase = Phase::VaeDecode;
    s.phase_since = Mono::from_secs(800);
    s.progress = None;
    s.verdict.id = VerdictId::CompileWarmup;
    s.verdict.phase = s.phase;
    s.verdict.sentence = "MIOpen searches for 71 s".to_owned();
    s.verdict_since = Mono::from_secs(801);
    s.verdict.next = None;
}

/// A solver is tuned; all is well.
pub(in crate::ui) fn find_tunes() -> Snapshot {
    let mut s = healthy();
    decodes(&mut s);
    let [open, conv] = opened(801, [9, 128, 128]);
    let figures = FindMark::Figures(FindFigures {
        ms: Some(4.5),
        best_ms: Some(4.2),
        tried: Some(12),
        total: Some(45),
        eta_s: Some(90.0),
        ..FindFigures::default()
    });
    let name = "ConvHipImplicitGemm3DGroupFwdXdlops";
    let marks = [open, conv, (840, solver(name)), (870, figures)];
    s.find = view(&marks, [7, 11]);
    s
}

/// Nothing but the naive kernel is left, and that is timed without an end.
pub(in crate::ui) fn find_stalls() -> Snapshot {
    let mut s = healthy();
    decodes(&mut s);
    let [open, conv] = opened(580, [17, 256, 256]);
    let marks = [open, conv, (581, solver("ConvDirectNaiveConvFwd"))];
    s.find = view(&marks, [6, 4]);
    s.cpu_percent = Some(100.0);
    s.gpus[0].power_w = Metric::Fresh(141.0);
    s.verdict.id = VerdictId::FindStall;
    s.verdict.health = Health::Suspect;
    s.verdict.confidence = 0.45;
    s.verdict.onset = Mono::from_secs(581);
    let cure = s.find.as_ref().map(|f| f.cure.sentence());
    s.verdict.sentence = format!(
        "MIOpen has been searching for 4 min 51 s without an advance (our limit: 5 min 00 s); it times the naive kernel, which may take minutes a launch; {}",
        cure.unwrap_or_default()
    );
    s.verdict.next = Some(NextStep {
        what: "verdict find_stall".to_owned(),
        at: Mono::from_secs(881),
    });
    s
}
