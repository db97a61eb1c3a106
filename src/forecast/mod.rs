//! What follows from a convolution before it is run: the memory that MIOpen's GEMM needs
//! for it, which solvers are left, and what makes it fit again.
//!
//! Pure: figures in, figures and words out. The facts are MIOpen's own
//! (`src/solver/conv/gemm.cpp`, `gemm_common.cpp`, the changelog of ROCm 7.11) and are
//! named where they stand.

mod cure;
mod families;
mod im2col;
mod release;
mod vae;

use crate::model::{Bytes, Convolution, FindState, MiopenRelease};

pub use cure::{Cure, cure};
pub use families::Family;
pub use im2col::{GEMM_LIMIT, Smaller, smaller, workspace};
pub use release::Era;
pub use vae::{Scale, scale};

/// What is known of the card.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Card {
    /// Architecture, such as `gfx1100`; absent: not known.
    pub arch: Option<String>,
    /// Its own memory; absent: not known, or shared with the host.
    pub vram: Option<Bytes>,
}

/// An answer that may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Yes.
    Yes,
    /// No.
    No,
    /// What is known does not tell.
    Unknown,
}

/// What holds for one range of MIOpen's versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outlook {
    /// Which.
    pub era: Era,
    /// Most bytes that GEMM may use; absent: no limit is known.
    pub limit: Option<Bytes>,
    /// Every family, the naive kernel last.
    pub families: Vec<Family>,
    /// Whether the naive kernel is all that is left.
    pub only_naive: Answer,
}

impl Outlook {
    /// Whether GEMM can be used.
    pub fn gemm(&self) -> Answer {
        let mut all = self.families.iter();
        all.find(|f| f.name == families::GEMM)
            .map_or(Answer::Unknown, |f| f.left)
    }
}

/// What follows from a convolution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forecast {
    /// Bytes of the im2col buffer of MIOpen's GEMM; absent: the formula does not cover
    /// this direction.
    pub workspace: Option<u128>,
    /// For the version in use; for both ranges where it is not known.
    pub outlooks: Vec<Outlook>,
    /// Whether a Find times the naive kernel, as MIOpen is set by default.
    pub times_naive: Answer,
}

/// Works a convolution out.
pub fn forecast(conv: &Convolution, release: MiopenRelease, card: &Card) -> Forecast {
    let outlook = |era: &Era| {
        let limit = im2col::limit(conv.dtype, *era, release, card);
        let families = families::of(conv, *era, release, limit, card);
        Outlook {
            era: *era,
            limit,
            only_naive: families::only_naive(&families),
            families,
        }
    };
    let outlooks: Vec<Outlook> = release::eras(release).iter().map(outlook).collect();
    Forecast {
        workspace: workspace(conv),
        times_naive: times_naive(&outlooks, release),
        outlooks,
    }
}

/// Before ROCm 7.14 always. From then on only where no other solver is left.
fn times_naive(outlooks: &[Outlook], release: MiopenRelease) -> Answer {
    match release::since_7_14(release) {
        Some(false) => Answer::Yes,
        Some(true) if outlooks.iter().all(|o| o.only_naive == Answer::No) => Answer::No,
        Some(true) if outlooks.iter().all(|o| o.only_naive == Answer::Yes) => Answer::Yes,
        Some(true) | None => Answer::Unknown,
    }
}

impl Forecast {
    /// Whether the naive kernel is all that is left, in one of the versions that it may be.
    pub fn may_be_only_naive(&self) -> bool {
        let mut all = self.outlooks.iter();
        all.any(|o| o.only_naive == Answer::Yes)
    }

    /// Whether GEMM's buffer is too large in one of these versions, and no other family is
    /// certain to be left there.
    pub fn needs_smaller(&self) -> bool {
        let mut all = self.outlooks.iter();
        self.exceeded().is_some()
            && all.any(|o| o.gemm() == Answer::No && o.only_naive != Answer::No)
    }

