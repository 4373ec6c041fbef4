//! How work of this crate ends when it does not end well: one type per operation, and what was given comes back.

use std::error::Error;
use std::fmt;

/// What a handler's future ends with: `()` for one that cannot fail, or a `Result`.
pub trait Outcome {
    /// The handler's own error.
    type Error: Send + 'static;

    /// The outcome as a `Result`.
    ///
    /// # Errors
    /// The handler's.
    fn into_result(self) -> Result<(), Self::Error>;
}

impl Outcome for () {
    type Error = std::convert::Infallible;

    #[inline]
    fn into_result(self) -> Result<(), Self::Error> {
        Ok(())
    }
}

impl<E: Send + 'static> Outcome for Result<(), E> {
    type Error = E;

    #[inline]
    fn into_result(self) -> Result<(), E> {
        self
    }
}

/// Where every accepted message of a dispatch or keyspace went.
///
/// At the end `accepted` is the sum of the four others; before it, the difference is what is still in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Messages taken from the source or submitted, and not handed back.
    pub accepted: u64,
    /// Their handler ended well.
    pub handled: u64,
    /// Their handler failed or panicked.
    pub failed: u64,
    /// Their handler was started and dropped before it ended.
    pub cancelled: u64,
    /// Dropped without ever reaching the handler.
    pub discarded: u64,
}

impl Ledger {
    /// Messages accepted and not yet accounted for.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.accepted.saturating_sub(self.handled + self.failed + self.cancelled + self.discarded)
    }
}

/// Why a dispatch did not end well.
#[derive(Debug)]
pub enum Cause<E> {
    /// The source yielded an error.
    Source(E),
    /// The source panicked while it was polled.
    SourcePanicked {
        /// The panic's text.
        message: String,
    },
    /// The key selector, the key's hash or comparison, or the weigher, panicked; the message was discarded.
    KeyPanicked {
        /// The panic's text.
        message: String,
    },
    /// The source's message has a key longer than keys may be
    /// ([`Options::max_key_bytes`](crate::Options::max_key_bytes)); it was discarded.
    KeyTooLong {
        /// The key's length.
        bytes: usize,
        /// The longest that is accepted.
        max: usize,
    },
    /// The source's message is heavier than the whole byte budget
    /// ([`Options::weighed`](crate::Options::weighed)); it was discarded.
    TooHeavy {
        /// The message's key, as its `Debug` writes it.
        key: String,
        /// What it weighs, its key included.
        bytes: usize,
        /// The budget.
        max: usize,
    },
    /// A handler ended with an error.
    Handler {
        /// The message's key, as its `Debug` writes it.
        key: String,
        /// The handler's error.
        error: E,
    },
    /// A handler panicked.
    HandlerPanicked {
        /// The message's key, as its `Debug` writes it.
        key: String,
        /// The panic's text.
        message: String,
    },
    /// No worker thread could be started, or all of them are dead.
    NoWorker {
        /// What went wrong.
        message: String,
    },
    /// The executor was closed while the source could still yield, or before the dispatch began.
    Closed,
    /// The dispatch was cancelled.
    Cancelled,
}

impl<E: fmt::Display> fmt::Display for Cause<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source(error) => write!(f, "the source failed: {error}"),
            Self::SourcePanicked { message } => write!(f, "the source panicked: {message}"),
            Self::KeyPanicked { message } => write!(f, "selecting a message's key panicked: {message}"),
            Self::KeyTooLong { bytes, max } => key_too_long(f, *bytes, *max),
            Self::TooHeavy { key, bytes, max } => {
                write!(f, "of key {key}: ")?;
                too_heavy(f, *bytes, *max)
            }
            Self::Handler { key, error } => write!(f, "the handler of key {key} failed: {error}"),
            Self::HandlerPanicked { key, message } => {
                write!(f, "the handler of key {key} panicked: {message}")
            }
            Self::NoWorker { message } => write!(f, "no worker thread can run it: {message}"),
            Self::Closed => f.write_str("the executor is closed"),
            Self::Cancelled => f.write_str("the dispatch was cancelled"),
        }
    }
}

/// A dispatch that did not end well: why, and where its messages went.
#[derive(Debug)]
pub struct DispatchError<E> {
    /// The first failure; later ones are reported to the log, never as a second end.
    pub cause: Cause<E>,
    /// Where the accepted messages went.
    pub ledger: Ledger,
}

