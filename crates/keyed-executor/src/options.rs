//! What one dispatch or keyspace is told, beside its executor's configuration.

use crate::config::{Config, defaults, limits};
use crate::hash::KeyHash;
use crate::intake::bounds::Limits;
use crate::weigh::{Scale, Unweighed, Weigh};

/// What a failed or panicked message does to the dispatch it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    /// The first failure ends the dispatch: running handlers are cancelled, waiting messages are dropped.
    Fail,
    /// The failure is counted and logged; the next message of the key goes on.
    Continue,
}

/// Whether the order of a dispatch's or keyspace's keys is checked while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audit {
    /// It is not.
    Off,
    /// Every message is checked as it starts: that none of its key which was accepted later has been started, and none of its
    /// key runs. What is found is counted ([`DispatchMetrics::audited`](crate::DispatchMetrics::audited)), logged
    /// and told to [`Builder::on_misorder`](crate::Builder::on_misorder); it stops nothing. It costs some tens of
    /// nanoseconds a message, and up to 100 bytes for each of the window. Keys are told apart by their `Hash`, and by their
    /// `Debug` where two have the same.
    On,
}

/// Names a dispatch, bounds it and says what a failed message does.
///
/// ```
/// use keyed_executor::{OnFailure, Options};
///
/// let options = Options::new("orders").max_in_flight(64).on_failure(OnFailure::Continue);
/// assert_eq!(options.max_in_flight, Some(64));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options<W = Unweighed> {
    /// Names it in logs.
    pub label: String,
    /// Its window; None takes the executor's. Clamped into [`limits::MAX_IN_FLIGHT`](crate::limits::MAX_IN_FLIGHT).
    pub max_in_flight: Option<usize>,
    /// How many messages of one key may hold permits of the window; None takes the executor's. At least the window is no
    /// limit: the first key that is stuck may then fill it.
    pub max_per_key: Option<usize>,
    /// Messages beyond the limits of their keys, of all keys together; None takes the executor's. Without a limit it means
    /// nothing.
    pub overflow: Option<usize>,
    /// Bytes of its messages that may be accepted and not finished, by the weigher; `usize::MAX` is no budget.
    pub max_bytes: usize,
    /// The longest key, by the weigher.
    pub max_key_bytes: usize,
    /// Says what messages weigh.
    pub weigher: W,
    /// How keys are hashed.
    pub key_hash: KeyHash,
    /// What a failed message does.
    pub on_failure: OnFailure,
    /// Whether the order of its keys is checked while it runs.
    pub audit: Audit,
}

impl Options {
    /// Options with a label, the executor's window, and [`OnFailure::Fail`].
    #[must_use]
    pub fn new(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            max_in_flight: None,
            max_per_key: None,
            overflow: None,
            max_bytes: usize::MAX,
            max_key_bytes: defaults::MAX_KEY_BYTES,
            weigher: Unweighed,
            key_hash: KeyHash::Fast,
            on_failure: OnFailure::Fail,
            audit: Audit::Off,
        }
    }
}

impl<W> Options<W> {
    /// Sets the window, clamped into [`limits::MAX_IN_FLIGHT`](crate::limits::MAX_IN_FLIGHT).
    #[must_use]
    pub fn max_in_flight(mut self, window: usize) -> Self {
        let accepted = limits::MAX_IN_FLIGHT;
        self.max_in_flight = Some(window.clamp(*accepted.start(), *accepted.end()));
        self
    }

