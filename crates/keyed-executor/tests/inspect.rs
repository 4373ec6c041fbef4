//! What lives is listed with its state, its queue and its age, from anywhere, whatever the handlers do.
//!
//! Observes B-6: each state from another thread and from inside a handler, a stuck key's queue, the limit, a stuck source
//! message, and looks from and beside everything that could hold one up: a rescue, a close, a key's own `Debug`.
#![cfg(not(keyed_loom))]

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::stream;
use keyed_executor::{Inspection, KeyedExecutor, Keyspace, MailboxState, MailboxView, OnFailure, Options};
use wow_testkit::{Counter, Latch, Script, eventually, finish};

/// Without spare threads: what is stuck stays where it was seen, however long the look takes.
fn executor(name: &str, workers: usize) -> KeyedExecutor {
    let builder = KeyedExecutor::builder().name(name).workers(workers).rescue_threads(0);
    builder.build().expect("the settings are in range")
}

fn mailbox<'a>(seen: &'a Inspection, key: &str) -> Option<&'a MailboxView> {
    seen.mailboxes.iter().find(|mailbox| mailbox.key == format!("{key:?}"))
}

fn state(seen: &Inspection, key: &str) -> Option<(MailboxState, usize)> {
    mailbox(seen, key).map(|mailbox| (mailbox.state, mailbox.queued))
}

/// A keyspace whose messages are what their handlers do.
fn scripted(executor: &KeyedExecutor, label: &str) -> Keyspace<&'static str, Script> {
    let options = Options::new(label).max_in_flight(1_000).on_failure(OnFailure::Continue);
    executor.keyspace_with(options, |script: Script| script)
}

#[test]
fn each_state_is_told_from_another_thread() {
    let executor = executor("ins-state", 1);
    let keyspace = scripted(&executor, "orders");
    let (first, second, waits) = (Latch::new(), Latch::new(), Latch::new());
    keyspace.try_submit("waits", Script::ready().until(&waits)).expect("there is room");
    eventually("it waits", || state(&executor.inspect(9), "waits") == Some((MailboxState::Waiting, 0)));
    keyspace.try_submit("first", Script::ready().blocks_until(&first)).expect("there is room");
    eventually("it runs", || state(&executor.inspect(9), "first") == Some((MailboxState::Running, 0)));
    // Nobody takes these in before the first handler is through.
    keyspace.try_submit("yields", Script::ready().yields(1)).expect("there is room");
    keyspace.try_submit("second", Script::ready().blocks_until(&second)).expect("there is room");
    for key in ["first", "waits", "last", "last"] {
        keyspace.try_submit(key, Script::ready()).expect("there is room");
    }
    let seen = executor.inspect(9);
    assert_eq!(state(&seen, "first"), Some((MailboxState::Running, 1)), "{seen:?}");
    assert_eq!(state(&seen, "waits"), Some((MailboxState::Waiting, 1)), "{seen:?}");
    assert_eq!(state(&seen, "last"), Some((MailboxState::Ready, 2)), "{seen:?}");
    assert_eq!((seen.live, seen.mailboxes.len(), seen.unseen.len()), (5, 5, 0), "{seen:?}");
    assert!(seen.mailboxes.iter().all(|mailbox| mailbox.dispatch == "orders" && mailbox.worker == 0));
    first.release();
    eventually("the second one runs", || {
        state(&executor.inspect(9), "second") == Some((MailboxState::Running, 0))
    });
    // It woke itself inside its first poll and stands behind the second one.
    let seen = executor.inspect(9);
    assert_eq!(state(&seen, "yields"), Some((MailboxState::Resumed, 0)), "{seen:?}");
    assert_eq!(state(&seen, "last"), Some((MailboxState::Ready, 2)), "{seen:?}");
    waits.release();
    second.release();
    finish(keyspace.drained());
    eventually("nothing lives", || executor.inspect(9).live == 0);
    executor.close();
}

#[test]
fn a_handler_sees_itself_and_what_waits_behind_it() {
    let executor = executor("ins-inside", 1);
    let (go, seen) = (Latch::new(), Arc::new(Mutex::new(None)));
    let (gate, told) = (go.clone(), Arc::clone(&seen));
    let keyspace: Keyspace<&str, u32> = executor.keyspace(move |n| {
        if n == 0 {
            gate.wait();
            let executor = KeyedExecutor::current().expect("a handler runs on an executor");
            *told.lock().expect("no handler panics") = Some(executor.inspect(9));
        }
        std::future::ready(())
    });
    keyspace.try_submit("self", 0).expect("there is room");
    keyspace.try_submit("self", 1).expect("there is room");
    keyspace.try_submit("other", 2).expect("there is room");
    go.release();
    finish(keyspace.drained());
    let seen = seen.lock().expect("no handler panics").take().expect("the handler looked");
    assert_eq!(state(&seen, "self"), Some((MailboxState::Running, 1)), "{seen:?}");
    assert_eq!(state(&seen, "other"), Some((MailboxState::Ready, 1)), "{seen:?}");
    executor.close();
}

