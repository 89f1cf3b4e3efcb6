//! Tests of every kind: abilities, environment, and tested versions.

use std::collections::BTreeMap;

use serde_json::Value;
use towline_agent::{AgentSettings, Kind, McpServer, Permission, agent, is_agents_variable};
use towline_core::{SessionId, SessionPlan};

use crate::recorded;
use crate::recording::testdata;
use crate::support::{plain_launch, plain_settings, resume};

const PACKAGES: &str = include_str!("../../../../agents/package.json");
const LOCK: &str = include_str!("../../../../agents/package-lock.json");
const CONFIGURATION: &str = include_str!("../../../../docs/configuration.md");
const DOCUMENT: &str = include_str!("../../../../docs/agents.md");

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

const SECRET: &str = "planted";

fn variables(names: &[&str]) -> BTreeMap<String, String> {
    names.iter().map(|name| ((*name).to_owned(), format!("{SECRET}-{name}"))).collect()
}

#[test]
fn no_secret_is_in_the_arguments_of_any_agent() {
    let environment = variables(&[
        "ANTHROPIC_API_KEY",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "OPENAI_API_KEY",
        "CODEX_API_KEY",
        "GEMINI_API_KEY",
        "GOOGLE_API_KEY",
        "MY_KEY",
    ]);
    let towline = variables(&["TOWLINE_TOKEN", "TOWLINE_API", "TOWLINE_GOAL"]);
    for kind in Kind::ALL {
        let mut settings = plain_settings(kind, &["program"]);
        settings.env = variables(&["CONFIG_TOKEN", "CONFIG_URL"]);
        settings.pass_env = vec!["MY_KEY".to_owned()];
        settings.model = Some("m".to_owned());
        settings
            .mcp
            .insert(McpServer::TOWLINE.to_owned(), McpServer::program(vec!["towline".into(), "mcp".into()]));
        for session in [SessionPlan::Fresh(SessionId::new("s")), resume("s")] {
            let mut context = plain_launch(&session, "planted prompt", &environment);
            context.towline = &towline;
            let plan = agent(kind).plan(&settings, &context);
            let shown = plan.argv.join(" ");
            assert!(!shown.contains(SECRET), "{}: {shown}", kind.name());
            assert_eq!(plan.env.get("CONFIG_TOKEN"), settings.env.get("CONFIG_TOKEN"), "{}", kind.name());
            assert_eq!(plan.env.get("MY_KEY"), environment.get("MY_KEY"), "{}", kind.name());
        }
    }
}

fn settings(kind: Kind, program: &str) -> AgentSettings {
    plain_settings(kind, &[program])
}

/// `y`, `p` and `n` for each ability, in the order of the list.
fn extents(kind: Kind, program: &str) -> String {
    let abilities = agent(kind).abilities(&settings(kind, program));
    abilities.all().iter().filter_map(|(_, ability)| ability.extent().chars().next()).collect()
}

#[test]
fn each_agent_has_its_abilities() {
    let seen = [
        (Kind::Claude, "claude"),
        (Kind::Codex, "codex"),
        (Kind::Acp, "gemini"),
        (Kind::Acp, "/opt/bin/opencode"),
        (Kind::Acp, "other"),
        (Kind::Gemini, "gemini"),
        (Kind::Script, "towline"),
    ]
    .map(|(kind, program)| extents(kind, program));
    // Resume, steering, permissions, questions, compaction, tokens, cost, MCP servers.
    assert_eq!(seen, ["yyyyyyyy", "yyyyyypy", "npypnypy", "ypypypyy", "pppppppy", "ynnnnypn", "ynnnnyyn"]);
}

#[test]
fn a_program_whose_cost_is_found_by_a_pattern_is_stopped_by_a_limit_in_dollars() {
    let mut settings = settings(Kind::Command, "mine");
    assert_eq!(agent(Kind::Command).abilities(&settings).cost.extent(), "no");
    settings.cli.cost_pattern = Some(r"cost: \$([0-9.]+)".to_owned());
    assert_eq!(agent(Kind::Command).abilities(&settings).cost.extent(), "yes");
}

