//! Reads what a program printed, and finds out whether it is what its supervisor wrote.
//!
//! A log lies on disk, where others can change it. Its bytes may decide something only if their hash is the one that the
//! supervisor reported on its connection.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::files::{self, Stream};
use crate::log_reader::CHUNK_BYTES;
use crate::record::ExitRecord;

/// A log as far as the supervisor wrote it, read once from its beginning.
#[derive(Debug)]
pub struct ReportedLog {
    rest: Option<io::Take<File>>,
    hash: Sha256,
    expected: Option<String>,
    buffer: Vec<u8>,
}

impl ReportedLog {
    /// The log of one stream of the run in `dir`, which ended with this record.
    pub fn open(dir: &Path, stream: Stream, record: &ExitRecord) -> io::Result<Self> {
        let (length, expected) = match stream {
            Stream::Stdout => (record.stdout_bytes, &record.stdout_sha256),
            Stream::Stderr => (record.stderr_bytes, &record.stderr_sha256),
        };
        let file = files::open_if_present(&dir.join(stream.file_name()))?;
        let rest = file.map(|file| file.take(length));
        Ok(Self { rest, hash: Sha256::new(), expected: expected.clone(), buffer: Vec::new() })
    }

    /// The next bytes, at most [`CHUNK_BYTES`] of them; none at the end.
    pub fn read(&mut self) -> io::Result<&[u8]> {
        let Some(rest) = &mut self.rest else { return Ok(&[]) };
        self.buffer.resize(CHUNK_BYTES, 0);
        let count = rest.read(&mut self.buffer)?;
        let bytes = self.buffer.get(..count).unwrap_or_default();
        self.hash.update(bytes);
        Ok(bytes)
    }

    /// Reads on to the end. Whether everything that was read is what the supervisor wrote.
    pub fn is_genuine(mut self) -> io::Result<bool> {
        while !self.read()?.is_empty() {}
        Ok(self.expected.is_some_and(|expected| expected == files::hexadecimal(self.hash)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_bytes_that_were_reported_are_genuine() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("stdout.log");
        let mut record = ExitRecord {
            stdout_bytes: 5,
            stdout_sha256: Some(files::hexadecimal(Sha256::new_with_prefix(b"text\n"))),
            ..ExitRecord::default()
        };
        let open = |record: &ExitRecord| ReportedLog::open(dir.path(), Stream::Stdout, record).unwrap();
        assert!(!open(&record).is_genuine().unwrap(), "a log that is gone");
        for (text, genuine) in [("text\n", true), ("text\nmore\n", true), ("lies\n", false), ("text", false)]
        {
            std::fs::write(&log, text).unwrap();
            assert_eq!(open(&record).is_genuine().unwrap(), genuine, "{text:?}");
        }
        std::fs::write(&log, "text\nmore\n").unwrap();
        assert_eq!(open(&record).read().unwrap(), b"text\n");
        record.stdout_sha256 = None;
        assert!(!open(&record).is_genuine().unwrap());
    }
}
