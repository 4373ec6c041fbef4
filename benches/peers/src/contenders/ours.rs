//! The executor of this repository by its two doors, with its own window.
//!
//! Nothing here is tuned beyond what the name says: two workers, the window of the course, and for workloads with
//! timers a tokio runtime to take them from. The rescue of stuck threads is off where it is not named.

use std::time::Duration;

use futures_executor::block_on;
use keyed_executor::{KeyedExecutor, Keyspace, SubmitRefusal};
use tokio::runtime::Runtime;

use crate::contender::{Contender, WORKERS};
use crate::course::{Course, WINDOW};
use crate::feed::Feed;
use crate::message::Message;

const SPIN: Duration = Duration::from_micros(20);

/// What is set beside the defaults.
#[derive(Clone, Copy, Default)]
struct Settings {
    spin: Duration,
    rescue: Rescue,
}

/// Whether other threads take over for stuck ones.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Rescue {
    #[default]
    Off,
    /// With as many threads as by default.
    On,
}

/// Messages are submitted by a thread.
pub(crate) fn submit(course: &'static Course) -> Box<dyn Contender> {
    Box::new(Submit::new(course, Settings::default()))
}

/// The same with workers that spin before they park.
pub(crate) fn submit_with_spin(course: &'static Course) -> Box<dyn Contender> {
    Box::new(Submit::new(course, Settings { spin: SPIN, ..Settings::default() }))
}

/// The same with threads that take over for stuck ones.
pub(crate) fn submit_with_rescue(course: &'static Course) -> Box<dyn Contender> {
    Box::new(Submit::new(course, Settings { rescue: Rescue::On, ..Settings::default() }))
}

/// Messages are taken from a source.
pub(crate) fn dispatch(course: &'static Course) -> Box<dyn Contender> {
    Box::new(Dispatch::new(course, Settings::default()))
}

/// The same with threads that take over for stuck ones.
pub(crate) fn dispatch_with_rescue(course: &'static Course) -> Box<dyn Contender> {
    Box::new(Dispatch::new(course, Settings { rescue: Rescue::On, ..Settings::default() }))
}

fn executor(course: &'static Course, settings: Settings) -> (KeyedExecutor, Option<Runtime>) {
    let Settings { spin, rescue } = settings;
    let builder = KeyedExecutor::builder().workers(WORKERS).max_in_flight(WINDOW as usize).spin(spin);
    let builder = if rescue == Rescue::Off { builder.rescue_threads(0) } else { builder };
    let timers = course.workload.needs_timers().then(timers);
    let builder = match &timers {
        Some(runtime) => builder.tokio(runtime.handle().clone()),
        None => builder,
    };
    (builder.build().expect("the values are within their ranges"), timers)
}

/// Tokio's timers need a thread of tokio that turns the clock.
fn timers() -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build()
        .expect("a runtime with one thread")
}

struct Submit {
    keyspace: Keyspace<u32, Message>,
    executor: KeyedExecutor,
    _timers: Option<Runtime>,
}

impl Submit {
    fn new(course: &'static Course, settings: Settings) -> Self {
        let (executor, timers) = executor(course, settings);
        let keyspace = executor.keyspace(move |message| course.handle(message));
        Self { keyspace, executor, _timers: timers }
    }
}

impl Contender for Submit {
    fn feed(&mut self, feed: Feed) {
        for message in feed {
            let Err(refused) = self.keyspace.try_submit(message.key, message) else { continue };
            assert_eq!(refused.reason, SubmitRefusal::Full, "the keyspace is open");
            let message = refused.into_message();
            block_on(self.keyspace.submit(message.key, message)).expect("the keyspace is open");
        }
        block_on(self.keyspace.drained());
    }
}

impl Drop for Submit {
    fn drop(&mut self) {
        self.executor.close();
        self.executor.join().expect("this is no worker");
    }
}

struct Dispatch {
    course: &'static Course,
    executor: KeyedExecutor,
    _timers: Option<Runtime>,
}

impl Dispatch {
    fn new(course: &'static Course, settings: Settings) -> Self {
        let (executor, timers) = executor(course, settings);
        Self { course, executor, _timers: timers }
    }
}

impl Contender for Dispatch {
    fn feed(&mut self, feed: Feed) {
        let course = self.course;
        let dispatch =
            self.executor.dispatch(feed, |message| message.key, move |message| course.handle(message));
        dispatch.wait().expect("this is no worker").expect("no handler fails");
    }
}

impl Drop for Dispatch {
    fn drop(&mut self) {
        self.executor.close();
        self.executor.join().expect("this is no worker");
    }
}
