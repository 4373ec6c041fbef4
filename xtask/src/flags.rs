//! The command line: turns arguments into a [`Task`], or into an error that names the offending argument.
//!
//! It owns the list of subcommands and their flags, and the text that shows them. Invariant: whatever it does
//! not know is refused by name, never ignored. It runs nothing.

use std::fmt;

use crate::bench;
use crate::shuttle::Wanted;
use crate::verify::Step;

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Task {
    /// No subcommand: show the list.
    List,
    /// The chosen steps of `verify`; all of them where none is named.
    Verify {
        steps: Vec<Step>,
    },
    Layers,
    Msrv,
    Tidy,
    Loom(Depth),
    Shuttle(Wanted),
    /// Without a seed, one is drawn and printed.
    Stress {
        seconds: u64,
        seed: Option<u64>,
    },
    /// The tool reads its arguments itself.
    Mutants {
        arguments: Vec<String>,
    },
    Bench {
        name: Option<String>,
    },
    /// Compared with the document, or recorded.
    BenchInstructions {
        out: Option<String>,
    },
    /// With and without what is kept only to be shown.
    BenchVisibility,
    /// The program reads its arguments itself.
    BenchGrowth {
        arguments: Vec<String>,
    },
    /// The harness beside the workspace reads its arguments itself.
    BenchPeers {
        arguments: Vec<String>,
    },
}

/// How far the loom models explore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Two preemptions, without the models named `*_full`.
    Fast,
    /// Three preemptions, every model.
    Full,
}

/// Why a command line was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FlagError {
    UnknownSubcommand(String),
    UnknownFlag { subcommand: &'static str, flag: String },
    UnexpectedArgument { subcommand: &'static str, argument: String },
    MissingValue { flag: String },
    BadValue { flag: String, value: String, accepted: String },
    Repeated { flag: String },
}

impl fmt::Display for FlagError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownSubcommand(name) => write!(f, "unknown subcommand `{name}`"),
            Self::UnknownFlag { subcommand, flag } => write!(f, "unknown flag `{flag}` of `{subcommand}`"),
            Self::UnexpectedArgument { subcommand, argument } => {
                write!(f, "unexpected argument `{argument}` of `{subcommand}`")
            }
            Self::MissingValue { flag } => write!(f, "flag `{flag}` needs a value"),
            Self::BadValue { flag, value, accepted } => {
                write!(f, "flag `{flag}`: `{value}` is not accepted, expected {accepted}")
            }
            Self::Repeated { flag } => write!(f, "flag `{flag}` is given twice"),
        }
    }
}

impl std::error::Error for FlagError {}

/// How long `stress` runs when it is not told.
const STRESS_SECONDS: u64 = 30;
/// For how many seeds `shuttle` runs when it is not told: twenty seconds on two cores.
const SHUTTLE_ITERATIONS: u64 = 400;

/// The list of subcommands, as shown to a person.
pub(crate) fn usage() -> String {
    let steps: Vec<&str> = Step::ALL.iter().map(|step| step.name()).collect();
    format!(
        "usage: cargo xtask <subcommand>

  verify [--step NAME]...            everything that must hold before a change lands; read-only
                                     steps: {}
  layers                             the layer block of docs/architecture.md against cargo metadata
  msrv                               the rust-version of every crate against those of its dependencies
  tidy                               headers, SAFETY comments, tables, names, links and the like
  loom [--full]                      the models of keyed-executor under loom
  shuttle [NAME] [--iterations N] [--seed S]
                                     the whole executor under shuttle, N seeds a run; {SHUTTLE_ITERATIONS} if not given
  stress [--seconds N] [--seed S]    random keys and handlers, every id checked; N is {STRESS_SECONDS} if not given
  mutants [ARGUMENT]...              cargo-mutants on keyed-executor, with its arguments, such as `--shard 0/50`
  bench [NAME]                       the benches of benches/, or one of them
  bench instructions [--out FILE]    instructions of the hot paths against docs/performance/instructions.md
  bench visibility                   the same with and without what is kept only to be shown
  bench growth [ARGUMENT]...         how cost grows: memory, then rates; `--rounds N`, `--series NAME`
  bench peers [ARGUMENT]...          the executor beside its peers; `bench peers --help` shows the arguments",
        steps.join(" ")
    )
}

