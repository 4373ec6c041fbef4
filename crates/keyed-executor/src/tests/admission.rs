//! What comes in and what comes back, step by step: permits and entries, bounds beside the window, and who is woken.
//!
//! The models show that no wake-up is lost between threads; here is what each single step counts.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

use crossbeam_utils::CachePadded;

use crate::credit::{Credit, Need, Then, Woke};
use crate::intake::bounds::{Bounds, Eased, Lack, Limits, Permit};
use crate::intake::{Intake, Place};
use crate::lane::Lane;
use crate::mailbox::NONE;
use crate::sync::Arc;
use crate::weigh::TooMuch;

const UNLIMITED: Limits = Limits::NONE;

#[test]
fn the_next_number_is_told_before_it_is_given_out_also_where_none_was_used_before() {
    let mut intake = Intake::new(3, UNLIMITED, 1, 0);
    for n in 0..3 {
        assert_eq!((intake.next_entry(), intake.next_slot()), (Some(n), n as usize));
        assert_eq!(intake.room(), 3 - n as usize);
        assert_eq!(intake.take_slot(), Some(n));
        assert_eq!(intake.admit(u64::from(n) << 40, 0), n);
        intake.add(n);
    }
    assert_eq!((intake.next_entry(), intake.next_slot()), (None, NONE as usize));
    assert_eq!((intake.take_slot(), intake.room()), (None, 0));
    assert!(intake.give_back(1, 2), "it was the key's only message");
    assert_eq!((intake.next_entry(), intake.next_slot(), intake.room()), (Some(1), 2, 1));
    assert!(intake.give_back(0, 0));
    assert_eq!(
        (intake.next_entry(), intake.next_slot(), intake.room()),
        (Some(0), 0, 2),
        "the last one first"
    );
}

#[test]
fn a_key_is_live_on_its_worker_until_its_last_message_came_back() {
    let mut intake = Intake::new(8, UNLIMITED, 2, 0);
    assert_eq!(intake.find(7, |_| true), Place::Absent);
    let slots: Vec<u32> = (0..3).map(|_| intake.take_slot().expect("there is room")).collect();
    let entry = intake.admit(7, 1);
    for _ in &slots {
        intake.add(entry);
    }
    assert_eq!(intake.find(7, |same| same == entry), Place::Live { entry, worker: 1 });
    assert_eq!(intake.find(7, |_| false), Place::Absent, "another key of the same hash");
    assert_eq!((intake.outstanding_of(entry), intake.live(), intake.outstanding()), (3, 1, 3));
    assert_eq!(intake.live_entries().collect::<Vec<_>>(), [entry]);
    intake.passed_through();
    assert_eq!((intake.accepted, intake.returned, intake.outstanding()), (4, 1, 3));
    let was_last: Vec<bool> = slots.into_iter().map(|slot| intake.give_back(entry, slot)).collect();
    assert_eq!(was_last, [false, false, true]);
    assert_eq!((intake.live(), intake.outstanding(), intake.live_entries().count()), (0, 0, 0));
    assert_eq!((intake.returned, intake.window_returned()), (4, 4));
    assert_eq!(intake.find(7, |_| true), Place::Absent);
}

#[test]
fn completions_that_wait_to_be_taken_back_are_seen_on_every_worker() {
    let lanes: Vec<CachePadded<Lane>> = (0..2).map(|_| CachePadded::new(Lane::new(8))).collect();
    let mut intake = Intake::new(8, UNLIMITED, 2, 0);
    assert!(!intake.returned_elsewhere(&lanes));
    for worker in 0..2 {
        intake.reclaimed[worker] = 1;
        assert!(intake.returned_elsewhere(&lanes), "more or less: it is not what was taken back");
        intake.reclaimed[worker] = 0;
    }
    assert!(!intake.returned_elsewhere(&lanes));
}

#[test]
fn completions_are_looked_at_once_a_batch() {
    let mut intake = Intake::new(8, UNLIMITED, 1, 0);
    for batch in [1, 4, 3] {
        let due: Vec<bool> = (0..batch + 2).map(|_| intake.reclaim_is_due(batch)).collect();
        assert_eq!(due.iter().position(|due| *due), Some(batch - 1), "{due:?}");
        assert!(due[batch..].iter().all(|due| *due), "until it was done");
        intake.since_reclaim = 0;
    }
}

#[test]
fn limits_are_on_as_soon_as_one_of_them_is() {
    assert!(!UNLIMITED.is_on());
    for limits in [
        Limits { per_key: 1, ..UNLIMITED },
        Limits { overflow: 1, ..UNLIMITED },
        Limits { max_bytes: 1, ..UNLIMITED },
        Limits { weighs: true, ..UNLIMITED },
    ] {
        assert!(limits.is_on() && Bounds::new(limits, 4).is_on, "{limits:?}");
    }
    assert!(!Bounds::new(UNLIMITED, 4).is_on);
}

