//! L4: a wake that comes while the worker polls, or goes to sleep, is never lost, and a late one does no harm.
//!
//! ```text
//! waker:  data=1 │ notified 0->1 │ push │ fence │ read sleeping
//! worker: take stack │ notified 1->0 │ poll reads data │ sleeping=1 │ fence │ look at stack │ park
//! ```
//! Looked for: the last wake falls between the worker's poll and its sleep. Two wakes from two threads through the
//! production `WakeCell`, `WakeStack` and `Sleeper`; the future is ready once it saw both. Broken by hand: not
//! clearing `notified` loses the second wake and deadlocks; clearing it with a Relaxed store is a race on the link.
//!
//! Searched: preemption bound 2: 486 executions, below 1 s.

use crossbeam_utils::CachePadded;

use crate::seat::AttachId;
use crate::seat::token::Token;
use crate::sync::{Arc, AtomicU32, Ordering};
use crate::wake::{WakeCell, waker};
use crate::worker::Worker;

#[test]
fn loom_wake_vs_suspend() {
    super::model::model("wake_vs_suspend", || {
        let worker = Worker::new(0, Arc::new([CachePadded::new(Token::parked())]));
        let cell = WakeCell::new(Arc::clone(&worker), AttachId { index: 0, generation: 0 }, 3);
        let ready = Arc::new(AtomicU32::new(0));
        let wakers: Vec<_> = (0..2)
            .map(|_| {
                let (waker, ready) = (waker(&cell), Arc::clone(&ready));
                loom::thread::spawn(move || {
                    // Relaxed on purpose: the wake itself has to carry it to the poll.
                    ready.fetch_add(1, Ordering::Relaxed);
                    waker.wake_by_ref();
                })
            })
            .collect();
        worker.sleeper().introduce();
        let mut polls = 0;
        loop {
            let mut woken = false;
            worker.wakes().take(|cell| {
                assert_eq!(cell.entry(), 3);
                woken = true;
            });
            if woken {
                polls += 1;
                if ready.load(Ordering::Relaxed) == 2 {
                    break;
                }
            }
            worker.sleeper().announce();
            if !worker.wakes().is_empty() {
                worker.sleeper().cancel();
                continue;
            }
            worker.sleeper().sleep();
        }
        assert!((1..=2).contains(&polls), "a wake costs one poll at most");
        for waker in wakers {
            waker.join().expect("a waker ends");
        }
        // What came late is on the stack and is dropped with the worker's end.
        worker.wakes().take(drop);
    });
}
