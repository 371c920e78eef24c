//! Randomness for guests: a run is a function of its session, so it comes from session, trigger and plugin.

/// Numbers without a pattern, the same whenever the run is made again. Not for secrets, of which a guest has none.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Seeded by these texts (FNV-1a).
    pub(crate) fn of(seeds: &[&str]) -> Self {
        let bytes = seeds.iter().flat_map(|seed| seed.bytes().chain([0xff]));
        Self(bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)))
    }

    /// The next 64 bits (SplitMix64).
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 up to, but not including, `end`; 0 if that is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        let scaled = (u128::from(self.bits()) * u128::from(end)) >> 64;
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seeds_give_the_same_numbers_and_others_others() {
        let numbers = |seeds: &[&str]| -> Vec<u64> {
            let mut random = Random::of(seeds);
            (0..100).map(|_| random.below(1000)).collect()
        };
        let first = numbers(&["header", "e0", "me"]);
        assert_eq!(first, numbers(&["header", "e0", "me"]));
        assert!(first.iter().all(|n| *n < 1000) && first.iter().any(|n| *n != first[0]));
        assert_ne!(first, numbers(&["header", "e1", "me"]));
        assert_ne!(first, numbers(&["headere", "0", "me"]), "where one seed ends counts too");
        assert_eq!(Random::of(&[]).below(0), 0);
    }
}
