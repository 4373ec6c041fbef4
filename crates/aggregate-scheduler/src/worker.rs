//! `Worker`: one thread's queue of tasks.
//!
//! Many threads push, one thread takes and runs, first in first out. Invariants: a push before the close is run; after
//! the close nothing is taken in, and the thread ends once the queue is empty. The thread sleeps while there is nothing
//! to run and is woken only if it sleeps. Starting threads is the pool's part.

use std::collections::VecDeque;

use crate::sync::{Arc, Condvar, Mutex, lock, wait};
use crate::task::Task;

/// A queue with the name of its thread.
pub(crate) struct Worker {
    name: String,
    queue: Mutex<Queue>,
    filled: Condvar,
}

#[derive(Default)]
struct Queue {
    tasks: VecDeque<Arc<Task>>,
    asleep: bool,
    closed: bool,
}

impl Worker {
    pub(crate) fn new(name: String) -> Arc<Self> {
        Arc::new(Self { name, queue: Mutex::default(), filled: Condvar::new() })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Queues a task. After the close it does nothing: whatever is woken then belongs to no dispatch any more.
    pub(crate) fn push(&self, task: Arc<Task>) {
        let mut queue = lock(&self.queue);
        if queue.closed {
            drop(queue);
            return;
        }
        queue.tasks.push_back(task);
        let wake = std::mem::take(&mut queue.asleep);
        drop(queue);
        if wake {
            self.filled.notify_one();
        }
    }

    /// Takes nothing in any more.
    pub(crate) fn close(&self) {
        lock(&self.queue).closed = true;
        self.filled.notify_one();
    }

    /// Runs tasks until the close; the body of its thread.
    pub(crate) fn run(&self) {
        while let Some(task) = self.next() {
            task.run();
        }
    }

    fn next(&self) -> Option<Arc<Task>> {
        let mut queue = lock(&self.queue);
        loop {
            if let Some(task) = queue.tasks.pop_front() {
                return Some(task);
            }
            if queue.closed {
                return None;
            }
            queue.asleep = true;
            queue = wait(&self.filled, queue);
            queue.asleep = false;
        }
    }
}
