//! What a run shares between its producer and its handlers: the checks, the window, the latencies.
//!
//! The checks are the same for every contender: a handler must see the message of its key that comes next (order),
//! no other handler of that key beside it (exclusion), and the payload as it was made; the producer looks that never
//! more than a window is unfinished; at the end every key must have had every message. Handlers pay two plain loads
//! and stores for it, on a cache line that belongs to their key, as a user's state would.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::feed::Feed;
use crate::gate::Gate;
use crate::latency::Latencies;
use crate::message::Message;
use crate::time::{Clock, steps_for};
use crate::timer::Timer;
use crate::window::{Keeper, Window};
use crate::workload::{GATE_KEYS, Workload};

/// Messages that may be unfinished, unless a run says otherwise.
pub const WINDOW: u64 = 256;

/// How long a handler waits for the timer of the harness.
const WAITED: Duration = Duration::from_millis(1);

/// What is known of a key: twice the number of its finished messages, plus one while one runs.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Key {
    state: AtomicU32,
}

/// What the checks found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Messages that ran before or after their turn.
    pub order: u64,
    /// Messages that ran while another one of their key did.
    pub exclusion: u64,
    /// Messages whose payload was not whole.
    pub payload: u64,
    /// Looks of the producer that saw more than a window unfinished.
    pub window: u64,
    /// Messages that were lost or ran twice.
    pub missing: u64,
}

impl Faults {
    /// Whether the contender kept every promise; one that promises no order is not held to it.
    #[must_use]
    pub fn is_clean(&self, ordered: bool) -> bool {
        let kept = self.payload == 0 && self.window == 0 && self.missing == 0;
        kept && (!ordered || self.order == 0 && self.exclusion == 0)
    }
}

#[derive(Debug, Default)]
struct Found {
    order: AtomicU64,
    exclusion: AtomicU64,
    payload: AtomicU64,
    window: AtomicU64,
}

/// One workload, ready to be run by one contender after another.
///
/// It is leaked once for each workload, so that no contender pays for counting references to it.
#[derive(Debug)]
pub struct Course {
    /// Which workload.
    pub workload: Workload,
    /// The window of contenders without one of their own, and the count of what is finished.
    pub window: Window,
    /// The latencies of the sampled messages.
    pub latencies: Latencies,
    /// The clock of the run.
    pub clock: Clock,
    pub(crate) gate: Gate,
    timer: Option<Timer>,
    pub(crate) plan: Box<[u32]>,
    pub(crate) sent: Box<[AtomicU32]>,
    keys: Box<[Key]>,
    found: Found,
    compute_steps: u64,
}

