//! The workloads A to K and T: which keys come in which order, and what their handlers do.
//!
//! One table for every contender. The order of keys is drawn once for each workload, from a fixed seed, before anything
//! is measured. One more, L, is no matter of rates, and whoever hangs on it would end a measurement: `behaviour.rs`.

use crate::message::Work;

/// Keys that workloads draw from, where nothing else is said.
pub const KEYS: u32 = 10_000;
/// Keys beyond the others whose handlers are slow (I) or block their thread (J, K).
pub const SLOW_KEYS: u32 = 32;
/// Keys of workload B, and how many of them share a block of messages before they never come again.
const SHORT_LIVED: u32 = 100_000;
const BLOCK_KEYS: u32 = 128;
const BLOCK_MESSAGES: usize = 1_024;
/// One handler in so many blocks its thread, in J and K.
const BLOCKS_EVERY: usize = 20_000;
const BLOCKS_AT: usize = 5_000;
/// Keys of workload L whose handlers block, each once, and as many whose handlers they block for.
pub const GATE_KEYS: u32 = 20;

/// One workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "what each is stands in `title`")]
pub enum Workload {
    A,
    B,
    C,
    D,
    E,
    F,
    G,
    H,
    I,
    J,
    K,
    T,
    L,
}

impl Workload {
    /// All that have a rate, in order.
    pub const ALL: [Self; 12] = [
        Self::A,
        Self::B,
        Self::C,
        Self::D,
        Self::E,
        Self::F,
        Self::G,
        Self::H,
        Self::I,
        Self::J,
        Self::K,
        Self::T,
    ];

    /// The letter.
    #[must_use]
    pub fn name(self) -> &'static str {
        ["A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K", "T", "L"][self as usize]
    }

    /// What it is, in a few words.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::A => "10,000 keys, uniform",
            Self::B => "100,000 short-lived keys",
            Self::C => "10,000 keys, zipf 1.0",
            Self::D => "one hot key has 90 %, latency of the cold ones",
            Self::E => "every handler awaits a timer of 1 ms",
            Self::F => "every handler yields once",
            Self::G => "every handler computes for 2 us",
            Self::H => "one key",
            Self::I => "32 slow keys (5 ms timer) beside fast ones, latency of the fast",
            Self::J => "one handler in 20,000 blocks its thread for 50 ms, latency of the others",
            Self::K => "the same at 200,000 messages a second",
            Self::T => "every handler awaits 1 ms of a fine timer",
            Self::L => "twenty handlers block until the next twenty are done",
        }
    }

    /// The workload of that letter.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|workload| workload.name().eq_ignore_ascii_case(name))
    }

    /// Whether its handlers wait without a thread, which contenders that run plain functions cannot do.
    #[must_use]
    pub fn needs_async(self) -> bool {
        matches!(self, Self::E | Self::F | Self::I | Self::T)
    }

    /// Whether its handlers wait for a timer, whoever's it is.
    #[must_use]
    pub fn awaits_time(self) -> bool {
        self.needs_timers() || self.needs_fine_timer()
    }

    /// Whether its handlers need the timer of the harness.
    #[must_use]
    pub fn needs_fine_timer(self) -> bool {
        self == Self::T
    }

    /// Whether its handlers need timers of tokio.
    #[must_use]
    pub fn needs_timers(self) -> bool {
        matches!(self, Self::E | Self::I)
    }

    /// Whether the producer keeps to a rate, in messages a second, instead of being always ready.
    #[must_use]
    pub fn rate(self) -> Option<u64> {
        (self == Self::K).then_some(200_000)
    }

    /// Every how many messages of the kind that is looked at a latency is sampled.
    #[must_use]
    pub fn samples_every(self) -> u64 {
        match self {
            Self::D => 4,
            Self::K => 2,
            Self::I | Self::J => 16,
            _ => 64,
        }
    }

    /// Whether the latency of messages of this key is looked at.
    #[must_use]
    pub fn looks_at(self, key: u32) -> bool {
        match self {
            Self::D => key != 0,
            Self::I | Self::J | Self::K => key < KEYS,
            _ => true,
        }
    }

    /// How many keys there can be.
    #[must_use]
    pub fn keys(self) -> u32 {
        match self {
            Self::B => SHORT_LIVED,
            Self::H => 1,
            Self::L => 2 * GATE_KEYS,
            _ => KEYS + SLOW_KEYS,
        }
    }

    /// What the handler does with the message at a place of the plan.
    #[inline]
    #[must_use]
    pub fn work(self, key: u32) -> Work {
        match self {
            Self::E => Work::Wait,
            Self::F => Work::Yield,
            Self::G => Work::Compute,
            Self::I if key >= KEYS => Work::WaitLong,
            Self::J | Self::K if key >= KEYS => Work::Block,
            Self::T => Work::WaitFine,
            Self::L if key < GATE_KEYS => Work::BlockAtGate,
            Self::L => Work::OpenGate,
            _ => Work::Check,
        }
    }

    /// The keys of so many messages, in order.
    #[must_use]
    pub fn plan(self, messages: usize) -> Box<[u32]> {
        let mut random = Random(0x5DEE_CE66_D1CE_4E5B ^ self as u64);
        let zipf = if self == Self::C { Zipf::new(KEYS) } else { Zipf::new(1) };
        (0..messages)
            .map(|at| match self {
                Self::B => {
                    let block = (at / BLOCK_MESSAGES) as u32 % (SHORT_LIVED / BLOCK_KEYS);
                    block * BLOCK_KEYS + random.below(BLOCK_KEYS)
                }
                Self::C => zipf.draw(&mut random),
                Self::D if random.below(10) != 0 => 0,
                Self::D => 1 + random.below(KEYS - 1),
                Self::H => 0,
                Self::L => at as u32 % self.keys(),
                Self::J | Self::K if at % BLOCKS_EVERY == BLOCKS_AT => KEYS + random.below(SLOW_KEYS),
                _ => random.below(KEYS),
            })
            .collect()
    }
}

