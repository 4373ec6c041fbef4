//! The carriers: a projection that keeps, per carrier, the accepted rows and their departure delays.
//!
//! Owns the view. Events of one aircraft come in order, those of different aircraft from several threads, so the view
//! stands behind a lock that is held for one addition. It also audits what it sees: an event of an aircraft that does not
//! come after the one before is a violation. It knows no command.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use wow_dispatch::Event;
use wow_runtime::{SystemTimer, Timer};

use crate::aircraft::Aircraft;
use crate::order::{LinesSeen, Violations};
use crate::report::Carrier;

/// The view; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Carriers {
    view: Arc<Mutex<View>>,
    violations: Violations,
    timer: SystemTimer,
}

#[derive(Debug, Default)]
struct View {
    carriers: BTreeMap<Box<str>, Carrier>,
    seen: LinesSeen,
    last_at: Option<Instant>,
}

impl Carriers {
    pub(crate) fn new(violations: Violations, timer: SystemTimer) -> Self {
        Self { view: Arc::default(), violations, timer }
    }

    /// Adds one event.
    pub(crate) fn project(&self, event: &Event<Aircraft>) {
        let now = self.timer.now();
        let mut view = self.lock();
        if !view.seen.follows(event.aggregate_id().id(), event.line) {
            self.violations.add();
        }
        view.last_at = Some(now);
        let code = &event.leg.carrier;
        if !view.carriers.contains_key(code) {
            view.carriers.insert(code.clone(), Carrier::default());
        }
        let Some(carrier) = view.carriers.get_mut(code) else { return };
        carrier.flights += 1;
        if let Some(minutes) = event.dep_delay {
            carrier.n_delays += 1;
            carrier.delay_minutes += i64::from(minutes);
        }
    }

    /// What it holds now, by carrier.
    pub(crate) fn totals(&self) -> BTreeMap<String, Carrier> {
        self.lock().carriers.iter().map(|(code, carrier)| (code.to_string(), *carrier)).collect()
    }

    /// When the last event was added.
    pub(crate) fn last_at(&self) -> Option<Instant> {
        self.lock().last_at
    }

    fn lock(&self) -> MutexGuard<'_, View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
