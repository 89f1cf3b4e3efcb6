//! The text of a web page without its markup: enough for a model to read, in one pass.

/// Elements whose content is not text.
const HIDDEN: [&str; 5] = ["script", "style", "template", "svg", "noscript"];
/// Elements that do not begin a new line.
const INLINE: [&str; 22] = [
    "a", "abbr", "b", "bdi", "cite", "code", "del", "em", "font", "i", "img", "ins", "kbd", "label", "mark",
    "q", "s", "small", "span", "strong", "sub", "sup",
];

/// The text of a page.
pub(super) fn text_of(page: &str) -> String {
    let mut text = Text::default();
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        text.words(&rest[..at]);
        rest = &rest[at..];
        rest = match Markup::at(rest) {
            Markup::None => {
                text.words("<");
                &rest[1..]
            }
            Markup::Comment { length } => &rest[length..],
            Markup::Tag { name, is_end, length } => {
                if !INLINE.contains(&name.as_str()) {
                    text.line_end();
                }
                let after = &rest[length..];
                if !is_end && HIDDEN.contains(&name.as_str()) { past_end_of(after, &name) } else { after }
            }
        };
    }
    text.words(rest);
    text.finish()
}

/// What begins with a `<`.
enum Markup {
    None,
    Comment { length: usize },
    Tag { name: String, is_end: bool, length: usize },
}

impl Markup {
    fn at(rest: &str) -> Self {
        if let Some(comment) = rest.strip_prefix("<!--") {
            return Self::Comment { length: comment.find("-->").map_or(rest.len(), |at| at + 7) };
        }
        let inner = &rest[1..];
        if !inner.starts_with(|first: char| first.is_ascii_alphabetic() || matches!(first, '/' | '!' | '?')) {
            return Self::None;
        }
        let name = inner.trim_start_matches('/').chars().take_while(char::is_ascii_alphanumeric);
        let name = name.map(|c| c.to_ascii_lowercase()).collect();
        Self::Tag { name, is_end: inner.starts_with('/'), length: 1 + end_of_tag(inner) }
    }
}

/// The length of a tag; a `>` in quotes does not end it.
fn end_of_tag(tag: &str) -> usize {
    let mut quote = None;
    for (at, byte) in tag.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return at + 1,
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            _ => {}
        }
    }
    tag.len()
}

/// The rest after the end of an element whose content is skipped.
fn past_end_of<'a>(rest: &'a str, name: &str) -> &'a str {
    let is_end = |at: usize| {
        rest.get(at + 2..at + 2 + name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name))
    };
    match rest.match_indices("</").map(|(at, _)| at).find(|at| is_end(*at)) {
        Some(at) => &rest[at + 2 + end_of_tag(&rest[at + 2..])..],
        None => "",
    }
}

#[derive(Default)]
struct Text {
    text: String,
    line: String,
}

impl Text {
    /// Adds text, with white space collapsed to one space.
    fn words(&mut self, raw: &str) {
        for character in unescaped(raw).chars() {
            if !character.is_whitespace() {
                self.line.push(character);
            } else if !self.line.is_empty() && !self.line.ends_with(' ') {
                self.line.push(' ');
            }
        }
    }

    fn line_end(&mut self) {
        let line = self.line.trim_end();
        if !line.is_empty() {
            self.text.push_str(line);
            self.text.push('\n');
        }
        self.line.clear();
    }

    fn finish(mut self) -> String {
        self.line_end();
        self.text
    }
}

/// Replaces the usual character references.
fn unescaped(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('&') {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest.bytes().take(12).position(|byte| byte == b';');
        let found = end.and_then(|end| Some((reference(rest.get(1..end)?)?, end + 1)));
        let (character, length) = found.unwrap_or(('&', 1));
        text.push(character);
        rest = &rest[length..];
    }
    text.push_str(rest);
    text
}

fn reference(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok()?,
            None => number.parse().ok()?,
        };
        return char::from_u32(code);
    }
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        "ndash" => '–',
        "mdash" => '—',
        "hellip" => '…',
        "copy" => '©',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_stays_and_markup_is_removed() {
        let page = "<!DOCTYPE html><html><head><title>T &amp; U</title><script>if (a < b) { x('</p>') }</SCRIPT >\n\
                    <style>p { color: red }</style></head><body><!-- no <b>this</b> --><h1 class=\"a>b\">Head</h1>\
                    <p>One <b>bold</b>\n   word&nbsp;&#8212;&#x21; 1 < 2 &bogus; &</p><ul><li>a<li>b</ul></body>";
        assert_eq!(text_of(page), "T & U\nHead\nOne bold word —! 1 < 2 &bogus; &\na\nb\n");
        assert_eq!(text_of("plain"), "plain\n");
        assert_eq!(text_of("a<script>never closed"), "a\n");
        assert_eq!(text_of("a<!-- never closed"), "a\n");
        assert_eq!(text_of("<b"), "");
    }

    proptest! {
        #[test]
        fn any_text_is_read(page in "([<>/!&;#\"'a-z -]|script|<!--|-->|ä|&#x){0,60}") {
            let _ = text_of(&page);
        }
    }
}
