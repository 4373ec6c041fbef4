//! The alarm for a bug of this crate: work that lies on a seat whose thread sleeps, and nobody woke it.
//!
//! A worker sleeps only after it found nothing, and whoever brings something wakes it (`sleep.rs`). So a worker that is
//! in the same sleep [`AFTER`] the monitor saw work there was forgotten: that is told as an error and counted, and the
//! worker is woken, so that a lost wake-up costs a second and not the message. The monitor does not sleep for good while
//! it sees such a seat.

use std::time::Duration;

use crate::contain::contain;
use crate::cx::Cx;
use crate::shared::Shared;
use crate::sync::{Arc, Ordering};
use crate::time::nanos;
use crate::worker::{self, Worker};

/// How long work may lie beside a sleeping thread.
const AFTER: Duration = Duration::from_secs(1);
/// How often the monitor looks for some.
pub(crate) const EVERY: Duration = Duration::from_millis(250);

/// The sleep in which a worker was found with work.
#[derive(Clone, Copy, Default)]
pub(crate) struct Beside {
    /// Its word, and when it was first found so; None if nothing lay there.
    sleep: Option<(u64, u64)>,
    told: bool,
}

impl Shared {
    /// One look at every sleeping worker; whether work lies with any of them.
    pub(crate) fn look_for_stranded(&self, beside: &mut [Beside]) -> bool {
        let mut found = false;
        for (worker, beside) in self.workers.iter().zip(beside) {
            let Some(word) = Self::work_beside(worker) else {
                *beside = Beside::default();
                continue;
            };
            found = true;
            let now = nanos();
            match beside.sleep {
                Some((same, since)) if same == word => {
                    if now - since >= AFTER.as_nanos() as u64 && !beside.told {
                        beside.told = true;
                        self.tell_stranded(worker);
                    }
                }
                _ => *beside = Beside { sleep: Some((word, now)), told: false },
            }
        }
        found
    }

    /// The word of a worker that sleeps although something lies on its seat.
    fn work_beside(worker: &Arc<Worker>) -> Option<u64> {
        if !worker.is_running() {
            return None;
        }
        let word = worker.token().asleep()?;
        let (token, borrowed) = worker.try_borrow()?;
        let has_work = borrowed.is(word) && {
            // SAFETY: rule 1 of seat/README.md: the seat was borrowed, and is given back after the last use.
            let cx = unsafe { Cx::borrower(worker) };
            // What it would have to look at again before it sleeps. An assertion that fails in there is such a bug too.
            contain(|| worker::has_news(&cx)).unwrap_or(true)
        };
        token.give_back(borrowed);
        has_work.then_some(word)
    }

    #[cold]
    fn tell_stranded(&self, worker: &Worker) {
        // Relaxed: only the monitor writes it, and readers take it alone.
        self.watchdog.stranded.fetch_add(1, Ordering::Relaxed);
        tracing::error!(
            worker = worker.index() + 1,
            executor = self.config.name,
            "work lay beside a sleeping worker for a second: a bug of the executor; the worker was woken"
        );
        worker.sleeper().interrupt();
    }
}
