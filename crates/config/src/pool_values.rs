//! Values that only a pool of goals needs: disk space, addresses, places in the queue, prerequisites.

use std::net::SocketAddr;

use toml::Spanned;
use toml::de::DeValue;
use towline_core::Need;

use crate::value::{Refused, choice, line, refuse, refuse_content, refuse_number};

/// The highest priority, and below zero the lowest: some six weeks.
const PRIORITIES: i32 = 1_000;

/// The most goals that one goal may wait for.
const MOST_PREREQUISITES: usize = 100;

/// What `need` may be.
const NEEDS: [(&str, Need); 2] = [("done", Need::Done), ("merged", Need::Merged)];

/// Units of disk space, the largest first.
const UNITS: [(&str, u64); 4] =
    [("TB", 1_000_000_000_000), ("GB", 1_000_000_000), ("MB", 1_000_000), ("KB", 1_000)];

/// A goal that must come to its end first, as its author names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedPrerequisite {
    /// An id, a prefix of one, or the name of another goal's file in the same folder.
    pub goal: String,
    pub need: Need,
}

/// What is wrong with a priority, if anything is.
pub fn priority_problem(number: i32) -> Option<String> {
    let is_right = (-PRIORITIES..=PRIORITIES).contains(&number);
    (!is_right).then(|| format!("write a whole number from -{PRIORITIES} to {PRIORITIES}, such as `1`"))
}

pub(crate) fn priority(value: &Spanned<DeValue<'_>>) -> Result<i32, Refused> {
    let integer = value.get_ref().as_integer();
    integer
        .and_then(|integer| i32::from_str_radix(integer.as_str(), integer.radix()).ok())
        .filter(|number| priority_problem(*number).is_none())
        .ok_or_else(|| {
            refuse_number(
                value,
                format!("write a whole number from -{PRIORITIES} to {PRIORITIES}, such as `1`"),
            )
        })
}

pub(crate) fn bytes(value: &Spanned<DeValue<'_>>) -> Result<u64, Refused> {
    const FIX: &str = "write an amount with its unit, such as `\"500MB\"` or `\"2GB\"`";
    let text = value.get_ref().as_str().ok_or_else(|| refuse(value, FIX))?;
    parse_bytes(text).ok_or_else(|| refuse_content(value, FIX))
}

/// `0` needs no unit.
fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    if text == "0" {
        return Some(0);
    }
    let (amount, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let unit = unit.trim();
    let (_, size) = UNITS.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
    amount.parse::<u64>().ok()?.checked_mul(size)
}

/// An amount in the largest unit that keeps it whole.
pub(crate) fn written_bytes(bytes: u64) -> String {
    match UNITS.into_iter().find(|(_, size)| bytes > 0 && bytes.is_multiple_of(*size)) {
        Some((unit, size)) => format!("{}{unit}", bytes / size),
        None => bytes.to_string(),
    }
}

pub(crate) fn address(value: &Spanned<DeValue<'_>>) -> Result<SocketAddr, Refused> {
    let text = line(value)?;
    let fix = "write an IP address with its port, such as `\"127.0.0.1:8689\"`";
    text.parse().map_err(|_| refuse_content(value, fix))
}

/// Its value may hold a token, so it is never shown.
pub(crate) fn url(value: &Spanned<DeValue<'_>>) -> Result<String, Refused> {
    let text = line(value)?;
    let host = ["https://", "http://"].into_iter().find_map(|scheme| text.strip_prefix(scheme));
    let is_url = host.is_some_and(|host| !host.is_empty() && !host.starts_with('/'))
        && !text.contains(|c: char| c.is_whitespace() || c.is_control());
    if is_url {
        return Ok(text);
    }
    let fix = "write an address such as `\"https://example.org/hook\"`".to_owned();
    Err(Refused { found: "this text".to_owned(), span: value.span(), fix })
}

pub(crate) fn prerequisites(value: &Spanned<DeValue<'_>>) -> Result<Vec<NamedPrerequisite>, Refused> {
    const FIX: &str =
        "write an array of goals, such as `[\"1a2b3c4d\", { goal = \"schema.md\", need = \"merged\" }]`";
    let items = value.get_ref().as_array().ok_or_else(|| refuse(value, FIX))?;
    if items.len() > MOST_PREREQUISITES {
        let fix = format!("{MOST_PREREQUISITES} are the most");
        return Err(Refused { found: format!("{} goals", items.len()), span: value.span(), fix });
    }
    items.iter().map(|item| prerequisite(item, FIX)).collect()
}

fn prerequisite(value: &Spanned<DeValue<'_>>, fix: &str) -> Result<NamedPrerequisite, Refused> {
    let table = match value.get_ref() {
        DeValue::Table(table) => table,
        DeValue::String(_) | DeValue::Integer(_) | DeValue::Float(_) => {
            return Ok(NamedPrerequisite { goal: goal_name(value)?, need: Need::Done });
        }
        _ => return Err(refuse(value, fix)),
    };
    let (mut goal, mut need) = (None, Need::default());
    for (name, value) in table {
        match name.get_ref().as_ref() {
            "goal" => goal = Some(goal_name(value)?),
            "need" => {
                let word = choice(value, &NEEDS.map(|(name, _)| name))?;
                need = NEEDS.into_iter().find(|(name, _)| *name == word).map_or(need, |(_, need)| need);
            }
            other => {
                let meant = crate::error::did_you_mean(crate::suggest::nearest(other, ["goal", "need"]));
                let fix = format!("known keys there: goal, need{meant}");
                return Err(Refused { found: format!("a table with `{other}`"), span: name.span(), fix });
            }
        }
    }
    let goal = goal.ok_or_else(|| Refused {
        found: "a table without `goal`".to_owned(),
        span: value.span(),
        fix: "name the goal, such as `{ goal = \"1a2b3c4d\", need = \"merged\" }`".to_owned(),
    })?;
    Ok(NamedPrerequisite { goal, need })
}

/// One id in thirty reads as a number where it has no quotes: `12345678`, `12e45678`.
fn goal_name(value: &Spanned<DeValue<'_>>) -> Result<String, Refused> {
    match value.get_ref() {
        DeValue::Integer(digits) => Ok(digits.as_str().to_owned()),
        DeValue::Float(digits) => Ok(digits.as_str().to_owned()),
        _ => line(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disk_space_has_a_unit_and_is_written_as_it_is_read() {
        let read =
            ["2GB", "500 mb", "0", "1TB", "7KB", "2", "GB", "2GiB", "-1GB", "99999999TB"].map(parse_bytes);
        let [kilo, mega, giga] = [1_000, 1_000_000, 1_000_000_000];
        let expected = [Some(2 * giga), Some(500 * mega), Some(0), Some(1000 * giga), Some(7 * kilo)];
        assert_eq!(read[..5], expected);
        assert_eq!(read[5..], [None; 5]);
        assert_eq!([2 * giga, 1_500 * mega, 0, 1].map(written_bytes), ["2GB", "1500MB", "0", "1"]);
    }
}
