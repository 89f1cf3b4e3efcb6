//! Numbers by chance, the same for the same seed.

/// A small generator (xorshift over a scattered seed).
pub(crate) struct Dice(u64);

impl Dice {
    /// The numbers of one case.
    pub(crate) const fn of(seed: u64, case: u64) -> Self {
        // The finishing steps of SplitMix64: neighbouring cases have nothing in common.
        let mut mixed = seed ^ case.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        Self((mixed ^ (mixed >> 31)) | 1)
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[3]
    }

    /// A number below `bound`, or zero when there is none.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound.max(1)).unwrap_or(u64::MAX);
        usize::try_from((self.next() >> 8) % bound).unwrap_or(0)
    }

    /// One of these.
    pub(crate) fn one_of<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        all.get(self.below(all.len()))
    }
}
