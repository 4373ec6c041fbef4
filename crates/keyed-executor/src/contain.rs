//! The boundary to user code: a panic becomes a text, and nothing that a panic brings can do harm later.
//!
//! Every call into user code goes through [`contain`]. It reports nothing: the caller knows whose code it was.

use std::any::Any;
use std::fmt::{self, Debug};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs user code; a panic comes back as its text.
#[inline]
pub(crate) fn contain<R>(user: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(user)).map_err(text)
}

/// The longest text of a key that is shown to an operator.
const LINE: usize = 200;

/// A key as its `Debug` writes it, cut to a line: what comes after that is not even written.
#[cold]
pub(crate) fn line(key: &impl Debug) -> String {
    let mut text = String::new();
    line_into(&mut text, key);
    text
}

/// [`line`] into the room of a text that is not needed any more.
#[cold]
pub(crate) fn line_into(text: &mut String, key: &impl Debug) {
    struct Line<'a>(&'a mut String);
    impl fmt::Write for Line<'_> {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            let room = LINE - self.0.len();
            if text.len() <= room {
                self.0.push_str(text);
                return Ok(());
            }
            let end = (0..=room).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
            self.0.push_str(&text[..end]);
            Err(fmt::Error)
        }
    }
    text.clear();
    let mut line = Line(text);
    match contain(|| fmt::Write::write_fmt(&mut line, format_args!("{key:?}"))) {
        Ok(Ok(())) => {}
        Ok(Err(_)) => text.push_str("..."),
        Err(_) => {
            text.clear();
            text.push_str("<its Debug panicked>");
        }
    }
}

/// Drops something of the user's; a panic in its `Drop` is logged, and the caller goes on.
pub(crate) fn drop_contained<T>(what: &'static str, value: T) {
    if let Err(panic) = contain(|| drop(value)) {
        tracing::error!(panic, "dropping {what} panicked");
    }
}

/// The text of a panic. The payload is the user's too: its `Drop` may panic once more.
#[cold]
fn text(payload: Box<dyn Any + Send>) -> String {
    let text = if let Some(text) = payload.downcast_ref::<&'static str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "a panic without a text".to_owned()
    };
    // In a model a race that loom found inside user code has to end the model.
    #[cfg(keyed_loom)]
    assert!(!text.contains("Causality violation"), "{text}");
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        // A payload whose drop panics with a payload whose drop panics is not worth a third attempt.
        std::mem::forget(second);
    }
    text
}
