//! The table in the header of `phase.rs` is what the code does, row by row and nothing else.

use std::panic::catch_unwind;

use crate::phase::{Event, Phase, next};

const EVENTS: [Event; 8] = [
    Event::Start,
    Event::Started,
    Event::Stop,
    Event::Fail,
    Event::FailStart,
    Event::Force,
    Event::Drained,
    Event::Forced,
];
const PHASES: [Phase; 6] =
    [Phase::New, Phase::Starting, Phase::Running, Phase::Stopping, Phase::ForceStopping, Phase::Stopped];

struct Row {
    event: String,
    from: String,
    to: String,
    duty: String,
}

fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for line in include_str!("../phase.rs").lines().filter_map(|line| line.strip_prefix("//! | `")) {
        let cells: Vec<&str> = line.split(" | ").collect();
        let [event, from, to, duty] = cells[..] else { panic!("a row has four cells: {line}") };
        for phase in from.split(", ") {
            rows.push(Row {
                event: event.trim_end_matches('`').to_owned(),
                from: phase.to_owned(),
                to: if to == "same" { phase.to_owned() } else { to.to_owned() },
                duty: duty.split('`').nth(1).expect("a duty in backquotes").to_owned(),
            });
        }
    }
    rows
}

#[test]
fn the_table_is_what_the_code_does() {
    let rows = rows();
    assert!(rows.len() >= 30, "the table was found");
    for event in EVENTS {
        for phase in PHASES {
            let named: Vec<&Row> = rows
                .iter()
                .filter(|row| row.event == format!("{event:?}") && row.from == format!("{phase:?}"))
                .collect();
            let done = catch_unwind(|| next(phase, event));
            match (&named[..], done) {
                ([row], Ok((to, duty))) => {
                    assert_eq!(row.to, format!("{to:?}"), "{event:?} in {phase:?}");
                    assert_eq!(row.duty, format!("{duty:?}"), "{event:?} in {phase:?}");
                }
                ([], Err(_)) => {}
                ([], Ok(done)) => panic!("{event:?} in {phase:?} does {done:?}, which no row says"),
                (rows, done) => panic!("{event:?} in {phase:?}: {} rows, does {done:?}", rows.len()),
            }
        }
    }
}
