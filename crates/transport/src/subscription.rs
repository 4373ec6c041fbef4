//! `Subscription`: which aggregate types a receiver wants, for which group, and who owns it.

use wow_message::{Name, NamedAggregate};

use crate::error::BlankGroup;

/// The receiver group of a subscription that names none.
pub const DEFAULT_GROUP: Name = Name::from_static("default");

/// Who a receiver belongs to, which decides whether local deliveries wait for its word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ownership {
    /// It merely observes: open from the start, never asked for a receipt.
    #[default]
    Observer,
    /// A runtime owns it: processing opens and closes, and its receipts decide local deliveries.
    Runtime,
}

/// What a receiver subscribes to.
///
/// ```
/// # use wow_message::NamedAggregate;
/// # use wow_transport::{Ownership, Subscription};
/// let subscription = Subscription::to([NamedAggregate::new("bank", "account")])
///     .group("bank.CommandDispatcher")?
///     .owned_by(Ownership::Runtime);
/// assert_eq!(subscription.receiver_group(), "bank.CommandDispatcher");
/// # Ok::<(), wow_transport::BlankGroup>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    aggregates: Vec<NamedAggregate>,
    group: Name,
    ownership: Ownership,
}

impl Subscription {
    /// A subscription of an observer to these aggregate types, for the default group; repeated types count once.
    pub fn to(aggregates: impl IntoIterator<Item = NamedAggregate>) -> Self {
        let mut distinct = Vec::new();
        for aggregate in aggregates {
            if !distinct.contains(&aggregate) {
                distinct.push(aggregate);
            }
        }
        Self { aggregates: distinct, group: DEFAULT_GROUP, ownership: Ownership::default() }
    }

    /// For this receiver group: a durable transport shares messages among its members.
    ///
    /// # Errors
    /// [`BlankGroup`] if the name is empty or only white space.
    pub fn group(mut self, group: impl Into<Name>) -> Result<Self, BlankGroup> {
        self.group = group.into();
        if self.group.trim().is_empty() { Err(BlankGroup) } else { Ok(self) }
    }

    /// With this owner.
    #[must_use]
    pub fn owned_by(mut self, ownership: Ownership) -> Self {
        self.ownership = ownership;
        self
    }

    /// The aggregate types, each once, in the order they were named.
    #[must_use]
    pub fn aggregates(&self) -> &[NamedAggregate] {
        &self.aggregates
    }

    /// The receiver group.
    #[must_use]
    pub fn receiver_group(&self) -> &Name {
        &self.group
    }

    /// The owner.
    #[must_use]
    pub fn ownership(&self) -> Ownership {
        self.ownership
    }
}
