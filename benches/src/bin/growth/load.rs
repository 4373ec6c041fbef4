//! One point of a series: an executor, what is open on it, and messages through one door.
//!
//! Messages are as large as those of the workloads, 96 bytes, and handlers add them up. Timed is from the first message
//! to the last that is handled, on an executor that has handled some before; opening and closing are not timed. The
//! messages that wait in `live-keys` are dropped at the end.

use std::future::{Future, pending};
use std::hint::black_box;
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use futures_util::{Stream, stream};
use keyed_executor::{Dispatch, KeyedExecutor, Keyspace, Options};
use wow_testkit::finish_within;

/// Handled before a point is timed.
const WARM_UP: u64 = 20_000;
/// Far beyond what a point takes.
const PATIENCE: Duration = Duration::from_secs(600);

/// How messages come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    Submit,
    Dispatch,
}

impl Door {
    pub(crate) const BOTH: [Self; 2] = [Self::Submit, Self::Dispatch];
}

/// What a point is made of.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) workers: usize,
    pub(crate) window: usize,
    pub(crate) keys: u64,
    pub(crate) messages: u64,
    /// So often, one after the other.
    pub(crate) runs: u64,
    /// Keys with a message that waits all the time: half of them beside the others, half behind a door of their own,
    /// since what waits behind one door must leave a batch of its window free (KW-4).
    pub(crate) waiting: u64,
    /// Keyspaces or dispatches that share the messages.
    pub(crate) open: usize,
    /// Those that have none.
    pub(crate) idle: usize,
    pub(crate) producers: usize,
}

impl Default for Load {
    fn default() -> Self {
        Self {
            workers: 2,
            window: 256,
            keys: 10_000,
            messages: super::MESSAGES,
            runs: 1,
            waiting: 0,
            open: 1,
            idle: 0,
            producers: 1,
        }
    }
}

/// What was measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// Messages a second.
    pub(crate) rate: f64,
    /// Processor time of all threads for a message, in nanoseconds.
    pub(crate) cpu_ns: f64,
}

#[derive(Clone, Copy)]
struct Message {
    key: u64,
    waits: bool,
    parts: [u64; 10],
}

impl Message {
    fn new(load: &Load, n: u64) -> Self {
        // Every key equally often, neighbours far apart.
        Self { key: n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % load.keys, waits: false, parts: [n; 10] }
    }

    fn waiting(load: &Load, n: u64) -> Self {
        Self { key: load.keys + n, waits: true, parts: [n; 10] }
    }
}

/// Counts what was handled beside messages that never end, and tells a thread that waits for all of it.
struct Counter {
    handled: AtomicU64,
    wanted: AtomicU64,
    waits: Thread,
}

impl Counter {
    fn new() -> Arc<Self> {
        let (handled, wanted) = (AtomicU64::new(0), AtomicU64::new(u64::MAX));
        Arc::new(Self { handled, wanted, waits: thread::current() })
    }

    fn add(&self) {
        if self.handled.fetch_add(1, Ordering::AcqRel) + 1 == self.wanted.load(Ordering::Acquire) {
            self.waits.unpark();
        }
    }

    fn wait(&self, wanted: u64) {
        self.wanted.store(wanted, Ordering::Release);
        while self.handled.load(Ordering::Acquire) < wanted {
            // The last one may have been counted before `wanted` was set.
            thread::park_timeout(Duration::from_millis(1));
        }
    }
}

async fn handle(message: Message, counter: Option<Arc<Counter>>) {
    if message.waits {
        pending::<()>().await;
    }
    black_box(message.parts.iter().fold(message.key, |sum, part| sum.wrapping_add(*part)));
    if let Some(counter) = counter {
        counter.add();
    }
}

/// Time and processor time since it was made.
struct Stopwatch {
    started_at: Instant,
    cpu_ns: u64,
}

