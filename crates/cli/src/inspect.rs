//! What was seen of agents, git and the state directory: findings for programs, and for people rows that are aligned and
//! wrapped at words to fit a terminal of ordinary width.

use towline_api::{Finding, Level};
pub(crate) use towline_app::inspect::{Mark, Row};
use towline_terminal::{Paint, counted, cut, printable};
use towline_view::hints::{command_line, words};

use crate::output::{homely, terminal_width};

/// How wide a line may be on a terminal that has room for it, unless a single word is wider.
const WIDTH: usize = 80;
/// How wide a text is at least, however narrow the terminal.
const LEAST: usize = 20;
/// Before the text of a row: two spaces, the mark, a space, the label, two spaces.
const MARGIN: usize = 4 + LABEL + 2;
const LABEL: usize = 11;

/// What a command exits with when a person must fix something.
pub(crate) const NEEDS_A_PERSON: u8 = 4;

/// The rows that are worth a person's time.
pub(crate) fn findings(section: &str, rows: &[Row]) -> Vec<Finding> {
    let finding = |row: &Row| {
        let level = match row.mark {
            Mark::Good | Mark::Plain => return None,
            Mark::Note => Level::Note,
            Mark::Problem => Level::Problem,
        };
        Some(Finding {
            section: section.to_owned(),
            agent: row.group.clone(),
            about: row.label.clone(),
            level,
            what: row.text.clone(),
            fix: row.fix.as_ref().map(words),
        })
    };
    rows.iter().filter_map(finding).collect()
}

/// How many findings have this level.
pub(crate) fn count(findings: &[Finding], level: Level) -> usize {
    findings.iter().filter(|finding| finding.level == level).count()
}

/// The rows, each group of them below its name.
pub(crate) fn rows_lines(paint: Paint, rows: &[Row]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut group = None;
    for row in rows {
        if row.group != group {
            group.clone_from(&row.group);
            lines.extend(group.iter().map(|name| format!("  {}", printable(name))));
        }
        lines.extend(row_lines(paint, row));
    }
    lines
}

fn row_lines(paint: Paint, row: &Row) -> Vec<String> {
    let mark = match row.mark {
        Mark::Good => paint.good("✓"),
        Mark::Plain => paint.dim("·"),
        Mark::Note => paint.warn("!"),
        Mark::Problem => paint.bad("✗"),
    };
    let room = terminal_width().unwrap_or(WIDTH).clamp(MARGIN + LEAST, WIDTH) - MARGIN;
    let more = row.more.as_ref().map(|(action, effect)| format!(" (`{}` {effect})", command_line(action)));
    let text = format!("{}{}", row.text, more.unwrap_or_default());
    let mut texts = wrapped(&homely(&printable(&text)), room).into_iter();
    let first = texts.next().unwrap_or_default();
    let mut lines = vec![format!("  {mark} {:<LABEL$}  {first}", printable(&row.label))];
    let indent = " ".repeat(MARGIN);
    lines.extend(texts.map(|text| format!("{indent}{text}")));
    let fix =
        row.fix.iter().flat_map(|fix| wrapped(&homely(&format!("fix: {}", printable(&words(fix)))), room));
    lines.extend(fix.map(|text| format!("{indent}{text}")));
    let details = row.details.iter().map(|detail| cut(&homely(&printable(detail)), room));
    lines.extend(details.map(|detail| format!("{indent}{}", paint.dim(&detail))));
    lines
}

/// The last line: how many must be fixed, and how many are worth knowing.
pub(crate) fn summary(paint: Paint, problems: usize, notes: usize) -> String {
    let notes = if notes == 0 { String::new() } else { format!(", {}", counted(notes, "note")) };
    match problems {
        0 => format!("{} nothing is wrong{notes}", paint.good("✓")),
        count => format!("{} {} to fix{notes}", paint.bad("✗"), counted(count, "problem")),
    }
}

/// A text in lines that fit beside the margin.
fn wrapped(text: &str, room: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_aligned_and_fit_the_width_unless_a_word_does_not() {
        let mut row = Row::new(Mark::Problem, "sign-in", "word ".repeat(20).trim_end());
        row = row.fix(format!("{} then rest", "x".repeat(90)));
        row.details = vec!["y".repeat(100)];
        let some = |count: usize| vec!["word"; count].join(" ");
        let indent = " ".repeat(17);
        assert_eq!(
            row_lines(Paint::Plain, &row),
            [
                format!("  ✗ sign-in      {}", some(12)),
                format!("{indent}{}", some(8)),
                format!("{indent}fix:"),
                format!("{indent}{}", "x".repeat(90)),
                format!("{indent}then rest"),
                format!("{indent}{}…", "y".repeat(62)),
            ]
        );
    }

    #[test]
    fn the_last_line_counts() {
        let summaries = [(0, 0), (0, 1), (1, 0), (2, 3)].map(|(p, n)| summary(Paint::Plain, p, n));
        let expected = [
            "✓ nothing is wrong",
            "✓ nothing is wrong, 1 note",
            "✗ 1 problem to fix",
            "✗ 2 problems to fix, 3 notes",
        ];
        assert_eq!(summaries, expected);
    }
}
