//! The documented sample: every key there is, once.

mod support;

use std::collections::BTreeMap;
use std::time::Duration;

use support::{flags, repository, user};
use towline_agent::{
    AgentSettings, ApiSettings, CliSettings, Fetch, Kind, McpServer, OpenaiApi, Permission, Provider,
};
use towline_config::{
    Channel, Config, LayerName, NotifySettings, ServerSettings, SharedBudgets, Warning, WorkspaceSettings,
    load,
};
use towline_core::{
    AgentName, BaselineMode, Budget, Caps, Check, CheckKind, Confirm, MicroUsd, Price, Probe, SandboxMode,
    SandboxSettings, SessionLimits, Timeouts, Tokens, WorkspaceMode,
};

const SAMPLE: &str = include_str!("sample.toml");

fn strings(items: &[&str]) -> Vec<String> {
    items.iter().map(|&item| item.to_owned()).collect()
}

const DAY: Duration = Duration::from_secs(24 * 3_600);

fn sample_agent() -> AgentSettings {
    AgentSettings {
        kind: Kind::Claude,
        command: strings(&["claude"]),
        model: Some("sonnet".to_owned()),
        permission: Permission::Bypass,
        allow: strings(&["Bash(git *)", "Edit"]),
        deny: strings(&["WebFetch"]),
        system_append: Some("Prefer small commits.".to_owned()),
        dirs: strings(&["../docs"]),
        max_turns: Some(50),
        mcp: BTreeMap::from([("docs".to_owned(), McpServer::program(strings(&["docs-mcp"])))]),
        args: vec![],
        env: BTreeMap::from([("ANTHROPIC_BASE_URL".to_owned(), "http://127.0.0.1:9".to_owned())]),
        pass_env: strings(&["MY_PROXY_TOKEN"]),
        sessions: SessionLimits {
            context_threshold: 0.7,
            idle: DAY,
            age: DAY * 30,
            outlives_process: true,
            compact_focus: None,
        },
        timeouts: Timeouts {
            startup: Duration::from_secs(60),
            idle: Duration::from_secs(600),
            turn: Duration::from_secs(3_600),
        },
        stop_grace: Duration::from_secs(5),
        account: Some("anthropic-main".to_owned()),
        cli: CliSettings::default(),
        api: ApiSettings::default(),
        mcp_file: None,
        prices: BTreeMap::new(),
    }
}

fn sample_prices() -> BTreeMap<String, Price> {
    let price = Price {
        input: MicroUsd(100_000),
        output: MicroUsd(400_000),
        cache_read: Some(MicroUsd(10_000)),
        cache_write: Some(MicroUsd(200_000)),
        cache_write_1h: None,
    };
    BTreeMap::from([("qwen3".to_owned(), price)])
}

/// An agent with nothing but the defaults.
fn plain_agent(kind: Kind, command: &[&str]) -> AgentSettings {
    AgentSettings {
        kind,
        command: strings(command),
        model: None,
        allow: vec![],
        deny: vec![],
        system_append: None,
        dirs: vec![],
        max_turns: None,
        mcp: BTreeMap::new(),
        env: BTreeMap::new(),
        pass_env: vec![],
        account: None,
        ..sample_agent()
    }
}

fn local_agent() -> AgentSettings {
    AgentSettings {
        model: Some("qwen3".to_owned()),
        api: ApiSettings {
            provider: Provider::Openai,
            api: Some(OpenaiApi::Chat),
            base_url: Some("http://127.0.0.1:11434/v1".to_owned()),
            key_env: Some("LOCAL_KEY".to_owned()),
            context_window: Some(32_768),
            max_output: Some(4_096),
            fetch: Fetch::On,
        },
        ..plain_agent(Kind::Builtin, &[])
    }
}

