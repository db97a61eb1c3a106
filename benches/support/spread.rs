//! Many measurements of the same thing.

/// Measurements of the same thing, in their order.
#[derive(Debug, Default, Clone)]
pub(crate) struct Spread(Vec<f64>);

impl Spread {
    /// One more.
    pub(crate) fn add(&mut self, value: f64) {
        self.0.push(value);
    }

    /// How many.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The value that `percent` of all do not exceed (nearest rank); 0 of none.
    pub(crate) fn percentile(&self, percent: usize) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let rank = (sorted.len() * percent).div_ceil(100).max(1);
        sorted.get(rank - 1).copied().unwrap_or(0.0)
    }

    /// `median 1.2, p95 3.4, max 5.6 of 20`.
    pub(crate) fn words(&self) -> String {
        format!(
            "median {:.2}, p95 {:.2}, max {:.2} of {}",
            self.percentile(50),
            self.percentile(95),
            self.percentile(100),
            self.len()
        )
    }
}
