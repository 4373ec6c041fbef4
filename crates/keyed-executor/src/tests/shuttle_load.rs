//! What a run under shuttle is made of: messages whose handlers wait, hold their thread, fail or panic, and a source.
//!
//! Everything is drawn from the run's generator, and every operation between threads goes through `crate::sync`, so that
//! the seed alone decides a run. Nothing is checked here; that is the history's part.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use futures_core::Stream;
use wow_testkit::{History, Message, Rng};

use crate::sync::{Arc, Condvar, Mutex, PoisonError, lock, yield_now};

/// Keys of a run.
pub(super) const KEYS: usize = 8;

/// What a handler does before it ends.
#[derive(Clone, Copy)]
pub(super) enum Act {
    Nothing,
    Yields(u64),
    /// Waits until another thread lets it go on.
    Waits,
    /// Keeps its thread.
    Holds(u64),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Handled,
    Failed,
    Panicked,
}

/// A message with what its handler shall do.
pub(super) struct Play {
    pub(super) message: Message,
    act: Act,
    fate: Fate,
}

impl Play {
    /// `holds` of a hundred handlers keep their thread.
    pub(super) fn draw(rng: &mut Rng, holds: u64, message: Message) -> Self {
        let act = match rng.below(100) {
            n if n < holds => Act::Holds(1 + rng.below(60)),
            n if n < 45 => Act::Nothing,
            n if n < 65 => Act::Yields(1 + rng.below(3)),
            _ => Act::Waits,
        };
        let fate = match rng.below(20) {
            0 => Fate::Panicked,
            1 => Fate::Failed,
            _ => Fate::Handled,
        };
        Self { message, act, fate }
    }
}

/// What a handler waits for.
#[derive(Default)]
pub(super) struct Gate {
    open: bool,
    waker: Option<Waker>,
}

/// A thread that opens gates, in another order than they were brought.
#[derive(Default)]
pub(super) struct Opener {
    waiting: Mutex<(VecDeque<Arc<Mutex<Gate>>>, bool)>,
    brought: Condvar,
}

impl Opener {
    /// Waits until the opener let it through.
    async fn pass(&self) {
        let gate = Arc::new(Mutex::new(Gate::default()));
        let mut brought = false;
        poll_fn(|context| {
            {
                let mut gate = lock(&gate);
                if gate.open {
                    return Poll::Ready(());
                }
                gate.waker = Some(context.waker().clone());
            }
            if !std::mem::replace(&mut brought, true) {
                lock(&self.waiting).0.push_back(Arc::clone(&gate));
                self.brought.notify_one();
            }
            Poll::Pending
        })
        .await;
    }

    /// Opens until [`Self::end`] was called and nothing waits.
    pub(super) fn run(&self, mut rng: Rng) {
        loop {
            let gate = {
                let mut waiting = lock(&self.waiting);
                loop {
                    if rng.chance(1, 2) {
                        if let Some(last) = waiting.0.pop_back() {
                            break last;
                        }
                    }
                    if let Some(first) = waiting.0.pop_front() {
                        break first;
                    }
                    if waiting.1 {
                        return;
                    }
                    waiting = self.brought.wait(waiting).unwrap_or_else(PoisonError::into_inner);
                }
            };
            // A wake that brings nothing, before the one that does.
            let early = rng.chance(1, 4).then(|| lock(&gate).waker.clone()).flatten();
            if let Some(waker) = early {
                waker.wake();
            }
            let waker = {
                let mut gate = lock(&gate);
                gate.open = true;
                gate.waker.take()
            };
            if let Some(waker) = waker {
                if rng.chance(1, 4) {
                    waker.wake_by_ref();
                }
                waker.wake();
            }
        }
    }

    pub(super) fn end(&self) {
        lock(&self.waiting).1 = true;
        self.brought.notify_all();
    }
}

pub(super) async fn handle(play: Play, opener: Arc<Opener>) -> Result<(), &'static str> {
    let running = play.message.start();
    match play.act {
        Act::Nothing => {}
        Act::Yields(times) => {
            let mut left = times;
            poll_fn(|context| {
                if left == 0 {
                    return Poll::Ready(());
                }
                left -= 1;
                context.waker().wake_by_ref();
                Poll::Pending
            })
            .await;
        }
        Act::Waits => opener.pass().await,
        Act::Holds(turns) => (0..turns).for_each(|_| yield_now()),
    }
    match play.fate {
        Fate::Handled => {
            running.finish();
            Ok(())
        }
        Fate::Failed => {
            running.fail();
            Err("planned")
        }
        Fate::Panicked => {
            drop(opener);
            // Without the hook: shuttle's takes every panic that it sees for the end of the run.
            std::panic::resume_unwind(Box::new("planned"));
        }
    }
}

/// A source that makes its messages when it is asked, and now and then asks for a wake first.
pub(super) struct Items {
    rng: Rng,
    holds: u64,
    history: Arc<History>,
    left: usize,
    rested: bool,
}

impl Items {
    pub(super) fn new(rng: Rng, holds: u64, history: Arc<History>, count: usize) -> Self {
        Self { rng, holds, history, left: count, rested: false }
    }
}

impl Stream for Items {
    type Item = Play;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Play>> {
        let this = &mut *self;
        if !std::mem::replace(&mut this.rested, false) && this.rng.chance(1, 4) {
            this.rested = true;
            let waker = context.waker().clone();
            if this.rng.chance(1, 2) {
                waker.wake();
            } else {
                drop(shuttle::thread::spawn(move || waker.wake()));
            }
            return Poll::Pending;
        }
        if this.left == 0 {
            return Poll::Ready(None);
        }
        this.left -= 1;
        let key = this.rng.index(KEYS);
        let message = this.history.issue(key, 0);
        Poll::Ready(Some(Play::draw(&mut this.rng, this.holds, message)))
    }
}