    /// Lets at most `messages` unfinished messages of one key hold permits of the window, so that a key that is stuck or
    /// hot leaves the rest of it to the others; clamped into [`limits::MAX_PER_KEY`](crate::limits::MAX_PER_KEY).
    ///
    /// What comes of a key beyond that takes a permit of the [`overflow`](Self::overflow); without a free one it is refused
    /// ([`SubmitRefusal::KeyFull`](crate::SubmitRefusal::KeyFull)), or its submitter waits, and a source is not asked until
    /// there is one.
    ///
    /// ```
    /// use keyed_executor::{KeyedExecutor, Options, SubmitRefusal};
    ///
    /// let executor = KeyedExecutor::builder().workers(1).max_in_flight(64).build()?;
    /// let options = Options::new("orders").max_per_key(1).overflow(1);
    /// let orders = executor.keyspace_with(options, |_: u32| std::future::pending::<()>());
    /// orders.try_submit("stuck", 1)?;
    /// orders.try_submit("stuck", 2)?;
    /// let refused = orders.try_submit("stuck", 3).expect_err("one runs, one waits, and no more of this key");
    /// assert_eq!(refused.reason, SubmitRefusal::KeyFull);
    /// orders.try_submit("another", 4)?;
    /// # orders.cancel();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn max_per_key(mut self, messages: usize) -> Self {
        let accepted = limits::MAX_PER_KEY;
        self.max_per_key = Some(messages.clamp(*accepted.start(), *accepted.end()));
        self
    }

    /// Sets how many messages beyond the limits of their keys there may be, of all keys together; clamped into
    /// [`limits::OVERFLOW`](crate::limits::OVERFLOW). Memory for them is taken when the dispatch or keyspace begins, as it
    /// is for the window.
    #[must_use]
    pub fn overflow(mut self, messages: usize) -> Self {
        self.overflow = Some(messages.min(*limits::OVERFLOW.end()));
        self
    }

    /// Bounds the bytes of unfinished messages beside their number: keys and messages weigh what `weigher` says, and at most
    /// `max_bytes` of them are accepted and not finished.
    ///
    /// Without room for its bytes a message is refused ([`SubmitRefusal::BytesFull`](crate::SubmitRefusal::BytesFull)), or
    /// its submitter waits, and a source is not asked until there is some. A lighter message may be accepted meanwhile; a
    /// heavy one that waits holds nobody up, and may wait as long as lighter ones go on coming. A message that is heavier
    /// than the whole budget is refused for good ([`SubmitRefusal::TooHeavy`](crate::SubmitRefusal::TooHeavy)), and from a
    /// source it ends the dispatch ([`Cause::TooHeavy`](crate::Cause::TooHeavy)): weigh before you send.
    ///
    /// ```
    /// use keyed_executor::{KeyedExecutor, Options, SubmitRefusal, Weights};
    ///
    /// let executor = KeyedExecutor::builder().workers(1).build()?;
    /// let weights = Weights { key: |key: &&str| key.len(), message: Vec::<u8>::len };
    /// let options = Options::new("uploads").weighed(100, weights);
    /// let uploads = executor.keyspace_with(options, |_: Vec<u8>| std::future::pending::<()>());
    /// uploads.try_submit("a", vec![0; 89])?;
    /// let refused = uploads.try_submit("b", vec![0; 10]).expect_err("90 of 100 are taken");
    /// assert_eq!(refused.reason, SubmitRefusal::BytesFull);
    /// let refused = uploads.try_submit("b", vec![0; 100]).expect_err("it never has room");
    /// assert_eq!(refused.reason, SubmitRefusal::TooHeavy { bytes: 101, max: 100 });
    /// # uploads.cancel();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn weighed<V>(self, max_bytes: usize, weigher: V) -> Options<V> {
        self.with(max_bytes, weigher).0
    }

    /// Sets the longest key, in the bytes that the weigher says; without a weigher it means nothing. A message with a longer
    /// one is refused ([`SubmitRefusal::KeyTooLong`](crate::SubmitRefusal::KeyTooLong)), and from a source it ends the dispatch
    /// ([`Cause::KeyTooLong`](crate::Cause::KeyTooLong)).
    #[must_use]
    pub fn max_key_bytes(mut self, bytes: usize) -> Self {
        self.max_key_bytes = bytes;
        self
    }

    /// Sets how keys are hashed: [`KeyHash::Strong`] for keys that strangers choose.
    #[must_use]
    pub fn key_hash(mut self, how: KeyHash) -> Self {
        self.key_hash = how;
        self
    }

    /// Sets whether the order of its keys is checked while it runs.
    #[must_use]
    pub fn audit(mut self, audit: Audit) -> Self {
        self.audit = audit;
        self
    }

    /// Sets what a failed message does.
    #[must_use]
    pub fn on_failure(mut self, policy: OnFailure) -> Self {
        self.on_failure = policy;
        self
    }

    /// What bounds a window beside its count.
    pub(crate) fn limits(&self, config: &Config, window: usize) -> Limits {
        let unlimited = Limits { max_bytes: self.max_bytes, ..Limits::NONE };
        match self.max_per_key.or(config.max_per_key) {
            Some(limit) if limit < window => {
                let overflow = self.overflow.unwrap_or(config.overflow).min(*limits::OVERFLOW.end());
                let per_key = limit.max(*limits::MAX_PER_KEY.start());
                Limits { per_key: per_key as u32, overflow: overflow as u32, ..unlimited }
            }
            _ => unlimited,
        }
    }

    /// The weigher with its limits, if it weighs, and the rest.
    pub(crate) fn take_scale<K: 'static, M: 'static>(self) -> (Option<Scale<K, M>>, Options)
    where
        W: Weigh<K, M>,
    {
        let (max_bytes, max_key_bytes) = (self.max_bytes, self.max_key_bytes);
        let (mut rest, weigher) = self.with(max_bytes, Unweighed);
        let scale = Scale::new(weigher, max_bytes, max_key_bytes);
        if scale.is_none() {
            rest.max_bytes = usize::MAX;
        }
        (scale, rest)
    }

    /// The same with another weigher, and the one before.
    fn with<V>(self, max_bytes: usize, weigher: V) -> (Options<V>, W) {
        let Self {
            label,
            max_in_flight,
            max_per_key,
            overflow,
            max_key_bytes,
            key_hash,
            on_failure,
            audit,
            ..
        } = self;
        let with = Options {
            label,
            max_in_flight,
            max_per_key,
            overflow,
            max_bytes,
            max_key_bytes,
            weigher,
            key_hash,
            on_failure,
            audit,
        };
        (with, self.weigher)
    }
}
