//! The other thread: one helper that opens latches, at once or after a delay.
//!
//! Owns a single thread for the whole process, named `testkit-helper`, and the queue of latches due. Invariant: whatever
//! is woken through it is woken from that thread, never from the thread that asked. Not a clock: tests must not conclude
//! anything from how late a latch opens.

use crate::Latch;
use crate::wait::now;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// A future that is ready after `delay`, woken from the helper thread.
///
/// ```
/// # use std::time::Duration;
/// wow_testkit::finish(wow_testkit::after(Duration::from_millis(1)));
/// ```
pub fn after(delay: Duration) -> crate::Released {
    let latch = Latch::new();
    release_after(delay, &latch);
    latch.released()
}

/// Opens `latch` from the helper thread, not before `delay` has passed.
pub fn release_after(delay: Duration, latch: &Latch) {
    let due = Due { at: now() + delay, latch: latch.clone() };
    helper().send(due).expect("the helper thread lives as long as the process");
}

struct Due {
    at: Instant,
    latch: Latch,
}

impl PartialEq for Due {
    fn eq(&self, other: &Due) -> bool {
        self.at == other.at
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Due) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Due) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}

fn helper() -> &'static Sender<Due> {
    static HELPER: OnceLock<Sender<Due>> = OnceLock::new();
    HELPER.get_or_init(|| {
        let (sender, receiver) = channel();
        std::thread::Builder::new()
            .name("testkit-helper".to_owned())
            .spawn(move || open_when_due(&receiver))
            .expect("a test process can start one helper thread");
        sender
    })
}

fn open_when_due(receiver: &Receiver<Due>) {
    let mut waiting = BinaryHeap::new();
    loop {
        let now = now();
        while waiting.peek().is_some_and(|Reverse(due): &Reverse<Due>| due.at <= now) {
            if let Some(Reverse(due)) = waiting.pop() {
                due.latch.release();
            }
        }
        let next = match waiting.peek() {
            Some(Reverse(due)) => receiver.recv_timeout(due.at.saturating_duration_since(now)),
            None => receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match next {
            Ok(due) => waiting.push(Reverse(due)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{after, release_after};
    use crate::{Latch, finish};
    use std::sync::Arc;
    use std::sync::Mutex;
    use std::task::{Context, Wake, Waker};
    use std::time::Duration;

    struct Name(Mutex<Option<String>>, Latch);

    impl Wake for Name {
        fn wake(self: Arc<Self>) {
            let name = std::thread::current().name().map(str::to_owned);
            *self.0.lock().expect("not poisoned") = name;
            self.1.release();
        }
    }

    #[test]
    fn a_waker_is_called_on_the_helper_thread() {
        let name = Arc::new(Name(Mutex::new(None), Latch::new()));
        let waker = Waker::from(Arc::clone(&name));
        let latch = Latch::new();
        let mut released = latch.released();
        let poll = std::pin::Pin::new(&mut released);
        assert!(Future::poll(poll, &mut Context::from_waker(&waker)).is_pending());
        release_after(Duration::ZERO, &latch);
        name.1.wait();
        assert_eq!(name.0.lock().expect("not poisoned").as_deref(), Some("testkit-helper"));
    }

    #[test]
    fn a_short_delay_is_not_held_up_by_a_long_one() {
        let long = Latch::new();
        release_after(Duration::from_secs(3600), &long);
        finish(after(Duration::from_millis(1)));
        assert!(!long.is_released());
    }
}
