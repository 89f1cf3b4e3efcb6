//! Reads one value in the shape that its key asks for.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use globset::Glob;
use regex::Regex;
use serde_json::Value as Json;
use toml::Spanned;
use toml::de::DeValue;
use towline_core::{Check, MicroUsd, Visibility, parse_duration};

use crate::pool_values::{self, NamedPrerequisite};
use crate::schema::Shape;
use crate::suggest::nearest;

/// A value that has been checked.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Flag(bool),
    Count(u64),
    Dollars(MicroUsd),
    Share(f64),
    Text(String),
    List(Vec<String>),
    Duration(Duration),
    Integer(i32),
    Bytes(u64),
    Address(SocketAddr),
    Prerequisites(Vec<NamedPrerequisite>),
    Checks(Vec<Check>),
    Visibility(Visibility),
    Free(BTreeMap<String, Json>),
}

/// As it would be written in a file; of checks and of free data, the names.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => flag.fmt(f),
            Self::Count(count) => count.fmt(f),
            Self::Dollars(MicroUsd(micros)) => write!(f, "{}", *micros as f64 / 1e6),
            Self::Share(share) => share.fmt(f),
            Self::Text(text) => quoted(text).fmt(f),
            Self::List(items) => list_of(items.iter().map(String::as_str)).fmt(f),
            Self::Duration(duration) => quoted(&written(*duration)).fmt(f),
            Self::Integer(number) => number.fmt(f),
            Self::Bytes(bytes) => quoted(&pool_values::written_bytes(*bytes)).fmt(f),
            Self::Address(address) => quoted(&address.to_string()).fmt(f),
            Self::Prerequisites(named) => list_of(named.iter().map(|named| named.goal.as_str())).fmt(f),
            Self::Checks(checks) => list_of(checks.iter().map(|check| check.name.as_str())).fmt(f),
            Self::Visibility(Visibility::Shown) => false.fmt(f),
            Self::Visibility(Visibility::Hidden) => true.fmt(f),
            Self::Visibility(Visibility::BestEffort) => quoted(BEST_EFFORT).fmt(f),
            Self::Free(table) => list_of(table.keys().map(String::as_str)).fmt(f),
        }
    }
}

/// Hidden as far as that is possible without a sandbox.
const BEST_EFFORT: &str = "best-effort";

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn list_of<'a>(items: impl Iterator<Item = &'a str>) -> String {
    toml::Value::Array(items.map(|item| toml::Value::String(item.to_owned())).collect()).to_string()
}

/// A duration in its largest unit that keeps it whole.
fn written(duration: Duration) -> String {
    let (seconds, millis) = (duration.as_secs(), duration.as_millis());
    let units = [("d", 86_400), ("h", 3_600), ("m", 60)];
    let fits = |(_, length): &(&str, u64)| seconds > 0 && seconds.is_multiple_of(*length);
    match units.into_iter().find(fits) {
        _ if duration.subsec_nanos() > 0 => format!("{millis}ms"),
        Some((unit, length)) => format!("{}{unit}", seconds / length),
        None => format!("{seconds}s"),
    }
}

/// Why a value cannot be taken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    /// What was found: `a string`, or the value itself in backticks.
    pub(crate) found: String,
    pub(crate) span: Range<usize>,
    /// What to write instead.
    pub(crate) fix: String,
}