#[test]
fn a_detached_message_is_told_while_its_worker_goes_on() {
    let executor = KeyedExecutor::builder()
        .name("ins-detach")
        .workers(1)
        .rescue_threads(4)
        .build()
        .expect("the settings are in range");
    let keyspace = scripted(&executor, "orders");
    let (stuck, done) = (Latch::new(), Latch::new());
    keyspace.try_submit("stuck", Script::ready().blocks_until(&stuck)).expect("there is room");
    keyspace.try_submit("stuck", Script::ready()).expect("there is room");
    let open = done.clone();
    let others: Keyspace<u32, u32> = executor.keyspace(move |_| {
        open.release();
        std::future::ready(())
    });
    others.try_submit(1, 1).expect("there is room");
    done.wait();
    let seen = executor.inspect(9);
    assert_eq!(state(&seen, "stuck"), Some((MailboxState::Detached, 1)), "{seen:?}");
    stuck.release();
    finish(keyspace.drained());
    executor.close();
    finish(executor.terminated());
    assert_eq!(executor.inspect(9).live, 0);
}

#[test]
fn the_queue_of_a_stuck_key_is_told_and_the_oldest_come_first() {
    let executor = executor("ins-queue", 2);
    let keyspace = scripted(&executor, "orders");
    let gate = Latch::new();
    keyspace.try_submit("stuck", Script::ready().until(&gate)).expect("there is room");
    eventually("it is old", || {
        executor.inspect(1).mailboxes.iter().any(|mailbox| mailbox.age.as_millis() >= 5)
    });
    for _ in 0..300 {
        keyspace.try_submit("stuck", Script::ready()).expect("there is room");
    }
    let keys: Vec<&'static str> = (0..100).map(|n| &*format!("key-{n}").leak()).collect();
    for key in &keys {
        keyspace.try_submit(key, Script::ready().until(&gate)).expect("there is room");
    }
    eventually("all of them live", || executor.inspect(0).live == 101);
    let seen = keyspace.inspect(3);
    assert_eq!((seen.mailboxes.len(), seen.live), (3, 101));
    assert_eq!(state(&seen, "stuck"), Some((MailboxState::Waiting, 300)));
    assert_eq!(seen.mailboxes[0].key, "\"stuck\"", "{seen:?}");
    assert!(seen.mailboxes.is_sorted_by(|one, two| one.age >= two.age), "{seen:?}");
    assert!(
        seen.mailboxes[0].to_string().starts_with("orders \"stuck\": Waiting for "),
        "{}",
        seen.mailboxes[0]
    );
    assert_eq!(executor.inspect(usize::MAX).mailboxes.len(), 101);
    gate.release();
    finish(keyspace.drained());
    executor.close();
}

#[test]
fn mailboxes_are_told_by_their_age_and_not_by_their_places() {
    let executor = executor("ins-age", 1);
    let keyspace = scripted(&executor, "orders");
    let (gate, first) = (Latch::new(), Latch::new());
    keyspace.try_submit("gone", Script::ready().until(&first)).expect("there is room");
    let mut expected = Vec::new();
    for key in ["old", "middle", "young"] {
        // A key that ended leaves its place to the next one, which is younger than those behind it.
        if key == "young" {
            first.release();
            eventually("it ended", || keyspace.metrics().handled == 1 && keyspace.live_keys() == 2);
        }
        keyspace.try_submit(key, Script::ready().until(&gate)).expect("there is room");
        expected.push(format!("{key:?}"));
        eventually("it has an age", || {
            let seen = keyspace.inspect(9);
            mailbox(&seen, key).is_some_and(|mailbox| mailbox.age.as_millis() >= 5)
        });
    }
    let seen = keyspace.inspect(9);
    assert_eq!(seen.mailboxes.iter().map(|mailbox| mailbox.key.clone()).collect::<Vec<_>>(), expected);
    gate.release();
    finish(keyspace.drained());
    executor.close();
}

#[test]
fn a_message_that_is_stuck_where_its_source_yielded_it_is_told() {
    let executor = executor("ins-place", 1);
    let (inside, gate) = (Latch::new(), Latch::new());
    let (entered, held) = (inside.clone(), gate.clone());
    let dispatch = executor.dispatch(
        stream::iter(0..2_000_u64),
        |n| *n,
        move |n| {
            if n == 1_999 {
                entered.release();
                held.wait();
            }
            std::future::ready(())
        },
    );
    inside.wait();
    // Cheap messages of new keys run in place: it has no mailbox.
    assert!(executor.metrics().workers[0].in_place > 0);
    let seen = dispatch.inspect(9);
    assert_eq!(seen.mailboxes.len(), 1, "{seen:?}");
    assert_eq!((&*seen.mailboxes[0].key, seen.mailboxes[0].state), ("1999", MailboxState::Running));
    let metrics = dispatch.metrics().expect("it runs");
    assert!(metrics.in_flight >= 1 && metrics.oldest_unfinished.is_some(), "{metrics:?}");
    gate.release();
    finish(dispatch).expect("no handler fails");
    executor.close();
}

