//! The aircraft: an aggregate that keeps its legs, its miles and its minutes in the air.
//!
//! Pure decisions and their events; `running.rs` hands it to the service. Invariants: a leg is recorded once; a leg that
//! was flown has a distance. It knows no row, no file and no carrier's totals.

use std::collections::HashSet;
use std::fmt;

use foldhash::fast::RandomState;
use wow_dispatch::{AggregateCommand, CommandMode, Events, Handle};
use wow_eventsourcing::{Aggregate, AggregateEvent};
use wow_message::Name;

use crate::order::Place;
use crate::rows::{Leg, Row};

/// One aircraft, by its tail number.
#[derive(Debug, Default)]
pub(crate) struct Aircraft {
    legs: HashSet<Leg, RandomState>,
    cancelled: u64,
    miles: u64,
    air_minutes: u64,
}

impl Aircraft {
    pub(crate) fn n_legs(&self) -> u64 {
        self.legs.len() as u64
    }

    /// Legs without a departure.
    pub(crate) fn cancelled(&self) -> u64 {
        self.cancelled
    }

    /// The distance of the legs that departed.
    pub(crate) fn miles(&self) -> u64 {
        self.miles
    }

    /// The time in the air of the legs that have one.
    pub(crate) fn air_minutes(&self) -> u64 {
        self.air_minutes
    }
}

/// Records what a row says about an aircraft.
#[derive(Debug)]
pub(crate) struct RecordLeg {
    pub(crate) row: Row,
    pub(crate) place: Place,
}

impl RecordLeg {
    /// What it takes in memory, about.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.row.tail_number.len() + self.row.leg.text_bytes()
    }
}

impl AggregateCommand for RecordLeg {
    type Aggregate = Aircraft;
    const NAME: &'static str = "record_leg";
    const MODE: CommandMode = CommandMode::CreateOrUpdate;

    fn aggregate_id(&self) -> Name {
        Name::copied(&self.row.tail_number)
    }
}

/// A leg was recorded.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LegRecorded {
    /// The line of the file that said so.
    pub(crate) line: u64,
    pub(crate) leg: Leg,
    pub(crate) flown: Flown,
    pub(crate) dep_delay: Option<i32>,
    pub(crate) air_minutes: Option<u32>,
}

impl LegRecorded {
    /// What it takes in memory, about.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.leg.text_bytes()
    }
}

/// Whether a leg was flown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flown {
    /// It departed, to a place this far away.
    Miles(u32),
    /// It never departed.
    Cancelled,
}

impl AggregateEvent for LegRecorded {
    fn name(&self) -> &'static str {
        "leg_recorded"
    }
}

/// Why a row cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The aircraft has this leg already.
    SameLeg(Leg),
    /// It was flown over no distance.
    NoDistance,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SameLeg(leg) => write!(
                f,
                "the same leg twice: {}-{:02}-{:02} {} {} from {}",
                leg.year, leg.month, leg.day, leg.carrier, leg.flight, leg.origin
            ),
            Self::NoDistance => f.write_str("a flown leg of no distance"),
        }
    }
}

impl std::error::Error for Refusal {}

impl Aggregate for Aircraft {
    const NAME: &'static str = "aircraft";
    type Event = LegRecorded;
    type Error = Refusal;

    fn apply(&mut self, event: &LegRecorded) {
        self.legs.insert(event.leg.clone());
        match event.flown {
            Flown::Miles(miles) => self.miles += u64::from(miles),
            Flown::Cancelled => self.cancelled += 1,
        }
        self.air_minutes += event.air_minutes.map_or(0, u64::from);
    }
}

impl Handle<RecordLeg> for Aircraft {
    type Reply = ();

    fn handle(&self, command: &RecordLeg, events: &mut Events<LegRecorded>) -> Result<(), Refusal> {
        command.place.decided();
        let row = &command.row;
        if self.legs.contains(&row.leg) {
            return Err(Refusal::SameLeg(row.leg.clone()));
        }
        let flown = match (row.departed, row.miles) {
            (true, 0) => return Err(Refusal::NoDistance),
            (true, miles) => Flown::Miles(miles),
            (false, _) => Flown::Cancelled,
        };
        events.push(LegRecorded {
            line: row.line,
            leg: row.leg.clone(),
            flown,
            dep_delay: row.dep_delay,
            air_minutes: row.air_minutes,
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use wow_dispatch::{Events, Handle};
    use wow_eventsourcing::Aggregate;

    use super::{Aircraft, LegRecorded, RecordLeg, Refusal};
    use crate::order::{Numbering, Violations};
    use crate::rows::{Leg, Row};

    fn row(flight: u32) -> Row {
        let leg = Leg { year: 2013, month: 1, day: 1, flight, carrier: "UA".into(), origin: "EWR".into() };
        let tail_number = "N1".into();
        Row {
            line: 2,
            tail_number,
            leg,
            departed: true,
            dep_delay: Some(3),
            air_minutes: Some(60),
            miles: 500,
        }
    }

    fn decide(aircraft: &mut Aircraft, row: Row) -> Result<usize, Refusal> {
        let place = Numbering::new(Violations::default()).next("N1");
        let mut events = Events::<LegRecorded>::new();
        aircraft.handle(&RecordLeg { row, place }, &mut events)?;
        for event in events.iter() {
            aircraft.apply(event);
        }
        Ok(events.iter().count())
    }

    #[test]
    fn an_aircraft_keeps_legs_miles_and_minutes() {
        let mut aircraft = Aircraft::default();
        assert_eq!(decide(&mut aircraft, row(1)), Ok(1));
        assert_eq!(decide(&mut aircraft, Row { departed: false, air_minutes: None, ..row(2) }), Ok(1));
        assert_eq!((aircraft.n_legs(), aircraft.cancelled()), (2, 1));
        assert_eq!((aircraft.miles(), aircraft.air_minutes()), (500, 60));
    }

    #[test]
    fn the_same_leg_is_refused_whatever_else_the_row_says() {
        let mut aircraft = Aircraft::default();
        assert_eq!(decide(&mut aircraft, row(1)), Ok(1));
        let again = Row { miles: 700, departed: false, ..row(1) };
        let leg = again.leg.clone();
        assert_eq!(decide(&mut aircraft, again), Err(Refusal::SameLeg(leg)));
        let elsewhere = Row { leg: Leg { origin: "JFK".into(), ..row(1).leg }, ..row(1) };
        assert_eq!(decide(&mut aircraft, elsewhere), Ok(1));
        assert_eq!(aircraft.n_legs(), 2);
    }

    #[test]
    fn a_flown_leg_of_no_distance_is_refused_and_a_cancelled_one_is_not() {
        let mut aircraft = Aircraft::default();
        assert_eq!(decide(&mut aircraft, Row { miles: 0, ..row(1) }), Err(Refusal::NoDistance));
        assert_eq!(decide(&mut aircraft, Row { miles: 0, departed: false, ..row(1) }), Ok(1));
    }
}
