//! The pace of the bar at hand: how long a step usually takes, and whether it has
//! become slow.
//!
//! A bar is measured against itself first. One of another job or total may count larger
//! steps, so only a pace that is several times slower than that of the same kind of step
//! earlier in the run is a crawl; sections that the program numbers are alike. What was
//! usual is frozen where a slow stretch begins, so that the stretch cannot become usual.

use std::time::Duration;

use crate::model::{Mono, Phase, Progress};

use super::thresholds::{Thresholds, secs};

/// Steps of a bar that are kept; longer bars are measured by their first ones.
const KEPT: usize = 512;
/// A pace this many times slower than the known one is unusual.
const MUCH_SLOWER: f64 = 5.0;
/// Slow steps that tell what the card drew when they began to be slow.
const FIRST: usize = 3;

/// One step, or several that one state of the bar told of.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Step {
    began: Mono,
    /// Seconds a step.
    took: f64,
    /// Mean watts and busy percent of the card meanwhile.
    power: Option<f64>,
    busy: Option<f64>,
}

/// What was usual in a bar before it became slow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Usual {
    /// Seconds a step: the median.
    pub(crate) step_s: f64,
    /// Three quarters of the steps took no longer than this.
    upper_s: f64,
    /// Median watts of the card.
    pub(crate) power: Option<f64>,
}

/// Slow steps at the end of a bar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Stretch {
    /// When the first of them began.
    pub(crate) since: Mono,
    /// How many have ended.
    pub(crate) ended: f64,
    /// Seconds a step, mean of those that have ended.
    pub(crate) step_s: f64,
    /// What a step usually took.
    pub(crate) usual: Usual,
    /// The one in flight takes as long already.
    pub(crate) open: bool,
    /// Mean watts and busy percent of the card.
    pub(crate) power: Option<f64>,
    pub(crate) busy: Option<f64>,
    /// Mean watts while the first of them were under way.
    pub(crate) power_at_first: Option<f64>,
}

impl Stretch {
    /// How long one of its steps takes.
    pub(crate) fn step(&self) -> Duration {
        secs(self.step_s)
    }

    /// How many times the usual.
    pub(crate) fn factor(&self) -> f64 {
        self.step_s / self.usual.step_s
    }
}

/// The last bar of steps of a generation, which is left once it is full.
#[derive(Debug, Clone, Copy, Default)]
struct Steps {
    began: Option<Mono>,
    /// When it became full; absent where another bar has begun since.
    done: Option<Mono>,
}

/// Mean of what was read since the last step.
#[derive(Debug, Clone, Copy, Default)]
struct Mean {
    sum: f64,
    n: f64,
}

impl Mean {
    fn add(&mut self, value: Option<f64>) {
        if let Some(v) = value {
            self.sum += v;
            self.n += 1.0;
        }
    }

    fn get(self) -> Option<f64> {
        (self.n > 0.0).then(|| self.sum / self.n)
    }
}

/// The bar at hand.
#[derive(Debug, Clone)]
pub(crate) struct Bar {
    what: Option<String>,
    pub(crate) total: Option<f64>,
    /// It counts steps of a generation.
    sampling: bool,
    /// The program left its loop before it was full.
    closed: bool,
    phase: Phase,
    /// When its first state came.
    pub(crate) began: Mono,
    done: f64,
    last: Mono,
    /// States that moved, warm-up included.
    moved: f64,
    /// The world stood still since the last state: the step at hand is no measure.
    interrupted: bool,
    steps: Vec<Step>,
    /// What is usual, and the median of all, as of the last step. Before a few steps
    /// were measured: what was usual in a section before.
    usual: Option<Usual>,
    median_s: Option<f64>,
    /// Where the slow stretch begins in `steps`, and what was usual before it.
    slow_from: Option<(usize, Usual)>,
    power: Mean,
    busy: Mean,
}

/// Follows bars.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pace {
    steps: Steps,
    bar: Option<Bar>,
    /// What was usual in the bar before, of the same job, name and total.
    before: Option<(Option<String>, Option<f64>, Usual)>,
    /// The slow stretch with which the last bar ended, until something else begins.
    ended_slow: Option<Stretch>,
    /// What was usual for each kind of step over the jobs, sections and clips of the run.
    remembered: Vec<(Kind, Usual)>,
}