/// Reads the arguments that follow the program's name.
///
/// # Errors
///
/// The first argument that cannot be understood, by name.
pub(crate) fn parse<I>(arguments: I) -> Result<Task, FlagError>
where
    I: IntoIterator<Item = String>,
{
    let mut arguments = arguments.into_iter();
    let Some(subcommand) = arguments.next() else { return Ok(Task::List) };
    match subcommand.as_str() {
        "help" | "--help" | "-h" => {
            Flags::read("help", arguments, &[], &[])?;
            Ok(Task::List)
        }
        "verify" => {
            let flags = Flags::read("verify", arguments, &["--step"], &[])?;
            flags.no_arguments()?;
            let steps =
                flags.values.iter().map(|(flag, value)| step(flag, value)).collect::<Result<_, _>>()?;
            Ok(Task::Verify { steps })
        }
        "layers" => Flags::read("layers", arguments, &[], &[])?.no_arguments().map(|()| Task::Layers),
        "msrv" => Flags::read("msrv", arguments, &[], &[])?.no_arguments().map(|()| Task::Msrv),
        "tidy" => Flags::read("tidy", arguments, &[], &[])?.no_arguments().map(|()| Task::Tidy),
        "loom" => {
            let flags = Flags::read("loom", arguments, &[], &["--full"])?;
            flags.no_arguments()?;
            Ok(Task::Loom(if flags.switches.is_empty() { Depth::Fast } else { Depth::Full }))
        }
        "shuttle" => {
            let mut flags = Flags::read("shuttle", arguments, &["--iterations", "--seed"], &[])?;
            let name = if flags.arguments.is_empty() { None } else { Some(flags.arguments.remove(0)) };
            flags.no_arguments()?;
            let iterations = flags.number("--iterations", 1..=100_000_000)?.unwrap_or(SHUTTLE_ITERATIONS);
            let seed = flags.number("--seed", 0..=u64::MAX)?;
            Ok(Task::Shuttle(Wanted { name, iterations, seed }))
        }
        "stress" => {
            let flags = Flags::read("stress", arguments, &["--seconds", "--seed"], &[])?;
            flags.no_arguments()?;
            let seconds = flags.number("--seconds", 1..=86_400)?.unwrap_or(STRESS_SECONDS);
            let seed = flags.number("--seed", 0..=u64::MAX)?;
            Ok(Task::Stress { seconds, seed })
        }
        "mutants" => Ok(Task::Mutants { arguments: arguments.collect() }),
        "bench" => {
            let mut arguments = arguments.peekable();
            if arguments.next_if(|name| name == bench::PEERS).is_some() {
                return Ok(Task::BenchPeers { arguments: arguments.collect() });
            }
            if arguments.next_if(|name| name == bench::GROWTH).is_some() {
                return Ok(Task::BenchGrowth { arguments: arguments.collect() });
            }
            if arguments.next_if(|name| name == bench::INSTRUCTIONS).is_some() {
                let flags = Flags::read("bench instructions", arguments, &["--out"], &[])?;
                flags.no_arguments()?;
                return Ok(Task::BenchInstructions { out: flags.text("--out")? });
            }
            if arguments.next_if(|name| name == bench::VISIBILITY).is_some() {
                Flags::read("bench visibility", arguments, &[], &[])?.no_arguments()?;
                return Ok(Task::BenchVisibility);
            }
            let mut flags = Flags::read("bench", arguments, &[], &[])?;
            let name = if flags.arguments.is_empty() { None } else { Some(flags.arguments.remove(0)) };
            flags.no_arguments()?;
            Ok(Task::Bench { name })
        }
        _ => Err(FlagError::UnknownSubcommand(subcommand)),
    }
}

