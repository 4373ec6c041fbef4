//! `Notes`: what each thread is inside of, so that a handler that holds its thread is named with its message.
//!
//! The executor names the dispatcher and the key of what is stuck; it knows no message. Where a dispatcher has notes, a thread
//! writes down what it polls for as long as it polls it, and whoever is told of stuck code finds it there. Invariants: a note
//! is of this moment, one thread's alone, and gone when the poll is over, also if it panics; without notes nothing is written.
//! It watches nothing itself: that is the executor's watchdog.

mod thread;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use keyed_executor::{Stuck, StuckCode};
use wow_message::{AggregateKey, MessageId, Name};

use crate::functions::FunctionName;

use thread::N_NOTES;
pub(crate) use thread::{Note, inside_function, noted};

/// What a thread that runs a handler of a dispatcher is inside of.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Doing {
    /// The label of the dispatcher's receiver, as the executor tells it.
    pub dispatcher: Arc<str>,
    /// The aggregate, or what else the dispatcher orders by.
    pub key: AggregateKey,
    /// What handles the message.
    pub handler: HandlerName,
    /// The message.
    pub message: MessageId,
}

/// What handles a message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HandlerName {
    /// The function, or the kind of dispatcher itself, for messages of this name, such as a command's.
    Message(Name),
    /// An event function.
    Function(FunctionName),
}

impl fmt::Display for HandlerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(name) => write!(f, "{name}"),
            Self::Function(name) => write!(f, "{name}"),
        }
    }
}

/// Code under a dispatcher that has held its thread for longer than `stuck_after`, told while it does.
///
/// As a log line would say it: `pay_in of bank.account/ann (bank.CommandDispatcher), message 0198…, on worker 1 for 1.2s`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StuckHandler {
    /// What the executor tells: dispatcher and key, worker, for how long, and whether the others go on meanwhile.
    pub stuck: Stuck,
    /// Which handler it is, of which message and aggregate; None if it is no handler, or came back in this very moment.
    pub doing: Option<Doing>,
}

impl fmt::Display for StuckHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(Doing { dispatcher, key, handler, message }) = &self.doing else {
            return fmt::Display::fmt(&self.stuck, f);
        };
        let (worker, held) = (self.stuck.worker + 1, self.stuck.held);
        write!(f, "{handler} of {key} ({dispatcher}), message {message}, on worker {worker} for {held:?}")
    }
}

/// Where the threads of an executor write down what they are inside of. Clones are the same notes.
///
/// A [`Service`](crate::Service) has some where it is given a hook
/// ([`ServiceBuilder::on_stuck`](crate::ServiceBuilder::on_stuck)); by hand they are wired like this:
///
/// ```
/// use std::sync::Arc;
/// use keyed_executor::KeyedExecutor;
/// use wow_dispatch::{CommandKind, Dispatcher, Notes};
/// use wow_transport::{Capacity, MemoryBus};
///
/// let notes = Notes::new();
/// let asked = notes.clone();
/// let executor = KeyedExecutor::builder().on_stuck(move |stuck| eprintln!("{}", asked.explain(stuck))).build()?;
/// let bus = Arc::new(MemoryBus::new(Capacity::default()));
/// let dispatcher = Dispatcher::new("bank.CommandDispatcher", CommandKind::new(), bus).notes(&notes);
/// # let _ = (executor, dispatcher);
/// # Ok::<(), keyed_executor::ConfigError>(())
/// ```
#[derive(Clone)]
pub struct Notes(Arc<Identity>);

/// How many notes there ever were in this process.
static N_EVER: AtomicU64 = AtomicU64::new(0);

/// Counted while it lives.
struct Identity {
    /// Tells these notes from others of the process.
    number: u64,
}

impl Notes {
    /// Notes of which nobody has written any.
    #[must_use]
    pub fn new() -> Self {
        // Relaxed: whoever writes notes was given them after this.
        N_NOTES.fetch_add(1, Ordering::Relaxed);
        Self(Arc::new(Identity { number: N_EVER.fetch_add(1, Ordering::Relaxed) }))
    }

