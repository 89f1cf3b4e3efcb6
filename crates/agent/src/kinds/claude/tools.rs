//! Tool calls for people: their kind, one line about them, and the files that they touch.

use serde_json::Value;
use towline_core::{AgentEvent, ToolKind, ToolStatus, ToolUse};

use crate::text;

/// A call that has begun. Its result has only its id.
#[derive(Debug, Clone)]
pub(super) struct ClaudeCall {
    tool: ToolUse,
    /// The rule that forbids it. The CLI applies the rule but does not name it.
    pub(super) forbidden_by: Option<String>,
}

impl ClaudeCall {
    pub(super) fn new(id: &str, name: &str, input: &Value, forbidden_by: Option<String>) -> Self {
        let begun = text::tool_use(id, kind(name), name, &subject(name, input), ToolStatus::Running);
        Self { tool: ToolUse { paths: paths(input), ..begun }, forbidden_by }
    }

    pub(super) fn begun(&self, input: Value) -> AgentEvent {
        AgentEvent::Tool(ToolUse { input: Some(text::clipped(input)), ..self.tool.clone() })
    }

    pub(super) fn ended(self, status: ToolStatus, output: &str) -> AgentEvent {
        let exit_code = (self.tool.tool == ToolKind::Execute).then(|| exit_code(output)).flatten();
        let output = Some(text::tail(output, text::OUTPUT_TAIL).to_owned());
        AgentEvent::Tool(ToolUse { status, output, exit_code, ..self.tool })
    }
}

/// The agent's to-do list, when this call writes it.
pub(super) fn plan(name: &str, input: &Value) -> Option<AgentEvent> {
    (name == "TodoWrite").then(|| text::todos(input)).flatten()
}

fn kind(name: &str) -> ToolKind {
    match name {
        "Read" | "NotebookRead" => ToolKind::Read,
        "Edit" | "MultiEdit" | "Write" | "NotebookEdit" => ToolKind::Edit,
        "Grep" | "Glob" | "LS" | "ToolSearch" => ToolKind::Search,
        "Bash" | "PowerShell" | "Monitor" => ToolKind::Execute,
        "WebFetch" | "WebSearch" => ToolKind::Fetch,
        "Task" | "Agent" => ToolKind::Subagent,
        _ if name.starts_with("mcp__") => ToolKind::Mcp,
        _ => ToolKind::Other,
    }
}

/// The fields that describe a call best, in this order.
const SUBJECTS: [&str; 11] = [
    "command",
    "file_path",
    "notebook_path",
    "pattern",
    "url",
    "query",
    "description",
    "subject",
    "skill",
    "path",
    "name",
];

/// All that a person must know about a call before they permit it.
pub(super) fn what_is_wanted(name: &str, input: &Value) -> String {
    if name.starts_with("mcp__") {
        return format!("{} {input}", subject(name, input));
    }
    subject(name, input).trim().to_owned()
}

/// The subject of a call.
fn subject(name: &str, input: &Value) -> String {
    if let Some((server, tool)) = name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")) {
        return format!("{server}: {tool}");
    }
    if let Some(question) = input.pointer("/questions/0/question").and_then(Value::as_str) {
        return question.to_owned();
    }
    let subject = SUBJECTS.iter().find_map(|field| input.get(field).and_then(Value::as_str));
    subject.unwrap_or(name).to_owned()
}

fn paths(input: &Value) -> Vec<String> {
    let fields = ["file_path", "notebook_path", "path"];
    fields.iter().filter_map(|field| input.get(field)?.as_str()).map(str::to_owned).collect()
}

/// The result of a failed command begins with its exit code.
fn exit_code(output: &str) -> Option<i32> {
    output.strip_prefix("Exit code ")?.lines().next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use towline_core::PlanEntry;

    use super::*;

    #[test]
    fn a_permission_request_shows_the_whole_call() {
        let command = "cargo test\nrm -rf out";
        assert_eq!(what_is_wanted("Bash", &json!({ "command": command })), command);
        assert_eq!(what_is_wanted("mcp__docs__find", &json!({"q": 1})), r#"docs: find {"q":1}"#);
        let endless = "x".repeat(10_000);
        assert_eq!(what_is_wanted("Bash", &json!({ "command": endless })), endless);
    }

    #[test]
    fn titles_show_the_subject_of_a_call() {
        let cases = [
            ("Bash", json!({"command": "cargo test\necho done", "description": "x"}), "cargo test …"),
            ("Write", json!({"file_path": "/w/a.rs", "content": "x"}), "/w/a.rs"),
            ("Grep", json!({"pattern": "fn main", "path": "src"}), "fn main"),
            ("WebFetch", json!({"url": "http://example.org", "prompt": "x"}), "http://example.org"),
            ("Task", json!({"description": "look around", "prompt": "x"}), "look around"),
            ("mcp__docs__find", json!({"query": "x"}), "docs: find"),
            ("AskUserQuestion", json!({"questions": [{"question": "Which?"}]}), "Which?"),
            ("TaskList", json!({}), "TaskList"),
        ];
        for (name, input, wanted) in cases {
            assert_eq!(ClaudeCall::new("t", name, &input, None).tool.title, wanted, "{name}");
        }
    }

    #[test]
    fn kinds_follow_the_tools_name() {
        let cases = [
            ("Read", ToolKind::Read),
            ("NotebookEdit", ToolKind::Edit),
            ("Glob", ToolKind::Search),
            ("Bash", ToolKind::Execute),
            ("WebSearch", ToolKind::Fetch),
            ("Agent", ToolKind::Subagent),
            ("mcp__docs__find", ToolKind::Mcp),
            ("Skill", ToolKind::Other),
        ];
        for (name, wanted) in cases {
            assert_eq!(kind(name), wanted, "{name}");
        }
    }

    #[test]
    fn a_to_do_list_is_a_plan() {
        let input = json!({"todos": [{"content": "a", "status": "completed"}, {"content": "b", "status": "pending"}]});
        let entries =
            vec![PlanEntry { text: "a".into(), done: true }, PlanEntry { text: "b".into(), done: false }];
        assert_eq!(plan("TodoWrite", &input), Some(AgentEvent::Plan { entries }));
        assert_eq!(plan("Write", &input), None);
    }

    #[test]
    fn long_input_and_output_are_cut_but_the_exit_code_is_not_lost() {
        let call = ClaudeCall::new("t", "Bash", &json!({"command": "make"}), None);
        let output = format!("Exit code 2\n{}end", "x".repeat(9_000));
        let AgentEvent::Tool(tool) = call.clone().ended(ToolStatus::Failed, &output) else {
            panic!("no tool event")
        };
        assert_eq!((tool.exit_code, tool.output.as_deref().map(str::len)), (Some(2), Some(4_096)));
        assert!(tool.output.is_some_and(|tail| tail.ends_with("end")));

        let AgentEvent::Tool(tool) = call.begun(json!({"content": ["y".repeat(9_000)]})) else {
            panic!("no tool event")
        };
        let wanted = format!("{} … (9000 bytes in all)", "y".repeat(4_096));
        assert_eq!(tool.input, Some(json!({ "content": [wanted] })));
    }
}
