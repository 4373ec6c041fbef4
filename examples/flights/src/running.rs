//! The run: a service of aircraft and carriers, the rows sent to it in file order, and their answers counted.
//!
//! Owns the service and the ledger. Invariants: a row that was taken is counted once, as handled or as rejected; the
//! report is made only after the service has stopped with everything finished; totals come from the aggregates' own
//! events and from the projection, never from the rows. It prints nothing.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use hdrhistogram::Histogram;
use tokio::sync::{Notify, mpsc};
use wow_dispatch::{CommandError, DispatchConfig, Reply, Running, Service};
use wow_eventsourcing::{Aggregate, MemoryEventStore, load_state};
use wow_message::{AggregateId, Name, NamedAggregate};
use wow_runtime::{SystemTimer, Timer};

use crate::aircraft::{Aircraft, LegRecorded, RecordLeg, Refusal};
use crate::carriers::Carriers;
use crate::interrupts::Interrupts;
use crate::order::{Numbering, Violations};
use crate::problem::Problem;
use crate::progress::Progress;
use crate::reading::{Batch, Item, Table};
use crate::rejected::Rejected;
use crate::report::{Ending, Fleet, Report};

/// The bounded context of the service.
const CONTEXT: &str = "flights";
/// Everything is in this process, so a short idle time proves that nothing is on its way.
const QUIET_PERIOD: Duration = Duration::from_millis(10);
/// Longer latencies, of more than an hour, count as this one.
const MAX_LATENCY_NANOS: u64 = 3_600_000_000_000;
/// The exit code of a run that was interrupted, as shells expect it.
pub(crate) const EXIT_INTERRUPTED: u8 = 130;

/// Why there is no report.
#[derive(Debug)]
pub(crate) enum NoReport {
    /// The input, or a file of the user, is wrong.
    Problem(Problem),
    /// This program or its libraries are wrong.
    Fault(String),
    /// Somebody asked twice to stop.
    Abandoned,
}

/// Sends every row of `table` and waits for all of them.
///
/// # Errors
/// [`NoReport`], after the service was stopped.
pub(crate) async fn run(
    table: Table,
    dispatch: DispatchConfig,
    rejected: Rejected,
) -> Result<Report, NoReport> {
    // What the dispatcher has in hand; more would only wait in the bus, and its latency tell of that queue.
    let max_unanswered = dispatch.executor.max_in_flight;
    let timer = SystemTimer::new();
    let violations = Violations::default();
    let carriers = Carriers::new(violations.clone(), timer.clone());
    let view = carriers.clone();
    let store = Arc::new(MemoryEventStore::new());
    let service = Service::builder(CONTEXT)
        .aggregate::<Aircraft>(|aircraft| aircraft.command::<RecordLeg>())
        .projection("carriers", |projection| projection.each(move |event| view.project(event)))
        .shared_store(Arc::<MemoryEventStore>::clone(&store))
        .config(dispatch)
        .weigh_commands(|command| command.message().body_as::<RecordLeg>().map_or(0, RecordLeg::bytes))
        .weigh_events(|stream| {
            let events = stream.message().events().iter();
            events.filter_map(|event| event.body_as::<LegRecorded>()).map(LegRecorded::bytes).sum()
        })
        .quiet_period(QUIET_PERIOD)
        .build()
        .map_err(|error| NoReport::Fault(error.to_string()))?;
    let mut interrupts = Interrupts::listen().map_err(|error| NoReport::Fault(error.to_string()))?;
    let running = service.start().await.map_err(|error| NoReport::Fault(error.to_string()))?;

    let began_at = timer.now();
    let mut pump = Pump {
        progress: Progress::of(table.input()),
        running: &running,
        timer: &timer,
        numbering: Numbering::new(violations.clone()),
        answers: FuturesUnordered::new(),
        rejected,
        n_rows: 0,
        n_handled: 0,
        latency: Histogram::new_with_bounds(1, MAX_LATENCY_NANOS, 3)
            .map_err(|error| NoReport::Fault(error.to_string()))?,
        answered_at: began_at,
        max_unanswered,
    };
    let batches = table.read().map_err(|error| NoReport::Fault(error.to_string()))?;
    let asked_to_stop = Notify::new();
    let job = async {
        let pumped = pump.run(batches, &asked_to_stop).await;
        // What was sent is finished whatever came in between, so that no row is half counted.
        (pumped, running.stop().await)
    };
    let (pumped, stopped) = match until_interrupted_twice(job, &mut interrupts, &asked_to_stop).await {
        Ok(ended) => ended,
        Err(abandoned) => {
            drop(pump);
            // It ends with the process: its drop would log as a failure what the user asked for.
            std::mem::forget(running);
            return Err(abandoned);
        }
    };
    let ending = pumped?;
    stopped.result().map_err(|failure| NoReport::Fault(failure.to_string()))?;

    let Pump { numbering, rejected, n_rows, n_handled, latency, answered_at, progress, .. } = pump;
    drop(progress);
    let fleet = fleet(&store, &numbering).await?;
    let ended_at = carriers.last_at().map_or(answered_at, |at| at.max(answered_at));
    let report = Report {
        rows: n_rows,
        handled: n_handled,
        rejected: rejected.count(),
        fleet,
        carriers: carriers.totals(),
        events: store.n_streams() as u64,
        elapsed: ended_at.saturating_duration_since(began_at),
        order_violations: violations.count(),
        ending,
        latency,
    };
    if let Some(discrepancy) = report.discrepancy() {
        return Err(NoReport::Fault(discrepancy));
    }
    // Last, so that a run without a report leaves an older list as it was.
    rejected.write().map_err(NoReport::Problem)?;
    Ok(report)
}

