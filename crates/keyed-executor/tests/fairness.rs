//! A key with much to do does not starve the others of its worker: a turn is at most `throughput` messages.
//!
//! Observes KM-20, KM-24, KM-28, KM-29; scenarios T28, X8.
#![cfg(not(keyed_loom))]

use keyed_executor::{KeyedExecutor, Keyspace, Options};
use std::sync::{Arc, Mutex, OnceLock};
use wow_testkit::{Counter, Latch, Script, Source, finish};

fn one_worker(name: &str, throughput: usize) -> KeyedExecutor {
    KeyedExecutor::builder()
        .name(name)
        .workers(1)
        .throughput(throughput)
        .build()
        .expect("the settings are in range")
}

/// Holds the only worker in a task until the latch that is returned opens.
fn hold(executor: &KeyedExecutor) -> Latch {
    let (held, go_on) = (Latch::new(), Latch::new());
    let (entered, until) = (held.clone(), go_on.clone());
    let task = move || {
        entered.release();
        until.wait();
    };
    executor.execute_pinned(0, task).expect("the executor is open");
    held.wait();
    go_on
}

#[test]
fn a_cold_message_waits_for_one_turn_of_the_hot_key_before_it() {
    let executor = one_worker("fair-cold", 4);
    let order = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&order);
    let keyspace: Keyspace<&str, u32> = executor.keyspace(move |message: u32| {
        noted.lock().expect("no handler panics").push(message);
        async {}
    });
    let go_on = hold(&executor);
    for message in 0..100 {
        keyspace.try_submit("hot", message).expect("the window has room");
    }
    keyspace.try_submit("cold", 1_000).expect("the window has room");
    go_on.release();
    finish(keyspace.drained());
    let order = order.lock().expect("no handler panics");
    assert_eq!(
        order.iter().position(|&message| message == 1_000),
        Some(4),
        "the cold key's place: {order:?}"
    );
    let hot = order.iter().copied().filter(|&message| message != 1_000);
    assert!(hot.eq(0..100), "the hot key lost its order: {order:?}");
    executor.close();
}

#[test]
fn keys_that_are_all_ready_take_turns() {
    let executor = one_worker("fair-turns", 3);
    let order = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&order);
    let keyspace: Keyspace<usize, usize> = executor.keyspace(move |key: usize| {
        noted.lock().expect("no handler panics").push(key);
        async {}
    });
    let go_on = hold(&executor);
    for key in 0..4 {
        for _ in 0..6 {
            keyspace.try_submit(key, key).expect("the window has room");
        }
    }
    go_on.release();
    finish(keyspace.drained());
    let expected = [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3].repeat(2);
    assert_eq!(*order.lock().expect("no handler panics"), expected);
    executor.close();
}

#[test]
fn a_key_that_resends_itself_for_ever_lets_another_key_in_after_its_turn() {
    const THROUGHPUT: u64 = 8;
    const SENT_AT: u64 = 1_000;
    let executor = one_worker("fair-self", THROUGHPUT as usize);
    let hot_runs = Counter::new();
    let cold_after = Arc::new(OnceLock::new());
    let itself: Arc<OnceLock<Keyspace<&str, &str>>> = Arc::new(OnceLock::new());
    let cold_ran = Latch::new();
    let (after, again, ran) = (Arc::clone(&cold_after), Arc::clone(&itself), cold_ran.clone());
    let keyspace = executor.keyspace(move |key: &'static str| {
        if key == "hot" {
            let run = hot_runs.next();
            let keyspace = again.get().expect("it is set before the first message");
            if run == SENT_AT {
                keyspace.try_submit("cold", "cold").expect("the window has room");
            }
            if after.get().is_none() {
                // Room for itself is certain: at most three messages are in flight.
                keyspace.try_submit("hot", "hot").expect("the window has room");
            }
        } else {
            after.set(hot_runs.get()).expect("there is one cold message");
            ran.release();
        }
        async {}
    });
    assert!(itself.set(keyspace.clone()).is_ok(), "it is set once");
    keyspace.try_submit("hot", "hot").expect("the window has room");
    cold_ran.wait();
    let waited = cold_after.get().expect("the cold message ran") - SENT_AT;
    assert!(waited <= THROUGHPUT, "the cold key waited for {waited} messages, a turn is {THROUGHPUT}");
    // Breaks the circle of a handler that holds its own keyspace.
    executor.force_close();
}

#[test]
fn a_handler_that_wakes_itself_lets_the_others_in() {
    let executor = one_worker("fair-wake", 4);
    let (stop, calm_ran) = (Latch::new(), Latch::new());
    let (stopped, ran) = (stop.clone(), calm_ran.clone());
    let keyspace: Keyspace<&str, &str> = executor.keyspace(move |key: &'static str| {
        let (stopped, ran) = (stopped.clone(), ran.clone());
        async move {
            if key == "calm" {
                ran.release();
            }
            while key == "restless" && !stopped.is_released() {
                Script::ready().yields(1).await.expect("this script does not fail");
            }
        }
    });
    keyspace.try_submit("restless", "restless").expect("the window has room");
    keyspace.try_submit("calm", "calm").expect("the window has room");
    // The restless one never stops by itself, so this ends only if the calm one got its turn.
    calm_ran.wait();
    stop.release();
    assert_eq!(finish(keyspace.drained()).handled, 2);
    executor.close();
}

#[test]
fn a_source_that_is_always_ready_starves_no_other_dispatch_of_its_worker() {
    let executor = one_worker("fair-src", 4);
    let quiet_done = Latch::new();
    let until = quiet_done.clone();
    let endless = std::iter::from_fn(move || if until.is_released() { None } else { Some(0_u32) });
    let (source, feed) = Source::over(endless);
    let busy = executor.dispatch(source, |_: &u32| 0_u32, |_| async {});
    feed.taken().wait_for(1_000);
    let (quiet_source, quiet_feed) = Source::fed();
    quiet_feed.extend(0..100_u32);
    quiet_feed.end();
    let options = Options::new("quiet");
    let quiet = executor.dispatch_with(options, quiet_source, |n: &u32| *n, |_| async {});
    assert_eq!(finish(quiet).expect("no handler fails").handled, 100);
    quiet_done.release();
    let ledger = finish(busy).expect("no handler fails");
    assert_eq!(ledger.handled, feed.taken().get());
    executor.close();
}

#[test]
fn a_finished_message_is_given_back_though_a_handler_of_another_dispatch_blocks() {
    const WARM: u32 = 2_000;
    let executor = one_worker("fair-back", 16);
    let quick: Keyspace<u32, u32> = executor.keyspace(|_| async {});
    // Quick handlers that are known as such: their messages are given back together.
    for n in 0..WARM {
        finish(quick.submit(n, n)).expect("the keyspace is open");
    }
    finish(quick.drained());
    let (entered, until) = (Latch::new(), Latch::new());
    let (inside, gate) = (entered.clone(), until.clone());
    let blocking: Keyspace<u32, u32> = executor.keyspace(move |_| {
        inside.release();
        gate.wait();
        async {}
    });
    let go_on = hold(&executor);
    quick.try_submit(0, 0).expect("the window has room");
    blocking.try_submit(0, 0).expect("the window has room");
    go_on.release();
    entered.wait();
    // The other one's handler is released only after this.
    assert_eq!(finish(quick.drained()).handled, u64::from(WARM) + 1);
    until.release();
    finish(blocking.drained());
    executor.close();
}
