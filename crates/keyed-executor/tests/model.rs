//! Random programs of submit, end, fail, panic and cancel, step by step against a plain model of what must be so.
//!
//! Observes KM-1 to KM-8, KM-27, KW-2, KW-4, KW-7, KF-7, B-1: per-key order, exclusion, the bounds (the window, with and
//! without a limit for each key and its overflow), and completeness after every step, with both doors. The model is a list of messages; it has no threads, no wake-ups and no batches.
#![cfg(not(keyed_loom))]

use keyed_executor::{KeyedExecutor, Keyspace, Ledger, OnFailure, Options};
use proptest::prelude::{Just, Strategy, prop_oneof};
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use wow_testkit::{Counter, Feed, Latch, Running, Source, eventually, finish};
use wow_testkit::{History, Message};

const KEYS: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Well,
    Failed,
    Panicked,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Sends one message for this key.
    Send(usize),
    /// Ends the running message of the n-th key that has one.
    Finish(usize, End),
}

#[derive(Clone, Debug)]
struct Program {
    workers: usize,
    window: usize,
    throughput: usize,
    /// A limit for each key, and the overflow.
    bounds: Option<(usize, usize)>,
    steps: Vec<Step>,
    /// Cancels at the end instead of finishing what is left.
    cancel: bool,
}

fn programs() -> impl Strategy<Value = Program> {
    let end = prop_oneof![4 => Just(End::Well), 1 => Just(End::Failed), 1 => Just(End::Panicked)];
    let step = prop_oneof![
        3 => (0..KEYS).prop_map(Step::Send),
        2 => (0..KEYS, end).prop_map(|(nth, end)| Step::Finish(nth, end)),
    ];
    let steps = proptest::collection::vec(step, 1..60);
    let cancel = proptest::bool::weighted(0.3);
    let bounds = proptest::option::of((1..5_usize, 0..5_usize));
    (1..4_usize, 1..12_usize, 1..4_usize, bounds, steps, cancel).prop_map(
        |(workers, window, throughput, bounds, steps, cancel)| Program {
            workers,
            window,
            throughput,
            bounds,
            steps,
            cancel,
        },
    )
}

// === impl Model ===

/// What must be so: who runs, who waits in which order, who is outside because the window is full or its key is.
#[derive(Debug, Default)]
struct Model {
    window: usize,
    limit: usize,
    overflow: usize,
    /// A source's message that was taken and has no room; None at the other door, where it stays outside.
    aside: Option<(usize, u64)>,
    from_source: bool,
    keys: BTreeMap<usize, VecDeque<u64>>,
    outside: VecDeque<(usize, u64)>,
    sent: [u64; KEYS],
    started: u64,
    ended: BTreeMap<&'static str, u64>,
}

impl Model {
    fn new(program: &Program, from_source: bool) -> Self {
        // A limit of at least the window is none.
        let bounds = program.bounds.filter(|(limit, _)| *limit < program.window);
        let (limit, overflow) = bounds.unwrap_or((usize::MAX, 0));
        Self { window: program.window, limit, overflow, from_source, ..Self::default() }
    }

    fn inside(&self) -> usize {
        self.keys.values().map(VecDeque::len).sum()
    }

    /// Permits of the window and of the overflow that are taken.
    fn permits(&self) -> (usize, usize) {
        let in_window: usize = self.keys.values().map(|queue| queue.len().min(self.limit)).sum();
        (in_window, self.inside() - in_window)
    }

    fn has_room(&self, key: usize) -> bool {
        let (in_window, in_overflow) = self.permits();
        if self.keys.get(&key).map_or(0, VecDeque::len) >= self.limit {
            return in_overflow < self.overflow;
        }
        in_window < self.window
    }

    fn send(&mut self, key: usize) {
        self.outside.push_back((key, self.sent[key]));
        self.sent[key] += 1;
        self.admit();
    }

