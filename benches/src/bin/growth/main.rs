//! How cost grows: one thing at a time is made larger, through both doors, and the rest stays as it is.
//!
//! It owns the series and the report. Every round runs every point of every series once, so that what disturbs the
//! machine meets all of them alike; a figure is the median of the rounds, with the lowest and the highest. Markdown goes
//! to standard output. What one point does is `load.rs`; memory is a test of the executor, which can count it.
//!
//! `growth [--rounds N] [--series NAME]`, or `cargo xtask bench growth`.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program whose report is its output")]

mod load;

use std::process::ExitCode;

use load::{Door, Load, Sample};

/// Messages of a point where their number is not what grows.
const MESSAGES: u64 = 1_000_000;
const ROUNDS: usize = 4;

/// One thing that grows.
struct Series {
    name: &'static str,
    what: &'static str,
    /// The point that the others are compared with.
    base: usize,
    points: Vec<(u64, Load)>,
}

fn series() -> Vec<Series> {
    let usual = Load::default;
    let grow = |sizes: &[u64], load: &dyn Fn(u64) -> Load| sizes.iter().map(|n| (*n, load(*n))).collect();
    vec![
        Series {
            name: "live-keys",
            what: "keys that have a waiting message each, while messages go through 1,000 others; window 1,048,576",
            base: 0,
            points: grow(&[1, 10, 1_000, 1_000_000], &|waiting| Load {
                waiting,
                keys: 1_000,
                window: 1_048_576,
                ..usual()
            }),
        },
        Series {
            name: "keys",
            what: "keys that the messages go round",
            base: 0,
            points: grow(&[1, 10, 1_000, 1_000_000], &|keys| Load { keys, ..usual() }),
        },
        Series {
            name: "messages",
            what: "messages from the first to the last that is handled, one run after the other",
            base: 3,
            points: grow(&[1, 10, 1_000, 100_000, 10_000_000], &|messages| Load {
                messages,
                runs: (200_000 / messages).clamp(1, 2_000),
                ..usual()
            }),
        },
        Series {
            name: "workers",
            what: "worker threads",
            base: 1,
            points: grow(&[1, 2, 4, 8], &|workers| Load { workers: workers as usize, ..usual() }),
        },
        Series {
            name: "window",
            what: "messages unfinished at most",
            base: 2,
            points: grow(&[1, 16, 256, 4_096, 65_536], &|window| Load {
                window: window as usize,
                messages: if window == 1 { MESSAGES / 10 } else { MESSAGES },
                ..usual()
            }),
        },
        Series {
            name: "open-busy",
            what: "keyspaces or dispatches of one executor that share the messages evenly",
            base: 0,
            points: grow(&[1, 10, 100, 1_000], &|open| Load { open: open as usize, ..usual() }),
        },
        Series {
            name: "open-idle",
            what: "keyspaces or dispatches of one executor of which one has messages; the others had one each",
            base: 0,
            points: grow(&[1, 10, 100, 1_000], &|open| Load { idle: open as usize - 1, ..usual() }),
        },
        Series {
            name: "producers",
            what: "threads that submit",
            base: 0,
            points: grow(&[1, 2, 4], &|producers| Load { producers: producers as usize, ..usual() }),
        },
    ]
}

fn main() -> ExitCode {
    let mut rounds = ROUNDS;
    let mut only = None;
    let mut arguments = std::env::args().skip(1);
    while let Some(flag) = arguments.next() {
        let value = arguments.next();
        match (flag.as_str(), value.as_deref().map(str::parse::<usize>), &value) {
            ("--rounds", Some(Ok(number @ 1..)), _) => rounds = number,
            ("--series", _, Some(name)) if series().iter().any(|series| series.name == name) => only = value,
            // What `cargo bench` would add.
            _ => {
                let names: Vec<&str> = series().iter().map(|series| series.name).collect();
                eprintln!(
                    "usage: growth [--rounds N] [--series NAME], with NAME one of {}",
                    names.join(", ")
                );
                return ExitCode::from(2);
            }
        }
    }
    let mut chosen = series();
    chosen.retain(|series| only.as_ref().is_none_or(|only| series.name == only));
    report(&chosen, &measure(&chosen, rounds), rounds);
    ExitCode::SUCCESS
}

/// The samples of every series, point and door.
type Samples = Vec<Vec<[Vec<Sample>; 2]>>;

fn measure(chosen: &[Series], rounds: usize) -> Samples {
    let mut samples: Samples =
        chosen.iter().map(|series| series.points.iter().map(|_| Default::default()).collect()).collect();
    for round in 0..rounds {
        for (series, samples) in chosen.iter().zip(&mut samples) {
            eprintln!("round {} of {rounds}: {}", round + 1, series.name);
            for ((_, load), samples) in series.points.iter().zip(samples) {
                for (door, samples) in Door::BOTH.into_iter().zip(samples) {
                    samples.push(load.run(door));
                }
            }
        }
    }
    samples
}

fn report(chosen: &[Series], samples: &Samples, rounds: usize) {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    println!(
        "Medians of {rounds} interleaved rounds on {processors} processors; lowest and highest in brackets.\n"
    );
    for (series, points) in chosen.iter().zip(samples) {
        println!("### {}: {}\n", series.name, series.what);
        println!(
            "| {} | submit, M/s | to {base} | CPU ns | dispatch, M/s | to {base} | CPU ns |\n|--:|--:|--:|--:|--:|--:|--:|",
            series.name,
            base = grouped(series.points[series.base].0)
        );
        for ((size, _), doors) in series.points.iter().zip(points) {
            let cells = doors.iter().zip(&points[series.base]).map(|(door, base)| {
                let [low, rate, high] = spread(door, |sample| sample.rate / 1e6);
                // Within a round, in which both met the same machine.
                let mut ratios: Vec<f64> =
                    door.iter().zip(base).map(|(sample, base)| sample.rate / base.rate).collect();
                let [_, cpu, _] = spread(door, |sample| sample.cpu_ns);
                format!("{rate:.2} ({low:.2} to {high:.2}) | {:.2} | {cpu:.0}", median(&mut ratios))
            });
            println!("| {} | {} |", grouped(*size), cells.collect::<Vec<_>>().join(" | "));
        }
        println!();
    }
}

/// Lowest, median and highest.
fn spread(samples: &[Sample], of: impl Fn(&Sample) -> f64) -> [f64; 3] {
    let mut values: Vec<f64> = samples.iter().map(of).collect();
    let middle = median(&mut values);
    [values[0], middle, values[values.len() - 1]]
}

/// The median of values, which are sorted afterwards.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len() % 2 == 1 { values[half] } else { f64::midpoint(values[half - 1], values[half]) }
}

/// A number with a comma between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join(",")
}
