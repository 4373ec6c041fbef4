//! docs/configuration.md says what the code does: every default and every accepted range.
//!
//! The code's side is the constants of the modules `defaults` and `limits` in the config.rs of the executor and of the
//! dispatchers, where a function stands for a value that only the machine knows. The document's side is its table
//! `| key | default | range | environment | ... |`, whose variables are also those that wow-config names. Invariant: both
//! sides have the same entries with the same values; a value that this check cannot read is a finding, not a pass.

use std::collections::{BTreeMap, BTreeSet};

use super::rust_text::RustText;
use super::tree::Tree;
use crate::finding::Finding;
use crate::markdown::{self, Table};

const DOCUMENT: &str = "docs/configuration.md";
const CODE: [&str; 2] = ["crates/keyed-executor/src/config.rs", "crates/dispatch/src/config.rs"];
/// Where wow-config names the variables that it reads.
const VARIABLES: &str = "crates/config/src/key.rs";
/// What all of them begin with.
const VARIABLE_PREFIX: &str = "WOW_DISPATCH_";
/// What the document writes, or ends with, where the code calls a function.
const COMPUTED: &str = "available processors";
/// What the document writes for a setting without a range or a variable.
const NONE: &str = "-";

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let all = CODE.into_iter().chain([DOCUMENT, VARIABLES]);
    let missing: Vec<_> = all.filter(|path| tree.file(path).is_none()).collect();
    let (Some(document), Some(variables), []) = (tree.file(DOCUMENT), tree.file(VARIABLES), &missing[..])
    else {
        return missing.into_iter().map(|path| Finding::file(path, "is missing")).collect();
    };
    let mut findings = Vec::new();
    let (mut defaults, mut limits) = (Entries::new(), Entries::new());
    for code in CODE.into_iter().filter_map(|path| tree.file(path)) {
        defaults.extend(entries(&code.path, &code.text, "defaults", &mut findings));
        limits.extend(entries(&code.path, &code.text, "limits", &mut findings));
    }
    let table = markdown::tables(&document.text).into_iter().find(|table| {
        ["key", "default", "range", "environment"].iter().all(|column| table.column(column).is_some())
    });
    match table {
        Some(table) => {
            findings.extend(compare(&table, defaults, limits));
            findings.extend(compare_variables(&table, &variables.text));
        }
        None => {
            let text = "has no table with the columns `key`, `default`, `range` and `environment`";
            findings.push(Finding::file(DOCUMENT, text));
        }
    }
    findings
}

/// A constant's place in the code and its value as the document would write it.
type Entries = BTreeMap<String, (Place, String)>;

/// A file of the code and a line in it.
type Place = (String, usize);

fn compare(table: &Table, mut defaults: Entries, mut limits: Entries) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, cells) in &table.rows {
        let cell = |column: &str| {
            let cell = table.column(column).and_then(|index| cells.get(index));
            plain(cell.map(String::as_str).unwrap_or_default())
        };
        let key = cell("key");
        let constant = key.rsplit(['.', ':']).next().unwrap_or_default().replace('-', "_").to_uppercase();
        let mut compare = |what: &str, said: &str, real: Option<(Place, String)>| match real {
            // A machine's own value may be counted, as in "64 for each of the available processors".
            Some((_, real)) if real == COMPUTED && said.ends_with(COMPUTED) => {}
            Some(((path, at), real)) if real != said => {
                let text = format!("`{key}`: the {what} is `{real}` ({path}:{at}), not `{said}`");
                findings.push(Finding::at(DOCUMENT, *line, text));
            }
            None if said != NONE => {
                let text = format!("`{key}`: no constant for the {what} `{said}` in {}", CODE.join(" or "));
                findings.push(Finding::at(DOCUMENT, *line, text));
            }
            _ => {}
        };
        compare("default", &cell("default"), defaults.remove(&constant));
        let largest =
            limits.remove(&format!("MAX_{constant}")).map(|(at, value)| (at, format!("0 to {value}")));
        // MAX_IN_FLIGHT is a range of its own, not the largest IN_FLIGHT.
        compare("range", &cell("range"), limits.remove(&constant).or(largest));
        let variable =
            if key.contains('.') { key.replace(['.', '-'], "_").to_uppercase() } else { NONE.to_owned() };
        if cell("environment") != variable {
            let text = format!("`{key}`: the variable is `{variable}`, not `{}`", cell("environment"));
            findings.push(Finding::at(DOCUMENT, *line, text));
        }
    }
    for (module, left) in [("defaults", defaults), ("limits", limits)] {
        for (name, ((path, line), value)) in left {
            let text = format!("`{module}::{name}` = `{value}` has no row in {DOCUMENT}");
            findings.push(Finding::at(&path, line, text));
        }
    }
    findings
}

