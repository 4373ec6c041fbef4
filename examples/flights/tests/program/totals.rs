//! Every total equals a plain single-threaded count of the same table: January, crafted tables, every way to give them.

use std::path::Path;

use crate::common::{
    HEADER, count, gunzip, gzip, january, json_of, run, run_with_stdin, temp, temp_file, text,
};

const GOOD: &str = "2013,1,1,517,515,2,830,11,UA,1545,N14228,EWR,IAH,227,1400,2013-01-01T10:00:00Z";

fn good_with(column: &str, value: &str) -> String {
    let place = HEADER.split(',').position(|name| name == column).expect("a column");
    let mut fields: Vec<&str> = GOOD.split(',').collect();
    fields[place] = value;
    fields.join(",")
}

fn path(path: &Path) -> &str {
    path.to_str().expect("a path that is text")
}

/// Rows over few aircraft, with every kind of bad row among them.
fn random_table(seed: u64, n_rows: usize) -> String {
    let mut state = seed;
    let mut pick = |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    let mut table = format!("{HEADER}\n");
    for _ in 0..n_rows {
        let month = [1, 10, 11, 12, 2][pick(5) as usize].to_string();
        let mut fields = vec![
            "2013".to_owned(),
            month,
            (1 + pick(28)).to_string(),
            if pick(20) == 0 { "NA".to_owned() } else { pick(2_400).to_string() },
            pick(2_400).to_string(),
            if pick(20) == 0 { "NA".to_owned() } else { (pick(200) as i64 - 60).to_string() },
            pick(2_400).to_string(),
            (pick(200) as i64 - 60).to_string(),
            ["UA", "AA", "B6", "DL"][pick(4) as usize].to_owned(),
            pick(6).to_string(),
            format!("N{}", pick(40)),
            ["EWR", "JFK", "LGA"][pick(3) as usize].to_owned(),
            "IAH".to_owned(),
            if pick(20) == 0 { "NA".to_owned() } else { pick(400).to_string() },
            (pick(30) * 100).to_string(),
            "2013-01-01T10:00:00Z".to_owned(),
        ];
        match pick(40) {
            0 => fields[10] = String::new(),
            1 => fields[10] = "NA".to_owned(),
            2 => fields[14] = "far".to_owned(),
            3 => fields[5] = "late".to_owned(),
            4 => fields.truncate(9),
            5 => fields.push("more".to_owned()),
            6 => fields[13] = "-1".to_owned(),
            7 => fields = vec![String::new()],
            _ => {}
        }
        table.push_str(&fields.join(","));
        table.push('\n');
    }
    table
}

#[test]
fn january_is_counted_as_a_plain_count_does() {
    let bytes = std::fs::read(january()).expect("the file of the repository");
    let expected = count(&gunzip(&bytes));
    assert_eq!(expected.json["rows"], 27_004);
    assert_eq!(json_of(&run(&["--json"])), expected.json, "built in");
    let grouped = temp_file("grouped.toml", "[wow.dispatch]\nstrategy = 'grouped'\n");
    let on_groups = run(&["--json", "--config", path(&grouped)]);
    assert_eq!(json_of(&on_groups), expected.json, "on hash groups");
    assert_eq!(json_of(&run(&["--json", "--input", path(&january())])), expected.json, "from the file");
    assert_eq!(json_of(&run_with_stdin(&["--json", "--input", "-"], bytes)), expected.json, "from a pipe");
}

#[test]
fn crafted_tables_are_counted_as_a_plain_count_does_with_any_configuration() {
    for seed in [1, 2013, 0x5eed] {
        let table = random_table(seed, 5_000);
        let expected = count(&table);
        assert!(expected.rejected_lines.len() > 500, "seed {seed}");
        let input = temp_file(&format!("crafted-{seed}.csv"), &table);
        let configurations = [
            "workers = 1\nmax-in-flight = 1\nthroughput = 1\n",
            "workers = 2\nmax-in-flight = 256\nthroughput = 16\n",
            "workers = 8\nmax-in-flight = 7\nthroughput = 3\n",
            // Room for a few rows at once, and for none.
            "workers = 2\nmax-bytes = 1000\n",
            "workers = 2\nmax-bytes = 1\n",
            "strategy = 'grouped'\nworkers = 1\nmax-in-flight = 1\ngroups = 1\n",
            "strategy = 'grouped'\nworkers = 2\n",
            "strategy = 'grouped'\nworkers = 8\nmax-in-flight = 7\ngroups = 5\n",
        ];
        for (n, values) in configurations.into_iter().enumerate() {
            let config = temp_file(&format!("crafted-{seed}-{n}.toml"), format!("[wow.dispatch]\n{values}"));
            let list = temp(&format!("crafted-{seed}-{n}-rejected.csv"));
            let output = run(&[
                "--json",
                "--input",
                path(&input),
                "--config",
                path(&config),
                "--rejected",
                path(&list),
            ]);
            assert_eq!(json_of(&output), expected.json, "seed {seed}, {values}");
            let list = std::fs::read_to_string(&list).expect("the list");
            let lines: Vec<u64> = list
                .lines()
                .map(|line| line.split_once(',').expect("line, reason").0.parse().unwrap())
                .collect();
            assert_eq!(lines, expected.rejected_lines, "seed {seed}, {values}");
        }
    }
}

