//! A stuck or hot key holds its limit of the window and what the overflow has, no more; every other key goes on.
//!
//! Observes B-1, X6 by both doors, and KD-4, which holds as it did where no limit is set.
#![cfg(not(keyed_loom))]

#[path = "common/settle.rs"]
mod settle;
#[path = "common/windowed.rs"]
mod windowed;

use keyed_executor::{KeyedExecutor, Keyspace, Options, SubmitRefusal};
use settle::settle;
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use windowed::executor;
use wow_testkit::{Counter, History, Latch, Level, Message, Script, Source, eventually, finish};

const STUCK: usize = 0;
const OTHERS: usize = 1_000;
const EACH: usize = 10;
const WAITING: usize = 10_000;

/// The keys of X6: the stuck one's messages among those of the others, a hundred of it to a hundred of them.
fn keys() -> impl Iterator<Item = usize> + Send {
    let stuck = std::iter::repeat_n(STUCK, WAITING + 1);
    let mut others = (0..EACH).flat_map(|_| 1..=OTHERS);
    let mut stuck = stuck.peekable();
    let mut at = 0_usize;
    std::iter::from_fn(move || {
        at += 1;
        if at % 200 <= 100 && stuck.peek().is_some() {
            return stuck.next();
        }
        others.next().or_else(|| stuck.next())
    })
}

/// What a run of X6 is watched by.
#[derive(Clone)]
struct Stage {
    history: Arc<History>,
    /// Messages of the other keys that are accepted and unfinished: their permits of the window.
    others: Arc<Level>,
    done: Counter,
}

impl Stage {
    fn new(window: usize) -> Self {
        let history = History::bounded(0, OTHERS + 1, window);
        Self { history, others: Arc::new(Level::new()), done: Counter::new() }
    }

    fn issue(&self, key: usize) -> Message {
        if key != STUCK {
            self.others.rise();
        }
        self.history.issue(key, 0)
    }

    /// The stuck key never ends, every fourth of the others waits for a while.
    async fn play(self, message: Message) {
        let script = match message.key() {
            STUCK => Script::ready().never(),
            key if key % 4 == 0 => Script::ready().yields(2),
            _ => Script::ready(),
        };
        message.start().play(script).await.expect("this script does not fail");
        self.others.fall();
        self.done.add(1);
    }
}

#[test]
fn a_stuck_key_with_ten_thousand_waiting_leaves_the_other_keys_of_a_source_alone() {
    const WINDOW: usize = 64;
    const LIMIT: usize = 16;
    for workers in [1, 3] {
        let executor = executor("iso-x6", workers, WINDOW);
        let stage = Stage::new(WINDOW);
        let (source, feed) = Source::fed();
        let (issuing, handling) = (stage.clone(), stage.clone());
        let options = Options::new("x6").max_per_key(LIMIT).overflow(WAITING + 1 - LIMIT);
        let source = futures_util::StreamExt::map(source, move |key| issuing.issue(key));
        let dispatch = executor
            .dispatch_with(options, source, Message::key, move |message| handling.clone().play(message));
        feed.extend(keys());
        stage.done.wait_for((OTHERS * EACH) as u64);
        // All of the stuck key are inside, the source is still asked, and answers are still handled.
        feed.taken().wait_for((WAITING + 1 + OTHERS * EACH) as u64);
        feed.extend(1..=OTHERS);
        stage.done.wait_for((OTHERS * (EACH + 1)) as u64);
        assert!(stage.others.peak() <= WINDOW, "{} permits were out", stage.others.peak());
        dispatch.cancel();
        let ledger = finish(dispatch).expect_err("it was cancelled").ledger;
        let handled = (OTHERS * (EACH + 1)) as u64;
        assert_eq!((ledger.handled, ledger.cancelled, ledger.discarded), (handled, 1, WAITING as u64));
        assert_eq!(ledger.in_flight(), 0);
        let tally = stage.history.verify();
        assert_eq!((tally.handled, tally.cancelled, tally.discarded), (handled, 1, WAITING as u64));
        executor.close();
    }
}

