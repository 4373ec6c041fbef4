//! Nothing of a finished message is kept: not the message, not its key, not its future, while the dispatch goes on.
//!
//! Observes KM-7, KM-9; scenario T30.
#![cfg(not(keyed_loom))]

use keyed_executor::{KeyedExecutor, Keyspace};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Wake, Waker};
use wow_testkit::{Counter, Latch, Script, Source, eventually, finish};

/// A sixteenth of the default window.
const BATCH: usize = 16;

/// A key whose life can be watched.
type Key = Arc<u32>;

struct Message {
    key: Key,
    body: Arc<String>,
}

/// Weak references to all that a run made.
#[derive(Clone, Default)]
struct Watch {
    keys: Arc<Mutex<Vec<Weak<u32>>>>,
    bodies: Arc<Mutex<Vec<Weak<String>>>>,
}

impl Watch {
    fn message(&self, n: u32) -> Message {
        let (key, body) = (Arc::new(n), Arc::new(format!("body {n}")));
        self.keys.lock().expect("nothing panics here").push(Arc::downgrade(&key));
        self.bodies.lock().expect("nothing panics here").push(Arc::downgrade(&body));
        Message { key, body }
    }

    fn keys_alive(&self) -> usize {
        let keys = self.keys.lock().expect("nothing panics here");
        keys.iter().filter(|key| key.strong_count() > 0).count()
    }

    fn bodies_alive(&self) -> usize {
        let bodies = self.bodies.lock().expect("nothing panics here");
        bodies.iter().filter(|body| body.strong_count() > 0).count()
    }
}

fn executor(name: &str) -> KeyedExecutor {
    KeyedExecutor::builder().name(name).workers(2).build().expect("the settings are in range")
}

async fn handle(message: Message) {
    let script = match message.body.len() % 3 {
        0 => Script::ready(),
        1 => Script::ready().yields(2),
        _ => Script::ready().elsewhere(),
    };
    script.await.expect("this script does not fail");
    drop(message);
}

#[test]
fn a_dispatch_keeps_nothing_of_finished_messages_while_its_source_is_open() {
    let executor = executor("ret-src");
    let watch = Watch::default();
    let done = Counter::new();
    let (source, feed) = Source::fed();
    let counted = done.clone();
    let dispatch = executor.dispatch(
        source,
        |message: &Message| Arc::clone(&message.key),
        move |message| {
            let counted = counted.clone();
            async move {
                handle(message).await;
                counted.add(1);
            }
        },
    );
    feed.extend((0..1_000).map(|n| watch.message(n)));
    done.wait_for(1_000);
    eventually("every finished message and future is gone", || watch.bodies_alive() == 0);
    // Keys are forgotten with the permits of their messages, which come back in batches of a sixteenth of the window.
    eventually("all keys but those of one batch are gone", || watch.keys_alive() < BATCH);
    // It is still there and goes on.
    feed.push(watch.message(7));
    done.wait_for(1_001);
    feed.end();
    assert_eq!(finish(dispatch).expect("no handler fails").handled, 1_001);
    assert_eq!((watch.keys_alive(), watch.bodies_alive()), (0, 0));
    executor.close();
}

#[test]
fn a_keyspace_keeps_nothing_of_finished_messages_while_it_is_open() {
    let executor = executor("ret-sub");
    let watch = Watch::default();
    let keyspace: Keyspace<Key, Message> = executor.keyspace(handle);
    finish(async {
        for n in 0..1_000 {
            let message = watch.message(n);
            keyspace.submit(Arc::clone(&message.key), message).await.expect("the keyspace is open");
        }
    });
    assert_eq!(finish(keyspace.drained()).handled, 1_000);
    let alive = || watch.keys_alive() + watch.bodies_alive();
    eventually("every finished message, key and future is gone", || alive() == 0);
    finish(keyspace.submit(Arc::new(1), watch.message(1))).expect("the keyspace is open");
    assert_eq!(finish(keyspace.drained()).handled, 1_001);
    executor.close();
}

#[test]
fn keys_are_forgotten_while_later_messages_come_in_though_nobody_waits_for_anything() {
    let executor = executor("ret-later");
    let watch = Watch::default();
    let done = Counter::new();
    let counted = done.clone();
    let keyspace: Keyspace<Key, Message> = executor.keyspace(move |message: Message| {
        drop(message);
        counted.add(1);
        std::future::ready(())
    });
    for n in 0..1_000 {
        let message = watch.message(n);
        keyspace.try_submit(Arc::clone(&message.key), message).expect("there is room");
        done.wait_for(u64::from(n) + 1);
    }
    // What ended is taken back at every sixteenth submission of the window, and its keys are dropped there.
    assert!(watch.keys_alive() <= 256, "{} keys are kept", watch.keys_alive());
    executor.close();
}