#[test]
fn each_rejected_row_is_listed_with_its_line_and_reason() {
    let rows = [
        (GOOD.to_owned(), ""),
        (GOOD.to_owned(), "the same leg twice: 2013-01-01 UA 1545 from EWR"),
        (good_with("tailnum", ""), "tailnum is empty"),
        (good_with("tailnum", "NA"), "tailnum is NA"),
        (good_with("distance", "far"), "distance is far, a whole number from 0 is needed"),
        (good_with("distance", "NA"), "distance is NA, a whole number from 0 is needed"),
        (good_with("dep_delay", "late"), "dep_delay is late, a whole number or NA is needed"),
        (good_with("flight", "2").replace(",1400,", ",0,"), "a flown leg of no distance"),
        (good_with("flight", "3").replace(",1400,", ",0,").replace(",517,", ",NA,"), ""),
        ("2013,1".to_owned(), "too few fields: 2 instead of 16"),
        (format!("{GOOD},more"), "too many fields: 17 instead of 16"),
        (good_with("origin", "JFK"), ""),
        (good_with("dest", "\"IAH"), "a quote is not closed"),
        (good_with("flight", "4").replace("IAH", "\"I,H\""), ""),
    ];
    let table: Vec<&str> = std::iter::once(HEADER).chain(rows.iter().map(|(row, _)| row.as_str())).collect();
    let expected: Vec<(u64, &str)> = rows
        .iter()
        .zip(2..)
        .filter(|((_, reason), _)| !reason.is_empty())
        .map(|((_, reason), line)| (line, *reason))
        .collect();
    let input = temp_file("reasons.csv", table.join("\n"));
    let list = temp("reasons-rejected.csv");
    let json = json_of(&run(&["--json", "--input", path(&input), "--rejected", path(&list)]));
    assert_eq!((&json["rows"], &json["rejected"]), (&14.into(), &expected.len().into()));
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_path(&list).expect("the list");
    let listed: Vec<(u64, String)> = reader
        .records()
        .map(|record| {
            let record = record.expect("a line and a reason");
            (record[0].parse().expect("a line number"), record[1].to_owned())
        })
        .collect();
    let listed: Vec<(u64, &str)> = listed.iter().map(|(line, reason)| (*line, reason.as_str())).collect();
    assert_eq!(listed, expected);
}

#[test]
fn the_form_of_the_table_does_not_matter() {
    let table = random_table(7, 500);
    let expected = count(&table).json;
    let named = |name: &str, bytes: Vec<u8>| {
        let input = temp_file(name, bytes);
        assert_eq!(json_of(&run(&["--json", "--input", path(&input)])), expected, "{name}");
    };
    named("windows.csv", table.replace('\n', "\r\n").into_bytes());
    named("marked.csv", format!("\u{feff}{table}").into_bytes());
    named("no-last-line-end.csv", table.trim_end().as_bytes().to_vec());
    named("blank-lines.csv", table.replacen('\n', "\n\n", 1).into_bytes());
    named("packed.csv.gz", gzip(&table));
    named("packed-without-a-name.csv", gzip(&table));
    named("unpacked-with-a-name.csv.gz", table.clone().into_bytes());
    let (first, second) = table.split_at(table.len() / 2);
    named("two-members.csv.gz", [gzip(first), gzip(second)].concat());
    assert_eq!(json_of(&run_with_stdin(&["--json", "--input", "-"], &table)), expected);
}

#[test]
fn columns_are_found_by_name_and_more_columns_are_tolerated() {
    let table = random_table(11, 300).replace(",more", "");
    let expected = count(&table).json;
    let turned: String = table
        .lines()
        .enumerate()
        .map(|(index, line)| {
            let mut fields: Vec<&str> = line.split(',').collect();
            fields.push(if index == 0 { "remark" } else { "x" });
            fields.reverse();
            fields.join(",") + "\n"
        })
        .collect();
    let input = temp_file("turned.csv", turned);
    let json = json_of(&run(&["--json", "--input", path(&input)]));
    for total in ["rows", "handled", "rejected", "miles", "carriers"] {
        // A blank line is no row; turned, it has two fields and is one that is refused.
        if total == "rows" || total == "rejected" {
            let blank = table.lines().filter(|line| line.is_empty()).count() as u64;
            assert_eq!(json[total].as_u64(), expected[total].as_u64().map(|n| n + blank), "{total}");
        } else {
            assert_eq!(json[total], expected[total], "{total}");
        }
    }
}

#[test]
fn a_table_without_rows_has_a_ledger_of_zeros() {
    let input = temp_file("no-rows.csv", HEADER);
    let json = json_of(&run(&["--json", "--input", path(&input)]));
    assert_eq!((&json["rows"], &json["handled"], &json["rejected"]), (&0.into(), &0.into(), &0.into()));
}

#[test]
fn the_table_for_people_shows_the_ledger_and_the_latencies() {
    let output = run(&[]);
    assert!(output.status.success());
    let out = text(&output.stdout);
    assert!(out.contains("27,004 rows = 26,849 handled + 155 rejected"), "{out}");
    assert!(out.contains("out of order: 0"), "{out}");
    assert!(out.contains("latency from send to answer: p50 "), "{out}");
    assert!(!out.contains("p50 0.0 us"), "{out}");
    assert!(out.contains("UA           4,605                   8.33"), "{out}");
    assert!(output.stderr.is_empty(), "no bar where there is no terminal: {}", text(&output.stderr));
}