fn sample_config() -> Config {
    Config {
        agents_in_order: vec![AgentName::new("claude")],
        briefing: true,
        baseline: BaselineMode::Red,
        budget: Budget {
            turns: Some(40),
            attempts: Some(10),
            wall: Some(Duration::from_secs(4 * 3_600)),
            tokens: Some(Tokens(2_000_000)),
            usd: Some(MicroUsd(5_000_000)),
            errors: Some(5),
            denials: Some(5),
        },
        checks: vec![Check::new(
            "tests",
            CheckKind::Command { run: "cargo test".to_owned(), stdout: Some("test result: ok".to_owned()) },
            Duration::from_secs(1_800),
        )],
        protect: strings(&["tests/**", "towline.toml"]),
        workspace: WorkspaceSettings {
            mode: Some(WorkspaceMode::Clone),
            base: Some("HEAD".to_owned()),
            setup: Some(strings(&["npm ci"])),
            copy: Some(strings(&[".env"])),
            generated: Some(strings(&["src/schema.rs"])),
            pass_env: Some(strings(&["DATABASE_URL"])),
            warm: Some(strings(&["node_modules"])),
            confirm: Some(Confirm::Clean),
        },
        retention: Duration::from_secs(30 * 24 * 3_600),
        free_space: 2_000_000_000,
        sandbox: SandboxSettings { mode: SandboxMode::Auto, ..SandboxSettings::default() },
        caps: Caps {
            pool: 4,
            project: Some(2),
            agents: BTreeMap::from([(AgentName::new("codex"), 1)]),
            accounts: BTreeMap::from([("anthropic-main".to_owned(), 3)]),
            labels: BTreeMap::from([("database".to_owned(), 1)]),
        },
        shared_budgets: SharedBudgets {
            day: Some(MicroUsd(50_000_000)),
            project: Some(MicroUsd(20_000_000)),
            pool: Some(MicroUsd(500_000_000)),
        },
        server: ServerSettings::default(),
        notify: NotifySettings {
            all: Channel {
                command: Some("notify-send Towline \"$TOWLINE_TEXT\"".to_owned()),
                webhook: Some("https://example.org/hook".to_owned()),
            },
            secret_env: Some("HOOK_SECRET".to_owned()),
            channels: BTreeMap::from([(
                "slack".to_owned(),
                Channel { command: None, webhook: Some("https://example.org/slack".to_owned()) },
            )]),
        },
        agents: default_agents()
            .into_iter()
            .chain([("claude".to_owned(), sample_agent()), ("local".to_owned(), local_agent())])
            .map(|(name, agent)| (name, AgentSettings { prices: sample_prices(), ..agent }))
            .collect(),
    }
}

#[test]
fn every_key_of_the_sample_arrives() {
    let loaded = load(&[user(SAMPLE), flags(&[("defaults.agents", "[\"claude\"]")])]).expect("loads");
    assert_eq!(loaded.config, sample_config());
}

#[test]
fn every_key_of_the_sample_without_effect_is_warned_of_by_name_and_place() {
    let loaded = load(&[user(SAMPLE), flags(&[("defaults.agents", "[\"claude\"]")])]).expect("loads");
    let warnings = loaded.warnings.iter().map(Warning::to_string).collect::<Vec<_>>();
    assert_eq!(
        warnings,
        ["`defaults.max_parallel` is not used by this version; set in /home/config.toml (line 3, column 1)"]
    );
}

