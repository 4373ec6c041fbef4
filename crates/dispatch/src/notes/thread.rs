//! What a thread writes into notes: one note at a time, of the handler it polls, or of the function inside of it.
//!
//! Owns the threads' places for a note. Invariants: only its thread writes a place, and whoever looks at it holds its lock for a
//! look; what stood there before stands there again when the poll ends, also by a panic; a handler without a note writes none.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use wow_message::{AggregateKey, MessageId, Name};

use crate::functions::FunctionName;
use crate::notes::{Doing, HandlerName, Notes};

/// How many notes there are in this process: without any, no event function asks its thread.
pub(super) static N_NOTES: AtomicUsize = AtomicUsize::new(0);
/// Every thread that ever wrote a note and lives.
static THREADS: Mutex<Vec<Weak<Thread>>> = Mutex::new(Vec::new());

thread_local! {
    static THREAD: Arc<Thread> = Thread::introduce();
}

struct Thread {
    note: Mutex<Option<Box<Note>>>,
}

/// One thing a thread is inside of, and in whose notes it says so.
pub(crate) struct Note {
    notes: u64,
    doing: Doing,
}

impl Note {
    pub(crate) fn new(
        notes: &Notes,
        dispatcher: &Arc<str>,
        key: &AggregateKey,
        label: Name,
        message: MessageId,
    ) -> Box<Self> {
        let (dispatcher, key) = (Arc::clone(dispatcher), key.clone());
        let doing = Doing { dispatcher, key, handler: HandlerName::Message(label), message };
        Box::new(Self { notes: notes.0.number, doing })
    }
}

/// What the threads are inside of now that `is_it` picks, of these notes.
pub(super) fn doing(notes: u64, is_it: impl Fn(&Doing) -> bool) -> Option<Doing> {
    let threads: Vec<Arc<Thread>> = lock(&THREADS).iter().filter_map(Weak::upgrade).collect();
    threads.iter().find_map(|thread| {
        let note = lock(&thread.note);
        let note = note.as_ref().filter(|note| note.notes == notes && is_it(&note.doing))?;
        Some(note.doing.clone())
    })
}

impl Thread {
    fn introduce() -> Arc<Self> {
        let thread = Arc::new(Self { note: Mutex::new(None) });
        let mut threads = lock(&THREADS);
        threads.retain(|known| known.strong_count() > 0);
        threads.push(Arc::downgrade(&thread));
        thread
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread's note is this one until it is dropped, then the one before again.
struct Inside<'a>(&'a mut Option<Box<Note>>);

impl<'a> Inside<'a> {
    fn of(note: &'a mut Option<Box<Note>>) -> Self {
        swap(note);
        Self(note)
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        swap(self.0);
    }
}

fn swap(note: &mut Option<Box<Note>>) {
    // A thread that is about to end writes nothing any more.
    let _ = THREAD.try_with(|thread| std::mem::swap(&mut *lock(&thread.note), note));
}

/// Runs a handler; its thread has this note while it is inside of it.
pub(crate) async fn noted<F: Future>(mut note: Option<Box<Note>>, handling: F) -> F::Output {
    let mut handling = pin!(handling);
    poll_fn(move |cx| {
        let _inside = note.is_some().then(|| Inside::of(&mut note));
        handling.as_mut().poll(cx)
    })
    .await
}

/// Runs an event function inside of a handler; the note of the handler, if there is one, names the function meanwhile.
pub(crate) fn inside_function<R>(name: &FunctionName, call: impl FnOnce() -> R) -> R {
    /// Puts the name back that stood there before.
    struct Named(Option<HandlerName>);
    impl Drop for Named {
        fn drop(&mut self) {
            if let Some(before) = self.0.take() {
                rename(before);
            }
        }
    }
    // Relaxed: who writes notes was given them before.
    if N_NOTES.load(Ordering::Relaxed) == 0 {
        return call();
    }
    let _named = Named(rename(HandlerName::Function(name.clone())));
    call()
}

/// Gives the thread's note another name, and the one it had; None without a note.
fn rename(name: HandlerName) -> Option<HandlerName> {
    let renamed = THREAD.try_with(|thread| {
        let mut note = lock(&thread.note);
        note.as_mut().map(|note| std::mem::replace(&mut note.doing.handler, name))
    });
    renamed.ok().flatten()
}
