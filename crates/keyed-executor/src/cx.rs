//! A worker whose seat the caller holds: the context that everything on a seat runs in.
//!
//! It knows how the seat is held, so it knows what has to happen around user code: an occupant lends the seat (for a
//! handler or the source, for which it may lose it) or holds it (for short user code that is part of its own work); a
//! borrower keeps everybody else out already.

use crate::contain::contain;
use crate::lanes::Lanes;
use crate::seat::Seat;
use crate::seat::token::{Back, Token};
use crate::sync::Arc;
use crate::worker::{Job, Worker};

/// How the holder of a seat holds it.
#[derive(Clone, Copy)]
enum Hold<'a> {
    /// It is the thread on it: the seat is left around user code.
    Occupant(&'a Token),
    /// It borrowed the seat, which keeps everybody else out already.
    Borrower,
}

/// A worker whose seat the caller holds.
#[derive(Clone, Copy)]
pub(crate) struct Cx<'a> {
    pub(crate) worker: &'a Arc<Worker>,
    hold: Hold<'a>,
}

impl<'a> Cx<'a> {
    /// # Safety
    /// The caller owns the token of the thread that occupies the worker's seat, for as long as the context lives or until
    /// it lost the seat.
    pub(crate) unsafe fn occupant(worker: &'a Arc<Worker>, token: &'a Token) -> Self {
        Self { worker, hold: Hold::Occupant(token) }
    }

    /// # Safety
    /// The caller borrowed the worker's seat, for as long as the context lives.
    pub(crate) unsafe fn borrower(worker: &'a Arc<Worker>) -> Self {
        Self { worker, hold: Hold::Borrower }
    }

    /// Whether the holder is the thread on the seat.
    pub(crate) fn is_occupant(&self) -> bool {
        matches!(self.hold, Hold::Occupant(_))
    }

    /// Runs short user code with the seat held: it may be borrowed meanwhile, not taken. A panic comes back as its text.
    #[inline]
    pub(crate) fn user<R>(&self, code: impl FnOnce() -> R) -> Result<R, String> {
        let Hold::Occupant(token) = self.hold else { return contain(code) };
        token.hold();
        let result = contain(code);
        let back = token.take_back();
        debug_assert_eq!(back, Back::Mine, "a seat that is held is not taken");
        result
    }

    /// Runs a handler or polls the source with the seat lent: it may be lost meanwhile.
    #[inline]
    pub(crate) fn lent<R>(&self, code: impl FnOnce() -> R) -> (Result<R, String>, Back) {
        let Hold::Occupant(token) = self.hold else {
            unreachable!("only the thread on a seat runs handlers")
        };
        token.lend();
        let result = contain(code);
        (result, token.take_back())
    }

    /// Leaves the seat for the time of a sleep.
    pub(crate) fn park_while(&self, sleep: impl FnOnce()) {
        let Hold::Occupant(token) = self.hold else { unreachable!("only the thread on a seat sleeps on it") };
        token.park();
        sleep();
        let back = token.take_back();
        debug_assert_eq!(back, Back::Mine, "a parked seat is not taken");
    }

    /// Leaves the seat for good.
    pub(crate) fn leave(&self) {
        let Hold::Occupant(token) = self.hold else { unreachable!("only the thread on a seat leaves it") };
        token.park();
    }

    /// Drops something of the user's; a panic in its `Drop` is logged.
    pub(crate) fn drop_user<T>(&self, what: &'static str, value: T) {
        if let Err(panic) = self.user(|| drop(value)) {
            tracing::error!(panic, "dropping {what} panicked");
        }
    }

    /// Takes a dispatch onto the seat.
    pub(crate) fn attach(&self, lanes: Arc<dyn Lanes>) {
        let raw = Arc::clone(&lanes);
        // SAFETY: rule 1 of seat/README.md: the context's contract is that the caller holds the seat.
        let attached = unsafe { self.worker.with_seat(|seat| seat.attach(lanes)) };
        // SAFETY: as above.
        unsafe { raw.attached(self, attached) };
    }

