//! What a message weighs: asked for by a byte budget, and of no cost without one.
//!
//! The executor knows no message, so it is told: a [`Weigh`] says how many bytes a key and a message take. The sum counts
//! against [`Options::max_bytes`](crate::Options::max_bytes) from acceptance to the end of the message, and a key longer than
//! [`Options::max_key_bytes`](crate::Options::max_key_bytes) is refused: keys stay in the directory while they live, and are
//! told in errors and logs. Counting is the intake's (`intake/bounds.rs`).

/// Says what messages weigh, for [`Options::weighed`](crate::Options::weighed).
///
/// It is asked when a message comes in, outside every lock, and again when a submission is tried again: the answer for a
/// message should not change. It may panic where a key's hash may.
pub trait Weigh<K, M>: Send + Sync + 'static {
    /// Bytes of a key.
    fn key_bytes(&self, key: &K) -> usize;

    /// Bytes of a message, without its key.
    fn message_bytes(&self, message: &M) -> usize;

    /// Whether it weighs anything; [`Unweighed`] does not.
    fn weighs(&self) -> bool {
        true
    }
}

/// Weighs nothing: there is no byte budget, and no key is too long. The default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unweighed;

impl<K, M> Weigh<K, M> for Unweighed {
    fn key_bytes(&self, _: &K) -> usize {
        0
    }

    fn message_bytes(&self, _: &M) -> usize {
        0
    }

    fn weighs(&self) -> bool {
        false
    }
}

/// Weighs by two functions.
///
/// ```
/// use keyed_executor::{Options, Weights};
///
/// let weights = Weights { key: String::len, message: Vec::<u8>::len };
/// let options = Options::new("uploads").weighed(64 << 20, weights);
/// assert_eq!(options.max_bytes, 64 << 20);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weights<KF, MF> {
    /// Bytes of a key.
    pub key: KF,
    /// Bytes of a message, without its key.
    pub message: MF,
}

impl<K, M, KF, MF> Weigh<K, M> for Weights<KF, MF>
where
    KF: Fn(&K) -> usize + Send + Sync + 'static,
    MF: Fn(&M) -> usize + Send + Sync + 'static,
{
    fn key_bytes(&self, key: &K) -> usize {
        (self.key)(key)
    }

    fn message_bytes(&self, message: &M) -> usize {
        (self.message)(message)
    }
}

/// A weigher with its limits, of one dispatch or keyspace.
pub(crate) struct Scale<K, M> {
    weigher: Box<dyn Weigh<K, M>>,
    max_bytes: usize,
    max_key_bytes: usize,
}

/// Why a message never has room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TooMuch {
    /// Its key is longer than keys may be.
    Key { bytes: usize, max: usize },
    /// It is heavier than the whole budget.
    Weight { bytes: usize, max: usize },
}

impl<K: 'static, M: 'static> Scale<K, M> {
    /// None if nothing is weighed.
    pub(crate) fn new(weigher: impl Weigh<K, M>, max_bytes: usize, max_key_bytes: usize) -> Option<Self> {
        weigher.weighs().then(|| Self { weigher: Box::new(weigher), max_bytes, max_key_bytes })
    }

    /// What a message weighs together with its key.
    pub(crate) fn weigh(&self, key: &K, message: &M) -> Result<usize, TooMuch> {
        let of_key = self.weigher.key_bytes(key);
        if of_key > self.max_key_bytes {
            return Err(TooMuch::Key { bytes: of_key, max: self.max_key_bytes });
        }
        let bytes = of_key.saturating_add(self.weigher.message_bytes(message));
        if bytes > self.max_bytes {
            return Err(TooMuch::Weight { bytes, max: self.max_bytes });
        }
        Ok(bytes)
    }
}
