//! A thread's stay on a worker's seat: how it begins, how it ends, and what the thread knows of itself meanwhile.
//!
//! It owns the thread's own note of its worker, which is there exactly as long as the stay: that is what `owns` and
//! `on_worker` go by. A panic that gets out of the stay is a bug of this crate and ends the seat, never the process. What
//! is done on the seat is `rounds.rs`; which thread comes next is `rescue.rs`.

use std::cell::RefCell;

use super::Worker;
use super::rounds::work;
use crate::contain::contain;
use crate::cx::Cx;
use crate::executor::Guard;
use crate::seat::token::Back;
use crate::shared::Shared;
use crate::sync::{Arc, Weak, local};

local! {
    /// The executor whose worker this thread is.
    static CURRENT: RefCell<Option<Current>> = RefCell::new(None);
}

/// What a worker's thread knows of itself.
struct Current {
    executor: Weak<Guard>,
    worker: Arc<Worker>,
    thread: usize,
}

/// The executor whose worker this thread is; an executor whose last handle was dropped is none any more.
pub(crate) fn current() -> Option<Arc<Guard>> {
    CURRENT.with(|current| current.borrow().as_ref().and_then(|current| current.executor.upgrade()))
}

/// Whether this thread is a worker of some executor.
pub(crate) fn on_worker() -> bool {
    CURRENT.with(|current| current.borrow().is_some())
}

/// Whether this thread is on a worker's seat and owns it right now.
pub(crate) fn owns(worker: &Arc<Worker>) -> bool {
    CURRENT.with(|current| {
        current.borrow().as_ref().is_some_and(|current| {
            Arc::ptr_eq(&current.worker, worker) && worker.token_of(current.thread).is_owned()
        })
    })
}

/// How a thread's time on a seat ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// The executor is closed and nothing is left to do on it.
    Done,
    /// Another thread has it: this one is free.
    Lost,
}

/// How a thread gets onto a seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// It is the seat's first thread.
    First,
    /// The seat was taken for it from under another thread.
    Adopts,
}

/// A thread's time on a worker's seat.
pub(crate) fn occupy(shared: &Arc<Shared>, worker: &Arc<Worker>, thread: usize, entry: Entry) -> Left {
    let current = Current { executor: shared.guard(), worker: Arc::clone(worker), thread };
    CURRENT.with(|known| *known.borrow_mut() = Some(current));
    worker.sleeper.introduce();
    worker.clock.read();
    let token = worker.token_of(thread);
    if entry == Entry::First {
        let back = token.take_back();
        debug_assert_eq!(back, Back::Mine, "a seat that nobody was on yet cannot be lost");
    }
    shared.rescue.watch();
    // SAFETY: rule 1 of seat/README.md: this thread owns its token, taken back above or given to it with the seat.
    let cx = unsafe { Cx::occupant(worker, token) };
    // A panic that gets out of `work` is a bug of this crate: everything of the user's is contained.
    let body = || {
        if entry == Entry::Adopts {
            cx.adopt();
        }
        work(shared, &cx)
    };
    // In a model such a bug has to end the model, not the worker.
    let left = if cfg!(any(keyed_loom, keyed_shuttle)) { Ok(body()) } else { contain(body) };
    if left != Ok(Left::Lost) {
        shared.seat_ended(&cx, left.err());
    }
    CURRENT.with(|current| *current.borrow_mut() = None);
    if token.has_seat() { Left::Done } else { Left::Lost }
}
