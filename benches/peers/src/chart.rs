//! The report as a picture: one panel of bars for each workload, and one for each latency that a workload is about.
//!
//! Bars of one panel share a scale that starts at zero; what exceeds it (a limit that hands nothing over) is cut off
//! and keeps its number. Ours are blue, peers grey, limits hollow.

use std::fmt::Write;

use crate::contender::{Door, Family};
use crate::report::{OfWorkload, Report, Row, number};
use crate::workload::Workload;

const COLUMNS: usize = 2;
const PANEL: usize = 640;
const LABELS: usize = 350;
const BARS: usize = 200;
const ROW: usize = 16;
const HEAD: usize = 34;

/// One panel: its title and the bars that have a value.
struct Panel<'a> {
    title: String,
    bars: Vec<(&'a Row, f64)>,
}

/// Draws the report.
#[must_use]
pub fn svg(report: &Report) -> String {
    let panels: Vec<Panel<'_>> = report.workloads.iter().flat_map(panels).collect();
    let heights: Vec<usize> = panels
        .chunks(COLUMNS)
        .map(|line| HEAD + ROW * line.iter().map(|panel| panel.bars.len()).max().unwrap_or(0) + ROW)
        .collect();
    let (width, height) = (PANEL * COLUMNS, heights.iter().sum::<usize>());
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    let mut top = 0;
    for (line, height) in panels.chunks(COLUMNS).zip(&heights) {
        for (column, panel) in line.iter().enumerate() {
            draw(&mut text, panel, column * PANEL, top);
        }
        top += height;
    }
    text.push_str("</svg>\n");
    text
}

fn panels(of: &OfWorkload) -> Vec<Panel<'_>> {
    let rated = |of: &'_ OfWorkload| format!("{}: {}, k messages/s", of.workload.name(), of.workload.title());
    let rates = of.rows.iter().filter(|row| row.broken.is_none()).map(|row| (row, row.rate)).collect();
    let mut panels = vec![Panel { title: rated(of), bars: rates }];
    let latency = match of.workload {
        Workload::D | Workload::I => Some((1, "p99 in us, less is better")),
        Workload::J | Workload::K => Some((2, "p99.9 in us, less is better")),
        _ => None,
    };
    if let Some((at, name)) = latency {
        let bars = of.rows.iter().filter(|row| row.broken.is_none());
        let bars = bars.filter_map(|row| row.latency[at].map(|value| (row, value))).collect();
        panels.push(Panel { title: format!("{}: {name}", of.workload.name()), bars });
    }
    panels
}

fn draw(text: &mut String, panel: &Panel<'_>, left: usize, top: usize) {
    let compared = panel.bars.iter().filter(|(row, _)| row.entry.family != Family::Limit);
    let most = compared.map(|(_, value)| *value).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let x = left + LABELS;
    let _ = writeln!(
        text,
        "<text x=\"{}\" y=\"{}\" font-weight=\"bold\" font-size=\"12\">{}</text>",
        left + 12,
        top + 22,
        escaped(&panel.title)
    );
    for (at, (row, value)) in panel.bars.iter().enumerate() {
        let y = top + HEAD + at * ROW;
        let length = (value / most).min(1.0) * BARS as f64;
        let cut = if *value > most { " (cut off)" } else { "" };
        let (fill, stroke) = match row.entry.family {
            Family::Ours => ("#1f6fb2", "#1f6fb2"),
            Family::Lane => ("#9a9a9a", "#9a9a9a"),
            Family::PerKey => ("#c4c4c4", "#c4c4c4"),
            Family::Limit => ("none", "#9a9a9a"),
        };
        let door = if row.entry.door == Door::Source { ", from a source" } else { "" };
        let label = escaped(&format!("{}{door}", row.entry.name));
        let _ = writeln!(
            text,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{label}</text>\
             <rect x=\"{x}\" y=\"{}\" width=\"{length:.1}\" height=\"11\" fill=\"{fill}\" stroke=\"{stroke}\"/>\
             <text x=\"{:.1}\" y=\"{}\">{}{cut}</text>",
            x - 6,
            y + 10,
            y + 1,
            x as f64 + length + 5.0,
            y + 10,
            number(*value),
        );
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
