//! L5, and the inbox half of L1: a worker never sleeps over a message.
//!
//! ```text
//! submitter: write item, publish tail │ fence │ read sleeping, unpark
//! worker:                  sleeping=1 │ fence │ read tail, park
//! ```
//! Looked for: both read the old value, and the worker sleeps with an item in its inbox: loom reports the deadlock.
//! The production `Ring` and `Sleeper`, two items. Broken by hand: without the fence in `announce`, and with the look
//! before the announcement, the model deadlocks; with a Relaxed publish it reads an item that was not written.
//!
//! Searched: preemption bound 2: 98 executions, below 1 s.

use crate::lane::{Item, Ring};
use crate::sleep::Sleeper;
use crate::sync::Arc;

#[test]
fn loom_submit_vs_sleep() {
    super::model::model("submit_vs_sleep", || {
        let ring = Arc::new(Ring::new(2));
        let sleeper = Arc::new(Sleeper::new());
        let (inbox, bell) = (Arc::clone(&ring), Arc::clone(&sleeper));
        let worker = loom::thread::spawn(move || {
            bell.introduce();
            let mut taken = 0;
            loop {
                let published = inbox.published();
                while taken < published {
                    // SAFETY: rule 4 of seat/README.md: this thread is the ring's one consumer.
                    let item = unsafe { inbox.read(taken) };
                    assert_eq!(item, Item::new(taken as u32 + 7, taken as u32));
                    taken += 1;
                }
                if taken == 2 {
                    return;
                }
                bell.announce();
                if inbox.published() != taken {
                    bell.cancel();
                    continue;
                }
                bell.sleep();
            }
        });
        for position in 0..2u64 {
            // SAFETY: rule 5 of seat/README.md: this thread is the ring's one producer.
            unsafe { ring.write(position, Item::new(position as u32 + 7, position as u32)) };
            ring.publish(position + 1);
            let _ = sleeper.notify();
        }
        worker.join().expect("the worker ends");
    });
}
