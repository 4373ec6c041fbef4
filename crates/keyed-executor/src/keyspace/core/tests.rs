//! What lies behind the lock, call by call: keys that are forgotten, and submitters that look again before they wait.
//!
//! No worker has a thread here: permits are taken and given by hand.

use std::future::{Ready, ready};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;

use super::super::Door;
use super::Core;
use crate::credit::Then;
use crate::sync::{Arc, lock};
use crate::tests::held_seat::executor;
use crate::{KeyedExecutor, Options};

/// A key that is counted when it is dropped.
#[derive(Clone, Debug)]
struct Key(Arc<AtomicUsize>);

impl Drop for Key {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Key {}

impl std::hash::Hash for Key {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

type Handler = fn(()) -> Ready<()>;

fn core(executor: &KeyedExecutor, window: usize) -> Arc<Core<Key, (), Handler, Ready<()>>> {
    Core::new(executor.inner(), Options::new("behind").max_in_flight(window), (|()| ready(())) as Handler)
}

#[test]
fn keys_that_are_forgotten_behind_the_lock_are_dropped_outside_it_at_once_and_leave_their_room() {
    let executor = executor("forgets");
    let core = core(&executor, 8);
    let dropped = Arc::new(AtomicUsize::new(0));
    core.with_side(|side| (0..3).for_each(|_| side.dead.push(Key(Arc::clone(&dropped)))));
    assert_eq!(dropped.load(Ordering::Relaxed), 3);
    let room = lock(&core.side).dead.capacity();
    assert!(room >= 3);
    for n in 4..20 {
        core.with_side(|side| side.dead.push(Key(Arc::clone(&dropped))));
        assert_eq!(dropped.load(Ordering::Relaxed), n);
        assert_eq!(lock(&core.side).dead.capacity(), room, "it is used again");
    }
}

#[test]
fn a_submitter_waits_only_while_the_window_is_full_the_door_open_and_nothing_has_come_back() {
    let executor = executor("full");
    let core = core(&executor, 1);
    let waits = |ticket| core.register(ticket, Waker::noop());
    assert!(!waits(0), "there is room");
    assert_eq!(lock(&core.side).intake.take_slot(), Some(0));
    assert!(waits(1), "the window is full");
    assert!(core.engine.credit.forget(1));
    let _ = core.engine.credit.give(1, Then::Busy);
    assert!(!waits(2), "something has come back that nobody has taken yet");
    assert!(!core.engine.credit.forget(2), "it is on no list");
    lock(&core.side).intake.returned = 1;
    assert!(waits(3), "that was taken back, and the window is full again");
    lock(&core.side).intake.closed = true;
    assert!(!waits(4), "the door is shut");
    assert!(!core.engine.credit.forget(4));
}

#[test]
fn keys_that_are_live_when_everything_is_dropped_are_dropped_with_it() {
    let executor = executor("buries");
    let core = core(&executor, 8);
    let dropped = Arc::new(AtomicUsize::new(0));
    for hash in 0..3 {
        let side = &mut *lock(&core.side);
        let entry = core.engine.admit(&mut side.intake, hash, Key(Arc::clone(&dropped)), 0);
        side.intake.add(entry);
    }
    assert_eq!(dropped.load(Ordering::Relaxed), 0);
    drop(core);
    assert_eq!(dropped.load(Ordering::Relaxed), 3);
}
