//! The values of one section of a JSON, TOML, INI or go.mod file, a line for each: equal lines mean equal values for every program
//! that reads the file.
//!
//! Where programs read a file differently, everything that one of them could take for the section is part of it: all of
//! several keys with one name, and what other parts of the file add to the section.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use towline_workspace::{Section, SectionFormat};

/// A key whose value JavaScript can take for values of the object that has it.
const PROTOTYPE: &str = "__proto__";

/// The section whose values Python's `configparser` adds to all others.
const INI_DEFAULTS: &str = "DEFAULT";

/// Reads a section; nothing if the file has none. The error is why the file cannot be read.
pub(crate) fn values(section: &Section, file: &[u8]) -> Result<Vec<String>, String> {
    let text = std::str::from_utf8(file).map_err(|_| "it is not UTF-8".to_owned())?;
    match section.format() {
        SectionFormat::Json => json(text, &section.keys()),
        SectionFormat::Toml => toml(text, &section.keys()),
        SectionFormat::Ini => ini(text, section.name()),
        SectionFormat::GoMod => Ok(go_mod(text, section.name())),
    }
}

/// A value with everything in its text: the order of keys, and keys that are there twice.
#[derive(Debug, Clone)]
enum Node {
    /// A value without parts, as it would be written.
    Leaf(String),
    List(Vec<Node>),
    Table(Vec<(String, Node)>),
}

impl Node {
    fn text(text: &str) -> Self {
        Self::Leaf(serde_json::Value::from(text).to_string())
    }

    /// One line for each leaf below, with the way to it.
    fn lines(&self, name: &str) -> Vec<String> {
        match self {
            Self::Leaf(value) => vec![format!("{name} = {value}")],
            Self::List(items) if items.is_empty() => vec![format!("{name} = []")],
            Self::List(items) => {
                items.iter().enumerate().flat_map(|(at, item)| item.lines(&format!("{name}[{at}]"))).collect()
            }
            Self::Table(entries) if entries.is_empty() => vec![format!("{name} = {{}}")],
            Self::Table(entries) => entries
                .iter()
                .flat_map(|(key, value)| value.lines(&format!("{name}.{}", shown_key(key))))
                .collect(),
        }
    }

    /// Everything below that a reader could find by these keys.
    fn found_by(&self, name: &str, keys: &[&str]) -> Vec<String> {
        let Some((key, further)) = keys.split_first() else { return self.lines(name) };
        let Self::Table(entries) = self else { return Vec::new() };
        let matching = entries.iter().filter(|(name, _)| name == key || name == PROTOTYPE);
        let dot = if name.is_empty() { "" } else { "." };
        matching
            .flat_map(|(found, value)| {
                let further = if found == PROTOTYPE { &[] } else { further };
                value.found_by(&format!("{name}{dot}{}", shown_key(found)), further)
            })
            .collect()
    }
}

fn shown_key(key: &str) -> String {
    let is_bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || "_-:/@".contains(c));
    if is_bare { key.to_owned() } else { serde_json::Value::from(key).to_string() }
}

fn json(text: &str, keys: &[&str]) -> Result<Vec<String>, String> {
    // Node and npm accept a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let node: Node = serde_json::from_str(text).map_err(|error| error.to_string())?;
    Ok(node.found_by("", keys))
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Leaf("null".to_owned()))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Leaf(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Leaf(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Leaf(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(Node::Leaf(format!("{value:?}")))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        let mut table = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            table.push(entry);
        }
        Ok(Node::Table(table))
    }
}

fn toml(text: &str, keys: &[&str]) -> Result<Vec<String>, String> {
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| error.message().to_owned())?;
    Ok(node_of(&toml::Value::Table(table)).found_by("", keys))
}

fn node_of(value: &toml::Value) -> Node {
    match value {
        toml::Value::String(text) => Node::text(text),
        toml::Value::Integer(number) => Node::Leaf(number.to_string()),
        toml::Value::Float(number) => Node::Leaf(format!("{number:?}")),
        toml::Value::Boolean(flag) => Node::Leaf(flag.to_string()),
        toml::Value::Datetime(moment) => Node::Leaf(moment.to_string()),
        toml::Value::Array(items) => Node::List(items.iter().map(node_of).collect()),
        toml::Value::Table(entries) => {
            Node::Table(entries.iter().map(|(key, value)| (key.clone(), node_of(value))).collect())
        }
    }
}

