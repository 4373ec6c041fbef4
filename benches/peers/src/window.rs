//! The window that the harness keeps for contenders that have none: at most so many messages handed in and unfinished.
//!
//! Handlers count what they finish, each thread on a cache line of its own; the producer reads the sum only when it
//! believes the window full, sleeps at most once until a good part of it is free, and so costs a peer as little as its
//! own window would. Invariant: the count of finished messages never runs ahead of the handlers. It also serves as the
//! check of contenders that do have a window.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use crossbeam_utils::CachePadded;
use futures_util::task::AtomicWaker;

/// More threads than any contender has in one run.
const SHARDS: usize = 64;
/// Threads that run handlers at the same time, at most: what their looks may miss.
const RUNNING: u64 = 16;
/// Nobody waits.
const NOBODY: u64 = u64::MAX;
/// The waiter wants to know of every single message: it waits for the last one.
const EXACT: u64 = 1 << 63;
/// How often a thread looks whether the waiter has enough, in messages that it finished.
const LOOK_EVERY: u64 = 4;

/// Numbers the runs of all windows, so that a thread knows whether its place belongs to this one.
static RUNS: AtomicU64 = AtomicU64::new(1);

thread_local! {
    /// The run that this thread last finished a message of, and its place there.
    static PLACE: Cell<(u64, usize)> = const { Cell::new((0, 0)) };
}

/// Who keeps the window of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeper {
    /// The harness: its producer waits for what handlers finish.
    Harness,
    /// The contender itself; here is only counted.
    Contender,
}

/// Counts what is finished and wakes the producer that waits for it.
#[derive(Debug)]
pub struct Window {
    size: u64,
    wake_after: u64,
    run: AtomicU64,
    threads: AtomicUsize,
    has_producer: AtomicBool,
    shards: [CachePadded<AtomicU64>; SHARDS],
    wake_at: CachePadded<AtomicU64>,
    producer: AtomicWaker,
}

impl Window {
    /// A window of `size` messages, whose producer sleeps until `wake_after` of them are free; kept by the harness.
    ///
    /// # Panics
    /// If so many messages are waited for that the threads could finish the whole window between two looks.
    #[must_use]
    pub fn new(size: u64, wake_after: u64) -> Self {
        assert!(wake_after + RUNNING * LOOK_EVERY <= size, "nobody would wake the producer");
        Self {
            size,
            wake_after,
            run: AtomicU64::new(RUNS.fetch_add(1, Ordering::SeqCst)),
            threads: AtomicUsize::new(0),
            has_producer: AtomicBool::new(true),
            shards: std::array::from_fn(|_| CachePadded::default()),
            wake_at: CachePadded::new(AtomicU64::new(NOBODY)),
            producer: AtomicWaker::new(),
        }
    }

    /// How many messages may be unfinished.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Forgets everything and begins a run; only while no handler runs.
    pub fn reset(&self, keeper: Keeper) {
        for shard in &self.shards {
            shard.store(0, Ordering::SeqCst);
        }
        self.wake_at.store(NOBODY, Ordering::SeqCst);
        self.has_producer.store(keeper == Keeper::Harness, Ordering::SeqCst);
        self.threads.store(0, Ordering::SeqCst);
        self.run.store(RUNS.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
    }

    /// How many messages are finished.
    #[must_use]
    pub fn finished(&self) -> u64 {
        let threads = self.threads.load(Ordering::SeqCst).min(SHARDS);
        self.shards[..threads].iter().map(|shard| shard.load(Ordering::SeqCst)).sum()
    }

    /// Counts a message as finished; called by the handler when it ends.
    #[inline]
    pub fn finish(&self) {
        let shard = &self.shards[self.place()];
        if !self.has_producer.load(Ordering::Relaxed) {
            // The thread has the shard for itself, and nobody sleeps until it counts.
            shard.store(shard.load(Ordering::Relaxed) + 1, Ordering::Release);
            return;
        }
        // SeqCst on both sides: either this thread sees the waiter's mark, or the waiter sees this count.
        let count = shard.fetch_add(1, Ordering::SeqCst) + 1;
        let mark = self.wake_at.load(Ordering::SeqCst);
        if mark != NOBODY && (count.is_multiple_of(LOOK_EVERY) || mark & EXACT != 0) {
            self.wake(mark);
        }
    }

    #[inline]
    fn place(&self) -> usize {
        let run = self.run.load(Ordering::Relaxed);
        match PLACE.get() {
            (of, place) if of == run => place,
            _ => self.take_place(run),
        }
    }

    #[cold]
    fn take_place(&self, run: u64) -> usize {
        let place = self.threads.fetch_add(1, Ordering::SeqCst) % SHARDS;
        PLACE.set((run, place));
        place
    }

    #[cold]
    fn wake(&self, mark: u64) {
        let enough = self.finished() >= mark & !EXACT;
        if enough && self.wake_at.swap(NOBODY, Ordering::SeqCst) != NOBODY {
            self.producer.wake();
        }
    }
}

/// The producer's side of a window.
#[derive(Debug)]
pub struct Permits<'a> {
    window: &'a Window,
    handed_in: u64,
    known_finished: u64,
}

