//! What a worker owns: the dispatches attached to it.
//!
//! Plain data, touched only under the token (README.md, rule 1). The mailboxes and futures of a seat live in the
//! engines' arrays; the seat knows which engines have a lane here, and which of them are *warm*: those get a round each
//! time. The others are cold: dry, settled, and asked for news now and then only, so that thousands of idle ones cost a
//! busy worker little. It does not run anything: that is `worker/rounds.rs`.

pub(crate) mod inside;
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

/// A seat with no more dispatches than this keeps all of them warm.
const FEW: usize = 8;

/// What a dispatch's last round on this seat left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Remains {
    /// More is ready.
    Work,
    /// Nothing is.
    Nothing,
}

struct Attachment {
    lanes: Option<Arc<dyn Lanes>>,
    generation: u32,
    is_warm: bool,
    left: Remains,
    /// It had a round since it was last tidied up.
    is_untidy: bool,
}

/// All that one worker owns.
#[derive(Default)]
pub(crate) struct Seat {
    attachments: Vec<Attachment>,
    /// Numbers that are free.
    free: Vec<u32>,
    /// Which get a round each time, in the order of their rounds.
    warm: Vec<u32>,
    /// Which had a round since they were last tidied up.
    untidy: Vec<u32>,
}

impl Seat {
    /// Adds a dispatch and says under which number.
    pub(crate) fn attach(&mut self, lanes: Arc<dyn Lanes>) -> AttachId {
        let index = self.free.pop().unwrap_or_else(|| {
            self.attachments.push(Attachment {
                lanes: None,
                generation: 0,
                is_warm: false,
                left: Remains::Work,
                is_untidy: false,
            });
            self.attachments.len() as u32 - 1
        });
        let attachment = &mut self.attachments[index as usize];
        attachment.lanes = Some(lanes);
        let generation = attachment.generation;
        self.warm_up(index as usize);
        AttachId { index, generation }
    }

    /// The dispatch has something to do here, or may have: it gets rounds from now on.
    pub(crate) fn warm_up(&mut self, index: usize) {
        let attachment = &mut self.attachments[index];
        attachment.left = Remains::Work;
        if !std::mem::replace(&mut attachment.is_warm, true) {
            self.warm.push(index as u32);
        }
        if !std::mem::replace(&mut attachment.is_untidy, true) {
            self.untidy.push(index as u32);
        }
    }

    /// As [`warm_up`](Self::warm_up), for a dispatch whose number is not at hand.
    pub(crate) fn warm_up_same(&mut self, lanes: &dyn Lanes) {
        let same = |attachment: &Attachment| {
            attachment.lanes.as_ref().is_some_and(|known| std::ptr::addr_eq(Arc::as_ptr(known), lanes))
        };
        if let Some(index) = self.attachments.iter().position(same) {
            self.warm_up(index);
        }
    }

    /// The number of the warm dispatch at a position.
    pub(crate) fn warm_at(&self, position: usize) -> Option<usize> {
        self.warm.get(position).map(|index| *index as usize)
    }

    /// Notes what the round of the warm dispatch at a position left.
    pub(crate) fn had_round(&mut self, position: usize, left: Remains) {
        let attachment = &mut self.attachments[self.warm[position] as usize];
        attachment.left = left;
        if !std::mem::replace(&mut attachment.is_untidy, true) {
            self.untidy.push(self.warm[position]);
        }
    }

    /// Lets the warm dispatch at a position cool down: it is settled. False if it stays warm.
    pub(crate) fn cool_down(&mut self, position: usize) -> bool {
        let are_few = self.attachments.len() <= FEW;
        let attachment = &mut self.attachments[self.warm[position] as usize];
        if are_few || attachment.left == Remains::Work {
            return false;
        }
        attachment.is_warm = false;
        self.warm.swap_remove(position);
        true
    }

    /// Whether a dispatch is attached under this number and cold.
    pub(crate) fn is_cold(&self, index: usize) -> bool {
        let attachment = &self.attachments[index];
        !attachment.is_warm && attachment.lanes.is_some()
    }

    /// A dispatch that had a round since it was last tidied up; it counts as tidied up from here on.
    pub(crate) fn next_untidy(&mut self) -> Option<usize> {
        let index = self.untidy.pop()? as usize;
        self.attachments[index].is_untidy = false;
        Some(index)
    }

    /// Takes a dispatch that ended off the seat; the caller drops it outside any access to the seat.
    pub(crate) fn detach(&mut self, index: usize) -> Option<Arc<dyn Lanes>> {
        let attachment = &mut self.attachments[index];
        let lanes = attachment.lanes.take();
        if lanes.is_some() {
            attachment.generation = attachment.generation.wrapping_add(1);
            attachment.is_warm = false;
            self.warm.retain(|warm| *warm as usize != index);
            self.free.push(index as u32);
        }
        lanes
    }

    /// How many numbers were given out; some may be free.
    pub(crate) fn len(&self) -> usize {
        self.attachments.len()
    }

    /// Whether no dispatch is attached.
    pub(crate) fn is_empty(&self) -> bool {
        self.attachments.len() == self.free.len()
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