/// A kind of step: the name of its bar and the phase in which it is drawn. The total is no
/// part of it: another clip has another number of the same steps.
type Kind = (Option<String>, Phase);

/// Kinds that are remembered.
const MOST_KINDS: usize = 64;

impl Pace {
    /// The bar at hand.
    pub(crate) const fn bar(&self) -> Option<&Bar> {
        self.bar.as_ref()
    }

    /// Whether a bar of steps is not full.
    pub(crate) fn is_unfilled(&self) -> bool {
        let bar = self.bar.as_ref();
        bar.is_some_and(|b| b.sampling && b.total.is_some_and(|t| b.done < t))
    }

    /// Whether the last bar counted steps of a generation, and all of them are done.
    pub(crate) const fn has_done_all_steps(&self) -> bool {
        self.steps.done.is_some()
    }

    /// Whether a bar of steps of a generation has begun after `moment`.
    pub(crate) fn has_begun_steps_since(&self, moment: Mono) -> bool {
        self.steps.began.is_some_and(|began| began > moment)
    }

    /// Whether the last bar, of steps or of files, is neither full nor left.
    pub(crate) fn is_open(&self) -> bool {
        let open = |b: &Bar| !b.closed && b.total.is_some_and(|t| b.done < t);
        self.bar.as_ref().is_some_and(open)
    }

    /// Whether its loop was left before it was full.
    pub(crate) fn is_closed(&self) -> bool {
        self.bar.as_ref().is_some_and(|b| b.closed)
    }

    /// What was usual in the bar before this one, if that was of the same kind.
    pub(crate) fn before(&self) -> Option<Usual> {
        let (what, total, usual) = self.before.as_ref()?;
        let bar = self.bar.as_ref()?;
        (bar.what == *what && same(bar.total, *total)).then_some(*usual)
    }

    /// A bar moved. `numbered`: it is that of a section that has a number. Gives the
    /// seconds of a step, where one was measured.
    pub(crate) fn progress(
        &mut self,
        now: Mono,
        (p, phase): (&Progress, Phase),
        numbered: bool,
        t: &Thresholds,
    ) -> Option<f64> {
        let goes_on = self
            .bar
            .as_ref()
            .is_some_and(|b| b.what == p.what && same(b.total, p.total) && p.done >= b.done);
        if !goes_on {
            self.ended_slow = None;
            self.leave();
            self.steps.done = None;
            if p.sampling {
                self.steps.began = Some(now);
            }
            self.bar = Some(Bar::new(now, p, phase));
            let alike = self.before().filter(|_| numbered);
            if let Some(bar) = &mut self.bar {
                bar.usual = alike;
            }
            return None;
        }
        let bar = self.bar.as_mut()?;
        // a line that names the phase may come behind the first state of the bar
        bar.phase = phase;
        bar.closed = p.closed;
        // the agent shows the bar first, the console knows that it counts steps
        bar.sampling |= p.sampling;
        if bar.sampling {
            self.steps.began = Some(bar.began);
        }
        let took = bar.advance(now, p.done, t);
        if bar.total.is_some_and(|total| p.done >= total) {
            if bar.sampling {
                self.steps.done = Some(now);
            }
            // what follows are no steps of it
            self.ended_slow = self.crawl(now, t);
            self.leave();
        }
        took
    }

    /// What was read of the card.
    pub(crate) fn sample(&mut self, power: Option<f64>, busy: Option<f64>) {
        if let Some(bar) = &mut self.bar {
            bar.power.add(power);
            bar.busy.add(busy);
        }
    }

    /// The phase or the section changed: what comes is another kind of step. The state
    /// of a bar that made it change belongs to it already.
    pub(crate) fn phase(&mut self, now: Mono) {
        self.ended_slow = None;
        if self.bar.as_ref().is_some_and(|b| b.last != now) {
            self.leave();
        }
    }