    /// Whether GEMM can be used in every version that it may be.
    pub fn gemm_fits(&self) -> bool {
        self.outlooks.iter().all(|o| o.gemm() == Answer::Yes)
    }

    /// The lowest limit that may be in force and that the buffer exceeds.
    pub fn exceeded(&self) -> Option<Bytes> {
        let needed = self.workspace?;
        let limits = self.outlooks.iter().filter_map(|o| o.limit);
        limits.filter(|l| needed > u128::from(l.0)).min()
    }

    /// In a sentence: `im2col 7.7 GiB of at most 6.8 GiB: …`.
    pub fn words(&self) -> String {
        let families = self.words_of_families();
        match self.times_naive {
            Answer::No => {
                format!("{families}; the naive kernel is not timed (ROCm 7.14 and later)")
            }
            Answer::Yes | Answer::Unknown => families,
        }
    }

    fn words_of_families(&self) -> String {
        let needs = match self.workspace {
            Some(0) => "GEMM needs no im2col".to_owned(),
            Some(bytes) => format!("im2col {}", size(bytes)),
            None => "im2col not known for this direction".to_owned(),
        };
        let each = |o: &Outlook| {
            let limit = match o.limit {
                Some(limit) if self.workspace != Some(0) => format!("at most {limit}"),
                _ => String::new(),
            };
            let left = match (o.gemm(), o.only_naive) {
                (_, Answer::Yes) => "only the naive kernel is left".to_owned(),
                (Answer::Yes, _) => "GEMM fits".to_owned(),
                (Answer::No, Answer::No) => format!("no GEMM; left: {}", o.left()),
                (Answer::No, Answer::Unknown) => "no GEMM".to_owned(),
                (Answer::Unknown, _) => "whether GEMM fits is not known".to_owned(),
            };
            (limit, left)
        };
        let mut outlooks = self.outlooks.iter();
        match (outlooks.next(), outlooks.next()) {
            (Some(one), None) => match each(one) {
                (limit, left) if limit.is_empty() => format!("{needs}: {left}"),
                (limit, left) => format!("{needs}, {limit}: {left}"),
            },
            (Some(one), Some(other)) if each(one).1 == each(other).1 => {
                format!("{needs}: {}", each(one).1)
            }
            (Some(one), Some(other)) => {
                let say = |o: &Outlook| {
                    let (limit, left) = each(o);
                    let limit = Some(limit).filter(|l| !l.is_empty());
                    let limit = limit.map(|l| format!(" ({l})")).unwrap_or_default();
                    format!("{}{limit} {left}", o.era.words())
                };
                format!("{needs}: {}; {}", say(one), say(other))
            }
            (None, _) => needs,
        }
    }
}

impl Outlook {
    /// The families that are left besides the naive kernel.
    fn left(&self) -> String {
        let left = self.families.iter();
        let left = left.filter(|f| f.left == Answer::Yes && f.name != families::NAIVE);
        left.map(|f| f.name).collect::<Vec<_>>().join(", ")
    }
}

/// A number of bytes for people.
fn size(bytes: u128) -> String {
    Bytes(u64::try_from(bytes).unwrap_or(u64::MAX)).to_string()
}

/// An open Find with what follows from it.
#[derive(Debug, Clone, PartialEq)]
pub struct FindView {
    /// What MIOpen's lines say.
    pub state: FindState,
    /// What follows from the convolution; absent: it was not told which.
    pub forecast: Option<Forecast>,
    /// What would help, should it take too long.
    pub cure: Cure,
}

impl FindView {
    /// Works an open Find out.
    pub fn of(state: FindState, release: MiopenRelease, card: &Card) -> Self {
        let known = state.convolution.as_ref();
        let forecast = known.map(|c| forecast(c, release, card));
        Self {
            cure: cure(&state, release, card),
            forecast,
            state,
        }
    }
}

#[cfg(test)]
mod tests;
