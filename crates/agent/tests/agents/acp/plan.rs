//! The processes to start, for known programs and for any other.

use std::collections::BTreeMap;

use towline_agent::{AgentSettings, Kind, LaunchContext, LaunchPlan, Permission, Resuming, agent};

use super::support::{fresh, launch, settings};

fn plan(settings: &AgentSettings, environment: &[(&str, &str)]) -> LaunchPlan {
    let environment = environment.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    let (session, none) = (fresh(), BTreeMap::new());
    let context = LaunchContext { environment: &environment, ..launch(&session, &none) };
    agent(Kind::Acp).plan(settings, &context)
}

fn with_command(words: &[&str]) -> AgentSettings {
    AgentSettings { command: words.iter().map(|&word| word.to_owned()).collect(), ..settings("x") }
}

#[test]
fn an_unknown_program_is_started_as_configured() {
    let settings = AgentSettings {
        model: Some("m".into()),
        args: vec!["--last".into()],
        ..with_command(&["/opt/my-agent", "serve", "--stdio"])
    };
    let plan = plan(&settings, &[("PATH", "/bin"), ("GEMINI_API_KEY", "k"), ("SECRET", "s")]);
    assert_eq!(plan.argv, ["/opt/my-agent", "serve", "--stdio", "--last"]);
    assert_eq!(plan.env, [("PATH".to_owned(), "/bin".to_owned())].into());
}

#[test]
fn gemini_gets_as_arguments_what_the_protocol_cannot_set() {
    let settings = AgentSettings {
        model: Some("pro".into()),
        dirs: vec!["/docs".into()],
        ..with_command(&["/usr/local/bin/gemini"])
    };
    let found = plan(
        &settings,
        &[
            ("GEMINI_API_KEY", "k"),
            ("GOOGLE_CLOUD_PROJECT", "p"),
            ("GEMINI_CLI", "1"),
            ("OPENAI_API_KEY", "o"),
        ],
    );
    assert_eq!(
        found.argv,
        ["/usr/local/bin/gemini", "--acp", "--model", "pro", "--include-directories=/docs"]
    );
    let wanted = [
        ("GEMINI_API_KEY", "k"),
        ("GEMINI_CLI_NO_RELAUNCH", "true"),
        ("GEMINI_CLI_TRUST_WORKSPACE", "true"),
        ("GOOGLE_CLOUD_PROJECT", "p"),
    ];
    assert_eq!(found.env, wanted.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    assert_eq!(plan(&with_command(&["gemini", "--acp"]), &[]).argv, ["gemini", "--acp"]);
}

#[test]
fn opencode_works_in_its_directory_and_asks_when_there_is_something_to_decide() {
    let bypass = plan(&with_command(&["opencode"]), &[("OPENAI_API_KEY", "o"), ("OPENCODE_PID", "7")]);
    assert_eq!(bypass.argv, ["opencode", "acp", "--cwd", "/workspace"]);
    assert_eq!(bypass.env.get("OPENCODE_PERMISSION"), None);
    assert_eq!(bypass.env.get("OPENAI_API_KEY").map(String::as_str), Some("o"));
    assert_eq!(bypass.env.get("OPENCODE_PID"), None);
    let ask = AgentSettings { permission: Permission::Ask, ..with_command(&["opencode", "acp"]) };
    let denies = AgentSettings { deny: vec!["Bash(rm *)".into()], ..with_command(&["opencode", "acp"]) };
    for settings in [ask, denies] {
        let found = plan(&settings, &[]);
        assert_eq!(found.argv, ["opencode", "acp", "--cwd", "/workspace"]);
        assert_eq!(found.env.get("OPENCODE_PERMISSION").map(String::as_str), Some(r#"{"*":"ask"}"#));
    }
}

#[test]
fn the_settings_override_our_defaults() {
    let settings = AgentSettings {
        env: [("GEMINI_CLI_TRUST_WORKSPACE".to_owned(), "false".to_owned())].into(),
        ..with_command(&["gemini"])
    };
    let found = plan(&settings, &[]);
    assert_eq!(found.env.get("GEMINI_CLI_TRUST_WORKSPACE").map(String::as_str), Some("false"));
}

#[test]
fn resuming_and_sign_in_are_known_before_the_start() {
    let cases = [
        ("gemini", Resuming::Never, "GEMINI_API_KEY"),
        ("opencode", Resuming::Possible, "`opencode auth login`"),
        ("other", Resuming::Possible, "`other`"),
    ];
    for (program, resuming, hint) in cases {
        let settings = with_command(&[program]);
        assert_eq!(agent(Kind::Acp).resuming(&settings), resuming, "{program}");
        assert!(agent(Kind::Acp).sign_in_hint(&settings).contains(hint), "{program}");
    }
}
