//! The report as people read it: sections of rows, and a line that counts.

use super::report::Report;
use crate::inspect::lines::{rows_lines, summary};
use crate::inspect::rows::Mark;
use crate::view::Paint;

/// All lines.
pub(super) fn lines(paint: Paint, report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, rows) in report.sections() {
        lines.push(paint.bold(name));
        lines.extend(rows_lines(paint, rows));
        lines.push(String::new());
    }
    lines.push(summary(paint, report.count(Mark::Problem), report.count(Mark::Note)));
    lines
}
