//! `Child`: one receiver of a dispatcher, for all its aggregates of one bounded context.
//!
//! Invariants: the receiver is subscribed before it is asked for anything; its gate is revoked exactly once, also when the
//! messages end by themselves; whatever ends it for a reason of its own is reported to the runtime.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use keyed_executor::{Cause, DispatchError, Ledger};
use wow_message::Message;
use wow_runtime::Context;
use wow_transport::{MessageBus, ReceiveError, ReceiverControl, Subscription};

use crate::admission::Admitted;
use crate::error::{DispatchFailure, PrepareError};
use crate::execution::Prepared;
use crate::intake::Intake;
use crate::kind::DispatchKind;
use crate::ledger::Counters;
use crate::notes::{Note, Notes, noted};
use crate::source::Source;
use crate::watch::Watch;
use crate::weight::Budget;

pub(crate) struct Child<K: DispatchKind> {
    receiver: Arc<dyn ReceiverControl>,
    source: Arc<Source<K::Message>>,
    context: Context,
    execution: Prepared,
    naming: Naming,
    budget: Option<Budget<K::Message>>,
    /// Shared by the children of one dispatcher: the failure of one keeps the others from starting.
    failed: Arc<AtomicBool>,
    revoked: AtomicBool,
    run: Mutex<Run>,
}

/// How a receiver and what it runs are called where they are told of.
pub(crate) struct Naming {
    /// What the executor's figures, looks and logs call it.
    pub(crate) label: Arc<str>,
    pub(crate) notes: Option<Notes>,
}

enum Run {
    NotStarted,
    Started(Arc<Watch>),
    /// Ended before it was started: it never will be.
    Forced,
}

impl<K: DispatchKind> Child<K> {
    /// Subscribes; nothing is asked for yet.
    pub(crate) fn subscribe(
        bus: &dyn MessageBus<K::Message>,
        subscription: Subscription,
        context: Context,
        execution: Prepared,
        naming: Naming,
        budget: Option<Budget<K::Message>>,
        failed: Arc<AtomicBool>,
    ) -> Result<Arc<Self>, PrepareError> {
        let mut receiver = bus.receiver(subscription)?;
        let source = Arc::new(Source::new(receiver.messages()?, context.clone()));
        let (revoked, run) = (AtomicBool::new(false), Mutex::new(Run::NotStarted));
        let receiver = receiver.control();
        Ok(Arc::new(Self { receiver, source, context, execution, naming, budget, failed, revoked, run }))
    }

    pub(crate) async fn ready(&self) -> Result<(), PrepareError> {
        self.receiver.ready().await.map_err(PrepareError::NotReady)
    }

    /// Opens demand: from here on messages are handled. Once, and not after a force.
    pub(crate) fn start(self: &Arc<Self>, kind: &Arc<K>, counters: &Arc<Counters>) {
        let mut run = self.run();
        if !matches!(*run, Run::NotStarted) {
            return;
        }
        let intake = Intake {
            source: Arc::clone(&self.source),
            kind: Arc::clone(kind),
            counters: Arc::clone(counters),
            context: self.context.clone(),
        };
        let handle = {
            let (kind, notes, label) =
                (Arc::clone(kind), self.naming.notes.clone(), Arc::clone(&self.naming.label));
            move |admitted: Admitted<K>| {
                let kind = Arc::clone(&kind);
                let note = notes.as_ref().map(|notes| {
                    let message = admitted.exchange().message();
                    Note::new(notes, &label, admitted.key(), kind.label(message), message.id())
                });
                let (exchange, attached, under_way) = admitted.into_parts();
                async move {
                    let handled = noted(note, kind.handle(exchange, attached)).await;
                    under_way.settle(handled);
                    Ok::<(), DispatchFailure>(())
                }
            }
        };
        let budget = self.budget.clone();
        let dispatch = self.execution.dispatch(&self.context, &self.naming.label, budget, intake, handle);
        let child = Arc::clone(self);
        *run = Run::Started(Watch::over(dispatch, move |ended| child.ended(ended)));
    }

    pub(crate) fn open(&self) -> Result<(), ReceiveError> {
        self.receiver.open_processing()
    }

    pub(crate) fn suspend_durable_intake(&self) -> Result<(), ReceiveError> {
        self.receiver.suspend_durable_intake()
    }

    /// Revokes the gate and takes nothing more; what was admitted goes on.
    pub(crate) fn quiesce(&self) -> Result<(), ReceiveError> {
        let revoked = self.revoke();
        self.source.stop();
        revoked
    }

    /// Resolves once nothing admitted is left.
    pub(crate) async fn drained(&self) {
        let watch = match &*self.run() {
            Run::Started(watch) => Some(watch.ended()),
            Run::NotStarted | Run::Forced => None,
        };
        if let Some(ended) = watch {
            ended.await;
        }
    }

    /// Lets go of everything: what waits is dropped, what runs is cancelled.
    pub(crate) fn force(&self) -> Result<(), ReceiveError> {
        let revoked = self.revoke();
        self.source.stop();
        let watch = {
            let mut run = self.run();
            match &*run {
                Run::Started(watch) => Some(Arc::clone(watch)),
                Run::NotStarted | Run::Forced => {
                    *run = Run::Forced;
                    None
                }
            }
        };
        if let Some(watch) = watch {
            watch.cancel();
        }
        revoked
    }

    fn ended(&self, ended: Result<Ledger, DispatchError<DispatchFailure>>) {
        self.source.stop();
        let failure = match ended.map_err(|error| error.cause) {
            Ok(_) | Err(Cause::Cancelled | Cause::Closed) => None,
            Err(Cause::Source(failure) | Cause::Handler { error: failure, .. }) => Some(failure),
            Err(other) => Some(DispatchFailure::Broken(other.to_string())),
        };
        let failure = failure.or(self.revoke().err().map(DispatchFailure::Gate));
        if let Some(failure) = failure {
            // Release: pairs with the Acquire in Dispatcher::may_go_on, before the runtime hears of it.
            self.failed.store(true, Ordering::Release);
            self.context.report_failure(failure);
        }
    }

    fn revoke(&self) -> Result<(), ReceiveError> {
        // AcqRel: whoever comes second sees the gate as the first one left it.
        if self.revoked.swap(true, Ordering::AcqRel) { Ok(()) } else { self.receiver.close_processing() }
    }

    fn run(&self) -> MutexGuard<'_, Run> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
