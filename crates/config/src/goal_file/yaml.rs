//! YAML, as far as settings need it, in the form that the TOML parser gives.
//!
//! Anchors, aliases and tags are refused: a value is written where it is read. Words like `yes` are texts, as in YAML 1.2.

use std::borrow::Cow;
use std::ops::Range;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Span, StrInput};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// How deep lists and tables may be nested.
const DEEPEST: usize = 64;

/// Why a text cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct YamlError {
    /// What is wrong.
    pub(crate) message: String,
    pub(crate) span: Range<usize>,
}

/// Reads a table. A text without any setting is an empty one.
pub(crate) fn parse(text: &str) -> Result<DeTable<'_>, YamlError> {
    let mut reader = Reader { text, lines: line_starts(text), events: Parser::new_from_str(text) };
    let mut table = DeTable::new();
    loop {
        match reader.next()? {
            (Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd | Event::Nothing, _) => {}
            (Event::StreamEnd, _) => return Ok(table),
            (Event::MappingStart(anchor, tag), span) if table.is_empty() => {
                reader.must_be_plain(anchor, tag.is_some(), &span)?;
                table = reader.table(0)?;
            }
            // A document of comments and blank lines.
            (Event::Scalar(text, ScalarStyle::Plain, 0, None), _) if text.is_empty() => {}
            (_, span) => return Err(reader.error("write settings as `key: value`, one in a line", &span)),
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    lines: Vec<usize>,
    events: Parser<'a, StrInput<'a>>,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Span), YamlError> {
        match self.events.next_event() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => Err(self.scan_error(&error)),
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn table(&mut self, depth: usize) -> Result<DeTable<'a>, YamlError> {
        let mut table = DeTable::new();
        loop {
            let (name, span) = match self.next()? {
                (Event::MappingEnd, _) => return Ok(table),
                (Event::Scalar(name, _, anchor, tag), span) => {
                    self.must_be_plain(anchor, tag.is_some(), &span)?;
                    (name, span)
                }
                (Event::Alias(_), span) => return Err(self.no_alias(&span)),
                (_, span) => return Err(self.error("a key must be a word", &span)),
            };
            let key = Spanned::new(self.range(&span), name);
            let event = self.next()?;
            let value = self.value(event, depth + 1)?;
            if table.contains_key(key.get_ref().as_ref()) {
                return Err(self.error(&format!("`{}` is set twice", key.get_ref()), &span));
            }
            table.insert(key, value);
        }
    }

    fn value(
        &mut self,
        (event, span): (Event<'a>, Span),
        depth: usize,
    ) -> Result<Spanned<DeValue<'a>>, YamlError> {
        if depth > DEEPEST {
            return Err(self.error("too many lists and tables within each other", &span));
        }
        let range = self.range(&span);
        let value = match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.must_be_plain(anchor, tag.is_some(), &span)?;
                match style {
                    ScalarStyle::Plain => self.plain(text, &span)?,
                    _ => DeValue::String(text),
                }
            }
            Event::SequenceStart(anchor, tag) => {
                self.must_be_plain(anchor, tag.is_some(), &span)?;
                let mut items = toml::de::DeArray::new();
                loop {
                    match self.next()? {
                        (Event::SequenceEnd, _) => break DeValue::Array(items),
                        event => items.push(self.value(event, depth + 1)?),
                    }
                }
            }
            Event::MappingStart(anchor, tag) => {
                self.must_be_plain(anchor, tag.is_some(), &span)?;
                DeValue::Table(self.table(depth)?)
            }
            Event::Alias(_) => return Err(self.no_alias(&span)),
            _ => return Err(self.error("a value is missing", &span)),
        };
        Ok(Spanned::new(range, value))
    }

    /// A value without quotes: a flag, a number, or else a text.
    fn plain(&self, text: Cow<'a, str>, span: &Span) -> Result<DeValue<'a>, YamlError> {
        Ok(match text.as_ref() {
            "" | "~" | "null" | "Null" | "NULL" => return Err(self.error("a value is missing", span)),
            "true" | "True" | "TRUE" => DeValue::Boolean(true),
            "false" | "False" | "FALSE" => DeValue::Boolean(false),
            _ => number(&self.text[self.range(span)]).unwrap_or(DeValue::String(text)),
        })
    }

    fn must_be_plain(&self, anchor: usize, has_tag: bool, span: &Span) -> Result<(), YamlError> {
        if anchor != 0 {
            return Err(
                self.error("anchors (`&name`) are not supported: write the value where it is used", span)
            );
        }
        if has_tag {
            return Err(self.error("tags (`!name`) are not supported: take it out", span));
        }
        Ok(())
    }

    fn no_alias(&self, span: &Span) -> YamlError {
        self.error("aliases (`*name`) are not supported: write the value out; a text that begins with `*` needs quotes", span)
    }

    fn error(&self, message: &str, span: &Span) -> YamlError {
        YamlError { message: message.to_owned(), span: self.range(span) }
    }

    fn scan_error(&self, error: &ScanError) -> YamlError {
        let at = self.byte(error.marker());
        YamlError { message: error.info().to_owned(), span: at..at }
    }

    fn range(&self, span: &Span) -> Range<usize> {
        let start = self.byte(&span.start);
        start..self.byte(&span.end).max(start)
    }

    /// Markers count characters within lines.
    fn byte(&self, marker: &Marker) -> usize {
        let Some(start) = self.lines.get(marker.line().saturating_sub(1)) else { return self.text.len() };
        let line = &self.text[*start..];
        start + line.char_indices().nth(marker.col()).map_or(line.len(), |(byte, _)| byte)
    }
}

