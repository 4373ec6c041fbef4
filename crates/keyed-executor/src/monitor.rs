//! The monitor: looks at threads that do not come back from user code, and acts on what it sees.
//!
//! It looks every [`LOOK`] while some thread is on its seat, and soon again where it saw one inside a handler or the
//! source. A word that is the same after `rescue_after` is the same piece of user code (whoever places a new key may have
//! seen that first, or goes to sleep beside it, and wakes the monitor: `Worker::seen_inside`); the seat is then borrowed, and
//! taken if something waits on it and a spare can be had (`rescue.rs`). After `stuck_after` the code is named
//! (`watchdog.rs`), on its seat or off it. After some looks at nothing but sleepers (`monitor/rhythm.rs`) it sees that no work
//! lies beside one (`stranded.rs`) and sleeps without a timeout; a thread that comes back from its sleep wakes it (the fences of
//! `sleep.rs`, so nothing is missed).
//!
//! A false alarm of the rescue is harmless: the thread hands its outcome in and becomes a spare.

mod rhythm;

use std::time::Duration;

use crate::cx::Cx;
use crate::rescue::{Found, LostThread};
use crate::seat::token::{Borrowed, Token};
use crate::shared::{Seat, Shared};
use crate::shutdown::Threads;
use crate::stranded::{self, Beside};
use crate::sync::{Arc, Ordering, park_timeout};
use crate::time::nanos;
use crate::watchdog::{self, Stuck, StuckCode};
use crate::worker::Worker;
use rhythm::Rhythm;

/// How often it looks.
const LOOK: Duration = Duration::from_millis(4);
/// How soon it looks again at a seat that it saw lent.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// What became of an attempt to take a seat.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(crate) enum Tried {
    /// None was made yet, or the thread was back.
    #[default]
    Not,
    /// A spare has it.
    Taken,
    /// Nothing waits on it.
    NothingWaits,
    /// There are as many threads as there may be, or the system gave none.
    NoThread,
}

/// What was seen of a worker at an earlier look.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) word: u64,
    pub(crate) since: u64,
    pub(crate) tried: Tried,
    /// What it was named, if it was.
    pub(crate) named: Option<StuckCode>,
}

impl Seen {
    /// Whether it is user code that has held its thread for so long and is to be named after `stuck_after`, once.
    pub(crate) fn is_to_be_named(&self, held: Duration, stuck_after: Option<Duration>) -> bool {
        self.word != 0 && self.named.is_none() && stuck_after.is_some_and(|after| held >= after)
    }
}