    /// The dispatch under a number, to call while it stays attached.
    pub(crate) fn lanes(&self, index: usize) -> Option<*const dyn Lanes> {
        // SAFETY: rule 1 of seat/README.md: the context's contract is that the caller holds the seat.
        unsafe { self.worker.with_seat(|seat| seat.get(index).map(Arc::as_ptr)) }
    }

    pub(crate) fn attachments(&self) -> usize {
        // SAFETY: rule 1 of seat/README.md: the context's contract is that the caller holds the seat.
        unsafe { self.worker.with_seat(|seat| seat.len()) }
    }

    /// The seat was taken from under another thread: what that one runs is detached.
    pub(crate) fn adopt(&self) {
        for index in 0..self.attachments() {
            if let Some(lanes) = self.lanes(index) {
                // SAFETY: rule 1 of seat/README.md; the dispatch stays attached, as in `discard_all`.
                unsafe { (*lanes).adopt(self) };
            }
        }
    }

    /// Takes what threads that lost this seat left with a dispatch.
    pub(crate) fn take_handed_in(&self, lanes: &dyn Lanes) {
        // SAFETY: rule 1 of seat/README.md: the context's contract is that the caller holds the seat.
        unsafe {
            lanes.handed_in(self);
            self.worker.with_seat(|seat| seat.warm_up_same(lanes));
        }
    }

    /// Works on the seat.
    #[inline]
    pub(crate) fn seat<R>(&self, access: impl FnOnce(&mut Seat) -> R) -> R {
        // SAFETY: rule 1 of seat/README.md: the context's contract is that the caller holds the seat; no access here
        // runs user code or comes back to the seat.
        unsafe { self.worker.with_seat(access) }
    }

    /// Whether something waits on this seat that another thread could go on with.
    pub(crate) fn something_waits(&self) -> bool {
        !self.worker.jobs().is_empty()
            || !self.worker.wakes().is_empty()
            || (0..self.attachments()).any(|index| {
                // SAFETY: rule 1 of seat/README.md; the dispatch stays attached, as in `discard_all`.
                let waits = self.lanes(index).is_some_and(|lanes| unsafe { (*lanes).waits(self) });
                if waits {
                    // What the look took out of an inbox must not lie with a dispatch that nobody asks for news.
                    self.seat(|seat| seat.warm_up(index));
                }
                waits
            })
    }

    /// Gives up what the thread of this seat was running when it died of a bug.
    pub(crate) fn bury_all(&self) {
        for index in 0..self.attachments() {
            if let Some(lanes) = self.lanes(index) {
                // SAFETY: rule 1 of seat/README.md; the dispatch stays attached, as in `discard_all`.
                unsafe { (*lanes).bury(self) };
            }
        }
    }

    /// Drops everything that waits on this seat: tasks, messages, suspended futures. What runs is left alone.
    ///
    /// Returns how many tasks were dropped.
    pub(crate) fn discard_all(&self) -> usize {
        let mut discarded = 0;
        loop {
            while let Some(job) = self.worker.jobs().pop() {
                match job {
                    Job::Attach(lanes) => self.attach(lanes),
                    Job::HandedIn(lanes) => self.take_handed_in(&*lanes),
                    Job::Task(task) => match self.user(|| task.discard()) {
                        Ok(true) => discarded += 1,
                        Ok(false) => {}
                        Err(panic) => {
                            discarded += 1;
                            tracing::error!(panic, "discarding a task panicked");
                        }
                    },
                }
            }
            for index in 0..self.attachments() {
                if let Some(lanes) = self.lanes(index) {
                    // SAFETY: rule 1 of seat/README.md; the seat keeps the dispatch attached: only its own thread
                    // detaches, in `worker/rounds.rs`, which is not running while this thread holds the seat.
                    unsafe { (*lanes).discard(self) };
                }
            }
            if self.worker.jobs().is_empty() {
                return discarded;
            }
        }
    }
}