impl<E: fmt::Display> fmt::Display for DispatchError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.cause, f)
    }
}

impl<E: Error + 'static> Error for DispatchError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.cause {
            Cause::Source(error) | Cause::Handler { error, .. } => Some(error),
            _ => None,
        }
    }
}

fn too_heavy(f: &mut fmt::Formatter<'_>, bytes: usize, max: usize) -> fmt::Result {
    write!(f, "the message weighs {bytes} bytes with its key, and the whole budget is {max}")
}

fn key_too_long(f: &mut fmt::Formatter<'_>, bytes: usize, max: usize) -> fmt::Result {
    write!(f, "the key has {bytes} bytes, and keys may have {max}")
}

/// Why a submission was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubmitRefusal {
    /// The window is full; [`submit`](crate::Keyspace::submit) would wait for room.
    Full,
    /// The key has as many unfinished messages as it may have, and no permit of the overflow is free;
    /// [`submit`](crate::Keyspace::submit) would wait for room. Other keys are not concerned.
    KeyFull,
    /// The byte budget has no room for this message now; [`submit`](crate::Keyspace::submit) would wait for it.
    BytesFull,
    /// The message is heavier than the whole byte budget.
    TooHeavy {
        /// What it weighs, its key included.
        bytes: usize,
        /// The budget.
        max: usize,
    },
    /// The key is longer than keys may be.
    KeyTooLong {
        /// Its length.
        bytes: usize,
        /// The longest that is accepted.
        max: usize,
    },
    /// The keyspace or its executor is closed.
    Closed,
    /// An earlier message failed and the keyspace was told to end then ([`OnFailure::Fail`](crate::OnFailure)).
    Failed,
    /// No worker thread could be started, or all of them are dead.
    NoWorker,
}

impl fmt::Display for SubmitRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Full => "the window is full",
            Self::KeyFull => "the key has its limit of unfinished messages and the overflow is full",
            Self::BytesFull => "the byte budget is full",
            Self::TooHeavy { bytes, max } => return too_heavy(f, *bytes, *max),
            Self::KeyTooLong { bytes, max } => return key_too_long(f, *bytes, *max),
            Self::Closed => "the keyspace is closed",
            Self::Failed => "the keyspace failed",
            Self::NoWorker => "no worker thread can run it",
        };
        f.write_str(text)
    }
}

/// A submission that was refused, with its message.
pub struct SubmitError<M> {
    /// Why.
    pub reason: SubmitRefusal,
    /// What was to be submitted.
    pub message: M,
}

impl<M> SubmitError<M> {
    /// The message, to keep or to try again.
    #[must_use]
    pub fn into_message(self) -> M {
        self.message
    }
}

impl<M> fmt::Debug for SubmitError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubmitError").field("reason", &self.reason).finish_non_exhaustive()
    }
}

impl<M> fmt::Display for SubmitError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.reason, f)
    }
}

impl<M> Error for SubmitError<M> {}

/// A task that was refused, with its reason; the task comes back.
pub struct Rejected<T> {
    /// The task.
    pub task: T,
    /// Why.
    pub reason: RejectReason,
}

/// Why a task was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RejectReason {
    /// The executor is closed.
    Closed,
    /// The worker of this affinity could not be started; the text is the operating system's.
    Unstartable(String),
    /// The worker of this affinity died.
    Dead,
}

impl fmt::Display for RejectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the executor is closed"),
            Self::Unstartable(cause) => write!(f, "the worker thread could not be started: {cause}"),
            Self::Dead => f.write_str("the worker thread is dead"),
        }
    }
}

impl<T> fmt::Debug for Rejected<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rejected").field("reason", &self.reason).finish_non_exhaustive()
    }
}

impl<T> fmt::Display for Rejected<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the task was rejected: {}", self.reason)
    }
}

impl<T> Error for Rejected<T> {}

/// A blocking wait was asked for on a worker thread, where it could wait for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WouldBlockWorker;

impl fmt::Display for WouldBlockWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a blocking wait on a worker thread of an executor is refused: await it instead")
    }
}

impl Error for WouldBlockWorker {}
