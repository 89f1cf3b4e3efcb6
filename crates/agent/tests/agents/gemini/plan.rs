//! The process to start.

use std::collections::BTreeMap;

use towline_agent::{
    AgentSettings, Kind, LaunchContext, LaunchPlan, Permission, Resuming, SignIn, SignInClue, Stdio, agent,
};
use towline_core::{LaunchProblem, SessionPlan};

use super::support::{PROMPT, fresh, launch, resume, settings};

fn plan(settings: &AgentSettings, session: &SessionPlan, model: Option<&str>) -> LaunchPlan {
    let variables = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
    };
    let environment = variables(&[
        ("PATH", "/bin"),
        ("GEMINI_API_KEY", "k"),
        ("GEMINI_CLI", "1"),
        ("ANTHROPIC_API_KEY", "other"),
    ]);
    let towline = variables(&[("TOWLINE_GOAL", "g")]);
    let context = LaunchContext { environment: &environment, model, ..launch(session, &towline) };
    agent(Kind::Gemini).plan(settings, &context)
}

#[test]
fn the_prompt_is_never_in_the_arguments_and_the_output_is_a_file() {
    let plan = plan(&settings(), &fresh(), None);
    let wanted =
        ["gemini", "--output-format", "stream-json", "--approval-mode", "yolo", "--session-id", "ours"];
    assert_eq!(plan.argv, wanted);
    assert_eq!(plan.stdio, Stdio::OutputFile);
    assert!(!plan.argv.iter().any(|word| word.contains(PROMPT)));
}

#[test]
fn no_setting_is_lost_on_a_resume() {
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let settings = AgentSettings {
        command: words(&["/opt/wrapped"]),
        model: Some("small".into()),
        dirs: words(&["../docs", "/b"]),
        args: words(&["--debug"]),
        ..settings()
    };
    let common = ["--include-directories=../docs", "--include-directories=/b", "--debug"];
    for (session, flag, model, wanted) in [
        (fresh(), ["--session-id", "ours"], None, "small"),
        (resume("theirs"), ["--resume", "theirs"], Some("large"), "large"),
    ] {
        let first = ["/opt/wrapped", "--output-format", "stream-json", "--approval-mode", "yolo"];
        let model_words = ["--model", wanted];
        let all = first.iter().chain(&flag).chain(&model_words).chain(&common);
        assert_eq!(plan(&settings, &session, model).argv, all.copied().collect::<Vec<_>>());
    }
}

/// By its kind, not by the name of its program, which may be a wrapper.
#[test]
fn what_is_known_over_acp_holds_here_too() {
    let settings = AgentSettings { command: vec!["/opt/wrapped".into()], ..settings() };
    let env: Vec<_> = plan(&settings, &fresh(), None).env.into_iter().collect();
    let wanted = [
        ("GEMINI_API_KEY", "k"),
        ("GEMINI_CLI_NO_RELAUNCH", "true"),
        ("GEMINI_CLI_TRUST_WORKSPACE", "true"),
        ("PATH", "/bin"),
        ("TOWLINE_GOAL", "g"),
    ];
    assert_eq!(env, wanted.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let gemini = agent(Kind::Gemini);
    assert_eq!(gemini.version_command(&settings), Some(vec!["/opt/wrapped".into(), "--version".into()]));
    assert_eq!(gemini.tested(&settings).map(|tested| tested.to_string()).as_deref(), Some("0.61.0"));
    assert!(gemini.install_hint(&settings).is_some_and(|hint| hint.contains("@google/gemini-cli")));
    assert_eq!(gemini.resuming(&settings), Resuming::Possible);
    let clues = ["GEMINI_API_KEY", "GOOGLE_API_KEY"].map(|name| SignInClue::Variable(name.into()));
    assert_eq!(gemini.sign_in(&settings, &BTreeMap::new()), SignIn::ShownBy(clues.into()));
}

#[test]
fn rules_without_effect_prevent_the_start() {
    let (session, none) = (fresh(), BTreeMap::new());
    let refuses = |permission, deny: &[&str]| {
        let deny = deny.iter().map(|&rule| rule.to_owned()).collect();
        let settings = AgentSettings { permission, deny, ..settings() };
        agent(Kind::Gemini).refuses(&settings, &launch(&session, &none))
    };
    assert_eq!(refuses(Permission::Bypass, &[]), None);
    for (permission, deny) in
        [(Permission::Ask, &[][..]), (Permission::Deny, &[]), (Permission::Bypass, &["WebFetch"])]
    {
        let Some(LaunchProblem::Other { message }) = refuses(permission, deny) else { panic!("not refused") };
        assert!(message.contains("kind = \"acp\""), "{message}");
    }
}