/// The lines below the headers with this name, without blank ones and comments. Readers differ in what they take for a header, so
/// that whatever could begin the section begins it, and only what is a header for all of them ends it.
fn ini(text: &str, section: &str) -> Result<Vec<String>, String> {
    let is_odd = |c: char| (c.is_control() && !"\t\r\n".contains(c)) || "\u{85}\u{2028}\u{2029}".contains(c);
    if text.contains(is_odd) {
        return Err("it has characters that some programs take for the end of a line".to_owned());
    }
    let mut lines = Vec::new();
    let mut is_inside = false;
    for line in text.split(['\n', '\r']) {
        let trimmed = line.trim();
        if could_begin(trimmed, section) || could_begin(trimmed, INI_DEFAULTS) {
            is_inside = true;
        } else if is_plain_header(line) {
            is_inside = false;
        }
        if is_inside && !trimmed.is_empty() && !trimmed.starts_with(['#', ';']) {
            lines.push(line.trim_end().to_owned());
        }
    }
    Ok(lines)
}

/// Whether some reader takes a line for a header with this name.
fn could_begin(line: &str, section: &str) -> bool {
    let Some(inner) = line.strip_prefix('[') else { return false };
    let ends = inner.match_indices(']').map(|(end, _)| inner[..end].trim());
    ends.into_iter().any(|name| name == section)
}

/// Whether every reader takes a line for a header.
fn is_plain_header(line: &str) -> bool {
    let line = line.trim_end();
    let inner = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    inner.is_some_and(|name| !name.trim().is_empty() && !name.contains(['[', ']', '#', ';']))
}

