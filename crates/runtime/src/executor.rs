//! What the runtime needs of the executor it owns: to close it, gently or by force, and to know that it ended.
//!
//! Owns nothing. Invariant: `close` and `force_close` are idempotent, and `force_close` returns with every queued
//! message discarded. The trait exists so that the order of a shutdown can be observed in this crate's tests; it is
//! not an extension point.

use std::future::Future;
use std::pin::Pin;

use keyed_executor::KeyedExecutor;

/// The life cycle of an executor.
pub(crate) trait ExecutorLifecycle: Send + Sync + 'static {
    fn close(&self);
    fn force_close(&self);
    fn terminated(&self) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

impl ExecutorLifecycle for KeyedExecutor {
    fn close(&self) {
        KeyedExecutor::close(self);
    }

    fn force_close(&self) {
        KeyedExecutor::force_close(self);
    }

    fn terminated(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(KeyedExecutor::terminated(self))
    }
}
