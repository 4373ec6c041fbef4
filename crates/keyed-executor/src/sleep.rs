//! Who sleeps, and who wakes whom: park and unpark without a lost wake-up.
//!
//! One word per worker. A notifier first publishes what it brings, then looks at the word; a worker first says that it
//! sleeps, then looks once more at everything that could have been brought. Both sides put a full fence between their
//! write and their look, so at least one of the two sees the other. The notifier that wins the change 1 -> 0 unparks;
//! a busy worker is never woken.
//!
//! A worker whose thread is gone says so in the same word, so that a notifier learns it from the look it makes anyway.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::sync::{AtomicU32, Mutex, Ordering, Thread, current, fence, lock, park, park_timeout, yield_now};
use crate::time::nanos;

const AWAKE: u32 = 0;
const SLEEPING: u32 = 1;
const GONE: u32 = 2;
/// How often a worker offers its processor to others before it parks: together about as long as waking a thread costs who
/// wakes it (docs/adr/0009). A model has no time to lose.
const YIELDS: u32 = if cfg!(any(keyed_loom, keyed_shuttle)) { 0 } else { 24 };

/// Others that keep a processor for longer, once it was offered, compute: there this worker waits for its turn, where one that is
/// parked is up at once.
const KEPT_NS: u64 = 200_000;
/// Brief sleeps without an offer after the first that was not given back, and at most.
const PAUSES: RangeInclusive<u32> = 64..=4_096;

/// What became of a processor that was offered.
enum Others {
    GiveItBack,
    KeepIt,
}

/// Whether a worker offers its processor before it parks: where it is not given back, rarely.
#[derive(Default)]
pub(crate) struct Offers {
    pause: u32,
    left: u32,
}

impl Offers {
    /// Lets others run before a sleep, unless they kept the processor the last times.
    pub(crate) fn before_sleep(&mut self, sleeper: &Sleeper) {
        if self.left > 0 {
            self.left -= 1;
            return;
        }
        self.learn(sleeper.let_others_run());
    }

    fn learn(&mut self, others: Others) {
        self.pause = match others {
            Others::GiveItBack => 0,
            Others::KeepIt => (self.pause * 2).clamp(*PAUSES.start(), *PAUSES.end()),
        };
        self.left = self.pause;
    }
}

/// What a notifier found.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notified {
    /// The worker looks, or was woken to look.
    Looks,
    /// No thread will look any more: what was brought is the notifier's again.
    Gone,
}

/// The sleep of one worker.
pub(crate) struct Sleeper {
    word: AtomicU32,
    /// The thread that sleeps here; another one after a rescue.
    thread: Mutex<Option<Thread>>,
}

impl Sleeper {
    pub(crate) fn new() -> Self {
        Self { word: AtomicU32::new(AWAKE), thread: Mutex::new(None) }
    }

    /// A thread introduces itself, before its first sleep here.
    pub(crate) fn introduce(&self) {
        *lock(&self.thread) = Some(current());
    }

    fn unpark(&self) {
        // A notifier that won against the thread before wakes its successor for nothing, which is harmless: the one
        // before was awake by then, or it could not have lost its seat.
        if let Some(thread) = &*lock(&self.thread) {
            thread.unpark();
        }
    }

    /// Makes sure that the worker looks at what was published before this call.
    #[inline]
    pub(crate) fn notify(&self) -> Notified {
        // Pairs with the fence in `announce`: either this thread sees SLEEPING (or GONE), or the worker's look after
        // its announcement sees what this thread published.
        fence(Ordering::SeqCst);
        match self.word.load(Ordering::Relaxed) {
            AWAKE => Notified::Looks,
            GONE => Notified::Gone,
            _ => self.wake(),
        }
    }

    #[cold]
    fn wake(&self) -> Notified {
        // AcqRel: of all notifiers that saw SLEEPING one wins; the swap of the worker in `cancel` may win instead.
        match self.word.compare_exchange(SLEEPING, AWAKE, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => {
                self.unpark();
                Notified::Looks
            }
            Err(GONE) => Notified::Gone,
            Err(_) => Notified::Looks,
        }
    }

