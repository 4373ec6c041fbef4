//! Whose turn it is when something comes back, step by step: keys, their overflow, bytes, and who was woken and left.

use super::{For, Waiting};
use crate::credit::Ticket;
use crate::intake::bounds::Limits;
use crate::intake::{Intake, Place};
use crate::sync::Arc;
use std::sync::Mutex;
use std::task::{Wake, Waker};

/// Writes down whose turn it was.
struct Turn(Ticket, Arc<Mutex<Vec<Ticket>>>);

impl Wake for Turn {
    fn wake(self: Arc<Self>) {
        self.1.lock().expect("no test panics inside").push(self.0);
    }
}

/// An intake and its waiters.
struct Door {
    intake: Intake,
    waiting: Waiting,
    turns: Arc<Mutex<Vec<Ticket>>>,
}

impl Door {
    fn new(window: usize, limits: Limits) -> Self {
        Self { intake: Intake::new(window, limits, 1, 0), waiting: Waiting::default(), turns: Arc::default() }
    }

    /// Lets a message of a key in that lacks nothing; its entry and slot.
    fn enter(&mut self, key: u64, bytes: usize) -> (u32, u32) {
        let place = self.intake.find(key, |_| true);
        assert_eq!(self.intake.lack(place, bytes), None, "key {key}");
        let entry = match place {
            Place::Live { entry, .. } => entry,
            Place::Absent => self.intake.admit(key, 0),
        };
        let slot = self.intake.take_slot().expect("it lacks nothing");
        let _ = self.intake.charge(entry, slot, bytes);
        self.intake.add(entry);
        (entry, slot)
    }

    fn waits(&mut self, ticket: Ticket, lacks: For, bytes: usize) {
        let waker = Waker::from(Arc::new(Turn(ticket, Arc::clone(&self.turns))));
        drop(self.waiting.insert(&mut self.intake, ticket, lacks, bytes, waker));
    }

    fn ends(&mut self, (entry, slot): (u32, u32)) {
        self.intake.give_back(entry, slot);
    }

    fn serve(&mut self) -> Vec<Ticket> {
        self.waiting.serve(&mut self.intake);
        self.turns()
    }

    /// Those whose turn has come since the last call.
    fn turns(&mut self) -> Vec<Ticket> {
        self.waiting.due.drain(..).for_each(Waker::wake);
        std::mem::take(&mut self.turns.lock().expect("no test panics inside"))
    }
}

fn per_key(per_key: u32, overflow: u32) -> Limits {
    Limits { per_key, overflow, ..Limits::NONE }
}

fn bytes(max_bytes: usize) -> Limits {
    Limits { max_bytes, weighs: true, ..Limits::NONE }
}

#[test]
fn each_message_that_ends_is_one_turn_of_its_key_in_the_order_of_the_tickets() {
    let mut door = Door::new(8, per_key(2, 0));
    let held = [door.enter(1, 0), door.enter(1, 0)];
    let other = door.enter(2, 0);
    assert!(door.waiting.is_empty() && !door.intake.bounds.is_watched);
    for ticket in [7, 5, 6] {
        door.waits(ticket, For::Key(held[0].0), 0);
    }
    assert!(!door.waiting.is_empty() && door.intake.bounds.is_watched);
    door.ends(other);
    assert_eq!(door.serve(), [], "another key's is of no use");
    door.ends(held[0]);
    assert_eq!(door.serve(), [5]);
    assert_eq!(door.serve(), []);
    // The one that was woken goes in; the key is full again.
    let entered = door.enter(1, 0);
    door.waiting.went_in(&mut door.intake, 5, entered.0);
    assert_eq!(door.turns(), []);
    door.ends(entered);
    door.ends(held[1]);
    assert_eq!(door.serve(), [6, 7]);
    assert!(door.waiting.is_empty() && !door.intake.bounds.is_watched);
}

#[test]
fn a_permit_of_the_overflow_is_anybodys_and_goes_to_the_first_of_all_keys() {
    let mut door = Door::new(8, per_key(1, 1));
    let held: Vec<_> = [1, 2, 3].map(|key| door.enter(key, 0)).into();
    let beyond = door.enter(1, 0);
    door.waits(4, For::Key(held[2].0), 0);
    door.waits(3, For::Key(held[1].0), 0);
    door.ends(beyond);
    assert_eq!(door.serve(), [3], "whatever its key is");
    // It does not need it after all: the next one may.
    assert!(door.waiting.leave(&mut door.intake, 3).is_none());
    assert_eq!(door.turns(), [4]);
}

#[test]
fn a_woken_one_that_leaves_passes_its_turn_on_and_one_that_waits_leaves_its_waker() {
    let mut door = Door::new(8, per_key(1, 0));
    let held = door.enter(1, 0);
    for ticket in 1..=3 {
        door.waits(ticket, For::Key(held.0), 0);
    }
    assert!(door.waiting.leave(&mut door.intake, 2).is_some());
    assert_eq!(door.turns(), []);
    let other = door.enter(2, 0);
    door.ends(held);
    assert_eq!(door.serve(), [1]);
    assert!(door.waiting.leave(&mut door.intake, 1).is_none());
    assert_eq!(door.turns(), [3]);
    assert!(door.waiting.leave(&mut door.intake, 3).is_none());
    assert!(door.waiting.is_empty());
    door.ends(other);
    assert_eq!(door.serve(), []);
}

