//! Who may touch a seat: one word per thread.
//!
//! The occupant lends its seat around user code and takes it back with one CAS; it parks the seat around its sleep.
//! While the seat is lent or parked, another thread may borrow it (force close does), work on it and give it back:
//! the word returns to exactly what it was, so the occupant never notices more than a short wait.
//!
//! The count in the upper bits goes up with every lend and every park: a borrower's CAS names the very lend it saw,
//! so it can never take a seat that was taken back and lent again meanwhile, and an unchanged count shows a poll that
//! does not end without a clock.
//!
//! It knows nothing of what a seat holds; the rules that its words enforce are in README.md beside it.

use crate::sync::{AtomicU64, Ordering, yield_now};

const STATE: u64 = 0b11;
/// The occupant works on the seat.
const OWNED: u64 = 0;
/// The occupant is inside user code and touches nothing of the seat.
const LENT: u64 = 1;
/// The occupant sleeps, or ended, and touches nothing of the seat.
const PARKED: u64 = 2;
/// Another thread works on the seat and will give it back.
const BORROWED: u64 = 3;
const COUNT: u64 = 4;

/// The word of one worker thread.
pub(crate) struct Token(AtomicU64);

/// Permission to work on a seat whose occupant lent or parked it; given back by [`Token::give_back`].
#[must_use]
pub(crate) struct Borrowed(u64);

impl Token {
    /// A seat without a thread yet: nobody is inside, anybody may borrow.
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(PARKED))
    }

    /// The occupant leaves the seat to whoever borrows it, for the time of user code.
    #[inline]
    pub(crate) fn lend(&self) {
        self.leave(LENT);
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
        // Release: pairs with the Acquire of `borrow`; all that the occupant did to the seat comes first.
        self.0.store(((seen & !STATE).wrapping_add(COUNT)) | state, Ordering::Release);
    }

    /// The occupant is back: true once the seat is its own again, waiting out a borrower.
    ///
    /// The wait is for a borrower that drops messages, so it yields instead of burning the processor.
    #[inline]
    pub(crate) fn take_back(&self) {
        loop {
            // Relaxed: the CAS below is what decides.
            let seen = self.0.load(Ordering::Relaxed);
            debug_assert_ne!(seen & STATE, OWNED, "a seat is taken back once for each time it was left");
            if seen & STATE != BORROWED
                // Acquire: pairs with the Release of `give_back`; what a borrower did to the seat is seen.
                && self.0.compare_exchange(seen, seen & !STATE, Ordering::Acquire, Ordering::Relaxed).is_ok()
            {
                return;
            }
            yield_now();
        }
    }

    /// Takes the seat for a while if its occupant is not on it; None while it is owned or borrowed.
    pub(crate) fn try_borrow(&self) -> Option<Borrowed> {
        let seen = self.0.load(Ordering::Relaxed);
        if seen & STATE == OWNED || seen & STATE == BORROWED {
            return None;
        }
        self.0
            // Acquire: pairs with the Release of `leave` (and of an earlier `give_back`).
            .compare_exchange(seen, seen | BORROWED, Ordering::Acquire, Ordering::Relaxed)
            .ok()
            .map(|_| Borrowed(seen))
    }

    /// The word while the occupant is inside user code: the same word twice is the same piece of user code.
    pub(crate) fn lent(&self) -> Option<u64> {
        // Relaxed: a hint for placement.
        let seen = self.0.load(Ordering::Relaxed);
        (seen & STATE == LENT).then_some(seen)
    }

    /// Gives the seat back as it was found.
    pub(crate) fn give_back(&self, borrowed: Borrowed) {
        // Release: pairs with the Acquire of `take_back` and of the next `try_borrow`.
        self.0.store(borrowed.0, Ordering::Release);
    }
}
