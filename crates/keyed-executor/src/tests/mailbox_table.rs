//! Reads the table in the header of `mailbox/state.rs` and holds every row, and every absent row, against the code.

use std::collections::BTreeMap;
use std::panic::catch_unwind;

use crate::mailbox::state::{Event, State, next};

const SOURCE: &str = include_str!("../mailbox/state.rs");
const STATES: [State; 6] =
    [State::Idle, State::Ready, State::Running, State::Waiting, State::Resumed, State::Detached];
const EVENTS: [Event; 12] = [
    Event::Enqueue,
    Event::Begin,
    Event::FinishMore,
    Event::FinishLast,
    Event::Yield,
    Event::Suspend,
    Event::SuspendWoken,
    Event::Wake,
    Event::Take,
    Event::HandInLast,
    Event::HandInMore,
    Event::HandInPending,
];

fn table() -> BTreeMap<(String, String), (String, String)> {
    let rows = SOURCE.lines().filter_map(|line| line.strip_prefix("//! | "));
    let mut table = BTreeMap::new();
    for row in rows.skip(1) {
        let cells: Vec<_> = row.trim_end_matches(['|', ' ']).split(" | ").map(str::to_owned).collect();
        let [state, event, next, duty] = cells.try_into().expect("a row has four cells");
        assert!(table.insert((state, event), (next, duty)).is_none(), "a row stands twice: {row}");
    }
    table
}

#[test]
fn the_table_and_the_code_agree_on_every_pair() {
    let mut table = table();
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let results: Vec<_> = STATES
        .into_iter()
        .flat_map(|state| EVENTS.into_iter().map(move |event| (state, event)))
        .map(|(state, event)| (state, event, catch_unwind(|| next(state, event)).ok()))
        .collect();
    std::panic::set_hook(quiet);
    for (state, event, result) in results {
        let row = table.remove(&(format!("{state:?}"), format!("{event:?}")));
        let code = result.map(|(next, duty)| (format!("{next:?}"), format!("{duty:?}")));
        assert_eq!(row, code, "{state:?} on {event:?}: the table says the left, the code does the right");
    }
    assert!(table.is_empty(), "rows of states or events that do not exist: {table:?}");
}