impl<'a> Permits<'a> {
    /// A producer that begins while nothing is unfinished.
    #[must_use]
    pub fn new(window: &'a Window) -> Self {
        let finished = window.finished();
        Self { window, handed_in: finished, known_finished: finished }
    }

    /// Takes a permit, waiting for room.
    #[inline]
    pub async fn room(&mut self) {
        if self.handed_in - self.known_finished >= self.window.size {
            self.wait_for_room().await;
        }
        self.handed_in += 1;
    }

    /// The same on a thread that may block.
    #[inline]
    pub fn room_blocking(&mut self) {
        if self.handed_in - self.known_finished >= self.window.size {
            futures_executor::block_on(self.wait_for_room());
        }
        self.handed_in += 1;
    }

    /// Gives back a permit that no message was found for.
    pub fn give_back(&mut self) {
        self.handed_in -= 1;
    }

    /// Waits until everything that was handed in is finished.
    pub async fn empty(&mut self) {
        self.wait_until(self.handed_in, EXACT).await;
    }

    #[cold]
    async fn wait_for_room(&mut self) {
        self.known_finished = self.window.finished();
        if self.handed_in - self.known_finished >= self.window.size {
            self.wait_until(self.known_finished + self.window.wake_after, 0).await;
        }
    }

    async fn wait_until(&mut self, finished: u64, exact: u64) {
        std::future::poll_fn(|cx| self.poll(cx, finished, exact)).await;
    }

    fn poll(&mut self, cx: &mut Context<'_>, finished: u64, exact: u64) -> Poll<()> {
        self.window.producer.register(cx.waker());
        self.window.wake_at.store(finished | exact, Ordering::SeqCst);
        self.known_finished = self.window.finished();
        if self.known_finished < finished {
            return Poll::Pending;
        }
        self.window.wake_at.store(NOBODY, Ordering::SeqCst);
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_window_holds_its_producer_until_enough_is_finished() {
        let window = Window::new(80, 16);
        let mut permits = Permits::new(&window);
        (0..80).for_each(|_| permits.room_blocking());
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let mut room = std::pin::pin!(permits.room());
        for finished in 0..16 {
            assert!(room.as_mut().poll(&mut cx).is_pending(), "{finished} finished");
            window.finish();
        }
        assert!(room.as_mut().poll(&mut cx).is_ready());
    }

    #[test]
    fn the_last_message_wakes_whoever_waits_for_all() {
        for _ in 0..200 {
            let window = Window::new(128, 64);
            let mut permits = Permits::new(&window);
            std::thread::scope(|scope| {
                (0..61).for_each(|_| permits.room_blocking());
                scope.spawn(|| (0..30).for_each(|_| window.finish()));
                scope.spawn(|| (0..31).for_each(|_| window.finish()));
                futures_executor::block_on(permits.empty());
                assert_eq!(window.finished(), 61);
            });
        }
    }
}