#[test]
fn a_stuck_key_with_ten_thousand_waiting_leaves_the_other_keys_of_a_keyspace_alone() {
    const WINDOW: usize = 64;
    const LIMIT: usize = 16;
    for workers in [1, 3] {
        let executor = executor("iso-x6k", workers, WINDOW);
        let stage = Stage::new(WINDOW);
        let handling = stage.clone();
        let options = Options::new("x6").max_per_key(LIMIT).overflow(WAITING + 1 - LIMIT);
        let keyspace: Keyspace<usize, Message> =
            executor.keyspace_with(options, move |message| handling.clone().play(message));
        finish(async {
            for key in keys() {
                keyspace.submit(key, stage.issue(key)).await.expect("the keyspace is open");
            }
        });
        stage.done.wait_for((OTHERS * EACH) as u64);
        let one_more = stage.history.issue(STUCK, 0);
        let refused = keyspace.try_submit(STUCK, one_more).expect_err("the overflow is full");
        assert_eq!(refused.reason, SubmitRefusal::KeyFull);
        refused.into_message().refuse();
        eventually("the others have come back", || keyspace.in_flight() == WAITING + 1);
        keyspace.cancel();
        let ledger = finish(keyspace.drained());
        let handled = (OTHERS * EACH) as u64;
        assert_eq!((ledger.handled, ledger.cancelled, ledger.discarded), (handled, 1, WAITING as u64));
        let tally = stage.history.verify();
        assert_eq!((tally.handled, tally.cancelled, tally.discarded), (handled, 1, WAITING as u64));
        executor.close();
    }
}

#[test]
fn without_a_limit_a_window_less_than_a_batch_from_full_of_stuck_messages_stalls_its_source() {
    // KD-4: 241 of 256 stuck stop the source after 15 more, 240 do not.
    for (stuck, goes_on) in [(241_u64, false), (240, true)] {
        let executor = executor("iso-kd4", 1, 256);
        let (source, feed) = Source::fed();
        let (started, done) = (Counter::new(), Counter::new());
        let (begun, ended) = (started.clone(), done.clone());
        let dispatch = executor.dispatch(
            source,
            |n: &u64| *n,
            move |n| {
                begun.add(1);
                let ended = ended.clone();
                async move {
                    if n < stuck {
                        std::future::pending::<()>().await;
                    }
                    // Not where it arrived: that it waits once is what makes it hold a permit of the window.
                    Script::ready().yields(1).await.expect("this script does not fail");
                    ended.add(1);
                }
            },
        );
        feed.extend(0..stuck);
        started.wait_for(stuck);
        feed.extend(stuck..stuck + 1_000);
        if goes_on {
            done.wait_for(1_000);
        } else {
            done.wait_for(15);
            settle(&executor);
            assert_eq!((feed.taken().get(), done.get()), (256, 15));
        }
        dispatch.cancel();
        finish(dispatch).expect_err("it was cancelled");
        executor.close();
    }
}

#[test]
fn one_stuck_key_stalls_a_source_without_a_limit_and_not_with_one() {
    for limit in [None, Some(4)] {
        let executor = executor("iso-hot", 1, 32);
        let (source, feed) = Source::fed();
        let (entered, done) = (Latch::new(), Counter::new());
        let (inside, ended) = (entered.clone(), done.clone());
        let mut options = Options::new("hot").overflow(100);
        options.max_per_key = limit;
        let dispatch = executor.dispatch_with(
            options,
            source,
            |n: &u64| *n % 100,
            move |n| {
                let (inside, ended) = (inside.clone(), ended.clone());
                async move {
                    if n % 100 == 0 {
                        inside.release();
                        std::future::pending::<()>().await;
                    }
                    ended.add(1);
                }
            },
        );
        // 50 of the stuck key, then others.
        feed.extend((0..50).map(|n| n * 100));
        entered.wait();
        feed.extend(1..100);
        if limit.is_some() {
            done.wait_for(99);
        } else {
            feed.taken().wait_for(32);
            settle(&executor);
            assert_eq!((feed.taken().get(), done.get()), (32, 0), "the stuck key has the whole window");
        }
        dispatch.cancel();
        finish(dispatch).expect_err("it was cancelled");
        executor.close();
    }
}

