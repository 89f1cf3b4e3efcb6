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

/// What a command is called with that changes nothing about what it does.
const NOTES: [&str; 2] = ["description", "timeout"];

/// All that a person must know about a call before they permit it: for a command, whatever else it is called with comes before it; for
/// other tools, every field follows the subject.
pub(super) fn what_is_wanted(name: &str, input: &Value) -> String {
    if name.starts_with("mcp__") {
        return format!("{} {input}", subject(name, input));
    }
    let shown = subject(name, input);
    let shown = shown.trim();
    let Some(fields) = input.as_object() else { return shown.to_owned() };
    if let Some(command) = fields.get("command").and_then(Value::as_str) {
        let others =
            fields.iter().filter(|(field, _)| *field != "command" && !NOTES.contains(&field.as_str()));
        let others = others.map(|(field, value)| text::field(field, value) + "\n");
        return others.chain([command.trim().to_owned()]).collect();
    }
    let chosen = SUBJECTS.iter().find(|field| fields.get(**field).is_some_and(Value::is_string));
    let others = fields.iter().filter(|(field, _)| chosen != Some(&field.as_str()));
    let others = others.map(|(field, value)| format!("\n{}", text::field(field, value)));
    [text::indented(shown)].into_iter().chain(others).collect()
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
    fn a_permission_request_shows_every_field_of_the_input() {
        let cases = [
            ("Read", json!({"file_path": "/w/a.rs"}), "/w/a.rs"),
            ("Write", json!({"file_path": "/w/a.rs", "content": "one\ntwo"}), "/w/a.rs\ncontent: one\n  two"),
            (
                "NotebookEdit",
                json!({"notebook_path": "n.ipynb", "new_source": "x = 1", "edit_mode": "insert"}),
                "n.ipynb\nedit_mode: insert\nnew_source: x = 1",
            ),
            (
                "Task",
                json!({"description": "look", "prompt": "rm all", "subagent_type": "general"}),
                "look\nprompt: rm all\nsubagent_type: general",
            ),
            (
                "Bash",
                json!({"command": "make", "description": "harmless", "dangerouslyDisableSandbox": true}),
                "dangerouslyDisableSandbox: true\nmake",
            ),
        ];
        for (name, input, wanted) in cases {
            assert_eq!(what_is_wanted(name, &input), wanted, "{name}");
        }
        // What an agent writes is indented, so that no value looks like a field.
        let forged = json!({"file_path": "a\ncontent: ok", "content": "b\nmode: c"});
        assert_eq!(what_is_wanted("Write", &forged), "a\n  content: ok\ncontent: b\n  mode: c");
    }

    #[test]
    fn a_long_field_shows_both_ends() {
        let content = format!("begin{}end", "x".repeat(100_000));
        let shown = what_is_wanted("Write", &json!({"file_path": "a", "content": content}));
        assert!(shown.len() < 20_000 && shown.contains("begin") && shown.ends_with("end"), "{}", shown.len());
        assert!(shown.contains("characters left out"));
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