/// Reads a value, or explains what to write instead. Checks are not read here: they have keys of their own.
pub(crate) fn read(shape: Shape, value: &Spanned<DeValue<'_>>) -> Result<Value, Refused> {
    let inner = value.get_ref();
    match shape {
        Shape::Flag => {
            inner.as_bool().map(Value::Flag).ok_or_else(|| refuse(value, "write `true` or `false`"))
        }
        Shape::Count => count(value, u64::MAX).map(Value::Count),
        Shape::SmallCount => count(value, u32::MAX.into()).map(Value::Count),
        Shape::Cells => match count(value, u16::MAX.into())? {
            0 => Err(refuse_number(value, "write a whole number from 1, such as `120`")),
            some => Ok(Value::Count(some)),
        },
        Shape::Slots => match count(value, u32::MAX.into())? {
            0 => Err(refuse_number(value, "write a whole number from 1, such as `2`")),
            some => Ok(Value::Count(some)),
        },
        Shape::Priority => pool_values::priority(value).map(Value::Integer),
        Shape::Bytes => pool_values::bytes(value).map(Value::Bytes),
        Shape::Address => pool_values::address(value).map(Value::Address),
        Shape::Url => pool_values::url(value).map(Value::Text),
        Shape::Variable => variable(value).map(Value::Text),
        Shape::Prerequisites => pool_values::prerequisites(value).map(Value::Prerequisites),
        Shape::Dollars => number(inner)
            .and_then(MicroUsd::from_dollars)
            .map(Value::Dollars)
            .ok_or_else(|| refuse_number(value, "write an amount of dollars from 0, such as `2.50`")),
        Shape::Share => number(inner)
            .filter(|number| *number > 0.0 && *number <= 1.0)
            .map(Value::Share)
            .ok_or_else(|| refuse_number(value, "write a number above 0 and up to 1, such as `0.7`")),
        Shape::Text => text(value).map(Value::Text),
        Shape::Line => line(value).map(Value::Text),
        Shape::List => list(value).map(Value::List),
        Shape::Command => command(value).map(Value::List),
        Shape::Duration => duration(value).map(Value::Duration),
        Shape::Timeout => match duration(value)? {
            Duration::ZERO => Err(refuse_content(value, "write a duration above zero, such as `\"30m\"`")),
            some => Ok(Value::Duration(some)),
        },
        Shape::Pattern => pattern(value).map(Value::Text),
        Shape::File => file(value).map(Value::Text),
        Shape::Paths => paths(value).map(Value::List),
        Shape::Globs => {
            let fix = "write an array of patterns, such as `[\"src/generated/**\"]`";
            each(value, fix, path_pattern).map(Value::List)
        }
        Shape::Variables => {
            let fix = "write an array of names, such as `[\"DATABASE_URL\"]`";
            each(value, fix, variable).map(Value::List)
        }
        Shape::Directories => {
            let fix = "write an array of directories, such as `[\"target\"]`";
            each(value, fix, directory).map(Value::List)
        }
        Shape::OutsidePaths => {
            let fix = "write an array of paths outside the repository, such as `[\"~/hidden-tests\"]`";
            each(value, fix, outside_path).map(Value::List)
        }
        Shape::Visibility => visibility(value).map(Value::Visibility),
        Shape::Choice(words) => choice(value, words).map(Value::Text),
        Shape::Renamed(words, earlier) => {
            let named = earlier.iter().find(|(word, _)| value.get_ref().as_str() == Some(word));
            let word = named.map(|(_, word)| Ok((*word).to_owned()));
            word.unwrap_or_else(|| choice(value, words)).map(Value::Text)
        }
        Shape::Checks => Err(refuse(value, "write each check as a `[[checks]]` table")),
        Shape::Free => free(value).map(Value::Free),
    }
}

/// A value of the wrong type, described by that type alone: the value may be a secret.
pub(crate) fn refuse(value: &Spanned<DeValue<'_>>, fix: impl Into<String>) -> Refused {
    let kind = value.get_ref().type_str();
    let article = if kind.starts_with(['a', 'i']) { "an" } else { "a" };
    Refused { found: format!("{article} {kind}"), span: value.span(), fix: fix.into() }
}

/// A value of the right type with wrong content, shown as it is.
pub(crate) fn refuse_content(value: &Spanned<DeValue<'_>>, fix: impl Into<String>) -> Refused {
    let content = match value.get_ref() {
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::String(text) => text.to_string(),
        _ => return refuse(value, fix),
    };
    Refused { found: format!("`{content}`"), span: value.span(), fix: fix.into() }
}

/// A value without content.
fn refuse_empty(value: &Spanned<DeValue<'_>>, fix: &str) -> Refused {
    Refused { found: "empty".to_owned(), span: value.span(), fix: fix.to_owned() }
}

/// A number that does not fit; a string in its place is described by its type.
pub(crate) fn refuse_number(value: &Spanned<DeValue<'_>>, fix: impl Into<String>) -> Refused {
    if value.get_ref().is_str() { refuse(value, fix) } else { refuse_content(value, fix) }
}

fn count(value: &Spanned<DeValue<'_>>, most: u64) -> Result<u64, Refused> {
    let integer = value.get_ref().as_integer();
    let up_to = if most == u64::MAX { String::new() } else { format!(" to {most}") };
    integer
        .and_then(|integer| u64::from_str_radix(integer.as_str(), integer.radix()).ok())
        .filter(|number| *number <= most)
        .ok_or_else(|| refuse_number(value, format!("write a whole number from 0{up_to}, such as `10`")))
}

fn number(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Integer(integer) => {
            i64::from_str_radix(integer.as_str(), integer.radix()).ok().map(|number| number as f64)
        }
        DeValue::Float(float) => float.as_str().parse().ok(),
        _ => None,
    }
}

