//! What is counted, measured and sampled, call by call: turns by their length, gauges, what a message costs, hot keys.
//!
//! Nothing here depends on how fast the machine is: where the clock is read, a bound holds however long it took.

use std::time::Duration;

use crate::figures::{Counter, Gauge, LaneFigures, TurnLengths};
use crate::hot::{Gathered, Sketch};
use crate::meter::Meter;
use crate::time::{Clock, nanos, since, ticks};

#[test]
fn a_turn_is_counted_once_where_its_length_is() {
    for messages in (0..300).chain([1_000, 65_536, usize::MAX]) {
        let lane = LaneFigures::default();
        lane.turn_ended(messages);
        let mut lengths = TurnLengths::default();
        lengths.add(&lane);
        assert_eq!(lengths.total(), 1);
        for (range, turns) in lengths.buckets() {
            assert_eq!(turns, u64::from(range.contains(&(messages as u64))), "{messages} in {range:?}");
        }
    }
}

#[test]
fn the_lengths_of_turns_leave_no_gap_and_add_up() {
    let lane = LaneFigures::default();
    for messages in [0, 1, 2, 3, 3, 200] {
        lane.turn_ended(messages);
    }
    let mut lengths = TurnLengths::default();
    lengths.add(&lane);
    lengths.add(&lane);
    assert_eq!(lengths.total(), 12);
    let buckets: Vec<_> = lengths.buckets().collect();
    assert_eq!((buckets[0].0.clone(), buckets[7].0.clone()), (0..=0, 64..=u64::MAX));
    assert!(buckets.windows(2).all(|two| two[0].0.end() + 1 == *two[1].0.start()), "{buckets:?}");
    let counts: Vec<u64> = buckets.iter().map(|(_, turns)| *turns).collect();
    assert_eq!(counts, [2, 2, 6, 0, 0, 0, 0, 2]);
}

#[test]
fn a_counter_adds_and_a_gauge_goes_up_and_down() {
    let (counter, gauge) = (Counter::default(), Gauge::default());
    counter.add(3);
    counter.add(4);
    assert_eq!(counter.get(), 7);
    for now in 1..=3 {
        gauge.up();
        assert_eq!(gauge.get(), now);
    }
    for now in (0..3).rev() {
        gauge.down();
        assert_eq!(gauge.get(), now);
    }
}

#[test]
fn a_clock_keeps_its_last_reading_and_ticks_are_near_milliseconds() {
    let clock = Clock::default();
    let before = nanos();
    let read = clock.read();
    assert!(before > 0 && before <= read && read <= nanos());
    assert_eq!(clock.last(), read);
    let tick = 1 << 20;
    assert_eq!([0, tick - 1, tick, 7 * tick + 1].map(ticks), [0, 0, 1, 7]);
    assert_eq!((since(3, 10), since(10, 10)), (7 * tick, 0));
    assert_eq!(since(u32::MAX, 1), 2 * tick, "a tick count that went around");
}

/// Waits in place until so much time has passed.
fn spend(time: Duration) {
    let start = nanos();
    while nanos() - start < time.as_nanos() as u64 {
        std::hint::spin_loop();
    }
}

#[test]
fn a_round_is_as_long_as_its_budget_and_the_cost_of_a_message_allow() {
    let clock = Clock::default();
    for (cost, budget, limit) in
        [(0, 20_000, 8), (100, 20_000, 200), (1, 20_000, 256), (30_000, 20_000, 1), (7_000, 20_000, 2)]
    {
        let mut meter = Meter::start(&clock, cost, 0, budget);
        for ran in 0..limit {
            assert!(!meter.is_used_up(), "{ran} of {limit} at {cost} ns each");
            meter.ran();
        }
        assert!(meter.is_used_up(), "{limit} at {cost} ns each");
    }
}

#[test]
fn a_cheap_handler_is_measured_now_and_then_and_a_dear_one_in_each_round() {
    let clock = Clock::default();
    for (cost, unmeasured, measured) in
        [(0, 0, true), (999, 31, false), (999, 32, true), (1_000, 0, true), (5_000, 3, true)]
    {
        let mut meter = Meter::start(&clock, cost, unmeasured, 20_000);
        meter.ran();
        meter.ran();
        let (after, left) = meter.finish(unmeasured);
        assert_eq!(left, if measured { 0 } else { unmeasured + 2 }, "{cost} ns, {unmeasured} unmeasured");
        assert!(measured || after == cost);
    }
    let idle = Meter::start(&clock, 5_000, 9, 20_000);
    assert_eq!(idle.finish(9), (5_000, 9), "a round without a message measures none");
}

#[test]
fn the_first_measurement_is_taken_as_it_is_and_later_ones_move_the_cost_by_steps() {
    let clock = Clock::default();
    let outside = nanos();
    let mut meter = Meter::start(&clock, 0, 0, 20_000);
    let inside = nanos();
    spend(Duration::from_micros(200));
    meter.ran();
    meter.ran();
    let least = (nanos() - inside) / 2;
    let (cost, _) = meter.finish(0);
    let most = (nanos() - outside) / 2;
    assert!((least..=most).contains(&cost), "{cost} is not in {least}..={most}");

    let mut meter = Meter::start(&clock, 1_000, 0, 20_000);
    spend(Duration::from_micros(100));
    meter.ran();
    assert_eq!(meter.finish(0).0, 2_750, "a quarter of at most eight times as much");
}

