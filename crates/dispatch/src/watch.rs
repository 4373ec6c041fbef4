//! `Watch`: sees a dispatch to its end, without a task of its own.
//!
//! The dispatch's handle wakes whoever polled it; here the waker is the watch, which polls again on the waking thread, runs
//! `on_end` once and then resolves for everyone who waits. Invariant: at most one thread polls at a time; a wake during a poll
//! leads to another poll.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use keyed_executor::{DispatchError, Ledger};

use crate::error::DispatchFailure;
use crate::execution::{Running, Switch};

type Ended = Result<Ledger, DispatchError<DispatchFailure>>;
type OnEnd = Box<dyn FnOnce(Ended) + Send>;

pub(crate) struct Watch {
    switch: Switch,
    /// How many wakes have not led to a poll yet; who raises it from 0 polls.
    wakes: AtomicUsize,
    state: Mutex<State>,
}

struct State {
    running: Option<(Running, OnEnd)>,
    phase: Phase,
    waiting: Vec<Waker>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    Ended,
}

impl Watch {
    /// Watches `dispatch`; `on_end` runs on whichever thread sees the end, possibly this one.
    pub(crate) fn over(dispatch: Running, on_end: impl FnOnce(Ended) + Send + 'static) -> Arc<Self> {
        let switch = dispatch.switch();
        let running = Some((dispatch, Box::new(on_end) as OnEnd));
        let state = Mutex::new(State { running, phase: Phase::Running, waiting: Vec::new() });
        let watch = Arc::new(Self { switch, wakes: AtomicUsize::new(0), state });
        watch.look();
        watch
    }

    pub(crate) fn cancel(&self) {
        self.switch.cancel();
    }

    /// Resolves once the dispatch has ended and `on_end` returned.
    pub(crate) fn ended(self: &Arc<Self>) -> impl Future<Output = ()> + Send + use<> {
        Waiting(Arc::clone(self))
    }

    fn look(self: &Arc<Self>) {
        // AcqRel: a poller sees what was published before the wake it answers.
        if self.wakes.fetch_add(1, Ordering::AcqRel) > 0 {
            return;
        }
        let mut seen = 1;
        loop {
            self.poll_once();
            match self.wakes.compare_exchange(seen, 0, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }

    fn poll_once(self: &Arc<Self>) {
        let waker = Waker::from(Arc::clone(self));
        let ended = {
            let mut state = self.lock();
            let Some((dispatch, _)) = state.running.as_mut() else { return };
            match Pin::new(dispatch).poll(&mut Context::from_waker(&waker)) {
                Poll::Pending => return,
                Poll::Ready(ended) => state.running.take().map(|(_, on_end)| (ended, on_end)),
            }
        };
        if let Some((ended, on_end)) = ended {
            on_end(ended);
        }
        let waiting = {
            let mut state = self.lock();
            state.phase = Phase::Ended;
            std::mem::take(&mut state.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Watch {
    fn wake(self: Arc<Self>) {
        self.look();
    }
}

struct Waiting(Arc<Watch>);

impl Future for Waiting {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.lock();
        if state.phase == Phase::Ended {
            return Poll::Ready(());
        }
        if !state.waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            state.waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }
}
