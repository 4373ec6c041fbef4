//! A force close that comes while a worker gives a key's last message back leaves the other workers' keys alone.
//!
//! Observes KE-34, KM-3, KM-9 where they meet: the key's place may be another key's by then, and another worker's. The
//! other force closes are in force_close.rs.
#![cfg(not(keyed_loom))]

use keyed_executor::{KeyedExecutor, Keyspace};
use std::fmt;
use std::future::Future;
use std::hash::{Hash, Hasher};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::time::Duration;
use wow_testkit::{History, Latch, Message, Script, eventually, finish, finish_within};

/// How long a round waits for what another thread may or may not do: long enough nearly always, and nothing is concluded
/// from it.
const A_WHILE: Duration = Duration::from_millis(100);

/// How long a worker watches for what must not happen: a slow machine may miss it, and never sees what is not there.
const WATCHED: Duration = Duration::from_millis(10);

/// Whether something comes true within about this time.
fn within(patience: Duration, mut fact: impl FnMut() -> bool) -> bool {
    const STEP: Duration = Duration::from_micros(100);
    let steps = patience.as_micros() / STEP.as_micros();
    (0..steps).any(|_| fact() || finish_within(STEP, std::future::pending::<()>()).is_some())
}

/// The rounds that have to come to what this is about.
const ROUNDS: u32 = 20;

/// What is seen from inside a worker that has its seat to itself: while it tells the key of a message that failed.
struct Look {
    executor: KeyedExecutor,
    history: Arc<History>,
    inside: Latch,
    dropped: AtomicBool,
}

impl Look {
    fn watch(&self) {
        if self.history.tally().discarded > 0 {
            // The close came before: this round is not what it is about.
            return;
        }
        self.inside.release();
        eventually("the executor is closed", || self.executor.is_closed());
        if within(WATCHED, || self.history.tally().discarded > 0) {
            self.dropped.store(true, Ordering::Release);
        }
    }
}

/// A key that may look around when it is told.
struct Key(u32, Option<Arc<Look>>);

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(look) = &self.1 {
            look.watch();
        }
        write!(f, "{}", self.0)
    }
}

/// Does something when it wakes, once.
struct Does(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl Wake for Does {
    fn wake(self: Arc<Self>) {
        let what = self.0.lock().expect("nothing panics here").take();
        if let Some(what) = what {
            what();
        }
    }
}

/// Closes by force from the waker of a submitter, on the worker that just gave the last message of a key back: that
/// key's place in the executor is another key's by then, on the other worker. False if that did not come to be.
fn force_close_while_a_key_ends(round: u32) -> bool {
    const SUBMITTER: u32 = 12;
    let executor = KeyedExecutor::builder().name("shut-lent").workers(2).max_in_flight(6).build();
    let executor = executor.expect("the settings are in range");
    let history = History::bounded(round.into(), 4, 6);
    // Where a keyspace's first key goes is not promised; each further keyspace begins with the next worker.
    let _others: Vec<Keyspace<u32, u32>> = (0..round % 2).map(|_| executor.keyspace(|_| async {})).collect();
    let (filled, entered) = (Latch::new(), Latch::new());
    let (more, go_on, submitted, inside) = (Latch::new(), Latch::new(), Latch::new(), Latch::new());
    let keyspace = {
        let (filled, entered, more, go_on) = (filled.clone(), entered.clone(), more.clone(), go_on.clone());
        let submitted = submitted.clone();
        executor.keyspace(move |(n, message): (u32, Message)| {
            let (filled, entered, more, go_on) =
                (filled.clone(), entered.clone(), more.clone(), go_on.clone());
            let submitted = submitted.clone();
            async move {
                let running = message.start();
                match n {
                    0 => {
                        entered.release();
                        go_on.wait();
                    }
                    1 => {
                        filled.release();
                        more.released().await;
                    }
                    6 => submitted.released().await,
                    _ => {}
                }
                let script = if n == 6 { Script::ready().fails("told to") } else { Script::ready() };
                running.play(script).await
            }
        })
    };
    // On one worker five messages that wait; on the other, which sleeps, one that holds its thread.
    for n in 1..6 {
        keyspace.try_submit(Key(1, None), (n, history.issue(1, 0))).expect("the window has room");
    }
    filled.wait();
    eventually("the workers sleep", || {
        let workers = executor.metrics().workers;
        workers.iter().all(|worker| worker.parked || !worker.running)
    });
    keyspace.try_submit(Key(0, None), (0, history.issue(0, 0))).expect("the window has room");
    entered.wait();
    let look = Arc::new(Look {
        executor: executor.clone(),
        history: Arc::clone(&history),
        inside: inside.clone(),
        dropped: AtomicBool::new(false),
    });
    let (done, came_to_be) = (Latch::new(), Arc::new(AtomicBool::new(false)));
    let hook: Box<dyn FnOnce() + Send> = {
        let (keyspace, executor, history) = (keyspace.clone(), executor.clone(), Arc::clone(&history));
        let look = Arc::clone(&look);
        let (more, submitted, inside) = (more.clone(), submitted.clone(), inside.clone());
        let (done, came_to_be) = (done.clone(), Arc::clone(&came_to_be));
        Box::new(move || {
            let try_one =
                |n| match keyspace.try_submit(Key(2, Some(Arc::clone(&look))), (n, history.issue(2, 0))) {
                    Ok(()) => true,
                    Err(error) => {
                        error.into_message().1.refuse();
                        false
                    }
                };
            let took_its_place = try_one(6);
            more.release();
            let has_room = within(A_WHILE, || keyspace.in_flight() == 1);
            let all = has_room && (7..12).all(try_one);
            submitted.release();
            let runs_beside = finish_within(A_WHILE, inside.released()).is_some();
            // The first worker's seat is the first one that a forced close looks at.
            let is_first = std::thread::current().name().is_some_and(|name| name.ends_with("-1"));
            came_to_be.store(took_its_place && all && runs_beside && is_first, Ordering::Release);
            executor.force_close();
            done.release();
        })
    };
    let mut waiting = keyspace.submit(Key(3, None), (SUBMITTER, history.issue(3, 0)));
    let waker = Waker::from(Arc::new(Does(Mutex::new(Some(hook)))));
    assert!(Pin::new(&mut waiting).poll(&mut Context::from_waker(&waker)).is_pending(), "it is full");
    go_on.release();
    done.wait();
    drop(waiting);
    finish(executor.terminated());
    assert!(
        !look.dropped.load(Ordering::Acquire),
        "a key lost what waits behind it while its own worker was at work on it"
    );
    // Every message ended once, and in order.
    history.verify();
    came_to_be.load(Ordering::Acquire)
}

#[test]
fn a_force_close_while_a_key_ends_leaves_the_other_workers_keys_alone() {
    let mut came_to_be = 0_u32;
    for round in 0..10 * ROUNDS {
        came_to_be += u32::from(force_close_while_a_key_ends(round));
        if came_to_be == ROUNDS {
            break;
        }
    }
    assert!(came_to_be > 0, "no round came to what it is about");
}
