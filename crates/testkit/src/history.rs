//! The history of a run, checked while it is written.
//!
//! Owns, for every key, which messages were handed out and what became of each. Invariants it checks: messages of one
//! producer on one key start in the order they were issued; two handlers of a key never run at once; every message ends
//! exactly once; no more handlers run than the limit. It remembers every single id, not counts, but only while it is
//! open, so a run may be long; of what is over it keeps the last entries of each key to show. It knows no executor.

use crate::fault::{Fault, Id, Report};
use crate::tally::{Ending, Tally};
use crate::{Level, Seed};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

mod message;

pub use message::{Message, Running};

/// Entries of a key that a report can show.
const SHOWN: usize = 32;

/// Hands out messages and checks what becomes of them.
#[derive(Debug)]
pub struct History {
    seed: Seed,
    limit: usize,
    keys: Box<[Key]>,
    running: Level,
    faults: Mutex<Vec<Fault>>,
}

#[derive(Debug, Default)]
struct Key {
    /// Apart from the book and without its lock, so that the check of exclusion cannot create the exclusion it checks.
    running: AtomicUsize,
    book: Mutex<Book>,
}

#[derive(Debug, Default)]
struct Book {
    next: BTreeMap<usize, u64>,
    open: BTreeMap<(usize, u64), Standing>,
    tally: Tally,
    entries: VecDeque<Entry>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Waiting,
    Running,
}

#[derive(Clone, Copy, Debug)]
enum Entry {
    Issued(Id),
    Started(Id),
    Ended(Id, Ending),
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, id) = match self {
            Entry::Issued(id) => ("issued".to_owned(), id),
            Entry::Started(id) => ("started".to_owned(), id),
            Entry::Ended(id, ending) => (format!("{ending:?}").to_lowercase(), id),
        };
        write!(f, "{word:<9} {} of producer {}", id.number, id.producer)
    }
}

impl History {
    /// A history of `keys` keys, numbered from zero, without a limit on how many handlers run.
    pub fn new(seed: u64, keys: usize) -> Arc<History> {
        History::bounded(seed, keys, usize::MAX)
    }

    /// The same, and at most `limit` handlers may run at once.
    pub fn bounded(seed: u64, keys: usize, limit: usize) -> Arc<History> {
        Arc::new(History {
            seed: Seed(seed),
            limit,
            keys: (0..keys).map(|_| Key::default()).collect(),
            running: Level::new(),
            faults: Mutex::new(Vec::new()),
        })
    }

    /// The next message of `producer` for `key`. Call it in the order in which that producer submits.
    pub fn issue(self: &Arc<Self>, key: usize, producer: usize) -> Message {
        let mut book = self.book(key);
        let next = book.next.entry(producer).or_default();
        let id = Id { key, producer, number: *next };
        *next += 1;
        book.open.insert((producer, id.number), Standing::Waiting);
        book.tally.issued += 1;
        book.note(Entry::Issued(id));
        drop(book);
        Message::new(id, Arc::clone(self))
    }

    /// Handlers running now, and the most that ever ran at once.
    pub fn running(&self) -> &Level {
        &self.running
    }

    /// What became of the messages so far.
    pub fn tally(&self) -> Tally {
        let mut sum = Tally::default();
        for key in 0..self.keys.len() {
            sum.absorb(&self.book(key).tally);
        }
        sum
    }

    /// What became of the messages of one key so far.
    pub fn tally_of(&self, key: usize) -> Tally {
        self.book(key).tally
    }

    /// The account of a run that is over, or what was broken in it. A message that has not ended counts as broken.
    ///
    /// # Errors
    /// A [`Report`] of every fault.
    pub fn check(&self) -> Result<Tally, Box<Report>> {
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for key in 0..self.keys.len() {
            let unfinished =
                |&(producer, number): &(usize, u64)| Fault::Unfinished { id: Id { key, producer, number } };
            faults.extend(self.book(key).open.keys().map(unfinished));
        }
        if faults.is_empty() {
            return Ok(self.tally());
        }
        let entries = |key| self.keys.get(key).map_or_else(Vec::new, |_| self.book(key).lines());
        let histories = faults.iter().map(|fault| (fault.key(), entries(fault.key()))).collect();
        Err(Box::new(Report::new(self.seed, faults, histories)))
    }

    /// The same, as an assertion.
    ///
    /// # Panics
    /// With seed, faults and history if a guarantee was broken.
    #[track_caller]
    pub fn verify(&self) -> Tally {
        match self.check() {
            Ok(tally) => tally,
            Err(report) => panic!("{report}"),
        }
    }

    /// Notes that a handler started. [`Message::start`] calls it; a test of the checker may too.
    pub fn record_start(&self, id: Id) {
        let running = self.running.rise();
        if running > self.limit {
            self.fault(Fault::TooMany { started: id, running, limit: self.limit });
        }
        if self.keys[id.key].running.fetch_add(1, Ordering::SeqCst) > 0 {
            self.fault(Fault::Overlap { started: id });
        }
        let mut book = self.book(id.key);
        book.note(Entry::Started(id));
        let earlier = book.open.range((id.producer, 0)..(id.producer, id.number));
        let overtaken =
            earlier.filter(|&(_, &standing)| standing == Standing::Waiting).map(|(&place, _)| place).next();
        let place = book.open.get_mut(&(id.producer, id.number));
        let known = match place {
            Some(standing @ Standing::Waiting) => {
                *standing = Standing::Running;
                true
            }
            Some(Standing::Running) | None => false,
        };
        drop(book);
        if let Some((producer, number)) = overtaken {
            self.fault(Fault::Overtaken { started: id, waiting: Id { key: id.key, producer, number } });
        }
        if !known {
            self.fault(Fault::NotWaiting { started: id });
        }
    }

    /// Notes how a message ended. [`Message`] and [`Running`] call it; a test of the checker may too.
    pub fn record_end(&self, id: Id, ending: Ending) {
        let mut book = self.book(id.key);
        book.note(Entry::Ended(id, ending));
        let was = book.open.remove(&(id.producer, id.number));
        let started = !matches!(ending, Ending::Discarded | Ending::Refused);
        let fits = was == Some(if started { Standing::Running } else { Standing::Waiting });
        if fits {
            book.tally.count(ending);
        }
        drop(book);
        if !fits {
            self.fault(Fault::NotOpen { ended: id, ending });
        }
        if started {
            self.keys[id.key].running.fetch_sub(1, Ordering::SeqCst);
            self.running.fall();
        }
    }

    fn book(&self, key: usize) -> MutexGuard<'_, Book> {
        self.keys[key].book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fault(&self, fault: Fault) {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).push(fault);
    }
}

impl Book {
    fn note(&mut self, entry: Entry) {
        if self.entries.len() == SHOWN {
            self.entries.pop_front();
        }
        self.entries.push_back(entry);
    }

    fn lines(&self) -> Vec<String> {
        self.entries.iter().map(Entry::to_string).collect()
    }
}

#[cfg(test)]
mod tests;
