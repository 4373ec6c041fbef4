//! Faults that cannot be had from outside: a thread that does not start (T11, KE-32), a worker's thread that dies of a
//! bug of this crate (T10, KE-31), and a wake-up that is forgotten, which the monitor's alarm finds. Messages that start in
//! the wrong order: `audit_faults.rs`.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use futures_util::StreamExt;

use crate::cx::Cx;
use crate::error::RejectReason;
use crate::seat::AttachId;
use crate::sync::{Arc, spawn_named};
use crate::worker::Job;
use crate::{Cause, KeyedExecutor};

const LONG: Duration = Duration::from_secs(30);

fn first_fails(name: String, body: Box<dyn FnOnce() + Send>) -> io::Result<()> {
    if name.ends_with("-1") {
        return Err(io::Error::new(io::ErrorKind::WouldBlock, "no thread left"));
    }
    spawn_named(name, body)
}

fn all_start(name: String, body: Box<dyn FnOnce() + Send>) -> io::Result<()> {
    spawn_named(name, body)
}

fn none_starts(_name: String, _body: Box<dyn FnOnce() + Send>) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::WouldBlock, "no thread left"))
}

fn executor(workers: usize, spawn: crate::shared::Spawn) -> KeyedExecutor {
    KeyedExecutor::builder()
        .name("faulty")
        .workers(workers)
        .start_for(crate::shared::Lifetime::Handles, spawn)
}

#[test]
fn a_worker_that_cannot_start_rejects_with_the_cause_and_is_never_chosen() {
    let executor = executor(2, first_fails);
    for attempt in 0..2 {
        let refused = executor.execute_pinned(0, || {}).expect_err("its worker cannot start");
        let RejectReason::Unstartable(cause) = refused.reason else {
            panic!("attempt {attempt}: {refused:?}")
        };
        assert!(cause.contains("no thread left"), "{cause}");
    }
    let (sender, receiver) = mpsc::channel();
    let keyspace = executor.keyspace(move |n: u32| {
        let sender = sender.clone();
        async move { sender.send(n).expect("the test listens") }
    });
    for n in 0..50 {
        keyspace.try_submit(n, n).expect("the other worker takes it");
    }
    let mut handled: Vec<u32> =
        (0..50).map(|_| receiver.recv_timeout(LONG).expect("every message is handled")).collect();
    handled.sort_unstable();
    assert_eq!(handled, (0..50).collect::<Vec<_>>());
    assert_eq!(executor.metrics().workers[0].placements, 0);
}

#[test]
fn without_a_single_thread_every_door_says_so_and_hands_the_message_back() {
    let executor = executor(2, none_starts);
    let keyspace = executor.keyspace(|_: String| async {});
    let refused = keyspace.try_submit(1u8, "kept".to_owned()).expect_err("no worker can start");
    assert_eq!(refused.reason, crate::SubmitRefusal::NoWorker);
    assert_eq!(refused.into_message(), "kept");
    let dispatch = executor.dispatch(futures_util::stream::iter([1, 2]), |n| *n, |_| async {});
    let failed = dispatch.wait().expect("not a worker").expect_err("no worker can start");
    assert!(matches!(&failed.cause, Cause::NoWorker { message } if message.contains("no thread left")));
    executor.close();
    executor.join().expect("not a worker");
}

/// A dispatch whose own code panics: what only a bug of this crate can do.
pub(super) struct Bug {
    kind: Kind,
    /// Work that lies there.
    pub(super) work: AtomicUsize,
    figures: crate::figures::LaneFigures,
}

#[derive(PartialEq, Eq)]
pub(super) enum Kind {
    /// Kills its worker's thread.
    Panics,
    /// Brings work and wakes nobody.
    Forgets,
}

impl Bug {
    pub(super) fn new(kind: Kind) -> Arc<Self> {
        Arc::new(Self { kind, work: AtomicUsize::new(0), figures: crate::figures::LaneFigures::default() })
    }
}