#[test]
fn the_window_and_the_overflow_are_bounded_apart_and_exactly() {
    const WINDOW: u32 = 8;
    const LIMIT: u32 = 3;
    const OVERFLOW: u32 = 5;
    let executor = executor("iso-exact", 1, WINDOW as usize);
    let open: Arc<Vec<Latch>> = Arc::new((0..10).map(|_| Latch::new()).collect());
    let gates = Arc::clone(&open);
    let options = Options::new("exact").max_per_key(LIMIT as usize).overflow(OVERFLOW as usize);
    let keyspace: Keyspace<u32, u32> =
        executor.keyspace_with(options, move |key| Script::ready().until(&gates[key as usize]));
    let accepted = |key| {
        let mut accepted = 0;
        loop {
            match keyspace.try_submit(key, key) {
                Ok(()) => accepted += 1,
                Err(refused) => return (accepted, refused.reason),
            }
        }
    };
    let unfinished = |n: u32| {
        eventually("what was let go has come back", || keyspace.in_flight() == n as usize);
    };
    // The first key takes its limit and the whole overflow, the next ones their limits, the last one what is left.
    assert_eq!(accepted(0), (LIMIT + OVERFLOW, SubmitRefusal::KeyFull));
    assert_eq!(accepted(1), (LIMIT, SubmitRefusal::KeyFull));
    assert_eq!(accepted(2), (WINDOW - 2 * LIMIT, SubmitRefusal::Full));
    assert_eq!(accepted(3), (0, SubmitRefusal::Full));
    assert_eq!(
        keyspace.metrics().in_flight,
        u64::from(WINDOW + OVERFLOW),
        "the figure counts the overflow too"
    );
    // What comes back of the second key are permits of the window: nothing of the overflow.
    open[1].release();
    unfinished(WINDOW + OVERFLOW - LIMIT);
    assert_eq!(accepted(0), (0, SubmitRefusal::KeyFull));
    assert_eq!(accepted(3), (LIMIT, SubmitRefusal::KeyFull));
    assert_eq!(accepted(4), (0, SubmitRefusal::Full));
    // Of the first key all come back.
    open[0].release();
    unfinished(WINDOW - LIMIT);
    assert_eq!(accepted(3), (OVERFLOW, SubmitRefusal::KeyFull), "the overflow is whole again");
    assert_eq!(accepted(4), (LIMIT, SubmitRefusal::KeyFull));
    assert_eq!(accepted(5), (0, SubmitRefusal::Full));
    open.iter().for_each(Latch::release);
    let ledger = finish(keyspace.drained());
    let first_round = WINDOW + OVERFLOW;
    let second_round = LIMIT + OVERFLOW + LIMIT;
    assert_eq!((ledger.accepted, ledger.handled), (ledger.handled, u64::from(first_round + second_round)));
    executor.close();
}

#[test]
fn what_comes_back_of_the_overflow_is_no_demand() {
    let executor = executor("iso-demand", 1, 16);
    let gates: Arc<Vec<Latch>> = Arc::new((0..20).map(|_| Latch::new()).collect());
    let (held, started, done) = (Arc::clone(&gates), Counter::new(), Counter::new());
    let (begun, ended) = (started.clone(), done.clone());
    let (source, feed) = Source::fed();
    let options = Options::new("demand").max_per_key(1).overflow(50);
    let handler = move |n: usize| {
        begun.add(1);
        let (gate, ended) = (held.get(n).cloned(), ended.clone());
        async move {
            match gate {
                Some(gate) => gate.released().await,
                None => std::future::pending().await,
            }
            ended.add(1);
        }
    };
    let dispatch = executor.dispatch_with(options, source, |n: &usize| n.saturating_sub(19), handler);
    // Twenty of the first key, one of them in the window, and others that have the rest of it.
    feed.extend(0..1_000);
    started.wait_for(16);
    feed.taken().wait_for(35);
    for (ended, gate) in (1_u64..).zip(gates.iter().take(19)) {
        gate.release();
        done.wait_for(ended);
        settle(&executor);
        assert_eq!(feed.taken().get(), 35, "{ended} permits of the overflow came back, none of the window");
    }
    // The last one held a permit of the window.
    gates[19].release();
    feed.taken().wait_for(36);
    settle(&executor);
    assert_eq!(feed.taken().get(), 36);
    dispatch.cancel();
    finish(dispatch).expect_err("it was cancelled");
    executor.close();
}