    /// The steps at hand, or those of the bar that ended last, where they take several
    /// times what is usual in their bar or was usual for their kind earlier in the run.
    pub(crate) fn crawl(&self, now: Mono, t: &Thresholds) -> Option<Stretch> {
        let Some(bar) = &self.bar else {
            return self.ended_slow;
        };
        let beside_itself = bar.stretch(now, t.crawl_factor);
        beside_itself.or_else(|| {
            let usual = self.remembered()?;
            let slow = bar.slower_than(usual, t.crawl_factor)?;
            // a larger job of the user's takes longer at full power
            let powers = slow.power.zip(usual.power);
            let starved = powers.map(|(now, then)| now < t.crawl_power_share * then);
            starved.unwrap_or(true).then_some(slow)
        })
    }

    /// Another job: what was usual for its kinds of steps stays known.
    pub(crate) fn job(&mut self, now: Mono) {
        // the state of a bar that shows the begin of the job belongs to it
        if self.bar.as_ref().is_some_and(|b| b.last == now) {
            return;
        }
        self.leave();
        self.bar = None;
        self.before = None;
        self.ended_slow = None;
    }

    /// Another attempt.
    pub(crate) fn begin(&self) -> Self {
        Self {
            remembered: self.remembered.clone(),
            ..Self::default()
        }
    }

    /// What was usual for steps of the present kind in an earlier bar of the run.
    pub(crate) fn remembered(&self) -> Option<Usual> {
        let bar = self.bar.as_ref()?;
        self.known(&(bar.what.clone(), bar.phase))
    }

    fn known(&self, kind: &Kind) -> Option<Usual> {
        let found = self.remembered.iter().find(|(k, _)| k == kind);
        found.map(|(_, usual)| *usual)
    }

    /// Remembers what was usual in a bar. A pace that would be a crawl beside the one that
    /// is known is not what is usual.
    fn remember(&mut self, kind: Kind, usual: Usual) {
        let known = self.remembered.iter_mut().find(|(k, _)| *k == kind);
        if let Some((_, known)) = known {
            if usual.step_s <= known.step_s * MUCH_SLOWER {
                *known = usual;
            }
        } else if self.remembered.len() < MOST_KINDS {
            self.remembered.push((kind, usual));
        }
    }

    /// R7: the step at hand is no measure.
    pub(crate) fn cut(&mut self) {
        if let Some(bar) = &mut self.bar {
            bar.interrupted = true;
        }
    }

    fn leave(&mut self) {
        if let Some(bar) = self.bar.take()
            && let Some(usual) = bar.usual
        {
            self.remember((bar.what.clone(), bar.phase), usual);
            self.before = Some((bar.what, bar.total, usual));
        }
    }
}

impl Bar {
    fn new(now: Mono, p: &Progress, phase: Phase) -> Self {
        Self {
            phase,
            what: p.what.clone(),
            total: p.total,
            sampling: p.sampling,
            closed: p.closed,
            began: now,
            done: p.done,
            last: now,
            moved: 0.0,
            interrupted: false,
            steps: Vec::new(),
            usual: None,
            median_s: None,
            slow_from: None,
            power: Mean::default(),
            busy: Mean::default(),
        }
    }

    fn advance(&mut self, now: Mono, done: f64, t: &Thresholds) -> Option<f64> {
        let steps = done - self.done;
        if steps <= 0.0 {
            return None;
        }
        let step = Step {
            began: self.last,
            took: now.since(self.last).as_secs_f64() / steps,
            power: std::mem::take(&mut self.power).get(),
            busy: std::mem::take(&mut self.busy).get(),
        };
        let warm = self.moved < t.pace_warm_count;
        let measures = !warm && !std::mem::take(&mut self.interrupted);
        self.moved += 1.0;
        self.done = done;
        self.last = now;
        if !measures || step.took <= 0.0 {
            return None;
        }
        self.take(step, t);
        Some(step.took)
    }

