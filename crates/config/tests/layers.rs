//! Later layers win, key by key.

mod support;

use std::collections::BTreeMap;
use std::time::Duration;

use support::{FILE, environment, error, error_of, flags, loaded, repository, repository_name, user};
use towline_config::{Layer, LayerContent, LayerName, Loaded, SharedBudgets, load, resolve_agent};
use towline_core::{Budget, MicroUsd, WorkspaceMode};

fn model(loaded: &Loaded) -> Option<&str> {
    loaded.config.agents["claude"].model.as_deref()
}

#[test]
fn each_layer_wins_over_those_before_it_and_sources_show_which_did() {
    let user = user("[agents.claude]\nmodel = \"user\"");
    let layers = [
        user.clone(),
        repository("agents.claude.model = \"repository\""),
        environment(&[("TOWLINE_SET_agents__claude__model", "environment")]),
        flags(&[("agents.claude.model", "flags")]),
    ];
    let names = [user.name, repository_name(), LayerName::Environment, LayerName::Flags];
    let values = ["user", "repository", "environment", "flags"];
    for count in 1..=layers.len() {
        let loaded = load(&layers[..count]).expect("loads");
        assert_eq!(model(&loaded), Some(values[count - 1]));
        assert_eq!(loaded.sources["agents.claude.model"], names[count - 1]);
        assert_eq!(loaded.sources["agents.claude.kind"], LayerName::Defaults);
    }
}

#[test]
fn a_repository_cannot_set_what_is_about_all_projects() {
    let expected = "`retention.logs` cannot be set in /repo/towline.toml (line 2, column 1); it is about all your projects, \
                    not about one repository: put it into your own file, usually ~/.config/towline/config.toml";
    assert_eq!(error("[retention]\nlogs = \"0s\""), expected);
    for (key, value) in [
        ("retention.free", "\"1GB\""),
        ("budget.day.usd", "1"),
        ("budget.pool.usd", "1"),
        ("caps.pool", "1"),
        ("caps.project", "1"),
        ("caps.agents.codex", "1"),
        ("caps.accounts.main", "1"),
        ("caps.labels.database", "1"),
        ("server.listen", "\"0.0.0.0:1\""),
        ("server.hosts", "[\"a\"]"),
        ("notify.command", "\"true\""),
        ("notify.webhook", "\"https://example.org\""),
        ("notify.secret_env", "\"A\""),
        ("notify.channels.chat.command", "\"true\""),
        ("notify.channels.chat.webhook", "\"https://example.org\""),
    ] {
        let message = error(&format!("{key} = {value}"));
        assert!(
            message.starts_with(&format!("`{key}` cannot be set in {FILE} (line 1, column ")),
            "{message}"
        );
        let ours = [
            environment(&[(&format!("TOWLINE_SET_{}", key.replace('.', "__")), value)]),
            flags(&[(key, value)]),
            user(&format!("{key} = {value}")),
        ];
        for layer in ours {
            let name = layer.name.clone();
            let loaded = load(&[layer]).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!((&loaded.sources[key], loaded.warnings), (&name, vec![]));
        }
    }
}

#[test]
fn a_repository_may_limit_what_its_own_goals_spend_in_a_day() {
    let loaded =
        load(&[user("budget.project.usd = 5"), repository("budget.project.usd = 2.5")]).expect("loads");
    let expected = SharedBudgets { project: Some(MicroUsd(2_500_000)), ..SharedBudgets::default() };
    assert_eq!((loaded.config.shared_budgets, loaded.warnings), (expected, vec![]));
}

#[test]
fn tables_merge_and_arrays_replace() {
    let below =
        "protect.paths = [\"a\", \"b\"]\nagents.claude.env = { A = \"1\", B = \"1\" }\nbudget.usd = 1";
    let above = "protect.paths = [\"c\"]\nagents.claude.env = { B = \"2\" }\nbudget.turns = 3";
    let config = load(&[user(below), repository(above)]).expect("loads").config;
    assert_eq!(config.protect, ["c"]);
    let env = [("A", "1"), ("B", "2")].map(|(key, value)| (key.to_owned(), value.to_owned()));
    assert_eq!(config.agents["claude"].env, BTreeMap::from(env));
    let budget = Budget { usd: Some(MicroUsd(1_000_000)), turns: Some(3), ..Budget::default() };
    assert_eq!(config.budget, budget);
}

#[test]
fn the_checks_of_a_later_layer_replace_the_earlier_list() {
    let below = user("[[checks]]\nname = \"one\"\nrun = \"1\"\n[[checks]]\nname = \"two\"\nrun = \"2\"");
    let config = load(&[below, repository("[[checks]]\nname = \"two\"\nrun = \"3\"")]).expect("loads").config;
    let checks: Vec<_> = config.checks.iter().map(|check| (check.name.as_str(), check.describe())).collect();
    assert_eq!(checks, [("two", "`3`".to_owned())]);
}

