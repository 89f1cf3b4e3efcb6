//! The arguments of tools: one table per tool, used for the schema, for validation and for the messages about what is
//! wrong.

use serde_json::{Map, Value, json};
use towline_provider::ToolSpec;

use super::places::Places;
use super::walk::Patience;
use super::words::one_line;
use super::{Reach, ToolKind};

/// A tool as it is described to models.
#[derive(Debug)]
pub(super) struct Tool {
    pub(super) name: &'static str,
    /// The description for the model.
    pub(super) about: &'static str,
    pub(super) fields: &'static [Field],
    pub(super) kind: ToolKind,
    pub(super) reach: Reach,
    pub(super) work: Work,
}

/// What runs a call.
#[derive(Debug, Clone, Copy)]
pub(super) enum Work {
    /// A function on files, which may take a while and blocks a thread.
    Files(fn(&Places, &Arguments, &Patience) -> Result<String, String>),
    Command,
    Fetch,
}

#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) form: Form,
    pub(super) need: Need,
    /// The description for the model.
    pub(super) about: &'static str,
}

impl Field {
    pub(super) const fn required(name: &'static str, form: Form, about: &'static str) -> Self {
        Self { name, form, need: Need::Required, about }
    }

    pub(super) const fn optional(name: &'static str, form: Form, about: &'static str) -> Self {
        Self { name, form, need: Need::Optional, about }
    }
}

/// The type of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    /// A whole number of at least 1.
    Number,
    Flag,
}

/// Whether an argument may be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    Required,
    Optional,
}

impl Form {
    const fn schema_type(self) -> &'static str {
        match self {
            Self::Text => "string",
            Self::Number => "integer",
            Self::Flag => "boolean",
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Text => "a string",
            Self::Number => "a whole number of at least 1",
            Self::Flag => "true or false",
        }
    }

    fn fits(self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Number => whole_number(value).is_some(),
            Self::Flag => value.is_boolean(),
        }
    }
}

impl Tool {
    pub(super) fn spec(&self) -> ToolSpec {
        let properties: Map<String, Value> = self.fields.iter().map(Field::schema).collect();
        let required: Vec<_> = self.fields.iter().filter(|field| field.need == Need::Required).collect();
        let parameters = json!({
            "type": "object",
            "properties": properties,
            "required": required.iter().map(|field| field.name).collect::<Vec<_>>(),
            "additionalProperties": false,
        });
        ToolSpec { name: self.name.to_owned(), description: self.about.to_owned(), parameters }
    }

    /// Validates the arguments. The error describes all that is wrong.
    pub(super) fn parse(&self, input: &Value) -> Result<Arguments, String> {
        let Value::Object(given) = input else {
            let shown = one_line(&input.to_string(), 200);
            return Err(self.wrong(&format!("the arguments are not a JSON object: {shown}")));
        };
        for (name, value) in given {
            let Some(field) = self.fields.iter().find(|field| field.name == name) else {
                return Err(self.wrong(&format!("there is no argument `{}`", one_line(name, 60))));
            };
            // Some models send null for what they leave out.
            let left_out = field.need == Need::Optional && value.is_null();
            if !left_out && !field.form.fits(value) {
                let shown = one_line(&value.to_string(), 60);
                return Err(self.wrong(&format!("`{name}` is {shown}, and must be {}", field.form.words())));
            }
        }
        let missing =
            self.fields.iter().find(|field| field.need == Need::Required && !given.contains_key(field.name));
        match missing {
            Some(field) => Err(self.wrong(&format!("`{}` is missing", field.name))),
            None => Ok(Arguments(given.clone())),
        }
    }

    fn wrong(&self, what: &str) -> String {
        let fields: Vec<String> = self.fields.iter().map(Field::form_shown).collect();
        format!("{}: {what}. The right form is {{{}}}.", self.name, fields.join(", "))
    }
}

