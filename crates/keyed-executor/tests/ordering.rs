//! Messages of one key run one at a time, in the order in which they were accepted.
//!
//! Observes KE-11, KM-25, KM-27, KO-1; scenarios T1, T18, T27, T29, X1.
#![cfg(not(keyed_loom))]

use futures_util::stream;
use keyed_executor::{KeyedExecutor, SubmitRefusal};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wow_testkit::{Counter, History, Latch, Message, Rng, Script, Seed, finish};

fn executor(name: &str, workers: usize) -> KeyedExecutor {
    KeyedExecutor::builder().name(name).workers(workers).build().expect("the settings are in range")
}

/// Each key's messages in turn: key 0, key 1, ..., key 0 again.
fn round_robin(history: &Arc<History>, keys: usize, each: usize) -> Vec<Message> {
    (0..each).flat_map(|_| (0..keys).map(|key| history.issue(key, 0))).collect()
}

#[test]
fn tasks_of_one_affinity_run_in_submission_order_on_one_thread() {
    for affinity in [5, -1, i64::MIN] {
        let executor = executor("ord-aff", 3);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let done = Counter::new();
        for n in 0..1_000 {
            let (seen, done) = (Arc::clone(&seen), done.clone());
            let task = move || {
                let thread = std::thread::current().name().map(str::to_owned);
                seen.lock().expect("no task panics").push((n, thread));
                done.add(1);
            };
            executor.execute_pinned(affinity, task).expect("the executor is open");
        }
        done.wait_for(1_000);
        let seen = seen.lock().expect("no task panics");
        assert!(seen.iter().map(|(n, _)| *n).eq(0..1_000), "affinity {affinity} lost its order");
        let first = &seen[0].1;
        assert!(first.as_deref().is_some_and(|name| name.starts_with("ord-aff-")));
        assert!(seen.iter().all(|(_, thread)| thread == first), "affinity {affinity} moved between threads");
        executor.close();
    }
}

#[test]
fn affinities_equal_modulo_the_workers_share_a_thread() {
    let executor = executor("ord-mod", 3);
    let thread_of = |affinity| {
        let (name, done) = (Arc::new(Mutex::new(None)), Latch::new());
        let (into, ran) = (Arc::clone(&name), done.clone());
        let task = move || {
            *into.lock().expect("no task panics") = std::thread::current().name().map(str::to_owned);
            ran.release();
        };
        executor.execute_pinned(affinity, task).expect("the executor is open");
        done.wait();
        name.lock().expect("no task panics").clone()
    };
    let names: Vec<_> = (0..3).map(thread_of).collect();
    assert!(names[0] != names[1] && names[1] != names[2] && names[0] != names[2]);
    // -1 is 2 modulo 3, not 1 and not -1.
    assert_eq!(
        [thread_of(-3), thread_of(-1), thread_of(-2)],
        [names[0].clone(), names[2].clone(), names[1].clone()]
    );
    assert_eq!([thread_of(3), thread_of(5)], [names[0].clone(), names[2].clone()]);
    executor.close();
}

#[test]
fn a_source_keeps_the_order_of_each_key_while_keys_run_in_parallel() {
    let executor = executor("ord-src", 4);
    let history = History::bounded(0, 200, 256);
    let messages = round_robin(&history, 200, 25);
    let dispatch = executor.dispatch(stream::iter(messages), Message::key, |message: Message| async move {
        let inline = message.id().number % 2 == 0;
        let script = if inline { Script::ready() } else { Script::ready().elsewhere() };
        message.start().play(script).await
    });
    let ledger = finish(dispatch).expect("no handler fails");
    assert_eq!((ledger.accepted, ledger.handled), (5_000, 5_000));
    assert_eq!(history.verify().handled, 5_000);
    assert!(history.running().peak() > 1, "two keys never ran at once");
    executor.close();
}

#[test]
fn submissions_keep_the_order_of_each_key_while_keys_run_in_parallel() {
    let executor = executor("ord-sub", 4);
    let history = History::bounded(0, 200, 256);
    let keyspace = executor.keyspace(|message: Message| async move {
        let inline = message.id().number % 2 == 0;
        let script = if inline { Script::ready() } else { Script::ready().elsewhere() };
        message.start().play(script).await
    });
    finish(async {
        for message in round_robin(&history, 200, 25) {
            keyspace.submit(message.key(), message).await.expect("the keyspace is open");
        }
    });
    assert_eq!(finish(keyspace.drained()).handled, 5_000);
    assert_eq!(history.verify().handled, 5_000);
    assert!(history.running().peak() > 1, "two keys never ran at once");
    executor.close();
}