fn text(value: &Spanned<DeValue<'_>>) -> Result<String, Refused> {
    let text = value.get_ref().as_str();
    text.map(str::to_owned).ok_or_else(|| refuse(value, "write a string, in quotes"))
}

pub(crate) fn line(value: &Spanned<DeValue<'_>>) -> Result<String, Refused> {
    let text = text(value)?;
    if text.trim().is_empty() {
        return Err(refuse_empty(value, "write a text, or leave the key out"));
    }
    Ok(text)
}

fn list(value: &Spanned<DeValue<'_>>) -> Result<Vec<String>, Refused> {
    each(value, "write an array of strings, such as `[\"…\"]`", text)
}

fn command(value: &Spanned<DeValue<'_>>) -> Result<Vec<String>, Refused> {
    let words = list(value)?;
    if words.first().is_none_or(|program| program.trim().is_empty()) {
        return Err(refuse_empty(value, "write the program and its arguments, such as `[\"claude\"]`"));
    }
    Ok(words)
}

fn duration(value: &Spanned<DeValue<'_>>) -> Result<Duration, Refused> {
    const FIX: &str = "write a duration with its unit, such as `\"45s\"`, `\"30m\"` or `\"4h\"`";
    let text = value.get_ref().as_str().ok_or_else(|| refuse(value, FIX))?;
    parse_duration(text).map_err(|_| refuse_content(value, FIX))
}

fn pattern(value: &Spanned<DeValue<'_>>) -> Result<String, Refused> {
    let text = text(value)?;
    match Regex::new(&text) {
        Ok(_) => Ok(text),
        Err(error) => {
            // The last line of a syntax error is its reason; those before it draw the pattern.
            let drawn = error.to_string();
            let reason = drawn.lines().last().unwrap_or_default().trim_start_matches("error: ");
            Err(refuse_content(value, format!("write a regular expression ({reason})")))
        }
    }
}

/// A path that stays below the directory it is relative to.
fn file(value: &Spanned<DeValue<'_>>) -> Result<String, Refused> {
    let text = line(value)?;
    let mut parts = Path::new(&text).components().filter(|part| *part != Component::CurDir).peekable();
    if parts.peek().is_some() && parts.all(|part| matches!(part, Component::Normal(_))) {
        return Ok(text);
    }
    let fix =
        "name a file by its path from the repository's root, without `..`, such as `\"docs/CHANGES.md\"`";
    Err(refuse_content(value, fix))
}

/// A directory of the checkout that is not git's own, without `.` in its path.
fn directory(value: &Spanned<DeValue<'_>>) -> Result<String, Refused> {
    let text = line(value)?;
    let parts: Vec<Component<'_>> =
        Path::new(&text).components().filter(|part| *part != Component::CurDir).collect();
    let is_plain = |part: &Component<'_>| matches!(part, Component::Normal(name) if *name != ".git");
    if parts.is_empty() || !parts.iter().all(is_plain) {
        let fix = "name a directory by its path from the repository's root, without `..` and not `.git`, \
                   such as `\"target\"`";
        return Err(refuse_content(value, fix));
    }
    let plain: PathBuf = parts.iter().collect();
    Ok(plain.display().to_string())
}

/// Patterns that can be used for paths of the repository.
fn paths(value: &Spanned<DeValue<'_>>) -> Result<Vec<String>, Refused> {
    const FIX: &str = "name paths from the repository's root, such as `[\"src/**\"]`";
    let paths = each(value, FIX, path_pattern)?;
    if paths.is_empty() { Err(refuse_empty(value, FIX)) } else { Ok(paths) }
}