/// A generator of plain pseudo-random numbers; the same in every run.
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u32) -> u32 {
        (((self.next() >> 32) * u64::from(limit)) >> 32) as u32
    }
}

/// Keys whose frequency falls as one over their rank.
#[derive(Debug)]
struct Zipf {
    cumulated: Vec<f64>,
}

impl Zipf {
    fn new(keys: u32) -> Self {
        let mut sum = 0.0;
        let cumulated = (1..=keys)
            .map(|rank| {
                sum += 1.0 / f64::from(rank);
                sum
            })
            .collect();
        Self { cumulated }
    }

    fn draw(&self, random: &mut Random) -> u32 {
        let all = self.cumulated.last().copied().unwrap_or(1.0);
        let at = (random.next() >> 11) as f64 / (1_u64 << 53) as f64 * all;
        self.cumulated.partition_point(|sum| *sum <= at) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_a_plan_has_its_place_in_the_checks() {
        for workload in Workload::ALL {
            assert!(workload.plan(50_000).iter().all(|key| *key < workload.keys()), "{workload:?}");
            assert_eq!(Workload::named(workload.name()), Some(workload));
        }
    }

    #[test]
    fn the_hot_key_has_nine_tenths_and_the_first_zipf_key_a_tenth() {
        let share = |workload: Workload| {
            let plan = workload.plan(100_000);
            plan.iter().filter(|key| **key == 0).count() as f64 / plan.len() as f64
        };
        assert!((0.89..0.91).contains(&share(Workload::D)));
        // One over the harmonic number of 10,000, which is 9.79.
        assert!((0.095..0.11).contains(&share(Workload::C)));
    }

    #[test]
    fn one_handler_in_twenty_thousand_blocks() {
        let plan = Workload::J.plan(100_000);
        assert_eq!(plan.iter().filter(|key| Workload::J.work(**key) == Work::Block).count(), 5);
    }
}