#[test]
fn what_is_beyond_the_limit_of_its_key_holds_the_overflow_and_the_bytes_lie_by_slot() {
    let limits = Limits { per_key: 2, overflow: 1, max_bytes: 100, weighs: true };
    let mut intake = Intake::new(4, limits, 1, 0);
    assert_eq!(intake.room(), 4, "the overflow is no room of the window");
    let mut permits = Vec::new();
    let entry = intake.admit(5, 0);
    let place = Place::Live { entry, worker: 0 };
    for bytes in [10, 20, 30] {
        assert_eq!(intake.lack(place, bytes), None);
        let slot = intake.take_slot().expect("there is room");
        permits.push(intake.charge(entry, slot, bytes));
        intake.add(entry);
    }
    assert_eq!(permits, [Permit::Window, Permit::Window, Permit::Overflow]);
    assert_eq!((intake.room(), intake.bounds.overflow_free()), (2, 0));
    assert!(intake.is_full(entry) && intake.bounds.is_full(2) && !intake.bounds.is_full(1));
    assert_eq!(intake.lack(place, 1), Some(Lack::Key));
    assert_eq!(intake.lack(Place::Absent, 40), None);
    assert_eq!(intake.lack(Place::Absent, 41), Some(Lack::Bytes));
    assert_eq!(intake.bounds.lack(0, 0, 0), Some(Lack::Window));
    assert!(intake.bounds.has_bytes(40) && !intake.bounds.has_bytes(41));

    intake.bounds.is_watched = true;
    assert!(!intake.give_back(entry, 1));
    assert_eq!(std::mem::take(&mut intake.bounds.eased), [Eased::Overflow]);
    assert!(intake.bounds.has_bytes(60) && !intake.bounds.has_bytes(61));
    assert_eq!((intake.bounds.overflow_free(), intake.bounds.overflow_returned()), (1, 1));
    assert_eq!((intake.room(), intake.window_returned(), intake.returned), (2, 0, 1));
    assert!(!intake.give_back(entry, 0));
    assert_eq!(std::mem::take(&mut intake.bounds.eased), [Eased::Key(entry)]);
    assert_eq!((intake.room(), intake.window_returned()), (3, 1));
    intake.bounds.is_watched = false;
    assert!(intake.give_back(entry, 2));
    assert!(intake.bounds.eased.is_empty(), "nobody waits for it");
    assert!(intake.bounds.has_bytes(100) && !intake.bounds.has_bytes(101));
}

#[test]
fn a_key_has_a_limit_if_it_is_below_the_window_and_nothing_is_weighed_without_a_weigher() {
    let config = crate::Config { overflow: 9, ..crate::Config::default() };
    let of = |options: crate::Options, window| options.limits(&config, window);
    let limited = Limits { per_key: 3, overflow: 9, ..UNLIMITED };
    assert_eq!(of(crate::Options::new("a"), 4), UNLIMITED);
    assert_eq!(of(crate::Options::new("a").max_per_key(3), 4), limited);
    assert_eq!(of(crate::Options::new("a").max_per_key(4), 4), UNLIMITED, "the window is as narrow");
    assert_eq!(of(crate::Options::new("a").max_per_key(3).overflow(1), 4), Limits { overflow: 1, ..limited });
    let by_config = crate::Config { max_per_key: Some(3), overflow: 9, ..crate::Config::default() };
    assert_eq!(crate::Options::new("a").limits(&by_config, 4), limited);
    assert_eq!(crate::Options::new("a").max_per_key(2).limits(&by_config, 4).per_key, 2);

    let (scale, rest) = crate::Options::new("a").take_scale::<String, Vec<u8>>();
    assert!(scale.is_none());
    assert_eq!((rest.max_bytes, rest.label.as_str()), (usize::MAX, "a"));
    let weights = crate::Weights { key: String::len, message: Vec::<u8>::len };
    let mut options = crate::Options::new("b").weighed(10, weights);
    options.max_key_bytes = 4;
    let (scale, rest) = options.take_scale::<String, Vec<u8>>();
    let scale = scale.expect("it weighs");
    assert_eq!(rest.max_bytes, 10);
    let weigh = |key: usize, message| scale.weigh(&"k".repeat(key), &vec![0; message]);
    assert_eq!((weigh(4, 6), weigh(0, 10), weigh(0, 0)), (Ok(10), Ok(10), Ok(0)));
    assert_eq!(weigh(4, 7), Err(TooMuch::Weight { bytes: 11, max: 10 }));
    assert_eq!(weigh(5, 0), Err(TooMuch::Key { bytes: 5, max: 4 }));
    let nothing: (usize, usize) = (
        crate::Weigh::<String, u8>::key_bytes(&crate::Unweighed, &"key".to_owned()),
        crate::Weigh::<String, u8>::message_bytes(&crate::Unweighed, &7),
    );
    assert_eq!(nothing, (0, 0));
}

#[test]
fn what_is_the_users_is_dropped_where_it_is_told_and_a_panic_of_it_goes_no_further() {
    struct Loud(Arc<AtomicUsize>);
    impl Drop for Loud {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
            panic!("told to");
        }
    }
    let dropped = Arc::new(AtomicUsize::new(0));
    crate::contain::drop_contained("a thing", Loud(Arc::clone(&dropped)));
    assert_eq!(dropped.load(Ordering::Relaxed), 1);
    assert_eq!(crate::contain::contain(|| 3), Ok(3));
    assert_eq!(crate::contain::contain(|| panic!("told to")), Err::<(), _>("told to".to_owned()));
}