/// Differs from the sample and the defaults in every key that acts, so that a key that is read and then lost shows.
#[test]
fn every_key_changes_what_it_is_for() {
    let text = r#"
        checks = [{ run = "true", timeout = "1m", stdout = "x" }]
        protect.paths = ["a"]
        workspace = { mode = "worktree", base = "main", setup = ["b"], copy = ["c"], generated = ["d/**"], pass_env = ["_E1"], warm = ["./f/", "g//h"], confirm = "never" }
        retention = { logs = "8d", free = "500MB" }
        notify = { command = "o", webhook = "http://q", secret_env = "R", channels.s = { command = "t", webhook = "https://u" } }
        server = { listen = "[::1]:1", hosts = ["v"] }
        caps = { pool = 1, project = 2, agents.one = 3, accounts.w = 4, labels.x = 5 }
        budget.day.usd = 6
        budget.project.usd = 7
        budget.pool.usd = 8
        budget.turns = 1
        budget.attempts = 2
        budget.wall = "3s"
        budget.tokens = 4
        budget.usd = 5
        budget.errors = 6
        budget.denials = 7
        baseline.mode = "off"
        [defaults]
        agents = ["one", "claude"]
        briefing = false
        [agents.one]
        kind = "script"
        command = ["d", "e"]
        model = "f"
        permission = "deny"
        allow = ["g"]
        deny = ["h"]
        system_append = ""
        dirs = ["i"]
        max_turns = 8
        mcp.j.command = ["k"]
        args = ["l"]
        env.m = ""
        pass_env = ["n"]
        startup_timeout = "9s"
        idle_timeout = "10s"
        turn_timeout = "11s"
        stop_grace = "12s"
        context_threshold = 0.13
        compact_focus = "p"
        session_idle_limit = "14s"
        session_age_limit = "15s"
    "#;
    let one = AgentSettings {
        kind: Kind::Script,
        command: strings(&["d", "e"]),
        model: Some("f".to_owned()),
        permission: Permission::Deny,
        allow: strings(&["g"]),
        deny: strings(&["h"]),
        system_append: Some(String::new()),
        dirs: strings(&["i"]),
        max_turns: Some(8),
        mcp: BTreeMap::from([("j".to_owned(), McpServer::program(strings(&["k"])))]),
        args: strings(&["l"]),
        env: BTreeMap::from([("m".to_owned(), String::new())]),
        pass_env: strings(&["n"]),
        sessions: SessionLimits {
            context_threshold: 0.13,
            idle: Duration::from_secs(14),
            age: Duration::from_secs(15),
            outlives_process: true,
            compact_focus: Some("p".to_owned()),
        },
        timeouts: Timeouts {
            startup: Duration::from_secs(9),
            idle: Duration::from_secs(10),
            turn: Duration::from_secs(11),
        },
        stop_grace: Duration::from_secs(12),
        account: None,
        cli: CliSettings::default(),
        api: ApiSettings::default(),
        mcp_file: None,
        prices: BTreeMap::new(),
    };
    let expected = Config {
        baseline: BaselineMode::Off,
        agents_in_order: vec![AgentName::new("one"), AgentName::new("claude")],
        briefing: false,
        budget: Budget {
            turns: Some(1),
            attempts: Some(2),
            wall: Some(Duration::from_secs(3)),
            tokens: Some(Tokens(4)),
            usd: Some(MicroUsd(5_000_000)),
            errors: Some(6),
            denials: Some(7),
        },
        checks: vec![Check::new(
            "true",
            CheckKind::Command { run: "true".to_owned(), stdout: Some("x".to_owned()) },
            Duration::from_secs(60),
        )],
        protect: strings(&["a"]),
        workspace: WorkspaceSettings {
            mode: Some(WorkspaceMode::Clone),
            base: Some("main".to_owned()),
            setup: Some(strings(&["b"])),
            copy: Some(strings(&["c"])),
            generated: Some(strings(&["d/**"])),
            pass_env: Some(strings(&["_E1"])),
            warm: Some(strings(&["f", "g/h"])),
            confirm: Some(Confirm::Never),
        },
        retention: Duration::from_secs(8 * 24 * 3_600),
        free_space: 500_000_000,
        sandbox: SandboxSettings { mode: SandboxMode::Auto, ..SandboxSettings::default() },
        caps: Caps {
            pool: 1,
            project: Some(2),
            agents: BTreeMap::from([(AgentName::new("one"), 3)]),
            accounts: BTreeMap::from([("w".to_owned(), 4)]),
            labels: BTreeMap::from([("x".to_owned(), 5)]),
        },
        shared_budgets: SharedBudgets {
            day: Some(MicroUsd(6_000_000)),
            project: Some(MicroUsd(7_000_000)),
            pool: Some(MicroUsd(8_000_000)),
        },
        server: ServerSettings { listen: "[::1]:1".parse().expect("address"), hosts: strings(&["v"]) },
        notify: NotifySettings {
            all: Channel { command: Some("o".to_owned()), webhook: Some("http://q".to_owned()) },
            secret_env: Some("R".to_owned()),
            channels: BTreeMap::from([(
                "s".to_owned(),
                Channel { command: Some("t".to_owned()), webhook: Some("https://u".to_owned()) },
            )]),
        },
        agents: default_agents().into_iter().chain([("one".to_owned(), one)]).collect(),
    };
    let loaded = load(&[user(text)]).expect("loads");
    assert_eq!((loaded.config, loaded.warnings), (expected, vec![]));
}

/// The agents that are there without any configuration.
fn default_agents() -> BTreeMap<String, AgentSettings> {
    let agents = [
        ("claude", plain_agent(Kind::Claude, &["claude"])),
        ("codex", plain_agent(Kind::Codex, &["codex"])),
        ("gemini", plain_agent(Kind::Acp, &["gemini", "--acp"])),
        ("opencode", plain_agent(Kind::Acp, &["opencode", "acp"])),
    ];
    agents.into_iter().map(|(name, settings)| (name.to_owned(), settings)).collect()
}

