//! The end of a program's output, both streams in the order they were written.
//!
//! The order is that of the `index`. Two streams are two pipes: what was written to both within one look of the
//! supervisor has no order that anybody could know, and is given stream by stream.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::files::{self, Stream};
use crate::index::Entry;

/// How much of the index is looked at first; doubled until it covers what is asked for.
const FIRST_WINDOW: u64 = 16 * 1024;
/// And how much at most. An index without a line in so many bytes was not written by a supervisor.
const LAST_WINDOW: u64 = 64 * 1024 * 1024;

/// The last bytes of a run's output and error output together, at most `max_bytes`. Where something had to be
/// cut off, the cut is behind a newline if there is one in the first half, else between two characters.
pub fn merged_tail(dir: &Path, max_bytes: usize) -> io::Result<Vec<u8>> {
    let logs = [Log::open(dir, Stream::Stdout)?, Log::open(dir, Stream::Stderr)?];
    // One byte more than asked for shows whether the cut follows a newline anyway.
    let wanted = max_bytes as u64 + 1;
    let mut tail = Vec::new();
    for segment in last_segments(&segments(dir, &logs, wanted)?, wanted) {
        logs[segment.stream as usize].read(segment, &mut tail)?;
    }
    if tail.len() > max_bytes {
        let cut = cut_position(&tail, max_bytes);
        tail.drain(..cut);
    }
    Ok(tail)
}

struct Log {
    file: Option<File>,
    length: u64,
}

impl Log {
    fn open(dir: &Path, stream: Stream) -> io::Result<Self> {
        let file = files::open_if_present(&dir.join(stream.file_name()))?;
        let length = file.as_ref().map(File::metadata).transpose()?.map_or(0, |about| about.len());
        Ok(Self { file, length })
    }

    fn read(&self, segment: Segment, into: &mut Vec<u8>) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let begin = into.len();
        let length = usize::try_from(segment.end - segment.start).map_err(io::Error::other)?;
        into.resize(begin + length, 0);
        file.read_exact_at(&mut into[begin..], segment.start)
    }
}

/// A stretch of one log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Segment {
    stream: Stream,
    start: u64,
    end: u64,
}

/// The newest stretches of both logs, oldest first, `wanted` bytes of them if there are so many.
fn segments(dir: &Path, logs: &[Log; 2], wanted: u64) -> io::Result<Vec<Segment>> {
    let Some(index) = files::open_if_present(&dir.join(files::INDEX))? else {
        return Ok(in_order(&[], logs, Some(0)));
    };
    let index_length = index.metadata()?.len();
    let mut window = FIRST_WINDOW;
    loop {
        let begin = index_length.saturating_sub(window);
        let entries = read_entries(&index, begin, index_length)?;
        let covered = entries.iter().fold(0, |sum: u64, entry| sum.saturating_add(entry.length));
        let all_seen = Stream::ALL.iter().all(|stream| {
            logs[*stream as usize].length == 0 || entries.iter().any(|entry| entry.stream == *stream)
        });
        if begin == 0 {
            return Ok(in_order(&entries, logs, Some(0)));
        }
        if covered >= wanted && all_seen {
            return Ok(in_order(&entries, logs, None));
        }
        window *= 2;
        if window > LAST_WINDOW {
            return Ok(in_order(&[], logs, Some(0)));
        }
    }
}

/// The entries between two places in the index. The first line is half a line unless the index begins there.
fn read_entries(index: &File, begin: u64, end: u64) -> io::Result<Vec<Entry>> {
    let mut bytes = vec![0; usize::try_from(end - begin).map_err(io::Error::other)?];
    index.read_exact_at(&mut bytes, begin)?;
    let text = String::from_utf8_lossy(&bytes);
    let skipped = usize::from(begin > 0);
    Ok(text.lines().skip(skipped).filter_map(Entry::parse).collect())
}

/// Turns entries into stretches without gaps, and adds what is too new to be in the index. The logs are covered from `start` on,
/// or from the first entry of each.
fn in_order(entries: &[Entry], logs: &[Log; 2], start: Option<u64>) -> Vec<Segment> {
    let mut reached = [start; 2];
    let mut segments = Vec::new();
    let mut add = |stream: Stream, offset: u64, end: u64| {
        let end = end.min(logs[stream as usize].length);
        let start = reached[stream as usize].unwrap_or(offset);
        if start < end {
            segments.push(Segment { stream, start, end });
            reached[stream as usize] = Some(end);
        }
    };
    for entry in entries {
        add(entry.stream, entry.offset, entry.end());
    }
    for stream in Stream::ALL {
        let length = logs[stream as usize].length;
        add(stream, length, length);
    }
    segments
}