    /// Lets in what has room, one after the other: whoever has none holds up those behind it.
    fn admit(&mut self) {
        loop {
            let from_aside = self.aside.is_some();
            let first = self.aside.or_else(|| self.outside.front().copied());
            let Some((key, number)) = first else { return };
            if self.has_room(key) && (from_aside || !self.from_source || self.permits().0 < self.window) {
                if self.aside.take().is_none() {
                    self.outside.pop_front();
                }
                let queue = self.keys.entry(key).or_default();
                queue.push_back(number);
                self.started += u64::from(queue.len() == 1);
                continue;
            }
            // A source is asked with a permit of the window in hand, whatever its next message will be.
            if self.from_source && !from_aside && self.permits().0 < self.window {
                self.aside = self.outside.pop_front();
            }
            return;
        }
    }

    /// The message that runs for the n-th live key, if any key is live.
    fn running(&self, nth: usize) -> Option<(usize, u64)> {
        let live = self.keys.len();
        let (key, queue) = self.keys.iter().nth(nth.checked_rem(live)?)?;
        Some((*key, queue[0]))
    }

    fn finish(&mut self, key: usize, end: End) {
        let queue = self.keys.get_mut(&key).expect("only a live key is finished");
        queue.pop_front();
        self.started += u64::from(!queue.is_empty());
        if queue.is_empty() {
            self.keys.remove(&key);
        }
        *self.ended.entry(if end == End::Well { "handled" } else { "failed" }).or_default() += 1;
        self.admit();
    }

    fn accepted(&self) -> u64 {
        self.sent.iter().sum::<u64>() - self.outside.len() as u64
    }

    fn ended(&self, how: &str) -> u64 {
        self.ended.get(how).copied().unwrap_or(0)
    }
}

// === impl Stage ===

/// How a test ends a running handler: it says how, and opens the latch.
type Cue = (Latch, Arc<Mutex<End>>);

/// The handlers' side: each runs until the test says how it ends.
#[derive(Clone, Default)]
struct Stage {
    started: Counter,
    running: Arc<Mutex<BTreeMap<(usize, u64), Cue>>>,
}

impl Stage {
    async fn handle(self, message: Message) -> Result<(), &'static str> {
        let running = message.start();
        let (latch, end) = (Latch::new(), Arc::new(Mutex::new(End::Well)));
        let place = (running.id().key, running.id().number);
        let cue = (latch.clone(), Arc::clone(&end));
        self.running.lock().expect("nothing panics here").insert(place, cue);
        self.started.add(1);
        latch.released().await;
        let end = *end.lock().expect("nothing panics here");
        Stage::end(running, end)
    }

    fn end(running: Running, end: End) -> Result<(), &'static str> {
        match end {
            End::Well => running.finish(),
            End::Failed => {
                running.fail();
                return Err("told to fail");
            }
            End::Panicked => {
                // Without the hook's output: thousands of them are part of the plan.
                std::panic::resume_unwind(Box::new("told to panic"));
            }
        }
        Ok(())
    }

    /// Tells a running message how to end; false if it does not run.
    fn tell(&self, place: (usize, u64), how: End) -> bool {
        let cue = self.running.lock().expect("nothing panics here").remove(&place);
        let Some((latch, end)) = cue else { return false };
        *end.lock().expect("nothing panics here") = how;
        latch.release();
        true
    }

    fn runs(&self) -> Vec<(usize, u64)> {
        self.running.lock().expect("nothing panics here").keys().copied().collect()
    }
}

// === impl Door ===

/// The two ways in.
enum Door {
    Source(keyed_executor::Dispatch<&'static str>, Feed<Message>),
    Submit { keyspace: Keyspace<usize, Message>, outside: VecDeque<Message>, accepted: u64 },
}

impl Door {
    fn open(executor: &KeyedExecutor, stage: &Stage, source: bool, bounds: Option<(usize, usize)>) -> Door {
        let mut options = Options::new("test").on_failure(OnFailure::Continue);
        if let Some((limit, overflow)) = bounds {
            options = options.max_per_key(limit).overflow(overflow);
        }
        let stage = stage.clone();
        let handler = move |message: Message| stage.clone().handle(message);
        if source {
            let (source, feed) = Source::fed();
            Door::Source(executor.dispatch_with(options, source, Message::key, handler), feed)
        } else {
            let keyspace = executor.keyspace_with(options, handler);
            Door::Submit { keyspace, outside: VecDeque::new(), accepted: 0 }
        }
    }

