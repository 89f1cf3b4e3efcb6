//! Compares a text whose secrets are hidden with one whose are not: for whoever has the second and not the secrets.

const BEGINNING: &str = "[masked ";

/// Whether something is hidden in a text.
pub fn shows_marker(text: &str) -> bool {
    text.contains(BEGINNING)
}

/// Whether `masked` is what `text` becomes when some of its parts are hidden.
pub fn is_masked_form_of(masked: &str, text: &str) -> bool {
    let mut pieces = pieces(masked).into_iter();
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = pieces.next_back() else { return rest.is_empty() };
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// What is between the markers.
fn pieces(masked: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let (mut piece_at, mut from) = (0, 0);
    while let Some(at) = masked[from..].find(BEGINNING).map(|at| from + at) {
        let name_at = at + BEGINNING.len();
        match masked[name_at..].find(|c: char| !is_name(c)) {
            Some(length) if length > 0 && masked[name_at + length..].starts_with(']') => {
                pieces.push(&masked[piece_at..at]);
                piece_at = name_at + length + 1;
                from = piece_at;
            }
            _ => from = name_at,
        }
    }
    pieces.push(&masked[piece_at..]);
    pieces
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_match_anything_and_other_text_only_itself() {
        let cases = [
            ("plain", "plain", true),
            ("plain", "plain!", false),
            ("key=[masked API_KEY];", "key=abc;", true),
            ("key=[masked API_KEY];", "key=abc", false),
            ("[masked token]", "anything", true),
            ("a[masked X]b[masked private key]c", "a1b2c", true),
            ("a[masked X]b[masked X]c", "a1c", false),
            ("[masked X][masked Y]", "ab", true),
            ("[masked ]", "[masked ]", true),
            ("[masked ]", "x", false),
            ("[masked x", "[masked x", true),
        ];
        for (masked, text, wanted) in cases {
            assert_eq!(is_masked_form_of(masked, text), wanted, "{masked} of {text}");
        }
    }
}
