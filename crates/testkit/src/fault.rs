//! What can be wrong in a history, and how it is told.
//!
//! Owns the names of messages and of broken guarantees, and the report a failed test shows: seed first, then the faults,
//! then the last entries of each key concerned. It finds nothing itself; the history does.

use crate::{Ending, Seed};
use std::collections::BTreeMap;
use std::fmt;

/// Names one message of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id {
    /// The key it belongs to.
    pub key: usize,
    /// Who sent it; order is promised among messages of one producer.
    pub producer: usize,
    /// Its place among the messages of its producer for its key, from zero.
    pub number: u64,
}

/// A guarantee that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A handler started while another one of the same key ran.
    Overlap {
        /// The one that started.
        started: Id,
    },
    /// A message started before an earlier one of its producer.
    Overtaken {
        /// The one that started.
        started: Id,
        /// The earlier one, which still waited.
        waiting: Id,
    },
    /// A message started that was not waiting: it never existed, was started already, or had ended.
    NotWaiting {
        /// The one that started.
        started: Id,
    },
    /// A message ended that was not open.
    NotOpen {
        /// The one that ended.
        ended: Id,
        /// The way it ended this time.
        ending: Ending,
    },
    /// More handlers ran at once than allowed.
    TooMany {
        /// The one that was too many.
        started: Id,
        /// How many ran with it.
        running: usize,
        /// How many may.
        limit: usize,
    },
    /// A message has not ended.
    Unfinished {
        /// The one.
        id: Id,
    },
}

impl Fault {
    pub(crate) fn key(&self) -> usize {
        match self {
            Fault::Overlap { started }
            | Fault::Overtaken { started, .. }
            | Fault::NotWaiting { started }
            | Fault::TooMany { started, .. } => started.key,
            Fault::NotOpen { ended, .. } => ended.key,
            Fault::Unfinished { id } => id.key,
        }
    }
}

/// What was wrong in a run: prints the seed, the faults and the last entries of their keys.
#[derive(Debug)]
pub struct Report {
    /// The seed of the run.
    pub seed: Seed,
    /// What was broken, in the order it was noticed.
    pub faults: Vec<Fault>,
    histories: BTreeMap<usize, Vec<String>>,
}

impl Report {
    pub(crate) fn new(seed: Seed, faults: Vec<Fault>, histories: BTreeMap<usize, Vec<String>>) -> Report {
        Report { seed, faults, histories }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const FAULTS_SHOWN: usize = 20;
        writeln!(f, "seed {}: {} guarantees broken", self.seed, self.faults.len())?;
        for fault in self.faults.iter().take(FAULTS_SHOWN) {
            writeln!(f, "  {fault:?}")?;
        }
        for (key, entries) in self.histories.iter().take(FAULTS_SHOWN) {
            writeln!(f, "history of key {key} (its last {} entries):", entries.len())?;
            for entry in entries {
                writeln!(f, "  {entry}")?;
            }
        }
        Ok(())
    }
}
