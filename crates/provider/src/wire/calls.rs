//! Calls of tools: their ids and their arguments.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::Item;

/// Gives every call an id that no other call of the conversation has.
#[derive(Debug, Default)]
pub(super) struct CallIds {
    taken: HashSet<String>,
    /// Made ids begin with the length of the conversation, so that the same answer gets the same ids.
    items: usize,
    made: usize,
}

impl CallIds {
    /// Knows the ids of `items`.
    pub(super) fn of(items: &[Item]) -> Self {
        let calls = items.iter().filter_map(|item| match item {
            Item::Model(model_message) => Some(model_message.calls.iter().map(|call| call.id.clone())),
            Item::User { .. } | Item::Results { .. } => None,
        });
        Self { taken: calls.flatten().collect(), items: items.len(), made: 0 }
    }

    /// The provider's id where it is a good one, else one of our own.
    pub(super) fn settle(&mut self, given: &str) -> String {
        let mut id = given.to_owned();
        while id.is_empty() || self.taken.contains(&id) {
            self.made += 1;
            id = format!("call_{}_{}", self.items, self.made);
        }
        self.taken.insert(id.clone());
        id
    }
}

/// The arguments of a call: the object that `raw` holds, or `raw` itself when it holds none.
pub(super) fn arguments(raw: &str) -> Value {
    if raw.trim().is_empty() {
        return json!({});
    }
    match serde_json::from_str(raw) {
        Ok(object @ Value::Object(_)) => object,
        _ => Value::String(raw.to_owned()),
    }
}

/// The arguments of an earlier call as an object: APIs refuse a conversation with anything else in it.
pub(super) fn as_object(input: &Value) -> Value {
    match input {
        Value::Object(_) => input.clone(),
        Value::String(raw) => json!({"raw": raw}),
        other => json!({"raw": other.to_string()}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Call, ModelMessage};

    #[test]
    fn ids_are_the_providers_unless_they_are_missing_or_taken() {
        let call = |id: &str| Call { id: id.into(), name: "run".into(), input: json!({}) };
        let model_message =
            ModelMessage { calls: vec![call("a"), call("call_2_1")], ..ModelMessage::default() };
        let items = [Item::User { text: "x".into() }, Item::Model(model_message)];
        let mut ids = CallIds::of(&items);
        let settled = ["b", "a", "", "b", ""].map(|given| ids.settle(given));
        assert_eq!(settled, ["b", "call_2_2", "call_2_3", "call_2_4", "call_2_5"]);
    }

    #[test]
    fn arguments_are_an_object_or_the_raw_text() {
        let table = [
            ("", json!({})),
            (" ", json!({})),
            (r#"{"a": [1]}"#, json!({"a": [1]})),
            (r#"{"a": "#, json!(r#"{"a": "#)),
            ("[1]", json!("[1]")),
            ("null", json!("null")),
        ];
        for (raw, expected) in table {
            assert_eq!(arguments(raw), expected, "{raw:?}");
        }
        assert_eq!(as_object(&json!({"a": 1})), json!({"a": 1}));
        assert_eq!(as_object(&json!("{")), json!({"raw": "{"}));
        assert_eq!(as_object(&json!([1])), json!({"raw": "[1]"}));
    }
}
