//! Where and how a decode is tried, and what is tried next.

use candle_core::DType;

use super::Place;
use crate::error::Error;
use crate::plan::Choice;
use crate::vae::precision::{higher, lower, word};

/// Where and how it is tried.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Try {
    pub(super) place: Place,
    pub(super) dtype: DType,
    /// The strategy that took too much memory.
    pub(super) failed: Option<Choice>,
    /// The precision was changed already, for the sake of the numbers or of the memory: it does not go back.
    turned: Option<Turn>,
}

/// Why a precision is not the first one any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// NaN or infinite numbers came out.
    Up,
    /// No strategy fitted.
    Down,
}

impl Try {
    pub(super) fn first(place: Place, dtype: DType) -> Self {
        Self {
            place,
            dtype,
            failed: None,
            turned: None,
        }
    }

    /// What is tried after `e`, and the setting that it changes. `chosen`: the planner's way, where it was asked: one that
    /// the settings name is not ours to change. Order: smaller pieces, half precision, the processor. `None`: that is all.
    pub(super) fn after(
        &self,
        e: &Error,
        chosen: Option<Choice>,
    ) -> Option<(Self, &'static str, &'static str)> {
        let too_much = e.is_out_of_memory();
        let none = matches!(e, Error::NotFinite { .. });
        let turned = |dtype, turn| {
            let next = Self {
                dtype,
                failed: None,
                turned: Some(turn),
                ..self.clone()
            };
            (next, "vae_dtype", word(dtype))
        };
        if too_much && chosen.is_some() {
            let next = Self {
                failed: chosen,
                ..self.clone()
            };
            return Some((next, "tiles", "smaller"));
        }
        if self.place != Place::Card {
            return None;
        }
        if none {
            if self.turned != Some(Turn::Down) {
                return higher(self.dtype).map(|dtype| turned(dtype, Turn::Up));
            }
        } else if !too_much {
            return None;
        } else if let (true, Some(dtype)) = (self.turned.is_none(), lower(self.dtype)) {
            return Some(turned(dtype, Turn::Down));
        }
        Some((Self::first(Place::Cpu, DType::F32), "vae_device", "cpu"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vae::Strategy;

    #[test]
    fn retreat_is_smaller_pieces_then_half_precision_then_the_processor() {
        let full = || Error::Memory("nothing fits".to_owned());
        let strategy = Strategy::Exact { budget: 1 };
        let chosen = Some(Choice { strategy, peak: 2 });
        let first = Try::first(Place::Card, DType::F32);
        let (now, what, to) = first.after(&full(), chosen).unwrap();
        assert_eq!((what, to, now.failed), ("tiles", "smaller", chosen));
        let (now, what, to) = now.after(&full(), None).unwrap();
        assert_eq!((what, to), ("vae_dtype", "bfloat16"));
        assert_eq!((now.dtype, now.failed), (DType::BF16, None));
        // what the way back up would need is known not to be there
        let none = Error::NotFinite {
            half: "the decoder",
            dtype: "bfloat16",
        };
        for e in [&none, &full()] {
            let (now, what, to) = now.after(e, None).unwrap();
            assert_eq!((what, to), ("vae_device", "cpu"));
            assert_eq!(now, Try::first(Place::Cpu, DType::F32));
            assert_eq!(now.after(&none, None), None);
            assert_eq!(now.after(&full(), None), None);
            assert!(now.after(&full(), chosen).is_some());
        }
        let broken = Error::Argument("no".to_owned());
        assert_eq!(first.after(&broken, chosen), None);
        // nor is it tried elsewhere after a retreat: neither a full disk nor the user's stop is a want of memory
        let (smaller, _, _) = first.after(&full(), chosen).unwrap();
        for e in [&broken, &Error::Stopped] {
            assert_eq!(smaller.after(e, chosen), None);
            assert_eq!(smaller.after(e, None), None);
        }
    }

    #[test]
    fn numbers_that_are_none_raise_the_precision_and_nothing_lowers_it_again() {
        let none = || Error::NotFinite {
            half: "the decoder",
            dtype: "float16",
        };
        let mut now = Try::first(Place::Card, DType::F16);
        for to in ["bfloat16", "float32"] {
            let (next, what, word) = now.after(&none(), None).unwrap();
            assert_eq!((what, word), ("vae_dtype", to));
            now = next;
        }
        assert_eq!(now.after(&none(), None), None);
        let (now, what, _) = now.after(&Error::Memory(String::new()), None).unwrap();
        assert_eq!((what, now.place), ("vae_device", Place::Cpu));
    }
}
