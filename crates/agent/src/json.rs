//! Parses JSON in place: texts are borrowed from the line, and unused parts are skipped.
//!
//! Neighbours: the `wire` modules of the agents. [`Lenient`] is for agents whose frames may have any shape: it reads
//! the parts of the expected shape in one pass. A part of another shape counts as missing and never costs the rest.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
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
pub(crate) fn lenient<'a, T: Lenient<'a>>(raw: &'a RawValue) -> Option<T> {
    lenient_line(raw.get())
}

/// Reads a whole line; `None` if it is not JSON or not of the expected shape.
pub(crate) fn lenient_line<'a, T: Lenient<'a>>(line: &'a str) -> Option<T> {
    let mut json = serde_json::Deserializer::from_str(line);
    let mut value = T::default();
    let fits = value.fill(&mut json).is_ok_and(|fits| fits) && json.end().is_ok();
    fits.then_some(value)
}

/// What can be read from JSON of any shape. Each method is for one shape: it stores the value and returns whether it
/// fits. A type implements the methods of the shapes that it expects. Values are filled in place, because large ones
/// are slow to move.
pub(crate) trait Lenient<'de>: Default {
    /// Stores the next value if it fits.
    fn fill<D: Deserializer<'de>>(&mut self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(Filled(self))
    }

    fn fill_text(&mut self, _text: Text<'de>) -> bool {
        false
    }

    fn fill_bool(&mut self, _value: bool) -> bool {
        false
    }

    fn fill_whole(&mut self, _number: i128) -> bool {
        false
    }

    fn fill_float(&mut self, _number: f64) -> bool {
        false
    }

    fn fill_list<A: SeqAccess<'de>>(&mut self, mut list: A) -> Result<bool, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(false)
    }

    fn fill_object<A: MapAccess<'de>>(&mut self, mut object: A) -> Result<bool, A::Error> {
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(false)
    }
}

/// A value to fill.
pub(crate) struct Filled<'t, T>(pub(crate) &'t mut T);

impl<'de, T: Lenient<'de>> DeserializeSeed<'de> for Filled<'_, T> {
    type Value = bool;

    /// A value that does not fit leaves the default, even if an earlier one did fit.
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        let fits = self.0.fill(deserializer)?;
        if !fits {
            *self.0 = T::default();
        }
        Ok(fits)
    }
}

impl<'de, T: Lenient<'de>> Visitor<'de> for Filled<'_, T> {
    type Value = bool;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("anything")
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_bool<E>(self, value: bool) -> Result<bool, E> {
        Ok(self.0.fill_bool(value))
    }

    fn visit_u64<E>(self, number: u64) -> Result<bool, E> {
        Ok(self.0.fill_whole(number.into()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<bool, E> {
        Ok(self.0.fill_whole(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<bool, E> {
        Ok(self.0.fill_float(number))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<bool, E> {
        Ok(self.0.fill_text(text.into()))
    }

    fn visit_str<E>(self, text: &str) -> Result<bool, E> {
        Ok(self.0.fill_text(Text(Cow::Owned(text.to_owned()))))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<bool, A::Error> {
        self.0.fill_list(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<bool, A::Error> {
        self.0.fill_object(object)
    }
}

impl<'de> Lenient<'de> for Text<'de> {
    fn fill_text(&mut self, text: Self) -> bool {
        *self = text;
        true
    }
}

impl Lenient<'_> for bool {
    fn fill_bool(&mut self, value: bool) -> bool {
        *self = value;
        true
    }
}

macro_rules! whole_numbers {
    ($($number:ty),*) => {$(
        impl Lenient<'_> for $number {
            fn fill_whole(&mut self, number: i128) -> bool {
                number.try_into().map(|number| *self = number).is_ok()
            }
        }
    )*};
}
whole_numbers!(u16, u32, u64, i32);

impl Lenient<'_> for f64 {
    fn fill_whole(&mut self, number: i128) -> bool {
        self.fill_float(number as Self)
    }

    fn fill_float(&mut self, number: f64) -> bool {
        *self = number;
        true
    }
}

/// Any JSON, unparsed.
impl<'de> Lenient<'de> for Option<&'de RawValue> {
    fn fill<D: Deserializer<'de>>(&mut self, deserializer: D) -> Result<bool, D::Error> {
        *self = Some(<&RawValue>::deserialize(deserializer)?);
        Ok(true)
    }
}

impl<'de, T: Lenient<'de>> Lenient<'de> for Option<T> {
    fn fill<D: Deserializer<'de>>(&mut self, deserializer: D) -> Result<bool, D::Error> {
        let fits = self.insert(T::default()).fill(deserializer)?;
        if !fits {
            *self = None;
        }
        Ok(true)
    }
}

/// A list counts as missing if one element is of another shape.
impl<'de, T: Lenient<'de>> Lenient<'de> for Vec<T> {
    fn fill_list<A: SeqAccess<'de>>(&mut self, mut list: A) -> Result<bool, A::Error> {
        self.clear();
        let mut all_fit = true;
        loop {
            let mut next = T::default();
            match list.next_element_seed(Filled(&mut next))? {
                Some(fits) => all_fit &= fits,
                None => return Ok(all_fit),
            }
            if all_fit {
                self.push(next);
            }
        }
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

/// Defines objects with the fields that are read. Fields that are missing, or of another shape, have their defaults.
macro_rules! lenient_objects {
    ($($(#[$about:meta])* $name:ident $(<$life:lifetime>)? {
        $($(#[$note:meta])* $key:literal => $field:ident: $shape:ty,)*
    })*) => {$(
        $(#[$about])*
        #[derive(Debug, Default)]
        pub(super) struct $name $(<$life>)? {
            $($(#[$note])* pub(super) $field: $shape,)*
        }

        impl<'de> $crate::json::Lenient<'de> for $name $(<$life>)? {
            fn fill_object<A: serde::de::MapAccess<'de>>(&mut self, mut object: A) -> Result<bool, A::Error> {
                while let Some(key) = object.next_key::<$crate::json::Text<'de>>()? {
                    match key.as_str() {
                        $($key => {
                            object.next_value_seed($crate::json::Filled(&mut self.$field))?;
                        })*
                        _ => {
                            object.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(true)
            }
        }
    )*};
}
pub(crate) use lenient_objects;

#[cfg(test)]
mod tests {
    use super::*;

    lenient_objects! {
        Inner<'de> {
            "name" => name: Text<'de>,
        }
        Outer<'de> {
            "number" => number: Option<u64>,
            "share" => share: Option<f64>,
            "flag" => flag: bool,
            "inner" => inner: Option<Inner<'de>>,
            "list" => list: Option<Vec<Inner<'de>>>,
            "raw" => raw: Option<&'de RawValue>,
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
