//! The forms in which a value may occur in text: verbatim, as JSON and addresses write it, and in Base64.

/// The shortest piece of Base64 that is looked for.
const SHORTEST_BASE64: usize = 12;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// All forms of a value that differ from each other.
pub(crate) fn forms(value: &str) -> Vec<String> {
    let (plain, ascii, address) = (json(value), json_in_ascii(value), url(value));
    let mut forms = vec![value.to_owned(), json(&plain), json(&ascii), plain, ascii];
    // Forms write a space as a plus.
    forms.push(address.replace("%20", "+"));
    forms.push(address);
    for offset in 0..3 {
        let base64 = base64_within(value.as_bytes(), offset);
        if base64.len() >= SHORTEST_BASE64 {
            forms.push(base64.replace('+', "-").replace('/', "_"));
            forms.push(base64);
        }
    }
    forms.sort_unstable();
    forms.dedup();
    forms
}

/// The form inside a JSON string.
fn json(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '"' => escaped.push_str("\\\""),
            '\\' => escaped.push_str("\\\\"),
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\t' => escaped.push_str("\\t"),
            c if c.is_control() => escaped.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => escaped.push(c),
        }
    }
    escaped
}

/// The same where other characters than those of ASCII are escaped, too.
fn json_in_ascii(value: &str) -> String {
    let mut escaped = String::new();
    for c in json(value).chars() {
        if c.is_ascii() {
            escaped.push(c);
        } else {
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| escaped.push_str(&format!("\\u{unit:04x}")));
        }
    }
    escaped
}

/// The form inside a URL, percent-encoded.
fn url(value: &str) -> String {
    let mut encoded = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            byte => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// The characters of Base64 that follow from these bytes alone, wherever they are in what is encoded: `offset` bytes
/// behind a whole group of three.
fn base64_within(bytes: &[u8], offset: usize) -> String {
    let mut bits = Vec::with_capacity(offset + bytes.len());
    bits.resize(offset, 0);
    bits.extend_from_slice(bytes);
    let sixes = bits.chunks(3).flat_map(|group| {
        let byte = |at: usize| group.get(at).copied().map_or(0, usize::from);
        let (one, two, three) = (byte(0), byte(1), byte(2));
        let sixes = [one >> 2, (one & 3) << 4 | two >> 4, (two & 15) << 2 | three >> 6, three & 63];
        // A character that also holds bits of what follows is another one there.
        sixes.into_iter().take(group.len() * 8 / 6)
    });
    let text: String = sixes.map(|six| char::from(ALPHABET[six])).collect();
    // A character that also holds bits of what comes before is another one there.
    let foreign = (offset * 8).div_ceil(6);
    text.get(foreign..).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_value_has_one_form_beside_base64() {
        let forms = forms("abc123def456");
        assert!(forms.contains(&"abc123def456".to_owned()));
        assert!(forms.contains(&"YWJjMTIzZGVmNDU2".to_owned()));
        assert_eq!(forms.len(), 4, "{forms:?}");
    }

    #[test]
    fn escapes_of_json_and_addresses_are_forms() {
        let forms = forms("a\"b\\c d&e\n");
        assert!(forms.contains(&"a\\\"b\\\\c d&e\\n".to_owned()));
        assert!(forms.contains(&"a%22b%5Cc%20d%26e%0A".to_owned()));
        assert!(forms.contains(&"a%22b%5Cc+d%26e%0A".to_owned()));
        let forms = super::forms("sécret\u{1f511}");
        assert!(forms.contains(&"s\\u00e9cret\\ud83d\\udd11".to_owned()), "{forms:?}");
    }

    #[test]
    fn base64_is_found_at_every_offset() {
        // "user:abc123def456" and "users:abc123def456".
        for encoded in ["dXNlcjphYmMxMjNkZWY0NTY=", "dXNlcnM6YWJjMTIzZGVmNDU2"] {
            assert!(forms("abc123def456").iter().any(|form| encoded.contains(form)), "{encoded}");
        }
    }
}
