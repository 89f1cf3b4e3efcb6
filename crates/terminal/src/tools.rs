//! An agent's tool calls in its story: one line each, once it is known how the call ended.

use std::time::Duration;

use jiff::Timestamp;
use towline_core::{ToolKind, ToolStatus, ToolUse, show_duration};

use crate::Paint;
use crate::line::cut;
use crate::text::{brief, printable};

/// The least duration of a call that is printed.
const LONG: Duration = Duration::from_secs(1);
/// How many columns of a failed call's output are shown.
const REASON: usize = 160;

/// The tools at work.
#[derive(Default)]
pub struct Tools {
    at_work: Vec<(ToolUse, Timestamp)>,
}

impl Tools {
    /// Takes note of a call; gives back since when one that is over was at work.
    pub fn note(&mut self, tool: &ToolUse, at: Timestamp) -> Option<Timestamp> {
        let known = self.at_work.iter().position(|(known, _)| known.id == tool.id);
        match known {
            Some(known) if tool.status.is_over() => return Some(self.at_work.remove(known).1),
            Some(known) => self.at_work[known].0 = tool.clone(),
            None if tool.status.is_over() => {}
            None => self.at_work.push((tool.clone(), at)),
        }
        None
    }

    /// Follows a call, and returns its line when it is over.
    pub fn follow(&mut self, tool: &ToolUse, at: Timestamp, paint: Paint) -> Vec<String> {
        let since = self.note(tool, at);
        if !tool.status.is_over() {
            return Vec::new();
        }
        let took = since.and_then(|since| Duration::try_from(at.duration_since(since)).ok());
        vec![line(paint, tool, took.filter(|took| *took >= LONG))]
    }

    /// The call that began last, and since when.
    pub fn newest(&self) -> Option<&(ToolUse, Timestamp)> {
        self.at_work.last()
    }

    /// How many are at work.
    pub fn count(&self) -> usize {
        self.at_work.len()
    }

    /// What was still at work when the agent ended.
    pub fn left_behind(&mut self, paint: Paint) -> Vec<String> {
        let left = std::mem::take(&mut self.at_work);
        left.iter().map(|(tool, _)| paint.warn(&format!("  {} was interrupted", title(tool)))).collect()
    }
}

/// The sign before a call of this kind.
pub const fn sign(kind: ToolKind) -> char {
    match kind {
        ToolKind::Execute => '$',
        ToolKind::Edit | ToolKind::Delete | ToolKind::Move => '±',
        _ => '·',
    }
}

fn title(tool: &ToolUse) -> String {
    format!("{} {}", sign(tool.tool), brief(&named(tool.tool, &tool.name, &tool.title)))
}

/// What a call is about, with the tool's name unless that is plain: a command is run, whatever runs it, and a sentence
/// such as `Edit greet.sh` is plain.
pub fn named(kind: ToolKind, name: &str, title: &str) -> String {
    let is_plain = kind == ToolKind::Execute
        || kind == ToolKind::Mcp
        || name.is_empty()
        || (title.starts_with(char::is_uppercase) && title.contains(' '))
        || title.to_lowercase().starts_with(&name.to_lowercase());
    if is_plain { title.to_owned() } else { format!("{name} {title}") }
}

fn line(paint: Paint, tool: &ToolUse, took: Option<Duration>) -> String {
    let title = title(tool);
    let took = took.map(show_duration);
    let after = took.as_ref().map(|took| format!(" after {took}")).unwrap_or_default();
    match tool.status {
        ToolStatus::Failed => {
            let reason = reason(tool).map(|reason| format!(": {reason}")).unwrap_or_default();
            let code = tool.exit_code.map(|code| format!(" (exit code {code})")).unwrap_or_default();
            paint.warn(&format!("  {title} failed{code}{after}{reason}"))
        }
        ToolStatus::Denied => paint.warn(&format!("  {title} was not permitted")),
        ToolStatus::Cancelled => paint.warn(&format!("  {title} was ended{after}")),
        ToolStatus::Pending | ToolStatus::Running | ToolStatus::Ok => {
            let took = took.map(|took| paint.dim(&format!(" · {took}"))).unwrap_or_default();
            format!("  {title}{took}")
        }
    }
}

/// Why a call failed, in one line: the last one of a command, the first one of other tools.
fn reason(tool: &ToolUse) -> Option<String> {
    let output = tool.output.as_deref()?;
    // Some agents put the exit code there, which is printed already.
    let is_reason = |line: &&str| !line.is_empty() && !line.starts_with("Exit code ");
    let mut lines = output.lines().map(str::trim).filter(is_reason);
    let line = match tool.tool {
        ToolKind::Execute => lines.next_back(),
        _ => lines.next(),
    };
    Some(cut(&printable(line?), REASON))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("in range")
    }

    /// A call that has printed nothing.
    fn tool(kind: ToolKind, status: ToolStatus) -> ToolUse {
        let call = serde_json::json!({
            "id": "a", "tool": kind, "name": "Tool", "title": "it", "status": status, "paths": [],
        });
        serde_json::from_value(call).expect("a stored value")
    }

    #[test]
    fn a_call_is_printed_once_with_how_it_ended_and_why() {
        use ToolKind::{Edit, Execute, Fetch};
        use ToolStatus::{Cancelled, Denied, Failed, Ok};
        let output = "first\nsecond\n\n";
        for (kind, status, code, took, wanted) in [
            (Execute, Ok, Some(0), 0, "  $ it"),
            (Edit, Ok, None, 12, "  ± Tool it · 12s"),
            (Execute, Failed, Some(2), 61, "  $ it failed (exit code 2) after 1m 01s: second"),
            (Fetch, Failed, None, 0, "  · Tool it failed: first"),
            (Edit, Denied, None, 0, "  ± Tool it was not permitted"),
            (Execute, Cancelled, None, 12, "  $ it was ended after 12s"),
        ] {
            let mut tools = Tools::default();
            let begun = tool(kind, ToolStatus::Running);
            let over = ToolUse { output: Some(output.into()), exit_code: code, ..tool(kind, status) };
            assert_eq!(tools.follow(&begun, at(0), Paint::Plain), Vec::<String>::new());
            assert_eq!(tools.follow(&over, at(took), Paint::Plain), [wanted]);
            assert_eq!(tools.left_behind(Paint::Plain), Vec::<String>::new());
        }
    }

    #[test]
    fn a_call_without_an_end_is_printed_when_the_agent_is_gone() {
        let mut tools = Tools::default();
        tools.follow(&tool(ToolKind::Execute, ToolStatus::Running), at(0), Paint::Plain);
        assert_eq!(tools.left_behind(Paint::Plain), ["  $ it was interrupted"]);
    }

    #[test]
    fn a_call_has_the_name_of_its_tool_unless_that_is_plain() {
        use ToolKind::{Edit, Execute, Mcp, Read, Search};
        for (kind, name, title, wanted) in [
            (Execute, "Bash", "cargo test", "cargo test"),
            (Mcp, "mcp__docs__find", "docs: find", "docs: find"),
            (Read, "Read", "src/main.rs", "Read src/main.rs"),
            (Search, "Grep", "fn main", "Grep fn main"),
            (Edit, "replace", "Edit greet.sh", "Edit greet.sh"),
            (Read, "TaskList", "TaskList", "TaskList"),
        ] {
            assert_eq!(named(kind, name, title), wanted);
        }
    }
}
