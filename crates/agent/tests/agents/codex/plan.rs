//! Every setting has its effect on the process to start, or on the request that opens the conversation.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use towline_agent::{AgentSettings, Kind, LaunchContext, LaunchPlan, McpServer, Permission, agent};
use towline_core::SessionPlan;

use super::support::{HELLO, feed, fresh, launch, resume, settings, written};

fn variables(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn plan(settings: &AgentSettings, environment: &[(&str, &str)], towline: &[(&str, &str)]) -> LaunchPlan {
    let (environment, towline, session) = (variables(environment), variables(towline), fresh());
    let context = LaunchContext { towline: &towline, ..launch(&session, &environment) };
    agent(settings.kind).plan(settings, &context)
}

/// The request that opens the conversation.
fn request(
    settings: &AgentSettings,
    session: &SessionPlan,
    model: Option<&str>,
    compact: Option<&str>,
) -> Value {
    let (none, towline) = (BTreeMap::new(), variables(&[("TOWLINE_GOAL", "g")]));
    let context = LaunchContext { model, compact, towline: &towline, ..launch(session, &none) };
    let mut protocol = agent(Kind::Codex).protocol(settings, &context);
    let hello = written(&protocol.start());
    assert_eq!(hello.len(), 1);
    assert_eq!(hello[0]["method"], "initialize");
    let lines = written(&feed(&mut *protocol, HELLO));
    assert_eq!(lines[0], json!({"jsonrpc": "2.0", "method": "initialized", "params": null}));
    assert_eq!((lines.len(), &lines[1]["id"]), (2, &"thread".into()));
    lines[1].clone()
}

fn params(settings: &AgentSettings) -> Value {
    request(settings, &fresh(), None, None)["params"].clone()
}

fn full() -> AgentSettings {
    let docs = McpServer::program(vec!["docs-mcp".into(), "--all".into()]);
    AgentSettings {
        command: vec!["nice".into(), "codex".into()],
        model: Some("gpt".into()),
        permission: Permission::Deny,
        allow: vec!["Bash(git *)".into()],
        system_append: Some("- Prefer small commits.".into()),
        dirs: vec!["../docs".into(), "/srv/data".into()],
        mcp: [("docs".to_owned(), docs)].into(),
        args: vec!["-c".into(), "model_reasoning_effort=\"high\"".into()],
        env: variables(&[("SECRET", "s3cr3t")]),
        pass_env: vec!["PASSED".into()],
        ..settings()
    }
}

#[test]
fn the_command_line_is_the_command_and_the_further_arguments() {
    assert_eq!(plan(&settings(), &[], &[]).argv, ["codex", "app-server"]);
    let wanted = ["nice", "codex", "app-server", "-c", "model_reasoning_effort=\"high\""];
    assert_eq!(plan(&full(), &[], &[]).argv, wanted);
}

#[test]
fn without_settings_only_the_necessary_is_passed() {
    let wanted = json!({
        "cwd": "/workspace",
        "approvalPolicy": "never",
        "approvalsReviewer": "user",
        "sandbox": "danger-full-access",
        "config": {"features": {"goals": false}},
    });
    assert_eq!(params(&settings()), wanted);
}

#[test]
fn every_setting_is_passed_and_no_secret_with_them() {
    let wanted = json!({
        "cwd": "/workspace",
        "approvalPolicy": "untrusted",
        "approvalsReviewer": "user",
        "sandbox": "danger-full-access",
        "model": "gpt",
        "developerInstructions": "- Prefer small commits.\n\nYou may also read what is in these directories: \
                                  ../docs, /srv/data.",
        "config": {
            "features": {"goals": false},
            "web_search": "disabled",
            "mcp_servers": {"docs": {
                "command": "docs-mcp",
                "args": ["--all"],
                "env_vars": ["PASSED", "SECRET", "TOWLINE_GOAL"],
            }},
        },
    });
    assert_eq!(params(&full()), wanted);
}

#[test]
fn a_resumed_conversation_gets_the_same_settings_as_a_fresh_one() {
    let mut wanted = request(&full(), &fresh(), None, None);
    assert_eq!(wanted["method"], "thread/start");
    wanted["method"] = "thread/resume".into();
    wanted["params"]["threadId"] = "t".into();
    wanted["params"]["excludeTurns"] = true.into();
    assert_eq!(request(&full(), &resume("t"), None, None), wanted);
}

#[test]
fn the_goals_model_overrides_the_settings() {
    assert_eq!(request(&full(), &fresh(), Some("big"), None)["params"]["model"], "big");
}

#[test]
fn the_agent_asks_wherever_something_may_be_forbidden() {
    let with = |permission, deny: &[&str]| {
        let deny = deny.iter().map(|&rule| rule.to_owned()).collect();
        params(&AgentSettings { permission, deny, ..settings() })["approvalPolicy"].clone()
    };
    assert_eq!(with(Permission::Bypass, &[]), "never");
    assert_eq!(with(Permission::Bypass, &["Bash(rm *)"]), "untrusted");
    assert_eq!(with(Permission::Ask, &[]), "untrusted");
    assert_eq!(with(Permission::Deny, &[]), "untrusted");
}

#[test]
fn the_provider_searches_the_web_only_where_that_is_allowed() {
    let search = |permission, allow: &[&str], deny: &[&str]| {
        let list = |rules: &[&str]| rules.iter().map(|&rule| rule.to_owned()).collect();
        let settings = AgentSettings { permission, allow: list(allow), deny: list(deny), ..settings() };
        params(&settings)["config"]["web_search"].clone()
    };
    assert_eq!(search(Permission::Bypass, &[], &[]), Value::Null);
    assert_eq!(search(Permission::Bypass, &[], &["WebSearch"]), "disabled");
    assert_eq!(search(Permission::Ask, &[], &[]), "disabled");
    assert_eq!(search(Permission::Deny, &["WebSearch"], &[]), Value::Null);
}

#[test]
fn a_summary_has_its_focus() {
    let thread = request(&settings(), &resume("t"), None, Some("continue towards the goal"));
    let prompt = thread["params"]["config"]["compact_prompt"].as_str().expect("words");
    assert!(prompt.starts_with("Write a summary of this conversation"), "{prompt}");
    assert!(prompt.ends_with("\n\ncontinue towards the goal"), "{prompt}");
}

#[test]
fn the_environment_is_an_allow_list() {
    let environment = [
        ("PATH", "/bin"),
        ("OPENAI_API_KEY", "k"),
        ("CODEX_HOME", "/c"),
        ("CODEX_THREAD_ID", "outer"),
        ("CODEX_SANDBOX_NETWORK_DISABLED", "1"),
        ("ANTHROPIC_API_KEY", "other"),
        ("AWS_SECRET_ACCESS_KEY", "other"),
        ("PASSED", "p"),
    ];
    let plan = plan(&full(), &environment, &[("TOWLINE_GOAL", "g")]);
    let wanted = variables(&[
        ("PATH", "/bin"),
        ("OPENAI_API_KEY", "k"),
        ("CODEX_HOME", "/c"),
        ("PASSED", "p"),
        ("SECRET", "s3cr3t"),
        ("TOWLINE_GOAL", "g"),
    ]);
    assert_eq!(plan.env, wanted);
    assert!(!plan.argv.iter().any(|word| word.contains("s3cr3t")));
}

#[test]
fn the_sign_in_hint_names_the_command() {
    let hint = agent(Kind::Codex).sign_in_hint(&settings());
    assert_eq!(hint, "run `codex login`, or set OPENAI_API_KEY");
}
