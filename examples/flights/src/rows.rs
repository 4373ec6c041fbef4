//! Rows: what one line of the table says, or why it cannot be a command.
//!
//! Pure functions over one line; `reading.rs` calls them with the lines of the file. Invariants: a column is found by
//! its name, wherever it stands; a line is one row, so that a stray quote spoils its own row only; `NA` is a value where
//! times and delays stand and nowhere else. It knows no aggregate: whether a leg can be is the aircraft's to decide.

use std::borrow::Cow;
use std::fmt;
use std::io::Read;

/// The columns of the table. All of them have to be there; others may be, if they have a name.
pub(crate) const COLUMNS: [&str; 16] = [
    "year",
    "month",
    "day",
    "dep_time",
    "sched_dep_time",
    "dep_delay",
    "arr_time",
    "arr_delay",
    "carrier",
    "flight",
    "tailnum",
    "origin",
    "dest",
    "air_time",
    "distance",
    "time_hour",
];

/// One departure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// Its line in the file; the header is line 1.
    pub(crate) line: u64,
    pub(crate) tail_number: Box<str>,
    pub(crate) leg: Leg,
    /// Whether it has a departure time; without one it was cancelled.
    pub(crate) departed: bool,
    pub(crate) dep_delay: Option<i32>,
    pub(crate) air_minutes: Option<u32>,
    pub(crate) miles: u32,
}

/// What tells one leg of an aircraft from another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Leg {
    pub(crate) year: u32,
    pub(crate) month: u32,
    pub(crate) day: u32,
    pub(crate) flight: u32,
    pub(crate) carrier: Box<str>,
    pub(crate) origin: Box<str>,
}

impl Leg {
    /// The texts that it keeps beside itself.
    pub(crate) fn text_bytes(&self) -> usize {
        self.carrier.len() + self.origin.len()
    }
}

/// Why a line cannot be a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BadRow {
    NotUtf8,
    TooLong { max_bytes: usize },
    OpenQuote,
    Fields { found: usize, expected: usize },
    NoTailNumber { written: String },
    NotANumber { column: &'static str, written: String, wanted: Wanted },
}

/// What stands where a number is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// A whole number from 0.
    Count,
    /// A whole number from 0, or `NA`.
    CountOrNa,
    /// A whole number, or `NA`.
    SignedOrNa,
}

impl fmt::Display for BadRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotUtf8 => f.write_str("the line is not UTF-8 text"),
            Self::TooLong { max_bytes } => write!(f, "the line is longer than {max_bytes} bytes"),
            Self::OpenQuote => f.write_str("a quote is not closed"),
            Self::Fields { found, expected } if found < expected => {
                write!(f, "too few fields: {found} instead of {expected}")
            }
            Self::Fields { found, expected } => write!(f, "too many fields: {found} instead of {expected}"),
            Self::NoTailNumber { written } if written.trim().is_empty() => f.write_str("tailnum is empty"),
            Self::NoTailNumber { written } => write!(f, "tailnum is {written}"),
            Self::NotANumber { column, written, wanted } => {
                let written = if written.is_empty() { "empty" } else { written };
                let wanted = match wanted {
                    Wanted::Count => "a whole number from 0",
                    Wanted::CountOrNa => "a whole number from 0 or NA",
                    Wanted::SignedOrNa => "a whole number or NA",
                };
                write!(f, "{column} is {written}, {wanted} is needed")
            }
        }
    }
}

/// What is wrong with the first line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BadHeader {
    NotUtf8,
    TooLong { max_bytes: usize },
    NoTable,
    Missing { column: &'static str },
    Twice { column: String },
    Unnamed { position: usize },
}

impl fmt::Display for BadHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotUtf8 => f.write_str("the header is not UTF-8 text"),
            Self::TooLong { max_bytes } => write!(f, "the header is longer than {max_bytes} bytes"),
            Self::NoTable => {
                write!(f, "the header has none of the columns, which are {}", COLUMNS.join(", "))
            }
            Self::Missing { column } => write!(f, "the header has no column {column}"),
            Self::Twice { column } => write!(f, "the header has the column {column} twice"),
            Self::Unnamed { position } => write!(f, "the header has no name for column {position}"),
        }
    }
}

/// Where each column stands.
#[derive(Clone, Debug)]
pub(crate) struct Columns {
    places: [usize; COLUMNS.len()],
    n_fields: usize,
}