    fn take(&mut self, step: Step, t: &Thresholds) {
        match self.slow_from {
            Some((_, usual)) if !is_slow(step.took, &usual, t.throttled_factor) => {
                self.slow_from = None;
            }
            None => {
                let slow = self
                    .usual
                    .filter(|u| is_slow(step.took, u, t.throttled_factor));
                self.slow_from = slow.map(|u| (self.steps.len(), u));
            }
            Some(_) => {}
        }
        if self.steps.len() < KEPT {
            self.steps.push(step);
        } else if self.slow_from.is_some() {
            // the last one stands for the rest
            self.steps.pop();
            self.steps.push(step);
        }
        self.median_s = quantile(self.steps.iter().map(|s| s.took), 50);
        self.usual = match self.slow_from {
            Some((_, usual)) => Some(usual),
            None => usual_of(&self.steps, t).or(self.usual),
        };
    }

    /// Steps that have ended, the warm-up among them.
    pub(crate) const fn steps_ended(&self) -> f64 {
        self.moved
    }

    /// Since when the step at hand has been in flight.
    pub(crate) const fn step_since(&self) -> Mono {
        self.last
    }

    /// What is usual here, before it became slow.
    pub(crate) const fn usual(&self) -> Option<Usual> {
        self.usual
    }

    /// Median seconds a step over all that were measured.
    pub(crate) const fn median_s(&self) -> Option<f64> {
        self.median_s
    }

    /// Steps that are left; absent: how many there are in all is not known.
    pub(crate) fn left(&self) -> Option<f64> {
        Some((self.total? - self.done).max(0.0))
    }

    /// Steps so far and in all.
    pub(crate) const fn counted(&self) -> (f64, Option<f64>) {
        (self.done, self.total)
    }

    /// The whole bar as a slow stretch, where its steps take more than `factor` times what
    /// was usual for their kind earlier in the run.
    pub(crate) fn slower_than(&self, usual: Usual, factor: f64) -> Option<Stretch> {
        let median = self.median_s?;
        let first = self.steps.first()?;
        if !is_slow(median, &usual, factor) {
            return None;
        }
        let mean = |of: fn(&Step) -> Option<f64>| {
            let mut mean = Mean::default();
            self.steps.iter().for_each(|s| mean.add(of(s)));
            mean.get()
        };
        Some(Stretch {
            since: first.began,
            ended: count(self.steps.len()),
            step_s: median,
            usual,
            open: false,
            power: mean(|s| s.power),
            busy: mean(|s| s.busy),
            power_at_first: None,
        })
    }

    /// The last steps that took more than `factor` times the usual, if there are any.
    pub(crate) fn stretch(&self, now: Mono, factor: f64) -> Option<Stretch> {
        let (from, usual) = self.slow_from?;
        let slow = self.steps.get(from..)?;
        let n = slow
            .iter()
            .rev()
            .take_while(|s| is_slow(s.took, &usual, factor))
            .count();
        let slow = slow.get(slow.len() - n..)?;
        let first = slow.first()?;
        let mean_of = |steps: &[Step], of: &dyn Fn(&Step) -> Option<f64>| {
            let mut m = Mean::default();
            for step in steps {
                m.add(of(step));
            }
            m.get()
        };
        let mean = |of: &dyn Fn(&Step) -> Option<f64>| mean_of(slow, of);
        Some(Stretch {
            since: first.began,
            ended: count(n),
            step_s: mean(&|s| Some(s.took))?,
            usual,
            open: !self.interrupted && now.since(self.last) > secs(usual.step_s * factor),
            power: mean(&|s| s.power),
            busy: mean(&|s| s.busy),
            power_at_first: mean_of(slow.get(..FIRST).unwrap_or(slow), &|s| s.power),
        })
    }
}

/// A step that is slow for the usual one, and for most of those: a sampler that skips
/// some steps has two kinds of them.
fn is_slow(took: f64, usual: &Usual, factor: f64) -> bool {
    took > usual.step_s * factor && took > usual.upper_s * factor.min(2.0)
}

fn usual_of(steps: &[Step], t: &Thresholds) -> Option<Usual> {
    if count(steps.len()) < t.pace_usual_count {
        return None;
    }
    Some(Usual {
        step_s: quantile(steps.iter().map(|s| s.took), 50)?,
        upper_s: quantile(steps.iter().map(|s| s.took), 75)?,
        power: quantile(steps.iter().filter_map(|s| s.power), 50),
    })
}

