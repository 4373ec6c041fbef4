//! What is measured: the list of contenders, what each promises, and the two doors by which messages reach it.
//!
//! A contender is opened for one run, is fed twice (to warm up, then measured) and is dropped. Invariant: `feed`
//! returns only after everything that the feed yielded is finished.

use tokio::runtime::Runtime;

use crate::contenders::{
    actix, bare_loop, group_by, kameo, lanes, limits, mutexes, ours, ractor, tasks, threads,
};
use crate::course::Course;
use crate::feed::Feed;
use crate::message::Message;
use crate::window::{Keeper, Permits};
use crate::workload::Workload;

/// Worker threads of every contender.
pub const WORKERS: usize = 2;

/// Something that messages can be fed to.
pub trait Contender {
    /// Takes everything that the feed yields, and returns when all of it is finished.
    fn feed(&mut self, feed: Feed);
}

/// How messages reach a contender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Door {
    /// A thread hands them in.
    Thread,
    /// The contender takes them from a source that is always ready, on its own threads.
    Source,
}

impl Door {
    /// The name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Thread => "thread",
            Self::Source => "source",
        }
    }
}

/// What a contender is compared as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// The executor of this repository.
    Ours,
    /// Keys share lanes: cheap, and a slow key holds up its lane.
    Lane,
    /// Every live key has a task, an actor or a lock of its own.
    PerKey,
    /// No peer: what the machine charges for less than the same promise.
    Limit,
}

impl Family {
    /// The name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Lane => "lane",
            Self::PerKey => "per key",
            Self::Limit => "limit",
        }
    }
}

/// What a contender can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handlers {
    /// Its handlers are futures.
    Async,
    /// Its handlers are plain functions.
    Plain,
}

/// One line of the list.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The name on the command line.
    pub id: &'static str,
    /// The name in reports.
    pub name: &'static str,
    /// What it is compared as.
    pub family: Family,
    /// How messages reach it.
    pub door: Door,
    /// What it can do.
    pub handlers: Handlers,
    /// Whether it promises order and exclusion for each key.
    pub ordered: bool,
    /// Opens it for one run.
    pub open: fn(&'static Course) -> Box<dyn Contender>,
}

impl Entry {
    /// Who keeps the window: ours does so itself, one task need not be told, and no window is needed without a queue.
    #[must_use]
    pub fn keeper(&self) -> Keeper {
        let own = self.family == Family::Ours || matches!(self.id, "group-by" | "alone" | "bare-loop");
        if own { Keeper::Contender } else { Keeper::Harness }
    }

    /// Whether the workload can be run on it: handlers that wait need futures, a paced producer is a thread, and
    /// what runs in the producer's thread has no pace, no queue and no latency; a loop for one kind of wait takes no other.
    #[must_use]
    pub fn takes(&self, workload: Workload) -> bool {
        let can_wait = self.handlers == Handlers::Async || !workload.needs_async();
        let can_pace = workload.rate().is_none() || self.door == Door::Thread && self.id != "alone";
        let can_poll = self.id != "bare-loop" || workload.needs_fine_timer();
        can_wait && can_pace && can_poll
    }
}

macro_rules! entries {
    ($($id:literal, $name:literal, $family:ident, $door:ident, $handlers:ident, $ordered:literal, $open:expr;)*) => {
        &[$(Entry {
            id: $id,
            name: $name,
            family: Family::$family,
            door: Door::$door,
            handlers: Handlers::$handlers,
            ordered: $ordered,
            open: $open,
        }),*]
    };
}

