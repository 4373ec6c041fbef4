//! A numbered message and its running handler, which tell the history what becomes of them.
//!
//! Owns the duty to report: whatever is done with a message, dropping included, is noted once. Invariant: a message ends
//! as handled, failed, panicked, cancelled, discarded or refused, and its type makes two of them impossible for safe code.

use super::History;
use crate::{Ending, Failure, Id, Script};
use std::fmt;
use std::sync::Arc;

/// A message to submit. Dropped before it is started, it counts as discarded.
#[must_use = "a message that is dropped counts as discarded"]
pub struct Message {
    id: Id,
    history: Option<Arc<History>>,
}

impl Message {
    pub(super) fn new(id: Id, history: Arc<History>) -> Message {
        Message { id, history: Some(history) }
    }

    /// Its name.
    pub fn id(&self) -> Id {
        self.id
    }

    /// The key it belongs to.
    pub fn key(&self) -> usize {
        self.id.key
    }

    /// Notes that its handler starts, here and now.
    pub fn start(mut self) -> Running {
        let history = self.history.take().expect("a message is started or dropped, and each takes it away");
        history.record_start(self.id);
        Running { id: self.id, history: Some(history) }
    }

    /// Notes that it came back to its sender.
    pub fn refuse(mut self) {
        if let Some(history) = self.history.take() {
            history.record_end(self.id, Ending::Refused);
        }
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        if let Some(history) = self.history.take() {
            history.record_end(self.id, Ending::Discarded);
        }
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Message").field(&self.id).finish()
    }
}

/// A message whose handler runs. Dropped before it is finished, it counts as cancelled, or as panicked if a panic drops it.
#[must_use = "a running handler that is dropped counts as cancelled"]
pub struct Running {
    id: Id,
    history: Option<Arc<History>>,
}

impl Running {
    /// Its name.
    pub fn id(&self) -> Id {
        self.id
    }

    /// Notes that its handler finished.
    pub fn finish(self) {
        self.end(Ending::Handled);
    }

    /// Notes that its handler reports an error.
    pub fn fail(self) {
        self.end(Ending::Failed);
    }

    /// Runs `script` as the rest of the handler and notes how it ends.
    ///
    /// # Errors
    /// The script's failure.
    ///
    /// # Cancel safety
    /// Dropping the future counts as a cancelled handler.
    pub async fn play(self, script: Script) -> Result<(), Failure> {
        let result = script.await;
        match result {
            Ok(()) => self.finish(),
            Err(_) => self.fail(),
        }
        result
    }

    fn end(mut self, ending: Ending) {
        if let Some(history) = self.history.take() {
            history.record_end(self.id, ending);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(history) = self.history.take() {
            let panicked = std::thread::panicking();
            history.record_end(self.id, if panicked { Ending::Panicked } else { Ending::Cancelled });
        }
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Running").field(&self.id).finish()
    }
}
