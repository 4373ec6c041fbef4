//! L13, the part of it that the rescue uses: a seat that is taken has one owner, and its thread knows that it lost it.
//!
//! ```text
//! occupant:  work │ lend │ handler │ back: mine or lost │ hand the outcome in
//! monitor:          borrow │ look │ the spare owns its token │ occupant = spare │ take │ work, take what was handed in
//! closer:                  borrow whoever occupies the seat │ work │ give back
//! ```
//! Looked for: the stuck thread and its successor both inside the seat (loom's cell reports it), an outcome that is counted
//! twice or not at all, and a borrower that works on a seat beside its new occupant. The production `Token` and the
//! borrowing of `Worker`. Broken by hand: a take that leaves
//! the word as it was, a Relaxed lend, and a borrow by look and store instead of the CAS are each reported as a race on the
//! cell. A thread that lost one seat and occupies another:
//! `loom_two_seats.rs`; the whole hand-over: `loom_handover.rs`.
//!
//! Searched: preemption bound 2, 783 executions, below 1 s.

use crossbeam_utils::CachePadded;

use crate::seat::token::{Back, Token};
use crate::sync::{Arc, Mutex, UnsafeCell, lock};
use crate::worker::Worker;

struct Seat {
    worker: Arc<Worker>,
    /// What the seat holds: pieces of work done, and outcomes counted.
    value: UnsafeCell<(u32, u32)>,
    /// What a handler writes, for whoever counts its outcome.
    outcome: UnsafeCell<u32>,
    handed_in: Mutex<bool>,
}

// SAFETY: rules 1 and 3 of seat/README.md: the token says who touches what; that is what the model checks.
unsafe impl Sync for Seat {}
// SAFETY: as above.
unsafe impl Send for Seat {}

impl Seat {
    fn work(&self) {
        // SAFETY: rule 1 of seat/README.md: the caller holds the seat; loom reports it if another thread does too.
        self.value.with_mut(|value| unsafe { (*value).0 += 1 });
    }

    fn count(&self) {
        // SAFETY: rules 1 and 3 of seat/README.md: the caller holds the seat, and the handler returned.
        unsafe {
            let outcome = self.outcome.with(|outcome| *outcome);
            self.value.with_mut(|value| (*value).1 += outcome);
        }
    }
}

#[test]
fn loom_take_vs_return() {
    super::model::model("take_vs_return", || {
        let tokens: Arc<[CachePadded<Token>]> =
            Arc::new([CachePadded::new(Token::parked()), CachePadded::new(Token::without_seat())]);
        let seat = Arc::new(Seat {
            worker: Worker::new(0, Arc::clone(&tokens)),
            value: UnsafeCell::new((0, 0)),
            outcome: UnsafeCell::new(0),
            handed_in: Mutex::new(false),
        });
        let stuck = &tokens[0];
        assert_eq!(stuck.take_back(), Back::Mine);

        let taken = Arc::clone(&seat);
        let spare = Arc::clone(&tokens);
        let monitor = loom::thread::spawn(move || {
            let Some((token, borrowed)) = taken.worker.try_borrow() else { return false };
            if !borrowed.may_be_taken() {
                token.give_back(borrowed);
                return false;
            }
            spare[1].own();
            taken.worker.set_occupant(1);
            token.take(borrowed);
            taken.work();
            // A piece of user code of the successor, between which the closer may borrow.
            spare[1].lend();
            assert_eq!(spare[1].take_back(), Back::Mine);
            if std::mem::replace(&mut *lock(&taken.handed_in), false) {
                taken.count();
            }
            spare[1].park();
            true
        });
        let closed = Arc::clone(&seat);
        let closer = loom::thread::spawn(move || match closed.worker.try_borrow() {
            Some((token, borrowed)) => {
                closed.work();
                token.give_back(borrowed);
                1
            }
            None => 0,
        });

        seat.work();
        stuck.lend();
        // SAFETY: rule 3 of seat/README.md: this is the thread inside the handler.
        seat.outcome.with_mut(|outcome| unsafe { *outcome = 1 });
        let back = stuck.take_back();
        if back == Back::Mine {
            seat.count();
            seat.work();
            stuck.park();
        } else {
            *lock(&seat.handed_in) = true;
        }

        let was_taken = monitor.join().expect("the monitor ends");
        let borrowed = closer.join().expect("the closer ends");
        assert_eq!(was_taken, back == Back::Lost, "the thread knows whether it lost its seat");
        if *lock(&seat.handed_in) {
            seat.count();
        }
        // SAFETY: rule 1 of seat/README.md: every other thread ended.
        let (work, outcomes) = seat.value.with(|value| unsafe { *value });
        assert_eq!((work, outcomes), (2 + borrowed, 1));
    });
}