#[test]
fn the_last_keys_go_with_their_keyspace_or_dispatch() {
    let executor = executor("ret-last");
    let watch = Watch::default();
    let done = Counter::new();
    let (one, other) = (done.clone(), done.clone());
    let keyspace: Keyspace<Key, Message> = executor.keyspace(move |_| {
        one.add(1);
        std::future::ready(())
    });
    let (source, feed) = Source::fed();
    let key = |message: &Message| Arc::clone(&message.key);
    let dispatch = executor.dispatch(source, key, move |_| {
        other.add(1);
        Script::ready().elsewhere()
    });
    for n in 0..5 {
        let message = watch.message(n);
        keyspace.try_submit(Arc::clone(&message.key), message).expect("there is room");
        feed.push(watch.message(100 + n));
    }
    done.wait_for(10);
    drop((keyspace, dispatch));
    executor.close();
    executor.join().expect("not a worker");
    eventually("no key is kept", || watch.keys_alive() == 0);
}

#[test]
fn a_cancelled_keyspace_keeps_nothing_of_what_it_dropped() {
    let executor = executor("ret-can");
    let watch = Watch::default();
    let keyspace: Keyspace<Key, Message> = executor.keyspace(|message: Message| async move {
        Script::ready().never().await.expect("it never ends");
        drop(message);
    });
    for n in 0..100 {
        let message = watch.message(n % 10);
        keyspace.try_submit(Arc::clone(&message.key), message).expect("the window has room");
    }
    assert_eq!((watch.keys_alive(), watch.bodies_alive()), (100, 100));
    keyspace.cancel();
    finish(keyspace.drained());
    let alive = || watch.keys_alive() + watch.bodies_alive();
    eventually("every dropped message, key and future is gone", || alive() == 0);
    executor.close();
}

#[test]
fn an_idle_keyspace_keeps_no_key_though_nobody_asks_it_for_anything() {
    const WINDOW: u32 = 256;
    let builder = KeyedExecutor::builder().name("ret-idle").workers(1);
    let executor = builder.build().expect("the settings are in range");
    let watch = Watch::default();
    let (entered, go_on) = (Latch::new(), Latch::new());
    let keyspace: Keyspace<Key, Message> = executor.keyspace(handle);
    let (inside, until) = (entered.clone(), go_on.clone());
    let task = move || {
        inside.release();
        until.wait();
    };
    executor.execute_pinned(0, task).expect("the executor is open");
    entered.wait();
    for n in 0..WINDOW {
        let message = watch.message(n);
        keyspace.try_submit(Arc::clone(&message.key), message).expect("the window has room");
    }
    assert_eq!(watch.keys_alive(), WINDOW as usize);
    go_on.release();
    eventually("every finished message, key and future is gone", || {
        watch.keys_alive() + watch.bodies_alive() == 0
    });
    drop(keyspace);
    executor.close();
}

/// A waker that does nothing.
struct Idle;

impl Wake for Idle {
    fn wake(self: Arc<Self>) {}
}

#[test]
fn who_waits_no_more_for_the_threads_leaves_no_waker() {
    let executor = executor("ret-wait");
    let idle = Arc::new(Idle);
    let mut kept = executor.terminated();
    for _ in 0..100 {
        for terminated in [&mut executor.terminated(), &mut kept] {
            let waker = Waker::from(Arc::clone(&idle));
            let polled = Pin::new(terminated).poll(&mut Context::from_waker(&waker));
            assert!(polled.is_pending(), "nobody closed the executor");
        }
    }
    // The one that still waits keeps its latest.
    assert_eq!(Arc::strong_count(&idle), 2);
    drop(kept);
    assert_eq!(Arc::strong_count(&idle), 1);
    executor.close();
}

#[test]
fn who_waits_no_more_for_a_keyspace_leaves_no_waker() {
    struct Never;
    impl Wake for Never {
        fn wake(self: Arc<Self>) {}
    }
    let executor = executor("ret-drained");
    let keyspace: Keyspace<u32, u32> = executor.keyspace(|_| Script::ready().never());
    keyspace.try_submit(1, 1).expect("there is room");
    let never = Arc::new(Never);
    let mut drained = Box::pin(keyspace.drained());
    let waker = Waker::from(Arc::clone(&never));
    assert!(drained.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    drop(waker);
    assert_eq!(Arc::strong_count(&never), 2, "it is registered");
    drop(drained);
    assert_eq!(Arc::strong_count(&never), 1, "its waker is gone with it");
    keyspace.cancel();
    executor.close();
}
