//! Cuts a stream of bytes into lines, whatever the chunks it arrives in.
//!
//! Works on bytes: text that is not valid UTF-8 passes unharmed, and a character split between two chunks is
//! whole again in its line. Lines are given out where they lie, so that no line costs memory of its own. A line longer
//! than the cap is not held in memory: it is reported with its place, so that its bytes can still be read from the log,
//! and the framing goes on behind it. This never does I/O.

use memchr::memchr;

/// The default for the longest line that is returned: 64 MiB.
pub const DEFAULT_LINE_CAP: usize = 64 * 1024 * 1024;

/// The memory that stays allocated for later chunks. What a longer line took beyond it is given back once that line is through.
const LASTING_CAPACITY: usize = 1024 * 1024;

/// One line of a stream, without its newline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    /// Where in the stream its first byte is.
    pub offset: u64,
    /// Its bytes, all of them but the newline.
    pub bytes: &'a [u8],
    /// How it ended.
    pub end: LineEnd,
}

impl Line<'_> {
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framed<'a> {
    Line(Line<'a>),
    /// A line longer than the cap; its bytes are not returned.
    TooLong {
        /// Where in the stream its first byte is.
        offset: u64,
        /// Its length without the newline.
        len: u64,
    },
}

/// The framer: push bytes in, pull lines out until there are no more, and push again.
#[derive(Debug)]
pub struct LineFramer {
    cap: usize,
    /// Where in the stream the next line begins.
    line_offset: u64,
    /// How much of the beginning of that line was dropped, because it has outgrown the cap.
    forgotten: u64,
    /// What was taken in.
    bytes: Vec<u8>,
    /// How many of these bytes were given out.
    given: usize,
    /// How many of these bytes were looked at: there is no newline between what was given out and here.
    searched: usize,
}

impl LineFramer {
    /// A framer for a stream whose next byte is at `offset`, with the default cap.
    pub fn new(offset: u64) -> Self {
        Self::with_cap(offset, DEFAULT_LINE_CAP)
    }

    /// A framer that keeps lines of at most `cap` bytes.
    pub fn with_cap(offset: u64, cap: usize) -> Self {
        Self { cap, line_offset: offset, forgotten: 0, bytes: Vec::new(), given: 0, searched: 0 }
    }

    /// Takes in the next bytes of the stream.
    pub fn push(&mut self, chunk: &[u8]) {
        self.let_go_of_given();
        self.bytes.extend_from_slice(chunk);
    }

