//! The `index` of a run: which stream grew, by how much, and when; one short line per burst of output.
//!
//! The logs hold the bytes, this only orders them. Lines read `stdout OFFSET LENGTH UNIX_MS`. A gap (a line that
//! could not be written) is closed by the next line of the same stream, and what follows the last line is
//! the newest output: readers must take it so.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use crate::files::Stream;

/// Output of one stream within this time is one entry, so that a program that writes byte by byte does not
/// make the index longer than its logs.
const BURST_MS: u64 = 50;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) stream: Stream,
    pub(crate) offset: u64,
    pub(crate) length: u64,
    pub(crate) at_ms: u64,
}

impl Entry {
    pub(crate) fn end(&self) -> u64 {
        self.offset + self.length
    }

    pub(crate) fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split(' ');
        let stream = match fields.next()? {
            "stdout" => Stream::Stdout,
            "stderr" => Stream::Stderr,
            _ => return None,
        };
        let mut number = || fields.next()?.parse::<u64>().ok();
        let (offset, length, at_ms) = (number()?, number()?, number()?);
        // The program can write to this file, so the numbers may be anything.
        offset.checked_add(length)?;
        Some(Self { stream, offset, length, at_ms })
    }

    fn to_line(self) -> String {
        let name = match self.stream {
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
        };
        format!("{name} {} {} {}\n", self.offset, self.length, self.at_ms)
    }
}

/// The supervisor's end of the index.
#[derive(Debug)]
pub(crate) struct IndexWriter {
    file: File,
    length: u64,
    /// The burst that may still grow; it is written when it can no longer.
    burst: Option<Entry>,
}

impl IndexWriter {
    pub(crate) fn new(file: File) -> Self {
        Self { file, length: 0, burst: None }
    }

    /// Notes that a stream grew.
    pub(crate) fn grew(&mut self, stream: Stream, offset: u64, length: u64, at_ms: u64) -> io::Result<()> {
        if let Some(burst) = &mut self.burst
            && burst.stream == stream
            && burst.end() == offset
            && at_ms.saturating_sub(burst.at_ms) < BURST_MS
        {
            burst.length += length;
            return Ok(());
        }
        let written = self.flush();
        self.burst = Some(Entry { stream, offset, length, at_ms });
        written
    }

    /// How long until the burst that is held back can no longer grow and is to be written.
    pub(crate) fn due_in(&self, now_ms: u64) -> Option<Duration> {
        let burst = self.burst.as_ref()?;
        // A clock that was set back must not hold it back any longer.
        let age = now_ms.checked_sub(burst.at_ms).unwrap_or(BURST_MS);
        Some(Duration::from_millis(BURST_MS.saturating_sub(age)))
    }

    /// Writes the burst that was held back. Each line goes to its place as a whole, so that half a line left by
    /// a full disk is overwritten by the next.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let Some(burst) = self.burst.take() else { return Ok(()) };
        let line = burst.to_line();
        self.file.write_all_at(line.as_bytes(), self.length)?;
        self.length += line.len() as u64;
        Ok(())
    }

    /// The file, if anything was written to it.
    pub(crate) fn written(&self) -> Option<&File> {
        (self.length > 0).then_some(&self.file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use towline_files::create_new;

    #[test]
    fn bursts_are_joined_and_streams_stay_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("index");
        let mut index = IndexWriter::new(create_new(&path).unwrap());
        index.grew(Stream::Stdout, 0, 5, 1000).unwrap();
        index.grew(Stream::Stdout, 5, 5, 1049).unwrap();
        index.grew(Stream::Stderr, 0, 2, 1049).unwrap();
        index.grew(Stream::Stdout, 10, 1, 1049).unwrap();
        index.grew(Stream::Stdout, 11, 1, 1099).unwrap();
        let due = [1099, 1100, 1149, 2000, 1000].map(|now| index.due_in(now).unwrap().as_millis());
        assert_eq!(due, [50, 49, 0, 0, 0]);
        index.flush().unwrap();
        assert_eq!(index.due_in(2000), None);
        let text = std::fs::read_to_string(path).unwrap();
        assert_eq!(text, "stdout 0 10 1000\nstderr 0 2 1049\nstdout 10 1 1049\nstdout 11 1 1099\n");
        let entries: Vec<_> = text.lines().map(|line| Entry::parse(line).unwrap()).collect();
        assert_eq!(entries[1], Entry { stream: Stream::Stderr, offset: 0, length: 2, at_ms: 1049 });
        assert_eq!(Entry::parse("stdout 0 10"), None);
        assert_eq!(Entry::parse("other 0 10 1"), None);
        assert_eq!(Entry::parse(&format!("stdout {} 1 1", u64::MAX)), None);
    }
}