/// Counts its wakes.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Woken {
    fn waker(self: &Arc<Self>) -> Waker {
        Waker::from(Arc::clone(self))
    }

    fn times(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

fn need(busy: u64, dry: u64, empty_at: impl Into<Option<u64>>) -> Need {
    Need { busy, dry, empty_at: empty_at.into() }
}

#[test]
fn a_waiter_is_woken_at_its_mark_by_who_goes_on_and_earlier_by_who_runs_dry() {
    let credit = Credit::new();
    let (one, other) = (Arc::new(Woken::default()), Arc::new(Woken::default()));
    assert_eq!(credit.give(3, Then::Dry), Woke::Nobody);
    assert_eq!(credit.register(1, need(8, 5, None), &one.waker()), 3);
    assert_eq!(credit.give(1, Then::Dry), Woke::Nobody);
    assert_eq!(credit.give(1, Then::Busy), Woke::Nobody);
    assert_eq!(credit.give(2, Then::Busy), Woke::Nobody);
    assert_eq!((credit.returned(), one.times()), (7, 0));
    assert_eq!(credit.give(1, Then::Busy), Woke::Some);
    assert_eq!(one.times(), 1);
    assert_eq!(credit.check(Then::Dry), Woke::Nobody, "it waits no more");
    assert!(!credit.forget(1));
    let _ = credit.register(2, need(20, 9, None), &other.waker());
    assert_eq!(credit.check(Then::Dry), Woke::Nobody);
    assert_eq!(credit.give(1, Then::Dry), Woke::Some);
    assert_eq!((one.times(), other.times()), (1, 1));
}

#[test]
fn no_more_waiters_are_woken_than_there_are_permits_and_the_first_tickets_first() {
    let credit = Credit::new();
    let woken: Vec<Arc<Woken>> = (0..4).map(|_| Arc::default()).collect();
    let times = || woken.iter().map(|woken| woken.times()).collect::<Vec<_>>();
    // Out of order: the queue is in the order of the tickets.
    for ticket in [2, 0, 3, 1] {
        let _ = credit.register(ticket, need(1, 1, 0), &woken[ticket as usize].waker());
    }
    assert_eq!(credit.give(2, Then::Busy), Woke::Some);
    assert_eq!(times(), [1, 1, 0, 0]);
    // One that takes no permit is not held up by those that do.
    let drained = Arc::new(Woken::default());
    let _ = credit.register(9, need(3, 3, None), &drained.waker());
    assert!(credit.forget(2));
    assert_eq!(credit.give(1, Then::Dry), Woke::Some);
    assert_eq!((times(), drained.times()), (vec![1, 1, 0, 1], 1));
}

#[test]
fn a_waiter_that_registers_again_is_one_waiter_and_its_last_waker_counts() {
    let credit = Credit::new();
    let (first, second) = (Arc::new(Woken::default()), Arc::new(Woken::default()));
    let _ = credit.register(4, need(5, 5, None), &first.waker());
    let _ = credit.register(4, need(2, 2, None), &second.waker());
    assert_eq!(credit.give(2, Then::Busy), Woke::Some);
    assert_eq!((first.times(), second.times()), (0, 1));
    assert_eq!(Arc::strong_count(&first), 1, "the waker it replaced is dropped");
    assert!(!credit.forget(4), "there was one");
}

#[test]
fn who_is_forgotten_is_not_woken_and_a_shut_door_wakes_the_rest() {
    let credit = Credit::new();
    let woken: Vec<Arc<Woken>> = (0..3).map(|_| Arc::default()).collect();
    for (ticket, woken) in (0..).zip(&woken) {
        let _ = credit.register(ticket, need(100, 100, 0), &woken.waker());
    }
    assert!(credit.forget(1) && !credit.forget(1) && !credit.forget(7));
    assert_eq!(Arc::strong_count(&woken[1]), 1);
    credit.wake_all();
    assert_eq!(woken.iter().map(|woken| woken.times()).collect::<Vec<_>>(), [1, 0, 1]);
    assert_eq!(credit.give(200, Then::Dry), Woke::Nobody);
}

#[test]
fn who_finds_no_permit_waits_for_half_a_window_or_from_a_worker_that_runs_dry_for_a_batch() {
    let marks = |need: Need| (need.busy, need.dry, need.empty_at);
    for (window, batch, busy, dry) in [(64, 4, 132, 104), (5, 4, 102, 102), (7, 1, 103, 101)] {
        assert_eq!(marks(Need::permit(100, window, batch)), (busy, dry, Some(100)), "{window}");
        assert_eq!(marks(Need::anything(100, window)), (busy, 101, None), "{window}");
    }
    assert_eq!(marks(Need::permit(0, 1, 1)), (1, 1, Some(0)), "of the smallest window all of it");
    assert_eq!(marks(Need::anything(0, 1)), (1, 1, None));
    assert_eq!(marks(Need::all(7)), (7, 7, None));
}
