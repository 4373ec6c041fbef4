//! The mailbox's transition table stands in the header of its state machine.
//!
//! That every row agrees with the code is a unit test beside the code; here it is only made sure that the table
//! which that test reads has not been moved or emptied.

use super::tree::Tree;
use crate::finding::Finding;
use crate::markdown;

const FILE: &str = "crates/keyed-executor/src/mailbox/state.rs";
const COLUMNS: [&str; 3] = ["state", "event", "next"];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(file) = tree.file(FILE) else { return vec![Finding::file(FILE, "is missing")] };
    let header: Vec<&str> = file.text.lines().map_while(|line| line.strip_prefix("//!")).collect();
    let tables = markdown::tables(&header.join("\n"));
    let table = tables.iter().find(|table| COLUMNS.iter().all(|name| table.column(name).is_some()));
    match table {
        None => {
            vec![Finding::file(FILE, "the header has no table with the columns `state`, `event` and `next`")]
        }
        Some(table) if table.rows.is_empty() => {
            vec![Finding::at(FILE, table.line, "the transition table has no rows")]
        }
        Some(table) => ragged(table),
    }
}

fn ragged(table: &markdown::Table) -> Vec<Finding> {
    let rows = table.rows.iter().filter(|(_, cells)| cells.len() != table.header.len());
    let text =
        |cells: usize| format!("the row has {cells} cells, the transition table has {}", table.header.len());
    rows.map(|(line, cells)| Finding::at(FILE, *line, text(cells.len()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        check(&Tree::of(&[(FILE, text)])).into_iter().map(|finding| finding.text).collect()
    }

    #[test]
    fn a_table_with_rows_is_enough() {
        let text = "//! The states.\n//!\n//! | state | event | next |\n//! |---|---|---|\n//! | Waiting | Wake | Ready |\n";
        assert_eq!(found(text), Vec::<String>::new());
    }

    #[test]
    fn a_missing_file_table_or_row_is_a_finding() {
        assert_eq!(check(&Tree::default())[0].text, "is missing");
        let missing = "the header has no table with the columns `state`, `event` and `next`";
        assert_eq!(found("//! No table.\n// | state | event | next |\n"), [missing]);
        let head = "//! | state | event | next |\n//! |--|--|--|\n";
        assert_eq!(found(head), ["the transition table has no rows"]);
        assert_eq!(found(&format!("{head}//! | a |\n")), ["the row has 1 cells, the transition table has 3"]);
    }
}