/// A key whose `Debug` does what the test says.
#[derive(Clone)]
struct Odd(u32, Arc<dyn Fn(&mut fmt::Formatter<'_>) -> fmt::Result + Send + Sync>);

impl PartialEq for Odd {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Odd {}

impl std::hash::Hash for Odd {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl fmt::Debug for Odd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (self.1)(f)
    }
}

fn odd(
    executor: &KeyedExecutor,
    debug: impl Fn(&mut fmt::Formatter<'_>) -> fmt::Result + Send + Sync + 'static,
) -> Keyspace<Odd, u32> {
    let keyspace = executor.keyspace(|_: u32| std::future::pending::<()>());
    keyspace.try_submit(Odd(1, Arc::new(debug)), 1).expect("there is room");
    eventually("it waits", || keyspace.metrics().waiting == 1);
    keyspace
}

#[test]
fn a_key_that_panics_or_never_ends_its_text_harms_nothing() {
    let executor = executor("ins-debug", 1);
    let _panics = odd(&executor, |_| panic!("told to"));
    let _endless = odd(&executor, |f| {
        loop {
            f.write_str("wörds ")?;
        }
    });
    let seen = executor.inspect(9);
    let texts: Vec<&str> = seen.mailboxes.iter().map(|mailbox| &*mailbox.key).collect();
    assert!(texts.contains(&"<its Debug panicked>"), "{texts:?}");
    assert!(texts.iter().any(|text| text.len() <= 203 && text.ends_with("...")), "{texts:?}");
    executor.force_close();
    finish(executor.terminated());
}

#[test]
fn a_key_may_look_again_or_force_a_close_inside_its_text() {
    let executor = executor("ins-nested", 2);
    let (nested, told) = (Arc::new(Mutex::new(None)), executor.clone());
    let result = Arc::clone(&nested);
    let _looks = odd(&executor, move |f| {
        *result.lock().expect("no look panics") = Some((told.inspect(9), told.metrics()));
        f.write_str("looks")
    });
    assert_eq!(executor.inspect(9).mailboxes[0].key, "looks");
    let (seen, metrics) = nested.lock().expect("no look panics").take().expect("it looked");
    assert_eq!(
        (seen.live, seen.unseen.len()),
        (0, executor.metrics().workers.iter().filter(|w| w.running).count())
    );
    assert_eq!(metrics.in_flight(), 1, "counters are told anywhere");
    let ended = executor.clone();
    let closes = odd(&executor, move |f| {
        ended.force_close();
        f.write_str("closes")
    });
    let _ = executor.inspect(9);
    finish(executor.terminated());
    assert_eq!(finish(closes.drained()).cancelled, 1);
}

#[test]
fn looks_without_end_hold_up_nothing() {
    const MESSAGES: u64 = 4_000;
    let executor = KeyedExecutor::builder()
        .name("ins-stress")
        .workers(2)
        .rescue_threads(8)
        .build()
        .expect("the settings are in range");
    let over = Arc::new(AtomicBool::new(false));
    let lookers: Vec<_> = (0..2)
        .map(|_| {
            let (executor, over) = (executor.clone(), Arc::clone(&over));
            std::thread::spawn(move || {
                let mut most = 0;
                while !over.load(Ordering::Relaxed) {
                    let seen = executor.inspect(7);
                    assert!(seen.mailboxes.len() <= 7.min(seen.live), "{seen:?}");
                    most = most.max(seen.live);
                    let _ = executor.metrics();
                }
                most
            })
        })
        .collect();
    let done = Counter::new();
    let count = done.clone();
    let handler = move |n: u64| {
        let count = count.clone();
        async move {
            match n % 97 {
                // Blocks until others are done, which a rescue lets happen.
                0 if n >= 97 => count.wait_for(n / 97),
                1 => KeyedExecutor::current().map_or((), |executor| drop(executor.inspect(3))),
                _ => {}
            }
            let script = match n % 7 {
                0 => Script::ready().yields(1),
                1 => Script::ready().elsewhere(),
                _ => Script::ready(),
            };
            script.await.expect("it does not fail");
            count.add(1);
        }
    };
    let dispatch = executor.dispatch(stream::iter(0..MESSAGES), |n| *n % 61, handler.clone());
    let keyspace: Keyspace<u64, u64> = executor.keyspace(handler);
    for n in 0..MESSAGES {
        finish(keyspace.submit(n % 59, n)).expect("the keyspace is open");
    }
    assert_eq!(finish(keyspace.drained()).handled, MESSAGES);
    assert_eq!(finish(dispatch).expect("no handler fails").handled, MESSAGES);
    over.store(true, Ordering::Relaxed);
    let most: usize = lookers.into_iter().map(|looker| looker.join().expect("no look panics")).sum();
    assert!(most > 0, "something was seen");
    executor.close();
    finish(executor.terminated());
}
