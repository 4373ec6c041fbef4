//! The little of Markdown that the checks read: fences, tables, headings and links.
//!
//! It owns line numbers: every item says where it stands, counted from one. It is no full parser; what it
//! reads is what this repository writes.

/// Lines of a document, with those inside code fences marked.
#[derive(Debug, Clone)]
pub(crate) struct Line<'a> {
    pub(crate) number: usize,
    pub(crate) text: &'a str,
    /// The info string of the fence that the line is in, if it is in one.
    pub(crate) fence: Option<&'a str>,
}

/// A table: its header cells, and each row with its line number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) line: usize,
    pub(crate) header: Vec<String>,
    pub(crate) rows: Vec<(usize, Vec<String>)>,
}

impl Table {
    /// The position of a column, by its header.
    pub(crate) fn column(&self, name: &str) -> Option<usize> {
        self.header.iter().position(|cell| cell == name)
    }
}

/// All lines; the fence lines themselves are left out.
pub(crate) fn lines(text: &str) -> Vec<Line<'_>> {
    let mut all = Vec::new();
    let mut open: Option<(&str, &str)> = None;
    for (index, text) in text.lines().enumerate() {
        let trimmed = text.trim_start();
        let marker = &trimmed[..trimmed.len() - trimmed.trim_start_matches(['`', '~']).len()];
        match open {
            None if marker.len() >= 3 => open = Some((marker, trimmed[marker.len()..].trim())),
            Some((opened, _)) if marker.starts_with(opened) && trimmed.trim_end() == marker => open = None,
            _ => all.push(Line { number: index + 1, text, fence: open.map(|(_, info)| info) }),
        }
    }
    all
}

/// The lines inside every fence with that info string, or `None` if there is no such fence.
pub(crate) fn fenced<'a>(text: &'a str, info: &str) -> Option<Vec<Line<'a>>> {
    let inside: Vec<_> = lines(text).into_iter().filter(|line| line.fence == Some(info)).collect();
    if inside.is_empty() { None } else { Some(inside) }
}

/// All tables outside fences.
pub(crate) fn tables(text: &str) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    let mut last_row = 0;
    for line in lines(text).iter().filter(|line| line.fence.is_none()) {
        let trimmed = line.text.trim();
        if !trimmed.starts_with('|') {
            continue;
        }
        let cells = cells(trimmed);
        match tables.last_mut() {
            Some(table) if last_row + 1 == line.number => {
                let rule =
                    cells.iter().all(|cell| !cell.is_empty() && cell.chars().all(|c| "-: ".contains(c)));
                if !rule {
                    table.rows.push((line.number, cells));
                }
            }
            _ => tables.push(Table { line: line.number, header: cells, rows: Vec::new() }),
        }
        last_row = line.number;
    }
    tables
}

fn cells(row: &str) -> Vec<String> {
    let row = row.trim_matches('|').replace(r"\|", "\u{0}");
    row.split('|').map(|cell| cell.trim().replace('\u{0}', "|")).collect()
}

/// What stands in single backticks, in order.
pub(crate) fn code_spans(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// The headings outside fences: line, level and text.
pub(crate) fn headings(text: &str) -> Vec<(usize, usize, &str)> {
    let heading = |line: &Line<'_>| {
        let level = line.text.len() - line.text.trim_start_matches('#').len();
        (line.fence.is_none() && (1..=6).contains(&level) && line.text[level..].starts_with(' '))
            .then_some((line.number, level))
    };
    let all = lines(text);
    all.iter()
        .filter_map(|line| heading(line).map(|(n, level)| (n, level, line.text[level..].trim())))
        .collect()
}

/// The anchor that a heading gets where the repository is shown.
pub(crate) fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The targets of all links outside fences and code spans, with their line.
pub(crate) fn links(text: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    for line in lines(text).iter().filter(|line| line.fence.is_none()) {
        let prose = without_code(line.text);
        let mut rest = prose.as_str();
        while let Some(start) = rest.find("](") {
            rest = &rest[start + 2..];
            let Some(end) = rest.find(')') else { break };
            links.push((line.number, target(&rest[..end])));
            rest = &rest[end..];
        }
        if let Some((label, definition)) = prose.split_once("]: ")
            && label.starts_with('[')
        {
            links.push((line.number, target(definition)));
        }
    }
    links
}

/// A link's target without its title and angle brackets.
fn target(link: &str) -> String {
    let target = link.split_whitespace().next().unwrap_or_default();
    target.trim_start_matches('<').trim_end_matches('>').to_owned()
}

fn without_code(line: &str) -> String {
    if line.matches('`').count() < 2 {
        return line.to_owned();
    }
    line.split('`').step_by(2).collect::<Vec<_>>().join("``")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_ends_where_its_rows_end() {
        let text = "| a | b |\n|---|:-:|\n| 1 | `x \\| y` |\n\n| c |\n|---|\n| 2 |\n";
        let tables = tables(text);
        assert_eq!(tables.len(), 2);
        assert_eq!(tables[0].rows, [(3, vec!["1".to_owned(), "`x | y`".to_owned()])]);
        assert_eq!((tables[1].line, tables[1].column("c")), (5, Some(0)));
    }

    #[test]
    fn fences_hide_headings_tables_and_links() {
        let text = "# A\n```text\n# not\n| no | table |\n[no](link)\n```\n## B c\n";
        assert_eq!(headings(text), [(1, 1, "A"), (7, 2, "B c")]);
        assert!(tables(text).is_empty());
        assert!(links(text).is_empty());
        assert_eq!(fenced(text, "text").unwrap().len(), 3);
        assert!(fenced(text, "layers").is_none());
    }

    #[test]
    fn links_are_found_outside_code_spans() {
        let text = "see [a](b.md \"title\"), [c](<d e>) and `[x](y)`\n[ref]: z.md#part\n";
        let targets: Vec<_> =
            links(text).into_iter().map(|(line, target)| format!("{line} {target}")).collect();
        assert_eq!(targets, ["1 b.md", "1 d", "2 z.md#part"]);
    }

    #[test]
    fn an_anchor_is_lower_case_with_dashes() {
        assert_eq!(anchor("What is `absent`, and why?"), "what-is-absent-and-why");
    }
}