/// The variables of the document against those in the quotes of wow-config's list.
fn compare_variables(table: &Table, code: &str) -> Vec<Finding> {
    let quoted = code.split('"').filter(|text| text.starts_with(VARIABLE_PREFIX) && *text != VARIABLE_PREFIX);
    let read: BTreeSet<&str> = quoted.collect();
    let column = table.column("environment").unwrap_or_default();
    let cells = table.rows.iter().filter_map(|(_, cells)| cells.get(column));
    let said: BTreeSet<String> = cells.map(|cell| plain(cell)).filter(|cell| cell != NONE).collect();
    let unread = said.iter().filter(|said| !read.contains(said.as_str()));
    let unread = unread.map(|said| Finding::file(DOCUMENT, format!("`{said}` is not in {VARIABLES}")));
    let unsaid = read.iter().filter(|read| !said.contains(**read));
    let unsaid = unsaid.map(|read| Finding::file(VARIABLES, format!("`{read}` is not in {DOCUMENT}")));
    unread.chain(unsaid).collect()
}

/// A cell without backticks and without separators between digits.
fn plain(cell: &str) -> String {
    let chars: Vec<char> = cell.chars().filter(|c| *c != '`').collect();
    let digit = |at: Option<usize>| at.and_then(|at| chars.get(at)).is_some_and(char::is_ascii_digit);
    let kept = chars.iter().enumerate().filter(|(at, c)| {
        let separator = matches!(c, ',' | '_') && digit(at.checked_sub(1)) && digit(Some(at + 1));
        !separator
    });
    kept.map(|(_, c)| c).collect::<String>().trim().to_owned()
}

/// The public constants and functions of one module of the code.
fn entries(path: &str, text: &str, module: &str, findings: &mut Vec<Finding>) -> Entries {
    let rust = RustText::of(text);
    let opening = format!("pub mod {module} {{");
    let originals: Vec<&str> = text.lines().collect();
    let lines: Vec<(usize, &str)> = rust.lines().map(|(number, code, _)| (number, code)).collect();
    let mut entries = Entries::new();
    let Some(start) = lines.iter().position(|(_, code)| code.trim_end() == opening) else {
        findings.push(Finding::file(path, format!("has no module `{module}`")));
        return entries;
    };
    let inside: Vec<_> = lines[start + 1..].iter().take_while(|(_, code)| code.trim_end() != "}").collect();
    for (index, (number, code)) in inside.iter().enumerate() {
        let code = code.trim();
        if let Some(name) = code.strip_prefix("pub fn ").and_then(|rest| rest.split('(').next()) {
            entries.insert(name.to_uppercase(), ((path.to_owned(), *number), COMPUTED.to_owned()));
        }
        let Some((name, _)) = code.strip_prefix("pub const ").and_then(|rest| rest.split_once(':')) else {
            continue;
        };
        let length =
            inside[index..].iter().position(|(_, code)| code.trim_end().ends_with(';')).unwrap_or(0) + 1;
        let item = inside[index..index + length].iter().map(|(number, code)| {
            // Columns are those of the original; what is left out behind them is a comment.
            originals[number - 1].chars().take(code.trim_end().chars().count()).collect::<String>()
        });
        let item = item.collect::<Vec<_>>().join(" ");
        let value =
            item.split_once(" = ").map(|(_, value)| value.trim().trim_end_matches(';')).unwrap_or_default();
        match shown(value) {
            Some(shown) => drop(entries.insert(name.to_owned(), ((path.to_owned(), *number), shown))),
            None => {
                let text = format!("`{module}::{name}`: this check cannot read the value `{value}`");
                findings.push(Finding::at(path, *number, text));
            }
        }
    }
    entries
}