/// The value below which so many percent of them lie.
fn quantile(values: impl Iterator<Item = f64>, percent: usize) -> Option<f64> {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    let at = (sorted.len() * percent / 100).min(sorted.len().checked_sub(1)?);
    sorted.get(at).copied()
}

fn same(a: Option<f64>, b: Option<f64>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => (a - b).abs() < f64::EPSILON,
        (None, None) => true,
        _ => false,
    }
}

/// Numbers of steps are small.
fn count(n: usize) -> f64 {
    f64::from(u32::try_from(n).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn at(done: f64, total: f64) -> Progress {
        Progress {
            what: None,
            done,
            total: Some(total),
            seconds_per_step: None,
            sampling: true,
            closed: false,
        }
    }

    /// A bar whose steps take so many seconds; the first one is warm-up.
    fn bar(took: &[u64]) -> (Pace, Mono) {
        let t = Thresholds::DEFAULT;
        let mut pace = Pace::default();
        let mut now = Mono::from_secs(100);
        pace.progress(now, (&at(0.0, 50.0), Phase::Sampling), false, &t);
        for (k, s) in took.iter().enumerate() {
            now += Duration::from_secs(*s);
            pace.progress(now, (&at(count(k + 1), 50.0), Phase::Sampling), false, &t);
        }
        (pace, now)
    }

    #[test]
    fn slow_is_what_is_slow_against_the_steps_before() {
        let (pace, now) = bar(&[90, 4, 4, 4, 5, 30, 28]);
        let s = pace.bar().unwrap().stretch(now, 5.0).unwrap();
        assert_eq!((s.since, s.ended), (Mono::from_secs(207), 2.0));
        assert!((s.factor() - 7.25).abs() < 1e-9, "{s:?}");
        assert!(!s.open);
        // the warm-up is no measure, and one normal step ends a stretch
        for took in [&[90, 4, 4][..], &[4, 4, 4, 4, 30, 4], &[4, 30, 30, 30]] {
            let (pace, now) = bar(took);
            assert_eq!(pace.bar().unwrap().stretch(now, 5.0), None, "{took:?}");
        }
    }

    #[test]
    fn a_stretch_does_not_become_the_usual() {
        let mut took = vec![4, 4, 4, 4];
        took.extend([30; 40]);
        let (pace, now) = bar(&took);
        let s = pace.bar().unwrap().stretch(now, 5.0).unwrap();
        assert_eq!(s.ended.to_bits(), 40.0_f64.to_bits());
        assert_eq!(pace.bar().unwrap().usual(), Some(s.usual));
    }

    #[test]
    fn a_sampler_that_skips_steps_is_not_slow() {
        let (pace, now) = bar(&[30, 30, 1, 30, 1, 1, 30, 1, 30, 30]);
        assert_eq!(pace.bar().unwrap().stretch(now, 1.25), None);
    }

    #[test]
    fn another_bar_is_another_kind() {
        let t = Thresholds::DEFAULT;
        let (mut pace, now) = bar(&[4, 4, 4, 4, 4]);
        let later = now + Duration::from_secs(1);
        pace.phase(now);
        assert!(pace.bar().is_some(), "the bar itself changed the phase");
        pace.progress(later, (&at(0.0, 50.0), Phase::Sampling), false, &t);
        assert_eq!(pace.bar().unwrap().median_s(), None);
        assert!((pace.before().unwrap().step_s - 4.0).abs() < 1e-9);
        pace.progress(later, (&at(0.0, 20.0), Phase::Sampling), false, &t);
        assert_eq!(pace.before(), None);
        pace.job(Mono::from_secs(100_000));
        assert!(pace.bar().is_none());
    }

    #[test]
    fn a_step_in_which_the_machine_slept_is_no_measure() {
        let t = Thresholds::DEFAULT;
        let (mut pace, mut now) = bar(&[4, 4, 4, 4, 4]);
        pace.cut();
        now += Duration::from_secs(4000);
        pace.progress(now, (&at(6.0, 50.0), Phase::Sampling), false, &t);
        assert_eq!(pace.bar().unwrap().stretch(now, 1.25), None);
    }
}
