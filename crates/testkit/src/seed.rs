//! Seeds and the small generator they start.
//!
//! Owns reproducible randomness: the same seed gives the same numbers on every machine and version (xoshiro256**, its
//! state filled by splitmix64). Invariant: a test that uses randomness names its seed when it fails, and takes the seed
//! back from the environment. Not for anything that has to be unpredictable.

use std::fmt;
use std::hash::{BuildHasher, RandomState};

// === impl Seed ===

/// Where a run of random choices starts. Prints as the number that brings the run back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(pub u64);

impl Seed {
    /// The number in the environment variable `name`, or a fresh one if it is not set.
    ///
    /// # Panics
    /// If the variable is set to something that is no number: a wrong seed must not pass for a random one.
    pub fn from_env(name: &str) -> Seed {
        match std::env::var(name) {
            Ok(text) => match text.trim().parse() {
                Ok(seed) => Seed(seed),
                Err(error) => panic!("{name} must be a number from 0 to {}, not `{text}`: {error}", u64::MAX),
            },
            Err(_) => Seed::fresh(),
        }
    }

    /// A seed that differs from run to run.
    pub fn fresh() -> Seed {
        Seed(RandomState::new().hash_one(std::process::id()))
    }

    /// The generator that starts here.
    pub fn rng(self) -> Rng {
        let mut state = self.0;
        Rng { state: std::array::from_fn(|_| splitmix64(&mut state)) }
    }

    /// A guard that tells this seed and `how` to use it if the test panics while it lives.
    pub fn told_on_panic(self, how: &str) -> SeedReport {
        SeedReport { seed: self, how: how.to_owned() }
    }
}

impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Tells the seed of a failed test; see [`Seed::told_on_panic`].
#[derive(Debug)]
pub struct SeedReport {
    seed: Seed,
    how: String,
}

impl Drop for SeedReport {
    #[expect(clippy::print_stderr, reason = "the failed test's reader needs the seed")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("seed of the failed run: {}={}", self.how, self.seed);
        }
    }
}

// === impl Rng ===

/// A deterministic generator of random choices.
#[derive(Clone, Debug)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// The next number, each of 64 bits as likely set as not.
    pub fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = b.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        result
    }

    /// A number below `n`, all as likely (up to a bias of 2^-64 times `n`).
    ///
    /// # Panics
    /// If `n` is zero.
    pub fn below(&mut self, n: u64) -> u64 {
        assert!(n > 0, "there is no number below zero");
        let wide = u128::from(self.next_u64()) * u128::from(n);
        u64::try_from(wide >> 64).expect("the upper half of a product fits its factor")
    }

    /// An index below `len`.
    ///
    /// # Panics
    /// If `len` is zero.
    pub fn index(&mut self, len: usize) -> usize {
        let len = u64::try_from(len).expect("a length fits 64 bits");
        usize::try_from(self.below(len)).expect("an index below a length fits")
    }

    /// True in `part` of `whole` calls.
    pub fn chance(&mut self, part: u64, whole: u64) -> bool {
        self.below(whole) < part
    }

    /// Puts `items` into a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.index(last + 1));
        }
    }

    /// A generator of its own for another thread; what it draws does not disturb this one.
    pub fn fork(&mut self) -> Rng {
        Seed(self.next_u64()).rng()
    }
}

fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::{Seed, splitmix64};

    #[test]
    fn splitmix_gives_the_published_numbers() {
        let mut state = 1_234_567;
        let first = [splitmix64(&mut state), splitmix64(&mut state), splitmix64(&mut state)];
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn one_seed_gives_one_run() {
        let draw = |seed| {
            let mut rng = Seed(seed).rng();
            (0..100).map(|_| rng.next_u64()).collect::<Vec<_>>()
        };
        assert_eq!(draw(3), draw(3));
        assert_ne!(draw(3), draw(4));
    }

    #[test]
    fn numbers_below_n_reach_every_value_and_no_other() {
        let mut rng = Seed(1).rng();
        let mut seen = [0_u32; 7];
        for _ in 0..7_000 {
            seen[rng.index(7)] += 1;
        }
        assert!(seen.iter().all(|&count| (800..1200).contains(&count)), "uneven: {seen:?}");
    }

    #[test]
    fn a_shuffle_keeps_every_item() {
        let mut items: Vec<u32> = (0..50).collect();
        Seed(9).rng().shuffle(&mut items);
        assert_ne!(items, (0..50).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..50).collect::<Vec<_>>());
    }

    #[test]
    fn a_chance_of_nothing_never_comes_and_a_certain_one_always() {
        let mut rng = Seed(2).rng();
        assert!((0..100).all(|_| !rng.chance(0, 10) && rng.chance(10, 10)));
    }

    #[test]
    fn two_fresh_seeds_differ() {
        assert_ne!(Seed::fresh(), Seed::fresh());
    }
}
