//! Forms: questions of the agent to a person, one part per field.

use serde_json::{Map, Value};
use towline_core::Part;

use super::wire::Elicitation;
use crate::text;

/// A form that waits to be filled in.
#[derive(Debug)]
pub(super) struct Form {
    fields: Vec<Field>,
}

#[derive(Debug)]
struct Field {
    name: String,
    schema: Value,
    options: Vec<Offer>,
}

/// A suggested answer: its text and its value.
#[derive(Debug)]
struct Offer {
    value: Value,
    label: String,
    description: String,
}

impl Form {
    /// The form; `None` if a person cannot fill it in here.
    pub(super) fn read(asked: &Elicitation<'_>) -> Option<Self> {
        if asked.mode.as_deref().is_some_and(|mode| mode != "form") {
            return None;
        }
        let properties: Map<String, Value> =
            serde_json::from_str(asked.requested_schema.properties?.get()).ok()?;
        let field = |(name, schema): (String, Value)| Field { name, options: offers(&schema), schema };
        let fields: Vec<_> = properties.into_iter().map(field).collect();
        (!fields.is_empty()).then_some(Self { fields })
    }

    /// The questions, one part per field.
    pub(super) fn parts(&self, message: &str) -> Vec<Part> {
        let several = self.fields.len() > 1;
        let part = |(at, field): (usize, &Field)| {
            let word = |name: &str| field.schema.get(name).and_then(Value::as_str);
            let own = word("description").or(word("title")).unwrap_or(&field.name);
            let text = match (at, several) {
                (0, false) => message.to_owned(),
                (0, true) => format!("{message}\n{own}"),
                _ => own.to_owned(),
            };
            let options = field.options.iter().map(|offer| (&*offer.label, &*offer.description));
            text::part(&text, options, field.kind() == "array")
        };
        self.fields.iter().enumerate().map(part).collect()
    }

    /// The form with the answers, one per field.
    pub(super) fn filled_in(&self, answers: &[String]) -> Map<String, Value> {
        let fields = self.fields.iter().zip(answers);
        fields.map(|(field, answer)| (field.name.clone(), field.value(answer))).collect()
    }
}

impl Field {
    fn kind(&self) -> &str {
        self.schema.get("type").and_then(Value::as_str).unwrap_or_default()
    }

    /// The value of an answer. Text that is no suggested answer is passed on unchanged.
    fn value(&self, answer: &str) -> Value {
        let answer = answer.trim();
        let offered = |label: &str| {
            let offer = self.options.iter().find(|offer| offer.label == label.trim());
            offer.map(|offer| offer.value.clone())
        };
        let words = || Value::from(answer);
        match self.kind() {
            "array" => answer
                .split(',')
                .filter(|part| !part.trim().is_empty())
                .map(|part| offered(part).unwrap_or_else(|| part.trim().into()))
                .collect(),
            "integer" => answer.parse::<i64>().map_or_else(|_| words(), Value::from),
            "number" => answer.parse::<f64>().map_or_else(|_| words(), Value::from),
            _ => offered(answer).unwrap_or_else(words),
        }
    }
}

fn offers(schema: &Value) -> Vec<Offer> {
    if schema.get("type").and_then(Value::as_str) == Some("boolean") {
        let offer = |(label, value): (&str, bool)| Offer {
            value: value.into(),
            label: label.to_owned(),
            description: String::new(),
        };
        return [("yes", true), ("no", false)].map(offer).into();
    }
    let schema = schema.get("items").unwrap_or(schema);
    let list = |name: &str| schema.get(name).and_then(Value::as_array);
    let words = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    if let Some(titled) = list("oneOf").or_else(|| list("anyOf")) {
        let offer = |option: &Value| {
            let value = option.get("const")?.clone();
            let text = |name: &str| option.get(name).and_then(Value::as_str).map(str::to_owned);
            let label = text("title").unwrap_or_else(|| words(&value));
            Some(Offer { label, description: text("description").unwrap_or_default(), value })
        };
        return titled.iter().filter_map(offer).collect();
    }
    let offer =
        |value: &Value| Offer { label: words(value), value: value.clone(), description: String::new() };
    list("enum").into_iter().flatten().map(offer).collect()
}