fn step(flag: &str, value: &str) -> Result<Step, FlagError> {
    Step::ALL.into_iter().find(|step| step.name() == value).ok_or_else(|| FlagError::BadValue {
        flag: flag.to_owned(),
        value: value.to_owned(),
        accepted: format!("one of {}", Step::ALL.map(Step::name).join(", ")),
    })
}

/// The arguments of one subcommand, sorted by kind but not yet understood.
#[derive(Debug)]
struct Flags {
    subcommand: &'static str,
    values: Vec<(String, String)>,
    switches: Vec<String>,
    arguments: Vec<String>,
}

impl Flags {
    /// `with_value` names the flags that take one (as `--flag value` or `--flag=value`), `switches` those that do not.
    fn read<I>(
        subcommand: &'static str,
        arguments: I,
        with_value: &[&str],
        switches: &[&str],
    ) -> Result<Self, FlagError>
    where
        I: IntoIterator<Item = String>,
    {
        let mut read = Self { subcommand, values: Vec::new(), switches: Vec::new(), arguments: Vec::new() };
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            if !argument.starts_with('-') {
                read.arguments.push(argument);
                continue;
            }
            let (flag, inline) = match argument.split_once('=') {
                Some((flag, value)) => (flag.to_owned(), Some(value.to_owned())),
                None => (argument.clone(), None),
            };
            if with_value.contains(&flag.as_str()) {
                let value = inline
                    .or_else(|| arguments.next())
                    .filter(|value| !value.is_empty())
                    .ok_or_else(|| FlagError::MissingValue { flag: flag.clone() })?;
                read.values.push((flag, value));
            } else if switches.contains(&argument.as_str()) {
                if read.switches.contains(&argument) {
                    return Err(FlagError::Repeated { flag: argument });
                }
                read.switches.push(argument);
            } else {
                return Err(FlagError::UnknownFlag { subcommand, flag });
            }
        }
        Ok(read)
    }

    fn no_arguments(&self) -> Result<(), FlagError> {
        match self.arguments.first() {
            None => Ok(()),
            Some(argument) => {
                Err(FlagError::UnexpectedArgument { subcommand: self.subcommand, argument: argument.clone() })
            }
        }
    }

    /// The value of a flag that is given at most once.
    fn text(&self, flag: &str) -> Result<Option<String>, FlagError> {
        let mut given = self.values.iter().filter(|(name, _)| name == flag);
        let value = given.next().map(|(_, value)| value.clone());
        match given.next() {
            None => Ok(value),
            Some(_) => Err(FlagError::Repeated { flag: flag.to_owned() }),
        }
    }

    fn number(&self, flag: &str, range: std::ops::RangeInclusive<u64>) -> Result<Option<u64>, FlagError> {
        let Some(value) = self.text(flag)? else { return Ok(None) };
        match value.parse::<u64>() {
            Ok(number) if range.contains(&number) => Ok(Some(number)),
            _ => Err(FlagError::BadValue {
                flag: flag.to_owned(),
                value,
                accepted: format!("a whole number from {} to {}", range.start(), range.end()),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Result<Task, FlagError> {
        parse(text.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn no_subcommand_is_the_list() {
        assert_eq!(line(""), Ok(Task::List));
        assert_eq!(line("--help"), Ok(Task::List));
    }

    #[test]
    fn every_subcommand_of_the_list_is_understood() {
        let listed = usage();
        for name in ["verify", "layers", "msrv", "tidy", "loom", "shuttle", "stress", "mutants", "bench"] {
            assert!(listed.contains(&format!("\n  {name} ")), "{name} is not in the list");
            assert!(line(name).is_ok(), "{name} is not understood");
        }
    }

    #[test]
    fn an_unknown_subcommand_is_named() {
        let error = line("verfy").unwrap_err();
        assert_eq!(error.to_string(), "unknown subcommand `verfy`");
    }

    #[test]
    fn an_unknown_flag_is_named_with_its_subcommand() {
        assert_eq!(line("loom --ful").unwrap_err().to_string(), "unknown flag `--ful` of `loom`");
        assert_eq!(line("tidy --fix=1").unwrap_err().to_string(), "unknown flag `--fix` of `tidy`");
    }

    #[test]
    fn an_argument_too_many_is_named() {
        assert_eq!(line("bench a b").unwrap_err().to_string(), "unexpected argument `b` of `bench`");
        assert_eq!(line("layers x").unwrap_err().to_string(), "unexpected argument `x` of `layers`");
    }

    #[test]
    fn what_follows_another_program_is_left_to_it() {
        let arguments = ["--workloads", "A,B"].map(str::to_owned).to_vec();
        assert_eq!(line("bench peers --workloads A,B"), Ok(Task::BenchPeers { arguments }));
        let arguments = ["--rounds", "5"].map(str::to_owned).to_vec();
        assert_eq!(line("bench growth --rounds 5"), Ok(Task::BenchGrowth { arguments }));
        let arguments = ["--shard", "0/50"].map(str::to_owned).to_vec();
        assert_eq!(line("mutants --shard 0/50"), Ok(Task::Mutants { arguments }));
    }

    #[test]
    fn instructions_are_compared_or_recorded() {
        assert_eq!(line("bench instructions"), Ok(Task::BenchInstructions { out: None }));
        let out = Some("a.md".to_owned());
        assert_eq!(line("bench instructions --out a.md"), Ok(Task::BenchInstructions { out }));
        assert_eq!(line("bench visibility"), Ok(Task::BenchVisibility));
        let error = line("bench instructions --out a --out b").unwrap_err().to_string();
        assert_eq!(error, "flag `--out` is given twice");
    }

    #[test]
    fn stress_takes_seconds_and_seed_in_both_spellings() {
        let expected = Task::Stress { seconds: 5, seed: Some(7) };
        assert_eq!(line("stress --seconds 5 --seed 7"), Ok(expected.clone()));
        assert_eq!(line("stress --seed=7 --seconds=5"), Ok(expected));
        assert_eq!(line("stress"), Ok(Task::Stress { seconds: STRESS_SECONDS, seed: None }));
    }

    #[test]
    fn shuttle_takes_a_name_iterations_and_a_seed() {
        let wanted = Wanted { name: Some("shuttle_close".to_owned()), iterations: 5, seed: Some(7) };
        assert_eq!(line("shuttle shuttle_close --iterations 5 --seed=7"), Ok(Task::Shuttle(wanted)));
        let all = Wanted { name: None, iterations: SHUTTLE_ITERATIONS, seed: None };
        assert_eq!(line("shuttle"), Ok(Task::Shuttle(all)));
        assert_eq!(line("shuttle a b").unwrap_err().to_string(), "unexpected argument `b` of `shuttle`");
    }

    #[test]
    fn a_value_out_of_range_is_refused_with_the_range() {
        let error = line("stress --seconds 0").unwrap_err().to_string();
        assert_eq!(error, "flag `--seconds`: `0` is not accepted, expected a whole number from 1 to 86400");
        assert_eq!(line("stress --seed").unwrap_err().to_string(), "flag `--seed` needs a value");
        assert_eq!(line("stress --seed 1 --seed 2").unwrap_err().to_string(), "flag `--seed` is given twice");
    }

    #[test]
    fn verify_takes_named_steps_and_refuses_others() {
        assert_eq!(line("verify --step tidy"), Ok(Task::Verify { steps: vec![Step::Tidy] }));
        let error = line("verify --step tydi").unwrap_err().to_string();
        assert!(error.starts_with("flag `--step`: `tydi` is not accepted, expected one of fmt, "), "{error}");
    }
}
