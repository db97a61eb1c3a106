//! A seeded source of numbers: the same for ever, on every machine (splitmix64).

pub(super) struct Dice(u64);

impl Dice {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5eed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// One of `from..=to`.
    pub(super) fn between(&mut self, from: u32, to: u32) -> u32 {
        let span = u64::from(to - from) + 1;
        from + u32::try_from(self.next() % span).unwrap()
    }

    /// Whether something of this probability, in percent, happens.
    pub(super) fn percent(&mut self, p: u32) -> bool {
        self.between(0, 99) < p
    }

    pub(super) fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        let last = u32::try_from(of.len() - 1).unwrap();
        of[usize::try_from(self.between(0, last)).unwrap()]
    }
}
