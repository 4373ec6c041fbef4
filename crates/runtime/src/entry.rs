//! One registered component and who is inside it.
//!
//! Owns the component and the record of calls into it; `start.rs`, `shutdown.rs` and `force.rs` go through it.
//! Invariants: the orderly procedures are inside a component one at a time; once it is forced, or the orderly
//! procedures are detached, nobody enters it any more; a force that finds somebody inside is followed by exactly one
//! more `force_stop`, after that visit ended. No lock is held while the component's code runs. It does not decide the
//! order among components.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

use crate::component::{Component, ComponentError};
use crate::failure::{Failure, Step};
use crate::report::{ComponentEnd, ComponentReport, WorkLedger};
use crate::sync::{Arc, Mutex, lock};
use crate::waiters::Signal;

pub(crate) struct Entry {
    component: Arc<dyn Component>,
    name: Arc<str>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// A lifecycle method is running or its future is alive.
    inside: bool,
    /// Whether a lifecycle method ever ran: what a roll-back has to undo.
    entered: bool,
    force: Force,
    end: ComponentEnd,
}

#[derive(Debug, PartialEq, Eq)]
enum Force {
    No,
    /// The first `force_stop` runs; `owed` says that the visit it overlapped has ended meanwhile.
    Calling {
        owed: bool,
    },
    Done,
}

impl Entry {
    pub(crate) fn new(component: Arc<dyn Component>) -> Self {
        let name = Arc::from(component.name());
        let state = State { inside: false, entered: false, force: Force::No, end: ComponentEnd::NotEntered };
        Self { component, name, state: Mutex::new(state) }
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(crate) fn component(&self) -> &dyn Component {
        self.component.as_ref()
    }

    /// Whether a lifecycle method ever ran.
    pub(crate) fn was_entered(&self) -> bool {
        lock(&self.state).entered
    }

    /// Begins a visit, unless the component is forced or the orderly procedures are `detached`.
    pub(crate) fn enter(&self, detached: &Signal) -> Option<Visit<'_>> {
        let mut state = lock(&self.state);
        // Both looks are needed: `force` tells that this component was reached, `detached` that another one was.
        if detached.is_fired() || state.force != Force::No {
            return None;
        }
        debug_assert!(!state.inside, "the orderly procedures visit one at a time");
        state.inside = true;
        state.entered = true;
        Some(Visit { entry: self })
    }

    /// Notes how the graceful stop of this component ended.
    pub(crate) fn drained(&self, end: ComponentEnd) {
        lock(&self.state).end = end;
    }

    /// Forces the component; does nothing if it was forced before.
    pub(crate) fn force(&self) -> Result<(), Failure> {
        {
            let mut state = lock(&self.state);
            if state.force != Force::No {
                return Ok(());
            }
            state.force = Force::Calling { owed: false };
            if state.end != ComponentEnd::Graceful {
                state.end = ComponentEnd::Forced;
            }
        }
        let result = self.call(Step::Force, |component| component.force_stop());
        let owed = {
            let mut state = lock(&self.state);
            std::mem::replace(&mut state.force, Force::Done) == Force::Calling { owed: true }
        };
        if owed {
            self.compensate();
        }
        result
    }

    /// How the component ended and what became of its work.
    pub(crate) fn report(&self) -> ComponentReport {
        let work = catch_unwind(AssertUnwindSafe(|| self.component.work())).unwrap_or_else(|_| {
            tracing::error!(component = %self.name, "a component panicked while it told its work");
            None::<WorkLedger>
        });
        ComponentReport { name: Arc::clone(&self.name), ended: lock(&self.state).end, work }
    }

    /// Calls a prompt method; a panic is its failure.
    pub(crate) fn call(
        &self,
        step: Step,
        method: impl FnOnce(&dyn Component) -> Result<(), ComponentError>,
    ) -> Result<(), Failure> {
        match catch_unwind(AssertUnwindSafe(|| method(self.component.as_ref()))) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(Failure::error(Arc::clone(&self.name), step, error)),
            Err(payload) => Err(Failure::panic(Arc::clone(&self.name), step, panic_text(payload.as_ref()))),
        }
    }

    /// Drives a method's future; a panic of a poll is its failure.
    pub(crate) async fn drive(
        &self,
        step: Step,
        method: impl Future<Output = Result<(), ComponentError>>,
    ) -> Result<(), Failure> {
        let mut method = pin!(method);
        std::future::poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| method.as_mut().poll(cx))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(Ok(()))) => Poll::Ready(Ok(())),
            Ok(Poll::Ready(Err(error))) => {
                Poll::Ready(Err(Failure::error(Arc::clone(&self.name), step, error)))
            }
            Err(payload) => {
                let text = panic_text(payload.as_ref());
                Poll::Ready(Err(Failure::panic(Arc::clone(&self.name), step, text)))
            }
        })
        .await
    }

    fn compensate(&self) {
        if let Err(failure) = self.call(Step::Force, |component| component.force_stop()) {
            tracing::warn!(%failure, "the second force of an overlapped component failed");
        }
    }
}

/// The text of a panic's payload.
pub(crate) fn panic_text(payload: &(dyn std::any::Any + Send)) -> String {
    payload
        .downcast_ref::<&'static str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a payload that is no text".to_owned())
}

// === Visit ===

/// An orderly procedure is inside a component; it leaves when this is dropped, after the method's future.
#[must_use = "the visit ends when it is dropped"]
pub(crate) struct Visit<'a> {
    entry: &'a Entry,
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        let compensate = {
            let mut state = lock(&self.entry.state);
            state.inside = false;
            match &mut state.force {
                Force::No => false,
                Force::Calling { owed } => {
                    *owed = true;
                    false
                }
                Force::Done => true,
            }
        };
        if compensate {
            self.entry.compensate();
        }
    }
}
