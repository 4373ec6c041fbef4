//! Small numbers that are given out and come back, each worker its own first: entries and slots.
//!
//! What a number stands for was last touched by the worker that had it, so that worker gets it again: its memory need not
//! come from another core. A worker without numbers of its own gets a block of new ones, then what another one gave back.
//!
//! Plain data of the intake. What the numbers mean is the intake's business.

/// The most numbers given to a worker at once, so that what is packed closely is mostly one worker's.
const BLOCK: usize = 16;

/// Numbers below an end, for so many workers.
pub(crate) struct Numbers {
    /// What each worker gave back or was given and has not taken; the last one goes first.
    own: Box<[Vec<u32>]>,
    /// Numbers from here on were never given out.
    fresh: u32,
    end: u32,
    block: u32,
    free: usize,
}

impl Numbers {
    pub(crate) fn new(end: usize, workers: usize) -> Self {
        let block = (end / (4 * workers)).clamp(1, BLOCK);
        let own = (0..workers).map(|_| Vec::new()).collect();
        Self { own, fresh: 0, end: end as u32, block: block as u32, free: end }
    }

    /// How many are free.
    #[inline]
    pub(crate) fn free(&self) -> usize {
        self.free
    }

    /// The number that [`take`](Self::take) would give this worker.
    #[inline]
    pub(crate) fn peek(&self, worker: usize) -> Option<u32> {
        match self.own[worker].last() {
            Some(own) => Some(*own),
            None if self.fresh < self.end => Some(self.fresh),
            None => self.own.iter().find_map(|others| others.last().copied()),
        }
    }

    /// Gives a number to a worker; None if all are taken.
    #[inline]
    pub(crate) fn take(&mut self, worker: usize) -> Option<u32> {
        let number = match self.own[worker].pop() {
            Some(own) => own,
            None => self.take_elsewhere(worker)?,
        };
        self.free -= 1;
        Some(number)
    }

    #[inline(never)]
    fn take_elsewhere(&mut self, worker: usize) -> Option<u32> {
        if self.fresh == self.end {
            return self.own.iter_mut().find_map(Vec::pop);
        }
        let block = self.fresh..(self.fresh + self.block).min(self.end);
        self.fresh = block.end;
        self.own[worker].extend(block.clone().skip(1).rev());
        Some(block.start)
    }

    /// Takes a number back that this worker had.
    #[inline]
    pub(crate) fn give(&mut self, number: u32, worker: usize) {
        self.own[worker].push(number);
        self.free += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Against a set, with three workers and ends around the block's size.
    #[test]
    fn every_number_is_given_out_once_and_none_is_lost() {
        for seed in 0..300u64 {
            let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
            let mut random = move || {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state
            };
            let end = 1 + (random() % 300) as usize;
            let mut numbers = Numbers::new(end, 3);
            let mut taken: Vec<(u32, usize)> = Vec::new();
            for _ in 0..2_000 {
                if random() % 5 < 2 && !taken.is_empty() {
                    let at = random() as usize % taken.len();
                    let (number, worker) = taken.swap_remove(at);
                    numbers.give(number, worker);
                    assert_eq!(numbers.peek(worker), Some(number), "a worker gets its own back, seed {seed}");
                } else {
                    let worker = random() as usize % 3;
                    let promised = numbers.peek(worker);
                    let given = numbers.take(worker);
                    assert_eq!(given, promised, "seed {seed}");
                    assert_eq!(given.is_some(), taken.len() < end, "seed {seed}");
                    taken.extend(given.map(|number| (number, worker)));
                }
                assert_eq!(numbers.free(), end - taken.len(), "seed {seed}");
                let distinct: HashSet<u32> = taken.iter().map(|taken| taken.0).collect();
                assert_eq!(distinct.len(), taken.len(), "seed {seed}");
                assert!(distinct.iter().all(|number| (*number as usize) < end), "seed {seed}");
            }
        }
    }

    #[test]
    fn what_lies_close_together_is_one_workers() {
        let mut numbers = Numbers::new(256, 2);
        let of = |numbers: &mut Numbers, worker| (0..BLOCK).map(|_| numbers.take(worker)).collect::<Vec<_>>();
        let (mine, yours) = (of(&mut numbers, 0), of(&mut numbers, 1));
        assert_eq!(mine, (0..BLOCK as u32).map(Some).collect::<Vec<_>>());
        assert_eq!(yours, (BLOCK as u32..2 * BLOCK as u32).map(Some).collect::<Vec<_>>());
    }
}