/// A list, each item of which is read in the same way.
fn each(
    value: &Spanned<DeValue<'_>>,
    fix: &str,
    read: impl Fn(&Spanned<DeValue<'_>>) -> Result<String, Refused>,
) -> Result<Vec<String>, Refused> {
    value.get_ref().as_array().ok_or_else(|| refuse(value, fix))?.iter().map(read).collect()
}

fn variable(value: &Spanned<DeValue<'_>>) -> Result<String, Refused> {
    let name = text(value)?;
    let is_word = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if is_word && name.chars().next().is_some_and(|first| !first.is_ascii_digit()) {
        return Ok(name);
    }
    Err(refuse_content(value, "write the name of an environment variable, such as `\"DATABASE_URL\"`"))
}

fn path_pattern(value: &Spanned<DeValue<'_>>) -> Result<String, Refused> {
    let text = line(value)?;
    let inner = text.trim_matches('/');
    if inner.is_empty() || inner == "." || inner.split('/').any(|part| part == "..") {
        let fix = "name a path from the repository's root, without `..`, such as `\"src/**\"`";
        return Err(refuse_content(value, fix));
    }
    match Glob::new(inner) {
        Ok(_) => Ok(text),
        Err(error) => Err(refuse_content(value, format!("write a pattern of paths ({})", error.kind()))),
    }
}

pub(crate) fn choice(value: &Spanned<DeValue<'_>>, words: &[&str]) -> Result<String, Refused> {
    let one_of = format!("use one of {}", words.join(", "));
    let text = value.get_ref().as_str().ok_or_else(|| refuse(value, one_of.as_str()))?;
    if words.contains(&text) {
        return Ok(text.to_owned());
    }
    let meant = crate::error::did_you_mean(nearest(text, words.iter().copied()));
    Err(refuse_content(value, one_of + &meant))
}

/// A path that does not depend on a current directory.
fn outside_path(value: &Spanned<DeValue<'_>>) -> Result<String, Refused> {
    let text = line(value)?;
    let path = Path::new(&text);
    let inner = path.strip_prefix("~").or_else(|_| path.strip_prefix("/"));
    if inner.is_ok_and(|inner| inner.components().all(|part| matches!(part, Component::Normal(_))))
        && !matches!(text.as_str(), "~" | "/")
    {
        return Ok(text);
    }
    let fix = "name a path outside the repository that begins with `/` or `~/`, without `..`, such as \
               `\"~/hidden-tests\"`";
    Err(refuse_content(value, fix))
}

fn visibility(value: &Spanned<DeValue<'_>>) -> Result<Visibility, Refused> {
    match value.get_ref() {
        DeValue::Boolean(false) => Ok(Visibility::Shown),
        DeValue::Boolean(true) => Ok(Visibility::Hidden),
        DeValue::String(word) if word == BEST_EFFORT => Ok(Visibility::BestEffort),
        DeValue::String(_) => Err(refuse_content(value, VISIBILITIES)),
        _ => Err(refuse(value, VISIBILITIES)),
    }
}

const VISIBILITIES: &str = "write `true`, `false` or `\"best-effort\"`";

fn free(value: &Spanned<DeValue<'_>>) -> Result<BTreeMap<String, Json>, Refused> {
    let table =
        value.get_ref().as_table().ok_or_else(|| refuse(value, "write a table of names and values"))?;
    table.iter().map(|(name, value)| Ok((name.get_ref().to_string(), json(value)?))).collect()
}

/// Any value, as programs get it. Dates become texts.
fn json(value: &Spanned<DeValue<'_>>) -> Result<Json, Refused> {
    const FIX: &str = "write a number that programs can hold, or a string";
    Ok(match value.get_ref() {
        DeValue::String(text) => Json::String(text.to_string()),
        DeValue::Boolean(flag) => Json::Bool(*flag),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map(Json::from)
            .map_err(|_| refuse_content(value, FIX))?,
        DeValue::Float(number) => {
            let number = number.as_str().parse().ok().and_then(serde_json::Number::from_f64);
            number.map(Json::Number).ok_or_else(|| refuse_content(value, FIX))?
        }
        DeValue::Datetime(moment) => Json::String(moment.to_string()),
        DeValue::Array(items) => Json::Array(items.iter().map(json).collect::<Result<_, _>>()?),
        DeValue::Table(_) => Json::Object(free(value)?.into_iter().collect()),
    })
}

/// Takes a value out in the type that the program works with.
pub(crate) trait FromValue: Sized {
    /// Nothing if the value is of another type.
    fn from_value(value: &Value) -> Option<Self>;
}

macro_rules! from_value {
    ($($type:ty: $variant:ident),* $(,)?) => {
        $(impl FromValue for $type {
            fn from_value(value: &Value) -> Option<Self> {
                match value {
                    Value::$variant(inner) => Some(inner.clone()),
                    _ => None,
                }
            }
        })*
    };
}

from_value! {
    bool: Flag,
    u64: Count,
    MicroUsd: Dollars,
    f64: Share,
    String: Text,
    Vec<String>: List,
    Duration: Duration,
    i32: Integer,
    SocketAddr: Address,
    Vec<NamedPrerequisite>: Prerequisites,
    Vec<Check>: Checks,
    Visibility: Visibility,
    BTreeMap<String, Json>: Free,
}
