//! `search`: lines that match a regular expression.

use std::fmt::Write;
use std::path::Path;

use regex::bytes::{Regex, RegexBuilder};

use super::arguments::{Arguments, Field, Form, Tool, Work};
use super::lines::{self, Opened};
use super::places::Places;
use super::walk::{self, Depth, Patience};
use super::words::count;
use super::{Reach, ToolKind};

/// The most lines that are shown.
const MOST: usize = 200;
/// The longest part of a line that is shown.
const SHOWN: usize = 300;
/// The longest part of a line that is searched.
const LOOKED_AT: usize = 1024 * 1024;
/// The largest compiled expression.
const LARGEST_EXPRESSION: usize = 4 * 1024 * 1024;
/// How many lines are searched between two looks at the clock.
const LINES_AT_ONCE: usize = 10_000;

pub(super) const TOOL: Tool = Tool {
    name: "search",
    about: "Finds lines that match a regular expression (Rust syntax; `(?i)` in front ignores case; no look-around). \
            Answers with `file:line:text`. Files that git ignores and binary files are not searched. At most 200 \
            lines are shown.",
    fields: &[
        Field::required("pattern", Form::Text, "The regular expression, for one line at a time."),
        Field::optional(
            "path",
            Form::Text,
            "The folder or file to search, relative to the workspace; the whole workspace by default.",
        ),
        Field::optional(
            "include",
            Form::Text,
            "A glob for the files to search, like `*.rs` or `src/**/*.ts`.",
        ),
    ],
    kind: ToolKind::Search,
    reach: Reach::Looks,
    work: Work::Files(search),
};

pub(super) fn search(places: &Places, arguments: &Arguments, patience: &Patience) -> Result<String, String> {
    let pattern = arguments.required("pattern");
    let expression = RegexBuilder::new(pattern)
        .size_limit(LARGEST_EXPRESSION)
        .build()
        .map_err(|error| format!("`pattern` is no regular expression: {error}"))?;
    let place = places.to_read(arguments.text("path").unwrap_or("."))?;
    let include = arguments.text("include").map(walk::glob).transpose()?;
    let mut found = Found { places, expression, patience, output: String::new(), matches: 0, end: None };
    if place.is_file() {
        found.look_into(&place);
    } else if place.is_dir() {
        for entry in walk::below(&place, places, Depth::All) {
            if patience.is_over() {
                found.end = Some(SearchEnd::TooLong);
            }
            if found.end.is_some() {
                break;
            }
            let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
            let inner = entry.path().strip_prefix(&place).unwrap_or(entry.path());
            if is_file && include.as_ref().is_none_or(|include| include.is_match(inner)) {
                found.look_into(entry.path());
            }
        }
    } else {
        return Err(format!("{} is neither a file nor a folder", places.shown(&place)));
    }
    Ok(found.finish())
}

/// Why a search ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SearchEnd {
    TooMany,
    TooLong,
}

struct Found<'a> {
    places: &'a Places,
    expression: Regex,
    patience: &'a Patience,
    output: String,
    matches: usize,
    end: Option<SearchEnd>,
}

impl Found<'_> {
    /// Searches one file. A file that cannot be read is skipped, as it may just have been removed.
    fn look_into(&mut self, path: &Path) {
        let Ok(Opened::Text(mut lines)) = lines::open(path, LOOKED_AT) else { return };
        let mut number = 0;
        while let Ok(Some(line)) = lines.next() {
            number += 1;
            if number % LINES_AT_ONCE == 0 && self.patience.is_over() {
                self.end = Some(SearchEnd::TooLong);
                return;
            }
            let Some(at) = self.expression.find(line.bytes) else { continue };
            if self.matches == MOST {
                self.end = Some(SearchEnd::TooMany);
                return;
            }
            self.matches += 1;
            let text = around(line.bytes, at.start());
            let _ = writeln!(self.output, "{}:{number}:{text}", self.places.shown(path));
        }
    }

    fn finish(mut self) -> String {
        let found = count(self.matches, "line", "lines");
        let words = match self.end {
            None if self.matches == 0 => "(no line matches)".to_owned(),
            None => format!("({found})"),
            Some(SearchEnd::TooMany) => {
                format!("({found}, and there are more; narrow `pattern`, `path` or `include`)")
            }
            Some(SearchEnd::TooLong) => {
                format!("({found}; not all was searched, since it took too long; narrow `path` or `include`)")
            }
        };
        self.output.push_str(&words);
        self.output
    }
}

