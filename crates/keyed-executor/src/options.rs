//! What one dispatch or keyspace is told, beside its executor's configuration.

/// What a failed or panicked message does to the dispatch it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    /// The first failure ends the dispatch: running handlers are cancelled, waiting messages are dropped.
    Fail,
    /// The failure is counted and logged; the next message of the key goes on.
    Continue,
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
pub struct Options {
    /// Names it in logs.
    pub label: String,
    /// Its window; None takes the executor's. Clamped into [`limits::MAX_IN_FLIGHT`](crate::limits::MAX_IN_FLIGHT).
    pub max_in_flight: Option<usize>,
    /// What a failed message does.
    pub on_failure: OnFailure,
}

impl Options {
    /// Options with a label, the executor's window, and [`OnFailure::Fail`].
    #[must_use]
    pub fn new(label: impl Into<String>) -> Self {
        Self { label: label.into(), max_in_flight: None, on_failure: OnFailure::Fail }
    }

    /// Sets the window, clamped into [`limits::MAX_IN_FLIGHT`](crate::limits::MAX_IN_FLIGHT).
    #[must_use]
    pub fn max_in_flight(mut self, window: usize) -> Self {
        let accepted = crate::limits::MAX_IN_FLIGHT;
        self.max_in_flight = Some(window.clamp(*accepted.start(), *accepted.end()));
        self
    }

    /// Sets what a failed message does.
    #[must_use]
    pub fn on_failure(mut self, policy: OnFailure) -> Self {
        self.on_failure = policy;
        self
    }
}
