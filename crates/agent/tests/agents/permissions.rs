//! The presets `edits` and `read-only` hold for every kind: by what it is started with, by the answers to what it asks, or
//! by a refusal before anything starts.

use std::collections::BTreeMap;

use towline_agent::{AgentSettings, Kind, Permission, agent};
use towline_core::{SessionId, SessionPlan};

use crate::support::{plain_launch, plain_settings};

const PRESETS: [Permission; 2] = [Permission::Edits, Permission::ReadOnly];

fn with(kind: Kind, command: &[&str], permission: Permission) -> AgentSettings {
    AgentSettings { permission, ..plain_settings(kind, command) }
}

/// What the command line and the environment have beyond those under `bypass`.
fn added(settings: &AgentSettings) -> Vec<String> {
    let (session, none) = (SessionPlan::Fresh(SessionId::new("s")), BTreeMap::new());
    let plan = |settings: &AgentSettings| {
        let plan = agent(settings.kind).plan(settings, &plain_launch(&session, "do it", &none));
        let env = plan.env.into_iter().map(|(name, value)| format!("{name}={value}"));
        plan.argv.into_iter().chain(env).collect::<Vec<_>>()
    };
    let usual = plan(&AgentSettings { permission: Permission::Bypass, ..settings.clone() });
    plan(settings).into_iter().filter(|word| !usual.contains(word)).collect()
}

#[test]
fn each_kind_is_started_with_what_makes_it_keep_to_a_preset() {
    const READS: &str = "--tools=Read,Glob,Grep,LS,NotebookRead,TodoRead,TodoWrite,AskUserQuestion,ToolSearch,\
                         TaskCreate,TaskGet,TaskList,TaskUpdate";
    let edits = format!("{READS},Edit,MultiEdit,Write,NotebookEdit");
    let asks = r#"OPENCODE_PERMISSION={"*":"ask"}"#;
    let none: &[&str] = &[];
    for (kind, command, wanted) in [
        (Kind::Claude, &["claude"][..], [&["default", edits.as_str()][..], &["default", READS]]),
        // What the next three may do is settled in the conversation.
        (Kind::Codex, &["codex"], [none, none]),
        (Kind::Acp, &["gemini", "--acp"], [none, none]),
        (Kind::Builtin, &["towline"], [none, none]),
        (Kind::Acp, &["opencode", "acp"], [&[asks], &[asks]]),
        (Kind::Gemini, &["gemini"], [none, &["default"]]),
    ] {
        let found = PRESETS.map(|preset| added(&with(kind, command, preset)));
        assert_eq!(
            found,
            wanted.map(|words| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()),
            "{kind:?}"
        );
    }
}

#[test]
fn a_rule_adds_its_tool_to_those_that_claude_is_offered() {
    let allow = vec!["Bash(git *)".to_owned(), "mcp__docs".to_owned()];
    let settings = AgentSettings { allow, ..with(Kind::Claude, &["claude"], Permission::ReadOnly) };
    let words = added(&settings);
    let tools = words.iter().find_map(|word| word.strip_prefix("--tools=")).expect("tools");
    assert!(tools.ends_with(",TaskUpdate,Bash"), "{tools}");
}

#[test]
fn a_kind_that_cannot_keep_a_permission_refuses_it() {
    let refused = |kind: Kind| {
        let names = Permission::NAMES.into_iter();
        let is_refused =
            |name: &&str| agent(kind).refuses_permission(name.parse().expect("a permission")).is_some();
        names.filter(is_refused).collect::<Vec<_>>()
    };
    let none: &[&str] = &[];
    for (kind, wanted) in [
        (Kind::Claude, none),
        (Kind::Codex, none),
        (Kind::Acp, none),
        (Kind::Builtin, none),
        (Kind::Gemini, &["ask", "deny", "edits"]),
        (Kind::Command, &["ask", "deny", "edits", "read-only"]),
        (Kind::Script, &["edits", "read-only"]),
    ] {
        assert_eq!(refused(kind), wanted, "{kind:?}");
    }
}
