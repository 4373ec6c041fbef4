//! A key is user code: it may use its keyspace, or force a close, wherever it is compared, told or dropped.
//!
//! Observes KE-34, KE-42, KM-9; panics of keys are in panic.rs.
#![cfg(not(keyed_loom))]

use futures_util::stream;
use keyed_executor::{KeyedExecutor, Keyspace, OnFailure, Options};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, mpsc};
use wow_testkit::{Latch, PATIENCE, Script, finish, finish_within};

fn executor(name: &str, workers: usize) -> KeyedExecutor {
    KeyedExecutor::builder().name(name).workers(workers).build().expect("the settings are in range")
}

/// Runs what would never return if it went wrong on a thread of its own.
fn returns(what: &str, body: impl FnOnce() + Send + 'static) {
    let (sender, returned) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        body();
        // Dropped without a word by a panic, which `join` tells.
        let _ = sender.send(());
    });
    let timed_out = returned.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout);
    assert!(!timed_out, "it did not return: {what}");
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// When a key calls the code it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    Compared,
    Told,
    Dropped,
}

/// What a key does, once.
type Hook = Arc<Mutex<Option<Box<dyn FnOnce() + Send>>>>;

/// A key with code of its own. All of them have one hash, so each is compared with every other.
#[derive(Clone)]
struct Key {
    number: u32,
    calls: When,
    hook: Hook,
}

impl Key {
    fn call(&self, now: When) {
        if self.calls == now {
            let hook = self.hook.lock().expect("nothing panics here").take();
            if let Some(hook) = hook {
                hook();
            }
        }
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.call(When::Compared);
        self.number == other.number
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.call(When::Told);
        write!(f, "{}", self.number)
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        self.call(When::Dropped);
    }
}

/// A key that submits to its keyspace when it is dropped, and the latch that says that it did.
fn key_that_submits(keyspace: &Keyspace<Key, u32>) -> (Key, Latch) {
    let submitted = Latch::new();
    let (itself, done) = (keyspace.clone(), submitted.clone());
    let hook: Box<dyn FnOnce() + Send> = Box::new(move || {
        let plain = Key { number: 1_000, calls: When::Dropped, hook: Hook::default() };
        itself.try_submit(plain, 1_000).expect("the window has room");
        done.release();
    });
    (Key { number: 0, calls: When::Dropped, hook: Arc::new(Mutex::new(Some(hook))) }, submitted)
}

#[test]
fn a_key_may_use_its_keyspace_when_it_is_dropped() {
    returns("a key that uses its keyspace in its drop", || {
        let executor = executor("usr-key", 1);
        let (entered, go_on) = (Latch::new(), Latch::new());
        let (inside, until) = (entered.clone(), go_on.clone());
        let keyspace: Keyspace<Key, u32> = executor.keyspace(move |n| {
            if n == 1 {
                inside.release();
                until.wait();
            }
            async {}
        });
        // Forgotten by the worker, which nobody asks for anything.
        let (key, submitted) = key_that_submits(&keyspace);
        keyspace.try_submit(key, 0).expect("the window has room");
        submitted.wait();
        // Forgotten by whoever looks at the keyspace while the worker is busy, or by the worker after that.
        let (key, submitted) = key_that_submits(&keyspace);
        keyspace.try_submit(key, 0).expect("the window has room");
        let plain = Key { number: 1, calls: When::Dropped, hook: Hook::default() };
        keyspace.try_submit(plain, 1).expect("the window has room");
        entered.wait();
        assert!(keyspace.in_flight() > 0, "a handler holds its thread");
        go_on.release();
        submitted.wait();
        let ledger = finish(keyspace.drained());
        assert_eq!((ledger.accepted, ledger.handled), (5, 5));
        executor.close();
    });
}

#[test]
fn a_forced_close_inside_a_key_returns_and_ends_everything() {
    for (calls, yields, fails) in [
        (When::Dropped, 0, false),
        (When::Dropped, 2, false),
        (When::Compared, 2, false),
        (When::Told, 0, true),
        (When::Told, 2, true),
    ] {
        let executor = executor("usr-force", 1);
        let (closed, itself) = (Latch::new(), executor.clone());
        let done = closed.clone();
        let hook: Box<dyn FnOnce() + Send> = Box::new(move || {
            itself.force_close();
            done.release();
        });
        let hook: Hook = Arc::new(Mutex::new(Some(hook)));
        let options = Options::new("forced").on_failure(OnFailure::Continue);
        let key = move |n: &u32| Key { number: n % 2, calls, hook: Arc::clone(&hook) };
        let handler = move |_| {
            let script = Script::ready().yields(yields);
            if fails { script.fails("told to") } else { script }
        };
        let dispatch = executor.dispatch_with(options, stream::iter(0..8_u32), key, handler);
        assert!(finish_within(PATIENCE, closed.released()).is_some(), "no return from it {calls:?}");
        finish(executor.terminated());
        let ledger = match finish(dispatch) {
            Ok(ledger) => ledger,
            Err(error) => error.ledger,
        };
        let ended = ledger.handled + ledger.failed + ledger.cancelled + ledger.discarded;
        assert_eq!(ledger.accepted, ended, "{calls:?}: {ledger:?}");
    }
}
