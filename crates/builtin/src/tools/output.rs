//! Bounds output of any length: cuts it to its beginning and end, and passes pieces of it on while it arrives.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// The beginning and the end of a long output.
#[derive(Debug)]
pub(crate) struct HeadAndTail {
    half: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
}

impl HeadAndTail {
    /// Holds about `most` bytes.
    pub(crate) fn new(most: usize) -> Self {
        let half = most / 2;
        Self { half, head: Vec::new(), tail: VecDeque::new(), total: 0 }
    }

    /// `text` as it is, or cut to its beginning and end if it is too long.
    pub(crate) fn of(text: &str, most: usize) -> String {
        let mut ends = Self::new(most);
        ends.push(text.as_bytes());
        ends.finish()
    }

    pub(crate) fn push(&mut self, piece: &[u8]) {
        self.total = self.total.saturating_add(piece.len() as u64);
        let (head, rest) = piece.split_at(piece.len().min(self.half - self.head.len()));
        self.head.extend_from_slice(head);
        // Only the part of a large piece that will remain is copied.
        let rest = &rest[rest.len().saturating_sub(self.half)..];
        let too_many = (self.tail.len() + rest.len()).saturating_sub(self.half);
        self.tail.drain(..too_many);
        self.tail.extend(rest);
    }

    /// The text, with a note about what was cut out.
    pub(crate) fn finish(mut self) -> String {
        let tail = self.tail.make_contiguous();
        if self.total <= (self.head.len() + tail.len()) as u64 {
            self.head.extend_from_slice(tail);
            return String::from_utf8_lossy(&self.head).into_owned();
        }
        let head = &self.head[..self.head.len() - unfinished(&self.head)];
        let torn = tail.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count();
        let tail = &tail[torn..];
        let left_out = self.total - (head.len() + tail.len()) as u64;
        let (head, tail) = (String::from_utf8_lossy(head), String::from_utf8_lossy(tail));
        format!("{head}\n[… {left_out} bytes left out …]\n{tail}")
    }
}

/// How many bytes at the end belong to an unfinished character.
fn unfinished(bytes: &[u8]) -> usize {
    let start = bytes.len().saturating_sub(3);
    for (index, byte) in bytes.iter().enumerate().skip(start).rev() {
        let length = match byte {
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            0x80..=0xbf => continue,
            _ => return 0,
        };
        let there = bytes.len() - index;
        return if there < length { there } else { 0 };
    }
    0
}

/// The shortest time between two pieces for followers.
const EVERY: Duration = Duration::from_millis(100);
/// The longest piece for followers: the end of the output.
const AT_ONCE: usize = 4 * 1024;

/// Output for followers, in pieces that are neither too many nor too large.
#[derive(Debug)]
pub(super) struct Pieces {
    waiting: Vec<u8>,
    due: Instant,
}

impl Pieces {
    pub(super) fn new() -> Self {
        Self { waiting: Vec::new(), due: Instant::now() }
    }

    pub(super) fn push(&mut self, piece: &[u8]) {
        let piece = &piece[piece.len().saturating_sub(AT_ONCE)..];
        let too_many = (self.waiting.len() + piece.len()).saturating_sub(AT_ONCE);
        self.waiting.drain(..too_many);
        self.waiting.extend_from_slice(piece);
    }

    /// When the next piece may be shown; `None` while there is nothing to show.
    pub(super) fn due(&self) -> Option<Instant> {
        (self.waiting.len() > unfinished(&self.waiting)).then_some(self.due)
    }

    /// All whole characters that wait.
    pub(super) fn take(&mut self) -> String {
        self.due = Instant::now() + EVERY;
        let rest = self.waiting.split_off(self.waiting.len() - unfinished(&self.waiting));
        let piece = std::mem::replace(&mut self.waiting, rest);
        String::from_utf8_lossy(&piece).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_output_is_not_changed() {
        assert_eq!(HeadAndTail::of("12345678", 8), "12345678");
        assert_eq!(HeadAndTail::of("", 8), "");
    }

    #[test]
    fn a_long_output_is_cut_to_both_ends_however_it_arrives() {
        let expected = "1234\n[… 2 bytes left out …]\n7890";
        for size in 1..11 {
            let mut ends = HeadAndTail::new(8);
            b"1234567890".chunks(size).for_each(|piece| ends.push(piece));
            assert_eq!(ends.finish(), expected);
        }
    }

    #[test]
    fn characters_are_not_torn() {
        // Three bytes each: the cuts are inside the second and the second last.
        assert_eq!(HeadAndTail::of("€€€€", 8), "€\n[… 6 bytes left out …]\n€");
        let mut pieces = Pieces::new();
        pieces.push(&"a€".as_bytes()[..3]);
        assert_eq!(pieces.take(), "a");
        assert_eq!(pieces.due(), None);
        pieces.push(&"€".as_bytes()[2..]);
        assert_eq!(pieces.take(), "€");
        pieces.push(b"\xff\xfe");
        assert_eq!(pieces.take(), "\u{fffd}\u{fffd}");
    }

    #[test]
    fn memory_is_bounded() {
        let mut ends = HeadAndTail::new(30 * 1024);
        let mut pieces = Pieces::new();
        for _ in 0..2_000 {
            ends.push(&[b'x'; 16 * 1024]);
            pieces.push(&[b'x'; 16 * 1024]);
        }
        assert!(ends.head.capacity() + ends.tail.capacity() <= 60 * 1024, "{}", ends.tail.capacity());
        assert!(pieces.waiting.capacity() <= 16 * 1024, "{}", pieces.waiting.capacity());
    }
}
