//! A handler that waits holds its key and no worker; it is polled on workers only, and no wake is lost.
//!
//! Observes KM-23 to KM-27, KM-30, KW-7; scenarios T19, T20, T21, T26.
#![cfg(not(keyed_loom))]

use futures_util::stream;
use keyed_executor::{KeyedExecutor, Keyspace, OnFailure, Options};
use std::collections::BTreeSet;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use wow_testkit::{Counter, Failure, History, Latch, Level, Message, Script, Source};
use wow_testkit::{finish, finish_within, release_after};

fn executor(name: &str, workers: usize) -> KeyedExecutor {
    KeyedExecutor::builder().name(name).workers(workers).build().expect("the settings are in range")
}

fn thread() -> String {
    std::thread::current().name().unwrap_or("unnamed").to_owned()
}

#[test]
fn handlers_start_resume_and_end_on_worker_threads_only() {
    // A handler that the machine holds up for a while would be rescued by a thread of another name.
    let executor = KeyedExecutor::builder()
        .name("sus-thr")
        .workers(3)
        .rescue_threads(0)
        .build()
        .expect("the settings are in range");
    let history = History::bounded(0, 50, 256);
    let messages: Vec<_> = (0..2_000).map(|n| history.issue(n % 50, 0)).collect();
    let names = Arc::new(Mutex::new(BTreeSet::new()));
    let seen = Arc::clone(&names);
    let dispatch = executor.dispatch(stream::iter(messages), Message::key, move |message: Message| {
        let note = {
            let seen = Arc::clone(&seen);
            move || seen.lock().expect("no handler panics").insert(thread())
        };
        note();
        let script = if message.id().number % 3 == 0 { Script::ready().elsewhere() } else { Script::ready() };
        let mut handler = Box::pin(message.start().play(script));
        poll_fn(move |context| {
            note();
            handler.as_mut().poll(context)
        })
    });
    finish(dispatch).expect("no handler fails");
    assert_eq!(history.verify().handled, 2_000);
    let names = names.lock().expect("no handler panics");
    assert!(names.len() <= 3 && names.iter().all(|name| name.starts_with("sus-thr-")), "polled on {names:?}");
    executor.close();
}

#[test]
fn a_waiting_handler_frees_its_worker() {
    let executor = executor("sus-free", 1);
    let (started, open) = (Counter::new(), Latch::new());
    let (begun, gate) = (started.clone(), open.clone());
    let keyspace: Keyspace<u32, u32> = executor.keyspace(move |_| {
        begun.add(1);
        Script::ready().until(&gate)
    });
    for n in 0..100 {
        keyspace.try_submit(n, n).expect("the window has room");
    }
    // All hundred wait at once on the one worker.
    started.wait_for(100);
    assert_eq!(keyspace.in_flight(), 100);
    open.release();
    assert_eq!(finish(keyspace.drained()).handled, 100);
    executor.close();
}

#[test]
fn a_key_that_waits_delays_no_other_and_the_end_waits_for_it() {
    let executor = executor("sus-end", 2);
    let (others, open) = (Counter::new(), Latch::new());
    let (done, gate) = (others.clone(), open.clone());
    let mut dispatch = executor.dispatch(
        stream::iter(0..51_u32),
        |n: &u32| *n,
        move |n| {
            let (done, gate) = (done.clone(), gate.clone());
            async move {
                if n == 0 {
                    gate.released().await;
                } else {
                    done.add(1);
                }
            }
        },
    );
    others.wait_for(50);
    assert!(finish_within(std::time::Duration::ZERO, &mut dispatch).is_none(), "it ended before key 0 did");
    open.release();
    assert_eq!(finish(dispatch).expect("no handler fails").handled, 51);
    executor.close();
}

#[test]
fn a_retry_that_backs_off_delays_only_its_own_key() {
    let executor = executor("sus-retry", 1);
    let others = Counter::new();
    let back_off = [Latch::new(), Latch::new()];
    let attempts = Counter::new();
    let (done, delays, tried) = (others.clone(), back_off.clone(), attempts.clone());
    let dispatch = executor.dispatch(
        stream::iter(0..20_u32),
        |n: &u32| *n,
        move |n| {
            let (done, delays, tried) = (done.clone(), delays.clone(), tried.clone());
            async move {
                if n > 0 {
                    done.add(1);
                    return;
                }
                for delay in &delays {
                    tried.add(1);
                    delay.released().await;
                }
                tried.add(1);
            }
        },
    );
    attempts.wait_for(1);
    back_off[0].release();
    attempts.wait_for(2);
    // The second back-off lasts until the nineteen others are done, however long that takes.
    others.wait_for(19);
    assert_eq!(attempts.get(), 2);
    back_off[1].release();
    finish(dispatch).expect("no handler fails");
    assert_eq!(attempts.get(), 3);
    executor.close();
}