/// What TOML takes for a number, dates aside.
fn number(word: &str) -> Option<DeValue<'_>> {
    let digits = word.strip_prefix(['+', '-']).unwrap_or(word);
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let value = DeValue::parse(word).ok()?.into_inner();
    matches!(value, DeValue::Integer(_) | DeValue::Float(_)).then_some(value)
}

fn line_starts(text: &str) -> Vec<usize> {
    std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    /// The values, or what is wrong and from which byte on.
    fn values(text: &str) -> Result<toml::Value, String> {
        let table = parse(text).map_err(|error| format!("{}: {}", error.span.start, error.message))?;
        let table = toml::Deserializer::from(Spanned::new(0..text.len(), table));
        Ok(toml::Value::deserialize(table).unwrap())
    }

    #[test]
    fn yaml_and_toml_give_the_same_values() {
        for (text, expected) in [
            ("", "{}"),
            ("# nothing\n", "{}"),
            (
                "a: 1\nb: -2.5\nc: true\nd: text of words\n",
                "{a = 1, b = -2.5, c = true, d = \"text of words\"}",
            ),
            ("a: '1'\nb: \"x\\ty\"\nc: yes\nd: 0x1f", r#"{a = "1", b = "x\ty", c = "yes", d = 0x1f}"#),
            (
                "a: 2026-11-15\nb: 1.2.3\nc: inf\nd: 2_000",
                r#"{a = "2026-11-15", b = "1.2.3", c = "inf", d = 2000}"#,
            ),
            ("a: [x, 2]\nb:\n  - y\n  - z: 1\n", r#"{a = ["x", 2], b = ["y", {z = 1}]}"#),
            ("a:\n  b:\n    c: x\nd: {e: f}\n", r#"{a = {b = {c = "x"}}, d = {e = "f"}}"#),
            ("a: |\n  one\n  two\nb: >\n  one\n  two\n", r#"{a = "one\ntwo\n", b = "one two\n"}"#),
        ] {
            assert_eq!(values(text), Ok(expected.parse().unwrap()), "{text:?}");
        }
    }

    #[test]
    fn what_is_no_settings_is_refused_with_its_place() {
        for (text, expected) in [
            ("a:b", "0: write settings as `key: value`, one in a line"),
            ("- a\n", "0: write settings as `key: value`, one in a line"),
            ("a: 1\na: 2\n", "5: `a` is set twice"),
            ("a:\n", "1: a value is missing"),
            ("a: &x 1\n", "3: anchors (`&name`) are not supported: write the value where it is used"),
        ] {
            assert_eq!(values(text), Err(expected.to_owned()), "{text:?}");
        }
    }

    #[test]
    fn what_is_nested_without_end_is_refused() {
        let deep = format!("a: {}{}", "[".repeat(5_000), "]".repeat(5_000));
        let refused = values(&deep).unwrap_err();
        assert!(refused.contains("within each other") || refused.contains("recursion"), "{refused}");
    }
}
