//! What is counted of one dispatch or keyspace: figures that the holder of a seat writes and everybody reads.
//!
//! A figure has one writer at a time, whoever holds the seat (rule 1 of seat/README.md), so a relaxed load and store are
//! enough; how many mailboxes are ready or live is counted here and nowhere else, so what is shown is what the workers
//! act on, and never below zero. Nothing here exports anything, and nothing is a key.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::audit::Audited;
use crate::error::SubmitRefusal;
use crate::sync::{Figure, Ordering};

/// Whether anything is kept only to be shown. It is, but where its cost is measured: `cargo xtask bench visibility` counts both.
pub(crate) const SHOWS: bool = !cfg!(keyed_unseen);

/// A counter with one writer at a time: whoever holds the seat. Nothing decides by it.
#[derive(Debug, Default)]
pub(crate) struct Counter(Figure);

impl Counter {
    #[inline]
    pub(crate) fn add(&self, n: u64) {
        if !SHOWS {
            return;
        }
        // A load and a store instead of a read-modify-write: rule 1 of seat/README.md gives the counter one writer at
        // a time, handed over with the token.
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// How many there are now, with one writer at a time.
#[derive(Debug, Default)]
pub(crate) struct Gauge(Figure);

impl Gauge {
    #[inline]
    pub(crate) fn up(&self) {
        // One writer at a time, as in `Counter::add`.
        self.0.store(self.0.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn down(&self) {
        let now = self.0.load(Ordering::Relaxed);
        debug_assert!(now > 0, "what is counted down was counted up before");
        self.0.store(now - 1, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A gauge that nothing decides by.
#[derive(Debug, Default)]
pub(crate) struct Shown(Gauge);

impl Shown {
    #[inline]
    pub(crate) fn up(&self) {
        if SHOWS {
            self.0.up();
        }
    }

    #[inline]
    pub(crate) fn down(&self) {
        if SHOWS {
            self.0.down();
        }
    }

    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.get()
    }
}

/// How many lengths of turns are told apart.
const LENGTHS: usize = 8;

/// What is counted of one lane.
#[derive(Debug, Default)]
pub(crate) struct LaneFigures {
    /// Mailboxes that stand in the ring of ready ones.
    pub(crate) ready: Gauge,
    /// Started messages that wait for a wake.
    pub(crate) waiting: Gauge,
    /// Mailboxes with an unfinished message that their worker has taken in.
    pub(crate) live: Shown,
    /// Messages that did not come through the inbox: queued by the home on itself.
    pub(crate) kept: Counter,
    /// Messages that an auditor checked.
    pub(crate) audited: Counter,
    turns: [Counter; LENGTHS],
}

impl LaneFigures {
    /// A turn ended that finished so many messages.
    #[inline]
    pub(crate) fn turn_ended(&self, messages: usize) {
        // Most turns end with their first message.
        let length = if messages == 1 { 1 } else { (usize::BITS - messages.leading_zeros()) as usize };
        self.turns[length.min(LENGTHS - 1)].add(1);
    }
}

/// Submissions that came back, by reason. Several submitters count at once.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    full: Figure,
    key_full: Figure,
    bytes_full: Figure,
    too_large: Figure,
    closed: Figure,
    failed: Figure,
    no_worker: Figure,
}

impl Refusals {
    /// A submission came back.
    pub(crate) fn count(&self, reason: SubmitRefusal) {
        let counter = match reason {
            SubmitRefusal::Full => &self.full,
            SubmitRefusal::KeyFull => &self.key_full,
            SubmitRefusal::BytesFull => &self.bytes_full,
            SubmitRefusal::TooHeavy { .. } | SubmitRefusal::KeyTooLong { .. } => &self.too_large,
            SubmitRefusal::Closed => &self.closed,
            SubmitRefusal::Failed => &self.failed,
            SubmitRefusal::NoWorker => &self.no_worker,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Refused {
        Refused {
            full: self.full.load(Ordering::Relaxed),
            key_full: self.key_full.load(Ordering::Relaxed),
            bytes_full: self.bytes_full.load(Ordering::Relaxed),
            too_large: self.too_large.load(Ordering::Relaxed),
            closed: self.closed.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            no_worker: self.no_worker.load(Ordering::Relaxed),
        }
    }
}

/// What one dispatch or keyspace counted, and what of it is unfinished.
///
/// Counters go up only. Counters are published with the completions, in batches; gauges are what the workers themselves
/// act on. None is ever below zero, and all are 0 again when nothing is left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DispatchMetrics {
    /// The label of its [`Options`](crate::Options).
    pub label: String,
    /// Messages that may be unfinished at once.
    pub window: usize,
    /// Messages beyond the limits of their keys that may be unfinished beside them; 0 if keys have no limit.
    pub overflow: usize,
    /// Gauge: messages accepted whose permit has not come back, one that runs where its source yielded it included if its
    /// worker could be looked at. Permits come back in batches.
    pub in_flight: u64,
    /// Gauge: keys with an unfinished message that their worker has taken in.
    pub live_mailboxes: u64,
    /// Gauge: those of them that stand in a run queue.
    pub ready: u64,
    /// Gauge: those of them whose handler waits for a wake.
    pub waiting: u64,
    /// Gauge: for how long the oldest unfinished message has been on its worker, counted as in
    /// [`MailboxView::age`](crate::MailboxView::age); None if nothing is unfinished, or no worker could be looked at.
    pub oldest_unfinished: Option<Duration>,
    /// Messages whose handler ended well.
    pub handled: u64,
    /// Messages whose handler failed or panicked.
    pub failed: u64,
    /// Those of them whose handler panicked.
    pub panicked: u64,
    /// Messages whose handler was dropped before it ended.
    pub cancelled: u64,
    /// Messages dropped without ever reaching the handler.
    pub discarded: u64,
    /// Submissions that came back to their submitter.
    pub refused: Refused,
    /// Turns of mailboxes, by the messages they finished. What runs where its source yielded it has no turn.
    pub turns: TurnLengths,
    /// What its auditor counted, where it has one ([`Audit::On`](crate::Audit::On)).
    pub audited: Option<Audited>,
}

/// Submissions that came back with their message, by reason. A submitter that waits for room is none of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refused {
    /// The window was full.
    pub full: u64,
    /// The key had its limit of messages, and the overflow was full.
    pub key_full: u64,
    /// The byte budget had no room for it.
    pub bytes_full: u64,
    /// It was heavier than the whole byte budget, or its key was too long.
    pub too_large: u64,
    /// The keyspace or its executor was closed.
    pub closed: u64,
    /// An earlier message had failed the keyspace.
    pub failed: u64,
    /// No worker thread could be started, or all were dead.
    pub no_worker: u64,
}

impl Refused {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.full
            + self.key_full
            + self.bytes_full
            + self.too_large
            + self.closed
            + self.failed
            + self.no_worker
    }
}

/// Turns by the messages they finished: a histogram of powers of two.
///
/// Long turns are the sign of few hot keys; a turn that finished none ended with a handler that waits, or lost its thread
/// to a rescue.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct TurnLengths {
    counts: [u64; LENGTHS],
}

impl TurnLengths {
    pub(crate) fn add(&mut self, lane: &LaneFigures) {
        for (count, turns) in self.counts.iter_mut().zip(&lane.turns) {
            *count += turns.get();
        }
    }

    /// How many turns there were.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// How many messages a turn may have finished, and how many turns there were of that length: 0, 1, 2 to 3, 4 to 7 and
    /// so on, the last without an end.
    pub fn buckets(&self) -> impl Iterator<Item = (RangeInclusive<u64>, u64)> + '_ {
        self.counts.iter().enumerate().map(|(index, count)| {
            let range = match index {
                0 => 0..=0,
                last if last == LENGTHS - 1 => 1 << (last - 1)..=u64::MAX,
                index => 1 << (index - 1)..=(1 << index) - 1,
            };
            (range, *count)
        })
    }
}

impl fmt::Debug for TurnLengths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.buckets().filter(|(_, count)| *count > 0)).finish()
    }
}
