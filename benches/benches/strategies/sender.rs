//! Senders: threads that keep a number of messages under way, and how their messages fared.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use wow_message::NamedAggregate;

use crate::clock::{now, pass};
use crate::sample::{Sample, WARM_UP};
use crate::stage::{Key, Load, Stage};
use crate::usage::Usage;

/// What one sender does.
pub(crate) struct Plan {
    pub(crate) to: To,
    pub(crate) load: Load,
    /// Messages under way at once; a sender that is full goes on when half of them ended.
    pub(crate) depth: usize,
    pub(crate) counts: Counts,
}

/// Which aggregates a sender sends to.
pub(crate) enum To {
    /// A new one each time.
    Fresh(NamedAggregate),
    /// These in turn; nobody else sends to them.
    Ring(Vec<Arc<Key>>),
}

/// What of a sender's messages is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counts {
    Nothing,
    Number,
    Latency,
}

/// Where the ends of a sender's messages arrive.
pub(crate) struct Port {
    sender: Thread,
    n_under_way: AtomicUsize,
    resume_at: usize,
    counts: Counts,
    measuring: Arc<AtomicBool>,
    n_handled: AtomicU64,
    latencies: Mutex<Vec<u64>>,
}

impl Port {
    /// A message that was sent then has been handled.
    pub(crate) fn handled(&self, sent_at: Instant) {
        if self.counts != Counts::Nothing && self.measuring.load(Ordering::Relaxed) {
            self.n_handled.fetch_add(1, Ordering::Relaxed);
            if self.counts == Counts::Latency {
                let nanos = u64::try_from(sent_at.elapsed().as_nanos()).unwrap_or(u64::MAX);
                self.latencies.lock().expect("nothing panics with it").push(nanos);
            }
        }
        // Release: pairs with the Acquire of the sender that looks whether it may go on.
        let n_before = self.n_under_way.fetch_sub(1, Ordering::AcqRel);
        if n_before == self.resume_at + 1 || n_before == 1 {
            self.sender.unpark();
        }
    }

    fn wait_until(&self, below: usize) {
        while self.n_under_way.load(Ordering::Acquire) >= below {
            thread::park();
        }
    }
}

/// Runs the senders against the stage: warm up, count for `time`, stop, take the stage down.
pub(crate) fn observe(stage: Stage, plans: Vec<Plan>, time: Duration) -> Sample {
    let (measuring, stopping) = (Arc::new(AtomicBool::new(false)), AtomicBool::new(false));
    let (sample_time, used, ports) = thread::scope(|scope| {
        let (stage, stopping) = (&stage, &stopping);
        let senders: Vec<_> = plans
            .into_iter()
            .enumerate()
            .map(|(n, plan)| {
                let measuring = Arc::clone(&measuring);
                scope.spawn(move || send(stage, n, &plan, measuring, stopping))
            })
            .collect();
        pass(WARM_UP);
        let before = Usage::now(stage.threads());
        let began_at = now();
        measuring.store(true, Ordering::Relaxed);
        pass(time);
        measuring.store(false, Ordering::Relaxed);
        let sample_time = began_at.elapsed();
        let used = before.zip(Usage::now(stage.threads()));
        stopping.store(true, Ordering::Relaxed);
        let ports = senders.into_iter().map(|sender| sender.join().expect("a sender does not panic"));
        (sample_time, used, ports.collect::<Vec<_>>())
    });
    stage.take_down();
    let n_handled = ports.iter().map(|port| port.n_handled.load(Ordering::Relaxed)).sum();
    let latencies = ports
        .iter()
        .flat_map(|port| std::mem::take(&mut *port.latencies.lock().expect("nothing panics with it")));
    Sample::of(n_handled, sample_time, latencies.collect(), used)
}

fn send(
    stage: &Stage,
    sender: usize,
    plan: &Plan,
    measuring: Arc<AtomicBool>,
    stopping: &AtomicBool,
) -> Arc<Port> {
    let port = Arc::new(Port {
        sender: thread::current(),
        n_under_way: AtomicUsize::new(0),
        resume_at: plan.depth / 2,
        counts: plan.counts,
        measuring,
        n_handled: AtomicU64::new(0),
        latencies: Mutex::new(Vec::with_capacity(1 << 16)),
    });
    let mut n = 0_usize;
    while !stopping.load(Ordering::Relaxed) {
        port.wait_until(plan.depth);
        port.n_under_way.fetch_add(1, Ordering::Relaxed);
        match &plan.to {
            To::Fresh(named) => stage.send(&Key::new(*named, format!("cold-{sender}-{n}")), plan.load, &port),
            To::Ring(keys) => stage.send(&keys[n % keys.len()], plan.load, &port),
        }
        n += 1;
    }
    port.wait_until(1);
    port
}
