//! The secrets that this process has come across. They are hidden in everything that it shows or stores as a title.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};

use towline_core::{harmless, misleads};
use towline_mask::{Mask, Secrets};

/// How many characters of a foreign text are shown in one line.
const LONGEST: usize = 400;

/// A handle on the known secrets; its copies share them.
#[derive(Clone, Default)]
pub struct KnownSecrets(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    secrets: Secrets,
    /// Made when there is something to hide it in.
    mask: Option<Arc<Mask>>,
}

impl KnownSecrets {
    /// Hides these from now on, too.
    pub fn add(&self, secrets: &Secrets) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.secrets.extend(secrets);
        known.mask = None;
    }

    /// A copy that shares nothing: what it learns later is not known here.
    #[must_use]
    pub fn apart(&self) -> Self {
        let apart = Self::default();
        apart.add(&self.0.lock().unwrap_or_else(PoisonError::into_inner).secrets);
        apart
    }

    /// What hides all of them.
    pub fn mask(&self) -> Arc<Mask> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Known { secrets, mask } = &mut *known;
        Arc::clone(mask.get_or_insert_with(|| Arc::new(Mask::new(secrets))))
    }

    /// Text that is not ours, fit for a line on a terminal. Without its secrets, because whoever wants it on one line may cut
    /// it, and half a secret is not recognised any more.
    pub fn printable(&self, text: &str) -> String {
        harmless(&self.mask().text(text).replace('\n', " "))
    }

    /// Like [`Self::printable`], and no longer than what people read.
    pub fn brief(&self, text: &str) -> String {
        let text = self.printable(text);
        match text.char_indices().nth(LONGEST) {
            Some((end, _)) => format!("{}… ({} more characters)", &text[..end], text[end..].chars().count()),
            None => text,
        }
    }

    /// JSON without any secret, and without any order to a terminal. It stays JSON whatever the secrets are: they are hidden
    /// inside of strings alone, and a number that equals a secret is no more than a number.
    pub fn json(&self, json: &str) -> String {
        let mask = self.mask();
        let mut shown = String::with_capacity(json.len());
        let mut rest = json;
        while let Some(start) = rest.find('"') {
            let end = start + string_length(&rest[start..]);
            shown.push_str(&rest[..start]);
            escape_into(&mut shown, &string_masked(&rest[start..end], &mask));
            rest = &rest[end..];
        }
        shown.push_str(rest);
        shown
    }
}

/// The length of the string that the text begins with, quotes included.
fn string_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

fn string_masked<'a>(literal: &'a str, mask: &Mask) -> Cow<'a, str> {
    let Ok(text) = serde_json::from_str::<String>(literal) else { return Cow::Borrowed(literal) };
    match mask.text(&text) {
        Cow::Borrowed(_) => Cow::Borrowed(literal),
        Cow::Owned(masked) => Cow::Owned(serde_json::Value::String(masked).to_string()),
    }
}

/// Adds a string with the same value and without effect on a terminal.
fn escape_into(shown: &mut String, literal: &str) {
    for c in literal.chars() {
        if misleads(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a string cannot fail.
                let _ = write!(shown, "\\u{unit:04x}");
            }
        } else {
            shown.push(c);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn knowing(values: &[&str]) -> KnownSecrets {
        let mut secrets = Secrets::default();
        values.iter().for_each(|value| secrets.add("MY_TOKEN", value));
        let known = KnownSecrets::default();
        known.add(&secrets);
        known
    }

    #[test]
    fn json_stays_json_whatever_the_secrets_are() {
        let known = knowing(&["12345678", "\",\"number\":", "\\\"twice\\\" quoted"]);
        let value = serde_json::json!({
            "number": 12_345_678, "text": "pin 12345678", "quoted": "\\\"twice\\\" quoted", "end": "\\",
        });
        let masked = known.json(&value.to_string());
        let expected = serde_json::json!({
            "number": 12_345_678, "text": "pin [masked MY_TOKEN]", "quoted": "[masked MY_TOKEN]", "end": "\\",
        });
        assert_eq!(serde_json::from_str::<serde_json::Value>(&masked).ok(), Some(expected), "{masked}");
    }

    #[test]
    fn text_is_masked_before_it_is_cut_and_the_cut_is_marked() {
        let known = knowing(&["first-half-second-half9"]);
        let text = format!("{}first-half-second-half9 and more", "x".repeat(LONGEST - 12));
        assert!(!known.brief(&text).contains("first"), "{}", known.brief(&text));
        assert_eq!(known.printable("a first-half-second-half9\nb"), "a [masked MY_TOKEN] b");
        assert_eq!(known.brief(&"ä".repeat(LONGEST)), "ä".repeat(LONGEST));
        let cut = format!("{}… (2 more characters)", "ä".repeat(LONGEST));
        assert_eq!(known.brief(&"ä".repeat(LONGEST + 2)), cut);
    }
}