#[test]
fn one_key_keeps_its_order_over_many_turns() {
    let executor = executor("ord-one", 2);
    let history = History::bounded(0, 1, 1);
    let messages = round_robin(&history, 1, 500);
    let handler = |message: Message| async move { message.start().finish() };
    let ledger =
        finish(executor.dispatch(stream::iter(messages), Message::key, handler)).expect("no handler fails");
    assert_eq!((ledger.handled, history.verify().handled), (500, 500));

    let history = History::bounded(0, 1, 1);
    let keyspace = executor.keyspace(|message: Message| async move { message.start().finish() });
    finish(async {
        for message in round_robin(&history, 1, 500) {
            keyspace.submit(0, message).await.expect("the keyspace is open");
        }
    });
    assert_eq!((finish(keyspace.drained()).handled, history.verify().handled), (500, 500));
    executor.close();
}

fn mixed(rng: &mut Rng) -> Script {
    match rng.below(10) {
        0..4 => Script::ready(),
        4..6 => Script::ready().yields(1 + rng.index(3)),
        6..8 => Script::ready().elsewhere(),
        8 => Script::ready().yields(1).elsewhere().yields(1),
        _ => Script::ready().after(Duration::from_micros(rng.below(300))),
    }
}

#[test]
fn many_keys_stay_in_order_with_short_turns_and_every_way_to_complete() {
    for round in 0..5 {
        let executor = KeyedExecutor::builder()
            .name("ord-mix")
            .workers(3)
            .max_in_flight(64)
            .throughput(2)
            .build()
            .expect("the settings are in range");
        let history = History::bounded(round, 37, 64);
        let mut rng = Seed(round).rng();
        let messages: Vec<_> = (0..5_000)
            .map(|_| {
                let message = history.issue(rng.index(37), 0);
                (message, mixed(&mut rng))
            })
            .collect();
        let dispatch = executor.dispatch(
            stream::iter(messages),
            |(message, _): &(Message, Script)| message.key(),
            |(message, script): (Message, Script)| async move { message.start().play(script).await },
        );
        let ledger = finish(dispatch).expect("no handler fails");
        assert_eq!((ledger.handled, history.verify().handled), (5_000, 5_000));
        executor.close();
        finish(executor.terminated());
    }
}

#[test]
fn each_producer_sees_its_own_order_on_every_key() {
    const PRODUCERS: usize = 64;
    const KEYS: usize = 1_000;
    const EACH: usize = 300;
    let executor = executor("ord-x1", 3);
    let seed = Seed::from_env("ORDERING_SEED");
    let _told = seed.told_on_panic("ORDERING_SEED");
    let history = History::bounded(seed.0, KEYS, 256);
    let keyspace = executor.keyspace(|message: Message| async move {
        let script = if message.id().number % 3 == 0 { Script::ready().yields(1) } else { Script::ready() };
        message.start().play(script).await
    });
    let mut rng = seed.rng();
    let producers: Vec<_> = (0..PRODUCERS)
        .map(|producer| {
            let (history, keyspace, mut rng) = (Arc::clone(&history), keyspace.clone(), rng.fork());
            std::thread::spawn(move || {
                let mut accepted = 0_u64;
                for _ in 0..EACH {
                    // Few keys of the many are hot, so that producers meet.
                    let key = if rng.chance(1, 2) { rng.index(8) } else { rng.index(KEYS) };
                    let message = history.issue(key, producer);
                    match keyspace.try_submit(key, message) {
                        Ok(()) => accepted += 1,
                        Err(refused) => {
                            assert_eq!(refused.reason, SubmitRefusal::Full);
                            refused.into_message().refuse();
                            std::thread::yield_now();
                        }
                    }
                }
                accepted
            })
        })
        .collect();
    let accepted: u64 =
        producers.into_iter().map(|producer| producer.join().expect("no producer panics")).sum();
    let ledger = finish(keyspace.drained());
    let tally = history.verify();
    assert_eq!((tally.issued, tally.handled), ((PRODUCERS * EACH) as u64, accepted));
    assert_eq!((ledger.accepted, ledger.handled), (accepted, accepted));
    executor.close();
}