    /// Adds to what the executor tells of stuck code which handler of which message it is. To be asked while it is told, by the
    /// executor's hook: later the thread may be elsewhere.
    #[must_use]
    pub fn explain(&self, stuck: &Stuck) -> StuckHandler {
        let doing = match &stuck.code {
            StuckCode::Handler { label, key } => self.doing(label, key),
            _ => None,
        };
        StuckHandler { stuck: stuck.clone(), doing }
    }

    /// What some thread does for this key of a dispatcher. One key is handled by one thread at a time.
    fn doing(&self, label: &str, key: &str) -> Option<Doing> {
        let is_it = |doing: &Doing| *doing.dispatcher == *label && format!("{:?}", doing.key) == key;
        thread::doing(self.0.number, is_it)
    }
}

impl Default for Notes {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Notes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Notes")
    }
}

impl Drop for Identity {
    fn drop(&mut self) {
        N_NOTES.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::pin::pin;
    use std::sync::Arc;
    use std::task::{Context, Waker};

    use wow_message::{AggregateId, MessageId, Name, NamedAggregate};

    use super::{Doing, HandlerName, Note, Notes, inside_function, noted};
    use crate::functions::FunctionName;

    const LABEL: &str = "notes.Kind";

    fn note(notes: &Notes, id: &'static str) -> Option<Box<Note>> {
        let id = AggregateId::new(NamedAggregate::new("notes", "thing"), id);
        Some(Note::new(notes, &Arc::from(LABEL), id.key(), Name::from("touch"), MessageId::next()))
    }

    /// What the notes say of a key of this module's dispatcher.
    fn doing(notes: &Notes, id: &str) -> Option<HandlerName> {
        let doing = notes.doing(LABEL, &format!("AggregateKey(notes.thing/{id})"));
        doing.map(|Doing { handler, .. }| handler)
    }

    #[test]
    fn a_note_is_there_while_its_handler_is_polled_and_at_no_other_time() {
        let (notes, others) = (Notes::new(), Notes::new());
        let touch = HandlerName::Message("touch".into());
        let handling = async {
            assert_eq!(doing(&notes, "1"), Some(touch.clone()));
            assert_eq!(doing(&notes, "2"), None, "of another key");
            assert_eq!(doing(&others, "1"), None, "in another's notes");
            let function = FunctionName { context: "a".into(), processor: "b".into(), function: "c".into() };
            let named = inside_function(&function, || doing(&notes, "1"));
            assert_eq!(named, Some(HandlerName::Function(function)));
            assert_eq!(doing(&notes, "1"), Some(touch.clone()), "and after the function");
            pending::<()>().await;
        };
        let mut handling = pin!(noted(note(&notes, "1"), handling));
        for _ in 0..2 {
            assert!(handling.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            assert_eq!(doing(&notes, "1"), None);
        }
    }

    #[test]
    fn a_panic_leaves_no_note_behind_and_the_note_around_it_stands_again() {
        let notes = Notes::new();
        let function = FunctionName { context: "a".into(), processor: "b".into(), function: "c".into() };
        let touch = Some(HandlerName::Message("touch".into()));
        let handling = async {
            let inner = noted(note(&notes, "2"), async {
                inside_function(&function, || {
                    assert_eq!(doing(&notes, "2"), Some(HandlerName::Function(function.clone())));
                    panic!("a bug of the function")
                })
            });
            let mut inner = pin!(inner);
            let polled = catch_unwind(AssertUnwindSafe(|| {
                inner.as_mut().poll(&mut Context::from_waker(Waker::noop()))
            }));
            assert!(polled.is_err());
            assert_eq!((doing(&notes, "1"), doing(&notes, "2")), (touch.clone(), None));
        };
        futures_util::FutureExt::now_or_never(noted(note(&notes, "1"), handling))
            .expect("it waits for nothing");
        assert_eq!(doing(&notes, "1"), None);
        futures_util::FutureExt::now_or_never(noted(None, ready(()))).expect("without a note too");
    }
}
