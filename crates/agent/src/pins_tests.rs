//! The versions that Towline reports as tested are those that the tests run with. Only compiled for tests.

use serde_json::Value;

use crate::protocol::agent;
use crate::settings::Kind;
use crate::testing::plain_settings;

const PACKAGES: &str = include_str!("../../../agents/package.json");
const LOCK: &str = include_str!("../../../agents/package-lock.json");
const DOCUMENT: &str = include_str!("../../../docs/agents.md");

/// Each agent: its name in the documentation, its kind, its command, and its package.
const AGENTS: [(&str, Kind, &[&str], &str); 4] = [
    ("Claude Code", Kind::Claude, &["claude"], "@anthropic-ai/claude-code"),
    ("Codex", Kind::Codex, &["codex"], "@openai/codex"),
    ("Gemini CLI", Kind::Acp, &["gemini", "--acp"], "@google/gemini-cli"),
    ("opencode", Kind::Acp, &["opencode", "acp"], "opencode-linux-x64"),
];

fn pinned(package: &str) -> String {
    let manifest: Value = serde_json::from_str(PACKAGES).expect("JSON");
    let lists = [&manifest["dependencies"], &manifest["optionalDependencies"]];
    let version = lists.iter().find_map(|list| list[package].as_str());
    version.unwrap_or_else(|| panic!("{package} is not pinned")).to_owned()
}

fn shown(version: [u64; 3]) -> String {
    version.map(|number| number.to_string()).join(".")
}

#[test]
fn the_newest_tested_version_of_each_agent_is_the_pinned_one_and_is_documented() {
    for (name, kind, command, package) in AGENTS {
        let tested = agent(kind).tested(&plain_settings(kind, command)).expect("tested versions");
        assert_eq!(shown(tested.newest), pinned(package), "{name}");
        let row = format!("| {name} | {tested} |");
        assert!(DOCUMENT.contains(&row), "docs/agents.md needs the row {row}");
    }
}

#[test]
fn the_oldest_tested_claude_code_is_pinned_too() {
    let settings = plain_settings(Kind::Claude, &["claude"]);
    let tested = agent(Kind::Claude).tested(&settings).expect("tested versions");
    let oldest = format!("npm:@anthropic-ai/claude-code@{}", shown(tested.oldest));
    assert_eq!(pinned("claude-code-older"), oldest);
}

#[test]
fn the_lock_file_names_no_registry() {
    assert!(!LOCK.contains("\"resolved\"") && !LOCK.contains("://"));
}
