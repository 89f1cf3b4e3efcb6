//! The lines that an agent was sent already: after a restart nothing is written twice.
//!
//! Everything that is written to an agent is whole lines. A line that `stdin.log` has is not written again, and half a
//! line at its end is completed. The order does not matter, because messages of people come at any time.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

use towline_process::LogReader;

/// How much of the log is read: far more than an agent is ever sent.
const LONGEST: usize = 256 << 20;

/// The lines that an agent was sent before.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    /// All of them, in order.
    bytes: Vec<u8>,
    /// Whole lines, with their line ends, and how often each.
    lines: HashMap<Vec<u8>, usize>,
    /// The beginning of one that was cut off.
    half: Vec<u8>,
}

impl Sent {
    /// What the log of an attempt's input shows. A log that cannot be read shows nothing.
    pub(crate) fn read(dir: &Path) -> Self {
        let mut reader = LogReader::input(dir, 0);
        let mut bytes = Vec::new();
        while bytes.len() < LONGEST
            && let Ok(chunk) = reader.read()
            && !chunk.is_empty()
        {
            bytes.extend_from_slice(chunk);
        }
        Self::of(&bytes)
    }

    fn of(bytes: &[u8]) -> Self {
        let mut sent = Self { bytes: bytes.to_vec(), ..Self::default() };
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            if line.ends_with(b"\n") {
                *sent.lines.entry(line.to_vec()).or_default() += 1;
            } else {
                sent.half = line.to_vec();
            }
        }
        sent
    }

    /// The lines in their order, half a one at the end left out.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"))
    }

    /// Whether this line was sent before, whole; it is then accounted for.
    pub(crate) fn take(&mut self, line: &[u8]) -> bool {
        match self.lines.get_mut(line) {
            Some(count) if *count > 0 => {
                *count -= 1;
                true
            }
            _ => false,
        }
    }

    /// What is still to be written of this line. Behind half of another one, that is ended first: one broken line is
    /// better than two.
    pub(crate) fn rest_of<'a>(&mut self, line: &'a [u8]) -> Cow<'a, [u8]> {
        if self.take(line) {
            return Cow::Borrowed(&[]);
        }
        let half = std::mem::take(&mut self.half);
        match line.strip_prefix(half.as_slice()) {
            Some(rest) => Cow::Borrowed(rest),
            None => Cow::Owned([b"\n", line].concat()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_before_is_not_sent_again_and_half_a_line_is_completed_or_ended_once() {
        let again =
            [("again\n", ""), ("hello\n", ""), ("again\n", ""), ("again\n", "again\n"), ("new\n", "new\n")];
        for (before, lines) in [
            ("hello\nagain\nagain\n", &again[..]),
            ("hello\nlong li", &[("long line\n", "ne\n"), ("long line\n", "long line\n")]),
            ("long li", &[("other\n", "\nother\n"), ("third\n", "third\n")]),
        ] {
            let mut sent = Sent::of(before.as_bytes());
            for (line, rest) in lines {
                assert_eq!(*sent.rest_of(line.as_bytes()), *rest.as_bytes(), "{line:?} after {before:?}");
            }
        }
    }

    #[test]
    fn an_attempt_without_a_log_was_sent_nothing() {
        let dir = tempfile::tempdir().expect("a scratch directory");
        assert_eq!(*Sent::read(dir.path()).rest_of(b"hello\n"), *b"hello\n");
    }
}