/// Notes the thread on which it is dropped.
struct Noting(Arc<Mutex<Vec<ThreadId>>>);

impl Drop for Noting {
    fn drop(&mut self) {
        self.0.lock().expect("nothing panics here").push(std::thread::current().id());
    }
}

#[test]
fn a_force_close_drops_ten_thousand_in_the_overflow_on_the_calling_thread() {
    let executor = executor("iso-force", 1, 64);
    let (entered, threads) = (Latch::new(), Arc::new(Mutex::new(Vec::new())));
    let inside = entered.clone();
    let options = Options::new("force").max_per_key(4).overflow(WAITING);
    let keyspace: Keyspace<usize, Option<Noting>> = executor.keyspace_with(options, move |_| {
        inside.release();
        std::future::pending::<()>()
    });
    keyspace.try_submit(STUCK, None).expect("the window has room");
    entered.wait();
    for _ in 0..WAITING {
        keyspace.try_submit(STUCK, Some(Noting(Arc::clone(&threads)))).expect("the overflow has room");
    }
    let (held, go_on) = (Latch::new(), Latch::new());
    let (in_task, until) = (held.clone(), go_on.clone());
    let task = move || {
        in_task.release();
        until.wait();
    };
    executor.execute_pinned(0, task).expect("the executor is open");
    held.wait();
    executor.force_close();
    go_on.release();
    assert_eq!(*threads.lock().expect("nothing panics here"), vec![std::thread::current().id(); WAITING]);
    let ledger = finish(keyspace.drained());
    assert_eq!((ledger.cancelled, ledger.discarded), (1, WAITING as u64));
    finish(executor.terminated());
}

#[test]
fn a_hot_key_that_is_not_stuck_is_handled_in_order_through_the_overflow() {
    const MESSAGES: u64 = 5_000;
    const LIMIT: usize = 2;
    const OVERFLOW: usize = 7;
    for workers in [1, 2] {
        let executor = executor("iso-order", workers, 16);
        let history = History::bounded(0, 2, 16);
        let issued = Arc::clone(&history);
        let (source, _feed) =
            Source::over((0..MESSAGES).map(move |n| issued.issue(usize::from(n % 20 == 0), 0)));
        let options = Options::new("order").max_per_key(LIMIT).overflow(OVERFLOW);
        let handler = |message: Message| {
            let script =
                if message.id().number % 3 == 0 { Script::ready().elsewhere() } else { Script::ready() };
            message.start().play(script)
        };
        let dispatch = executor.dispatch_with(options, source, Message::key, handler);
        assert_eq!(finish(dispatch).expect("no handler fails").handled, MESSAGES);
        assert_eq!(history.verify().handled, MESSAGES);
        executor.close();
    }
}

#[test]
fn a_key_whose_message_ended_has_room_though_its_worker_never_came_to_rest() {
    let executor = KeyedExecutor::builder()
        .name("iso-next")
        .workers(1)
        .max_in_flight(16_384)
        .rescue_threads(0)
        .build()
        .expect("the settings are in range");
    let (begun, go_on) = (Latch::new(), Latch::new());
    let (told, until) = (begun.clone(), go_on.clone());
    executor
        .execute(move || {
            told.release();
            until.wait();
        })
        .expect("the executor is open");
    begun.wait();
    // The first one ends in its lane's turn; in the turn of the next lane the worker is held.
    let limited: Keyspace<u32, u32> =
        executor.keyspace_with(Options::new("limited").max_per_key(1).overflow(0), |_| async {});
    let gate = Latch::new();
    let held = gate.clone();
    let holds: Keyspace<u32, u32> = executor.keyspace(move |_| {
        held.wait();
        std::future::ready(())
    });
    limited.try_submit(1, 0).expect("there is room");
    holds.try_submit(1, 0).expect("there is room");
    go_on.release();
    eventually("it ended", || limited.metrics().handled == 1);
    limited.try_submit(1, 1).expect("what ended is looked at, though no worker took it back");
    let refused = limited.try_submit(1, 2).expect_err("this one waits behind the held worker");
    assert_eq!(refused.reason, SubmitRefusal::KeyFull);
    gate.release();
    assert_eq!(finish(limited.drained()).handled, 2);
    executor.close();
}