impl Field {
    fn schema(&self) -> (String, Value) {
        let mut schema = json!({"type": self.form.schema_type(), "description": self.about});
        if self.form == Form::Number {
            schema["minimum"] = 1.into();
        }
        (self.name.to_owned(), schema)
    }

    fn form_shown(&self) -> String {
        let optional = if self.need == Need::Optional { " (optional)" } else { "" };
        format!("\"{}\": {}{optional}", self.name, self.form.schema_type())
    }
}

/// Arguments that passed the validation.
#[derive(Debug)]
pub(super) struct Arguments(Map<String, Value>);

impl Arguments {
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }

    /// A required text.
    pub(super) fn required(&self, name: &str) -> &str {
        self.text(name).unwrap_or_default()
    }

    pub(super) fn number(&self, name: &str) -> Option<u64> {
        whole_number(self.0.get(name)?)
    }

    /// False if it is left out.
    pub(super) fn flag(&self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or_default()
    }
}

/// A number of at least 1. Accepts `5.0` as well, since some models know no integers.
fn whole_number(value: &Value) -> Option<u64> {
    let number = value.as_u64().or_else(|| {
        let number = value.as_f64().filter(|number| number.fract() == 0.0 && (0.0..1e15).contains(number))?;
        format!("{number:.0}").parse().ok()
    })?;
    (number >= 1).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOL: Tool = Tool {
        name: "read",
        about: "Reads.",
        fields: &[
            Field::required("path", Form::Text, "The file."),
            Field::optional("limit", Form::Number, "How many."),
            Field::optional("all", Form::Flag, "All of it."),
        ],
        kind: ToolKind::Read,
        reach: Reach::Looks,
        work: Work::Fetch,
    };

    #[test]
    fn the_schema_matches_the_table() {
        assert_eq!(
            TOOL.spec(),
            ToolSpec {
                name: "read".to_owned(),
                description: "Reads.".to_owned(),
                parameters: json!({
                    "type": "object",
                    "properties": {
                        "path": {"type": "string", "description": "The file."},
                        "limit": {"type": "integer", "description": "How many.", "minimum": 1},
                        "all": {"type": "boolean", "description": "All of it."},
                    },
                    "required": ["path"],
                    "additionalProperties": false,
                }),
            }
        );
    }

    #[test]
    fn an_error_names_the_right_form() {
        let form = "The right form is {\"path\": string, \"limit\": integer (optional), \
                    \"all\": boolean (optional)}.";
        for (input, what) in [
            (json!("{\"path\": "), "the arguments are not a JSON object: \"{\\\"path\\\": \""),
            (json!(null), "the arguments are not a JSON object: null"),
            (json!({}), "`path` is missing"),
            (json!({"path": null}), "`path` is null, and must be a string"),
            (json!({"path": 3}), "`path` is 3, and must be a string"),
            (json!({"path": "a", "file": "b"}), "there is no argument `file`"),
            (
                json!({"path": "a", "limit": "3"}),
                "`limit` is \"3\", and must be a whole number of at least 1",
            ),
            (json!({"path": "a", "limit": 0}), "`limit` is 0, and must be a whole number of at least 1"),
            (json!({"path": "a", "limit": -1}), "`limit` is -1, and must be a whole number of at least 1"),
            (json!({"path": "a", "limit": 1.5}), "`limit` is 1.5, and must be a whole number of at least 1"),
            (json!({"path": "a", "all": "yes"}), "`all` is \"yes\", and must be true or false"),
        ] {
            assert_eq!(TOOL.parse(&input).unwrap_err(), format!("read: {what}. {form}"));
        }
    }

    #[test]
    fn missing_and_null_arguments_and_round_floats_are_accepted() {
        let got = TOOL.parse(&json!({"path": "a", "limit": 3.0, "all": null})).unwrap();
        assert_eq!((got.required("path"), got.number("limit"), got.flag("all")), ("a", Some(3), false));
        let got = TOOL.parse(&json!({"path": "a", "all": true})).unwrap();
        assert_eq!((got.required("path"), got.number("limit"), got.flag("all")), ("a", None, true));
    }
}