/// The directives with this name, each as its words; those in a block, too.
fn go_mod(text: &str, directive: &str) -> Vec<String> {
    let mut block: Option<String> = None;
    let mut found = Vec::new();
    for line in text.lines() {
        let line = line.split("//").next().unwrap_or_default();
        let spaced = line.replace('(', " ( ").replace(')', " ) ");
        let words: Vec<&str> = spaced.split_whitespace().collect();
        match (words.as_slice(), &block) {
            ([], _) => {}
            ([")", ..], Some(_)) => block = None,
            ([name, "("], None) => block = Some((*name).to_owned()),
            (words, Some(name)) if name == directive => found.push(format!("{name} {}", words.join(" "))),
            (words, None) if words[0] == directive => found.push(words.join(" ")),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use towline_workspace::Protect;

    use super::*;

    fn read(pattern: &str, text: &str) -> Result<Vec<String>, String> {
        let protect = Protect::of(&[pattern.to_owned()], &[]).unwrap();
        values(&protect.sections()[0], text.as_bytes())
    }

    fn lines(pattern: &str, text: &str) -> Vec<String> {
        read(pattern, text).unwrap()
    }

    const NOTHING: [&str; 0] = [];

    #[test]
    fn a_section_is_all_values_below_its_keys() {
        let json = r#"{"a": {"b": {"x": [1, 2.5, true, null], "y z": "t\n"}, "c": {}}, "d": []}"#;
        assert_eq!(
            lines("f.json#a.b", json),
            ["a.b.x[0] = 1", "a.b.x[1] = 2.5", "a.b.x[2] = true", "a.b.x[3] = null", r#"a.b."y z" = "t\n""#]
        );
        assert_eq!(lines("f.json#a.c", json), ["a.c = {}"]);
        assert_eq!(lines("f.json#d", json), ["d = []"]);
        assert_eq!(lines("f.json#a.b.x.y", json), NOTHING);
        assert_eq!(lines("f.json#e", "\u{feff}{}"), NOTHING);
        let toml = "[tool.pytest.ini_options]\naddopts = \"-x\"\nn = 1.0\n[[test]]\nname = \"a\"\nwhen = 2020-01-01\n";
        assert_eq!(
            lines("f.toml#tool.pytest", toml),
            [r#"tool.pytest.ini_options.addopts = "-x""#, "tool.pytest.ini_options.n = 1.0"]
        );
        assert_eq!(lines("f.toml#test", toml), [r#"test[0].name = "a""#, "test[0].when = 2020-01-01"]);
        assert_eq!(lines("f.toml#profile", toml), NOTHING);
    }

    #[test]
    fn however_a_value_is_written_it_is_the_same_value() {
        let same = [r#"{"scripts":{"test":"a"}}"#, r#"{ "other": 1, "\u0073cripts": {"te\u0073t": "a"} }"#];
        assert_eq!(lines("f.json#scripts", same[0]), lines("f.json#scripts", same[1]));
        let same = ["[a]\nb.c = 'x'\n", "a = {b = {c = \"x\"}}\n# comment\n", "[a.b]\nc = \"\"\"x\"\"\""];
        assert!(same.iter().all(|text| lines("f.toml#a", text) == [r#"a.b.c = "x""#]));
    }

    #[test]
    fn keys_that_are_there_twice_all_count() {
        let twice = r#"{"scripts": {"test": "a"}, "scripts": {"test": "b", "test": "c"}}"#;
        assert_eq!(
            lines("f.json#scripts", twice),
            [r#"scripts.test = "a""#, r#"scripts.test = "b""#, r#"scripts.test = "c""#]
        );
        assert_eq!(lines("f.json#scripts.test", twice).len(), 3);
        let inherited = r#"{"__proto__": {"jest": {"bail": 1}}}"#;
        assert_eq!(lines("f.json#jest", inherited), ["__proto__.jest.bail = 1"]);
        assert_eq!(lines("f.json#jest.bail", inherited), ["__proto__.jest.bail = 1"]);
    }

    #[test]
    fn a_section_of_an_ini_file_is_its_lines() {
        let text = "[metadata]\nname = a\n[tool:pytest]  \n# comment\naddopts =\n    -x\r\n\n    -q\n[other]\nb = 1\n";
        assert_eq!(lines("setup.cfg#tool:pytest", text), ["[tool:pytest]", "addopts =", "    -x", "    -q"]);
        assert_eq!(lines("setup.cfg#flake8", text), NOTHING);
    }

    #[test]
    fn what_some_reader_takes_for_a_part_of_an_ini_section_is_one() {
        let parts = |text: &str| lines("tox.ini#pytest", text).len();
        for header in
            ["[pytest]", "  [pytest]", "[pytest] # c", "[pytest]x", "[ pytest ]", "[pytest] [x]", "[DEFAULT]"]
        {
            assert_eq!(parts(&format!("[tox]\na = 1\n{header}\nb = 2\n")), 2, "{header}");
        }
        for no_end in ["  [other]", "[other", "[other]x", "[other] # c", "[]"] {
            assert_eq!(parts(&format!("[pytest]\na = 1\n{no_end}\nb = 2\n")), 4, "{no_end}");
        }
        assert_eq!(parts("[pytest]\na = 1\n[other]\nb = 2\n[pytest]\nc = 3\n"), 4);
    }

    #[test]
    fn directives_of_a_go_module_are_found_in_lines_and_in_blocks() {
        let text =
            "module a // b\nreplace x => ./y\nreplace (\n\tp v1 => q v2 // c\n)\nrequire(\nreplace v1\n)\n";
        assert_eq!(lines("go.mod#replace", text), ["replace x => ./y", "replace p v1 => q v2"]);
        assert_eq!(lines("go.mod#module", text), ["module a"]);
        assert_eq!(lines("go.mod#ignore", text), NOTHING);
    }

    #[test]
    fn what_cannot_be_read_for_sure_is_an_error() {
        for (pattern, text) in [
            ("f.json#a", "{"),
            ("f.json#a", "{} {}"),
            ("f.json#a", "// comment\n{}"),
            ("f.json#a", r#"{"a": "\ud800"}"#),
            ("f.toml#a", "a = 1\na = 2"),
            ("f.toml#a", "[a"),
            ("f.ini#a", "[b]\u{c}[a]"),
            ("f.ini#a", "[b]\u{2028}[a]"),
        ] {
            read(pattern, text).unwrap_err();
        }
        let section = Protect::of(&["f.ini#a".to_owned()], &[]).unwrap().sections()[0].clone();
        values(&section, b"[a]\nx = \xff").unwrap_err();
        let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        read("f.json#a", &deep).unwrap_err();
        read("f.toml#a", &format!("a = {deep}")).unwrap_err();
    }
}
