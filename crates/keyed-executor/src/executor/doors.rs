//! The two doors for messages: a source that is pulled, and a keyspace that is submitted to.
//!
//! Each in a short form and one with options; what is behind them is `source.rs` and `keyspace.rs`. Nothing happens here but
//! that a default is filled in.

use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;

use futures_core::Stream;

use super::KeyedExecutor;
use crate::dispatch::Dispatch;
use crate::error::Outcome;
use crate::keyspace::{self, Keyspace};
use crate::options::{OnFailure, Options};
use crate::source::{self, Items};
use crate::sync::Arc;
use crate::weigh::Weigh;

impl KeyedExecutor {
    /// Runs every message of `source` through `handler`, in order per `key`, until the source and everything accepted
    /// ended.
    ///
    /// The source is polled only while the window has room. The first failed message ends the dispatch.
    ///
    /// # Errors
    /// The handle resolves with the first failure: the handler's, the key selector's, or a closed executor.
    pub fn dispatch<S, K, M, KF, H, F, E>(&self, source: S, key: KF, handler: H) -> Dispatch<E>
    where
        S: Stream<Item = M> + Send + 'static,
        K: Hash + Eq + Debug + Send + Sync + 'static,
        M: Send + 'static,
        KF: Fn(&M) -> K + Send + 'static,
        H: Fn(M) -> F + Send + Sync + 'static,
        F: Future + Send + 'static,
        F::Output: Outcome<Error = E>,
        E: Send + 'static,
    {
        self.dispatch_with(Options::new("dispatch"), source, key, handler)
    }

    /// [`dispatch`](Self::dispatch) with a label, bounds and a failure policy of its own.
    ///
    /// # Errors
    /// As [`dispatch`](Self::dispatch), as far as the policy lets a failed message end it.
    pub fn dispatch_with<W, S, K, M, KF, H, F, E>(
        &self,
        options: Options<W>,
        source: S,
        key: KF,
        handler: H,
    ) -> Dispatch<E>
    where
        W: Weigh<K, M>,
        S: Stream<Item = M> + Send + 'static,
        K: Hash + Eq + Debug + Send + Sync + 'static,
        M: Send + 'static,
        KF: Fn(&M) -> K + Send + 'static,
        H: Fn(M) -> F + Send + Sync + 'static,
        F: Future + Send + 'static,
        F::Output: Outcome<Error = E>,
        E: Send + 'static,
    {
        self.try_dispatch_with(options, Items::new(source), key, handler)
    }

    /// [`dispatch`](Self::dispatch) of a source that can fail; its error ends the dispatch.
    ///
    /// # Errors
    /// As [`dispatch`](Self::dispatch), and the source's.
    pub fn try_dispatch<S, K, M, KF, H, F, E>(&self, source: S, key: KF, handler: H) -> Dispatch<E>
    where
        S: Stream<Item = Result<M, E>> + Send + 'static,
        K: Hash + Eq + Debug + Send + Sync + 'static,
        M: Send + 'static,
        KF: Fn(&M) -> K + Send + 'static,
        H: Fn(M) -> F + Send + Sync + 'static,
        F: Future + Send + 'static,
        F::Output: Outcome<Error = E>,
        E: Send + 'static,
    {
        self.try_dispatch_with(Options::new("dispatch"), source, key, handler)
    }

    /// [`try_dispatch`](Self::try_dispatch) with a label, bounds and a failure policy of its own.
    ///
    /// # Errors
    /// As [`try_dispatch`](Self::try_dispatch), as far as the policy lets a failed message end it.
    pub fn try_dispatch_with<W, S, K, M, KF, H, F, E>(
        &self,
        options: Options<W>,
        source: S,
        key: KF,
        handler: H,
    ) -> Dispatch<E>
    where
        W: Weigh<K, M>,
        S: Stream<Item = Result<M, E>> + Send + 'static,
        K: Hash + Eq + Debug + Send + Sync + 'static,
        M: Send + 'static,
        KF: Fn(&M) -> K + Send + 'static,
        H: Fn(M) -> F + Send + Sync + 'static,
        F: Future + Send + 'static,
        F::Output: Outcome<Error = E>,
        E: Send + 'static,
    {
        source::start(Arc::clone(&self.guard), options, source, key, handler)
    }

    /// A door for direct submission: `handler` runs in order per key. A failed message is counted and logged, and its
    /// key goes on ([`OnFailure::Continue`]).
    pub fn keyspace<K, M, H, F>(&self, handler: H) -> Keyspace<K, M>
    where
        K: Hash + Eq + Debug + Send + Sync + 'static,
        M: Send + 'static,
        H: Fn(M) -> F + Send + Sync + 'static,
        F: Future + Send + 'static,
        F::Output: Outcome,
    {
        self.keyspace_with(Options::new("keyspace").on_failure(OnFailure::Continue), handler)
    }

    /// [`keyspace`](Self::keyspace) with a label, bounds and a failure policy of its own.
    pub fn keyspace_with<W, K, M, H, F>(&self, options: Options<W>, handler: H) -> Keyspace<K, M>
    where
        W: Weigh<K, M>,
        K: Hash + Eq + Debug + Send + Sync + 'static,
        M: Send + 'static,
        H: Fn(M) -> F + Send + Sync + 'static,
        F: Future + Send + 'static,
        F::Output: Outcome,
    {
        keyspace::open(Arc::clone(&self.guard), options, handler)
    }
}