/// Drives `job`. The first interrupt is passed on, the second ends it where it is.
async fn until_interrupted_twice<F: Future>(
    job: F,
    interrupts: &mut Interrupts,
    asked_to_stop: &Notify,
) -> Result<F::Output, NoReport> {
    let mut job = pin!(job);
    let mut interrupted = false;
    loop {
        tokio::select! {
            biased;
            () = interrupts.next() => {
                if interrupted {
                    return Err(NoReport::Abandoned);
                }
                interrupted = true;
                asked_to_stop.notify_one();
            }
            output = &mut job => return Ok(output),
        }
    }
}

/// Sums what the aggregates' events say, each sourced anew from the store.
async fn fleet(store: &MemoryEventStore, numbering: &Numbering) -> Result<Fleet, NoReport> {
    let named = NamedAggregate::new(CONTEXT, Aircraft::NAME);
    let mut fleet = Fleet::default();
    for tail_number in numbering.aircraft() {
        let id = AggregateId::new(named, Name::copied(tail_number));
        let state = load_state::<Aircraft>(store, id).await;
        let state = state.map_err(|error| NoReport::Fault(error.to_string()))?;
        let aircraft = state.root();
        fleet.aircraft += u64::from(aircraft.n_legs() > 0);
        fleet.legs += aircraft.n_legs();
        fleet.cancelled += aircraft.cancelled();
        fleet.miles += aircraft.miles();
        fleet.air_minutes += aircraft.air_minutes();
    }
    Ok(fleet)
}

// === Pump ===

/// Takes rows, sends commands, counts answers.
struct Pump<'a> {
    running: &'a Running,
    timer: &'a SystemTimer,
    numbering: Numbering,
    answers: FuturesUnordered<Answering>,
    rejected: Rejected,
    n_rows: u64,
    n_handled: u64,
    latency: Histogram<u64>,
    answered_at: Instant,
    progress: Progress,
    max_unanswered: usize,
}

impl Pump<'_> {
    async fn run(
        &mut self,
        mut batches: mpsc::Receiver<Batch>,
        asked_to_stop: &Notify,
    ) -> Result<Ending, NoReport> {
        let ending = loop {
            let batch = tokio::select! {
                biased;
                () = asked_to_stop.notified() => break Ok(Ending::Interrupted),
                Some(answer) = self.answers.next() => {
                    self.settle(answer)?;
                    continue;
                }
                batch = batches.recv() => batch,
            };
            match batch {
                None => break Ok(Ending::Complete),
                Some(Err(problem)) => break Err(NoReport::Problem(problem)),
                Some(Ok(items)) => self.take(items).await?,
            }
            self.progress.show(self.n_rows);
        };
        // The reading thread ends with its next batch, or with its process if it waits for a terminal or a pipe.
        drop(batches);
        while let Some(answer) = self.answers.next().await {
            self.settle(answer)?;
        }
        ending
    }

    /// Sends what can be sent, in order, and counts the rest.
    async fn take(&mut self, items: Vec<Item>) -> Result<(), NoReport> {
        for item in items {
            self.n_rows += 1;
            let row = match item {
                Item::Row(row) => row,
                Item::Bad { line, reason } => {
                    self.rejected.add(line, &reason);
                    continue;
                }
            };
            while self.answers.len() >= self.max_unanswered {
                let Some(answer) = self.answers.next().await else { break };
                self.settle(answer)?;
            }
            let (line, place) = (row.line, self.numbering.next(&row.tail_number));
            let sent_at = self.timer.now();
            let sent = self.running.send(RecordLeg { row, place }).await;
            let reply = sent.map_err(|error| NoReport::Fault(format!("line {line}: {error}")))?;
            self.answers.push(Answering { line, sent_at, reply });
            while let Some(Some(answer)) = self.answers.next().now_or_never() {
                self.settle(answer)?;
            }
        }
        Ok(())
    }

    fn settle(&mut self, Answer { line, sent_at, result }: Answer) -> Result<(), NoReport> {
        self.answered_at = self.timer.now();
        let took = self.answered_at.saturating_duration_since(sent_at);
        self.latency.saturating_record(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
        match result {
            Ok(()) => self.n_handled += 1,
            Err(CommandError::Refused(refusal)) => self.rejected.add(line, &refusal),
            Err(error) => return Err(NoReport::Fault(format!("line {line}: {error}"))),
        }
        Ok(())
    }
}

/// The answer to the command of one line.
struct Answer {
    line: u64,
    sent_at: Instant,
    result: Result<(), CommandError<Refusal>>,
}

/// Waits for an answer.
struct Answering {
    line: u64,
    sent_at: Instant,
    reply: Reply<RecordLeg>,
}

impl Future for Answering {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        let (line, sent_at) = (self.line, self.sent_at);
        Pin::new(&mut self.reply).poll(cx).map(|result| Answer { line, sent_at, result })
    }
}
