//! Who may touch a seat: one word per thread.
//!
//! The occupant lends its seat around user code and takes it back with one CAS; it parks the seat around its sleep.
//! While it is lent or parked, another thread may *borrow* it and give it back: the word returns to exactly what it was,
//! so the occupant never notices more than a short wait. A borrower may instead *take* a seat that was lent for a
//! handler or the source: then the thread inside has lost it, hands its outcome in and goes to the spares.
//!
//! The word belongs to the thread, not to the seat: a thread that lost its seat never touches a word that its successor
//! uses. The count in the upper bits goes up each time the seat is left, so a borrower's CAS names the very piece of user
//! code it saw, and an unchanged word shows one that does not end without a clock.
//!
//! It knows nothing of what a seat holds; the rules that its words enforce are in README.md beside it.

use crate::sync::{AtomicU64, Ordering, yield_now};

const STATE: u64 = 0b111;
/// The occupant works on the seat.
const OWNED: u64 = 0;
/// The occupant is inside a handler or the source and touches nothing of the seat; it may lose it.
const LENT: u64 = 1;
/// The occupant sleeps, or ended, and touches nothing of the seat.
const PARKED: u64 = 2;
/// Another thread works on the seat and will give it back or keep it.
const BORROWED: u64 = 3;
/// The occupant is inside user code that is part of its own work (a drop, a waker); it will not lose the seat.
const HELD: u64 = 4;
/// The thread has no seat.
const NONE: u64 = 5;
const COUNT: u64 = 8;

/// The word of one thread.
pub(crate) struct Token(AtomicU64);

/// Permission to work on a seat whose occupant left it; ends with [`Token::give_back`] or [`Token::take`].
#[must_use]
#[derive(Debug)]
pub(crate) struct Borrowed(u64);

impl Borrowed {
    /// Whether it is the very piece of user code that was seen before.
    pub(crate) fn is(&self, word: u64) -> bool {
        self.0 == word
    }

    /// Whether the occupant sleeps.
    pub(crate) fn was_parked(&self) -> bool {
        self.0 & STATE == PARKED
    }

    /// Whether the occupant is inside something for which it may lose its seat.
    pub(crate) fn may_be_taken(&self) -> bool {
        self.0 & STATE == LENT
    }
}

/// What a thread finds when it comes back from user code.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Back {
    /// The seat is its own again.
    Mine,
    /// Another thread has it; nothing of it may be touched any more.
    Lost,
}

impl Token {
    /// The word of a worker's first thread: it is not there yet, anybody may borrow.
    pub(crate) fn parked() -> Self {
        Self(AtomicU64::new(PARKED))
    }

    /// The word of a thread without a seat.
    pub(crate) fn without_seat() -> Self {
        Self(AtomicU64::new(NONE))
    }

    /// The occupant is about to run a handler or poll the source.
    #[inline]
    pub(crate) fn lend(&self) {
        self.leave(LENT);
    }

    /// The occupant is about to run short user code.
    #[inline]
    pub(crate) fn hold(&self) {
        self.leave(HELD);
    }

    /// The occupant leaves the seat before it sleeps or ends.
    pub(crate) fn park(&self) {
        self.leave(PARKED);
    }

    #[inline]
    fn leave(&self, state: u64) {
        // Relaxed: while the word says OWNED only this thread writes it.
        let seen = self.0.load(Ordering::Relaxed);
        debug_assert_eq!(seen & STATE, OWNED, "a seat is left by its occupant only");
        // Release: pairs with the Acquire of `try_borrow`; all that the occupant did to the seat comes first.
        self.0.store(((seen & !STATE).wrapping_add(COUNT)) | state, Ordering::Release);
    }

    /// The occupant is back; a borrower is waited out.
    ///
    /// The wait is for a borrower that drops messages or starts a spare thread, so it yields instead of burning the
    /// processor.
    #[inline]
    pub(crate) fn take_back(&self) -> Back {
        loop {
            // Acquire: a thread that lost its seat sees that the seat has another occupant (`Worker::try_borrow`).
            let seen = self.0.load(Ordering::Acquire);
            debug_assert_ne!(seen & STATE, OWNED, "a seat is taken back once for each time it was left");
            match seen & STATE {
                NONE => return Back::Lost,
                BORROWED => {}
                // Acquire: pairs with the Release of `give_back`; what a borrower did to the seat is seen.
                _ => {
                    let owned = seen & !STATE;
                    if self.0.compare_exchange(seen, owned, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                        return Back::Mine;
                    }
                    continue;
                }
            }
            yield_now();
        }
    }

    /// Takes the seat for a while if its occupant is not on it; None while it is owned or borrowed.
    pub(crate) fn try_borrow(&self) -> Option<Borrowed> {
        let seen = self.0.load(Ordering::Relaxed);
        if matches!(seen & STATE, OWNED | BORROWED | NONE) {
            return None;
        }
        self.0
            // Acquire: pairs with the Release of `leave` (and of an earlier `give_back`).
            .compare_exchange(seen, (seen & !STATE) | BORROWED, Ordering::Acquire, Ordering::Relaxed)
            .ok()
            .map(|_| Borrowed(seen))
    }

    /// Gives the seat back as it was found.
    pub(crate) fn give_back(&self, borrowed: Borrowed) {
        // Release: pairs with the Acquire of `take_back` and of the next `try_borrow`.
        self.0.store(borrowed.0, Ordering::Release);
    }

    /// Keeps a borrowed seat for good: its thread has lost it.
    pub(crate) fn take(&self, borrowed: Borrowed) {
        debug_assert!(borrowed.may_be_taken(), "only a seat that was lent is taken");
        // Release: pairs with the Acquire of `take_back`.
        self.0.store((borrowed.0 & !STATE) | NONE, Ordering::Release);
    }

    /// A thread without a seat gets one; the caller holds that seat and hands it over with this.
    pub(crate) fn own(&self) {
        let seen = self.0.load(Ordering::Relaxed);
        debug_assert_eq!(seen & STATE, NONE, "a thread has one seat at a time");
        // Relaxed: who occupies the seat is published by `Worker::set_occupant`.
        self.0.store((seen & !STATE).wrapping_add(COUNT), Ordering::Relaxed);
    }

    /// The word while the occupant is inside a handler or the source: the same word twice is the same piece of code.
    pub(crate) fn lent(&self) -> Option<u64> {
        // Relaxed: a hint for placement and the monitor; a borrow decides.
        let seen = self.0.load(Ordering::Relaxed);
        (seen & STATE == LENT).then_some(seen)
    }

    /// The word while the occupant is inside user code of any kind, as [`Self::lent`].
    pub(crate) fn inside(&self) -> Option<u64> {
        let seen = self.0.load(Ordering::Relaxed);
        matches!(seen & STATE, LENT | HELD).then_some(seen)
    }

    /// The word while the occupant sleeps: the same word twice is the same sleep.
    pub(crate) fn asleep(&self) -> Option<u64> {
        let seen = self.0.load(Ordering::Relaxed);
        (seen & STATE == PARKED).then_some(seen)
    }

    /// Whether the thread is on its seat, between two pieces of user code.
    pub(crate) fn is_owned(&self) -> bool {
        self.0.load(Ordering::Relaxed) & STATE == OWNED
    }

    /// Whether the thread has a seat, or had one to its end.
    pub(crate) fn has_seat(&self) -> bool {
        self.0.load(Ordering::Relaxed) & STATE != NONE
    }

    /// Whether its occupant sleeps, or it has none.
    pub(crate) fn rests(&self) -> bool {
        matches!(self.0.load(Ordering::Relaxed) & STATE, PARKED | NONE)
    }
}
