//! `read`: a part of a text file with line numbers.

use std::fmt::Write;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use super::arguments::{Arguments, Field, Form, Tool, Work};
use super::lines::{self, Lines, Opened};
use super::places::Places;
use super::{Reach, ToolKind};

/// The most lines that are shown at once.
const MOST_LINES: u64 = 2_000;
/// The most bytes that are shown at once.
const MOST_BYTES: usize = 50 * 1024;
/// The longest line that is shown.
const LONGEST_LINE: usize = 2_000;

pub(super) const TOOL: Tool = Tool {
    name: "read",
    about: "Reads a text file. Every line is shown with its number and a tab before it, which are not part of the \
            file. At most 2000 lines or 50 KB are shown at once; the end of the answer shows how to read the rest.",
    fields: &[
        Field::required("path", Form::Text, "The file, relative to the workspace."),
        Field::optional("offset", Form::Number, "The first line to show, counted from 1."),
        Field::optional("limit", Form::Number, "How many lines to show."),
    ],
    kind: ToolKind::Read,
    reach: Reach::Looks,
    work: Work::Files(|places, arguments, _| read(places, arguments)),
};

pub(super) fn read(places: &Places, arguments: &Arguments) -> Result<String, String> {
    let path = places.to_read(arguments.required("path"))?;
    let shown = places.shown(&path);
    let first = arguments.number("offset").unwrap_or(1);
    let limit = arguments.number("limit").unwrap_or(MOST_LINES).min(MOST_LINES);
    part(open_text(&path, &shown)?, first, limit, &shown)
}

/// Opens a file that must be text.
fn open_text(path: &Path, shown: &str) -> Result<Lines<BufReader<File>>, String> {
    let cannot = |error| format!("{shown} cannot be read: {error}");
    let data = path.metadata().map_err(cannot)?;
    if data.is_dir() {
        return Err(format!("{shown} is a folder; `list` shows what is in it"));
    }
    if !data.is_file() {
        return Err(format!("{shown} is not a regular file and cannot be read"));
    }
    match lines::open(path, LONGEST_LINE).map_err(cannot)? {
        Opened::Text(lines) => Ok(lines),
        Opened::Binary => Err(format!(
            "{shown} is a binary file of {} bytes and is not shown; use `run` to look at it",
            data.len()
        )),
    }
}

fn part(mut lines: Lines<BufReader<File>>, first: u64, limit: u64, shown: &str) -> Result<String, String> {
    let mut output = String::new();
    let mut number = 0_u64;
    loop {
        let line = match lines.next() {
            Ok(Some(line)) => line,
            Ok(None) => break,
            Err(error) => return Err(format!("{shown} cannot be read further than line {number}: {error}")),
        };
        number += 1;
        if number < first {
            continue;
        }
        if number >= first.saturating_add(limit) || output.len() >= MOST_BYTES {
            let last = number - 1;
            let _ = write!(output, "(lines {first} to {last}; more follows: read on with offset {number})");
            return Ok(output);
        }
        let text = String::from_utf8_lossy(line.bytes);
        let text = if number == 1 { text.trim_start_matches('\u{feff}') } else { &text };
        let _ = write!(output, "{number:>6}\t{text}");
        if line.left_out > 0 {
            let _ = write!(output, " [… {} more bytes in this line]", line.left_out);
        }
        output.push('\n');
    }
    match (number, output.is_empty()) {
        (0, _) => Ok(format!("({shown} is empty)")),
        (_, true) => Err(format!("{shown} has {number} lines only; `offset` is {first}")),
        (_, false) => Ok(output),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::{Value, json};

    use super::*;

    fn read_in(files: &[(&str, &[u8])], input: &Value) -> Result<String, String> {
        let root = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            fs::write(root.path().join(name), bytes).unwrap();
        }
        read(&Places::new(root.path(), &[]), &TOOL.parse(input).unwrap())
    }

    #[test]
    fn lines_have_numbers_and_a_part_shows_how_to_read_the_rest() {
        let file: (&str, &[u8]) = ("a", b"\xef\xbb\xbfone\r\ntwo\nthree");
        assert_eq!(
            read_in(&[file], &json!({"path": "a"})),
            Ok("     1\tone\n     2\ttwo\n     3\tthree\n".to_owned())
        );
        assert_eq!(
            read_in(&[file], &json!({"path": "a", "offset": 2, "limit": 1})),
            Ok("     2\ttwo\n(lines 2 to 2; more follows: read on with offset 3)".to_owned())
        );
        assert_eq!(
            read_in(&[file], &json!({"path": "a", "offset": 3, "limit": 1})),
            Ok("     3\tthree\n".to_owned())
        );
        assert_eq!(
            read_in(&[file], &json!({"path": "a", "offset": 9})),
            Err("a has 3 lines only; `offset` is 9".to_owned())
        );
        assert_eq!(read_in(&[("a", b"")], &json!({"path": "a"})), Ok("(a is empty)".to_owned()));
    }

    #[test]
    fn an_answer_is_bounded_in_lines_bytes_and_length_of_lines() {
        let many = "x\n".repeat(5_000);
        let got = read_in(&[("a", many.as_bytes())], &json!({"path": "a", "limit": 9_999})).unwrap();
        assert!(got.ends_with("(lines 1 to 2000; more follows: read on with offset 2001)"));
        let wide = format!("{}\n", "y".repeat(3_000)).repeat(100);
        let got = read_in(&[("a", wide.as_bytes())], &json!({"path": "a"})).unwrap();
        assert!(
            got.starts_with(&format!("     1\t{} [… 1000 more bytes in this line]\n", "y".repeat(2_000)))
        );
        assert!(got.len() < MOST_BYTES + 3_000, "{}", got.len());
        assert!(got.ends_with("read on with offset 27)"), "{}", &got[got.len() - 60..]);
    }

    #[test]
    fn a_file_that_is_not_text_is_refused_by_name() {
        assert_eq!(
            read_in(&[("a.png", b"\x89PNG\0\0")], &json!({"path": "a.png"})),
            Err("a.png is a binary file of 6 bytes and is not shown; use `run` to look at it".to_owned())
        );
        assert_eq!(
            read_in(&[], &json!({"path": "."})),
            Err(". is a folder; `list` shows what is in it".to_owned())
        );
        let root = tempfile::tempdir().unwrap();
        let fifo = root.path().join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        assert_eq!(
            read(&Places::new(root.path(), &[]), &TOOL.parse(&json!({"path": "fifo"})).unwrap()),
            Err("fifo is not a regular file and cannot be read".to_owned())
        );
    }
}