impl Course {
    /// Prepares a workload for so many messages.
    #[must_use]
    pub fn new(workload: Workload, messages: usize) -> &'static Self {
        let keys = workload.keys() as usize;
        // A producer is woken late where handlers are cheap, since a wake-up costs as much as many of them.
        let wake_after = if workload.awaits_time() { WINDOW / 16 } else { WINDOW / 2 };
        let clock = Clock::new();
        Box::leak(Box::new(Self {
            workload,
            window: Window::new(WINDOW, wake_after),
            latencies: Latencies::default(),
            clock,
            gate: Gate::new(GATE_KEYS),
            timer: workload.needs_fine_timer().then(|| Timer::start(clock, WAITED, WINDOW as usize)),
            plan: workload.plan(messages),
            sent: (0..keys).map(|_| AtomicU32::new(0)).collect(),
            keys: (0..keys).map(|_| Key::default()).collect(),
            found: Found::default(),
            compute_steps: steps_for(Duration::from_micros(2)),
        }))
    }

    /// Forgets the last run; only while no handler runs.
    pub fn reset(&self, keeper: Keeper) {
        self.window.reset(keeper);
        self.latencies.reset();
        self.gate.shut();
        self.sent.iter().for_each(|sent| sent.store(0, Ordering::SeqCst));
        self.keys.iter().for_each(|key| key.state.store(0, Ordering::SeqCst));
        for count in [&self.found.order, &self.found.exclusion, &self.found.payload, &self.found.window] {
            count.store(0, Ordering::SeqCst);
        }
    }

    /// The messages of a part of the plan, as long as the clock has not reached `until`.
    #[must_use]
    pub fn feed(&'static self, places: std::ops::Range<usize>, until: u64) -> Feed {
        Feed::new(self, places, until)
    }

    /// How long [`Work::Compute`](crate::message::Work::Compute) takes, in steps.
    #[inline]
    #[must_use]
    pub fn compute_steps(&self) -> u64 {
        self.compute_steps
    }

    /// The timer of the harness, which only handlers that wait for it ask for.
    pub(crate) fn timer(&self) -> &Timer {
        self.timer.as_ref().expect("the workload has a timer of the harness")
    }

    /// Whether all of so many messages of a key are finished.
    #[must_use]
    pub fn is_idle(&self, key: u32, sent: u32) -> bool {
        self.keys[key as usize].state.load(Ordering::Relaxed) == sent << 1
    }

    /// The first thing a handler does.
    #[inline]
    pub fn begin(&self, message: &Message) {
        let state = &self.keys[message.key as usize].state;
        // Relaxed: a contender that keeps its promise orders the handlers of a key; one that does not is found out.
        let seen = state.load(Ordering::Relaxed);
        if seen != message.sequence << 1 {
            let fault = if seen & 1 == 1 { &self.found.exclusion } else { &self.found.order };
            fault.fetch_add(1, Ordering::Relaxed);
        }
        state.store(message.sequence << 1 | 1, Ordering::Relaxed);
        if !message.is_whole() {
            self.found.payload.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The last thing a handler does.
    #[inline]
    pub fn end(&self, message: &Message) {
        let state = &self.keys[message.key as usize].state;
        if state.load(Ordering::Relaxed) != message.sequence << 1 | 1 {
            self.found.exclusion.fetch_add(1, Ordering::Relaxed);
        }
        state.store((message.sequence + 1) << 1, Ordering::Relaxed);
        if message.handed_in_at != 0 {
            self.latencies.record(self.clock.nanos().saturating_sub(message.handed_in_at));
        }
        self.window.finish();
    }

    /// A look of the producer at what is unfinished.
    pub(crate) fn look_at_window(&self, handed_in: u64) {
        if handed_in - self.window.finished() > self.window.size() {
            self.found.window.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What the checks found; only after everything ended.
    #[must_use]
    pub fn faults(&self, ordered: bool) -> Faults {
        let sent = self.sent.iter().map(|sent| sent.load(Ordering::SeqCst));
        let missing = if ordered {
            let states = self.keys.iter().map(|key| key.state.load(Ordering::SeqCst) >> 1);
            sent.zip(states).map(|(sent, ended)| u64::from(sent.abs_diff(ended))).sum()
        } else {
            sent.map(u64::from).sum::<u64>().abs_diff(self.window.finished())
        };
        Faults {
            order: self.found.order.load(Ordering::SeqCst),
            exclusion: self.found.exclusion.load(Ordering::SeqCst),
            payload: self.found.payload.load(Ordering::SeqCst),
            window: self.found.window.load(Ordering::SeqCst),
            missing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(course: &'static Course, count: usize) -> Vec<Message> {
        course.feed(0..count, u64::MAX).collect()
    }

    #[test]
    fn messages_in_order_leave_no_fault() {
        let course = Course::new(Workload::H, 10);
        for message in messages(course, 10) {
            course.begin(&message);
            course.end(&message);
        }
        assert!(course.faults(true).is_clean(true));
    }

    #[test]
    fn order_exclusion_payload_and_loss_are_found_out() {
        let course = Course::new(Workload::H, 10);
        let mut given = messages(course, 4);
        course.begin(&given[1]);
        course.begin(&given[0]);
        course.end(&given[0]);
        course.end(&given[1]);
        given[2].payload[3] ^= 1;
        course.begin(&given[2]);
        course.end(&given[2]);
        let faults = course.faults(true);
        assert_eq!((faults.order, faults.exclusion, faults.payload, faults.missing), (1, 2, 1, 1));
        assert!(!faults.is_clean(true));
        course.reset(Keeper::Harness);
        assert!(course.faults(true).is_clean(true));
    }

    #[test]
    fn more_than_a_window_is_found_out() {
        let course = Course::new(Workload::A, 1_000);
        let _ = messages(course, 1_000);
        assert!(course.faults(true).window > 0);
    }
}
