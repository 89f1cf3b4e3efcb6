//! Reads a log that is still growing, from any offset, a bounded chunk at a time.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::files::{self, Stream};

/// The most that one read gives out: 256 KiB.
pub const CHUNK_BYTES: usize = 256 * 1024;

/// A place in one of the run's logs.
#[derive(Debug)]
pub struct LogReader {
    path: PathBuf,
    file: Option<File>,
    offset: u64,
    buffer: Vec<u8>,
}

impl LogReader {
    /// A reader of what the program wrote, from `offset` on.
    pub fn output(dir: &Path, stream: Stream, offset: u64) -> Self {
        Self::open(dir.join(stream.file_name()), offset)
    }

    /// A reader of what was written to the program, from `offset` on.
    pub fn input(dir: &Path, offset: u64) -> Self {
        Self::open(dir.join(files::STDIN), offset)
    }

    fn open(path: PathBuf, offset: u64) -> Self {
        Self { path, file: None, offset, buffer: Vec::new() }
    }

    /// Where the next read begins.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The next bytes, at most [`CHUNK_BYTES`] of them. None at the present end of the log, which may grow
    /// later; a log that does not exist yet is an empty one.
    pub fn read(&mut self) -> io::Result<&[u8]> {
        if self.file.is_none() {
            self.file = files::open_if_present(&self.path)?;
        }
        let Some(file) = &self.file else { return Ok(&[]) };
        self.buffer.resize(CHUNK_BYTES, 0);
        let count = read_some_at(file, &mut self.buffer, self.offset)?;
        self.offset += count as u64;
        Ok(self.buffer.get(..count).unwrap_or_default())
    }
}

fn read_some_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    loop {
        match file.read_at(buffer, offset) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn reads_on_as_the_log_grows_and_in_bounded_chunks() {
        let dir = tempfile::tempdir().unwrap();
        let mut reader = LogReader::output(dir.path(), Stream::Stdout, 0);
        assert_eq!(reader.read().unwrap(), b"");

        let mut log = towline_files::append(&dir.path().join("stdout.log")).unwrap();
        log.write_all(b"one").unwrap();
        assert_eq!(reader.read().unwrap(), b"one");
        assert_eq!(reader.read().unwrap(), b"");

        let large: Vec<u8> = (0..CHUNK_BYTES + 10).map(|n| u8::try_from(n % 251).unwrap()).collect();
        log.write_all(&large).unwrap();
        assert_eq!(reader.read().unwrap(), &large[..CHUNK_BYTES]);
        assert_eq!(reader.read().unwrap(), &large[CHUNK_BYTES..]);
        assert_eq!(reader.offset(), 3 + large.len() as u64);

        let mut second = LogReader::output(dir.path(), Stream::Stdout, reader.offset() - 2);
        assert_eq!(second.read().unwrap(), &large[large.len() - 2..]);
    }
}