    fn send(&mut self, message: Message) {
        match self {
            Door::Source(_, feed) => feed.push(message),
            Door::Submit { outside, .. } => outside.push_back(message),
        }
    }

    /// Offers what waits outside, as far as there is room; how many were accepted in all.
    fn offer(&mut self) -> u64 {
        match self {
            Door::Source(_, feed) => feed.taken().get(),
            Door::Submit { keyspace, outside, accepted } => {
                while let Some(message) = outside.pop_front() {
                    if let Err(refused) = keyspace.try_submit(message.key(), message) {
                        outside.push_front(refused.into_message());
                        break;
                    }
                    *accepted += 1;
                }
                *accepted
            }
        }
    }

    fn finish(self, cancel: bool) -> Ledger {
        match self {
            Door::Source(dispatch, feed) => {
                if cancel {
                    dispatch.cancel();
                    return finish(dispatch).expect_err("it was cancelled").ledger;
                }
                feed.end();
                finish(dispatch).expect("it was told to continue")
            }
            Door::Submit { keyspace, .. } => {
                if cancel {
                    keyspace.cancel();
                }
                finish(keyspace.drained())
            }
        }
    }
}

fn run(program: &Program, source: bool) -> Result<(), TestCaseError> {
    let executor = KeyedExecutor::builder()
        .name("model")
        .workers(program.workers)
        .max_in_flight(program.window)
        .throughput(program.throughput)
        .build()
        .expect("the settings are in range");
    let history = History::bounded(0, KEYS, program.window);
    let stage = Stage::default();
    let mut door = Door::open(&executor, &stage, source, program.bounds);
    let mut model = Model::new(program, source);

    let agree = |door: &mut Door, model: &Model| {
        // The model is ahead until the executor has done what it must; then both have to be the same.
        eventually("the executor to do what the model did", || {
            let accepted = door.offer();
            let ended = history.tally().issued - history.tally().open();
            let done = (accepted, stage.started.get(), ended);
            let due = (model.accepted(), model.started, model.ended("handled") + model.ended("failed"));
            done.0 >= due.0 && done.1 >= due.1 && done.2 >= due.2
        });
        let expected: Vec<_> = model.keys.iter().map(|(key, queue)| (*key, queue[0])).collect();
        assert_eq!((stage.started.get(), stage.runs()), (model.started, expected), "the model: {model:?}");
    };
    for step in &program.steps {
        match *step {
            Step::Send(key) => {
                door.send(history.issue(key, 0));
                model.send(key);
            }
            Step::Finish(nth, end) => {
                let Some((key, number)) = model.running(nth) else { continue };
                assert!(stage.tell((key, number), end), "{number} of key {key} does not run");
                model.finish(key, end);
            }
        }
        agree(&mut door, &model);
    }
    if !program.cancel {
        while let Some((key, number)) = model.running(0) {
            assert!(stage.tell((key, number), End::Well), "{number} of key {key} does not run");
            model.finish(key, End::Well);
            agree(&mut door, &model);
        }
    }
    let ledger = door.finish(program.cancel);
    executor.close();
    let tally = history.verify();
    let running = model.keys.len() as u64;
    let waiting = (model.inside() - model.keys.len() + usize::from(model.aside.is_some())) as u64;
    assert_eq!(
        (ledger.handled, ledger.failed, ledger.cancelled, ledger.discarded),
        (model.ended("handled"), model.ended("failed"), running, waiting)
    );
    assert_eq!(ledger.accepted, tally.issued - model.outside.len() as u64);
    assert_eq!((tally.handled, tally.failed + tally.panicked), (ledger.handled, ledger.failed));
    assert_eq!((tally.cancelled, tally.discarded), (running, waiting + model.outside.len() as u64));
    Ok(())
}

/// Panics inside a program fail its case, so that it is shrunk like any other.
fn check(source: bool) {
    let config = Config { cases: 200, failure_persistence: None, ..Config::default() };
    let result = TestRunner::new(config).run(&programs(), |program| run(&program, source));
    if let Err(error) = result {
        panic!("{error}");
    }
}

#[test]
fn a_dispatch_does_what_the_model_says() {
    check(true);
}

#[test]
fn a_keyspace_does_what_the_model_says() {
    check(false);
}