/// Every contender, in the order of reports.
pub const ALL: &[Entry] = entries! {
    "ours", "keyed-executor, submit", Ours, Thread, Async, true, ours::submit;
    "ours-spin", "keyed-executor, submit, spin 20 us", Ours, Thread, Async, true, ours::submit_with_spin;
    "ours-source", "keyed-executor, dispatch", Ours, Source, Async, true, ours::dispatch;
    "ours-rescue", "keyed-executor, submit, rescue", Ours, Thread, Async, true, ours::submit_with_rescue;
    "ours-source-rescue", "keyed-executor, dispatch, rescue", Ours, Source, Async, true, ours::dispatch_with_rescue;
    "hash-1", "hash partition, 1 lane a worker", Lane, Thread, Async, true, |c| from_thread(c, lanes::one(c));
    "hash-64", "hash partition, 64 lanes a worker", Lane, Thread, Async, true, |c| from_thread(c, lanes::many(c));
    "crossbeam", "threads + crossbeam channel", Lane, Thread, Plain, true, threads::open;
    "hash-1-source", "hash partition, 1 lane a worker", Lane, Source, Async, true, |c| from_source(c, lanes::one(c));
    "hash-64-source", "hash partition, 64 lanes a worker", Lane, Source, Async, true, |c| from_source(c, lanes::many(c));
    "group-by", "group-by, 64 groups in one task", Lane, Source, Async, true, group_by::open;
    "task", "tokio task + mpsc per key", PerKey, Thread, Async, true, |c| from_thread(c, tasks::removed(c));
    "task-kept", "tokio task + mpsc per key, never removed", PerKey, Thread, Async, true, |c| from_thread(c, tasks::kept(c));
    "task-source", "tokio task + mpsc per key", PerKey, Source, Async, true, |c| from_source(c, tasks::removed(c));
    "task-kept-source", "tokio task + mpsc per key, never removed", PerKey, Source, Async, true, |c| from_source(c, tasks::kept(c));
    "mutex", "async mutex per key, spawn per message", PerKey, Thread, Async, true, |c| from_thread(c, mutexes::spawned(c));
    "map-spawn", "queues in a mutexed map, task per live key", PerKey, Thread, Async, true, |c| from_thread(c, mutexes::queued(c));
    "map-spawn-source", "queues in a mutexed map, task per live key", PerKey, Source, Async, true, |c| from_source(c, mutexes::queued(c));
    "ractor", "ractor, actor per live key", PerKey, Thread, Async, true, |c| from_thread(c, ractor::open(c));
    "kameo", "kameo, actor per live key", PerKey, Thread, Async, true, |c| from_thread(c, kameo::open(c));
    "actix", "actix, actor per live key", PerKey, Thread, Async, true, actix::removed;
    "actix-kept", "actix, actors kept", PerKey, Thread, Async, true, actix::kept;
    "shared-queue", "one shared queue, no order", Limit, Thread, Plain, false, limits::shared_queue;
    "rings", "SPSC rings, taken by 32", Limit, Thread, Plain, true, limits::rings;
    "bare-loop", "no executor: one thread polls what waits", Limit, Source, Async, false, bare_loop::open;
    "alone", "the handler alone, on both threads", Limit, Source, Plain, true, limits::alone;
};

/// A peer on tokio: where a message goes is one call that never waits.
pub trait Peer: Send + 'static {
    /// Hands one message in; called inside the runtime.
    fn hand_in(&mut self, message: Message);
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_time()
        .build()
        .expect("a runtime with two threads")
}

struct FromThread<P> {
    course: &'static Course,
    peer: P,
    runtime: Runtime,
}

fn from_thread<P: Peer>(course: &'static Course, peer: P) -> Box<dyn Contender> {
    Box::new(FromThread { course, peer, runtime: runtime() })
}

impl<P: Peer> Contender for FromThread<P> {
    fn feed(&mut self, feed: Feed) {
        let _inside = self.runtime.enter();
        hand_in_all(self.course, feed, |message| self.peer.hand_in(message));
    }
}

/// Hands everything in on the calling thread, within the window, and waits for the last one.
pub(crate) fn hand_in_all(course: &'static Course, feed: Feed, mut hand_in: impl FnMut(Message)) {
    let mut permits = Permits::new(&course.window);
    for message in feed {
        permits.room_blocking();
        hand_in(message);
    }
    futures_executor::block_on(permits.empty());
}

struct FromSource<P> {
    course: &'static Course,
    peer: Option<P>,
    runtime: Runtime,
}

fn from_source<P: Peer>(course: &'static Course, peer: P) -> Box<dyn Contender> {
    Box::new(FromSource { course, peer: Some(peer), runtime: runtime() })
}

impl<P: Peer> Contender for FromSource<P> {
    fn feed(&mut self, mut feed: Feed) {
        let course = self.course;
        let Some(mut peer) = self.peer.take() else { return };
        let fed = self.runtime.spawn(async move {
            let mut permits = Permits::new(&course.window);
            loop {
                permits.room().await;
                let Some(message) = feed.next() else { break };
                peer.hand_in(message);
            }
            permits.give_back();
            permits.empty().await;
            peer
        });
        self.peer = Some(self.runtime.block_on(fed).expect("a peer does not panic"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_on_the_command_line_are_unique() {
        let mut ids: Vec<&str> = ALL.iter().map(|entry| entry.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), ALL.len());
    }
}