/// An expression as the document writes its value, or `None` for one that is of no known form.
fn shown(expression: &str) -> Option<String> {
    if let Some(text) = expression.strip_prefix('"') {
        return Some(text.strip_suffix('"')?.to_owned());
    }
    if let Some(variants) = expression.strip_prefix('[') {
        let variants = variants.strip_suffix(']')?.split(", ").map(variant);
        return variants.collect::<Option<Vec<_>>>().map(|names| names.join(", "));
    }
    if expression == "Duration::ZERO" {
        return Some("0".to_owned());
    }
    for (constructor, unit) in [("from_secs", "s"), ("from_millis", "ms"), ("from_micros", "us")] {
        if let Some(argument) = expression.strip_prefix(&format!("Duration::{constructor}(")) {
            let number = number(argument.strip_suffix(')')?)?;
            return Some(if number == 0 { "0".to_owned() } else { format!("{number} {unit}") });
        }
    }
    if let Some((first, last)) = expression.split_once("..=") {
        return Some(format!("{} to {}", number(first)?, number(last)?));
    }
    variant(expression).or_else(|| number(expression).map(|number| number.to_string()))
}

/// The name of an enum's variant as configuration files write it.
fn variant(expression: &str) -> Option<String> {
    let (path, name) = expression.rsplit_once("::")?;
    let word = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == ':');
    (word(path) && word(name)).then(|| name.to_lowercase())
}

