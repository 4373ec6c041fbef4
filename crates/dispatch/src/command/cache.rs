//! `Cache`: the latest states of one aggregate type, so that a hot aggregate is not sourced again for every command.
//!
//! A state is taken out while its aggregate handles a command, and put back when what it says is stored; the executor lets only
//! one command of an aggregate run, so it is never needed twice. Bounded: two generations, the younger of which becomes the
//! older when it is full, so a state that is used again within a generation stays. Invariant: holds no state that applied
//! anything unstored. It may hold a state that another process has overtaken: the processor asks the store.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use foldhash::fast::RandomState;
use wow_message::AggregateId;

use crate::command::instance::Instance;

const N_SHARDS: usize = 16;

pub(super) struct Cache {
    shards: [Mutex<Generations>; N_SHARDS],
    /// States per generation of a shard; 0 caches nothing.
    capacity: usize,
}

/// An empty place is that of a state that is taken out, or was thrown away.
type Generation = HashMap<AggregateId, Option<Box<dyn Instance>>, RandomState>;

#[derive(Default)]
struct Generations {
    young: Generation,
    old: Generation,
}

impl Cache {
    /// A cache of about `max_states` states, at most.
    pub(super) fn new(max_states: usize) -> Self {
        let capacity = max_states.div_ceil(2 * N_SHARDS);
        Self { shards: std::array::from_fn(|_| Mutex::default()), capacity }
    }

    pub(super) fn take(&self, id: &AggregateId) -> Option<Box<dyn Instance>> {
        if self.capacity == 0 {
            return None;
        }
        let mut shard = self.shard(id);
        match shard.young.get_mut(id) {
            Some(place) => place.take(),
            None => shard.old.remove(id).flatten(),
        }
    }

    pub(super) fn put(&self, id: &AggregateId, instance: Box<dyn Instance>) {
        if self.capacity == 0 {
            return;
        }
        let forgotten = {
            let mut shard = self.shard(id);
            if let Some(place) = shard.young.get_mut(id) {
                let replaced = place.replace(instance);
                drop(shard);
                drop(replaced);
                return;
            }
            let forgotten = if shard.young.len() < self.capacity {
                None
            } else {
                let full = std::mem::take(&mut shard.young);
                Some(std::mem::replace(&mut shard.old, full))
            };
            shard.young.insert(id.clone(), Some(instance));
            forgotten
        };
        // Outside of the lock: dropping states runs foreign code.
        drop(forgotten);
    }

    fn shard(&self, id: &AggregateId) -> MutexGuard<'_, Generations> {
        let shard = &self.shards[usize::try_from(id.key().spread() % N_SHARDS as u64).unwrap_or(0)];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
