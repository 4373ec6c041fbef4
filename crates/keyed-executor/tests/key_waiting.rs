//! A submitter that waits for room of its key holds up nobody of another key, and is woken when there is room for it.
//!
//! Observes B-1 at the keyspace's door: whom a stuck key's waiters cost what, every way in which room comes back, waiters
//! that are dropped, doors that are shut, and that nobody is woken for what it cannot use.
#![cfg(not(keyed_loom))]

#[path = "common/windowed.rs"]
mod windowed;

use keyed_executor::{KeyedExecutor, Keyspace, OnFailure, Options, Submit, SubmitRefusal};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use windowed::executor;
use wow_testkit::{Counter, History, Latch, Message, Script, eventually, finish};

fn options(limit: usize, overflow: usize) -> Options {
    Options::new("waiting").on_failure(OnFailure::Continue).max_per_key(limit).overflow(overflow)
}

/// Counts how often it wakes.
struct Woken(Counter);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.add(1);
    }
}

/// A submission that was polled once and waits, and the count of its wakes.
struct Waits {
    submit: Pin<Box<Submit<u32, u32>>>,
    woken: Counter,
    waker: Waker,
    /// Wakes that it acted on.
    seen: u64,
    is_in: bool,
}

impl Waits {
    fn new(keyspace: &Keyspace<u32, u32>, key: u32, message: u32) -> Self {
        let woken = Counter::new();
        let waker = Waker::from(Arc::new(Woken(woken.clone())));
        let mut waits =
            Self { submit: Box::pin(keyspace.submit(key, message)), woken, waker, seen: 0, is_in: false };
        assert!(!waits.goes_in(), "there was room for {message} of key {key}");
        waits
    }

    /// Looks again if it was woken since it last did; true once it went in.
    fn goes_in_if_woken(&mut self) -> bool {
        if self.is_in || self.woken.get() == self.seen {
            return self.is_in;
        }
        self.seen = self.woken.get();
        self.goes_in()
    }

    fn goes_in(&mut self) -> bool {
        match self.submit.as_mut().poll(&mut Context::from_waker(&self.waker)) {
            Poll::Ready(result) => {
                result.expect("the keyspace is open");
                self.is_in = true;
                true
            }
            Poll::Pending => false,
        }
    }
}

/// A keyspace whose handler of a message waits for the latch of that number.
fn gated(executor: &KeyedExecutor, options: Options, gates: usize) -> (Keyspace<u32, u32>, Arc<Vec<Latch>>) {
    let open: Arc<Vec<Latch>> = Arc::new((0..gates).map(|_| Latch::new()).collect());
    let gates = Arc::clone(&open);
    let keyspace =
        executor.keyspace_with(options, move |message: u32| Script::ready().until(&gates[message as usize]));
    (keyspace, open)
}

#[test]
fn waiters_of_a_stuck_key_hold_up_nobody_else_and_are_not_woken_for_others() {
    const OTHERS: u64 = 20_000;
    let executor = executor("kw-stuck", 2, 64);
    let done = Counter::new();
    let counted = done.clone();
    let keyspace: Keyspace<u32, u32> = executor.keyspace_with(options(4, 2), move |message| {
        let counted = counted.clone();
        async move {
            if message == 0 {
                std::future::pending::<()>().await;
            }
            counted.add(1);
        }
    });
    for _ in 0..6 {
        keyspace.try_submit(0, 0).expect("the limit and the overflow have room");
    }
    let waiting: Vec<Waits> = (0..500).map(|_| Waits::new(&keyspace, 0, 0)).collect();
    finish(async {
        for n in 0..OTHERS {
            keyspace.submit(1 + (n % 1_000) as u32, 1).await.expect("the keyspace is open");
        }
    });
    done.wait_for(OTHERS);
    let woken: u64 = waiting.iter().map(|waits| waits.woken.get()).sum();
    assert_eq!(woken, 0, "nothing came back that they could use");
    drop(waiting);
    keyspace.cancel();
    assert_eq!(finish(keyspace.drained()).handled, OTHERS);
    executor.close();
}

#[test]
fn a_message_of_the_key_that_ends_lets_the_next_submitter_in() {
    for (limit, overflow) in [(1, 0), (3, 0), (1, 2), (2, 1)] {
        let executor = executor("kw-ends", 1, 16);
        let (keyspace, open) = gated(&executor, options(limit, overflow), 32);
        let full = (limit + overflow) as u32;
        for n in 0..full {
            keyspace.try_submit(7, n).expect("the key has room");
        }
        let mut waiting: Vec<Waits> = (full..full + 8).map(|n| Waits::new(&keyspace, 7, n)).collect();
        for n in 0..8_u32 {
            open[n as usize].release();
            // In the order in which they began to wait, one for each that ended.
            let first = &mut waiting[n as usize];
            first.woken.wait_for(1);
            assert!(first.goes_in(), "it was woken for room that was there");
            let others: Vec<u64> = waiting[n as usize + 1..].iter().map(|waits| waits.woken.get()).collect();
            assert!(others.iter().all(|woken| *woken == 0), "{others:?} were woken for nothing");
        }
        open.iter().for_each(Latch::release);
        assert_eq!(finish(keyspace.drained()).handled, u64::from(full) + 8);
        executor.close();
    }
}

