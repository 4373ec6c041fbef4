//! The `submit` door: any thread hands messages in, behind the intake's short lock.
//!
//! A submission takes a permit, finds or places the key, writes the message once and shows it to its worker; the lock
//! is held for that and for nothing of the user's but the comparison of keys. Without a permit the message comes back
//! (`try_submit`) or its submitter waits on the credit (`submit`). The last handle dropped closes the door; what was
//! accepted is finished.

mod accept;
mod core;
mod door;
mod end;
mod lanes;
mod waiting;
mod watch;

pub(crate) use core::open;

use std::fmt::{self, Debug};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use crate::credit::Ticket;
use crate::error::{Ledger, SubmitError, SubmitRefusal};
use crate::executor::Guard;
use crate::figures::DispatchMetrics;
use crate::hot::HotKey;
use crate::inspect::Inspection;
use crate::sync::Arc;

/// A message and its key, where they lie until they are taken in: moved once.
struct Given<K, M> {
    key: Option<K>,
    message: Option<M>,
}

impl<K, M> Given<K, M> {
    #[inline]
    fn new(key: K, message: M) -> Self {
        Self { key: Some(key), message: Some(message) }
    }

    #[inline]
    fn key(&self) -> &K {
        self.key.as_ref().expect(TAKEN)
    }

    #[inline]
    fn message(&self) -> &M {
        self.message.as_ref().expect(TAKEN)
    }

    #[inline]
    fn take_key(&mut self) -> K {
        self.key.take().expect(TAKEN)
    }

    #[inline]
    fn take_message(&mut self) -> M {
        self.message.take().expect(TAKEN)
    }
}

const TAKEN: &str = "a submission is not polled after it ended";

/// What a handle can ask of a keyspace, without its handler's type.
trait Door<K, M>: Send + Sync {
    /// Hands a message in, out of where it lies; `ticket` is that of a submitter that waited.
    fn try_submit(&self, given: &mut Given<K, M>, ticket: Option<Ticket>) -> Result<(), SubmitRefusal>;
    /// Waits for a permit of the window; false if there is reason to look again at once.
    fn register(&self, ticket: Ticket, waker: &Waker) -> bool;
    /// Waits for room of a key, or for bytes; false if there is reason to look again at once.
    fn register_beside_window(&self, ticket: Ticket, key: &K, message: &M, waker: &Waker) -> bool;
    /// Waits no more. One that submits may have been woken: whoever waits behind it may go on in its place.
    fn forget(&self, ticket: Ticket, submits: bool);
    fn ticket(&self) -> Ticket;
    fn in_flight(&self) -> usize;
    fn live_keys(&self) -> usize;
    fn drained(&self, ticket: Ticket, waker: &Waker) -> Option<Ledger>;
    fn close(&self);
    fn cancel(&self);
    /// A submission came back to its submitter.
    fn refused(&self, reason: SubmitRefusal);
    /// What is counted of it.
    fn metrics(&self) -> DispatchMetrics;
    /// What lives of it.
    fn inspect(&self, limit: usize) -> Inspection;
    /// What most of its messages are for.
    fn hot_keys(&self, limit: usize) -> Vec<HotKey>;
}

/// Direct submission: messages of one key run one at a time, in the order of their submission.
///
/// Clones share one window; the last clone dropped closes the keyspace, and what was accepted is finished. Made by
/// [`KeyedExecutor::keyspace`](crate::KeyedExecutor::keyspace).
///
/// ```
/// use keyed_executor::KeyedExecutor;
///
/// let executor = KeyedExecutor::builder().workers(2).build()?;
/// let orders = executor.keyspace(|amount: u64| async move {
///     assert!(amount > 0);
/// });
/// orders.try_submit("order-1", 7)?;
/// if let Err(refused) = orders.try_submit("order-1", 8) {
///     // The window is full: the message is back.
///     assert_eq!(refused.into_message(), 8);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Keyspace<K, M> {
    handle: Arc<Handle<K, M>>,
}

struct Handle<K, M> {
    door: Arc<dyn Door<K, M>>,
    /// Keeps the executor open while somebody can still submit.
    _executor: Arc<Guard>,
}

impl<K, M> Drop for Handle<K, M> {
    fn drop(&mut self) {
        self.door.close();
    }
}

impl<K, M> Clone for Keyspace<K, M> {
    fn clone(&self) -> Self {
        Self { handle: Arc::clone(&self.handle) }
    }
}

impl<K, M> Debug for Keyspace<K, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyspace").field("in_flight", &self.in_flight()).finish_non_exhaustive()
    }
}

impl<K, M> Keyspace<K, M> {
    /// Hands a message in, waiting for room in the window, and for its key's if keys have a limit
    /// ([`Options::max_per_key`](crate::Options::max_per_key)); who waits for a key holds up nobody else's.
    ///
    /// # Errors
    /// The future ends with the message if the keyspace is closed or failed, no worker can run it, or it is too heavy or its
    /// key too long for a byte budget ([`Options::weighed`](crate::Options::weighed)).
    ///
    /// # Cancel safety
    /// A future that is dropped before it is ready has submitted nothing; its message is dropped with it. Waiting
    /// submitters are woken in the order in which they began to wait; a submission that finds room does not wait
    /// behind them.
    pub fn submit(&self, key: K, message: M) -> Submit<K, M> {
        Submit { keyspace: self.clone(), given: Given::new(key, message), ticket: None }
    }

