//! The tool calls that each agent understands, as replies of the scripted model.

use std::path::Path;

use serde_json::json;

use super::AgentCli;
use crate::model::Reply;

/// Has the agent run `command` with its shell tool, in its workspace.
pub fn shell_call(agent: AgentCli, command: &str) -> Reply {
    match agent {
        AgentCli::Claude | AgentCli::OlderClaude => {
            Reply::tool("Bash", json!({"command": command, "description": "run a command"}))
        }
        AgentCli::Codex => Reply::tool("exec_command", json!({"cmd": command})),
        AgentCli::Gemini => Reply::tool(
            "run_shell_command",
            json!({"command": command, "description": "run a command", "is_background": false}),
        ),
        AgentCli::Opencode => {
            Reply::tool("bash", json!({"command": command, "description": "run a command"}))
        }
    }
}

/// Has the agent create a file at `path`, which is absolute, with the tool that it edits with.
///
/// Codex has no such tool with a model it does not know, but takes a patch on its shell tool for an edit.
pub fn write_call(agent: AgentCli, path: &Path, content: &str) -> Reply {
    assert!(path.is_absolute(), "agents write to absolute paths, and {} is none", path.display());
    let path = path.to_string_lossy();
    match agent {
        AgentCli::Claude | AgentCli::OlderClaude => {
            Reply::tool("Write", json!({"file_path": path, "content": content}))
        }
        AgentCli::Codex => {
            let added: String = content.lines().map(|line| format!("+{line}\n")).collect();
            let patch = format!("*** Begin Patch\n*** Add File: {path}\n{added}*** End Patch\n");
            Reply::tool("exec_command", json!({"cmd": format!("apply_patch <<'PATCH'\n{patch}PATCH\n")}))
        }
        AgentCli::Gemini => Reply::tool("write_file", json!({"file_path": path, "content": content})),
        AgentCli::Opencode => Reply::tool("write", json!({"filePath": path, "content": content})),
    }
}