impl Stopwatch {
    #[expect(
        clippy::disallowed_methods,
        reason = "the clock of the executor is for the executor; this is a stopwatch"
    )]
    fn start() -> Self {
        Self { cpu_ns: cpu_ns(), started_at: Instant::now() }
    }

    /// `ended_ns` is what threads ran that have ended meanwhile.
    fn sample(&self, messages: u64, ended_ns: u64) -> Sample {
        let time = self.started_at.elapsed();
        let cpu_ns = (cpu_ns() + ended_ns).saturating_sub(self.cpu_ns);
        Sample { rate: messages as f64 / time.as_secs_f64(), cpu_ns: cpu_ns as f64 / messages as f64 }
    }
}

/// Nanoseconds that the living threads of this process have run; 0 where the system does not say.
fn cpu_ns() -> u64 {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return 0 };
    tasks.flatten().filter_map(|task| ran_ns(&task.path())).sum()
}

/// Nanoseconds that a thread has run.
fn ran_ns(thread: &Path) -> Option<u64> {
    std::fs::read_to_string(thread.join("schedstat")).ok()?.split_whitespace().next()?.parse().ok()
}

fn finish<F: Future>(future: F) -> F::Output {
    finish_within(PATIENCE, future).expect("a point ends")
}

/// Waits until nothing is in flight in any of them.
fn all_handled<'a>(keyspaces: impl IntoIterator<Item = &'a Keyspace<u64, Message>>) {
    for keyspace in keyspaces {
        let ledger = finish(keyspace.drained());
        assert_eq!(ledger.in_flight(), 0, "{ledger:?}");
    }
}

impl Load {
    pub(crate) fn run(&self, door: Door) -> Sample {
        let executor = KeyedExecutor::builder()
            .name("growth")
            .workers(self.workers)
            .max_in_flight(self.window)
            .build()
            .expect("the settings are in range");
        let sample = match door {
            Door::Submit => self.submit(&executor),
            Door::Dispatch => self.dispatch(&executor),
        };
        executor.close();
        finish(executor.terminated());
        sample
    }

    fn counter(&self) -> Option<Arc<Counter>> {
        (self.waiting > 0).then(Counter::new)
    }

    // === Submit ===

    fn submit(&self, executor: &KeyedExecutor) -> Sample {
        let counter = self.counter();
        let open = || -> Keyspace<u64, Message> {
            let counter = counter.clone();
            executor.keyspace(move |message| handle(message, counter.clone()))
        };
        let keyspaces: Vec<_> = (0..self.open).map(|_| open()).collect();
        let idle: Vec<_> = (0..self.idle).map(|_| open()).collect();
        for keyspace in &idle {
            finish(keyspace.submit(0, Message::new(self, 0))).expect("the keyspace is open");
        }
        self.produce(&keyspaces, 0, WARM_UP);
        all_handled(keyspaces.iter().chain(&idle));
        let aside = open();
        for n in 0..self.waiting {
            let message = Message::waiting(self, n);
            let keyspace = if n % 2 == 0 { &keyspaces[0] } else { &aside };
            finish(keyspace.submit(message.key, message)).expect("the keyspace is open");
        }
        let watch = Stopwatch::start();
        let ended_ns = AtomicU64::new(0);
        for _ in 0..self.runs {
            if self.producers == 1 {
                self.produce(&keyspaces, 0, self.messages);
            } else {
                let part = self.messages / self.producers as u64;
                thread::scope(|scope| {
                    for producer in 0..self.producers as u64 {
                        let (keyspaces, ended_ns) = (&keyspaces, &ended_ns);
                        scope.spawn(move || {
                            self.produce(keyspaces, producer * part, part);
                            let ran = ran_ns(Path::new("/proc/thread-self"));
                            ended_ns.fetch_add(ran.unwrap_or(0), Ordering::Relaxed);
                        });
                    }
                });
            }
            match &counter {
                Some(counter) => counter.wait(WARM_UP + self.messages),
                None => all_handled(&keyspaces),
            }
        }
        let sample = watch.sample(self.messages * self.runs, ended_ns.into_inner());
        keyspaces.iter().chain([&aside]).for_each(Keyspace::cancel);
        sample
    }

