//! The producer's messages: an iterator for threads, a stream that is always ready for sources.
//!
//! It numbers the messages of every key, stamps those whose latency is sampled at the moment the producer has them,
//! and looks now and then at the clock and at the window. Invariant: whatever it yields is counted as sent.

use std::ops::Range;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::Stream;

use crate::course::Course;
use crate::message::{Message, Work, lane_of};
use crate::time::block;
use crate::workload::{KEYS, SLOW_KEYS, Workload};

/// How often the producer looks at the clock and the window, in messages.
const LOOK_EVERY: u64 = 64;
/// How many messages a paced producer hands in at once.
const PACE: u64 = 50;

/// The messages of a part of a plan.
#[derive(Debug)]
pub struct Feed {
    course: &'static Course,
    places: Range<usize>,
    /// Only these keys, where several producers share a plan: the lane, and how many there are.
    lane: Option<(usize, usize)>,
    until: u64,
    produced_before: u64,
    produced: u64,
    until_sample: u64,
    next_slow: u32,
    paced_from: Option<u64>,
    /// Messages of each key so far; its own, so that producers beside each other share no line of memory.
    sent: Box<[u32]>,
}

impl Feed {
    pub(crate) fn new(course: &'static Course, places: Range<usize>, until: u64) -> Self {
        Self {
            course,
            places,
            lane: None,
            until,
            produced_before: course.window.finished(),
            produced: 0,
            until_sample: 0,
            next_slow: 0,
            paced_from: None,
            sent: course.sent.iter().map(|sent| sent.load(Ordering::Relaxed)).collect(),
        }
    }

    /// The same messages for several producers, each with the keys of its lane, in the order of the lanes. Their
    /// window is not looked at: they run what they produce.
    #[must_use]
    pub fn split(self, lanes: usize) -> Vec<Self> {
        let part = |lane| {
            let mut part = Self::new(self.course, self.places.clone(), self.until);
            part.lane = Some((lane, lanes));
            part
        };
        (0..lanes).map(part).collect()
    }

    /// The course that it belongs to.
    #[must_use]
    pub fn course(&self) -> &'static Course {
        self.course
    }

    fn next_key(&mut self) -> Option<u32> {
        if self.produced.is_multiple_of(LOOK_EVERY) && !self.look() {
            return None;
        }
        if self.course.workload == Workload::I && self.produced % LOOK_EVERY == LOOK_EVERY / 2 {
            let slow = KEYS + self.next_slow;
            if self.course.is_idle(slow, self.sent[slow as usize]) {
                self.next_slow = (self.next_slow + 1) % SLOW_KEYS;
                return Some(slow);
            }
        }
        loop {
            let key = self.course.plan[self.places.next()?];
            match self.lane {
                Some((lane, lanes)) if lane_of(key, lanes) != lane => {}
                _ => return Some(key),
            }
        }
    }

    /// Whether there is time for more.
    #[cold]
    fn look(&self) -> bool {
        if self.lane.is_none() {
            self.course.look_at_window(self.produced_before + self.produced);
        }
        self.course.clock.nanos() < self.until
    }

    /// When the producer has the next message: now, or when its turn comes at the rate of the workload.
    fn handed_in_at(&mut self, rate: Option<u64>) -> u64 {
        let Some(rate) = rate else { return self.course.clock.nanos() };
        let from = *self.paced_from.get_or_insert_with(|| self.course.clock.nanos());
        from + self.produced / PACE * PACE * 1_000_000_000 / rate
    }

    fn pace(&mut self) {
        let Some(rate) = self.course.workload.rate() else { return };
        if self.produced.is_multiple_of(PACE) {
            let due = self.handed_in_at(Some(rate));
            let early = due.saturating_sub(self.course.clock.nanos());
            if early > 0 {
                block(Duration::from_nanos(early));
            }
        }
    }
}

impl Iterator for Feed {
    type Item = Message;

    #[inline]
    fn next(&mut self) -> Option<Message> {
        self.pace();
        let workload = self.course.workload;
        let key = self.next_key()?;
        let sent = &mut self.sent[key as usize];
        let sequence = *sent;
        *sent += 1;
        let mut handed_in_at = 0;
        if workload.looks_at(key) {
            if self.until_sample == 0 {
                self.until_sample = workload.samples_every();
                handed_in_at = self.handed_in_at(workload.rate());
            }
            self.until_sample -= 1;
        }
        let id = self.produced_before + self.produced;
        self.produced += 1;
        let work = workload.work(key);
        debug_assert!(work != Work::Block || key >= KEYS);
        Some(Message { key, sequence, id, handed_in_at, work: work.into(), payload: [id; 8] })
    }
}

impl Drop for Feed {
    /// Tells the course how many messages each key had, for the next feed and for the check at the end.
    fn drop(&mut self) {
        for (known, sent) in self.course.sent.iter().zip(&self.sent) {
            // Each key is of one feed: nobody else raises it meanwhile.
            if *sent > known.load(Ordering::Relaxed) {
                known.store(*sent, Ordering::Relaxed);
            }
        }
    }
}

impl Stream for Feed {
    type Item = Message;

    #[inline]
    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Message>> {
        Poll::Ready(self.next())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_part_goes_on_where_the_first_one_ended() {
        let course = Course::new(Workload::H, 10);
        let run = |places| {
            for message in course.feed(places, u64::MAX) {
                course.begin(&message);
                course.end(&message);
            }
        };
        run(0..4);
        run(4..10);
        assert_eq!(course.window.finished(), 10);
        assert!(course.faults(true).is_clean(true));
    }

    #[test]
    fn the_parts_of_a_split_have_every_message_once() {
        let course = Course::new(Workload::A, 5_000);
        let parts = course.feed(0..5_000, u64::MAX).split(2);
        let counts: Vec<usize> = parts.into_iter().map(Iterator::count).collect();
        assert_eq!(counts.iter().sum::<usize>(), 5_000);
        assert!(counts.iter().all(|count| *count > 2_000), "{counts:?}");
    }

    #[test]
    fn no_time_no_message() {
        let course = Course::new(Workload::A, 100);
        assert_eq!(course.feed(0..100, 0).count(), 0);
    }
}
