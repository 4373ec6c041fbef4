//! An executor with a window of its own.
//!
//! For tests of what bounds messages: everything else is the default.

use keyed_executor::KeyedExecutor;

/// An executor with so many workers and such a window.
pub(crate) fn executor(name: &str, workers: usize, window: usize) -> KeyedExecutor {
    KeyedExecutor::builder()
        .name(name)
        .workers(workers)
        .max_in_flight(window)
        .build()
        .expect("the settings are in range")
}
