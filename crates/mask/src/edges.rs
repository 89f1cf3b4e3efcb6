//! Known values that were cut before anybody could hide them: the end of one at the beginning of a text, the beginning of
//! one at its end.

use std::collections::HashMap;
use std::ops::Range;

/// The shortest piece of a value that is hidden. Shorter ones occur everywhere.
const PIECE: usize = 8;
/// How far from the end of a text a mark may show that it was cut there, with its remark about the rest.
const MARK_WITHIN: usize = 48;
const MARK: char = '…';

type Piece = [u8; PIECE];

/// Finds pieces of known values at the edges of texts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Edges {
    values: Vec<Vec<u8>>,
    /// Where each piece is: in which value, from which byte on.
    pieces: HashMap<Piece, Vec<(usize, usize)>>,
}

impl Edges {
    /// Of these values.
    pub(crate) fn new(values: &[String]) -> Self {
        let mut pieces: HashMap<Piece, Vec<(usize, usize)>> = HashMap::new();
        for (value, text) in values.iter().enumerate() {
            for (at, window) in text.as_bytes().windows(PIECE).enumerate() {
                if let Ok(piece) = Piece::try_from(window) {
                    pieces.entry(piece).or_default().push((value, at));
                }
            }
        }
        Self { values: values.iter().map(|value| value.as_bytes().to_vec()).collect(), pieces }
    }

    /// The parts of a text that are the end or the beginning of a value, and which value that is.
    pub(crate) fn find(&self, text: &str) -> Vec<(Range<usize>, usize)> {
        if self.values.is_empty() {
            return Vec::new();
        }
        let mut found = Vec::new();
        let begins = text.len() - text.trim_start_matches(|c: char| c == MARK || c.is_whitespace()).len();
        found.extend(self.ending_at_start(text.as_bytes(), begins));
        let ends = text.trim_end().len();
        let near = text.ceil_char_boundary(ends.saturating_sub(MARK_WITHIN));
        let marked = text.get(near..ends).and_then(|end| end.rfind(MARK));
        let marked = marked.map(|mark| text[..near + mark].trim_end().len());
        for end in [Some(ends), marked].into_iter().flatten() {
            found.extend(self.beginning_at_end(text.as_bytes(), end));
        }
        found
    }

    fn occurrences(&self, window: Option<&[u8]>) -> impl Iterator<Item = (usize, usize)> {
        let piece = window.and_then(|window| Piece::try_from(window).ok());
        piece.and_then(|piece| self.pieces.get(&piece)).into_iter().flatten().copied()
    }

    fn ending_at_start(&self, text: &[u8], from: usize) -> Option<(Range<usize>, usize)> {
        let endings = self.occurrences(text.get(from..from + PIECE)).filter_map(|(value, at)| {
            let ending = self.values.get(value)?.get(at..)?;
            text.get(from..)?.starts_with(ending).then(|| (from..from + ending.len(), value))
        });
        endings.max_by_key(|(range, _)| range.end)
    }

    fn beginning_at_end(&self, text: &[u8], end: usize) -> Option<(Range<usize>, usize)> {
        let from = end.checked_sub(PIECE)?;
        let beginnings = self.occurrences(text.get(from..end)).filter_map(|(value, at)| {
            let beginning = self.values.get(value)?.get(..at + PIECE)?;
            text.get(..end)?.ends_with(beginning).then(|| (end - beginning.len()..end, value))
        });
        beginnings.min_by_key(|(range, _)| range.start)
    }
}
