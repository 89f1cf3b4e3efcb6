//! Cuts text down to what an event may hold. The whole text stays on disk with the attempt.

use serde_json::Value;
use towline_core::{AgentEvent, Choice, Part, PlanEntry, ToolKind, ToolStatus, ToolUse};

/// The longest part of a tool's output in an event.
pub(crate) const OUTPUT_TAIL: usize = 4 * 1024;

/// The longest part of stderr in a message.
pub(crate) const STDERR_QUOTE: usize = 500;

/// The longest string of a tool's input in an event: an edit may contain a whole file.
const INPUT_TEXT: usize = 4 * 1024;

/// How many characters of a field are shown of its beginning, and of its end, to a person who is to permit a call.
const FIELD_HEAD: usize = 12 * 1024;
const FIELD_TAIL: usize = 4 * 1024;

/// The longest text of a question, in characters.
const SHOWN: usize = 16 * 1024;

/// The longest title.
const TITLE: usize = 160;

/// Longer runs of characters are not words.
const LONGEST_WORD: usize = 512;

/// The first `chars` characters.
pub(crate) fn head(text: &str, chars: usize) -> &str {
    text.char_indices().nth(chars).map_or(text, |(end, _)| &text[..end])
}

/// The last `bytes` bytes, or a little less so that neither a character nor a word is cut: half a secret would not be
/// recognised as one.
pub(crate) fn tail(text: &str, bytes: usize) -> &str {
    let start = text.ceil_char_boundary(text.len().saturating_sub(bytes));
    let (before, tail) = text.split_at(start);
    if before.is_empty() || before.ends_with(char::is_whitespace) {
        return tail;
    }
    let word = tail.find(char::is_whitespace).filter(|length| *length <= LONGEST_WORD);
    &tail[word.unwrap_or(0)..]
}

/// The first line with content, short enough for a list.
pub(crate) fn one_line(text: &str) -> String {
    // Most texts are short and have one line.
    if text.len() <= TITLE && !text.contains('\n') {
        return text.trim().to_owned();
    }
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let cut = head(line, TITLE);
    let more = cut.len() < line.len() || text.trim().lines().nth(1).is_some();
    if more { format!("{cut} …") } else { cut.to_owned() }
}

/// A name, followed by a description.
pub(crate) fn named(name: &str, words: &str) -> String {
    if words.is_empty() { name.to_owned() } else { format!("{name}: {words}") }
}

/// A part of a question with its options (label and description). Each text is cut to the longest that is shown.
pub(crate) fn part<'a>(text: &str, options: impl Iterator<Item = (&'a str, &'a str)>, many: bool) -> Part {
    let choice = |(label, description)| Choice { label: shown(label), description: shown(description) };
    Part { text: shown(text), options: options.map(choice).collect(), many }
}

fn shown(words: &str) -> String {
    head(words, SHOWN).to_owned()
}

/// A tool call without input and result. Without a title, its name is the title.
pub(crate) fn tool_use(id: &str, tool: ToolKind, name: &str, title: &str, status: ToolStatus) -> ToolUse {
    let title = if title.trim().is_empty() { name } else { title };
    ToolUse {
        id: id.to_owned(),
        tool,
        name: name.to_owned(),
        title: one_line(title),
        status,
        input: None,
        output: None,
        exit_code: None,
        paths: Vec::new(),
    }
}

/// The to-do list in a tool's input, for agents that write theirs with a tool.
pub(crate) fn todos(input: &Value) -> Option<AgentEvent> {
    let entry = |todo: &Value| {
        let text = todo.get("content").or_else(|| todo.get("description"))?.as_str()?.to_owned();
        Some(PlanEntry { text, done: todo.get("status").and_then(Value::as_str) == Some("completed") })
    };
    let todos = input.get("todos")?.as_array()?;
    Some(AgentEvent::Plan { entries: todos.iter().filter_map(entry).collect() })
}

/// A tool's input with its long strings cut.
pub(crate) fn clipped(mut input: Value) -> Value {
    clip(&mut input);
    input
}

/// A field of a tool's input and its value, for a person who is to permit the call. Of a long value, both ends are shown.
pub(crate) fn field(name: &str, value: &Value) -> String {
    let value = match value {
        Value::String(text) => both_ends(text),
        Value::Object(_) | Value::Array(_) => both_ends(&format!("{value:#}")),
        plain => plain.to_string(),
    };
    format!("{}: {}", one_line(name), indented(&value))
}

/// The text with all lines but the first indented.
pub(crate) fn indented(text: &str) -> String {
    text.replace('\n', "\n  ")
}

fn both_ends(text: &str) -> String {
    let count = text.chars().count();
    if count <= FIELD_HEAD + FIELD_TAIL {
        return text.to_owned();
    }
    let end = text.char_indices().nth(count - FIELD_TAIL).map_or("", |(start, _)| &text[start..]);
    let left = count - FIELD_HEAD - FIELD_TAIL;
    format!("{}\n… {left} characters left out …\n{end}", head(text, FIELD_HEAD))
}

fn clip(input: &mut Value) {
    match input {
        Value::String(text) if text.len() > INPUT_TEXT => {
            *text = format!("{} … ({} bytes in all)", head(text, INPUT_TEXT), text.len());
        }
        Value::Array(items) => items.iter_mut().for_each(clip),
        Value::Object(fields) => fields.values_mut().for_each(clip),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cutting_never_splits_a_character() {
        assert_eq!(head("äöü", 2), "äö");
        assert_eq!(head("ab", 2), "ab");
        assert_eq!(tail("äöü", 3), "ü");
        assert_eq!(tail("abc", 10), "abc");
        assert_eq!(tail("one two three", 8), " three");
        assert_eq!(tail("one two three", 9), "two three");
    }

    #[test]
    fn a_title_is_one_line_and_shows_that_there_is_more() {
        assert_eq!(one_line("\n  make all \n"), "make all");
        assert_eq!(one_line("cat <<EOF\nx\nEOF"), "cat <<EOF …");
        assert_eq!(one_line(&"x".repeat(200)), format!("{} …", "x".repeat(160)));
        assert_eq!(one_line(""), "");
    }
}
