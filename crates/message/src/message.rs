//! `Message`: what buses and dispatchers need to know of anything that travels, and the type-erased `Body`.

use std::any::Any;
use std::sync::Arc;

use crate::aggregate::AggregateId;
use crate::header::Header;
use crate::id::MessageId;
use crate::time::Timestamp;
use crate::topic::TopicKind;

/// A shared body of any type; handlers look at it through `downcast_ref`.
pub type Body = Arc<dyn Any + Send + Sync>;

/// Anything that travels on a bus. Clones are cheap and share everything but the header.
pub trait Message: Clone + Send + Sync + 'static {
    /// The bus family of this type of message.
    const KIND: TopicKind;

    /// The message's identity.
    fn id(&self) -> MessageId;

    /// The aggregate the message is about; what it is ordered by.
    fn aggregate_id(&self) -> &AggregateId;

    /// When it was made.
    fn create_time(&self) -> Timestamp;

    /// What travels beside the body.
    fn header(&self) -> &Header;

    /// The header, to be written while it is not read-only.
    fn header_mut(&mut self) -> &mut Header;

    /// Makes every later write to the header fail, as every bus does before it emits.
    fn make_read_only(&mut self) {
        self.header_mut().make_read_only();
    }

    /// The same message with a header of its own that can be written.
    #[must_use]
    fn writable_copy(&self) -> Self {
        let mut copy = self.clone();
        *copy.header_mut() = self.header().writable_copy();
        copy
    }
}