#[test]
fn the_ability_of_permissions_depends_on_the_settings() {
    let with = |permission, deny: &[&str]| {
        let deny = deny.iter().map(|rule| (*rule).to_owned()).collect();
        let settings = AgentSettings { permission, deny, ..settings(Kind::Claude, "claude") };
        agent(Kind::Claude).abilities(&settings).permissions.words()
    };
    assert!(with(Permission::Bypass, &[]).contains("asks for none"));
    assert!(with(Permission::Bypass, &["WebFetch"]).contains("everything else"));
    assert!(with(Permission::Ask, &[]).contains("you are asked"));
    assert!(with(Permission::Deny, &[]).contains("is refused"));
}

#[test]
fn the_credentials_of_an_agent_count_as_variables_of_agents() {
    let kinds = [
        (
            Kind::Claude,
            "claude",
            &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"][..],
        ),
        (Kind::Codex, "codex", &["OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_HOME"]),
        (Kind::Gemini, "gemini", &["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS"]),
    ];
    for (kind, program, names) in kinds {
        let inherited = names.iter().map(|name| ((*name).to_owned(), "value".to_owned())).collect();
        let given = agent(kind).environment(&plain_settings(kind, &[program]), &inherited);
        assert!(names.iter().all(|name| given.contains_key(*name) && is_agents_variable(name)), "{given:?}");
    }
    let others = "PATH HOME USER SHELL LANG TERM TMPDIR TZ NODE_EXTRA_CA_CERTS HTTP_PROXY https_proxy no_proxy \
                  OPENSSL_DIR CARGO_HOME DISABLE_TELEMETRY";
    for name in others.split_whitespace() {
        assert!(!is_agents_variable(name), "{name}");
    }
}

/// What a new kind needs beside its code, if no other test fails without it.
#[test]
fn every_kind_has_its_recordings_and_is_documented() {
    let scripted = Kind::Script;
    for kind in Kind::ALL.into_iter().filter(|kind| *kind != scripted) {
        let name = kind.name();
        let has_folder = testdata().join(name).join("README.md").exists();
        assert!(has_folder || recorded(kind).is_some(), "crates/agent/testdata/{name} needs recordings");
        let row = format!("`kind = \"{name}\"`");
        assert!(DOCUMENT.contains(&row), "docs/agents.md needs a row with {row}");
    }
    let all = Kind::NAMES.join(" | ");
    assert!(CONFIGURATION.contains(&all), "docs/configuration.md needs {all}");
}

#[test]
fn each_agent_opens_its_conversation_in_its_own_screen_or_not_at_all() {
    let open = |kind, command: &[&str], model: Option<&str>| {
        let mut settings = plain_settings(kind, command);
        settings.args = vec!["--extra".to_owned()];
        agent(kind).interactive(&settings, &SessionId::new("s1"), model).map(|argv| argv.join(" "))
    };
    let seen = [
        (Kind::Claude, &["claude"][..], None),
        (Kind::Claude, &["claude"], Some("m")),
        (Kind::Codex, &["codex"], Some("m")),
        (Kind::Gemini, &["gemini"], Some("m")),
        (Kind::Acp, &["/bin/opencode", "acp"], Some("m")),
        (Kind::Acp, &["gemini", "--acp"], None),
        (Kind::Acp, &["other"], None),
        (Kind::Builtin, &["towline", "acp"], None),
        (Kind::Command, &["aider"], None),
        (Kind::Script, &["towline", "script"], None),
    ]
    .map(|(kind, command, model)| open(kind, command, model).unwrap_or_else(|| "none".to_owned()));
    let runaway = "--disallowedTools=EnterWorktree --disallowedTools=ExitWorktree --disallowedTools=CronCreate \
                   --disallowedTools=ScheduleWakeup";
    let expected = [
        format!("claude --resume s1 --permission-mode bypassPermissions {runaway} --extra"),
        format!("claude --resume s1 --model m --permission-mode bypassPermissions {runaway} --extra"),
        "codex resume s1 --model m --ask-for-approval never --sandbox danger-full-access --extra".to_owned(),
        "gemini --approval-mode yolo --resume s1 --model m --extra".to_owned(),
        "/bin/opencode --session s1 --model m".to_owned(),
        "none".to_owned(),
        "none".to_owned(),
        "none".to_owned(),
        "none".to_owned(),
        "none".to_owned(),
    ];
    assert_eq!(seen, expected);
}
