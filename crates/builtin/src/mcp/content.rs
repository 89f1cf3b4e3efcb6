//! The answers of a server's tools, as text for the model.

use serde_json::Value;

use crate::tools::{HeadAndTail, Outcome};

/// The longest answer that the model gets.
const MOST: usize = 100 * 1024;

/// The result of `tools/call` as an outcome.
pub(super) fn outcome(result: &Value) -> Outcome {
    let parts = result.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let text = match (parts, result.get("structuredContent")) {
        ([], Some(structured)) => structured.to_string(),
        ([], None) => "(no output)".to_owned(),
        (parts, _) => parts.iter().map(part).collect::<Vec<_>>().join("\n"),
    };
    let text = HeadAndTail::of(&text, MOST);
    match result.get("isError").and_then(Value::as_bool) {
        Some(true) => Outcome::failed(text),
        _ => Outcome::ok(text),
    }
}

/// One part of an answer: text verbatim, anything else by name.
fn part(part: &Value) -> String {
    let text = |name: &str| part.get(name).and_then(Value::as_str).unwrap_or_default();
    let size = |data: &str| data.len() / 4 * 3;
    match text("type") {
        "text" => text("text").to_owned(),
        kind @ ("image" | "audio") => {
            format!("[{kind}, {}, about {} bytes, not shown]", text("mimeType"), size(text("data")))
        }
        "resource_link" => format!("[resource {}: {}]", text("name"), text("uri")),
        "resource" => {
            let resource = part.get("resource").unwrap_or(&Value::Null);
            let inner = |name: &str| resource.get(name).and_then(Value::as_str);
            let uri = inner("uri").unwrap_or("a resource");
            match inner("text") {
                Some(text) => format!("[{uri}]\n{text}"),
                None => {
                    format!("[{uri}, about {} bytes, not shown]", size(inner("blob").unwrap_or_default()))
                }
            }
        }
        "" => "[something without a type, not shown]".to_owned(),
        other => format!("[{other}, not shown]"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_is_joined_and_other_content_is_named() {
        let result = json!({"content": [
            {"type": "text", "text": "one"},
            {"type": "image", "mimeType": "image/png", "data": "AAAAAAAA"},
            {"type": "resource_link", "name": "a", "uri": "file:///a"},
            {"type": "resource", "resource": {"uri": "file:///b", "text": "two"}},
            {"type": "resource", "resource": {"uri": "file:///c", "blob": "AAAA"}},
            {"type": "hologram"},
            7,
        ]});
        let words = "one\n[image, image/png, about 6 bytes, not shown]\n[resource a: file:///a]\n[file:///b]\ntwo\n\
                     [file:///c, about 3 bytes, not shown]\n[hologram, not shown]\n\
                     [something without a type, not shown]";
        assert_eq!(outcome(&result), Outcome::ok(words));
    }

    #[test]
    fn errors_and_answers_without_content_are_outcomes_too() {
        let result = json!({"content": [{"type": "text", "text": "no"}], "isError": true});
        assert_eq!(outcome(&result), Outcome::failed("no"));
        assert_eq!(outcome(&json!({"structuredContent": {"a": 1}})), Outcome::ok("{\"a\":1}"));
        assert_eq!(outcome(&json!({"content": "text"})), Outcome::ok("(no output)"));
        assert_eq!(outcome(&Value::Null), Outcome::ok("(no output)"));
    }
}
