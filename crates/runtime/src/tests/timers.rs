//! Timers: callbacks run once, in order, and not after they were cancelled; the builder refuses wrong times.

use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::journal::{Journal, Scripted};
use crate::builder::defaults;
use crate::error::BuildProblem;
use crate::stage::Stage;
use crate::timer::{SystemTimer, Timer};
use crate::timer_manual::ManualTimer;

const LIMIT: Duration = Duration::from_secs(30);

#[test]
fn system_callbacks_run_in_the_order_of_their_times() {
    let timer = SystemTimer::new();
    let (send, receive) = mpsc::channel();
    let now = timer.now();
    let mut scheduled = Vec::new();
    for step in [3_u64, 1, 2] {
        let send = send.clone();
        let at = now + Duration::from_millis(step * 10);
        scheduled.push(timer.schedule(at, Box::new(move || send.send(step).unwrap())).unwrap());
    }
    let order: Vec<u64> = (0..3).map(|_| receive.recv_timeout(LIMIT).unwrap()).collect();
    assert_eq!(order, [1, 2, 3]);
}

#[test]
fn a_cancelled_callback_never_runs_and_the_timer_goes_on_after_a_panic() {
    let timer = SystemTimer::new();
    let (send, receive) = mpsc::channel();
    let cancelled = send.clone();
    let now = timer.now();
    let far = now + Duration::from_secs(3_600);
    drop(timer.schedule(far, Box::new(move || cancelled.send("cancelled").unwrap())).unwrap());
    let _broken = timer.schedule(now, Box::new(|| panic!("a callback breaks"))).unwrap();
    let _kept = timer.schedule(now, Box::new(move || send.send("kept").unwrap())).unwrap();
    assert_eq!(receive.recv_timeout(LIMIT), Ok("kept"));
    assert_eq!(receive.recv_timeout(LIMIT), Err(mpsc::RecvTimeoutError::Disconnected));
}

#[test]
fn a_timer_whose_thread_ended_starts_another() {
    let timer = SystemTimer::new();
    for n in 0..20 {
        let (send, receive) = mpsc::channel();
        let _scheduled = timer.schedule(timer.now(), Box::new(move || send.send(n).unwrap())).unwrap();
        assert_eq!(receive.recv_timeout(LIMIT), Ok(n));
    }
}

#[test]
fn manual_callbacks_see_the_time_they_were_set_for() {
    let timer = ManualTimer::new();
    let start = timer.now();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut scheduled = Vec::new();
    for step in [20_u64, 10] {
        let (inner, seen) = (timer.clone(), Arc::clone(&seen));
        let callback = Box::new(move || seen.lock().unwrap().push(inner.now() - start));
        scheduled.push(timer.schedule(start + Duration::from_secs(step), callback).unwrap());
    }
    timer.advance(Duration::from_secs(15));
    timer.advance(Duration::from_secs(15));
    assert_eq!(*seen.lock().unwrap(), [Duration::from_secs(10), Duration::from_secs(20)]);
    assert_eq!(timer.pending(), 0);
}

#[test]
fn the_builder_refuses_every_wrong_value_at_once() {
    let executor = keyed_executor::KeyedExecutor::new(keyed_executor::Config::default()).unwrap();
    let journal = Journal::default();
    let twice: Arc<dyn crate::Component> = Arc::new(Scripted::new("twice", &journal));
    let error = crate::Runtime::builder(executor.clone())
        .component(Stage::COMMANDS, Arc::clone(&twice))
        .component(Stage::EVENTS, twice)
        .component(Stage::EVENTS, Arc::new(Scripted::new("twice", &journal)))
        .shutdown_timeout(Duration::MAX)
        .quiet_period(Duration::MAX)
        .build()
        .expect_err("three problems");
    assert!(matches!(
        error.problems(),
        [
            BuildProblem::ShutdownTimeout(_),
            BuildProblem::QuietPeriod { .. },
            BuildProblem::SameComponent { .. }
        ]
    ));
    assert!(executor.is_closed());
    let zero = keyed_executor::KeyedExecutor::new(keyed_executor::Config::default()).unwrap();
    let error = crate::Runtime::builder(zero).shutdown_timeout(Duration::ZERO).build().expect_err("zero");
    assert_eq!(error.problems().len(), 2, "{error}");
}

#[test]
fn components_are_ordered_by_stage_and_then_as_added() {
    let executor = keyed_executor::KeyedExecutor::new(keyed_executor::Config::default()).unwrap();
    let journal = Journal::default();
    let part = |name| -> Arc<dyn crate::Component> { Arc::new(Scripted::new(name, &journal)) };
    let runtime = crate::Runtime::builder(executor)
        .component(Stage::SNAPSHOTS, part("snapshots"))
        .component(Stage::EVENTS, part("events-1"))
        .component(Stage::COMMANDS, part("commands"))
        .component(Stage::EVENTS, part("events-2"))
        .component(Stage::RESOURCES, part("writers"))
        .shutdown_timeout(defaults::SHUTDOWN_TIMEOUT)
        .build()
        .unwrap();
    let order: Vec<&str> = runtime.components().collect();
    assert_eq!(order, ["writers", "commands", "events-1", "events-2", "snapshots"]);
}
