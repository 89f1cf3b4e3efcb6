//! Writing for people and programs. A terminal or a pipe that went away is no reason to stop driving a goal, so
//! what cannot be written is let go.

use std::fmt;
use std::io::{self, IsTerminal, Write};

use serde::Serialize;

/// Tells a person, on standard error.
pub(crate) fn say(text: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Prints a line of a run, on standard output. A run goes on without anybody to read it.
pub(crate) fn print(text: impl fmt::Display) {
    let _ = writeln!(io::stdout().lock(), "{text}");
}

/// Prints a line for a command that has nothing else to do: once nobody reads it, the command is over.
pub(crate) fn tell(text: impl fmt::Display) {
    leave_with_the_reader(writeln!(io::stdout().lock(), "{text}"));
}

/// Like [`tell`], for bytes as they are.
pub(crate) fn tell_bytes(bytes: &[u8]) {
    let mut stdout = io::stdout().lock();
    leave_with_the_reader(stdout.write_all(bytes).and_then(|()| stdout.flush()));
}

fn leave_with_the_reader(written: io::Result<()>) {
    if written.is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
        std::process::exit(0);
    }
}

/// A value as one line of JSON.
pub(crate) fn json_line(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// A value as JSON that people can read, too.
pub(crate) fn json(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// Text that is not ours, fit for a terminal: control characters could clear the screen or forge a line.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\t' { '\u{fffd}' } else { c }).collect()
}

/// Rows of cells, the columns aligned. All rows have the same number of cells.
pub(crate) fn table(rows: &[Vec<String>]) -> Vec<String> {
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let line = |row: &Vec<String>| {
        let cells = (0..).zip(row).map(|(column, cell)| {
            let width = if column + 1 == row.len() { 0 } else { width(column).unwrap_or(0) };
            format!("{cell:<width$}")
        });
        cells.collect::<Vec<_>>().join("  ")
    };
    rows.iter().map(line).collect()
}

/// Whether somebody watches.
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let hostile = "a\u{1b}[2Jb\rc\u{7}\td\u{9b}e";
        assert_eq!(printable(hostile), "a\u{fffd}[2Jb\u{fffd}c\u{fffd}\td\u{fffd}e");
    }
}