    /// Hands a message in if there is room now.
    ///
    /// # Errors
    /// The message comes back if the window is full, its key has its limit of messages, the byte budget has no room for it,
    /// the keyspace is closed or failed, or no worker can run it.
    ///
    /// # Panics
    /// If the key's hash or comparison, or the weigher, panics; nothing was submitted then.
    pub fn try_submit(&self, key: K, message: M) -> Result<(), SubmitError<M>> {
        let mut given = Given::new(key, message);
        self.handle.door.try_submit(&mut given, None).map_err(|reason| {
            self.handle.door.refused(reason);
            SubmitError { reason, message: given.take_message() }
        })
    }

    /// Messages accepted and not given back; permits come back in batches, so this may lag by one batch.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.handle.door.in_flight()
    }

    /// Keys with a message in flight, after taking back what the workers have finished.
    #[must_use]
    pub fn live_keys(&self) -> usize {
        self.handle.door.live_keys()
    }

    /// What is counted of this keyspace, as [`KeyedExecutor::metrics`](crate::KeyedExecutor::metrics) has it.
    #[must_use]
    pub fn metrics(&self) -> DispatchMetrics {
        self.handle.door.metrics()
    }

    /// The live mailboxes of this keyspace, as [`KeyedExecutor::inspect`](crate::KeyedExecutor::inspect) has them.
    #[must_use]
    pub fn inspect(&self, limit: usize) -> Inspection {
        self.handle.door.inspect(limit)
    }

    /// The hot keys of this keyspace, as [`KeyedExecutor::hot_keys`](crate::KeyedExecutor::hot_keys) has them.
    #[must_use]
    pub fn hot_keys(&self, limit: usize) -> Vec<HotKey> {
        self.handle.door.hot_keys(limit)
    }

    /// Refuses later submissions; what was accepted is finished. Idempotent.
    pub fn close(&self) {
        self.handle.door.close();
    }

    /// Refuses later submissions, drops running handlers on their worker and waiting messages with them. Idempotent.
    pub fn cancel(&self) {
        self.handle.door.cancel();
    }

    /// Waits until nothing is in flight: every message accepted up to that moment is accounted for.
    ///
    /// While others go on submitting, that moment may be far; [`close`](Self::close) first where it has to come.
    ///
    /// # Cancel safety
    /// Dropping the future stops the waiting, nothing else.
    pub fn drained(&self) -> Drained<K, M> {
        Drained { keyspace: self.clone(), ticket: None }
    }
}

/// Waits for room and hands one message in: [`Keyspace::submit`].
#[must_use = "a submission that is not awaited submits nothing"]
pub struct Submit<K, M> {
    keyspace: Keyspace<K, M>,
    given: Given<K, M>,
    ticket: Option<Ticket>,
}

// Nothing is pinned: the message is moved out when it is handed in.
impl<K, M> Unpin for Submit<K, M> {}

impl<K, M> Debug for Submit<K, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Submit").field("waiting", &self.ticket.is_some()).finish_non_exhaustive()
    }
}

impl<K, M> Future for Submit<K, M> {
    type Output = Result<(), SubmitError<M>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        loop {
            let door = &this.keyspace.handle.door;
            match door.try_submit(&mut this.given, this.ticket) {
                Err(reason @ (SubmitRefusal::Full | SubmitRefusal::KeyFull | SubmitRefusal::BytesFull)) => {
                    let ticket = *this.ticket.get_or_insert_with(|| door.ticket());
                    let waits = match reason {
                        SubmitRefusal::Full => door.register(ticket, cx.waker()),
                        _ => door.register_beside_window(
                            ticket,
                            this.given.key(),
                            this.given.message(),
                            cx.waker(),
                        ),
                    };
                    if waits {
                        return Poll::Pending;
                    }
                }
                ended => {
                    if let Some(ticket) = this.ticket.take() {
                        door.forget(ticket, true);
                    }
                    return Poll::Ready(ended.map_err(|reason| {
                        door.refused(reason);
                        SubmitError { reason, message: this.given.take_message() }
                    }));
                }
            }
        }
    }
}

impl<K, M> Drop for Submit<K, M> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.keyspace.handle.door.forget(ticket, true);
        }
    }
}

/// Waits until nothing is in flight: [`Keyspace::drained`].
#[must_use = "waiting begins when it is awaited"]
pub struct Drained<K, M> {
    keyspace: Keyspace<K, M>,
    ticket: Option<Ticket>,
}

impl<K, M> Unpin for Drained<K, M> {}

impl<K, M> Debug for Drained<K, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drained").finish_non_exhaustive()
    }
}

impl<K, M> Future for Drained<K, M> {
    type Output = Ledger;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Ledger> {
        let this = &mut *self;
        let door = &this.keyspace.handle.door;
        let ticket = *this.ticket.get_or_insert_with(|| door.ticket());
        match door.drained(ticket, cx.waker()) {
            Some(ledger) => {
                this.ticket = None;
                Poll::Ready(ledger)
            }
            None => Poll::Pending,
        }
    }
}

impl<K, M> Drop for Drained<K, M> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.keyspace.handle.door.forget(ticket, false);
        }
    }
}