impl Columns {
    /// Reads the header.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub(crate) fn of(header: &[u8]) -> Result<Self, Vec<BadHeader>> {
        let header = header.strip_prefix(b"\xef\xbb\xbf").unwrap_or(header);
        let text = std::str::from_utf8(header).map_err(|_| vec![BadHeader::NotUtf8])?;
        let names = split(text).unwrap_or_default();
        let names: Vec<&str> = names.iter().map(|name| name.trim()).collect();
        if !COLUMNS.iter().any(|column| names.contains(column)) {
            return Err(vec![BadHeader::NoTable]);
        }
        let mut problems = Vec::new();
        let mut places = [0; COLUMNS.len()];
        for (place, column) in places.iter_mut().zip(COLUMNS) {
            match names.iter().position(|name| *name == column) {
                Some(found) => *place = found,
                None => problems.push(BadHeader::Missing { column }),
            }
        }
        for (index, name) in names.iter().enumerate() {
            if name.is_empty() {
                problems.push(BadHeader::Unnamed { position: index + 1 });
            } else if names[..index].contains(name) {
                problems.push(BadHeader::Twice { column: (*name).to_owned() });
            }
        }
        if problems.is_empty() { Ok(Self { places, n_fields: names.len() }) } else { Err(problems) }
    }

    /// Reads one line.
    ///
    /// # Errors
    /// The first reason why it cannot be a command: number of fields, then tail number, then the numbers.
    pub(crate) fn row(&self, line: u64, bytes: &[u8]) -> Result<Row, BadRow> {
        let text = std::str::from_utf8(bytes).map_err(|_| BadRow::NotUtf8)?;
        let fields = split(text).ok_or(BadRow::OpenQuote)?;
        if fields.len() != self.n_fields {
            return Err(BadRow::Fields { found: fields.len(), expected: self.n_fields });
        }
        let field = |column: usize| fields[self.places[column]].as_ref();
        let tail_number = field(10);
        if tail_number.trim().is_empty() || tail_number == "NA" {
            return Err(BadRow::NoTailNumber { written: tail_number.to_owned() });
        }
        let count = |column| number(column, field(column), Wanted::Count);
        let maybe = |column| optional(column, field(column), Wanted::CountOrNa);
        let signed = |column| optional(column, field(column), Wanted::SignedOrNa);
        let (year, month, day) = (count(0)?, count(1)?, count(2)?);
        let dep_time: Option<u32> = maybe(3)?;
        let _sched_dep_time: Option<u32> = maybe(4)?;
        let dep_delay = signed(5)?;
        let _arr_time: Option<u32> = maybe(6)?;
        let _arr_delay: Option<i32> = optional(7, field(7), Wanted::SignedOrNa)?;
        let flight = count(9)?;
        let air_minutes = maybe(13)?;
        let miles = count(14)?;
        Ok(Row {
            line,
            tail_number: tail_number.into(),
            leg: Leg { year, month, day, flight, carrier: field(8).into(), origin: field(11).into() },
            departed: dep_time.is_some(),
            dep_delay,
            air_minutes,
            miles,
        })
    }
}

fn number<N: std::str::FromStr>(column: usize, text: &str, wanted: Wanted) -> Result<N, BadRow> {
    text.parse().map_err(|_| BadRow::NotANumber { column: COLUMNS[column], written: shown(text), wanted })
}

fn optional<N: std::str::FromStr>(column: usize, text: &str, wanted: Wanted) -> Result<Option<N>, BadRow> {
    if text == "NA" { Ok(None) } else { number(column, text, wanted).map(Some) }
}

/// A field in a message: short, and on one line.
fn shown(text: &str) -> String {
    text.chars().take(40).flat_map(char::escape_debug).collect()
}

/// The fields of one line; `None` if a quote is not closed.
fn split(text: &str) -> Option<Vec<Cow<'_, str>>> {
    if !text.contains('"') {
        return Some(text.split(',').map(Into::into).collect());
    }
    // A line ends where the file says, whatever its quotes say: an open quote would swallow the line added here.
    let lines = text.as_bytes().chain(&b"\nend"[..]);
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).buffer_capacity(256).from_reader(lines);
    let mut records = reader.records();
    let record = records.next()?.ok()?;
    records.next()?.ok()?;
    Some(record.iter().map(|field| field.to_owned().into()).collect())
}

#[cfg(test)]
mod tests {
    use super::{BadHeader, BadRow, COLUMNS, Columns, Wanted};

    const GOOD: &str = "2013,1,1,517,515,2,830,11,UA,1545,N14228,EWR,IAH,227,1400,2013-01-01T10:00:00Z";

    fn columns() -> Columns {
        Columns::of(COLUMNS.join(",").as_bytes()).unwrap()
    }

    fn with(column: &str, value: &str) -> String {
        let place = COLUMNS.iter().position(|name| *name == column).unwrap();
        let mut fields: Vec<&str> = GOOD.split(',').collect();
        fields[place] = value;
        fields.join(",")
    }

