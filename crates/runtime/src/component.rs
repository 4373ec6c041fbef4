//! The component: one part of a service with a life of its own, such as a dispatcher or a store's writer.
//!
//! Users and dispatchers implement it; only this crate calls its methods. Invariant of every implementation:
//! construction is inert, and nothing is processed before `start`. A component never learns of another one, and
//! does not decide when the whole ends: it reports a failure through its [`Context`] and the runtime decides.

use async_trait::async_trait;

use crate::context::{Context, StopContext};
use crate::report::WorkLedger;

/// What a component's method fails with.
pub type ComponentError = Box<dyn std::error::Error + Send + Sync + 'static>;

/// A part of a service that is prepared, started, quiesced and stopped by a [`Runtime`](crate::Runtime).
///
/// The runtime calls the methods of one component one after the other, except `force_stop`, which may overlap any of
/// them. If it does, it is called once at once and exactly once more after the overlapped method returned or its
/// future ended, so that whatever that method still acquired is released too. A panic in a method counts as its
/// failure and never ends the runtime's own threads.
///
/// # Examples
/// ```
/// use wow_runtime::{async_trait, Component, ComponentError, Context, StopContext};
///
/// struct Greeter;
///
/// #[async_trait]
/// impl Component for Greeter {
///     fn name(&self) -> &str {
///         "greeter"
///     }
///     async fn prepare(&self, _context: Context) -> Result<(), ComponentError> {
///         Ok(())
///     }
///     fn start(&self) -> Result<(), ComponentError> {
///         Ok(())
///     }
///     fn quiesce(&self) -> Result<(), ComponentError> {
///         Ok(())
///     }
///     async fn stop_gracefully(&self, _stop: StopContext) -> Result<(), ComponentError> {
///         Ok(())
///     }
///     fn force_stop(&self) -> Result<(), ComponentError> {
///         Ok(())
///     }
/// }
/// ```
#[async_trait]
pub trait Component: Send + Sync + 'static {
    /// The name in logs, failures and reports.
    fn name(&self) -> &str;

    /// Acquires what the component needs, subscriptions included, and keeps processing closed.
    ///
    /// The next component is prepared only after this future ended. It is polled by the task that starts the
    /// runtime, and dropped if the start is cancelled or the runtime forced.
    ///
    /// # Errors
    /// Any error fails the start of the whole runtime.
    async fn prepare(&self, context: Context) -> Result<(), ComponentError>;

    /// Opens processing. Called after every component was prepared; prompt.
    ///
    /// # Errors
    /// Any error fails the start of the whole runtime.
    fn start(&self) -> Result<(), ComponentError>;

    /// Takes no more from a durable source, so that steady traffic of a broker cannot keep a stopping runtime busy.
    ///
    /// What was taken, and what other parts of the process send, is still admitted. Prompt; idempotent.
    ///
    /// # Errors
    /// An error is reported and ends the stop by force; the other components are still suspended.
    fn suspend_durable_intake(&self) -> Result<(), ComponentError> {
        Ok(())
    }

    /// Takes nothing more at all; what was accepted goes on. Prompt, non-blocking, idempotent.
    ///
    /// # Errors
    /// As for [`suspend_durable_intake`](Self::suspend_durable_intake).
    fn quiesce(&self) -> Result<(), ComponentError>;

    /// Ends once everything accepted has ended, without cancelling any of it.
    ///
    /// Driven by the runtime's own thread; the future is dropped if the stop becomes a forced one.
    ///
    /// # Errors
    /// An error does not keep other components from stopping; it ends the stop by force.
    async fn stop_gracefully(&self, stop: StopContext) -> Result<(), ComponentError>;

    /// Lets go of everything at once. Prompt, non-blocking, repeatable, and safe before `prepare`.
    ///
    /// # Errors
    /// An error is kept in the report beside the cause of the forced stop.
    fn force_stop(&self) -> Result<(), ComponentError>;

    /// Whether the calling thread is one of the component's own, so that it would hold up a stop it waits for.
    ///
    /// Asked by a blocking stop, which is refused then. A component whose work runs on the runtime's executor has none.
    fn owns_this_thread(&self) -> bool {
        false
    }

    /// What the component accepted and what became of it, if it can tell. Read when the runtime terminates, and whenever
    /// somebody asks for it meanwhile ([`Runtime::work`](crate::Runtime::work)): prompt, from any thread.
    fn work(&self) -> Option<WorkLedger> {
        None
    }
}