impl crate::lanes::Lanes for Bug {
    unsafe fn attached(&self, _cx: &Cx<'_>, _id: AttachId) {
        assert!(self.kind != Kind::Panics, "a bug of the executor");
    }
    unsafe fn round(&self, _cx: &Cx<'_>) -> crate::lanes::Round {
        self.work.store(0, Ordering::Relaxed);
        if self.kind == Kind::Panics { crate::lanes::Round::Ended } else { crate::lanes::Round::Dry }
    }
    unsafe fn wake(&self, _cx: &Cx<'_>, _entry: u32) {}
    unsafe fn settle(&self, _cx: &Cx<'_>) -> bool {
        false
    }
    unsafe fn rest(&self, _cx: &Cx<'_>) {}
    unsafe fn has_news(&self, _cx: &Cx<'_>) -> bool {
        self.work.load(Ordering::Relaxed) > 0
    }
    unsafe fn waits(&self, _cx: &Cx<'_>) -> bool {
        false
    }
    unsafe fn running(&self, _cx: &Cx<'_>) -> Option<crate::StuckCode> {
        None
    }
    unsafe fn adopt(&self, _cx: &Cx<'_>) {}
    unsafe fn handed_in(&self, _cx: &Cx<'_>) {}
    unsafe fn hot_keys(&self, _cx: &Cx<'_>, _dispatch: usize, _gathered: &mut crate::hot::Gathered) {}
    unsafe fn look(&self, _cx: &Cx<'_>, _look: &mut crate::look::Look) {}
    unsafe fn key_line(&self, _cx: &Cx<'_>, _entry: u32) -> String {
        String::new()
    }
    unsafe fn discard(&self, _cx: &Cx<'_>) {}
    unsafe fn bury(&self, _cx: &Cx<'_>) {}
    fn label(&self) -> &str {
        "bug"
    }
    fn figures(&self) -> crate::DispatchMetrics {
        crate::DispatchMetrics::default()
    }
    fn lane_figures(&self, _worker: usize) -> &crate::figures::LaneFigures {
        &self.figures
    }
    fn shut(&self, _how: crate::lanes::Shut) {}
}

#[test]
fn a_worker_that_dies_rejects_its_tasks_and_its_keys_go_to_the_others() {
    let executor = executor(2, all_start);
    let (sender, receiver) = mpsc::channel();
    let answers = sender.clone();
    let keyspace = executor.keyspace(move |n: u32| {
        let answers = answers.clone();
        async move { answers.send(n).expect("the test listens") }
    });
    keyspace.try_submit(0u32, 0).expect("there is room");
    receiver.recv_timeout(LONG).expect("the first message is handled");
    let shared = executor.inner();
    shared.ensure_started(&shared.workers[0]).expect("it starts");
    shared.workers[0].jobs().push(Job::Attach(Bug::new(Kind::Panics)));
    let _ = shared.workers[0].sleeper().notify();
    while shared.workers[0].is_running() {
        std::thread::yield_now();
    }
    let refused = executor.execute_pinned(0, || {}).expect_err("its worker is dead");
    assert_eq!(refused.reason, RejectReason::Dead);
    // Every key goes on: what lived on the dead worker is placed on the other one.
    for n in 1..100u32 {
        keyspace.try_submit(n % 7, n).expect("the other worker takes it");
        assert_eq!(receiver.recv_timeout(LONG).expect("it is handled"), n);
    }
    drop(keyspace);
    executor.close();
    executor.join().expect("the other worker ends");
}

#[test]
fn work_beside_a_sleeping_worker_is_an_alarm_and_is_taken() {
    let executor = executor(1, all_start);
    let shared = executor.inner();
    let forgotten = Bug::new(Kind::Forgets);
    shared.ensure_started(&shared.workers[0]).expect("it starts");
    shared.workers[0].jobs().push(Job::Attach(Arc::clone(&forgotten) as Arc<dyn crate::lanes::Lanes>));
    let _ = shared.workers[0].sleeper().notify();
    let worker = &shared.workers[0];
    wow_testkit::eventually("the worker sleeps", || {
        worker.jobs().is_empty() && worker.token().asleep().is_some()
    });
    assert_eq!(executor.metrics().monitor.stranded, 0, "a worker that sleeps beside nothing is in order");
    forgotten.work.store(1, Ordering::Relaxed);
    // The worker sleeps, and whoever brought it does not wake it. The monitor may sleep too by now: something else has to
    // happen on the executor before it looks.
    shared.rescue.watch();
    wow_testkit::eventually("it is told, and the worker woken", || {
        executor.metrics().monitor.stranded > 0 && forgotten.work.load(Ordering::Relaxed) == 0
    });
    assert_eq!(executor.metrics().monitor.stranded, 1, "told once");
}

/// Counts how often it is dropped.
struct Dropped(u32, Arc<[AtomicUsize; 3]>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.1[self.0 as usize].fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_message_that_was_set_aside_is_dropped_once_when_its_sources_worker_dies() {
    let executor = executor(1, all_start);
    let drops: Arc<[AtomicUsize; 3]> = Arc::default();
    let (sender, taken) = mpsc::channel();
    let made = Arc::clone(&drops);
    let source = futures_util::stream::iter(0..3_u32).map(move |n| {
        sender.send(n).expect("the test listens");
        Dropped(n, Arc::clone(&made))
    });
    let options = crate::Options::new("orphan").max_per_key(1).overflow(0);
    let dispatch = executor.dispatch_with(
        options,
        source,
        |_: &Dropped| 0_u8,
        |message| async move {
            std::future::pending::<()>().await;
            drop(message);
        },
    );
    // The first one waits in its handler, the second one has no room.
    assert_eq!([0, 1].map(|_| taken.recv_timeout(LONG).expect("they are asked for")), [0, 1]);
    let worker = &executor.inner().workers[0];
    worker.jobs().push(Job::Attach(Bug::new(Kind::Panics)));
    let _ = worker.sleeper().notify();
    let error = dispatch.wait().expect("not a worker").expect_err("its worker died");
    assert!(matches!(error.cause, Cause::NoWorker { .. }), "{}", error.cause);
    assert_eq!((error.ledger.accepted, error.ledger.discarded), (2, 1));
    executor.close();
    executor.join().expect("not a worker");
    assert_eq!([0, 1, 2].map(|n: usize| drops[n].load(Ordering::Relaxed)), [1, 1, 0]);
}
