//! What the presets `edits` and `read-only` allow, in the names that rules use.
//!
//! An edit that would make the agent or git run a command next time is not allowed by a preset: hooks, MCP servers and
//! permissions are files, too. A rule of `allow` can still name it.

use serde_json::Value;

use super::{Subject, subject};
use crate::settings::Permission;

/// Tools that only read, and those that only write the agent's own to-do list.
pub(crate) const READING: [&str; 7] = ["Read", "Glob", "Grep", "LS", "NotebookRead", "TodoRead", "TodoWrite"];

/// Tools that change files.
pub(crate) const EDITING: [&str; 4] = ["Edit", "MultiEdit", "Write", "NotebookEdit"];

/// Directories and files with settings of git and of agents.
const STEERING: [&str; 9] = [
    ".git",
    ".claude",
    ".codex",
    ".gemini",
    ".opencode",
    ".mcp.json",
    "opencode.json",
    "opencode.jsonc",
    ".gitmodules",
];

/// Whether the preset allows this call. Any other permission allows nothing here.
pub(super) fn allows(preset: Permission, tool: &str, input: &Value, directory: Option<&str>) -> bool {
    // Some agents write the names of their own tools in lower case.
    let reads = READING.iter().any(|reading| reading.eq_ignore_ascii_case(tool));
    match preset {
        Permission::ReadOnly => reads,
        Permission::Edits => reads || is_plain_edit(tool, input, directory),
        Permission::Bypass | Permission::Ask | Permission::Deny => false,
    }
}

/// An edit of a file in the workspace that steers neither git nor an agent. An unknown path is not allowed.
fn is_plain_edit(tool: &str, input: &Value, directory: Option<&str>) -> bool {
    let Some(Subject::Path(path)) = subject(tool, input, directory) else { return false };
    let is_plain =
        |part: &str| part != ".." && !STEERING.iter().any(|steering| part.eq_ignore_ascii_case(steering));
    EDITING.contains(&tool) && !path.is_empty() && !path.starts_with('/') && path.split('/').all(is_plain)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn allowed(tool: &str, field: &str, value: &str) -> [bool; 2] {
        let input = json!({ field: value });
        [Permission::Edits, Permission::ReadOnly].map(|preset| allows(preset, tool, &input, Some("/project")))
    }

    #[test]
    fn edits_reads_and_edits_in_the_workspace_and_read_only_reads() {
        for (tool, field, value, wanted) in [
            ("Read", "file_path", "/etc/hosts", [true, true]),
            ("Grep", "pattern", "x", [true, true]),
            ("todowrite", "todos", "x", [true, true]),
            ("Edit", "file_path", "/project/src/a.rs", [true, false]),
            ("Write", "file_path", "src/a.rs", [true, false]),
            ("NotebookEdit", "notebook_path", "/project/a.ipynb", [true, false]),
            ("Write", "file_path", "/project2/a.rs", [false, false]),
            ("Write", "file_path", "/project/../a.rs", [false, false]),
            ("Write", "file_path", "", [false, false]),
            ("Write", "content", "no path", [false, false]),
            ("Write", "file_path", "/project/.git/hooks/post-checkout", [false, false]),
            ("Edit", "file_path", ".claude/settings.json", [false, false]),
            ("Edit", "file_path", "sub/OpenCode.json", [false, false]),
            ("Edit", "file_path", ".mcp.json", [false, false]),
            ("Bash", "command", "ls", [false, false]),
            ("WebFetch", "url", "https://example.org", [false, false]),
            ("mcp__docs__find", "file_path", "a", [false, false]),
        ] {
            assert_eq!(allowed(tool, field, value), wanted, "{tool} {value}");
        }
    }

    #[test]
    fn other_permissions_are_no_presets() {
        for permission in [Permission::Bypass, Permission::Ask, Permission::Deny] {
            assert!(!allows(permission, "Read", &json!({"file_path": "a"}), None), "{permission:?}");
        }
    }
}
