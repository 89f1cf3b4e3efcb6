//! Parses JSON in place: texts are borrowed from the line, and unused parts are skipped.
//!
//! Neighbours: the `wire` modules of the agents. `lenient_objects` is for agents whose frames may have any shape: a part of
//! another shape than expected counts as missing and never costs the rest.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

/// A string borrowed from the line unless it has escapes. Also inside an `Option`, where a bare `Cow` is always
/// copied.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(transparent)]
pub(crate) struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl Text<'_> {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::ops::Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<Text<'_>> for String {
    fn from(text: Text<'_>) -> Self {
        text.0.into_owned()
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self(Cow::Borrowed(text))
    }
}

/// An optional text as a plain `&str`, empty when missing.
pub(crate) fn text<'t>(text: &'t Option<Text<'_>>) -> &'t str {
    text.as_deref().unwrap_or_default()
}

/// An optional text as an owned `String`.
pub(crate) fn owned(text: Option<Text<'_>>) -> Option<String> {
    text.map(String::from)
}

/// The text of an object's first field, if that is this field and has no escapes. That saves a search.
pub(crate) fn leading<'a>(field: &str, line: &'a str) -> Option<&'a str> {
    let value = line.strip_prefix("{\"")?.strip_prefix(field)?.strip_prefix("\":\"")?;
    let end = value.find(['"', '\\'])?;
    value[end..].starts_with('"').then_some(&value[..end])
}

/// Reads a part of any shape; `None` if it is not of the expected shape.
pub(crate) fn lenient<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Option<T> {
    serde_json::from_str(raw.get()).ok()
}

/// An object whose parts may be of any shape.
pub(crate) trait LenientObject<'de>: Default {
    fn set(&mut self, name: &str, part: &'de RawValue);
}

/// An object to fill.
pub(crate) struct Filled<T>(pub(crate) T);

impl<'de, T: LenientObject<'de>> Visitor<'de> for Filled<T> {
    type Value = T;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut object: A) -> Result<T, A::Error> {
        while let Some((name, part)) = object.next_entry::<Text<'de>, &RawValue>()? {
            self.0.set(&name, part);
        }
        Ok(self.0)
    }
}

/// Defines objects whose JSON names have the given case, with the fields that are read. All fields must be of the expected
/// shape. Texts are borrowed from the line.
macro_rules! objects {
    ($case:literal:) => {};
    ($case:literal: $(#[$about:meta])* $name:ident<'a> {
        $($(#[$note:meta])* $field:ident: $shape:ty,)*
    } $($rest:tt)*) => {
        $(#[$about])*
        #[derive(Debug, serde::Deserialize)]
        #[serde(rename_all = $case, bound(deserialize = "'de: 'a"))]
        pub(super) struct $name<'a> {
            $($(#[$note])* pub(super) $field: $shape,)*
        }
        objects! { $case: $($rest)* }
    };
    ($case:literal: $(#[$about:meta])* $name:ident {
        $($(#[$note:meta])* $field:ident: $shape:ty,)*
    } $($rest:tt)*) => {
        $(#[$about])*
        #[derive(Debug, serde::Deserialize)]
        #[serde(rename_all = $case)]
        pub(super) struct $name {
            $($(#[$note])* pub(super) $field: $shape,)*
        }
        objects! { $case: $($rest)* }
    };
}
pub(crate) use objects;

/// Defines objects with the fields that are read. Fields that are missing, or of another shape, have their defaults. Raw
/// fields come last: they are not parsed, and a null counts as missing.
macro_rules! lenient_objects {
    ($($(#[$about:meta])* $name:ident $(<$life:lifetime>)? {
        $($(#[$note:meta])* $key:literal => $field:ident: $shape:ty,)*
        $(raw $raw_key:literal => $raw:ident,)*
    })*) => {$(
        $(#[$about])*
        #[derive(Debug, Default)]
        pub(super) struct $name $(<$life>)? {
            $($(#[$note])* pub(super) $field: $shape,)*
            $(pub(super) $raw: Option<&'a serde_json::value::RawValue>,)*
        }

        impl<'de $(: $life, $life)?> $crate::json::LenientObject<'de> for $name $(<$life>)? {
            fn set(&mut self, name: &str, part: &'de serde_json::value::RawValue) {
                match name {
                    $($key => self.$field = $crate::json::lenient(part).unwrap_or_default(),)*
                    $($raw_key => self.$raw = (part.get() != "null").then_some(part),)*
                    _ => {}
                }
            }
        }

        impl<'de $(: $life, $life)?> serde::Deserialize<'de> for $name $(<$life>)? {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_map($crate::json::Filled(Self::default()))
            }
        }
    )*};
}
pub(crate) use lenient_objects;

#[cfg(test)]
mod tests {
    use super::*;

    lenient_objects! {
        Inner<'a> {
            "name" => name: Text<'a>,
        }
        Outer<'a> {
            "number" => number: Option<u64>,
            "share" => share: Option<f64>,
            "flag" => flag: bool,
            "inner" => inner: Option<Inner<'a>>,
            "list" => list: Option<Vec<Inner<'a>>>,
            raw "raw" => raw,
        }
    }

    fn read(json: &str) -> Option<String> {
        let raw: &RawValue = serde_json::from_str(json).expect("JSON");
        let outer: Outer<'_> = lenient(raw)?;
        let Outer { number, share, flag, inner, list, raw } = outer;
        let names = |inner: &Inner<'_>| inner.name.as_str().to_owned();
        let list = list.map(|list| list.iter().map(names).collect::<Vec<_>>().join(","));
        let inner = inner.as_ref().map(names);
        Some(format!("{number:?} {share:?} {flag} {inner:?} {list:?} {:?}", raw.map(RawValue::get)))
    }

    #[test]
    fn only_a_first_field_without_escapes_is_read_at_once() {
        assert_eq!(leading("type", r#"{"type":"init","x":1}"#), Some("init"));
        assert_eq!(leading("method", r#"{"method":"a/b"}"#), Some("a/b"));
        for other in [
            r#"{"x":1,"type":"init"}"#,
            r#"{"type":"in\u0069t"}"#,
            r#"{"type":"in"#,
            r#"{"type":7}"#,
            r#"{"types":"init"}"#,
        ] {
            assert_eq!(leading("type", other), None, "{other}");
        }
    }

    #[test]
    fn values_of_the_expected_shape_are_read() {
        let json = r#"{"number":7,"x":[1],"share":0.5,"flag":true,"inner":{"name":"a\nb","y":{}},
            "list":[{"name":"c"},{"\u006eame":"d"}],"raw":{ "z": 1 }}"#;
        let wanted = r#"Some(7) Some(0.5) true Some("a\nb") Some("c,d") Some("{ \"z\": 1 }")"#;
        assert_eq!(read(json).as_deref(), Some(wanted));
    }

    #[test]
    fn a_part_of_another_shape_does_not_cost_the_rest() {
        for other in [r#""words""#, "-1.5", "[[{}]]", "[null]", r#"{"name":{"name":1}}"#, "null", "true"] {
            let json = format!(r#"{{"number":{other},"inner":{other},"list":{other},"share":2,"raw":7}}"#);
            let read = read(&json).expect("an object");
            assert!(read.starts_with("None Some(2.0) false"), "{other}: {read}");
            assert!(read.ends_with(r#"None Some("7")"#), "{other}: {read}");
        }
        assert_eq!(read("[1]"), None);
        assert_eq!(read(r#"{"number":-1,"number":18446744073709551616}"#), read("{}"));
        assert_eq!(read(r#"{"number":1,"number":2}"#), read(r#"{"number":2}"#));
    }
}
