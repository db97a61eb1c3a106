//! What helps where a Find takes too long.

use crate::model::{ActionId, ConvLayout, FindState, MiopenRelease};

use super::im2col::{Smaller, smaller};
use super::release::since_7_14;
use super::{Card, Forecast, forecast, size};

/// What helps, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cure {
    /// What to do.
    pub action: ActionId,
    /// A variable that helps and its value: mostly one that switches the family off which
    /// is being timed.
    pub env: Option<(&'static str, &'static str)>,
    /// What to do, with its numbers; a clause without a full stop.
    pub text: String,
    /// Why, where that is known; another clause.
    pub why: Option<String>,
}

impl Cure {
    const fn new(action: ActionId, text: String, why: Option<String>) -> Self {
        Self {
            action,
            env: None,
            text,
            why,
        }
    }

    /// What to do and why, in one sentence without a full stop.
    pub fn sentence(&self) -> String {
        match &self.why {
            Some(why) => format!("{}: {why}", self.text),
            None => self.text.clone(),
        }
    }
}

/// Switches of MIOpen's families (`src/include/miopen/conv/…`): part of a solver's name,
/// variable, words. 0 leaves the family out.
const SWITCHES: [(&str, &str, &str); 4] = [
    (
        "naive",
        "MIOPEN_DEBUG_CONV_DIRECT_NAIVE_CONV_FWD",
        "the naive kernel",
    ),
    ("wino", "MIOPEN_DEBUG_CONV_WINOGRAD", "Winograd"),
    (
        "implicitgemm",
        "MIOPEN_DEBUG_CONV_IMPLICIT_GEMM",
        "implicit GEMM",
    ),
    ("fft", "MIOPEN_DEBUG_CONV_FFT", "FFT"),
];

/// The cure that follows from an open Find: a smaller tile or chunk where nothing but the
/// naive kernel is left, else fast find, with the family off that is being timed where
/// another one is certain to be left.
pub fn cure(find: &FindState, release: MiopenRelease, card: &Card) -> Cure {
    let forecast = find.convolution.map(|c| forecast(&c, release, card));
    if let (Some(f), Some(c)) = (&forecast, &find.convolution) {
        if c.layout == ConvLayout::ChannelsLast && f.may_be_only_naive() {
            return channels_first(f);
        }
        let limit = f.exceeded().filter(|_| f.needs_smaller());
        if let Some(s) = limit.and_then(|limit| smaller(c, limit)) {
            return fewer(f, &s);
        }
        if f.may_be_only_naive() {
            return Cure::new(
                ActionId::TiledVae,
                "smaller tiles make each launch shorter".to_owned(),
                Some("only the naive kernel takes this convolution".to_owned()),
            );
        }
    }
    if let Some(refused) = refused(find) {
        let text =
            "fast find takes a solver by estimate and times none; smaller tiles need less memory";
        return Cure::new(ActionId::FastFind, text.to_owned(), Some(refused));
    }
    let fits = forecast.as_ref().is_some_and(Forecast::gemm_fits);
    let naive = find.is_naive();
    if naive && since_7_14(release) == Some(true) {
        return alone();
    }
    let (text, why) = match (&forecast, naive) {
        (Some(f), true) if fits => (
            "fast find prefers GEMM to the naive kernel and times neither",
            f.workspace.map(|w| format!("GEMM fits ({})", size(w))),
        ),
        (_, true) => (
            "fast find does not time the naive kernel; smaller tiles make each launch shorter",
            Some("a launch may take minutes before ROCm 7.14, whose Find leaves that kernel out where another is left".to_owned()),
        ),
        (_, false) => ("fast find takes a solver by estimate and times none", None),
    };
    let mut text = text.to_owned();
    let env = find.solver.as_deref().and_then(switch).filter(|(name, _)| {
        // switched off where nothing else is certain to be left, it ends in an error
        !name.contains("NAIVE") || fits
    });
    if let Some((variable, what)) = env {
        text = format!("{text}; or leave {what} out ({variable}=0)");
    }
    Cure {
        action: ActionId::FastFind,
        env: env.map(|(variable, _)| (variable, "0")),
        text,
        why,
    }
}

/// The naive kernel in a Find of ROCm 7.14 or later.
fn alone() -> Cure {
    Cure::new(
        ActionId::TiledVae,
        "smaller tiles make each launch shorter".to_owned(),
        Some("from ROCm 7.14 on a Find times the naive kernel only where no other solver succeeded, or where MIOPEN_NAIVE_DISABLE_IF_ALT=0 or MIOPEN_NAIVE_TIMEOUT=0 is set (see whether one is)".to_owned()),
    )
}

/// MIOpen's GEMM takes no channels-last tensors; torch passes them on only where it is
/// asked to.
fn channels_first(f: &Forecast) -> Cure {
    const VARIABLE: &str = "PYTORCH_MIOPEN_SUGGEST_NHWC";
    let tiles = f.exceeded().map_or("", |_| " with smaller tiles");
    Cure {
        action: ActionId::EnvToggle,
        env: Some((VARIABLE, "0")),
        text: format!("channels first ({VARIABLE}=0){tiles} lets GEMM be used"),
        why: Some("in channels last only the naive kernel is left".to_owned()),
    }
}

fn switch(solver: &str) -> Option<(&'static str, &'static str)> {
    let lower = solver.to_lowercase();
    let found = SWITCHES.iter().find(|(part, ..)| lower.contains(part));
    found.map(|(_, variable, what)| (*variable, *what))
}

/// What was given too little workspace.
fn refused(find: &FindState) -> Option<String> {
    let w = find.workspace.as_ref()?;
    let short = w.provided < w.required;
    let given = if w.provided == 0 {
        "none".to_owned()
    } else {
        size(w.provided.into())
    };
    (short && w.solver.starts_with("Gemm")).then(|| {
        format!(
            "GEMM needs a workspace of {} and the program gave it {given}",
            size(w.required.into())
        )
    })
}

/// `a tile of at most 224x224 px or a chunk of at most 13 frames lets GEMM be used; …`.
fn fewer(f: &Forecast, s: &Smaller) -> Cure {
    let by = match (s.tile_px, s.frames) {
        (Some(px), Some(frames)) => format!(
            "a tile of at most {px}x{px} px or a chunk of at most {frames} frame{}",
            if frames == 1 { "" } else { "s" }
        ),
        (Some(px), None) => format!("a tile of at most {px}x{px} px"),
        (None, Some(frames)) => format!("a chunk of at most {frames} frames"),
        (None, None) => format!(
            "a tile with sides of at most {} % of the present ones ({side}x{side} in this layer)",
            s.percent,
            side = s.side
        ),
    };
    let limit = f.exceeded().map_or_else(String::new, |l| l.to_string());
    let needed = f.workspace.map_or_else(String::new, size);
    let when = if let [_] = f.outlooks[..] {
        ""
    } else {
        " before ROCm 7.11"
    };
    let left = if f.may_be_only_naive() {
        "only the naive kernel is left, for fast find too"
    } else {
        "GEMM is left out"
    };
    Cure::new(
        ActionId::TiledVae,
        format!("{by} lets GEMM be used"),
        Some(format!(
            "now its im2col needs {needed}, MIOpen allows {limit}{when}, and {left}"
        )),
    )
}