#[test]
fn without_any_layer_the_defaults_hold() {
    let loaded = load(&[]).expect("loads");
    let expected = Config {
        baseline: BaselineMode::Auto,
        agents_in_order: vec![AgentName::new("claude")],
        briefing: true,
        budget: Budget::default(),
        checks: vec![],
        protect: vec![],
        workspace: WorkspaceSettings {
            mode: Some(WorkspaceMode::Clone),
            base: Some("HEAD".to_owned()),
            setup: None,
            copy: None,
            generated: None,
            pass_env: None,
            warm: None,
            confirm: None,
        },
        retention: Duration::from_secs(30 * 24 * 3_600),
        free_space: 2_000_000_000,
        sandbox: SandboxSettings { mode: SandboxMode::Auto, ..SandboxSettings::default() },
        caps: Caps::default(),
        shared_budgets: SharedBudgets::default(),
        server: ServerSettings::default(),
        notify: NotifySettings::default(),
        agents: default_agents(),
    };
    let sources: BTreeMap<_, _> = default_keys().map(|key| (key, LayerName::Defaults)).collect();
    assert_eq!(loaded.config, expected);
    assert_eq!((loaded.sources, loaded.warnings), (sources, vec![]));
}

/// The keys that the defaults set.
fn default_keys() -> impl Iterator<Item = String> {
    let of_agents = default_agents().into_keys().flat_map(|name| {
        [
            "command",
            "context_threshold",
            "idle_timeout",
            "kind",
            "permission",
            "session_age_limit",
            "session_idle_limit",
            "startup_timeout",
            "stop_grace",
            "turn_timeout",
        ]
        .map(|key| format!("agents.{name}.{key}"))
    });
    let others = [
        "budget.attempts",
        "budget.denials",
        "budget.errors",
        "caps.pool",
        "defaults.agents",
        "defaults.briefing",
        "retention.free",
        "retention.logs",
        "sandbox.checks_network",
        "sandbox.mode",
        "sandbox.network",
        "sandbox.setup_network",
        "server.listen",
        "workspace.base",
        "workspace.mode",
    ];
    of_agents.chain(others.map(str::to_owned))
}

#[test]
fn the_sources_of_the_sample_name_its_file() {
    let loaded = load(&[user(SAMPLE), flags(&[("defaults.agents", "[\"claude\"]")])]).expect("loads");
    let by = |layer: &LayerName| {
        let of_layer = loaded.sources.iter().filter(|(_, source)| *source == layer);
        of_layer.map(|(key, _)| key.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(by(&LayerName::Flags), ["defaults.agents"]);
    let of_file = by(&user("").name);
    for key in ["checks", "agents.claude.env.ANTHROPIC_BASE_URL", "agents.claude.mcp.docs.command"] {
        assert!(of_file.contains(&key), "{key} is not in {of_file:?}");
    }
}

#[test]
fn every_kind_of_check_is_read() {
    let text = r#"
        [[checks]]
        run = "cargo test"
        [[checks]]
        file = "docs/CHANGES.md"
        matches = "^## 2"
        timeout = "1m"
        [[checks]]
        untouched = ["src/**", "docs"]
        [[checks]]
        committed = true
        [[checks]]
        program = ["tools/judge", "--strict", "x"]
        [[checks]]
        name = "mine"
        program = ["judge"]
        [[checks]]
        committed = true
        [[checks]]
        run = "pytest"
        floor = false
        probe = "revert"
        [[checks]]
        judge = "It fixes the cause."
        [[checks]]
        name = "review"
        judge = """
        It fixes the cause.
        No special case."""
        agent = "claude"
    "#;
    let check = |name: &str, kind| Check::new(name, kind, Duration::from_secs(1_800));
    let file = CheckKind::File { path: "docs/CHANGES.md".to_owned(), matches: Some("^## 2".to_owned()) };
    let expected = [
        check("cargo test", CheckKind::Command { run: "cargo test".to_owned(), stdout: None }),
        Check { timeout: Duration::from_secs(60), ..check("docs/CHANGES.md", file) },
        check("untouched", CheckKind::Untouched { paths: strings(&["src/**", "docs"]) }),
        check("committed", CheckKind::Committed),
        check(
            "tools/judge --strict x",
            CheckKind::Program { argv: strings(&["tools/judge", "--strict", "x"]) },
        ),
        check("mine", CheckKind::Program { argv: strings(&["judge"]) }),
        check("committed 2", CheckKind::Committed),
        Check {
            floor: false,
            probe: Some(Probe::Revert),
            ..check("pytest", CheckKind::Command { run: "pytest".to_owned(), stdout: None })
        },
        check("judge", CheckKind::Judge { rubric: "It fixes the cause.".to_owned(), agent: None }),
        check(
            "review",
            CheckKind::Judge {
                rubric: "        It fixes the cause.\n        No special case.".to_owned(),
                agent: Some(AgentName::new("claude")),
            },
        ),
    ];
    assert_eq!(load(&[repository(text)]).expect("loads").config.checks, expected);
}
