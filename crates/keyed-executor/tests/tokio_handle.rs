//! With the feature `tokio` and a handle, timers and tasks of tokio work inside handlers.
//!
//! Observes KM-30, KM-31: what waits for tokio holds no worker, and resumes on one.
#![cfg(all(not(keyed_loom), feature = "tokio"))]

use futures_util::stream;
use keyed_executor::KeyedExecutor;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wow_testkit::finish;

#[test]
fn tokio_timers_and_tasks_work_inside_handlers() {
    let tokio = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build()
        .expect("a runtime can start");
    let executor = KeyedExecutor::builder()
        .name("tok-handler")
        .workers(1)
        .tokio(tokio.handle().clone())
        .build()
        .expect("the settings are in range");
    let resumed: Arc<Mutex<Vec<String>>> = Arc::default();
    let names = Arc::clone(&resumed);
    let dispatch = executor.dispatch(
        stream::iter(0..50_u32),
        |n: &u32| *n,
        move |n| {
            let names = Arc::clone(&names);
            async move {
                tokio::time::sleep(Duration::from_millis(1)).await;
                let answer = tokio::spawn(async move { n + 1 }).await.expect("the task does not panic");
                assert_eq!(answer, n + 1);
                let thread = std::thread::current();
                names
                    .lock()
                    .expect("nothing panics here")
                    .push(thread.name().unwrap_or("unnamed").to_owned());
            }
        },
    );
    assert_eq!(finish(dispatch).expect("no handler fails").handled, 50);
    assert!(resumed.lock().expect("nothing panics here").iter().all(|name| name == "tok-handler-1"));
    executor.close();
    finish(executor.terminated());
}
