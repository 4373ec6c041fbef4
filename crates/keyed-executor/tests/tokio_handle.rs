//! With the feature `tokio` and a handle, timers and tasks of tokio work inside handlers.
//!
//! Observes KM-30, KM-31: what waits for tokio holds no worker, and resumes on one; and B-11's part of it: a thread that
//! goes on for a stuck one is inside the runtime as well.
#![cfg(all(not(keyed_loom), feature = "tokio"))]

use futures_util::stream;
use keyed_executor::{KeyedExecutor, Keyspace};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wow_testkit::{Counter, Latch, finish};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build()
        .expect("a runtime can start")
}

fn thread() -> String {
    std::thread::current().name().unwrap_or("unnamed").to_owned()
}

#[test]
fn tokio_timers_and_tasks_work_inside_handlers() {
    let tokio = runtime();
    let executor = KeyedExecutor::builder()
        .name("tok-handler")
        .workers(1)
        .rescue_threads(0)
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
                names.lock().expect("nothing panics here").push(thread());
            }
        },
    );
    assert_eq!(finish(dispatch).expect("no handler fails").handled, 50);
    assert!(resumed.lock().expect("nothing panics here").iter().all(|name| name == "tok-handler-1"));
    executor.close();
    finish(executor.terminated());
}

#[test]
fn a_spare_thread_is_inside_the_runtime_like_a_worker() {
    let tokio = runtime();
    let executor = KeyedExecutor::builder()
        .name("tok-spare")
        .workers(1)
        .rescue_threads(1)
        .tokio(tokio.handle().clone())
        .build()
        .expect("the settings are in range");
    let (entered, gate, done) = (Latch::new(), Latch::new(), Counter::new());
    let names: Arc<Mutex<Vec<String>>> = Arc::default();
    let (inside, held, count, told) = (entered.clone(), gate.clone(), done.clone(), Arc::clone(&names));
    let keyspace: Keyspace<u32, u32> = executor.keyspace(move |n| {
        let (inside, held, count, told) = (inside.clone(), held.clone(), count.clone(), Arc::clone(&told));
        async move {
            if n == 0 {
                inside.release();
                held.wait();
            } else {
                told.lock().expect("nothing panics here").push(thread());
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
            assert_eq!(tokio::spawn(async move { n + 1 }).await.expect("the task does not panic"), n + 1);
            count.add(1);
        }
    });
    keyspace.try_submit(0, 0).expect("there is room");
    entered.wait();
    for n in 1..=10 {
        keyspace.try_submit(n, n).expect("there is room");
    }
    done.wait_for(10);
    gate.release();
    let ledger = finish(keyspace.drained());
    assert_eq!((ledger.handled, ledger.failed), (11, 0));
    let names = names.lock().expect("nothing panics here");
    assert!(names.iter().all(|name| name.starts_with("rescue:tok-spare-")), "{names:?}");
    executor.close();
    finish(executor.terminated());
}