    fn produce(&self, keyspaces: &[Keyspace<u64, Message>], first: u64, messages: u64) {
        finish(async {
            for n in first..first + messages {
                let message = Message::new(self, n);
                let keyspace = &keyspaces[n as usize % keyspaces.len()];
                keyspace.submit(message.key, message).await.expect("the keyspace is open");
            }
        });
    }

    // === Dispatch ===

    fn dispatch(&self, executor: &KeyedExecutor) -> Sample {
        let counter = self.counter();
        let start = |source: Source| -> Dispatch<std::convert::Infallible> {
            let counter = counter.clone();
            let handler = move |message| {
                let handled = handle(message, counter.clone());
                async move {
                    handled.await;
                    Ok(())
                }
            };
            executor.dispatch_with(Options::new("growth"), source, |message: &Message| message.key, handler)
        };
        let of = |messages: Box<dyn Iterator<Item = Message> + Send>| -> Source {
            Box::pin(stream::iter(messages))
        };
        let numbered = |messages: u64| {
            let load = self.clone();
            Box::new((0..messages).map(move |n| Message::new(&load, n)))
        };
        let idle: Vec<_> = (0..self.idle)
            .map(|_| start(Box::pin(OneThenNothing { first: Some(Message::new(self, 0)) })))
            .collect();
        finish(start(of(numbered(WARM_UP)))).expect("no handler fails");
        if let Some(counter) = counter.clone() {
            return self.beside_waiting(&counter, |messages| start(of(messages)));
        }
        let watch = Stopwatch::start();
        for _ in 0..self.runs {
            let part = self.messages / self.open as u64;
            let running: Vec<_> = (0..self.open).map(|_| start(of(numbered(part)))).collect();
            for dispatch in running {
                finish(dispatch).expect("no handler fails");
            }
        }
        let sample = watch.sample(self.messages * self.runs, 0);
        drop(idle);
        sample
    }

    /// A source yields one half of what waits; then another yields the other half and what is timed.
    fn beside_waiting<E>(
        &self,
        counter: &Arc<Counter>,
        start: impl Fn(Box<dyn Iterator<Item = Message> + Send>) -> Dispatch<E>,
    ) -> Sample {
        let waiting = |odd: u64| {
            let load = self.clone();
            (odd..self.waiting).step_by(2).map(move |n| Message::waiting(&load, n))
        };
        let (begun, has_begun) = mpsc::channel();
        let tell = |begun: mpsc::Sender<Stopwatch>| {
            move || begun.send(Stopwatch::start()).expect("the main thread listens")
        };
        // The end of the first source is asked for only when all of it was taken.
        let taken = tell(begun.clone());
        let aside = start(Box::new(waiting(1).chain(std::iter::once_with(move || {
            taken();
            Message::waiting(&Load::default(), u64::MAX / 2)
        }))));
        let _all_wait = has_begun.recv().expect("the source is polled");
        let (timed, begins) = (self.clone(), tell(begun));
        let handled = (0..self.messages).map(move |n| {
            if n == 0 {
                begins();
            }
            Message::new(&timed, n)
        });
        let dispatch = start(Box::new(waiting(0).chain(handled)));
        let watch = has_begun.recv().expect("the source is polled");
        counter.wait(WARM_UP + self.messages);
        let sample = watch.sample(self.messages, 0);
        drop((dispatch, aside));
        sample
    }
}

type Source = Pin<Box<dyn Stream<Item = Message> + Send>>;

/// A source that yields one message and then waits for ever.
struct OneThenNothing {
    first: Option<Message>,
}

impl Stream for OneThenNothing {
    type Item = Message;

    fn poll_next(mut self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Option<Message>> {
        match self.first.take() {
            Some(message) => Poll::Ready(Some(message)),
            None => Poll::Pending,
        }
    }
}
