//! `edit`: replaces a text in a file.

use std::fs;

use super::arguments::{Arguments, Field, Form, Tool, Work};
use super::places::Places;
use super::words::{count, one_line};
use super::write::replace;
use super::{Reach, ToolKind};

/// The largest file that is edited.
const LARGEST: u64 = 16 * 1024 * 1024;
/// The most places that are named.
const MOST_PLACES: usize = 10;

pub(super) const TOOL: Tool = Tool {
    name: "edit",
    about: "Replaces `old` by `new` in a file. `old` must be in the file exactly as written here, white space \
            included and without the line numbers that `read` shows, and exactly once: include enough of the lines \
            around it, or set `all` to replace every occurrence.",
    fields: &[
        Field::required("path", Form::Text, "The file, relative to the workspace."),
        Field::required("old", Form::Text, "The text to replace."),
        Field::required("new", Form::Text, "The text that replaces it."),
        Field::optional("all", Form::Flag, "Replace every occurrence."),
    ],
    kind: ToolKind::Edit,
    reach: Reach::Acts,
    work: Work::Files(|places, arguments, _| edit(places, arguments)),
};

pub(super) fn edit(places: &Places, arguments: &Arguments) -> Result<String, String> {
    let text = arguments.required("path");
    // The file must exist; this check has the better error message.
    places.to_read(text)?;
    let path = places.to_write(text)?;
    let shown = places.shown(&path);
    let cannot = |error| format!("{shown} cannot be read: {error}");
    if path.metadata().map_err(cannot)?.len() > LARGEST {
        return Err(format!("{shown} has more than {LARGEST} bytes; use `run` to change it"));
    }
    let before = String::from_utf8(fs::read(&path).map_err(cannot)?)
        .map_err(|_| format!("{shown} is not UTF-8 text; use `run` to change it"))?;
    let (old, new) = (arguments.required("old"), arguments.required("new"));
    let (after, lines) = replaced(&before, old, new, arguments.flag("all"))
        .map_err(|wrong| format!("{shown} is unchanged: {wrong}"))?;
    replace(&path, after.as_bytes()).map_err(|error| format!("{shown} cannot be written: {error}"))?;
    Ok(format!(
        "Replaced {} in {shown} ({}).",
        count(lines.len(), "occurrence", "occurrences"),
        named(&lines)
    ))
}

/// The text with `old` replaced by `new`, and the lines of the replacements; or the reason why not.
fn replaced(text: &str, old: &str, new: &str, all: bool) -> Result<(String, Vec<usize>), String> {
    if old.is_empty() {
        return Err("`old` is empty; name the text to replace, or use `write` for a whole file".to_owned());
    }
    if old == new {
        return Err("`old` and `new` are the same".to_owned());
    }
    // Models read and write plain line ends, whatever the file has. Where it has both kinds, the replaced part decides.
    let (line_ends, crlf) = (text.matches('\n').count(), text.matches("\r\n").count());
    let is_crlf = crlf > 0 && (crlf == line_ends || !text.contains(old));
    let [old, new] = [old, new].map(|part| if is_crlf { with_crlf(part) } else { part.to_owned() });
    let lines = lines_of(text, &old);
    match lines.len() {
        0 => Err(not_found(text, &old)),
        1 => Ok((text.replacen(&old, &new, 1), lines)),
        _ if all => Ok((text.replace(&old, &new), lines)),
        found => Err(format!(
            "`old` occurs {found} times ({}); include more of the text around the one you mean, or set `all`",
            named(&lines)
        )),
    }
}

fn with_crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

/// The lines where `part` begins.
fn lines_of(text: &str, part: &str) -> Vec<usize> {
    let (mut line, mut read_to) = (1, 0);
    text.match_indices(part)
        .map(|(at, _)| {
            line += text[read_to..at].matches('\n').count();
            read_to = at;
            line
        })
        .collect()
}

fn named(lines: &[usize]) -> String {
    let numbers: Vec<String> = lines.iter().take(MOST_PLACES).map(usize::to_string).collect();
    let word = if lines.len() == 1 { "line" } else { "lines" };
    let more = if lines.len() > MOST_PLACES { ", …" } else { "" };
    format!("{word} {}{more}", numbers.join(", "))
}