    #[test]
    fn a_row_has_its_fields_by_name_in_any_order() {
        let expected = columns().row(7, GOOD.as_bytes()).unwrap();
        assert_eq!((expected.line, &*expected.tail_number, expected.miles), (7, "N14228", 1400));
        assert_eq!((expected.dep_delay, expected.air_minutes, expected.departed), (Some(2), Some(227), true));
        assert_eq!((&*expected.leg.carrier, &*expected.leg.origin, expected.leg.flight), ("UA", "EWR", 1545));
        let mut names: Vec<&str> = COLUMNS.to_vec();
        let mut fields: Vec<&str> = GOOD.split(',').collect();
        names.push("note");
        fields.push("x");
        names.reverse();
        fields.reverse();
        let reversed = Columns::of(names.join(",").as_bytes()).unwrap();
        assert_eq!(reversed.row(7, fields.join(",").as_bytes()).unwrap(), expected);
    }

    #[test]
    fn na_is_a_value_of_times_and_delays_only() {
        for column in ["dep_time", "sched_dep_time", "dep_delay", "arr_time", "arr_delay", "air_time"] {
            columns().row(2, with(column, "NA").as_bytes()).unwrap();
        }
        for column in ["year", "month", "day", "flight", "distance"] {
            let refused = columns().row(2, with(column, "NA").as_bytes()).unwrap_err();
            assert_eq!(refused.to_string(), format!("{column} is NA, a whole number from 0 is needed"));
        }
        let cancelled = columns().row(2, with("dep_time", "NA").as_bytes()).unwrap();
        assert!(!cancelled.departed);
    }

    #[test]
    fn a_field_that_is_no_number_is_named() {
        for written in ["", "x", "1.5", "-1", " 1", "99999999999"] {
            let refused = columns().row(2, with("distance", written).as_bytes()).unwrap_err();
            let written = written.to_owned();
            assert_eq!(refused, BadRow::NotANumber { column: "distance", written, wanted: Wanted::Count });
        }
        assert_eq!(
            columns().row(2, with("dep_delay", "").as_bytes()).unwrap_err().to_string(),
            "dep_delay is empty, a whole number or NA is needed"
        );
        assert_eq!(columns().row(2, with("dep_delay", "-12").as_bytes()).unwrap().dep_delay, Some(-12));
    }

    #[test]
    fn a_row_without_a_tail_number_or_with_another_number_of_fields_is_refused() {
        for written in ["", " ", "NA"] {
            let refused = columns().row(2, with("tailnum", written).as_bytes()).unwrap_err();
            assert!(matches!(refused, BadRow::NoTailNumber { .. }));
        }
        let few = GOOD.rsplit_once(',').unwrap().0;
        let many = format!("{GOOD},more");
        assert_eq!(
            columns().row(2, few.as_bytes()).unwrap_err().to_string(),
            "too few fields: 15 instead of 16"
        );
        assert_eq!(
            columns().row(2, many.as_bytes()).unwrap_err().to_string(),
            "too many fields: 17 instead of 16"
        );
        assert_eq!(columns().row(2, b"\xff").unwrap_err(), BadRow::NotUtf8);
    }

    #[test]
    fn quotes_are_read_and_an_open_one_spoils_its_own_line_only() {
        let quoted: Vec<String> = GOOD.split(',').map(|field| format!("\"{field}\"")).collect();
        let row = columns().row(2, quoted.join(",").as_bytes()).unwrap();
        assert_eq!(row, columns().row(2, GOOD.as_bytes()).unwrap());
        let comma = columns().row(2, with("dest", "\"I,A\"").as_bytes()).unwrap();
        assert_eq!(comma, row);
        let inside = columns().row(2, with("dest", "5\"3").as_bytes()).unwrap();
        assert_eq!(inside, row);
        assert_eq!(columns().row(2, with("dest", "\"IAH").as_bytes()).unwrap_err(), BadRow::OpenQuote);
    }

    #[test]
    fn a_header_is_refused_with_every_column_that_is_wrong() {
        let header = COLUMNS.join(",");
        let missing = header.replace("tailnum,", "").replace(",distance", "");
        assert_eq!(
            Columns::of(missing.as_bytes()).unwrap_err(),
            [BadHeader::Missing { column: "tailnum" }, BadHeader::Missing { column: "distance" }]
        );
        let twice = format!("{header},year,");
        assert_eq!(
            Columns::of(twice.as_bytes()).unwrap_err(),
            [BadHeader::Twice { column: "year".to_owned() }, BadHeader::Unnamed { position: 18 }]
        );
        assert_eq!(Columns::of(b"a,b,c").unwrap_err(), [BadHeader::NoTable]);
        assert_eq!(Columns::of(b"year\xff").unwrap_err(), [BadHeader::NotUtf8]);
        Columns::of(format!("\u{feff}{header}").as_bytes()).unwrap();
    }
}