#[test]
fn the_end_waits_for_every_accepted_message() {
    let executor = executor("sus-all", 2);
    let open = Latch::new();
    let gate = open.clone();
    let (source, feed) = Source::fed();
    feed.extend(0..30_u32);
    feed.end();
    let mut dispatch = executor.dispatch(source, |n: &u32| n % 10, move |_| Script::ready().until(&gate));
    feed.taken().wait_for(30);
    assert!(finish_within(std::time::Duration::ZERO, &mut dispatch).is_none());
    open.release();
    assert_eq!(finish(dispatch).expect("no handler fails").handled, 30);
    executor.close();
}

#[test]
fn a_wake_that_comes_during_the_poll_is_not_lost() {
    let executor = executor("sus-wake", 1);
    let keyspace: Keyspace<u32, u32> = executor.keyspace(|_| async {
        let (mut polls, mut registered) = (0, None);
        poll_fn(|context| {
            polls += 1;
            if polls == 1 {
                // The other thread has woken us before this poll returns: nothing else will.
                let latch = Latch::new();
                let mut released = Box::pin(latch.released());
                assert!(released.as_mut().poll(context).is_pending());
                release_after(std::time::Duration::ZERO, &latch);
                latch.wait();
                registered = Some(released);
                return Poll::Pending;
            }
            registered.as_mut().map_or(Poll::Pending, |released| released.as_mut().poll(context))
        })
        .await;
    });
    for n in 0..200 {
        finish(keyspace.submit(n % 7, n)).expect("the keyspace is open");
    }
    assert_eq!(finish(keyspace.drained()).handled, 200);
    executor.close();
}

#[test]
fn a_waker_kept_after_the_end_is_harmless() {
    let executor = executor("sus-stale", 1);
    let history = History::bounded(0, 1, 1);
    let kept: Arc<Mutex<Vec<Waker>>> = Arc::default();
    let (begun, open) = (Counter::new(), Latch::new());
    let (keep, started, gate) = (Arc::clone(&kept), begun.clone(), open.clone());
    let keyspace = executor.keyspace(move |message: Message| {
        let (keep, started, gate) = (Arc::clone(&keep), started.clone(), gate.clone());
        async move {
            let first = message.id().number == 0;
            let running = message.start();
            poll_fn(|context| {
                keep.lock().expect("no handler panics").push(context.waker().clone());
                Poll::Ready(())
            })
            .await;
            started.add(1);
            if !first {
                gate.released().await;
            }
            running.finish();
        }
    });
    let wake_all = || {
        let wakers = kept.lock().expect("no handler panics").clone();
        wakers.iter().for_each(Waker::wake_by_ref);
    };
    keyspace.try_submit(0, history.issue(0, 0)).expect("the window has room");
    finish(keyspace.drained());
    // The first handler's waker outlives its mailbox, and fires before, while and after the key has a new one.
    wake_all();
    keyspace.try_submit(0, history.issue(0, 0)).expect("the window has room");
    keyspace.try_submit(0, history.issue(0, 0)).expect("the window has room");
    begun.wait_for(2);
    for _ in 0..1_000 {
        wake_all();
    }
    assert_eq!(begun.get(), 2, "a late wake started the next message");
    open.release();
    finish(keyspace.drained());
    wake_all();
    assert_eq!(history.verify().handled, 3);
    executor.close();
    finish(executor.terminated());
    wake_all();
}

/// A handler's future with a drop of its own: it is there until the executor drops it, not only until it is ready.
struct Present {
    script: Script,
    alive: Arc<Level>,
}

impl Future for Present {
    type Output = Result<(), Failure>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.script).poll(context)
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        self.alive.fall();
    }
}

#[test]
fn a_handler_is_gone_before_the_next_of_its_key_starts() {
    let executor = executor("sus-gone", 3);
    let alive = Arc::new(Level::new());
    let level = Arc::clone(&alive);
    let handler = move |n: u32| {
        level.rise();
        let script = match n % 4 {
            0 => Script::ready(),
            1 => Script::ready().yields(2),
            2 => Script::ready().elsewhere(),
            _ => Script::ready().yields(1).fails("told to"),
        };
        Present { script, alive: Arc::clone(&level) }
    };
    let keyspace: Keyspace<u32, u32> = executor.keyspace(handler.clone());
    finish(async {
        for n in 0..1_000 {
            keyspace.submit(0, n).await.expect("the keyspace is open");
        }
        keyspace.drained().await;
    });
    assert_eq!((alive.now(), alive.peak()), (0, 1));

    let options = Options::new("test").on_failure(OnFailure::Continue);
    let dispatch = executor.dispatch_with(options, stream::iter(0..1_000_u32), |_| 0_u32, handler);
    finish(dispatch).expect("it was told to continue");
    assert_eq!((alive.now(), alive.peak()), (0, 1));
    executor.close();
}