fn number(text: &str) -> Option<u64> {
    let digits = text.trim().trim_end_matches("usize").trim_end_matches("u64").trim_end_matches("u32");
    digits.replace('_', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD_CODE: &str = "//! Config.\npub mod defaults {\n    pub const NAME: &str = \"wow\"; // the prefix\n    pub const MAX_IN_FLIGHT: usize = 2_56;\n    \
        pub const SPIN: Duration = Duration::ZERO;\n    pub fn workers() -> usize {\n        1\n    }\n}\npub mod limits {\n    \
        pub const WORKERS: RangeInclusive<usize> = 1..=1024;\n    pub const MAX_IN_FLIGHT: RangeInclusive<usize> =\n        1..=1_048_576;\n    \
        pub const MAX_SPIN: Duration = Duration::from_millis(1);\n}\n";
    const MORE: &str = "//! Config.\npub mod defaults {\n    pub const STRATEGY: Strategy = Strategy::Keyed;\n    \
        pub fn groups() -> u32 {\n        1\n    }\n}\npub mod limits {\n    \
        pub const STRATEGY: [Strategy; 2] = [Strategy::Keyed, Strategy::Grouped];\n    \
        pub const GROUPS: RangeInclusive<u32> = 1..=9;\n}\n";
    const GOOD_TABLE: &str = "| key | default | range | environment |\n|---|---|---|---|\n\
        | `wow.dispatch.workers` | available processors | 1 to 1,024 | `WOW_DISPATCH_WORKERS` |\n\
        | `wow.dispatch.max-in-flight` | `256` | 1 to 1,048,576 | `WOW_DISPATCH_MAX_IN_FLIGHT` |\n\
        | `wow.dispatch.strategy` | `keyed` | keyed, grouped | `WOW_DISPATCH_STRATEGY` |\n\
        | `wow.dispatch.groups` | 64 × available processors | 1 to 9 | `WOW_DISPATCH_GROUPS` |\n\
        | `wow.dispatch.spin` | 0 | 0 to 1 ms | `WOW_DISPATCH_SPIN` |\n\
        | `Config::name` | `wow` | - | - |\n";

    fn found(code: &str, document: &str) -> Vec<String> {
        let names = ["WORKERS", "MAX_IN_FLIGHT", "SPIN", "STRATEGY", "GROUPS"]
            .map(|name| format!("\"{VARIABLE_PREFIX}{name}\",\n"));
        let variables = format!("const PREFIX: &str = \"{VARIABLE_PREFIX}\";\n{}", names.concat());
        check(&Tree::of(&[(CODE[0], code), (CODE[1], MORE), (DOCUMENT, document), (VARIABLES, &variables)]))
            .iter()
            .map(Finding::to_string)
            .collect()
    }

    #[test]
    fn code_and_document_that_agree_have_no_findings() {
        assert_eq!(found(GOOD_CODE, GOOD_TABLE), Vec::<String>::new());
    }

    #[test]
    fn a_default_that_differs_is_named_with_both_values() {
        let found = found(&GOOD_CODE.replace("2_56", "512"), GOOD_TABLE);
        let expected = "docs/configuration.md:4: `wow.dispatch.max-in-flight`: the default is `512` \
            (crates/keyed-executor/src/config.rs:4), not `256`";
        assert_eq!(found, [expected]);
    }

    #[test]
    fn a_range_that_differs_is_named() {
        let found = found(&GOOD_CODE.replace("from_millis(1)", "from_millis(2)"), GOOD_TABLE);
        assert!(found[0].contains("`wow.dispatch.spin`: the range is `0 to 2 ms`"), "{found:?}");
        let found = self::found(GOOD_CODE, &GOOD_TABLE.replace("1 to 1,024", "1 to 512"));
        assert!(found[0].contains("`wow.dispatch.workers`: the range is `1 to 1024`"), "{found:?}");
    }

    #[test]
    fn names_and_lists_of_names_are_compared() {
        let found = |from: &str, to: &str| self::found(GOOD_CODE, &GOOD_TABLE.replace(from, to));
        let wrong = found("`keyed`", "`grouped`");
        assert!(wrong[0].contains("the default is `keyed` (crates/dispatch/src/config.rs:3)"), "{wrong:?}");
        let wrong = found("keyed, grouped", "keyed");
        assert!(wrong[0].contains("the range is `keyed, grouped`"), "{wrong:?}");
        let wrong = found("64 × available processors", "128");
        assert!(wrong[0].contains("the default is `available processors`"), "{wrong:?}");
    }

    #[test]
    fn entries_of_one_side_only_are_findings() {
        let code = GOOD_CODE.replace("pub const SPIN", "pub const LINGER: usize = 1;\n    pub const SPIN");
        assert!(found(&code, GOOD_TABLE)[0].contains("`defaults::LINGER` = `1` has no row"));
        let row = "| `wow.dispatch.rescue` | 4 | - | `WOW_DISPATCH_RESCUE` |\n";
        assert!(
            found(GOOD_CODE, &format!("{GOOD_TABLE}{row}"))[0].contains("no constant for the default `4`")
        );
    }

    #[test]
    fn a_wrong_variable_is_a_finding() {
        let found = found(GOOD_CODE, &GOOD_TABLE.replace("DISPATCH_SPIN", "SPIN"));
        assert!(found[0].contains("the variable is `WOW_DISPATCH_SPIN`, not `WOW_SPIN`"), "{found:?}");
    }

    #[test]
    fn a_variable_that_config_does_not_read_is_a_finding() {
        let tree = [
            (CODE[0], GOOD_CODE),
            (CODE[1], MORE),
            (DOCUMENT, GOOD_TABLE),
            (VARIABLES, "\"WOW_DISPATCH_SPUN\""),
        ];
        let found: Vec<_> = check(&Tree::of(&tree)).iter().map(Finding::to_string).collect();
        assert!(
            found.contains(&format!("{DOCUMENT}: `WOW_DISPATCH_SPIN` is not in {VARIABLES}")),
            "{found:?}"
        );
        assert!(
            found.contains(&format!("{VARIABLES}: `WOW_DISPATCH_SPUN` is not in {DOCUMENT}")),
            "{found:?}"
        );
    }

    #[test]
    fn what_cannot_be_read_is_a_finding_not_a_pass() {
        let found = found(&GOOD_CODE.replace("2_56", "compute()"), GOOD_TABLE);
        assert!(found.iter().any(|text| text.contains("cannot read the value `compute()`")), "{found:?}");
        assert!(self::found("", GOOD_TABLE).iter().any(|text| text.ends_with("has no module `limits`")));
        assert!(self::found(GOOD_CODE, "").iter().any(|text| text.contains("has no table with the columns")));
        assert_eq!(check(&Tree::default()).len(), 4);
    }
}
