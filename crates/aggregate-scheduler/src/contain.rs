//! The boundary to user code: a panic becomes a text and costs no thread.
//!
//! It reports nothing but what has no other reporter, a panic in a `Drop`. A panic's payload is the user's too and may
//! panic when it is dropped.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs user code; a panic comes back as its text.
pub(crate) fn contain<R>(user: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(user)).map_err(text)
}

/// Drops something of the user's; a panic in its `Drop` is logged, and the caller goes on.
pub(crate) fn drop_contained<T>(what: &'static str, value: T) {
    if let Err(panic) = contain(|| drop(value)) {
        tracing::error!(panic, "dropping {what} panicked");
    }
}

/// The text of a panic.
pub(crate) fn text(payload: Box<dyn Any + Send>) -> String {
    let text = match (payload.downcast_ref::<&'static str>(), payload.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (_, Some(text)) => text.clone(),
        _ => "a panic without a text".to_owned(),
    };
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        // Its drop has panicked once already; dropping what that brought may go on for ever.
        std::mem::forget(second);
    }
    text
}
