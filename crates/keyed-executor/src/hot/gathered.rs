//! What is told of hot keys: the sketches of several lanes and sources put together.
//!
//! A key is one by its dispatch and its hash, on however many workers it was seen. It is made for one answer and keeps nothing.

use super::Sketch;

/// A key that many of the last messages were for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HotKey {
    /// The label of its dispatch or keyspace.
    pub dispatch: String,
    /// The key as its `Debug` writes it, cut to a line of at most 200 bytes.
    pub key: String,
    /// About how many of the last messages were for it: those sampled, times 128.
    pub messages: u64,
    /// By how many it may be too high, beside the chance of sampling.
    pub error: u64,
    /// How many messages of its dispatch it is among, counted in the same way.
    pub among: u64,
}

/// The hot keys of some dispatches, gathered lane by lane: a key that moved to another worker is one key.
#[derive(Default)]
pub(crate) struct Gathered {
    /// (dispatch, hash) and what is told of it.
    keys: std::collections::HashMap<(usize, u64), HotKey>,
    among: std::collections::HashMap<usize, u64>,
}

impl Gathered {
    /// Adds one lane's sketch.
    pub(crate) fn add(&mut self, dispatch: usize, label: &str, sketch: &Sketch) {
        *self.among.entry(dispatch).or_default() += sketch.among();
        for (hash, text, messages, error) in sketch.keys() {
            let key = self.keys.entry((dispatch, hash)).or_insert_with(|| HotKey {
                dispatch: label.to_owned(),
                key: text.to_owned(),
                messages: 0,
                error: 0,
                among: 0,
            });
            key.messages += messages;
            key.error += error;
        }
    }

    /// The hottest first, at most `limit`.
    pub(crate) fn hottest(self, limit: usize) -> Vec<HotKey> {
        let among = self.among;
        let keys = self.keys.into_iter().map(|((dispatch, _), mut key)| {
            key.among = among.get(&dispatch).copied().unwrap_or(0);
            key
        });
        let mut keys: Vec<HotKey> = keys.collect();
        keys.sort_by(|one, two| (two.messages, &one.key).cmp(&(one.messages, &two.key)));
        keys.truncate(limit);
        keys
    }
}
