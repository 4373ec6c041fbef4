//! One run of one contender: open, warm up, measure, check, drop.
//!
//! It owns what a sample is. Who runs when, and what is repeated, is `rounds.rs`.

use crate::contender::Entry;
use crate::course::{Course, Faults};
use crate::latency::percentile;
use crate::usage::{Usage, Used};

/// One part in so many of the messages warms up, and at most one part in so many of the time: enough for contenders
/// that keep something for every key.
const WARM_UP: usize = 20;
const WARM_UP_TIME: u64 = 3;

/// How long a run may be: it ends with whichever comes first.
#[derive(Clone, Copy, Debug)]
pub struct Length {
    /// Messages of a run, warming up included.
    pub messages: usize,
    /// Time after which its producer stops.
    pub millis: u64,
}

/// What one run measured.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Messages of the measured part.
    pub messages: u64,
    /// How long they took, from the first one handed in to the last one finished.
    pub nanos: u64,
    /// What the process and the rest of the machine used meanwhile.
    pub used: Used,
    /// Latencies in microseconds: the median, p99 and p99.9.
    pub latency: [Option<f64>; 3],
    /// What the checks found, warming up included.
    pub faults: Faults,
    /// Allocations of the measured part, where they are counted.
    pub allocations: Option<u64>,
}

impl Sample {
    /// Thousands of messages a second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.messages as f64 * 1_000_000.0 / self.nanos.max(1) as f64
    }

    /// Processor time of both sides for a message, in nanoseconds.
    #[must_use]
    pub fn own_nanos_per_message(&self) -> f64 {
        self.used.own_nanos as f64 / self.messages.max(1) as f64
    }

    /// Context switches for a thousand messages.
    #[must_use]
    pub fn switches_per_thousand(&self) -> f64 {
        self.used.switches as f64 * 1_000.0 / self.messages.max(1) as f64
    }

    /// Allocations for a message.
    #[must_use]
    pub fn allocations_per_message(&self) -> Option<f64> {
        self.allocations.map(|count| count as f64 / self.messages.max(1) as f64)
    }

    /// The share of all processors that others took during the run.
    #[must_use]
    pub fn share_of_others(&self) -> f64 {
        let processors = std::thread::available_parallelism().map_or(1, usize::from) as f64;
        self.used.other_nanos as f64 / (self.nanos.max(1) as f64 * processors)
    }
}

/// Runs one contender once. `allocations` tells the allocations of the process so far, where they are counted.
#[must_use]
pub fn run(
    entry: &Entry,
    course: &'static Course,
    length: Length,
    allocations: Option<fn() -> u64>,
) -> Sample {
    course.reset(entry.keeper());
    let mut contender = (entry.open)(course);
    let warm = length.messages / WARM_UP;
    let millis = length.millis * 1_000_000;
    contender.feed(course.feed(0..warm, course.clock.nanos() + millis / WARM_UP_TIME));
    course.latencies.reset();
    let messages_before = course.window.finished();

    let allocated_before = allocations.map(|count| count());
    let before = Usage::now();
    let started_at = course.clock.nanos();
    contender.feed(course.feed(warm..length.messages, started_at + millis));
    let nanos = course.clock.nanos() - started_at;
    let used = Usage::now().since(before);
    let allocations = allocations.zip(allocated_before).map(|(count, before)| count() - before);

    let messages = course.window.finished() - messages_before;
    drop(contender);
    let sorted = course.latencies.sorted();
    let latency = [0.5, 0.99, 0.999].map(|share| percentile(&sorted, share));
    let faults = course.faults(entry.ordered);
    Sample { messages, nanos, used, latency, faults, allocations }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contender::{ALL, Contender, Door, Family, Handlers};
    use crate::feed::Feed;
    use crate::workload::Workload;

    const SHORT: Length = Length { messages: 20_000, millis: 150 };

    #[test]
    fn every_contender_keeps_its_promises_on_every_workload() {
        for workload in Workload::ALL {
            let course = Course::new(workload, SHORT.messages);
            for entry in ALL.iter().filter(|entry| entry.takes(workload)) {
                let sample = run(entry, course, SHORT, None);
                assert!(sample.messages > 0, "{} on {workload:?} did nothing", entry.id);
                assert!(sample.faults.is_clean(entry.ordered), "{} on {workload:?}: {sample:?}", entry.id);
            }
        }
    }

    /// Two threads, and every message goes to the one whose turn it is.
    struct Disorderly(&'static Course);

    impl Contender for Disorderly {
        fn feed(&mut self, feed: Feed) {
            let mut held: Option<crate::message::Message> = None;
            for message in feed {
                match held.take() {
                    None => held = Some(message),
                    Some(first) => {
                        self.0.handle_blocking(&message);
                        self.0.handle_blocking(&first);
                    }
                }
            }
        }
    }

    #[test]
    fn a_contender_that_swaps_and_loses_messages_is_broken() {
        let entry = Entry {
            id: "disorderly",
            name: "disorderly",
            family: Family::Lane,
            door: Door::Thread,
            handlers: Handlers::Plain,
            ordered: true,
            open: |course| Box::new(Disorderly(course)),
        };
        let course = Course::new(Workload::H, 2_020);
        let sample = run(&entry, course, Length { messages: 2_020, millis: 1_000 }, None);
        assert!(sample.faults.order > 0);
        assert!(sample.faults.missing > 0);
        assert!(!sample.faults.is_clean(true));
    }
}
