//! Every setting has its effect on the process to start.

use std::collections::BTreeMap;

use towline_agent::{AgentSettings, Kind, LaunchContext, LaunchPlan, McpServer, Permission, agent};
use towline_core::SessionPlan;

use super::support::{PROMPT, fresh, launch, resume, settings};

const ALWAYS: [&str; 11] = [
    "claude",
    "-p",
    "--input-format",
    "stream-json",
    "--output-format",
    "stream-json",
    "--verbose",
    "--include-partial-messages",
    "--replay-user-messages",
    "--permission-prompt-tool",
    "stdio",
];

const RUNAWAY: [&str; 4] = [
    "--disallowedTools=EnterWorktree",
    "--disallowedTools=ExitWorktree",
    "--disallowedTools=CronCreate",
    "--disallowedTools=ScheduleWakeup",
];

fn variables(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn plan(
    settings: &AgentSettings,
    session: &SessionPlan,
    model: Option<&str>,
    environment: &[(&str, &str)],
    towline: &[(&str, &str)],
) -> LaunchPlan {
    let (environment, towline) = (variables(environment), variables(towline));
    let context = LaunchContext { model, towline: &towline, ..launch(session, &environment) };
    agent(settings.kind).plan(settings, &context)
}

fn argv(settings: &AgentSettings, session: &SessionPlan) -> Vec<String> {
    plan(settings, session, None, &[], &[]).argv
}

fn words(parts: &[&[&str]]) -> Vec<String> {
    parts.concat().into_iter().map(str::to_owned).collect()
}

fn full() -> AgentSettings {
    let docs = McpServer::program(vec!["docs-mcp".into(), "--all".into()]);
    AgentSettings {
        command: vec!["nice".into(), "claude".into()],
        model: Some("sonnet".into()),
        permission: Permission::Deny,
        allow: vec!["Bash(git *)".into(), "CronCreate".into()],
        deny: vec!["WebFetch".into(), "EnterWorktree".into()],
        system_append: Some("- Prefer small commits.".into()),
        dirs: vec!["../docs".into()],
        max_turns: Some(50),
        mcp: [("docs".to_owned(), docs)].into(),
        args: vec!["--effort".into(), "high".into()],
        ..settings()
    }
}

#[test]
fn without_settings_only_the_necessary_is_passed() {
    let wanted =
        words(&[&ALWAYS, &["--session-id", "s", "--permission-mode", "bypassPermissions"], &RUNAWAY]);
    assert_eq!(argv(&settings(), &fresh("s")), wanted);
}

#[test]
fn every_setting_is_passed() {
    let wanted = words(&[
        &["nice"],
        &ALWAYS,
        &["--session-id", "s", "--model", "sonnet", "--permission-mode", "default"],
        &["--allowedTools=Bash(git *)", "--allowedTools=CronCreate"],
        &["--disallowedTools=WebFetch", "--disallowedTools=EnterWorktree"],
        &["--disallowedTools=ExitWorktree", "--disallowedTools=ScheduleWakeup"],
        &["--add-dir=../docs"],
        &[r#"--mcp-config={"mcpServers":{"docs":{"args":["--all"],"command":"docs-mcp","type":"stdio"}}}"#],
        &["--append-system-prompt=- Prefer small commits."],
        &["--max-turns", "50"],
        &["--effort", "high"],
    ]);
    assert_eq!(argv(&full(), &fresh("s")), wanted);
}

#[test]
fn towlines_own_tools_are_offered_without_a_search() {
    let server = |name: &str| (name.to_owned(), McpServer::program(vec![format!("{name}-mcp")]));
    let mcp = [server("docs"), server(McpServer::TOWLINE)].into();
    let argv = argv(&AgentSettings { mcp, ..settings() }, &fresh("s"));
    let config = argv.iter().find_map(|word| word.strip_prefix("--mcp-config=")).expect("servers");
    let servers = &serde_json::from_str::<serde_json::Value>(config).expect("JSON")["mcpServers"];
    assert_eq!(servers["towline"]["alwaysLoad"], true);
    assert_eq!(servers["docs"].get("alwaysLoad"), None);
}

#[test]
fn the_provider_is_named_without_secrets() {
    let provider = |name: &str, value: &str| {
        let environment = BTreeMap::from([(name.to_owned(), value.to_owned())]);
        agent(Kind::Claude).provider(&settings(), &environment)
    };
    let cases = [
        (provider("HOME", "/home/user"), Some("https://api.anthropic.com")),
        (provider("ANTHROPIC_BASE_URL", "http://127.0.0.1:8080"), Some("http://127.0.0.1:8080")),
        (
            provider("ANTHROPIC_BASE_URL", "https://me:hush@proxy.example/key/hush?k=hush"),
            Some("https://proxy.example"),
        ),
        (provider("ANTHROPIC_BASE_URL", "no address"), None),
        (provider("CLAUDE_CODE_USE_BEDROCK", "1"), None),
    ];
    for (named, wanted) in cases {
        assert_eq!(named.as_deref(), wanted);
    }
}

#[test]
fn root_may_give_it_every_permission_only_in_a_sandbox() {
    let refuses = |permission, variable: (&str, &str)| {
        let environment = BTreeMap::from([(variable.0.to_owned(), variable.1.to_owned())]);
        let settings = AgentSettings { permission, ..settings() };
        agent(Kind::Claude).refuses_root(&settings, &environment).is_some()
    };
    assert!(refuses(Permission::Bypass, ("HOME", "/home/user")));
    assert!(refuses(Permission::Bypass, ("IS_SANDBOX", "true")));
    assert!(!refuses(Permission::Bypass, ("IS_SANDBOX", "1")));
    assert!(!refuses(Permission::Bypass, ("CLAUDE_CODE_BUBBLEWRAP", "1")));
    assert!(!refuses(Permission::Ask, ("HOME", "/home/user")));
}

#[test]
fn a_resumed_session_gets_the_same_settings_as_a_fresh_one() {
    let mut wanted = argv(&full(), &fresh("s"));
    let flag = wanted.iter_mut().find(|word| *word == "--session-id").expect("a session");
    *flag = "--resume".to_owned();
    assert_eq!(argv(&full(), &resume("s")), wanted);
}

#[test]
fn the_cli_asks_unless_it_may_do_everything() {
    let mode = |permission| {
        let argv = argv(&AgentSettings { permission, ..settings() }, &fresh("s"));
        let flag = argv.iter().position(|word| word == "--permission-mode").expect("a mode");
        argv[flag + 1].clone()
    };
    let modes = [Permission::Bypass, Permission::Ask, Permission::Deny].map(mode);
    assert_eq!(modes, ["bypassPermissions", "default", "default"]);
}

#[test]
fn the_goals_model_overrides_the_settings() {
    let argv = plan(&full(), &fresh("s"), Some("opus"), &[], &[]).argv;
    let model = argv.iter().position(|word| word == "--model").expect("a model");
    assert_eq!(argv[model + 1], "opus");
    assert!(!argv.contains(&"sonnet".to_owned()));
}

#[test]
fn the_prompt_is_in_no_argument_and_no_variable() {
    let plan = plan(&full(), &fresh("s"), None, &[("PATH", "/bin")], &[]);
    assert!(plan.argv.iter().chain(plan.env.values()).all(|word| !word.contains(PROMPT)));
}

/// What a person's shell may contain, and what each agent must not see of it.
const OUTSIDE: [(&str, &str); 22] = [
    ("PATH", "/bin"),
    ("HOME", "/home/user"),
    ("LC_ALL", "C.UTF-8"),
    ("XDG_CONFIG_HOME", "/home/user/.config"),
    ("https_proxy", "http://proxy"),
    ("HTTPS_PROXY", "http://proxy"),
    ("SSL_CERT_FILE", "/etc/ca.pem"),
    ("ANTHROPIC_API_KEY", "key"),
    ("CLAUDE_CONFIG_DIR", "/home/user/.claude"),
    ("CLAUDE_CODE_USE_BEDROCK", "0"),
    ("DISABLE_TELEMETRY", "1"),
    ("IS_SANDBOX", "1"),
    ("AWS_SECRET_ACCESS_KEY", "secret"),
    ("GOOGLE_APPLICATION_CREDENTIALS", "secret"),
    ("OPENAI_API_KEY", "secret"),
    ("GITHUB_TOKEN", "secret"),
    ("TOWLINE_TOKEN", "the operator's"),
    ("MY_PROXY_TOKEN", "token"),
    ("CLAUDECODE", "1"),
    ("CLAUDE_CODE_ENTRYPOINT", "cli"),
    ("CLAUDE_CODE_CHILD_SESSION", "1"),
    ("CLAUDE_BG_SOURCE", "x"),
];

const BASE: [(&str, &str); 7] = [
    ("PATH", "/bin"),
    ("HOME", "/home/user"),
    ("LC_ALL", "C.UTF-8"),
    ("XDG_CONFIG_HOME", "/home/user/.config"),
    ("https_proxy", "http://proxy"),
    ("HTTPS_PROXY", "http://proxy"),
    ("SSL_CERT_FILE", "/etc/ca.pem"),
];

const OWN: [(&str, &str); 5] = [
    ("ANTHROPIC_API_KEY", "key"),
    ("CLAUDE_CONFIG_DIR", "/home/user/.claude"),
    ("CLAUDE_CODE_USE_BEDROCK", "0"),
    ("DISABLE_TELEMETRY", "1"),
    ("IS_SANDBOX", "1"),
];

#[test]
fn the_environment_is_an_allow_list() {
    let plan = plan(&settings(), &fresh("s"), None, &OUTSIDE, &[]);
    assert_eq!(plan.env, variables(&[&BASE[..], &OWN[..]].concat()));
}

#[test]
fn the_scripted_agent_gets_no_credentials_at_all() {
    let settings = AgentSettings { kind: Kind::Script, ..settings() };
    assert_eq!(plan(&settings, &fresh("s"), None, &OUTSIDE, &[]).env, variables(&BASE));
}

#[test]
fn cloud_credentials_come_only_with_the_cloud_that_needs_them() {
    let with = |env: &[(&str, &str)]| {
        let settings = AgentSettings { env: variables(env), ..settings() };
        plan(&settings, &fresh("s"), None, &OUTSIDE, &[]).env
    };
    let has = |env: &BTreeMap<String, String>| {
        (env.contains_key("AWS_SECRET_ACCESS_KEY"), env.contains_key("GOOGLE_APPLICATION_CREDENTIALS"))
    };
    assert_eq!(has(&with(&[("CLAUDE_CODE_USE_BEDROCK", "1")])), (true, false));
    assert_eq!(has(&with(&[("CLAUDE_CODE_USE_VERTEX", "true")])), (false, true));
}

#[test]
fn settings_add_variables_and_towline_has_the_last_word() {
    let settings = AgentSettings {
        pass_env: vec!["MY_PROXY_TOKEN".into(), "NOT_SET".into()],
        env: variables(&[("ANTHROPIC_API_KEY", "other"), ("TOWLINE_GOAL", "mine"), ("EXTRA", "1")]),
        ..settings()
    };
    let env =
        plan(&settings, &fresh("s"), None, &OUTSIDE, &[("TOWLINE_GOAL", "g"), ("TOWLINE_TOKEN", "t")]).env;
    let mut wanted = variables(&[&BASE[..], &OWN[..]].concat());
    wanted.extend(variables(&[
        ("MY_PROXY_TOKEN", "token"),
        ("ANTHROPIC_API_KEY", "other"),
        ("EXTRA", "1"),
        ("TOWLINE_GOAL", "g"),
        ("TOWLINE_TOKEN", "t"),
    ]));
    assert_eq!(env, wanted);
}

#[test]
fn the_sign_in_hint_names_the_configured_command() {
    let hint = agent(Kind::Claude).sign_in_hint(&full());
    assert_eq!(hint, "run `nice claude` and then `/login`, or set ANTHROPIC_API_KEY");
}