/// The end of the list, cut so that it holds at most `wanted` bytes.
fn last_segments(segments: &[Segment], wanted: u64) -> Vec<Segment> {
    let mut left = wanted;
    let mut chosen = Vec::new();
    for segment in segments.iter().rev() {
        if left == 0 {
            break;
        }
        let length = (segment.end - segment.start).min(left);
        chosen.push(Segment { start: segment.end - length, ..*segment });
        left -= length;
    }
    chosen.reverse();
    chosen
}

/// How much to take off the front so that at most `max_bytes` stay and the rest begins at a sensible place.
fn cut_position(tail: &[u8], max_bytes: usize) -> usize {
    let least = tail.len() - max_bytes;
    let first_half = &tail[least - 1..least + max_bytes / 2];
    if let Some(newline) = first_half.iter().position(|byte| *byte == b'\n') {
        return least + newline;
    }
    let is_continuation = |byte: &u8| byte & 0b1100_0000 == 0b1000_0000;
    least + tail[least..].iter().take(3).take_while(|byte| is_continuation(byte)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_with(stdout: &[u8], stderr: &[u8], index: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("stdout.log"), stdout).unwrap();
        std::fs::write(dir.path().join("stderr.log"), stderr).unwrap();
        std::fs::write(dir.path().join("index"), index).unwrap();
        dir
    }

    fn tail(dir: &tempfile::TempDir, max: usize) -> String {
        String::from_utf8(merged_tail(dir.path(), max).unwrap()).unwrap()
    }

    #[test]
    fn streams_come_in_the_order_they_were_written() {
        let dir = run_with(
            b"one\nthree\n",
            b"two\nfour\n",
            "stdout 0 4 1\nstderr 0 4 2\nstdout 4 6 3\nstderr 4 5 4\n",
        );
        assert_eq!(tail(&dir, 1000), "one\ntwo\nthree\nfour\n");
        assert_eq!(tail(&dir, 19), "one\ntwo\nthree\nfour\n");
        assert_eq!(tail(&dir, 18), "two\nthree\nfour\n");
        assert_eq!(tail(&dir, 15), "two\nthree\nfour\n");
        assert_eq!(tail(&dir, 5), "four\n");
        assert_eq!(tail(&dir, 3), "ur\n");
        assert_eq!(tail(&dir, 0), "");
    }

    #[test]
    fn bytes_that_the_index_does_not_know_yet_come_last_and_gaps_are_closed() {
        let dir = run_with(b"aabbccdd", b"XXYY", "stdout 0 2 1\nstderr 0 2 2\nstdout 4 2 3\nhalf a li");
        assert_eq!(tail(&dir, 1000), "aaXXbbccddYY");
    }

    #[test]
    fn an_index_with_absurd_numbers_gives_a_tail_too() {
        let absurd =
            format!("stdout {0} 1 1\nstdout 0 {0} 1\nstdout 0 {0} {0}\nstderr {0} {0} 2\n", u64::MAX);
        assert_eq!(tail(&run_with(b"aabb", b"XX", &absurd), 1000), "aabbXX");
        assert_eq!(tail(&run_with(b"aabb", b"XX", &absurd.repeat(1000)), 3), "bXX");
    }

    #[test]
    fn a_run_without_index_or_logs_has_a_tail_too() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(tail(&dir, 1000), "");
        std::fs::write(dir.path().join("stdout.log"), b"only\n").unwrap();
        assert_eq!(tail(&dir, 1000), "only\n");
    }

    #[test]
    fn a_cut_never_splits_a_character() {
        let text = "é".repeat(100);
        let dir = run_with(text.as_bytes(), b"", "stdout 0 200 1\n");
        assert_eq!(tail(&dir, 51), "é".repeat(25));
        assert_eq!(tail(&dir, 50), "é".repeat(25));
    }

    #[test]
    fn a_long_index_is_read_from_its_end_as_far_as_needed() {
        let mut stdout = Vec::new();
        let mut index = String::from("stderr 0 6 1\n");
        for number in 0..5000 {
            let line = format!("line {number}\n");
            index += &format!("stdout {} {} 5\n", stdout.len(), line.len());
            stdout.extend_from_slice(line.as_bytes());
        }
        let dir = run_with(&stdout, b"first\n", &index);
        assert_eq!(tail(&dir, 20), "line 4998\nline 4999\n");
        let everything = tail(&dir, 1_000_000);
        assert!(everything.starts_with("first\nline 0\nline 1\n"), "{}", &everything[..40]);
        assert_eq!(everything.len(), stdout.len() + 6);
    }
}
