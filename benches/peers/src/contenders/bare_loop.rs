//! No peer, but a limit for handlers that wait equally long: one thread that fills the window and polls whoever began first.
//!
//! It hands nothing over and looks at no key, so that two messages of one may run at once: what it reaches is what timer
//! and window leave to everybody else.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_executor::block_on;

use crate::contender::Contender;
use crate::course::{Course, WINDOW};
use crate::feed::Feed;
use crate::handling::Handling;

pub(crate) fn open(course: &'static Course) -> Box<dyn Contender> {
    Box::new(BareLoop { course, running: VecDeque::with_capacity(WINDOW as usize) })
}

struct BareLoop {
    course: &'static Course,
    /// In the order in which they began, which is the one in which their waits end.
    running: VecDeque<Handling>,
}

impl Contender for BareLoop {
    fn feed(&mut self, mut feed: Feed) {
        block_on(poll_fn(|cx| self.poll(&mut feed, cx)));
    }
}

impl BareLoop {
    fn poll(&mut self, feed: &mut Feed, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            while self.running.len() < WINDOW as usize {
                let Some(message) = feed.next() else { break };
                let mut handling = self.course.handle(message);
                if Pin::new(&mut handling).poll(cx).is_pending() {
                    self.running.push_back(handling);
                }
            }
            let Some(first) = self.running.front_mut() else { return Poll::Ready(()) };
            if Pin::new(first).poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.running.pop_front();
        }
    }
}
