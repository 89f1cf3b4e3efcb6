//! Looks for a pattern in what a command printed.

use std::io;

use regex::bytes::Regex;
use towline_process::{Framed, LineFramer, ReportedLog};

/// The longest line that is searched. Memory is bounded by it, however much a command prints.
const LINE_CAP: usize = 16 * 1024 * 1024;

/// Whether a line of the run's standard output matches, as for `grep`: `^` and `$` are the line's ends,
/// and no match spans two lines. A line above 16 MiB is passed over.
pub(crate) fn found_in_stdout(stdout: &mut ReportedLog, pattern: &Regex) -> io::Result<bool> {
    let mut framer = LineFramer::with_cap(0, LINE_CAP);
    loop {
        let chunk = stdout.read()?;
        if chunk.is_empty() {
            return Ok(framer.finish().is_some_and(|last| matches(last, pattern)));
        }
        framer.push(chunk);
        while let Some(line) = framer.pull() {
            if matches(line, pattern) {
                return Ok(true);
            }
        }
    }
}

fn matches(framed: Framed<'_>, pattern: &Regex) -> bool {
    match framed {
        Framed::Line(line) => pattern.is_match(line.bytes.strip_suffix(b"\r").unwrap_or(line.bytes)),
        Framed::TooLong { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use towline_process::{ExitRecord, Stream};

    use super::*;

    fn found(stdout: &[u8], pattern: &str) -> bool {
        let run = tempfile::tempdir().unwrap();
        std::fs::write(run.path().join("stdout.log"), stdout).unwrap();
        std::fs::write(run.path().join("stderr.log"), "only on stderr\n").unwrap();
        found_in(run.path(), stdout.len(), pattern)
    }

    fn found_in(run: &Path, length: usize, pattern: &str) -> bool {
        let record = ExitRecord { stdout_bytes: length as u64, ..ExitRecord::default() };
        let mut stdout = ReportedLog::open(run, Stream::Stdout, &record).unwrap();
        found_in_stdout(&mut stdout, &Regex::new(pattern).unwrap()).unwrap()
    }

    #[test]
    fn a_line_matches_as_a_whole_or_in_part() {
        let text = b"first\r\nsecond line\n\xff\xfe bytes\nlast";
        for pattern in ["^first$", "d l", "^last$", "(?i)SECOND", "^second line$", "bytes$"] {
            assert!(found(text, pattern), "{pattern}");
        }
        for pattern in ["^line", "first.*second", "only on stderr", "\n"] {
            assert!(!found(text, pattern), "{pattern}");
        }
    }

    #[test]
    fn no_output_matches_nothing() {
        assert!(!found(b"", ".*"));
        let nowhere = tempfile::tempdir().unwrap();
        assert!(!found_in(nowhere.path(), 0, ""));
    }

    #[test]
    fn a_line_beyond_the_cap_is_passed_over_and_the_search_goes_on() {
        let mut text = vec![b'x'; LINE_CAP + 1];
        text.extend_from_slice(b"\npassed\n");
        assert!(!found(&text, "xx"));
        assert!(found(&text, "passed"));
    }
}
