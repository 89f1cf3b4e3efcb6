//! Replaces secrets in text by markers.

use std::borrow::Cow;
use std::ops::Range;

use aho_corasick::{AhoCorasick, Input, MatchKind};

use crate::edges::Edges;
use crate::forms::forms;
use crate::secrets::Secrets;
use crate::shapes::SHAPES;

/// How often a text is looked through again because of what is beside a marker.
const ROUNDS: usize = 4;

/// The longest secret that is found although it begins in what another shape hides.
const LONGEST_WITHIN: usize = 16 * 1024;

/// Hides secrets. Made once, because that takes longer than to use it.
#[derive(Debug, Clone)]
pub struct Mask {
    known: Option<AhoCorasick>,
    /// The name of each known form.
    names: Vec<String>,
    shapes: Option<AhoCorasick>,
    edges: Edges,
}

/// A part of a text that is hidden, and the name it goes by.
type Hidden<'a> = (Range<usize>, &'a str);

impl Default for Mask {
    fn default() -> Self {
        Self::new(&Secrets::default())
    }
}

impl Mask {
    /// Hides these values in all of their forms, and everything that has the shape of a token.
    pub fn new(secrets: &Secrets) -> Self {
        let mut patterns = Vec::new();
        let mut names = Vec::new();
        for (value, name) in secrets.iter() {
            for form in forms(value) {
                patterns.push(form);
                names.push(name.to_owned());
            }
        }
        let known = if patterns.is_empty() { None } else { automaton(&patterns) };
        let shapes = automaton(&SHAPES.map(|shape| shape.beginning));
        Self { known, names, shapes, edges: Edges::new(&patterns) }
    }

    /// The text without secrets; as it is where there are none.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut masked = Cow::Borrowed(text);
        for _ in 0..ROUNDS {
            match self.once(&masked) {
                Some(again) => masked = Cow::Owned(again),
                None => break,
            }
        }
        masked
    }

    /// Hides secrets in a text.
    pub fn apply(&self, text: &mut String) {
        if let Cow::Owned(masked) = self.text(text) {
            *text = masked;
        }
    }

    /// Whether there is something to hide.
    pub fn finds(&self, text: &str) -> bool {
        !self.hidden(text).is_empty()
    }

    fn once(&self, text: &str) -> Option<String> {
        let hidden = self.hidden(text);
        if hidden.is_empty() {
            return None;
        }
        let mut masked = String::with_capacity(text.len());
        let mut done = 0;
        for (range, name) in hidden {
            masked.push_str(text.get(done..range.start).unwrap_or_default());
            masked.push_str("[masked ");
            masked.push_str(name);
            masked.push(']');
            done = range.end;
        }
        masked.push_str(text.get(done..).unwrap_or_default());
        Some(masked)
    }

    /// The parts to be hidden, in order and apart from each other.
    fn hidden(&self, text: &str) -> Vec<Hidden<'_>> {
        let mut hidden = self.known_values(text);
        let cut = self.edges.find(text).into_iter();
        hidden.extend(cut.map(|(range, value)| (range, self.names[value].as_str())));
        hidden.extend(self.shaped(text));
        if hidden.len() > 1 {
            hidden.sort_by_key(|(range, _)| range.start);
            hidden.dedup_by(|later, earlier| {
                // What overlaps is hidden as one, by the name of a known value where there is one.
                let overlaps = later.0.start < earlier.0.end;
                if overlaps {
                    earlier.0.end = earlier.0.end.max(later.0.end);
                }
                overlaps
            });
        }
        hidden
    }

    fn known_values(&self, text: &str) -> Vec<Hidden<'_>> {
        let Some(known) = &self.known else { return Vec::new() };
        let mut found = Vec::new();
        let mut from = 0;
        while let Some(next) = known.find(Input::new(text).range(from..)) {
            found.push((next.range(), self.names[next.pattern().as_usize()].as_str()));
            // Another may begin within it.
            from = next.start() + 1;
        }
        found
    }

    fn shaped(&self, text: &str) -> Vec<Hidden<'static>> {
        let Some(shapes) = &self.shapes else { return Vec::new() };
        let mut hidden: Vec<Hidden<'static>> = Vec::new();
        let mut hidden_to = 0;
        for found in shapes.find_iter(text) {
            // Far inside of what is hidden nothing can begin that goes on behind it.
            if found.start() + LONGEST_WITHIN < hidden_to {
                continue;
            }
            if let Some(another) = SHAPES[found.pattern().as_usize()].read(text, found.start()) {
                hidden_to = hidden_to.max(another.0.end);
                hidden.push(another);
            }
        }
        hidden
    }
}

/// Finds the longest of what begins first. Too many patterns for it are found by their shape at the most.
fn automaton<P: AsRef<[u8]>>(patterns: &[P]) -> Option<AhoCorasick> {
    AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(patterns).ok()
}