impl Shared {
    /// Starts the monitor's thread, with the first worker's.
    pub(crate) fn start_monitor(self: &Arc<Self>, threads: &mut Threads) {
        if !self.rescue.is_watched() || threads.monitored {
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
                tracing::error!(%error, "the monitor could not be started: stuck handlers stay stuck and unnamed")
            }
        }
    }

    fn monitor(self: &Arc<Self>) {
        let mut seen: Vec<_> = self.workers.iter().map(|_| Seen::default()).collect();
        let mut beside = vec![Beside::default(); self.workers.len()];
        let mut rhythm = Rhythm::new(nanos());
        let every = self.look_every();
        while !self.rescue.has_ended() {
            // Relaxed: only this thread writes it, and readers take it alone.
            self.watchdog.looks.fetch_add(1, Ordering::Relaxed);
            let seats = self.look_at_threads(&mut seen, every);
            let lost = self.look_at_lost();
            if !rhythm.looked(seats.is_some()) {
                if rhythm.looks_beside(nanos()) {
                    let _ = self.look_for_stranded(&mut beside);
                }
                park_timeout(soonest(seats.or(Some(every)), lost).unwrap_or(every));
                continue;
            }
            let sleeper = self.rescue.monitor();
            sleeper.announce();
            if self.rescue.has_ended() || self.workers.iter().any(|worker| !worker.token().rests()) {
                sleeper.cancel();
                rhythm.was_woken();
                continue;
            }
            let stranded = self.look_for_stranded(&mut beside).then_some(stranded::EVERY);
            match soonest(stranded, lost) {
                None => {
                    sleeper.sleep();
                    rhythm.was_woken();
                }
                Some(time) => {
                    if sleeper.sleep_for(time) {
                        rhythm.was_woken();
                    }
                }
            }
        }
    }

    /// How often it looks while a thread is on its seat.
    pub(crate) fn look_every(&self) -> Duration {
        match self.config.stuck_after {
            Some(stuck_after) if !self.rescue.is_on() => (stuck_after / 4).clamp(LOOK_AGAIN, stranded::EVERY),
            _ => LOOK,
        }
    }

    /// One look at every seat; when the next one is due, None if nobody is on any.
    pub(crate) fn look_at_threads(self: &Arc<Self>, seen: &mut [Seen], every: Duration) -> Option<Duration> {
        let mut next = None;
        for (worker, seen) in self.workers.iter().zip(seen) {
            let token = worker.token();
            let inside = token.inside();
            let now = nanos();
            if inside != Some(seen.word) {
                if let Some(code) = seen.named.take() {
                    watchdog::log_end(&code, worker.index(), Duration::from_nanos(now - seen.since));
                }
            }
            if !token.rests() {
                next = next.or(Some(every));
            }
            let Some(word) = inside else { continue };
            if seen.word != word {
                *seen = Seen { word, since: now, ..Seen::default() };
            }
            let held = Duration::from_nanos(now - seen.since);
            if self.rescue.is_on() && token.lent() == Some(word) {
                if held >= self.config.rescue_after || worker.is_suspect(word) {
                    self.rescue_seen(worker, seen);
                }
                if seen.tried == Tried::Not {
                    next = Some(LOOK_AGAIN);
                }
            }
            self.name_seen(worker, seen, held);
        }
        next
    }

    /// Takes a seat whose thread is inside the same piece of code for long enough.
    fn rescue_seen(self: &Arc<Self>, worker: &Arc<Worker>, seen: &mut Seen) {
        let before = seen.tried;
        seen.tried = self.try_rescue(worker, seen);
        match seen.tried {
            // Its thread is on no seat any more: it is `look_at_lost` that names it.
            Tried::Taken => *seen = Seen::default(),
            Tried::NoThread if before != Tried::NoThread => tracing::warn!(
                worker = worker.index() + 1,
                rescue_threads = self.config.rescue_threads,
                "a handler holds its thread and no spare is to be had: its worker waits"
            ),
            _ => {}
        }
    }

    /// Names what a thread on its seat is inside of for too long, once.
    fn name_seen(&self, worker: &Arc<Worker>, seen: &mut Seen, held: Duration) {
        if !seen.is_to_be_named(held, self.config.stuck_after) {
            return;
        }
        if let Some(code) = Self::name_stuck(worker, seen.word) {
            let stuck = Stuck { code, worker: worker.index(), held, rescued: false };
            self.watchdog.tell(&stuck);
            seen.named = Some(stuck.code);
        }
    }

    /// Names threads that lost their seat and are not back; when the next one is due.
    fn look_at_lost(&self) -> Option<Duration> {
        let (overdue, next) = self.rescue.overdue(nanos(), self.config.stuck_after?);
        for stuck in &overdue {
            self.watchdog.tell(stuck);
        }
        next
    }

    /// Takes a seat for a spare, if it is still the same piece of user code and something waits.
    pub(crate) fn try_rescue(self: &Arc<Self>, worker: &Arc<Worker>, seen: &Seen) -> Tried {
        let Some((token, borrowed)) = worker.try_borrow() else { return Tried::Not };
        if !borrowed.is(seen.word) || !borrowed.may_be_taken() {
            token.give_back(borrowed);
            return Tried::Not;
        }
        // SAFETY: rule 1 of seat/README.md: the seat was borrowed, and is given back or taken after the last use.
        let cx = unsafe { Cx::borrower(worker) };
        if !cx.something_waits() {
            token.give_back(borrowed);
            return Tried::NothingWaits;
        }
        let spare = match self.rescue.find() {
            Some(Found::Idle(spare)) => spare,
            Some(Found::New(spare)) => {
                let (shared, new) = (Arc::clone(self), Arc::clone(&spare));
                let name = format!("rescue:{}-{}", self.config.name, spare.thread + 1);
                let body = Box::new(move || shared.thread_body(new.thread, Seat::Spare(new)));
                if let Err(error) = (self.spawn)(name, body) {
                    if seen.tried != Tried::NoThread {
                        tracing::error!(%error, "a spare thread could not be started");
                    }
                    self.rescue.not_started(&spare);
                    token.give_back(borrowed);
                    return Tried::NoThread;
                }
                crate::sync::lock(&self.threads).live += 1;
                spare
            }
            None => {
                token.give_back(borrowed);
                return Tried::NoThread;
            }
        };
        let code = match &seen.named {
            Some(code) => code.clone(),
            None if self.config.stuck_after.is_some() => cx.running(),
            None => StuckCode::Other,
        };
        // Before the thread can be back.
        self.rescue.taken_from(LostThread {
            thread: worker.occupant(),
            worker: worker.index(),
            code,
            since: seen.since,
            named: seen.named.is_some(),
        });
        self.hand_over(worker, token, borrowed, &spare);
        Tried::Taken
    }

    /// The seat is the spare's from here on.
    fn hand_over(
        &self,
        worker: &Arc<Worker>,
        from: &Token,
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

/// The sooner of two times, of which either may be missing.
fn soonest(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
