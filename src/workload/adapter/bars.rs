//! Bars by name: whether a state of one is new, or a picture that was painted before.
//!
//! A thread may repaint a bar for ever while its job hangs, and a bar that was left at 5/8
//! may be painted again after another one began. Only a count that advances, or a bar that
//! starts again, says that the program did something.

use super::tqdm::Bar;

/// Bars that are remembered; the one that was painted longest ago goes first.
const MOST: usize = 32;

/// What a state of a bar says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// A bar that was not known, or a known one from its beginning on.
    Begins,
    /// Its count is higher than ever.
    Advances,
    /// The same state as before, or an older one.
    Repainted,
}

#[derive(Debug)]
struct Known {
    name: String,
    total: Option<u64>,
    /// The first state since the bar began.
    first: State,
    /// The highest count since then, and the bar's clock when it was reached.
    most: State,
    /// The last of several counts below the highest one that rose in turn, and how many.
    rising: Option<(f64, u32)>,
}

/// Counts that rise in turn below the highest one: a bar that starts again, though its first
/// states were lost. Fewer may be repaints of several old bars in turn.
const A_NEW_ROUND: u32 = 3;

#[derive(Debug, Clone, Copy)]
struct State {
    done: f64,
    elapsed: Option<f64>,
}

impl Known {
    fn new(name: String, total: Option<u64>, state: State) -> Self {
        Self {
            name,
            total,
            first: state,
            most: state,
            rising: None,
        }
    }

    /// Whether a state is the first of the bar's next round. The clock of a round begins at
    /// zero; a repaint keeps the old time or shows a later one.
    fn begins_again(&self, state: State) -> bool {
        if state.done <= 0.0 {
            let before = self.most.elapsed.filter(|_| self.most.done > 0.0);
            let earlier = |t: f64| t <= 0.0 || before.is_some_and(|b| t <= b);
            return state.elapsed.is_none_or(earlier);
        }
        let earlier = match (state.elapsed, self.first.elapsed) {
            (Some(now), Some(first)) => now < first,
            _ => true,
        };
        let at_first = state.done <= self.first.done && self.first.done < self.most.done;
        (at_first && earlier) || self.rising.is_some_and(|(_, n)| n >= A_NEW_ROUND)
    }

    fn turn(&mut self, state: State) -> Turn {
        if state.done > self.most.done {
            self.most = state;
            self.rising = None;
            return Turn::Advances;
        }
        self.rising = match self.rising {
            _ if state.done >= self.most.done => None,
            Some((before, n)) if state.done > before => Some((state.done, n + 1)),
            Some((before, n)) if state.done >= before => Some((before, n)),
            _ => Some((state.done, 1)),
        };
        if self.begins_again(state) {
            (self.first, self.most, self.rising) = (state, state, None);
            return Turn::Begins;
        }
        Turn::Repainted
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Bars {
    /// The one that was painted last stands last.
    known: Vec<Known>,
}

impl Bars {
    /// Takes a state of a bar. Numbers and times in its name are no part of it.
    pub(super) fn turn(&mut self, bar: &Bar) -> Turn {
        let desc = bar.desc.as_deref().unwrap_or_default();
        let name: String = desc.chars().filter(|c| !c.is_ascii_digit()).collect();
        let total = bar.total.map(f64::to_bits);
        let state = State {
            done: bar.done,
            elapsed: bar.elapsed,
        };
        let is = |k: &Known| k.total == total && k.name == name;
        let Some(at) = self.known.iter().position(is) else {
            if self.known.len() == MOST {
                self.known.remove(0);
            }
            self.known.push(Known::new(name, total, state));
            return Turn::Begins;
        };
        let mut known = self.known.remove(at);
        let turn = known.turn(state);
        self.known.push(known);
        turn
    }
}

#[cfg(test)]
mod tests {
    use super::super::tqdm;
    use super::*;

    fn turns(states: &[&str]) -> Vec<Turn> {
        let mut bars = Bars::default();
        let parsed = states.iter().map(|s| tqdm::parse(s).unwrap());
        parsed.map(|b| bars.turn(&b)).collect()
    }

    #[test]
    fn counts_that_advance_are_told_from_repaints() {
        use Turn::{Advances, Begins, Repainted};
        let told = turns(&[
            "  0%|  | 0/8 [00:00<?, ?it/s]",
            " 62%|##| 5/8 [00:05<00:03, 1.0s/it]",
            " 62%|##| 5/8 [00:05<00:03, 1.0s/it]",
            " 62%|##| 5/8 [00:09<00:03, 1.8s/it]",
            "100%|##| 8/8 [00:12<00:00, 1.0s/it]",
            " 62%|##| 5/8 [00:14<00:03, 1.0s/it]",
            " 62%|##| 5/8 [00:05<00:03, 1.0s/it]",
            "  0%|  | 0/8 [00:30<?, ?it/s]",
            "  0%|  | 0/8 [00:00<?, ?it/s]",
            " 12%|##| 1/8 [00:01<00:07, 1.0s/it]",
        ]);
        let want = [
            Begins, Advances, Repainted, Repainted, Advances, Repainted, Repainted, Repainted,
            Begins, Advances,
        ];
        assert_eq!(told, want);
    }

    #[test]
    fn a_round_whose_first_states_were_lost_begins_when_it_counts_on() {
        use Turn::{Advances, Begins, Repainted};
        let told = turns(&[
            "  0%|  | 0/8 [00:00<?, ?it/s]",
            "100%|##| 8/8 [00:08<00:00, 1.0s/it]",
            " 25%|##| 2/8 [00:02<00:06, 1.0s/it]",
            " 37%|##| 3/8 [00:03<00:05, 1.0s/it]",
            " 50%|##| 4/8 [00:04<00:04, 1.0s/it]",
        ]);
        assert_eq!(told, [Begins, Advances, Repainted, Repainted, Begins]);
        // three old bars of one name that are painted in turn
        let mut states = vec!["100%|##| 8/8 [00:08<00:00, 1.0s/it]"];
        for _ in 0..4 {
            states.extend([
                " 25%|##| 2/8 [00:02<00:06, 1.0s/it]",
                " 50%|##| 4/8 [00:04<00:04, 1.0s/it]",
                "100%|##| 8/8 [00:08<00:00, 1.0s/it]",
            ]);
        }
        assert!(turns(&states)[1..].iter().all(|t| *t == Repainted));
    }

    #[test]
    fn bars_of_other_names_and_lengths_are_others() {
        let told = turns(&[
            "Section 1: 0%|  | 0/8 [00:00<?, ?it/s]",
            "Section 1: 50%|##| 4/8 [00:04<00:04, 1.0s/it]",
            "all: 0%|  | 0/8 [00:00<?, ?it/s]",
            "Section 1: 50%|##| 4/8 [00:04<00:04, 1.0s/it]",
            "  0%|  | 0/9 [00:00<?, ?it/s]",
        ]);
        assert_eq!(told[2..], [Turn::Begins, Turn::Repainted, Turn::Begins]);
    }

    #[test]
    fn no_more_bars_are_remembered_than_planned() {
        let mut bars = Bars::default();
        for total in 1..200 {
            let text = format!("  0%|  | 0/{total} [00:00<?, ?it/s]");
            bars.turn(&tqdm::parse(&text).unwrap());
        }
        assert_eq!(bars.known.len(), MOST);
    }
}
