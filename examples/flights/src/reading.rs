//! Reading: a thread that turns the input into rows, in batches, no faster than they are taken.
//!
//! Owns the input from its header on. Invariants: every line after the header that is not blank becomes one item, in
//! file order; a read error ends the items and is the last thing sent; nobody waits for this thread, which may be stuck
//! in a read of a terminal or a pipe. It decides nothing about a row.

use std::io;

use tokio::sync::mpsc;

use crate::input::{Input, Line, MAX_LINE};
use crate::problem::Problem;
use crate::rows::{BadHeader, BadRow, Columns, Row};

/// Rows of one batch, and batches that wait.
const BATCH: usize = 128;
const MAX_BATCHES: usize = 8;

/// One line of the table.
#[derive(Debug)]
pub(crate) enum Item {
    Row(Row),
    Bad { line: u64, reason: BadRow },
}

/// Some lines in order, or why there are no more.
pub(crate) type Batch = Result<Vec<Item>, Problem>;

/// An input whose header was read.
pub(crate) struct Table {
    input: Input,
    columns: Columns,
}

impl Table {
    /// Reads the header.
    ///
    /// # Errors
    /// Everything that is wrong with it, or that it cannot be read.
    pub(crate) fn open(mut input: Input) -> Result<Self, Vec<Problem>> {
        let mut buffer = Vec::new();
        let name = input.name.clone();
        let unreadable = |error: io::Error| vec![Problem::at(&name, 1, error)];
        let header = match input.next_line(&mut buffer).map_err(unreadable)? {
            Some(Line::Text(header)) => Columns::of(header),
            Some(Line::TooLong) => Err(vec![BadHeader::TooLong { max_bytes: MAX_LINE }]),
            None => return Err(vec![Problem::new(&name, "the file is empty")]),
        };
        match header {
            Ok(columns) => Ok(Self { input, columns }),
            Err(wrong) => Err(wrong.into_iter().map(|wrong| Problem::at(&name, 1, wrong)).collect()),
        }
    }

    pub(crate) fn input(&self) -> &Input {
        &self.input
    }

    /// Starts the thread.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub(crate) fn read(self) -> io::Result<mpsc::Receiver<Batch>> {
        let (send, receive) = mpsc::channel(MAX_BATCHES);
        let reading = move || {
            // A send fails when nobody takes rows any more; then there is nothing left to do.
            if let Err(Stop::Problem(problem)) = self.send_all(&send) {
                let _ = send.blocking_send(Err(problem));
            }
        };
        std::thread::Builder::new().name("flights-reading".to_owned()).spawn(reading)?;
        Ok(receive)
    }

    fn send_all(self, send: &mpsc::Sender<Batch>) -> Result<(), Stop> {
        let Self { mut input, columns } = self;
        let mut buffer = Vec::new();
        let mut batch = Vec::new();
        for line in 2.. {
            let item = match input.next_line(&mut buffer) {
                Ok(None) => break,
                Ok(Some(Line::Text([]))) => continue,
                Ok(Some(Line::Text(text))) => columns.row(line, text),
                Ok(Some(Line::TooLong)) => Err(BadRow::TooLong { max_bytes: MAX_LINE }),
                Err(error) => {
                    flush(&mut batch, send)?;
                    return Err(Stop::Problem(Problem::at(&input.name, line, error)));
                }
            };
            batch.push(item.map_or_else(|reason| Item::Bad { line, reason }, Item::Row));
            if batch.len() == BATCH || input.is_drained() {
                flush(&mut batch, send)?;
            }
        }
        flush(&mut batch, send)
    }
}

enum Stop {
    NobodyListens,
    Problem(Problem),
}

fn flush(batch: &mut Vec<Item>, send: &mpsc::Sender<Batch>) -> Result<(), Stop> {
    if batch.is_empty() {
        return Ok(());
    }
    send.blocking_send(Ok(std::mem::take(batch))).map_err(|_| Stop::NobodyListens)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::mpsc;
    use std::time::Duration;

    use super::{Item, Table};
    use crate::input::Input;
    use crate::rows::COLUMNS;

    #[test]
    fn rows_at_hand_are_passed_on_while_the_input_stays_open() {
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        writeln!(writer, "{}\n1\n\n2,3", COLUMNS.join(",")).expect("the pipe has room");
        let input = Input::over("a pipe".to_owned(), None, Box::new(reader)).expect("two bytes are there");
        let mut batches =
            Table::open(input).unwrap_or_else(|problems| panic!("{problems:?}")).read().expect("a thread");
        let (send, receive) = mpsc::channel();
        std::thread::spawn(move || {
            while let Some(batch) = batches.blocking_recv() {
                batch
                    .expect("nothing is wrong")
                    .into_iter()
                    .for_each(|item| send.send(item).expect("awaited"));
            }
        });
        let next = || receive.recv_timeout(Duration::from_secs(30));
        assert!(matches!(next(), Ok(Item::Bad { line: 2, .. })));
        assert!(matches!(next(), Ok(Item::Bad { line: 4, .. })), "a blank line has a number and is no row");
        drop(writer);
        assert!(next().is_err(), "the end of the input ends the items");
    }
}
