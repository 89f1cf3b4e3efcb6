//! When output was there: the times of the `index`, for whoever reads a log again from its start.
//!
//! Neighbours: [`crate::LogReader`] gives the bytes, this their times. Like it, it follows a run that is still going
//! on. It only goes forward, so that a whole log costs one pass over the index.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::files::{self, Stream};
use crate::index::Entry;

/// How much of the index is read at once.
const CHUNK_BYTES: usize = 16 * 1024;

/// The times at which a stream of a run grew, in the order of its bytes.
#[derive(Debug)]
pub struct OutputTimes {
    path: PathBuf,
    stream: Stream,
    file: Option<File>,
    /// Lines of the index before this place were taken in.
    position: u64,
    /// Those of them that may still be asked for.
    entries: VecDeque<Entry>,
}

impl OutputTimes {
    /// The times of one stream of the run in `dir`.
    pub fn new(dir: &Path, stream: Stream) -> Self {
        Self { path: dir.join(files::INDEX), stream, file: None, position: 0, entries: VecDeque::new() }
    }

    /// When all bytes before `offset` were there, in milliseconds since the Unix epoch; what came in one burst has the
    /// time of its beginning. `None` for what is too new to be in the index. An offset before one that was asked for
    /// earlier gets the time of that one.
    pub fn at(&mut self, offset: u64) -> io::Result<Option<u64>> {
        loop {
            while let Some(entry) = self.entries.front() {
                if entry.end() >= offset {
                    return Ok(Some(entry.at_ms));
                }
                self.entries.pop_front();
            }
            if !self.take_in_more()? {
                return Ok(None);
            }
        }
    }

    /// Takes in the next whole lines, if there are any. Half a line may still be overwritten, so it is left for later.
    fn take_in_more(&mut self) -> io::Result<bool> {
        if self.file.is_none() {
            self.file = files::open_if_present(&self.path)?;
        }
        let Some(file) = &self.file else { return Ok(false) };
        let mut bytes = vec![0; CHUNK_BYTES];
        let count = file.read_at(&mut bytes, self.position)?;
        bytes.truncate(count);
        let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') else { return Ok(false) };
        bytes.truncate(end + 1);
        self.position += bytes.len() as u64;
        let text = String::from_utf8_lossy(&bytes);
        let entries = text.lines().filter_map(Entry::parse).filter(|entry| entry.stream == self.stream);
        self.entries.extend(entries);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn times(index: &[u8]) -> (tempfile::TempDir, OutputTimes) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("index"), index).unwrap();
        let times = OutputTimes::new(dir.path(), Stream::Stdout);
        (dir, times)
    }

    #[test]
    fn each_byte_has_the_time_of_its_burst_and_a_gap_that_of_the_next() {
        let (_dir, mut times) = times(
            b"stdout 0 10 1000\nstderr 0 99 1500\nstdout 10 5 2000\nnonsense\nstdout 20 5 4000\nstderr 99 9 5000\n",
        );
        let found = [1, 9, 10, 11, 15, 16, 20, 25].map(|offset| times.at(offset).unwrap());
        assert_eq!(found, [1000, 1000, 1000, 2000, 2000, 4000, 4000, 4000].map(Some));
        assert_eq!(times.at(26).unwrap(), None);
    }

    #[test]
    fn a_growing_index_is_followed_and_half_a_line_waits_for_the_rest() {
        let (dir, mut times) = times(b"stdout 0 10 1000\nstdout 10 1");
        assert_eq!(times.at(20).unwrap(), None);
        let mut index = towline_files::append(&dir.path().join("index")).unwrap();
        index.write_all(b"0 2000\n").unwrap();
        assert_eq!(times.at(20).unwrap(), Some(2000));
        assert_eq!(times.at(21).unwrap(), None);
    }

    #[test]
    fn a_run_without_an_index_has_no_times_until_there_is_one() {
        let dir = tempfile::tempdir().unwrap();
        let mut times = OutputTimes::new(dir.path(), Stream::Stderr);
        assert_eq!(times.at(1).unwrap(), None);
        std::fs::write(dir.path().join("index"), b"stdout 0 9 1\nstderr 0 1 2\n").unwrap();
        assert_eq!(times.at(1).unwrap(), Some(2));
    }

    #[test]
    fn a_long_index_is_read_piece_by_piece() {
        let mut index = String::new();
        for number in 0..5000_u64 {
            index += &format!("stdout {} 7 {}\n", number * 7, 1_800_000_000_000 + number);
        }
        let (_dir, mut times) = times(index.as_bytes());
        for number in 0..5000 {
            assert_eq!(times.at(number * 7 + 7).unwrap(), Some(1_800_000_000_000 + number));
        }
        assert_eq!(times.at(35_001).unwrap(), None);
    }
}
