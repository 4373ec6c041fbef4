//! `Name`: a short immutable text that is free to clone when it comes from a constant.
//!
//! Owns nothing but the text. Invariant: equality, order and hash are those of the text, whatever the representation.
//! Deliberately not interned: texts from a network must not stay in memory for ever.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// An immutable text: a constant, which clones for nothing, or a shared one, which clones by a reference count.
///
/// ```
/// use wow_message::Name;
///
/// const ACCOUNT: Name = Name::from_static("account");
/// assert_eq!(ACCOUNT, Name::from(String::from("account")));
/// assert_eq!(&*ACCOUNT, "account");
/// ```
#[derive(Clone)]
pub struct Name(Repr);

#[derive(Clone)]
enum Repr {
    Static(&'static str),
    Shared(Arc<str>),
}

impl Name {
    /// The empty text.
    pub const EMPTY: Name = Name::from_static("");

    /// A name from a constant; usable in constants itself.
    #[must_use]
    pub const fn from_static(text: &'static str) -> Self {
        Self(Repr::Static(text))
    }

    /// A name that copies a borrowed text of any lifetime.
    #[must_use]
    pub fn copied(text: &str) -> Self {
        if text.is_empty() { Self::EMPTY } else { Self(Repr::Shared(Arc::from(text))) }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Repr::Static(text) => text,
            Repr::Shared(text) => text,
        }
    }
}

impl Default for Name {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl Deref for Name {
    type Target = str;
    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for Name {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        let (ours, theirs) = (self.as_str(), other.as_str());
        // Copies of one name share their text, which then need not be fetched.
        std::ptr::eq(ours, theirs) || ours == theirs
    }
}

impl Eq for Name {}

impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Name {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl From<&'static str> for Name {
    fn from(text: &'static str) -> Self {
        Self::from_static(text)
    }
}

impl From<String> for Name {
    fn from(text: String) -> Self {
        Self(Repr::Shared(Arc::from(text)))
    }
}

impl From<Arc<str>> for Name {
    fn from(text: Arc<str>) -> Self {
        Self(Repr::Shared(text))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}
