//! Bounds output of any length: cuts it to its beginning and end.

use std::collections::VecDeque;

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
        let tail = &tail[torn(tail)..];
        let left_out = self.total - (head.len() + tail.len()) as u64;
        let (head, tail) = (String::from_utf8_lossy(head), String::from_utf8_lossy(tail));
        format!("{head}\n[… {left_out} bytes left out …]\n{tail}")
    }
}

/// A piece of a text without the parts of characters at its edges.
pub(crate) fn whole_characters(bytes: &[u8]) -> &[u8] {
    let bytes = &bytes[..bytes.len() - unfinished(bytes)];
    &bytes[torn(bytes)..]
}

/// How many bytes at the beginning belong to a character that began before.
fn torn(bytes: &[u8]) -> usize {
    bytes.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count()
}

/// How many bytes at the end belong to an unfinished character.
fn unfinished(bytes: &[u8]) -> usize {
    let last = bytes.utf8_chunks().last().map_or(&[][..], |chunk| chunk.invalid());
    // Bytes that begin no character are no unfinished one.
    let is_unfinished = str::from_utf8(last).is_err_and(|error| error.error_len().is_none());
    if is_unfinished { last.len() } else { 0 }
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
        assert_eq!(whole_characters(&"a€".as_bytes()[..3]), b"a");
        assert_eq!(whole_characters(&"€b€".as_bytes()[1..6]), b"b");
        assert_eq!(whole_characters(b"\xff\xfe"), b"\xff\xfe");
    }

    #[test]
    fn memory_is_bounded() {
        let mut ends = HeadAndTail::new(30 * 1024);
        for _ in 0..2_000 {
            ends.push(&[b'x'; 16 * 1024]);
        }
        assert!(ends.head.capacity() + ends.tail.capacity() <= 60 * 1024, "{}", ends.tail.capacity());
    }
}