#[test]
fn keys_take_turns_and_those_that_are_full_or_find_no_window_have_none() {
    let mut door = Door::new(4, per_key(2, 0));
    let one = [door.enter(1, 0), door.enter(1, 0)];
    let two = [door.enter(2, 0), door.enter(2, 0)];
    for ticket in [1, 2] {
        door.waits(ticket, For::Key(one[0].0), 0);
    }
    door.waits(3, For::Key(two[0].0), 0);
    door.ends(one[0]);
    // Somebody without a key that waits was faster: the window is full again.
    let third = door.enter(3, 0);
    assert_eq!(door.serve(), []);
    door.ends(two[0]);
    assert_eq!(door.serve(), [1], "its key was the first that came below its limit");
    let entered = door.enter(1, 0);
    door.waiting.went_in(&mut door.intake, 1, entered.0);
    assert_eq!(door.turns(), [], "no window");
    door.ends(third);
    // Below its limit is the second key alone.
    assert_eq!(door.serve(), [3]);
}

#[test]
fn bytes_that_come_back_go_to_the_first_for_whom_they_are_enough() {
    let mut door = Door::new(8, bytes(100));
    let (heavy, light) = (door.enter(1, 70), door.enter(2, 30));
    door.waits(1, For::Bytes, 90);
    door.waits(2, For::Bytes, 30);
    door.waits(3, For::Bytes, 10);
    door.ends(light);
    assert_eq!(door.serve(), [2], "the first one is too heavy, and holds nobody up");
    // It went in for less than there is: the next one may go on as well.
    let entered = door.enter(3, 20);
    door.waiting.went_in(&mut door.intake, 2, entered.0);
    assert_eq!(door.turns(), [3]);
    let last = door.enter(4, 10);
    door.waiting.went_in(&mut door.intake, 3, last.0);
    assert_eq!(door.turns(), []);
    door.ends(last);
    assert_eq!(door.serve(), []);
    door.ends(heavy);
    assert_eq!(door.serve(), [], "80 of 90");
    door.ends(entered);
    assert_eq!(door.serve(), [1]);
}

#[test]
fn bytes_are_of_no_use_without_a_permit_and_a_permit_of_the_overflow_is_one() {
    let limits = Limits { per_key: 1, overflow: 1, max_bytes: 100, weighs: true };
    let mut door = Door::new(1, limits);
    let held = door.enter(1, 60);
    door.waits(1, For::Bytes, 50);
    let beyond = door.enter(1, 40);
    door.ends(beyond);
    assert_eq!(door.serve(), [], "40 bytes are not 50");
    door.waits(2, For::Bytes, 20);
    let again = door.enter(1, 1);
    door.ends(again);
    assert_eq!(door.serve(), [2], "the window is full, but a permit of the overflow is free");
    let again = door.enter(1, 1);
    // The overflow is taken, the window full: whoever waits for bytes only could not go in.
    door.waits(3, For::Bytes, 20);
    assert!(door.waiting.leave(&mut door.intake, 2).is_none());
    assert_eq!(door.turns(), []);
    door.ends(held);
    assert_eq!(door.serve(), [1]);
    door.ends(again);
    assert_eq!(door.serve(), [3]);
}

#[test]
fn of_those_that_wait_for_a_key_only_one_for_whose_bytes_there_is_room_is_called() {
    let limits = Limits { per_key: 1, overflow: 2, max_bytes: 100, weighs: true };
    let mut door = Door::new(4, limits);
    let held = [door.enter(1, 30), door.enter(1, 30), door.enter(1, 30)];
    door.waits(1, For::Key(held[0].0), 60);
    door.waits(2, For::Key(held[0].0), 40);
    door.ends(held[1]);
    assert_eq!(door.serve(), [2], "there are 40 bytes");
    assert!(door.waiting.leave(&mut door.intake, 2).is_none());
    assert_eq!(door.turns(), []);
    door.ends(held[2]);
    assert_eq!(door.serve(), [1]);
}

#[test]
fn who_registers_again_keeps_its_place_and_its_first_waker_comes_back() {
    let mut door = Door::new(8, per_key(1, 0));
    let (one, two) = (door.enter(1, 0), door.enter(2, 0));
    door.waits(1, For::Key(one.0), 0);
    door.waits(2, For::Key(one.0), 0);
    let waker = Waker::from(Arc::new(Turn(1, Arc::clone(&door.turns))));
    let replaced = door.waiting.insert(&mut door.intake, 1, For::Key(two.0), 0, waker);
    assert!(replaced.is_some(), "of the key it waited for before");
    door.ends(one);
    assert_eq!(door.serve(), [2]);
    door.ends(two);
    assert_eq!(door.serve(), [1]);
}

#[test]
fn a_woken_one_that_waits_again_lets_another_one_have_what_it_was_woken_for() {
    let mut door = Door::new(8, Limits { per_key: 1, overflow: 0, max_bytes: 100, weighs: true });
    let (one, two) = (door.enter(1, 10), door.enter(2, 50));
    door.waits(1, For::Key(one.0), 10);
    door.waits(2, For::Key(one.0), 10);
    door.ends(one);
    assert_eq!(door.serve(), [1]);
    // Meanwhile its message became too heavy for what is free.
    door.waits(1, For::Bytes, 90);
    assert_eq!(door.turns(), [2]);
    door.ends(two);
    assert_eq!(door.serve(), [1]);
}

#[test]
fn a_door_that_is_shut_calls_everybody_once() {
    let mut door = Door::new(8, Limits { per_key: 1, overflow: 0, max_bytes: 100, weighs: true });
    let held = door.enter(1, 60);
    door.waits(1, For::Key(held.0), 0);
    door.waits(2, For::Bytes, 50);
    door.waits(3, For::Key(held.0), 0);
    door.ends(held);
    door.waiting.all(&mut door.intake);
    assert_eq!(door.turns(), [1, 2, 3]);
    assert!(door.waiting.is_empty() && !door.intake.bounds.is_watched);
    assert!(door.intake.bounds.eased.is_empty());
    assert_eq!(door.serve(), []);
}
