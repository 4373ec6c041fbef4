//! The cleanup lane: runs the drops of transport subscriptions on threads of their own.
//!
//! Dropping a subscription runs foreign code that may block, while quiesce and force stop must be prompt. The lane is shared
//! by the process and bounded: [`MAX_THREADS`] threads, which exist only while there is something to clean up, and
//! [`MAX_JOBS`] jobs unfinished. A job over that is refused; it is then leaked, never run in place.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

pub(crate) const MAX_THREADS: usize = 8;
pub(crate) const MAX_JOBS: usize = MAX_THREADS + 256;

type Job = Box<dyn FnOnce() + Send>;

/// The lane has no room, or no thread could be started; what was to be cleaned up stays in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the cleanup lane refused to end a subscription")]
pub struct CleanupRefused;

pub(crate) struct Lane {
    state: Mutex<State>,
}

struct State {
    n_threads: usize,
    /// Waiting and running.
    n_jobs: usize,
    waiting: VecDeque<Job>,
}

/// The lane of this process.
pub(crate) static LANE: Lane = Lane::new();

impl Lane {
    pub(crate) const fn new() -> Self {
        Self { state: Mutex::new(State { n_threads: 0, n_jobs: 0, waiting: VecDeque::new() }) }
    }

    /// Drops `value` on a thread of the lane.
    pub(crate) fn drop_later<T: Send + 'static>(&'static self, value: T) -> Result<(), CleanupRefused> {
        let job: Job = Box::new(move || drop(value));
        {
            let mut state = self.lock();
            if state.n_jobs == MAX_JOBS {
                // Its drop is what must not run here.
                std::mem::forget(job);
                return Err(CleanupRefused);
            }
            state.n_jobs += 1;
            state.waiting.push_back(job);
            if state.n_threads == MAX_THREADS {
                return Ok(());
            }
            state.n_threads += 1;
        }
        let spawned = thread::Builder::new().name("wow-cleanup".to_owned()).spawn(|| self.work());
        if spawned.is_err() {
            let mut state = self.lock();
            state.n_threads -= 1;
            // Another thread of the lane, if there is one, takes the job; else the newest, which is this one, is leaked.
            if state.n_threads == 0 {
                std::mem::forget(state.waiting.pop_back());
                state.n_jobs -= 1;
                return Err(CleanupRefused);
            }
        }
        Ok(())
    }

    fn work(&self) {
        loop {
            let job = {
                let mut state = self.lock();
                match state.waiting.pop_front() {
                    Some(job) => job,
                    None => {
                        state.n_threads -= 1;
                        return;
                    }
                }
            };
            if catch_unwind(AssertUnwindSafe(job)).is_err() {
                tracing::error!("ending a subscription panicked");
            }
            self.lock().n_jobs -= 1;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use super::{CleanupRefused, Lane, MAX_JOBS};

    const PATIENCE: Duration = Duration::from_secs(30);

    /// Tells when it is dropped, which waits for a gate if there is one.
    struct Subscription {
        gate: Option<Arc<Mutex<Receiver<()>>>>,
        dropped: Sender<()>,
    }

    impl Drop for Subscription {
        fn drop(&mut self) {
            if let Some(gate) = &self.gate {
                let _opened = gate.lock().map(|gate| gate.recv());
            }
            let _heard = self.dropped.send(());
        }
    }

    #[test]
    fn a_saturated_lane_refuses_and_never_cleans_up_in_place() {
        static LANE: Lane = Lane::new();
        let (open, gate) = channel();
        let gate = Arc::new(Mutex::new(gate));
        let (dropped, seen) = channel();
        for _ in 0..MAX_JOBS {
            let blocked = Subscription { gate: Some(gate.clone()), dropped: dropped.clone() };
            assert_eq!(LANE.drop_later(blocked), Ok(()));
        }
        let one_more = Subscription { gate: None, dropped };
        assert_eq!(LANE.drop_later(one_more), Err(CleanupRefused));
        assert!(seen.try_recv().is_err(), "the refused one was not cleaned up here");
        drop(open);
        for _ in 0..MAX_JOBS {
            seen.recv_timeout(PATIENCE).expect("every accepted one is cleaned up");
        }
    }

    #[test]
    fn a_panic_while_cleaning_up_does_not_end_the_lane() {
        static LANE: Lane = Lane::new();
        struct Explosive;
        impl Drop for Explosive {
            fn drop(&mut self) {
                panic!("a subscription panics when it ends");
            }
        }
        let (dropped, seen) = channel();
        assert_eq!(LANE.drop_later(Explosive), Ok(()));
        assert_eq!(LANE.drop_later(Subscription { gate: None, dropped }), Ok(()));
        seen.recv_timeout(PATIENCE).expect("the lane goes on");
    }
}
