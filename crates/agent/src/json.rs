//! Reading JSON where it lies: texts are borrowed from the line, and what is not wanted is passed over.
//!
//! Neighbours: the `wire` modules of the agents. For agents whose frames may be of any shape, [`Lenient`] reads what is
//! of the wanted shape in one pass: a part of another shape is as good as none, and never costs the rest.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// A string borrowed from the line, unless it holds escapes. Also inside an `Option`, where a bare `Cow` would
/// always be copied.
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

/// Reads a part that may be of any shape; none when it is of another one than wanted.
pub(crate) fn lenient<'a, T: Lenient<'a>>(raw: &'a RawValue) -> Option<T> {
    T::read(&mut serde_json::Deserializer::from_str(raw.get())).ok().flatten()
}

/// What can be read out of JSON of any shape. Each method is for one shape; those of the others stay as they are, and
/// give nothing.
pub(crate) trait Lenient<'de>: Sized {
    /// The value, when it is of the wanted shape.
    fn read<D: Deserializer<'de>>(deserializer: D) -> Result<Option<Self>, D::Error> {
        deserializer.deserialize_any(Shape(PhantomData))
    }

    fn from_text(_text: Text<'de>) -> Option<Self> {
        None
    }

    fn from_bool(_value: bool) -> Option<Self> {
        None
    }

    fn from_whole(_number: i128) -> Option<Self> {
        None
    }

    fn from_float(_number: f64) -> Option<Self> {
        None
    }

    fn from_list<A: SeqAccess<'de>>(mut list: A) -> Result<Option<Self>, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn from_object<A: MapAccess<'de>>(mut object: A) -> Result<Option<Self>, A::Error> {
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }
}

/// Reads a value that is wanted in this shape.
pub(crate) struct Shape<T>(pub(crate) PhantomData<T>);

impl<'de, T: Lenient<'de>> DeserializeSeed<'de> for Shape<T> {
    type Value = Option<T>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<T>, D::Error> {
        T::read(deserializer)
    }
}

impl<'de, T: Lenient<'de>> Visitor<'de> for Shape<T> {
    type Value = Option<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("anything")
    }

    fn visit_unit<E>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Option<T>, E> {
        Ok(T::from_bool(value))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Option<T>, E> {
        Ok(T::from_whole(number.into()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Option<T>, E> {
        Ok(T::from_whole(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Option<T>, E> {
        Ok(T::from_float(number))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Option<T>, E> {
        Ok(T::from_text(text.into()))
    }

    fn visit_str<E>(self, text: &str) -> Result<Option<T>, E> {
        Ok(T::from_text(Text(Cow::Owned(text.to_owned()))))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Option<T>, A::Error> {
        T::from_list(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Option<T>, A::Error> {
        T::from_object(object)
    }
}

impl<'de> Lenient<'de> for Text<'de> {
    fn from_text(text: Self) -> Option<Self> {
        Some(text)
    }
}

impl Lenient<'_> for bool {
    fn from_bool(value: bool) -> Option<Self> {
        Some(value)
    }
}

macro_rules! whole_numbers {
    ($($number:ty),*) => {$(
        impl Lenient<'_> for $number {
            fn from_whole(number: i128) -> Option<Self> {
                number.try_into().ok()
            }
        }
    )*};
}
whole_numbers!(u16, u32, u64, i32);

impl Lenient<'_> for f64 {
    fn from_whole(number: i128) -> Option<Self> {
        Some(number as Self)
    }

    fn from_float(number: f64) -> Option<Self> {
        Some(number)
    }
}

/// Anything, as it is written.
impl<'de> Lenient<'de> for &'de RawValue {
    fn read<D: Deserializer<'de>>(deserializer: D) -> Result<Option<Self>, D::Error> {
        Self::deserialize(deserializer).map(Some)
    }
}

impl<'de, T: Lenient<'de>> Lenient<'de> for Option<T> {
    fn read<D: Deserializer<'de>>(deserializer: D) -> Result<Option<Self>, D::Error> {
        T::read(deserializer).map(Some)
    }
}

/// A list in which one thing is of another shape is as good as none.
impl<'de, T: Lenient<'de>> Lenient<'de> for Vec<T> {
    fn from_list<A: SeqAccess<'de>>(mut list: A) -> Result<Option<Self>, A::Error> {
        let mut all = Some(Self::new());
        while let Some(next) = list.next_element_seed(Shape::<T>(PhantomData))? {
            all = all.zip(next).map(|(mut all, next)| {
                all.push(next);
                all
            });
        }
        Ok(all)
    }
}

/// Objects of which these fields are read: those that are missing, or of another shape, have their defaults.
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
            fn from_object<A: serde::de::MapAccess<'de>>(mut object: A) -> Result<Option<Self>, A::Error> {
                let mut read = Self::default();
                while let Some(key) = object.next_key::<$crate::json::Text<'de>>()? {
                    match key.as_str() {
                        $($key => {
                            let shape = $crate::json::Shape::<$shape>(std::marker::PhantomData);
                            read.$field = object.next_value_seed(shape)?.unwrap_or_default();
                        })*
                        _ => {
                            object.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(Some(read))
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
    fn what_is_of_the_wanted_shape_is_read() {
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
