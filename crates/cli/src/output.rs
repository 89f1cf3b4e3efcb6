//! Writing for people and programs. A terminal or a pipe that went away is no reason to stop driving a goal, so
//! what cannot be written is let go.

use std::fmt;
use std::io::{self, IsTerminal, Write};

use serde::Serialize;

/// Tells a person, on standard error.
pub(crate) fn say(text: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Prints a line of the result, on standard output.
pub(crate) fn print(text: impl fmt::Display) {
    let _ = writeln!(io::stdout().lock(), "{text}");
}

/// Prints bytes as they are.
pub(crate) fn print_bytes(bytes: &[u8]) {
    let mut stdout = io::stdout().lock();
    let _ = stdout.write_all(bytes).and_then(|()| stdout.flush());
}

/// Prints a value as one line of JSON.
pub(crate) fn print_json_line(value: &impl Serialize) {
    if let Ok(line) = serde_json::to_string(value) {
        print(line);
    }
}

/// Prints a value as JSON that people can read, too.
pub(crate) fn print_json(value: &impl Serialize) {
    if let Ok(text) = serde_json::to_string_pretty(value) {
        print(text);
    }
}

/// Whether somebody watches.
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}