#[test]
fn a_key_that_takes_the_place_of_another_inherits_its_count_as_error() {
    let mut sketch = Sketch::default();
    // 32 keys: 0 ten times, the others twice, 31 once.
    for key in 0..32 {
        assert_eq!(sketch.count(key), None, "its text is not asked for at the first sample");
    }
    for _ in 0..9 {
        if let Some(at) = sketch.count(0) {
            sketch.tell(at, "zero".to_owned());
        }
    }
    for key in 1..31 {
        let at = sketch.count(key).expect("its text is asked for at the second sample");
        assert_eq!(sketch.room(at), "");
        sketch.tell(at, key.to_string());
        assert_eq!(sketch.count(0), None, "the text of this one is known");
    }
    assert_eq!(sketch.count(100), None, "it takes the place of 31");
    let at = sketch.count(100).expect("now its text is asked for");
    sketch.tell(at, "hundred".to_owned());
    let of = |sketch: &Sketch, key| {
        sketch.keys().find(|(hash, ..)| *hash == key).map(|(_, text, n, error)| (text.to_owned(), n, error))
    };
    assert_eq!(of(&sketch, 0), Some(("zero".to_owned(), 40 * 128, 0)));
    assert_eq!(of(&sketch, 1), Some(("1".to_owned(), 2 * 128, 0)));
    assert_eq!(of(&sketch, 100), Some(("hundred".to_owned(), 3 * 128, 128)));
    assert_eq!(of(&sketch, 31), None);
    let samples = 32 + 9 + 30 + 30 + 2;
    assert_eq!(sketch.among(), samples * 128);
    // What was counted long ago weighs half.
    for _ in samples..4_096 {
        sketch.count(0);
    }
    assert_eq!(sketch.among(), 2_048 * 128);
    assert_eq!(of(&sketch, 100).map(|(_, n, error)| (n, error)), Some((128, 0)));
    assert_eq!(of(&sketch, 1).map(|(_, n, _)| n), Some(128));
    assert_eq!(of(&sketch, 0).map(|(_, n, _)| n), Some(((40 + 4_096 - samples - 1) / 2 + 1) * 128));
}

#[test]
fn the_room_of_a_text_is_used_again_by_the_key_that_takes_its_place() {
    let mut sketch = Sketch::default();
    for key in (0..32).chain(0..32) {
        if let Some(at) = sketch.count(key) {
            sketch.tell(at, format!("a text of key {key}"));
        }
    }
    assert_eq!(sketch.count(100), None);
    let at = sketch.count(100).expect("its text is asked for");
    assert!(sketch.room(at).capacity() >= "a text of key 1".len());
}

#[test]
fn the_gaps_between_samples_are_random_and_128_in_the_middle() {
    let mut sketch = Sketch::default();
    let mut drawn = vec![0_u32; 256];
    let mut sum = 0;
    for _ in 0..10_000 {
        let gap = sketch.draw();
        drawn[gap] += 1;
        sum += gap;
    }
    assert_eq!(drawn[0], 0, "a gap has at least the next message");
    assert!(drawn[1..].iter().all(|times| (10..100).contains(times)), "{drawn:?}");
    assert!((126..=130).contains(&(sum / 10_000)), "{sum}");
    sketch.set_left(5);
    assert_eq!(sketch.left(), 5);
    assert!(!sketch.is_due(4) && sketch.left() == 1 && sketch.is_due(1) && sketch.is_due(2));
}

#[test]
fn the_hot_keys_of_several_lanes_are_added_and_told_in_the_order_of_their_counts() {
    let mut lanes = [Sketch::default(), Sketch::default()];
    for (lane, key, times) in [(0, 1, 6), (1, 1, 3), (0, 2, 4), (1, 3, 4), (1, 4, 2)] {
        for _ in 0..times {
            if let Some(at) = lanes[lane].count(key) {
                lanes[lane].tell(at, format!("key {key}"));
            }
        }
    }
    // Beside them, so many keys that the last ones take places of others: their errors are added up.
    for lane in &mut lanes {
        for key in 10..39 {
            lane.count(key);
        }
        for key in [50, 51, 52] {
            lane.count(key);
        }
        let at = (0..2).find_map(|_| lane.count(52)).expect("its text is asked for");
        lane.tell(at, "key 52".to_owned());
    }
    let mut gathered = Gathered::default();
    gathered.add(0, "orders", &lanes[0]);
    gathered.add(0, "orders", &lanes[1]);
    gathered.add(7, "bills", &lanes[1]);
    let among = [lanes[0].among() + lanes[1].among(), lanes[1].among()];
    let hottest = gathered.hottest(5);
    let told: Vec<_> =
        hottest.iter().map(|hot| (&*hot.dispatch, &*hot.key, hot.messages / 128, hot.among)).collect();
    assert_eq!(told[0], ("orders", "key 1", 9, among[0]));
    assert!(
        hottest.len() == 5 && hottest.windows(2).all(|two| two[0].messages >= two[1].messages),
        "{told:?}"
    );
    let both = hottest.iter().find(|hot| hot.dispatch == "orders" && hot.key == "key 52").expect("it is hot");
    assert!(both.error > 0 && both.error < both.messages, "{both:?}");
    let errors: u64 =
        lanes.iter().flat_map(Sketch::keys).filter(|(hash, ..)| *hash == 52).map(|(.., error)| error).sum();
    assert_eq!(both.error, errors);
}