#[test]
fn a_permit_of_the_overflow_that_another_key_gives_back_lets_a_submitter_in() {
    let executor = executor("kw-shared", 1, 16);
    let (keyspace, open) = gated(&executor, options(1, 2), 16);
    // Key 0 has its limit and the overflow, key 1 its limit.
    for n in 0..3 {
        keyspace.try_submit(0, n).expect("the overflow has room");
    }
    keyspace.try_submit(1, 3).expect("the window has room");
    let mut waits = Waits::new(&keyspace, 1, 4);
    open[0].release();
    waits.woken.wait_for(1);
    assert!(waits.goes_in(), "a permit of the overflow is free");
    let refused = keyspace.try_submit(1, 5).expect_err("and it is taken again");
    assert_eq!(refused.reason, SubmitRefusal::KeyFull);
    open.iter().for_each(Latch::release);
    assert_eq!(finish(keyspace.drained()).handled, 5);
    executor.close();
}

#[test]
fn a_woken_submitter_that_is_dropped_lets_the_next_one_in() {
    for limit in [1, 2] {
        let executor = executor("kw-drop", 1, 16);
        let (keyspace, open) = gated(&executor, options(limit, 0), 16);
        for n in 0..limit as u32 {
            keyspace.try_submit(0, n).expect("the key has room");
        }
        let mut waiting: Vec<Waits> = (4..8).map(|n| Waits::new(&keyspace, 0, n)).collect();
        open[0].release();
        waiting[0].woken.wait_for(1);
        drop(waiting.remove(0));
        waiting[0].woken.wait_for(1);
        // One that waits and was not woken takes nobody's place.
        drop(waiting.remove(1));
        assert!(waiting[0].goes_in(), "the room is still there");
        assert_eq!(waiting[1].woken.get(), 0);
        open.iter().for_each(Latch::release);
        waiting[1].woken.wait_for(1);
        assert!(waiting[1].goes_in(), "the key has room");
        assert_eq!(finish(keyspace.drained()).handled, limit as u64 + 2);
        executor.close();
    }
}

#[test]
fn a_key_that_takes_the_place_of_another_has_nothing_of_its_waiters() {
    let executor = executor("kw-reuse", 1, 16);
    let (keyspace, open) = gated(&executor, options(1, 0), 16);
    keyspace.try_submit(0, 0).expect("the key has room");
    let first = Waits::new(&keyspace, 0, 1);
    let mut second = Waits::new(&keyspace, 0, 2);
    open[0].release();
    // Its last message has come back, so the key was forgotten: the next new one gets its place, and fills it.
    first.woken.wait_for(1);
    keyspace.try_submit(9, 3).expect("another key has room");
    let mut other = Waits::new(&keyspace, 9, 4);
    // Who was woken goes away: the room of the first key is there for the next one that waits for it.
    drop(first);
    second.woken.wait_for(1);
    assert!(second.goes_in(), "its key has room, whatever the one in its old place has");
    assert_eq!(other.woken.get(), 0, "its key is full");
    open[3].release();
    other.woken.wait_for(1);
    assert!(other.goes_in(), "its key has room");
    open.iter().for_each(Latch::release);
    assert_eq!(finish(keyspace.drained()).handled, 4);
    executor.close();
}

#[test]
fn a_submitter_of_a_full_key_may_have_to_wait_for_the_window_next() {
    const WINDOW: usize = 4;
    let executor = executor("kw-window", 1, WINDOW);
    let (keyspace, open) = gated(&executor, options(1, 0), 16);
    keyspace.try_submit(0, 0).expect("the key has room");
    let mut second = Waits::new(&keyspace, 0, 1);
    let mut third = Waits::new(&keyspace, 0, 2);
    for key in 1..WINDOW as u32 {
        keyspace.try_submit(key, 2 + key).expect("the window has room");
    }
    // The window is full: of a key that is not, too, one has to wait.
    let mut other = Waits::new(&keyspace, 9, 6);
    open[0].release();
    // Whoever is first, the permit that came back is used by somebody.
    eventually("one of them goes in", || other.goes_in_if_woken() || second.goes_in_if_woken());
    open.iter().for_each(Latch::release);
    eventually("all of them go in", || {
        let waiting = [&mut second, &mut third, &mut other];
        waiting.into_iter().all(Waits::goes_in_if_woken)
    });
    assert_eq!(finish(keyspace.drained()).handled, WINDOW as u64 + 3);
    executor.close();
}

