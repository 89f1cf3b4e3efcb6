//! Text files line by line, with at most one line in memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// How much of a file is read to see whether it is text.
const LOOKED_AT: usize = 64 * 1024;

pub(super) enum Opened {
    /// It looks like text.
    Text(Lines<BufReader<File>>),
    /// It has zero bytes.
    Binary,
}

/// Opens a file. A line is cut after `longest` bytes.
pub(super) fn open(path: &Path, longest: usize) -> io::Result<Opened> {
    let mut reader = BufReader::with_capacity(LOOKED_AT, File::open(path)?);
    if reader.fill_buf()?.contains(&0) {
        return Ok(Opened::Binary);
    }
    Ok(Opened::Text(Lines { reader, line: Vec::new(), longest }))
}

/// The lines of a text.
pub(super) struct Lines<R> {
    reader: R,
    line: Vec<u8>,
    longest: usize,
}

/// A line without its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    pub(super) bytes: &'a [u8],
    /// How many bytes were cut off.
    pub(super) left_out: usize,
}

impl<R: BufRead> Lines<R> {
    /// The next line; `None` at the end. A last line without a line end counts.
    pub(super) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.line.clear();
        if self.reader.by_ref().take(self.longest as u64).read_until(b'\n', &mut self.line)? == 0 {
            return Ok(None);
        }
        let mut left_out = 0;
        if self.line.pop_if(|last| *last == b'\n').is_none() {
            let mut rest = Vec::new();
            while self.reader.by_ref().take(LOOKED_AT as u64).read_until(b'\n', &mut rest)? > 0 {
                left_out += rest.len();
                if rest.ends_with(b"\n") {
                    left_out -= 1;
                    break;
                }
                rest.clear();
            }
        }
        let bytes = match left_out {
            0 => self.line.strip_suffix(b"\r").unwrap_or(&self.line),
            _ => &self.line,
        };
        Ok(Some(Line { bytes, left_out }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8], buffer: usize) -> Vec<(Vec<u8>, usize)> {
        let reader = BufReader::with_capacity(buffer, text);
        let mut lines = Lines { reader, line: Vec::new(), longest: 4 };
        let mut got = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            got.push((line.bytes.to_vec(), line.left_out));
        }
        got
    }

    #[test]
    fn lines_are_the_same_however_they_are_read_and_never_longer_than_allowed() {
        let text = b"one\r\n\ntoolong\nlast";
        let expected = [(b"one".to_vec(), 0), (Vec::new(), 0), (b"tool".to_vec(), 3), (b"last".to_vec(), 0)];
        for buffer in 1..20 {
            assert_eq!(lines(text, buffer), expected);
        }
        assert_eq!(lines(b"", 8), []);
        assert_eq!(lines(b"\n", 8), [(Vec::new(), 0)]);
    }
}