/// The error for a missing text, with lines that may have been meant.
fn not_found(text: &str, old: &str) -> String {
    let mut words = "`old` occurs 0 times; read the file again and copy the text exactly".to_owned();
    let Some(wanted) = old.lines().map(str::trim).find(|line| !line.is_empty()) else { return words };
    let alike = text.lines().enumerate().filter(|(_, line)| line.trim() == wanted);
    for (index, (number, line)) in alike.take(3).enumerate() {
        if index == 0 {
            words.push_str(". Its first line, or one that differs in white space only, is at:");
        }
        let shown = one_line(&line.replace('\t', "→"), 160);
        let indent = line.len() - line.trim_start().len();
        words.push_str(&format!("\n{}: {shown} (indented by {indent})", number + 1));
    }
    words
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn after(text: &str, old: &str, new: &str, all: bool) -> Result<String, String> {
        replaced(text, old, new, all).map(|(after, _)| after)
    }

    #[test]
    fn one_occurrence_is_replaced_and_several_only_with_all() {
        assert_eq!(after("a b c", "b", "x", false), Ok("a x c".to_owned()));
        assert_eq!(after("b\nb\n", "b", "x", true), Ok("x\nx\n".to_owned()));
        assert_eq!(after("b", "b", "", true), Ok(String::new()));
        assert_eq!(
            after("b\n\nb b\n", "b", "x", false),
            Err("`old` occurs 3 times (lines 1, 3, 3); include more of the text around the one you mean, or set \
                 `all`"
                .to_owned())
        );
        for (old, new) in [("", "x"), ("b", "b")] {
            after("b", old, new, true).expect_err("nothing to do");
        }
    }

    #[test]
    fn a_missing_text_is_reported_with_similar_lines() {
        assert_eq!(
            after("fn a() {\n\tone();\n}\n", "    one();\n", "two();\n", false),
            Err("`old` occurs 0 times; read the file again and copy the text exactly. Its first line, or one that \
                 differs in white space only, is at:\n2: →one(); (indented by 1)"
                .to_owned())
        );
        assert_eq!(
            after("a", "b\n", "c", true),
            Err("`old` occurs 0 times; read the file again and copy the text exactly".to_owned())
        );
    }

    #[test]
    fn line_ends_stay_what_they_are() {
        assert_eq!(after("a\r\nb\r\nc\r\n", "a\nb", "x\ny", false), Ok("x\r\ny\r\nc\r\n".to_owned()));
        assert_eq!(after("a\r\nb\r\n", "a\r\nb", "x\ny", false), Ok("x\r\ny\r\n".to_owned()));
        assert_eq!(after("a\nb\n", "a\nb", "x\ny", false), Ok("x\ny\n".to_owned()));
        // In a file with both kinds of line ends the replaced part decides.
        assert_eq!(after("a\r\nb\r\nc\nd\n", "a\nb", "x\ny", false), Ok("x\r\ny\r\nc\nd\n".to_owned()));
        assert_eq!(after("a\r\nb\r\nc\nd\n", "c\nd", "x\ny", false), Ok("a\r\nb\r\nx\ny\n".to_owned()));
    }

    #[test]
    fn a_file_is_edited_in_place_or_left_as_it_was() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("a"), "one\ntwo\n").unwrap();
        fs::write(root.path().join("latin1"), b"caf\xe9").unwrap();
        let run = |input| edit(&Places::new(root.path(), &[]), &TOOL.parse(&input).unwrap());
        assert_eq!(
            run(json!({"path": "a", "old": "two", "new": "three"})),
            Ok("Replaced 1 occurrence in a (line 2).".to_owned())
        );
        assert_eq!(fs::read_to_string(root.path().join("a")).unwrap(), "one\nthree\n");
        let words = run(json!({"path": "a", "old": "e\n", "new": ""})).unwrap_err();
        assert!(words.starts_with("a is unchanged: `old` occurs 2 times (lines 1, 2)"), "{words}");
        assert_eq!(fs::read_to_string(root.path().join("a")).unwrap(), "one\nthree\n");
        assert_eq!(
            run(json!({"path": "latin1", "old": "caf", "new": "x"})),
            Err("latin1 is not UTF-8 text; use `run` to change it".to_owned())
        );
        assert!(run(json!({"path": "none", "old": "a", "new": "b"})).unwrap_err().contains("does not exist"));
    }
}
