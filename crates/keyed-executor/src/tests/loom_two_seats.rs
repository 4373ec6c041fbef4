//! L10, the part of it that needs two seats: a thread that lost one seat occupies another, and nobody takes the one for
//! the other.
//!
//! ```text
//! monitor:   take 1 from A for B │ take 2 from C for A │ as B: work on 1 │ lend │ back │ work on 1 │ park
//! thread A:                                              work on 2 │ lend │ back │ work on 2 │ park
//! closer:    who occupies 1? │ borrow from that thread │ who occupies 1? │ work on 1 │ give back
//! ```
//! Looked for: a closer that read the occupant of seat 1 before A lost it, borrows A's word when A has lent seat 2, and
//! works on seat 1 beside B (loom's cell reports it). The
//! production `Token`, and `Worker::try_borrow` and `Worker::set_occupant`. A and C are stuck when it begins.
//!
//! Broken by hand: without the second look at the occupant, with a Relaxed lend, and with a borrow by look and store, two
//! threads work on seat 1 at once.
//!
//! Searched: preemption bound 2: 587 executions, below 1 s.

use crossbeam_utils::CachePadded;

use crate::seat::token::{Back, Token};
use crate::sync::{Arc, UnsafeCell, yield_now};
use crate::worker::Worker;

const A: usize = 0;
const C: usize = 1;
const B: usize = 2;

struct Seats {
    workers: [Arc<Worker>; 2],
    work: [UnsafeCell<u32>; 2],
}

// SAFETY: rule 1 of seat/README.md: the token says who touches what; that is what the model checks.
unsafe impl Sync for Seats {}
// SAFETY: as above.
unsafe impl Send for Seats {}

impl Seats {
    fn work(&self, seat: usize) {
        // SAFETY: rule 1 of seat/README.md: the caller holds the seat; loom reports it if another thread does too.
        self.work[seat].with_mut(|work| unsafe { *work += 1 });
    }

    /// What the monitor does to a seat whose thread is inside a handler.
    fn take(&self, seat: usize, to: usize) {
        let worker = &self.workers[seat];
        loop {
            if let Some((token, borrowed)) = worker.try_borrow() {
                assert!(borrowed.may_be_taken());
                worker.token_of(to).own();
                worker.set_occupant(to);
                token.take(borrowed);
                return;
            }
            // The closer has it.
            yield_now();
        }
    }

    /// What a thread does on a seat that it was given, and how often it works on it.
    fn occupy(&self, seat: usize, thread: usize) -> u32 {
        let token = self.workers[seat].token_of(thread);
        self.work(seat);
        token.lend();
        assert_eq!(token.take_back(), Back::Mine, "nobody takes it");
        self.work(seat);
        token.park();
        2
    }
}

#[test]
fn loom_two_seats() {
    super::model::model("two_seats", || {
        let tokens: Arc<[CachePadded<Token>]> = Arc::new([
            CachePadded::new(Token::parked()),
            CachePadded::new(Token::parked()),
            CachePadded::new(Token::without_seat()),
        ]);
        let seats = Arc::new(Seats {
            workers: [Worker::new(0, Arc::clone(&tokens)), Worker::new(1, Arc::clone(&tokens))],
            work: [UnsafeCell::new(0), UnsafeCell::new(0)],
        });
        for thread in [A, C] {
            assert_eq!(tokens[thread].take_back(), Back::Mine);
            tokens[thread].lend();
        }
        let closed = Arc::clone(&seats);
        let closer = loom::thread::spawn(move || {
            let Some((token, borrowed)) = closed.workers[0].try_borrow() else { return 0 };
            closed.work(0);
            token.give_back(borrowed);
            1
        });
        seats.take(0, B);
        assert_eq!(tokens[A].take_back(), Back::Lost);
        seats.take(1, A);
        let again = Arc::clone(&seats);
        let a = loom::thread::spawn(move || again.occupy(1, A));
        let on_first = seats.occupy(0, B) + closer.join().expect("the closer ends");
        let on_second = a.join().expect("thread A ends");
        // SAFETY: rule 1 of seat/README.md: every other thread ended.
        let work = [0, 1].map(|seat: usize| seats.work[seat].with(|work| unsafe { *work }));
        assert_eq!(work, [on_first, on_second]);
    });
}
