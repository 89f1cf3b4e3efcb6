//! MCP servers that an agent is given: programs that it starts, and servers that it reaches over HTTP.
//!
//! Neighbours: each kind hands them over in its own way. A value can name variables as `${NAME}`; what they hold is in no
//! command line.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// An MCP server that an agent is given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpServer {
    /// Program and arguments; empty for a server that is reached over HTTP.
    #[serde(default)]
    pub command: Vec<String>,
    /// Variables that the program gets.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// The address of a server that is reached over HTTP.
    #[serde(default)]
    pub url: Option<String>,
    /// Headers of each request to that address.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
}

impl McpServer {
    /// The name of the server with Towline's own tools.
    pub const TOWLINE: &str = "towline";

    /// A server that is started as a program.
    pub fn program(command: Vec<String>) -> Self {
        Self { command, ..Self::default() }
    }

    /// The program, and its arguments.
    pub(crate) fn words(&self) -> (&str, &[String]) {
        self.command.split_first().map_or(("", &[]), |(program, args)| (program.as_str(), args))
    }

    /// The variables that its headers and its own variables name.
    pub fn variables(&self) -> BTreeSet<&str> {
        self.headers.values().chain(self.env.values()).flat_map(|value| names(value)).collect()
    }
}

/// The value with what its variables hold; those that are not there hold nothing.
pub(crate) fn filled<'v>(value: &str, variable: impl Fn(&str) -> Option<&'v String>) -> String {
    let mut parts = value.split("${");
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once('}').filter(|(name, _)| is_name(name)) {
            Some((name, rest)) => {
                filled.push_str(variable(name).map(String::as_str).unwrap_or_default());
                filled.push_str(rest);
            }
            None => filled.extend(["${", part]),
        }
    }
    filled
}

/// The names in `${NAME}`.
fn names(value: &str) -> impl Iterator<Item = &str> {
    value
        .split("${")
        .skip(1)
        .filter_map(|rest| rest.split_once('}').map(|(name, _)| name))
        .filter(|name| is_name(name))
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_found_and_filled_in() {
        let held =
            BTreeMap::from([("TOKEN".to_owned(), "t".to_owned()), ("B".to_owned(), "${TOKEN}".to_owned())]);
        for (value, variables, wanted) in [
            ("Bearer ${TOKEN}", vec!["TOKEN"], "Bearer t"),
            ("${TOKEN}-${NONE}", vec!["TOKEN", "NONE"], "t-"),
            ("${B}${TOKEN}", vec!["B", "TOKEN"], "${TOKEN}t"),
            ("$TOKEN ${} ${a b} ${open", vec![], "$TOKEN ${} ${a b} ${open"),
        ] {
            assert_eq!(names(value).collect::<Vec<_>>(), variables, "{value}");
            assert_eq!(filled(value, |name| held.get(name)), wanted, "{value}");
        }
    }
}
