//! L13, the part of it that force close uses: a seat has one owner at any time, whatever its token went through.
//!
//! ```text
//! occupant: work │ lend │ user code │ take back │ work │ park │ take back │ work
//! borrower:            borrow │ work │ give back           (twice, from two threads)
//! ```
//! Looked for: two threads inside the seat at once (loom's cell reports it), a borrower that takes a lend it did not
//! see, and an occupant that waits for ever. The production `Token`. Broken by hand: lending with Relaxed, borrowing
//! with a look and a store instead of the CAS, and giving back with Relaxed are each reported as a race on the cell.
//!
//! Searched: preemption bound 2: 1,286 executions, below 1 s.

use crate::seat::token::{Back, Token};
use crate::sync::{Arc, UnsafeCell};

struct Seat {
    token: Token,
    value: UnsafeCell<u32>,
}

// SAFETY: rule 1 of seat/README.md: the token says who touches the value; that is what the model checks.
unsafe impl Sync for Seat {}
// SAFETY: as above.
unsafe impl Send for Seat {}

impl Seat {
    fn work(&self) {
        // SAFETY: rule 1 of seat/README.md: the caller holds the seat; loom reports it if another thread does too.
        self.value.with_mut(|value| unsafe { *value += 1 });
    }
}

#[test]
fn loom_lend_vs_borrow() {
    super::model::model("lend_vs_borrow", || {
        let seat = Arc::new(Seat { token: Token::parked(), value: UnsafeCell::new(0) });
        assert_eq!(seat.token.take_back(), Back::Mine);
        let borrowers: Vec<_> = (0..2)
            .map(|_| {
                let seat = Arc::clone(&seat);
                loom::thread::spawn(move || match seat.token.try_borrow() {
                    Some(borrowed) => {
                        seat.work();
                        seat.token.give_back(borrowed);
                        1
                    }
                    None => 0,
                })
            })
            .collect();
        seat.work();
        seat.token.lend();
        assert_eq!(seat.token.take_back(), Back::Mine);
        seat.work();
        seat.token.park();
        assert_eq!(seat.token.take_back(), Back::Mine);
        seat.work();
        let borrowed: u32 = borrowers.into_iter().map(|borrower| borrower.join().expect("it ends")).sum();
        // SAFETY: rule 1: this thread owns the token and the borrowers ended.
        assert_eq!(seat.value.with(|value| unsafe { *value }), 3 + borrowed);
    });
}