    /// The worker says that it will sleep. It must look at everything once more before [`Self::sleep`].
    pub(crate) fn announce(&self) {
        // A swap, not a store: every transition of this word is a read-modify-write (see docs/verification.md).
        self.word.swap(SLEEPING, Ordering::AcqRel);
        // Pairs with the fence in `notify`.
        fence(Ordering::SeqCst);
    }

    /// The worker found something in its last look and stays awake.
    pub(crate) fn cancel(&self) {
        self.word.swap(AWAKE, Ordering::AcqRel);
    }

    /// Lets other threads run, some microseconds at most unless they keep the processor, as long as nobody changed the word.
    ///
    /// A notifier that comes meanwhile has no thread to wake, which saves it the system call.
    fn let_others_run(&self) -> Others {
        let mut before = nanos();
        for _ in 0..YIELDS {
            if !self.sleeps() {
                break;
            }
            yield_now();
            let now = nanos();
            if now - before > KEPT_NS {
                return Others::KeepIt;
            }
            before = now;
        }
        Others::GiveItBack
    }

    /// Sleeps until a notifier changed the word. Spurious returns of `park` go back to sleep.
    pub(crate) fn sleep(&self) {
        // Acquire: pairs with the AcqRel of the notifier in `wake`.
        while self.word.load(Ordering::Acquire) == SLEEPING {
            park();
        }
    }

    /// As [`Self::sleep`], for a time at most; whether a notifier ended it.
    pub(crate) fn sleep_for(&self, time: Duration) -> bool {
        let since = nanos();
        // Acquire: as in `sleep`.
        while self.word.load(Ordering::Acquire) == SLEEPING {
            match left_of(time, nanos() - since) {
                Some(left) => park_timeout(left),
                None => return self.word.swap(AWAKE, Ordering::AcqRel) != SLEEPING,
            }
        }
        true
    }

    /// Wakes the thread whatever it waits for, a timed park outside [`Self::sleep`] included.
    pub(crate) fn interrupt(&self) {
        let _ = self.notify();
        self.unpark();
    }

    /// The worker's thread will never look again.
    pub(crate) fn leave(&self) {
        self.word.swap(GONE, Ordering::AcqRel);
        // Pairs with the fence in `notify`, as in `announce`: the last look comes after this.
        fence(Ordering::SeqCst);
    }

    /// Whether the worker sleeps, as placement sees it: a hint that may be old.
    pub(crate) fn sleeps(&self) -> bool {
        self.word.load(Ordering::Relaxed) == SLEEPING
    }

    /// Whether the worker's thread is gone.
    pub(crate) fn is_gone(&self) -> bool {
        self.word.load(Ordering::Acquire) == GONE
    }
}

/// What is left of a time after so many nanoseconds; None where it is over.
fn left_of(time: Duration, passed: u64) -> Option<Duration> {
    time.checked_sub(Duration::from_nanos(passed)).filter(|left| !left.is_zero())
}

#[cfg(all(test, not(any(keyed_loom, keyed_shuttle))))]
mod tests {
    use super::*;

    /// Sleeps without an offer after others kept the processor so often in a row.
    fn pauses(times: u32) -> u32 {
        let (mut offers, sleeper) = (Offers::default(), Sleeper::new());
        (0..times).for_each(|_| offers.learn(Others::KeepIt));
        let mut pauses = 0;
        while offers.left > 0 {
            offers.before_sleep(&sleeper);
            pauses += 1;
        }
        pauses
    }

    #[test]
    fn a_processor_that_was_not_given_back_is_offered_more_and_more_rarely_and_never_too_rarely() {
        assert_eq!([1, 2, 3, 7, 8].map(pauses), [64, 128, 256, 4_096, 4_096]);
    }

    #[test]
    fn a_processor_that_was_given_back_is_offered_the_next_time() {
        let mut offers = Offers::default();
        offers.learn(Others::KeepIt);
        offers.learn(Others::GiveItBack);
        assert_eq!((offers.left, offers.pause), (0, 0));
    }

    #[test]
    fn a_timed_sleep_is_over_with_its_last_nanosecond() {
        let left = |passed| left_of(Duration::from_nanos(100), passed).map(|left| left.as_nanos());
        assert_eq!(
            [0, 1, 99, 100, 101, u64::MAX].map(left),
            [Some(100), Some(99), Some(1), None, None, None]
        );
    }
}
