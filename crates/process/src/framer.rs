//! Cuts a stream of bytes into lines, whatever the chunks it arrives in.
//!
//! Works on bytes: text that is not valid UTF-8 passes unharmed, and a character split between two chunks is
//! whole again in its line. A line longer than the cap is not kept in memory: it is reported with its place, so
//! that its bytes can still be read from the log, and the framing goes on behind it. This never does I/O.

use std::collections::VecDeque;

use memchr::memchr;

/// The longest line that is kept, unless told otherwise: 64 MiB.
pub const DEFAULT_LINE_CAP: usize = 64 * 1024 * 1024;

/// One line of a stream, without its newline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Where in the stream its first byte stands.
    pub offset: u64,
    /// Its bytes, all of them but the newline.
    pub bytes: Vec<u8>,
    /// How it ended.
    pub end: LineEnd,
}

impl Line {
    /// How many bytes of the stream it covers, without the newline.
    pub fn length(&self) -> u64 {
        self.bytes.len() as u64
    }
}

/// How a line ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineEnd {
    /// With a newline.
    Newline,
    /// With the stream: it may be half of what was meant.
    EndOfStream,
}

/// What the framer finds in the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Framed {
    /// A line.
    Line(Line),
    /// A line longer than the cap; its bytes were not kept.
    TooLong {
        /// Where in the stream its first byte stands.
        offset: u64,
        /// Its length without the newline.
        len: u64,
    },
}

/// The framer: push bytes in, pull lines out.
#[derive(Debug)]
pub struct LineFramer {
    cap: usize,
    /// Where the line being collected begins.
    line_offset: u64,
    /// Its length so far; more than `partial` holds once it has outgrown the cap.
    line_length: u64,
    partial: Vec<u8>,
    ready: VecDeque<Framed>,
}

impl Default for LineFramer {
    fn default() -> Self {
        Self::new(0)
    }
}

impl LineFramer {
    /// A framer for a stream whose next byte stands at `offset`, with the default cap.
    pub fn new(offset: u64) -> Self {
        Self::with_cap(offset, DEFAULT_LINE_CAP)
    }

    /// A framer that keeps lines of at most `cap` bytes.
    pub fn with_cap(offset: u64, cap: usize) -> Self {
        Self { cap, line_offset: offset, line_length: 0, partial: Vec::new(), ready: VecDeque::new() }
    }

    /// Takes in the next bytes of the stream.
    pub fn push(&mut self, chunk: &[u8]) {
        let mut rest = chunk;
        while let Some(end) = memchr(b'\n', rest) {
            self.extend(&rest[..end]);
            let framed = self.take(LineEnd::Newline);
            // The newline belongs to no line, but it has its place in the stream.
            self.line_offset += 1;
            self.ready.push_back(framed);
            rest = &rest[end + 1..];
        }
        self.extend(rest);
    }

    /// Gives out the next whole line, if there is one.
    pub fn pull(&mut self) -> Option<Framed> {
        self.ready.pop_front()
    }

    /// Says that the stream has ended, and gives out what stood behind its last newline. To be called when
    /// [`LineFramer::pull`] has nothing left.
    pub fn finish(&mut self) -> Option<Framed> {
        (self.line_length > 0).then(|| self.take(LineEnd::EndOfStream))
    }

    /// Where the line that is still being collected begins: a reader that starts again from here misses nothing.
    pub fn resume_offset(&self) -> u64 {
        self.line_offset
    }

    fn extend(&mut self, piece: &[u8]) {
        self.line_length += piece.len() as u64;
        if self.is_too_long() {
            self.partial = Vec::new();
        } else {
            self.partial.extend_from_slice(piece);
        }
    }

    fn is_too_long(&self) -> bool {
        self.line_length > self.cap as u64
    }