/// The part of a line around a match.
fn around(line: &[u8], at: usize) -> String {
    let start = if at < SHOWN - 100 { 0 } else { at - 100 };
    let end = line.len().min(start + SHOWN);
    let text = String::from_utf8_lossy(&line[start..end]);
    let dots = |cut| if cut { "…" } else { "" };
    format!("{}{}{}", dots(start > 0), text.trim_matches('\u{fffd}'), dots(end < line.len()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::{Value, json};

    use super::*;

    fn search_in(files: &[(&str, &[u8])], input: &Value) -> Result<String, String> {
        let root = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            fs::create_dir_all(root.path().join(name).parent().unwrap()).unwrap();
            fs::write(root.path().join(name), bytes).unwrap();
        }
        let (patience, _give_up) = Patience::new();
        search(&Places::new(root.path(), &[]), &TOOL.parse(input).unwrap(), &patience)
    }

    const FILES: [(&str, &[u8]); 6] = [
        ("src/a.rs", b"fn one() {}\r\nfn two() {}\r\n"),
        ("src/b.txt", b"no fn here: fn three\n"),
        ("a.bin", b"fn four\0"),
        ("ignored/c.rs", b"fn five\n"),
        (".git/d.rs", b"fn six\n"),
        (".gitignore", b"ignored\n"),
    ];

    #[test]
    fn ignored_and_binary_files_are_not_searched() {
        let of = |input| search_in(&FILES, &input);
        assert_eq!(
            of(json!({"pattern": r"fn \w+\b"})),
            Ok("src/a.rs:1:fn one() {}\nsrc/a.rs:2:fn two() {}\nsrc/b.txt:1:no fn here: fn three\n(3 lines)"
                .to_owned())
        );
        assert_eq!(
            of(json!({"pattern": r"\}$", "include": "*.rs", "path": "src"})),
            Ok("src/a.rs:1:fn one() {}\nsrc/a.rs:2:fn two() {}\n(2 lines)".to_owned())
        );
        assert_eq!(
            of(json!({"pattern": "(?i)FN T", "path": "src/b.txt"})),
            Ok("src/b.txt:1:no fn here: fn three\n(1 line)".to_owned())
        );
        assert_eq!(of(json!({"pattern": "nothing"})), Ok("(no line matches)".to_owned()));
    }

    #[test]
    fn an_invalid_expression_is_reported() {
        let words = search_in(&[], &json!({"pattern": "a("})).unwrap_err();
        assert!(words.contains("`pattern` is no regular expression"), "{words}");
        let words = search_in(&[], &json!({"pattern": r"\w{9999}{9999}"})).unwrap_err();
        assert!(words.contains("exceeds size limit"), "{words}");
    }

    #[test]
    fn answers_are_bounded_in_lines_and_bytes() {
        let many = "hit\n".repeat(300);
        let got = search_in(&[("a", many.as_bytes())], &json!({"pattern": "hit"})).unwrap();
        assert_eq!(got.lines().count(), 201);
        assert!(
            got.ends_with(
                "a:200:hit\n(200 lines, and there are more; narrow `pattern`, `path` or `include`)"
            )
        );
        let wide = format!("{}hit{}", "ä".repeat(500), "ö".repeat(500));
        let got = search_in(&[("a", wide.as_bytes())], &json!({"pattern": "hit"})).unwrap();
        assert_eq!(got, format!("a:1:…{}hit{}…\n(1 line)", "ä".repeat(50), "ö".repeat(98)));
    }
}
