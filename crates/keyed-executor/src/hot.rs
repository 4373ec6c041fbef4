//! The hot keys of a lane or a source: a sketch of bounded size, fed by one message in about [`EVERY`].
//!
//! Space-saving: a sketch keeps [`KEYS`] keys by their hashes; one that is not among them takes the place of the one with the
//! smallest count and inherits that count as its possible error. So a key with more than one in [`KEYS`] of what was sampled
//! is always kept, and a count is too high by at most its error and never too low. Every [`MEMORY`] samples all counts
//! are halved: what was hot an hour ago is forgotten. A key's text is asked for when it is sampled the second time, so
//! that keys which come once cost none, and written where the text before it lay: nothing is allocated for a message.
//!
//! The gap to the next sample is random, so that keys which come in turns are not mistaken for one. A keyspace's
//! messages are sampled as a worker takes them from its inbox, with a branch for each batch of them; the sketch is plain data of
//! the lane (rule 1 of seat/README.md). A source's are sampled where it is asked (`source/noted.rs`). What is told of several
//! sketches together is `hot/gathered.rs`. It decides nothing.

mod gathered;

pub(crate) use gathered::Gathered;
pub use gathered::HotKey;

use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;

use crate::contain::{contain, line_into};
use crate::cx::Cx;
use crate::engine::Engine;
use crate::error::Outcome;
use crate::figures::SHOWS;

/// Messages for one sample, in the middle.
const EVERY: u64 = 128;
/// Keys of one lane.
const KEYS: usize = 32;
/// Samples after which every count is halved.
const MEMORY: u64 = 4_096;

/// Where the keys of a dispatch are sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Samples {
    /// On each worker, as they are taken from its inbox.
    Inboxes,
    /// Where its source is asked.
    Source,
}

/// What is kept of a key.
#[derive(Debug)]
struct Kept {
    count: u64,
    error: u64,
    /// Its text, or the room for it.
    text: String,
    is_told: bool,
}

/// One sketch; it allocates nothing before its first sample.
#[derive(Debug)]
pub(crate) struct Sketch {
    /// Messages before the next sample.
    left: u64,
    random: u64,
    sampled: u64,
    hashes: Vec<u64>,
    kept: Vec<Kept>,
}

impl Default for Sketch {
    fn default() -> Self {
        Self { left: EVERY, random: 0x9E37_79B9_7F4A_7C15, sampled: 0, hashes: Vec::new(), kept: Vec::new() }
    }
}

impl Sketch {
    /// Counts messages off; true if one of them is to be sampled.
    #[inline]
    pub(crate) fn is_due(&mut self, messages: u64) -> bool {
        if !SHOWS {
            return false;
        }
        if messages < self.left {
            self.left -= messages;
            return false;
        }
        true
    }

    /// Which of `messages` is to be sampled next, after the first `done` of them; None if the next one comes later.
    fn next_due(&mut self, done: u64, messages: u64) -> Option<u64> {
        let at = done + self.left;
        if at > messages {
            self.left = at - messages;
            return None;
        }
        self.left = self.draw() as u64;
        Some(at)
    }

    /// Messages before the next sample, that one included.
    #[inline]
    pub(crate) fn left(&self) -> usize {
        if SHOWS { self.left as usize } else { usize::MAX }
    }

    #[inline]
    pub(crate) fn set_left(&mut self, left: usize) {
        self.left = left as u64;
    }

    /// A random gap to the next sample: [`EVERY`] in the middle.
    pub(crate) fn draw(&mut self) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (1 + self.random % (2 * EVERY - 1)) as usize
    }

    /// Counts a sample; where the key's text is to be put if it has none yet.
    pub(crate) fn count(&mut self, hash: u64) -> Option<usize> {
        self.sampled += 1;
        if self.sampled == MEMORY {
            self.sampled /= 2;
            for kept in &mut self.kept {
                kept.count /= 2;
                kept.error /= 2;
            }
        }
        if let Some(at) = self.hashes.iter().position(|known| *known == hash) {
            let kept = &mut self.kept[at];
            kept.count += 1;
            return (!kept.is_told).then_some(at);
        }
        if self.kept.len() < KEYS {
            self.hashes.push(hash);
            self.kept.push(Kept { count: 1, error: 0, text: String::new(), is_told: false });
            return None;
        }
        let at = (0..KEYS).min_by_key(|at| self.kept[*at].count)?;
        self.hashes[at] = hash;
        let kept = &mut self.kept[at];
        kept.error = kept.count;
        kept.count += 1;
        kept.is_told = false;
        None
    }

    /// Takes the room for a key's text out.
    pub(crate) fn room(&mut self, at: usize) -> String {
        std::mem::take(&mut self.kept[at].text)
    }

    /// Puts a key's text in.
    pub(crate) fn tell(&mut self, at: usize, text: String) {
        self.kept[at].text = text;
        self.kept[at].is_told = true;
    }

    /// How many messages were sampled, times [`EVERY`].
    pub(crate) fn among(&self) -> u64 {
        self.sampled * EVERY
    }

    /// Every key whose text is known, with its hash.
    pub(crate) fn keys(&self) -> impl Iterator<Item = (u64, &str, u64, u64)> {
        self.hashes
            .iter()
            .zip(&self.kept)
            .filter(|(_, kept)| kept.is_told)
            .map(|(hash, kept)| (*hash, &*kept.text, kept.count * EVERY, kept.error * EVERY))
    }
}