    fn take(&mut self, end: LineEnd) -> Framed {
        let too_long = self.is_too_long();
        let offset = self.line_offset;
        let len = std::mem::take(&mut self.line_length);
        let bytes = std::mem::take(&mut self.partial);
        self.line_offset += len;
        if too_long { Framed::TooLong { offset, len } } else { Framed::Line(Line { offset, bytes, end }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small generator with a fixed seed, so that a failure happens again.
    struct Dice(u64);

    impl Dice {
        fn roll(&mut self, sides: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            usize::try_from(self.0 % sides as u64).unwrap()
        }
    }

    fn line(offset: u64, bytes: &[u8], end: LineEnd) -> Framed {
        Framed::Line(Line { offset, bytes: bytes.to_vec(), end })
    }

    fn frame_in_chunks(stream: &[u8], cap: usize, dice: &mut Dice) -> Vec<Framed> {
        let mut framer = LineFramer::with_cap(0, cap);
        let mut found = Vec::new();
        let mut rest = stream;
        while !rest.is_empty() {
            let (chunk, behind) = rest.split_at(1 + dice.roll(rest.len().min(40)));
            framer.push(chunk);
            rest = behind;
            if dice.roll(3) == 0 {
                found.extend(std::iter::from_fn(|| framer.pull()));
            }
        }
        found.extend(std::iter::from_fn(|| framer.pull()));
        found.extend(framer.finish());
        found
    }

    /// What the framer must find, said in the plainest way: by splitting the whole stream.
    fn frame_at_once(stream: &[u8], cap: usize) -> Vec<Framed> {
        let mut offset = 0;
        let mut found = Vec::new();
        for piece in stream.split_inclusive(|byte| *byte == b'\n') {
            let (bytes, end) = match piece.split_last() {
                Some((b'\n', bytes)) => (bytes, LineEnd::Newline),
                _ => (piece, LineEnd::EndOfStream),
            };
            found.push(if bytes.len() > cap {
                Framed::TooLong { offset, len: bytes.len() as u64 }
            } else {
                line(offset, bytes, end)
            });
            offset += piece.len() as u64;
        }
        found
    }

    #[test]
    fn any_chunking_gives_the_same_lines() {
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
        let alphabet: &[&[u8]] =
            &[b"\n", b"\n", b"a", b"\r", b"\0", "é".as_bytes(), "🚀".as_bytes(), b"\xff", b"{}"];
        for round in 0..3000 {
            let stream: Vec<u8> =
                (0..dice.roll(120)).flat_map(|_| alphabet[dice.roll(alphabet.len())]).copied().collect();
            let cap = [0, 1, 5, 1000][round % 4];
            assert_eq!(
                frame_in_chunks(&stream, cap, &mut dice),
                frame_at_once(&stream, cap),
                "round {round}"
            );
        }
    }

    #[test]
    fn a_line_past_the_cap_is_reported_and_not_kept_and_reading_goes_on() {
        let mut framer = LineFramer::with_cap(100, 1024);
        framer.push(b"first\n");
        for _ in 0..1000 {
            framer.push(&[b'x'; 1024]);
            assert!(framer.partial.capacity() <= 4096);
        }
        framer.push(b"\nafter\nhalf");
        let found: Vec<_> = std::iter::from_fn(|| framer.pull()).collect();
        assert_eq!(
            found,
            [
                line(100, b"first", LineEnd::Newline),
                Framed::TooLong { offset: 106, len: 1_024_000 },
                line(1_024_107, b"after", LineEnd::Newline),
            ]
        );
        assert_eq!(framer.resume_offset(), 1_024_113);
        assert_eq!(framer.finish(), Some(line(1_024_113, b"half", LineEnd::EndOfStream)));
        assert_eq!(framer.finish(), None);
    }

    #[test]
    fn a_line_of_exactly_the_cap_is_kept() {
        let mut framer = LineFramer::with_cap(0, 3);
        framer.push(b"abc\nabcd\n");
        assert_eq!(framer.pull(), Some(line(0, b"abc", LineEnd::Newline)));
        assert_eq!(framer.pull(), Some(Framed::TooLong { offset: 4, len: 4 }));
    }

    #[test]
    fn a_stream_that_ends_with_a_newline_has_no_partial_line() {
        let mut framer = LineFramer::default();
        framer.push(b"\n\nx\n");
        let found: Vec<_> = std::iter::from_fn(|| framer.pull()).collect();
        assert_eq!(
            found,
            [line(0, b"", LineEnd::Newline), line(1, b"", LineEnd::Newline), line(2, b"x", LineEnd::Newline)]
        );
        assert_eq!(framer.finish(), None);
    }
}
