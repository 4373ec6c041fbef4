//! `Buses`: the buses a service sends and receives on.

use std::fmt;
use std::sync::Arc;

use wow_message::{Command, EventStream};
use wow_transport::{Capacity, MemoryBus, MessageBus};

/// One bus per kind of message.
///
/// ```
/// use wow_dispatch::Buses;
/// use wow_transport::Capacity;
///
/// let buses = Buses::memory(Capacity::Bounded(1024));
/// ```
#[derive(Clone)]
pub struct Buses {
    /// Where commands travel.
    pub commands: Arc<dyn MessageBus<Command>>,
    /// Where stored events are published.
    pub events: Arc<dyn MessageBus<EventStream>>,
}

impl Buses {
    /// Buses inside this process, with this much room per receiver: senders of commands wait for the command dispatcher, and
    /// command handlers for the slowest projection. See [`Capacity`] for what a bound costs.
    #[must_use]
    pub fn memory(capacity: Capacity) -> Self {
        Self {
            commands: Arc::new(MemoryBus::<Command>::new(capacity)),
            events: Arc::new(MemoryBus::<EventStream>::new(capacity)),
        }
    }
}

impl Default for Buses {
    fn default() -> Self {
        Self::memory(Capacity::default())
    }
}

impl fmt::Debug for Buses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Buses")
    }
}
