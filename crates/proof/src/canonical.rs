//! One text for each JSON value, to be hashed.

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The value without white space, with the keys of each object in the order of their bytes.
pub fn canonical_json(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

fn write(value: &Value, text: &mut String) {
    match value {
        Value::Array(items) => {
            text.push('[');
            for (at, item) in items.iter().enumerate() {
                separate(at, text);
                write(item, text);
            }
            text.push(']');
        }
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            text.push('{');
            for (at, (name, field)) in fields.into_iter().enumerate() {
                separate(at, text);
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                write(field, text);
            }
            text.push('}');
        }
        plain => text.push_str(&plain.to_string()),
    }
}

fn separate(at: usize, text: &mut String) {
    if at > 0 {
        text.push(',');
    }
}

/// The SHA-256 of these bytes, in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The SHA-256 of a value's canonical JSON.
pub fn sha256_of_json(value: &impl Serialize) -> serde_json::Result<String> {
    Ok(sha256(canonical_json(&serde_json::to_value(value)?).as_bytes()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_order_of_keys_and_white_space_do_not_count() {
        let one: Value = serde_json::from_str(r#"{"b": [1, {"d": "ü\n\"", "c": null}], "a": true}"#).unwrap();
        let other: Value = serde_json::from_str(r#"{"a":true,"b":[1,{"c":null,"d":"ü\n\""}]}"#).unwrap();
        assert_eq!(canonical_json(&one), r#"{"a":true,"b":[1,{"c":null,"d":"ü\n\""}]}"#);
        assert_eq!(canonical_json(&one), canonical_json(&other));
        assert_ne!(sha256_of_json(&json!([1, 2])).unwrap(), sha256_of_json(&json!([2, 1])).unwrap());
    }

    #[test]
    fn the_hash_is_sha_256_in_hexadecimal() {
        let of_nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(sha256(b""), of_nothing);
    }
}
