//! The monitor: finds seats whose thread does not come back from a handler, and takes them for a spare.
//!
//! It looks every [`LOOK`] while some thread is on its seat, and soon again where it saw one inside a handler or the
//! source. A word that is the same after `rescue_after` is the same piece of user code; the seat is then borrowed, and
//! taken if something waits on it and a spare can be had. After some looks at nothing but sleepers it sleeps without a
//! timeout; a thread that comes back from its sleep wakes it (the fences of `sleep.rs`, so nothing is missed).
//!
//! A false alarm is harmless: the thread hands its outcome in and becomes a spare.

use std::time::Duration;

use crate::cx::Cx;
use crate::rescue::Found;
use crate::seat::token::Borrowed;
use crate::shared::{Seat, Shared};
use crate::shutdown::Threads;
use crate::sync::{Arc, park_timeout};
use crate::time::nanos;
use crate::worker::Worker;

/// How often it looks.
const LOOK: Duration = Duration::from_millis(4);
/// How soon it looks again at a seat that it saw lent.
const LOOK_AGAIN: Duration = Duration::from_millis(1);
/// Looks at nothing but sleepers before it sleeps itself.
const QUIET_LOOKS: u32 = 4;

/// What was seen of a worker at an earlier look.
#[derive(Clone, Copy, Default)]
struct Seen {
    word: u64,
    since: u64,
    /// Nothing waited on the seat, or no spare was to be had: not so soon again.
    vain: bool,
}

impl Shared {
    /// Starts the monitor's thread, with the first worker's.
    pub(crate) fn start_monitor(self: &Arc<Self>, threads: &mut Threads) {
        if !self.rescue.is_on() || threads.monitored {
            return;
        }
        threads.monitored = true;
        let shared = Arc::clone(self);
        let body = Box::new(move || {
            shared.rescue.monitor().introduce();
            shared.monitor();
            shared.rescue.monitor().leave();
            shared.thread_ended();
        });
        match (self.spawn)(format!("rescue:{}", self.config.name), body) {
            Ok(()) => threads.live += 1,
            Err(error) => {
                tracing::error!(%error, "the monitor could not be started: stuck handlers stay stuck")
            }
        }
    }

    fn monitor(self: &Arc<Self>) {
        let mut seen = vec![Seen::default(); self.workers.len()];
        let mut quiet = 0;
        while !self.rescue.has_ended() {
            let look = self.look(&mut seen);
            quiet = if look.is_some() { 0 } else { quiet + 1 };
            let sleeper = self.rescue.monitor();
            if quiet < QUIET_LOOKS {
                park_timeout(look.unwrap_or(LOOK));
                continue;
            }
            sleeper.announce();
            if self.rescue.has_ended() || self.workers.iter().any(|worker| !worker.token().rests()) {
                sleeper.cancel();
            } else {
                sleeper.sleep();
            }
            quiet = 0;
        }
    }

    /// One look at every seat; when the next one is due, None if nobody is on any.
    fn look(self: &Arc<Self>, seen: &mut [Seen]) -> Option<Duration> {
        let mut next = None;
        for (worker, seen) in self.workers.iter().zip(seen) {
            let token = worker.token();
            if token.rests() {
                continue;
            }
            next = next.or(Some(LOOK));
            let Some(word) = token.lent() else { continue };
            let now = nanos();
            if seen.word != word {
                *seen = Seen { word, since: now, vain: false };
            }
            let held = Duration::from_nanos(now - seen.since);
            if held >= self.config.rescue_after {
                seen.vain = !self.try_rescue(worker, word);
            }
            if !seen.vain {
                next = Some(LOOK_AGAIN);
            }
        }
        next
    }

    /// Takes a seat for a spare, if it is still the same piece of user code and something waits.
    pub(crate) fn try_rescue(self: &Arc<Self>, worker: &Arc<Worker>, word: u64) -> bool {
        let Some((token, borrowed)) = worker.try_borrow() else { return false };
        let worth_it = borrowed.is(word) && borrowed.may_be_taken() && {
            // SAFETY: rule 1 of seat/README.md: the seat was borrowed, and is given back or taken after the last use.
            let cx = unsafe { Cx::borrower(worker) };
            cx.something_waits()
        };
        let spare = if worth_it { self.rescue.find() } else { None };
        let Some(spare) = spare else {
            token.give_back(borrowed);
            return false;
        };
        let spare = match spare {
            Found::Idle(spare) => spare,
            Found::New(spare) => {
                let (shared, new) = (Arc::clone(self), Arc::clone(&spare));
                let name = format!("rescue:{}-{}", self.config.name, spare.thread + 1);
                let body = Box::new(move || shared.thread_body(new.thread, Seat::Spare(new)));
                if let Err(error) = (self.spawn)(name, body) {
                    tracing::error!(%error, "a spare thread could not be started: a stuck handler stays stuck");
                    self.rescue.put_back(Found::New(spare));
                    token.give_back(borrowed);
                    return false;
                }
                crate::sync::lock(&self.threads).live += 1;
                spare
            }
        };
        self.hand_over(worker, token, borrowed, &spare);
        true
    }

    /// The seat is the spare's from here on.
    fn hand_over(
        &self,
        worker: &Arc<Worker>,
        from: &crate::seat::token::Token,
        borrowed: Borrowed,
        spare: &crate::rescue::Spare,
    ) {
        worker.token_of(spare.thread).own();
        // First the occupant, then the word of the thread before: see `Worker::try_borrow`.
        worker.set_occupant(spare.thread);
        from.take(borrowed);
        tracing::debug!(
            worker = worker.index() + 1,
            "a handler holds its thread: the rest of its worker goes on"
        );
        spare.give(Arc::clone(worker));
    }
}
