//! What a worker owns: the dispatches attached to it.
//!
//! Plain data, touched only under the token (README.md, rule 1). The mailboxes and futures of a seat live in the
//! engines' arrays; the seat knows which engines have a lane here. It does not run anything: that is `worker.rs`.

pub(crate) mod token;

use crate::lanes::Lanes;
use crate::sync::Arc;

/// The number under which a dispatch is attached to one worker.
///
/// The generation keeps a waker that outlived its dispatch from waking the next one under that number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AttachId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

struct Attachment {
    lanes: Option<Arc<dyn Lanes>>,
    generation: u32,
}

/// All that one worker owns.
#[derive(Default)]
pub(crate) struct Seat {
    attachments: Vec<Attachment>,
    attached: usize,
}

impl Seat {
    /// Adds a dispatch and says under which number.
    pub(crate) fn attach(&mut self, lanes: Arc<dyn Lanes>) -> AttachId {
        self.attached += 1;
        let free = self.attachments.iter().position(|attachment| attachment.lanes.is_none());
        let index = free.unwrap_or_else(|| {
            self.attachments.push(Attachment { lanes: None, generation: 0 });
            self.attachments.len() - 1
        });
        let attachment = &mut self.attachments[index];
        attachment.lanes = Some(lanes);
        AttachId { index: index as u32, generation: attachment.generation }
    }

    /// Takes a dispatch that ended off the seat; the caller drops it outside any access to the seat.
    pub(crate) fn detach(&mut self, index: usize) -> Option<Arc<dyn Lanes>> {
        let attachment = &mut self.attachments[index];
        let lanes = attachment.lanes.take();
        if lanes.is_some() {
            attachment.generation = attachment.generation.wrapping_add(1);
            self.attached -= 1;
        }
        lanes
    }

    /// How many numbers were given out; some may be free.
    pub(crate) fn len(&self) -> usize {
        self.attachments.len()
    }

    /// Whether no dispatch is attached.
    pub(crate) fn is_empty(&self) -> bool {
        self.attached == 0
    }

    /// The dispatch under a number.
    pub(crate) fn get(&self, index: usize) -> Option<&Arc<dyn Lanes>> {
        self.attachments[index].lanes.as_ref()
    }

    /// The dispatch that a waker was made for, if it is still attached.
    pub(crate) fn find(&self, id: AttachId) -> Option<&Arc<dyn Lanes>> {
        let attachment = self.attachments.get(id.index as usize)?;
        if attachment.generation == id.generation { attachment.lanes.as_ref() } else { None }
    }
}