    /// Gives out the next whole line, if there is one.
    pub fn pull(&mut self) -> Option<Framed<'_>> {
        match memchr(b'\n', &self.bytes[self.searched..]) {
            Some(length) => Some(self.give(self.searched + length, LineEnd::Newline)),
            None => {
                self.searched = self.bytes.len();
                self.forget_if_too_long();
                None
            }
        }
    }

    /// Ends the stream, and returns what follows its last newline. To be called when
    /// [`LineFramer::pull`] has nothing left.
    pub fn finish(&mut self) -> Option<Framed<'_>> {
        let has_rest = self.forgotten > 0 || self.given < self.bytes.len();
        has_rest.then(|| self.give(self.bytes.len(), LineEnd::EndOfStream))
    }

    fn let_go_of_given(&mut self) {
        self.bytes.drain(..self.given);
        self.searched -= self.given;
        self.given = 0;
        if self.bytes.len() < LASTING_CAPACITY {
            self.bytes.shrink_to(LASTING_CAPACITY);
        }
    }

    fn forget_if_too_long(&mut self) {
        let length = self.forgotten + (self.bytes.len() - self.given) as u64;
        if length > self.cap as u64 {
            self.forgotten = length;
            self.bytes.truncate(self.given);
            self.searched = self.given;
        }
    }

    /// Gives out the line that ends before `end`.
    fn give(&mut self, end: usize, how: LineEnd) -> Framed<'_> {
        // A newline belongs to no line, but it has its place in the stream.
        let newline = match how {
            LineEnd::Newline => 1,
            LineEnd::EndOfStream => 0,
        };
        let (begin, offset) = (self.given, self.line_offset);
        let len = std::mem::take(&mut self.forgotten) + (end - begin) as u64;
        self.given = end + newline;
        self.searched = self.given;
        self.line_offset += len + newline as u64;
        if len > self.cap as u64 {
            return Framed::TooLong { offset, len };
        }
        Framed::Line(Line { offset, bytes: &self.bytes[begin..end], end: how })
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

    const fn line(offset: u64, bytes: &[u8], end: LineEnd) -> Framed<'_> {
        Framed::Line(Line { offset, bytes, end })
    }

    /// The same line where it is in the stream, for as long as that is there.
    fn in_stream<'s>(found: Framed<'_>, stream: &'s [u8]) -> Framed<'s> {
        match found {
            Framed::Line(Line { offset, bytes, end }) => {
                let begin = usize::try_from(offset).unwrap();
                let there = &stream[begin..begin + bytes.len()];
                assert_eq!(bytes, there);
                line(offset, there, end)
            }
            Framed::TooLong { offset, len } => Framed::TooLong { offset, len },
        }
    }

    fn pull_all<'s>(framer: &mut LineFramer, stream: &'s [u8]) -> Vec<Framed<'s>> {
        std::iter::from_fn(|| framer.pull().map(|found| in_stream(found, stream))).collect()
    }

    fn frame_in_chunks<'s>(stream: &'s [u8], cap: usize, dice: &mut Dice) -> Vec<Framed<'s>> {
        let mut framer = LineFramer::with_cap(0, cap);
        let mut found = Vec::new();
        let mut rest = stream;
        while !rest.is_empty() {
            let (chunk, behind) = rest.split_at(1 + dice.roll(rest.len().min(40)));
            framer.push(chunk);
            rest = behind;
            if dice.roll(3) == 0 {
                found.extend(pull_all(&mut framer, stream));
            }
        }
        found.extend(pull_all(&mut framer, stream));
        found.extend(framer.finish().map(|last| in_stream(last, stream)));
        found
    }

    /// What the framer must find, in the plainest way: by splitting the whole stream.
    fn frame_at_once(stream: &[u8], cap: usize) -> Vec<Framed<'_>> {
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
    fn a_line_past_the_cap_is_reported_without_its_bytes_and_reading_continues() {
        let mut framer = LineFramer::with_cap(100, 1024);
        framer.push(b"first\n");
        assert_eq!(framer.pull(), Some(line(100, b"first", LineEnd::Newline)));
        for _ in 0..1000 {
            framer.push(&[b'x'; 1024]);
            assert_eq!(framer.pull(), None);
            assert!(framer.bytes.capacity() <= 4096);
        }
        framer.push(b"\nafter\nhalf");
        assert_eq!(framer.pull(), Some(Framed::TooLong { offset: 106, len: 1_024_000 }));
        assert_eq!(framer.pull(), Some(line(1_024_107, b"after", LineEnd::Newline)));
        assert_eq!(framer.pull(), None);
        assert_eq!(framer.finish(), Some(line(1_024_113, b"half", LineEnd::EndOfStream)));
        assert_eq!(framer.finish(), None);
    }

    #[test]
    fn the_memory_of_a_long_line_is_given_back() {
        let mut framer = LineFramer::new(0);
        let long = vec![b'x'; 4 * LASTING_CAPACITY];
        framer.push(&long);
        assert_eq!(framer.pull(), None);
        framer.push(b"\nhalf");
        assert_eq!(framer.pull(), Some(line(0, &long, LineEnd::Newline)));
        framer.push(b" and half\n");
        assert!(framer.bytes.capacity() <= LASTING_CAPACITY);
        let offset = long.len() as u64 + 1;
        assert_eq!(framer.pull(), Some(line(offset, b"half and half", LineEnd::Newline)));
    }
}