#[test]
fn single_values_are_toml_when_they_read_as_toml_and_strings_when_not() {
    let loaded = load(&[
        environment(&[
            ("TOWLINE_SET_budget__turns", "7"),
            ("TOWLINE_SET_budget__usd", "0.004"),
            ("TOWLINE_SET_budget__wall", "1h 30m"),
            ("TOWLINE_SET_defaults__briefing", "false"),
            ("TOWLINE_SET_protect__paths", "[\"a\", \"b\"]"),
            ("TOWLINE_SET_agents__claude__env", "{ A__B = \"c\" }"),
        ]),
        flags(&[
            ("agents.claude.system_append", "two words = \"quoted\""),
            ("agents.claude.model", "\"opus\""),
            ("checks", "[{ run = \"cargo test\" }]"),
        ]),
    ])
    .expect("loads");
    let config = &loaded.config;
    let budget = Budget {
        turns: Some(7),
        usd: Some(MicroUsd(4_000)),
        wall: Some(Duration::from_secs(5_400)),
        ..Budget::default()
    };
    assert_eq!(config.budget, budget);
    assert!(!config.briefing);
    assert_eq!(config.protect, ["a", "b"]);
    let claude = &config.agents["claude"];
    assert_eq!(claude.env, BTreeMap::from([("A__B".to_owned(), "c".to_owned())]));
    assert_eq!(claude.system_append.as_deref(), Some("two words = \"quoted\""));
    assert_eq!(model(&loaded), Some("opus"));
    assert_eq!(config.checks.iter().map(|check| check.name.as_str()).collect::<Vec<_>>(), ["cargo test"]);
}

#[test]
fn a_number_is_a_text_where_a_text_is_wanted() {
    let loaded =
        load(&[flags(&[("agents.claude.env.PORT", "8080"), ("agents.claude.model", "4.5")])]).expect("loads");
    assert_eq!(model(&loaded), Some("4.5"));
    assert_eq!(loaded.config.agents["claude"].env["PORT"], "8080");
}

#[test]
fn single_settings_alone_can_name_a_new_agent() {
    let pairs = [("agents.fast.kind", "script"), ("agents.fast.command", "[\"x\"]")];
    let config = load(&[flags(&pairs)]).expect("loads").config;
    assert_eq!(config.agents["fast"].command, ["x"]);
}

#[test]
fn environment_keys_are_taken_with_and_without_their_prefix() {
    for key in ["TOWLINE_SET_agents__claude__model", "agents__claude__model", "agents.claude.model"] {
        let pairs = LayerContent::Pairs(vec![(key.to_owned(), "opus".to_owned())]);
        let loaded = load(&[Layer { name: LayerName::Environment, content: pairs }]).expect("loads");
        assert_eq!(model(&loaded), Some("opus"), "{key}");
    }
}

#[test]
fn wrong_single_settings_are_refused_by_their_layer() {
    for (layer, expected) in [
        (
            environment(&[("TOWLINE_SET_agents__claude__modle", "opus")]),
            "unknown key `agents.claude.modle` in the environment (TOWLINE_SET_…); \
             did you mean `agents.claude.model`?",
        ),
        (
            environment(&[("TOWLINE_SET_AGENTS__CLAUDE__MODEL", "opus")]),
            "unknown key `AGENTS` in the environment (TOWLINE_SET_…); did you mean `agents`?",
        ),
        (
            flags(&[("budget.turns", "many")]),
            "`budget.turns` cannot be a string in the command line; \
             write a whole number from 0, such as `10`",
        ),
        (
            flags(&[("checks.name", "x")]),
            "`checks` has no single keys in the command line; set `checks` as a whole",
        ),
        (
            flags(&[("budget", "5")]),
            "`budget` cannot be an integer in the command line; it holds other keys: write it as `[budget]`",
        ),
        (
            flags(&[("", "5")]),
            "unknown key `\"\"` in the command line; \
             known keys there: budget, checks, protect, workspace, defaults, caps, server, baseline, sandbox, retention, agents, prices, notify",
        ),
    ] {
        assert_eq!(error_of(&[layer]), expected);
    }
}

#[test]
fn a_wrong_value_is_an_error_even_if_a_later_layer_replaces_it() {
    let message = error_of(&[user("budget.wall = \"soon\""), repository("budget.wall = \"1h\"")]);
    assert!(message.contains("/home/config.toml (line 1, column 15)"), "{message}");
}

#[test]
fn where_the_agent_works_is_the_last_word_of_the_layers() {
    let below = || user("workspace.mode = \"in-place\"");
    let above = repository("workspace.mode = \"worktree\"");
    let modes = [vec![], vec![below()], vec![below(), above]]
        .map(|layers| load(&layers).unwrap_or_else(|error| panic!("{error}")).config.workspace.mode);
    assert_eq!(modes, [WorkspaceMode::Clone, WorkspaceMode::InPlace, WorkspaceMode::Clone].map(Some));
}

#[test]
fn an_agent_is_found_by_its_name_and_an_unknown_one_is_answered_with_the_known_ones() {
    let config = loaded("[agents.fast]\nkind = \"script\"\ncommand = [\"x\"]").config;
    assert_eq!(
        resolve_agent(&config, "fast").map(|agent| agent.command.as_slice()),
        Ok(&["x".to_owned()][..])
    );
    let unknown =
        |name| resolve_agent(&config, name).map_or_else(|error| error.to_string(), |_| String::new());
    assert_eq!(
        unknown("calude"),
        "unknown agent `calude`; known agents: claude, codex, fast, gemini, opencode; did you mean `claude`?"
    );
    assert_eq!(unknown("gpt"), "unknown agent `gpt`; known agents: claude, codex, fast, gemini, opencode");
}