/// # Safety
/// Every `unsafe` method asks the caller to hold the seat of `cx` (rule 1 of seat/README.md).
impl<K, M, H, F> Engine<K, M, H, F>
where
    K: Hash + Eq + Debug,
    H: Fn(M) -> F,
    F: Future,
    F::Output: Outcome,
{
    /// Samples what was taken from the inbox between two positions; its messages are in their mailboxes.
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn sample_inbox(&self, cx: &Cx<'_>, from: u64, to: u64) {
        let worker = cx.worker.index();
        let mut done = 0;
        // SAFETY: rule 1 of seat/README.md: this function's contract; the positions were published and are not given
        // back yet.
        unsafe {
            while let Some(at) = self.plain(worker, |plain| plain.hot.next_due(done, to - from)) {
                done = at;
                let entry = self.lanes[worker].inbox.read(from + at - 1).entry();
                self.sample_entry(cx, entry);
            }
        }
    }

    unsafe fn sample_entry(&self, cx: &Cx<'_>, entry: u32) {
        // A dispatch that is stopping drops what it has; its keys are of no use any more.
        if !self.is_running() {
            return;
        }
        self.with_key(entry, |key| {
            if let Ok(hash) = contain(|| self.hash(key)) {
                // SAFETY: rule 1 of seat/README.md: this function's contract.
                unsafe { self.sample(cx, hash, key) };
            }
        });
    }

    unsafe fn sample(&self, cx: &Cx<'_>, hash: u64, key: &K) {
        let worker = cx.worker.index();
        // SAFETY: rule 1 of seat/README.md: this function's contract; the key's `Debug` runs between two accesses.
        unsafe {
            let untold = self.plain(worker, |plain| plain.hot.count(hash).map(|at| (at, plain.hot.room(at))));
            if let Some((at, mut text)) = untold {
                line_into(&mut text, key);
                self.plain(worker, |plain| plain.hot.tell(at, text));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_too_high_by_its_error_at_most_and_a_hot_key_is_always_kept() {
        for seed in 1..50_u64 {
            let mut sketch = Sketch::default();
            let mut random = seed;
            let mut truth = std::collections::HashMap::<u64, u64>::new();
            for _ in 0..MEMORY - 1 {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                // Half of the samples are for four keys, the rest for ten thousand.
                let hash = if random & 1 == 0 { random >> 8 & 3 } else { 100 + (random >> 8) % 10_000 };
                *truth.entry(hash).or_default() += 1;
                if let Some(at) = sketch.count(hash) {
                    sketch.tell(at, hash.to_string());
                }
            }
            assert_eq!(sketch.hashes.len(), KEYS, "its size is bounded");
            for (hash, kept) in sketch.hashes.iter().zip(&sketch.kept) {
                let true_count = truth[hash];
                assert!(kept.count >= true_count && kept.count - kept.error <= true_count, "seed {seed}");
                assert!(kept.error <= MEMORY / KEYS as u64, "seed {seed}: {kept:?}");
            }
            for hot in 0..4 {
                assert!(sketch.keys().any(|(hash, ..)| hash == hot), "seed {seed}: {hot} is hot");
            }
        }
    }

    #[test]
    fn one_in_about_as_many_as_it_says_is_sampled_however_they_come() {
        let (mut together, mut alone) = (Sketch::default(), Sketch::default());
        let (mut of_batches, mut of_single) = (0, 0);
        for batch in 0..10_000_u64 {
            let messages = batch % 40;
            if together.is_due(messages) {
                let mut done = 0;
                while let Some(at) = together.next_due(done, messages) {
                    done = at;
                    of_batches += 1;
                }
            }
            for _ in 0..messages {
                if alone.is_due(1) {
                    assert_eq!(alone.next_due(0, 1), Some(1));
                    of_single += 1;
                }
            }
        }
        assert_eq!(of_batches, of_single, "the gaps are the same");
        let expected = 195_000 / EVERY;
        assert!((expected - expected / 4..expected + expected / 4).contains(&of_single), "{of_single}");
    }
}
