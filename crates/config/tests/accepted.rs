//! What is accepted: both formats, every key, every unit, and that a later source wins.

use std::num::NonZeroU32;
use std::time::Duration;

use keyed_executor::{Config as Executor, defaults, limits};
use wow_config::{Config, Key, Loader, Origin};
use wow_dispatch::{DispatchConfig, Groups, Strategy};

fn toml(text: &str) -> Config {
    Loader::new().text("s.toml", text).load().unwrap_or_else(|error| panic!("{error}"))
}

fn yaml(text: &str) -> Config {
    Loader::new().text("s.yaml", text).load().unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn nothing_said_means_the_executors_defaults() {
    let config = Loader::new().load().unwrap();
    assert_eq!(config.dispatch, Executor::default());
    assert_eq!(config.dispatch.max_in_flight, defaults::MAX_IN_FLIGHT);
    assert_eq!(config.strategy, wow_dispatch::defaults::STRATEGY);
    assert_eq!(config.strategy, Strategy::Keyed, "nobody gets the groups who did not ask for them");
    assert_eq!((config.groups, config.max_bytes), (Groups::default(), None));
    assert_eq!(DispatchConfig::from(config.clone()), DispatchConfig::default());
    for key in Key::ALL {
        assert_eq!(*config.origin(key), Origin::Default);
    }
    for empty in ["# all of it is commented\n", "[wow]\n", "[wow.dispatch]\n"] {
        assert_eq!(toml(empty).dispatch, Executor::default());
    }
    for empty in
        ["# all of it is commented\n", "wow:\n", "wow:\n  dispatch:\n    # workers: 3\n", "wow: {}\n"]
    {
        assert_eq!(yaml(empty).dispatch, Executor::default());
    }
}

#[test]
fn both_formats_set_every_key() {
    let expected = Executor {
        workers: 4,
        max_in_flight: 1_024,
        max_per_key: Some(64),
        overflow: 512,
        throughput: 8,
        spin: Duration::from_micros(20),
        rescue_threads: 3,
        rescue_after: Duration::from_millis(2),
        stuck_after: Some(Duration::from_millis(300)),
        ..Executor::default()
    };
    let in_toml = "[wow.dispatch]\nworkers = 4\nmax-in-flight = 1024\nmax-per-key = 64\noverflow = 512\nmax-bytes = 65536\nthroughput = 8\nspin = \"20us\"\n\
         rescue-threads = 3\nrescue-after = 2\nstuck-after = '300ms'\n";
    let in_yaml = "wow:\n  dispatch:\n    workers: 4\n    max-in-flight: 1024\n    max-per-key: 64\n    overflow: 512\n    max-bytes: 65536\n    throughput: 8\n    spin: 20us\n    \
         rescue-threads: 3\n    rescue-after: 2ms\n    stuck-after: 300\n";
    for config in [toml(in_toml), yaml(in_yaml)] {
        assert_eq!((config.dispatch, config.max_bytes), (expected.clone(), Some(65_536)));
    }
    assert_eq!(toml(&in_toml.replace('\n', "\r\n")).dispatch, expected);
    assert_eq!(yaml(&format!("\u{feff}{in_yaml}")).dispatch, expected);
    let one_line = "wow = { dispatch = { workers = 4, max-in-flight = 1024, max-per-key = 64, overflow = 512, max-bytes = 65536, throughput = 8, spin = '20us', \
         rescue-threads = 3, rescue-after = '2ms', stuck-after = 300 } }";
    assert_eq!(toml(one_line).dispatch, expected);
    let one_line = "wow: {dispatch: {workers: 4, max-in-flight: 1024, max-per-key: 64, overflow: 512, max-bytes: 65536, throughput: 8, spin: 20us, \
         rescue-threads: 3, rescue-after: 2ms, stuck-after: 300ms}}";
    assert_eq!(yaml(one_line).dispatch, expected);
}

#[test]
fn a_spin_takes_every_unit_and_a_bare_number_is_milliseconds() {
    let cases = [
        ("\"0\"", 0),
        ("0", 0),
        ("1", 1_000_000),
        ("\"1\"", 1_000_000),
        ("\"1ms\"", 1_000_000),
        ("\"999us\"", 999_000),
        ("\"20µs\"", 20_000),
        ("\"500ns\"", 500),
        ("\"0s\"", 0),
    ];
    for (written, nanos) in cases {
        let config = toml(&format!("[wow.dispatch]\nspin = {written}\n"));
        assert_eq!(config.dispatch.spin, Duration::from_nanos(nanos), "{written}");
        let config = yaml(&format!("wow:\n  dispatch:\n    spin: {written}\n"));
        assert_eq!(config.dispatch.spin, Duration::from_nanos(nanos), "{written}");
    }
}

#[test]
fn a_zero_turns_the_naming_of_stuck_code_off() {
    let config = toml("[wow.dispatch]\nstuck-after = 0\nrescue-threads = 0\n");
    assert_eq!((config.dispatch.stuck_after, config.dispatch.rescue_threads), (None, 0));
    assert!(config.dispatch.validate().is_ok());
}

#[test]
fn the_ends_of_every_range_are_accepted() {
    for (key, range) in [
        ("workers", limits::WORKERS),
        ("max-in-flight", limits::MAX_IN_FLIGHT),
        ("max-per-key", limits::MAX_PER_KEY),
        ("overflow", limits::OVERFLOW),
        ("max-bytes", wow_dispatch::limits::MAX_BYTES),
        ("throughput", limits::THROUGHPUT),
        ("rescue-threads", limits::RESCUE_THREADS),
    ] {
        for end in [range.start(), range.end()] {
            toml(&format!("[wow.dispatch]\n{key} = {end}\n"));
        }
    }
}

#[test]
fn the_environment_wins_over_later_files_and_those_over_earlier_ones() {
    let config = Loader::new()
        .text("a.toml", "[wow.dispatch]\nworkers = 2\nthroughput = 3\nmax-in-flight = 4\n")
        .text("b.yaml", "wow:\n  dispatch:\n    throughput: 5\n    max-in-flight: 6\n")
        .variables([("WOW_DISPATCH_MAX_IN_FLIGHT", "7"), ("WOW_DISPATCH_SPIN", "20us"), ("PATH", "/bin")])
        .load()
        .unwrap();
    let dispatch = &config.dispatch;
    assert_eq!((dispatch.workers, dispatch.throughput, dispatch.max_in_flight), (2, 5, 7));
    assert_eq!(dispatch.spin, Duration::from_micros(20));
    assert_eq!(config.origin(Key::Workers).to_string(), "a.toml:2");
    assert_eq!(config.origin(Key::Throughput).to_string(), "b.yaml:3");
    assert_eq!(config.origin(Key::MaxInFlight).to_string(), "WOW_DISPATCH_MAX_IN_FLIGHT");
}

#[test]
fn whatever_loads_is_accepted_by_the_executor() {
    let config = Loader::new()
        .variables([
            ("WOW_DISPATCH_WORKERS", "1"),
            ("WOW_DISPATCH_MAX_IN_FLIGHT", "1"),
            ("WOW_DISPATCH_MAX_PER_KEY", "1"),
            ("WOW_DISPATCH_OVERFLOW", "0"),
            ("WOW_DISPATCH_THROUGHPUT", "1"),
            ("WOW_DISPATCH_SPIN", "1ms"),
        ])
        .load()
        .unwrap();
    let executor = Executor::from(config);
    executor.validate().unwrap();
    assert_eq!((executor.workers, executor.max_in_flight, executor.throughput), (1, 1, 1));
    assert_eq!((executor.max_per_key, executor.overflow), (Some(1), 0));
}

#[test]
fn an_overflow_of_keys_without_a_limit_is_told_to_have_no_effect() {
    let config = toml("[wow.dispatch]\noverflow = 7\n");
    let told = "s.toml:2: wow.dispatch.overflow has no effect without wow.dispatch.max-per-key";
    assert_eq!(config.notices, [told]);
    assert!(toml("[wow.dispatch]\noverflow = 7\nmax-per-key = 2\n").notices.is_empty());
}

#[test]
fn the_removed_parallelism_is_tolerated_with_one_notice() {
    let config = Loader::new()
        .text("a.toml", "[wow]\nparallelism = 64\n")
        .variables([("WOW_PARALLELISM", "64")])
        .load()
        .unwrap();
    assert_eq!(config.notices, ["a.toml:2: wow.parallelism is no longer used, see wow.dispatch.workers"]);
    assert_eq!(config.dispatch, Executor::default());
}

#[test]
fn a_strategy_and_its_groups_reach_the_service_from_every_source() {
    let three_hundred = Groups::new(NonZeroU32::new(300).unwrap());
    let in_toml = toml("[wow.dispatch]\nworkers = 3\nstrategy = \"grouped\"\ngroups = 300\n");
    let in_yaml = yaml("wow:\n  dispatch:\n    workers: 3\n    strategy: grouped\n    groups: 300\n");
    let in_variables = Loader::new()
        .text("s.toml", "[wow.dispatch]\nstrategy = 'keyed'\n")
        .variables([
            ("WOW_DISPATCH_WORKERS", "3"),
            ("WOW_DISPATCH_STRATEGY", "grouped"),
            ("WOW_DISPATCH_GROUPS", "300"),
        ])
        .load()
        .unwrap();
    for config in [in_toml, in_yaml, in_variables] {
        assert_eq!(config.notices, [""; 0]);
        let dispatch = DispatchConfig::from(config);
        assert_eq!((dispatch.strategy, dispatch.groups), (Strategy::Grouped, three_hundred));
        assert_eq!(dispatch.executor.workers, 3);
    }
    for strategy in wow_dispatch::limits::STRATEGY {
        let text = format!("[wow.dispatch]\nstrategy = '{strategy}'\n");
        assert_eq!(toml(&text).strategy, strategy);
    }
    let range = wow_dispatch::limits::GROUPS;
    for end in [range.start(), range.end()] {
        let text = format!("[wow.dispatch]\nstrategy = 'grouped'\ngroups = {end}\n");
        assert_eq!(toml(&text).groups.count().get(), *end);
    }
}

#[test]
fn a_key_that_the_strategy_does_not_read_is_noticed() {
    let config = Loader::new()
        .text(
            "a.toml",
            "[wow]\nparallelism = 64\n[wow.dispatch]\nspin = '1us'\nthroughput = 3\nworkers = 2\n",
        )
        .variables([("WOW_DISPATCH_STRATEGY", "grouped"), ("WOW_DISPATCH_SPIN", "2us")])
        .load()
        .unwrap();
    assert_eq!(
        config.notices,
        [
            "a.toml:2: wow.parallelism is no longer used, see wow.dispatch.groups",
            "a.toml:5: wow.dispatch.throughput has no effect while wow.dispatch.strategy is grouped",
            "WOW_DISPATCH_SPIN: wow.dispatch.spin has no effect while wow.dispatch.strategy is grouped",
        ]
    );
    assert_eq!(
        toml("[wow.dispatch]\ngroups = 3\nspin = '1us'\n").notices,
        ["s.toml:2: wow.dispatch.groups has no effect while wow.dispatch.strategy is keyed"]
    );
}