#[test]
fn closing_and_failing_wake_who_waits_for_a_key() {
    for ends in ["close", "cancel", "fail", "force"] {
        let executor = executor("kw-shut", 1, 16);
        let fail = Latch::new();
        let gate = fail.clone();
        let options = options(1, 0).on_failure(OnFailure::Fail);
        let keyspace: Keyspace<u32, u32> = executor.keyspace_with(options, move |key| match key {
            0 => Script::ready().never(),
            _ => Script::ready().until(&gate).fails("told to"),
        });
        keyspace.try_submit(0, 0).expect("the key has room");
        keyspace.try_submit(1, 1).expect("the key has room");
        let mut waits = Waits::new(&keyspace, 0, 0);
        match ends {
            "close" => keyspace.close(),
            "cancel" => keyspace.cancel(),
            "fail" => fail.release(),
            _ => executor.force_close(),
        }
        waits.woken.wait_for(1);
        let Poll::Ready(Err(refused)) = waits.submit.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        else {
            panic!("{ends}: the door is shut");
        };
        let reason = if ends == "fail" { SubmitRefusal::Failed } else { SubmitRefusal::Closed };
        assert_eq!(refused.reason, reason, "{ends}");
        keyspace.cancel();
        finish(keyspace.drained());
        executor.close();
        finish(executor.terminated());
    }
}

#[test]
fn many_submitters_of_few_keys_all_get_in_whatever_the_bounds() {
    const TASKS: usize = 48;
    const EACH: usize = 60;
    for (workers, window, limit, overflow) in [(1, 4, 1, 0), (2, 8, 1, 3), (2, 3, 2, 1), (3, 16, 5, 0)] {
        let executor = executor("kw-many", workers, window);
        let history = History::bounded(0, 5, window);
        let handler = |message: Message| {
            let script = match message.id().number % 4 {
                0 => Script::ready().elsewhere(),
                1 => Script::ready().yields(1),
                _ => Script::ready(),
            };
            message.start().play(script)
        };
        let keyspace: Keyspace<usize, Message> = executor.keyspace_with(options(limit, overflow), handler);
        let threads: Vec<_> = (0..4_usize)
            .map(|thread| {
                let (keyspace, history) = (keyspace.clone(), Arc::clone(&history));
                std::thread::spawn(move || {
                    let tasks = (thread..TASKS).step_by(4).map(|task| {
                        let (keyspace, history) = (keyspace.clone(), Arc::clone(&history));
                        async move {
                            for n in 0..EACH {
                                let key = task % 5;
                                let message = history.issue(key, task);
                                if n % 7 == 3 {
                                    // Given up after one look.
                                    let mut submit = keyspace.submit(key, message);
                                    let once = std::future::poll_fn(|cx| {
                                        Poll::Ready(Pin::new(&mut submit).poll(cx).is_ready())
                                    });
                                    let _ = once.await;
                                } else {
                                    keyspace.submit(key, message).await.expect("the keyspace is open");
                                }
                            }
                        }
                    });
                    finish(futures_util::future::join_all(tasks));
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("no producer panics");
        }
        let ledger = finish(keyspace.drained());
        let tally = history.verify();
        assert_eq!((tally.issued, tally.handled + tally.discarded), ((TASKS * EACH) as u64, tally.issued));
        assert_eq!((ledger.accepted, ledger.handled), (tally.handled, tally.handled));
        executor.close();
    }
}

#[test]
fn a_waiter_is_woken_though_the_worker_never_comes_to_rest() {
    let executor = KeyedExecutor::builder()
        .name("kw-held")
        .workers(1)
        .rescue_threads(0)
        .build()
        .expect("the settings are in range");
    let (ends, gate) = (Latch::new(), Latch::new());
    let (until, held) = (ends.clone(), gate.clone());
    let keyspace: Keyspace<u32, u32> =
        executor.keyspace_with(options(1, 0), move |_| Script::ready().until(&until));
    keyspace.try_submit(7, 1).expect("there is room");
    eventually("it waits", || keyspace.metrics().waiting == 1);
    let mut waits = Waits::new(&keyspace, 7, 2);
    let (begun, go_on) = (Latch::new(), Latch::new());
    let (told, stays) = (begun.clone(), go_on.clone());
    executor
        .execute(move || {
            told.release();
            stays.wait();
        })
        .expect("the executor is open");
    begun.wait();
    let holds: Keyspace<u32, u32> = executor.keyspace(move |_| {
        held.wait();
        std::future::ready(())
    });
    holds.try_submit(1, 1).expect("there is room");
    // The message ends in its lane's turn; in the turn of the next lane the worker is held.
    ends.release();
    go_on.release();
    eventually("it goes in", || waits.goes_in_if_woken());
    gate.release();
    assert_eq!(finish(keyspace.drained()).handled, 2);
    executor.close();
}
