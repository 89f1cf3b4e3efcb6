//! The shapes of tokens: text that is secret wherever it occurs.
//!
//! Each shape begins with letters that hardly any other text has; only those places are examined.

use std::ops::Range;

/// A shape by its first letters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    /// How it begins.
    pub(crate) beginning: &'static str,
    reads: fn(text: &str, at: usize, beginning: &str) -> Option<FoundShape>,
}

/// A part of a text that is to be hidden, and what it is.
pub(crate) type FoundShape = (Range<usize>, &'static str);

const TOKEN: &str = "token";
const PASSWORD: &str = "password";
const PRIVATE_KEY: &str = "private key";

/// Every shape with the letters that it begins with.
pub(crate) const SHAPES: [Shape; 22] = [
    Shape { beginning: "sk-", reads: long_token },
    Shape { beginning: "sk_live_", reads: token },
    Shape { beginning: "rk_live_", reads: token },
    Shape { beginning: "ghp_", reads: token },
    Shape { beginning: "gho_", reads: token },
    Shape { beginning: "ghu_", reads: token },
    Shape { beginning: "ghs_", reads: token },
    Shape { beginning: "ghr_", reads: token },
    Shape { beginning: "github_pat_", reads: token },
    Shape { beginning: "glpat-", reads: token },
    Shape { beginning: "AKIA", reads: capitals },
    Shape { beginning: "ASIA", reads: capitals },
    Shape { beginning: "AIza", reads: long_token },
    Shape { beginning: "xoxb-", reads: token },
    Shape { beginning: "xoxa-", reads: token },
    Shape { beginning: "xoxp-", reads: token },
    Shape { beginning: "xoxr-", reads: token },
    Shape { beginning: "xoxs-", reads: token },
    Shape { beginning: "eyJ", reads: web_token },
    Shape { beginning: "Bearer ", reads: bearer },
    Shape { beginning: "://", reads: password },
    Shape { beginning: "-----BEGIN ", reads: private_key },
];

impl Shape {
    /// What is to be hidden of the text in which it begins at `at`.
    pub(crate) fn read(&self, text: &str, at: usize) -> Option<FoundShape> {
        (self.reads)(text, at, self.beginning)
    }
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

/// How many bytes from `from` on are of this sort.
fn run(text: &str, from: usize, is: impl Fn(u8) -> bool) -> usize {
    text.as_bytes().iter().skip(from).take_while(|byte| is(**byte)).count()
}

/// Whether a word begins at `at`: `task-list` is no token.
fn begins_word(text: &str, at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| text.as_bytes().get(before));
    // The letter of an escape in JSON ends what comes before.
    let is_escape = at >= 2 && text.as_bytes()[at - 2] == b'\\';
    before.is_none_or(|byte| !is_token_byte(*byte)) || is_escape
}

fn hidden_token(
    text: &str,
    at: usize,
    beginning: &str,
    least: usize,
    is: impl Fn(u8) -> bool,
) -> Option<FoundShape> {
    if !begins_word(text, at) {
        return None;
    }
    let length = run(text, at + beginning.len(), is);
    (length >= least).then(|| (at..at + beginning.len() + length, TOKEN))
}

fn token(text: &str, at: usize, beginning: &str) -> Option<FoundShape> {
    hidden_token(text, at, beginning, 16, is_token_byte)
}

/// With a digit in it, because words may begin like this.
fn long_token(text: &str, at: usize, beginning: &str) -> Option<FoundShape> {
    let hidden = hidden_token(text, at, beginning, 20, is_token_byte)?;
    let has_digit = text.as_bytes().get(hidden.0.clone())?.iter().any(u8::is_ascii_digit);
    has_digit.then_some(hidden)
}

fn capitals(text: &str, at: usize, beginning: &str) -> Option<FoundShape> {
    let is_capital = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
    let hidden = hidden_token(text, at, beginning, 16, is_capital)?;
    let ends = text.as_bytes().get(hidden.0.end).is_none_or(|byte| !is_token_byte(*byte));
    (ends && hidden.0.len() == 20).then_some(hidden)
}

/// Three parts of Base64 with points between them, the third of which may be missing.
fn web_token(text: &str, at: usize, _: &str) -> Option<FoundShape> {
    if !begins_word(text, at) {
        return None;
    }
    let head = run(text, at, is_token_byte);
    let middle_at = at + head + 1;
    let is_point = |at: usize| text.as_bytes().get(at) == Some(&b'.');
    let middle = run(text, middle_at, is_token_byte);
    if head < 10 || !is_point(at + head) || middle < 10 {
        return None;
    }
    let end = middle_at + middle;
    let end = if is_point(end) { end + 1 + run(text, end + 1, is_token_byte) } else { end };
    Some((at..end, TOKEN))
}

fn bearer(text: &str, at: usize, beginning: &str) -> Option<FoundShape> {
    let from = at + beginning.len();
    let is_bearer = |byte: u8| is_token_byte(byte) || matches!(byte, b'.' | b'~' | b'+' | b'/' | b'=');
    let length = run(text, from, is_bearer);
    (length >= 12).then(|| (from..from + length, TOKEN))
}

/// The password of an address: `://user:password@host`.
fn password(text: &str, at: usize, beginning: &str) -> Option<FoundShape> {
    let from = at + beginning.len();
    let is_user = |byte: u8| {
        !byte.is_ascii_whitespace()
            && !matches!(byte, b'/' | b'@' | b':' | b'"' | b'\'' | b'<' | b'>' | b'`' | b'\\' | b'[' | b']')
    };
    let user = run(text, from, is_user);
    let from = from + user + 1;
    if text.as_bytes().get(from - 1) != Some(&b':') {
        return None;
    }
    let length = run(text, from, |byte| is_user(byte) || byte == b':');
    let is_whole = length > 0 && text.as_bytes().get(from + length) == Some(&b'@');
    is_whole.then(|| (from..from + length, PASSWORD))
}

/// From its first line to its last, or as far as it goes on, but no further than the longest keys do.
fn private_key(text: &str, at: usize, beginning: &str) -> Option<FoundShape> {
    const LONGEST: usize = 32 * 1024;
    const DASHES: &str = "-----";
    let from = at + beginning.len();
    let label = run(text, from, |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' ');
    let body = from + label + DASHES.len();
    if !text.get(from..from + label)?.contains("PRIVATE KEY")
        || text.get(body - DASHES.len()..body)? != DASHES
    {
        return None;
    }
    let is_body = |byte: u8| {
        byte.is_ascii_alphanumeric()
            || byte.is_ascii_whitespace()
            || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'\\' | b':' | b',')
    };
    let length = text.as_bytes().iter().skip(body).take(LONGEST).take_while(|byte| is_body(**byte)).count();
    let rest = text.get(body..body + length)?;
    let last_line = rest.find("-----END ").and_then(|end| {
        let label_at = end + "-----END ".len();
        rest.get(label_at..)?.find(DASHES).map(|dashes| label_at + dashes + DASHES.len())
    });
    Some((at..body + last_line.unwrap_or(length), PRIVATE_KEY))
}
