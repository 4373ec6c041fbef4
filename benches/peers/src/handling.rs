//! The handler, once as a future and once as a plain function: check, work, check.
//!
//! The future is written by hand so that every contender carries the same few bytes beside the message: a timer of tokio
//! is boxed, which costs one allocation, and only the workloads with such timers pay for it.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Sleep, sleep};

use crate::course::Course;
use crate::message::{Message, Work};
use crate::time::{block, compute};
use crate::timer::Ticket;

/// How long a handler that blocks does so.
const BLOCKED: Duration = Duration::from_millis(50);

/// The handling of one message.
#[derive(Debug)]
#[must_use = "a handler that is not polled does nothing"]
pub struct Handling {
    course: &'static Course,
    message: Message,
    step: Step,
}

#[derive(Debug)]
enum Step {
    New,
    Yielded,
    Waiting(Pin<Box<Sleep>>),
    WaitingFine(Ticket),
}

impl Course {
    /// Handles a message; for contenders whose handlers may wait.
    #[inline]
    pub fn handle(&'static self, message: Message) -> Handling {
        Handling { course: self, message, step: Step::New }
    }

    /// Handles a message on the calling thread.
    ///
    /// # Panics
    /// If the handler of the workload would have to wait.
    #[inline]
    pub fn handle_blocking(&self, message: &Message) {
        self.begin(message);
        match Work::from(message.work) {
            Work::Check => {}
            Work::Compute => compute(self.compute_steps()),
            Work::Block => block(BLOCKED),
            Work::BlockAtGate => self.gate.wait(),
            Work::OpenGate => self.gate.open(),
            Work::Yield | Work::Wait | Work::WaitLong | Work::WaitFine => {
                unreachable!("a plain function cannot wait")
            }
        }
        self.end(message);
    }
}

impl Future for Handling {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        match &mut this.step {
            Step::New => {
                this.course.begin(&this.message);
                match Work::from(this.message.work) {
                    Work::Check => {}
                    Work::Compute => compute(this.course.compute_steps()),
                    Work::Block => block(BLOCKED),
                    Work::BlockAtGate => this.course.gate.wait(),
                    Work::OpenGate => this.course.gate.open(),
                    Work::Yield => {
                        this.step = Step::Yielded;
                        cx.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                    work @ (Work::Wait | Work::WaitLong) => {
                        let millis = if work == Work::Wait { 1 } else { 5 };
                        let mut timer = Box::pin(sleep(Duration::from_millis(millis)));
                        if timer.as_mut().poll(cx).is_pending() {
                            this.step = Step::Waiting(timer);
                            return Poll::Pending;
                        }
                    }
                    Work::WaitFine => {
                        this.step = Step::WaitingFine(this.course.timer().wait(cx));
                        return Poll::Pending;
                    }
                }
            }
            Step::Yielded => {}
            Step::Waiting(timer) => ready!(timer.as_mut().poll(cx)),
            Step::WaitingFine(ticket) => ready!(this.course.timer().poll(ticket, cx)),
        }
        this.course.end(&this.message);
        Poll::Ready(())
    }
}
