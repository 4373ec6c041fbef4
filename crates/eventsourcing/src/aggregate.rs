//! `Aggregate` and `AggregateEvent`: what an application writes to have a state sourced from events.
//!
//! Owns nothing; the state beside the root (version, owner, deletion) is [`AggregateState`](crate::AggregateState).

use std::error::Error;

/// The root of an aggregate: it changes only by its events.
///
/// `apply` must not fail and must do the same for the same events, whenever they are applied; refusing is what the command's
/// decision is for. An `apply` that panics costs the state: it is sourced again from the store.
pub trait Aggregate: Default + Send + 'static {
    /// The aggregate's name inside its bounded context.
    const NAME: &'static str;
    /// Whether commands to a space other than the aggregate's are refused.
    const SPACES: Spaces = Spaces::Ignored;
    /// What can happen to it.
    type Event: AggregateEvent;
    /// Why its commands are refused.
    type Error: Error + Send + Sync + 'static;

    /// Applies what happened.
    fn apply(&mut self, event: &Self::Event);
}

/// What can happen to an aggregate; the body of a domain event.
pub trait AggregateEvent: Send + Sync + 'static {
    /// What happened, as a name that stays when the type is renamed.
    fn name(&self) -> &'static str;

    /// The revision of the body's form.
    fn revision(&self) -> &'static str {
        "0.0.1"
    }
}

/// Whether an aggregate type lives in spaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spaces {
    /// It does not; a command's space means nothing to it.
    #[default]
    Ignored,
    /// Every aggregate lives in one space, and commands to another space are refused.
    Separate,
}
