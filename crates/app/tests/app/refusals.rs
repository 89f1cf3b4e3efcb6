//! Requests that cannot become goals: each is an error of usage with its reason, and nothing is created.

use std::path::PathBuf;

use towline_api::ErrorKind;
use towline_app::{Error, Request};
use towline_core::BudgetChange;

use crate::desk::Desk;

/// Drafts a goal and checks that it is refused with all of `wanted` and leaves nothing behind.
async fn refused(desk: &Desk, request: Request, wanted: &[&str]) {
    let shown = format!("{request:?}");
    let state = || -> Vec<PathBuf> {
        let entries = std::fs::read_dir(desk.home.towline()).into_iter().flatten();
        entries.map(|entry| entry.expect("an entry").path()).collect()
    };
    let before = state();
    let error = desk.draft(request).await.err().unwrap_or_else(|| panic!("{shown} was not refused"));
    assert_eq!(error.kind(), ErrorKind::Usage, "{shown}: {error}");
    let message = format!("{} {:?}", error.message(), error.way_out());
    for text in wanted {
        assert!(message.contains(text), "{shown}: no {text:?} in {message}");
    }
    assert_eq!(state(), before, "{shown}: something was created");
    assert_eq!(desk.project.git(["for-each-ref", "refs/towline", "refs/heads/towline"]), "", "{shown}");
}

#[tokio::test]
async fn wrong_flags_are_refused_with_the_fix() {
    let desk = Desk::new("");
    let request = Request::default;
    let agents = vec!["frist".to_owned()];
    let wanted = ["unknown agent `frist`", "did you mean `first`?"];
    refused(&desk, Request { agents, ..request() }, &wanted).await;
    let base = Some("mian".to_owned());
    refused(&desk, Request { base, ..request() }, &["mian", "main"]).await;
    let checks = vec![" ".to_owned()];
    refused(&desk, Request { checks, ..request() }, &["a check is empty"]).await;
    let budget: Vec<BudgetChange> = vec!["attempts=0".parse().expect("a budget")];
    refused(&desk, Request { budget, ..request() }, &["the budget `attempts` is 0", "attempts=5"]).await;
}

#[tokio::test]
async fn a_wrong_configuration_is_refused_with_its_place() {
    let checks = "[[checks]]\nname = \"a\"\nrun = \"true\"\n";
    for (configuration, wanted) in [
        (
            "[budget]\nattempts = 3\natempts = 4\n",
            vec!["unknown key `budget.atempts`", "line 11", "attempts"],
        ),
        ("[budget]\nusd = 0.0\n", vec!["the budget `usd` is 0"]),
        (&format!("{checks}timeout = \"5 parsecs\"\n"), vec!["5 parsecs", "30m", "towline.toml"]),
        (&format!("{checks}stdout = \"(\"\n"), vec!["regular expression"]),
    ] {
        refused(&Desk::new(configuration), Request::default(), &wanted).await;
    }
}

#[tokio::test]
async fn a_missing_agent_program_is_refused_with_the_way_to_install_it() {
    let desk = Desk::new("[agents.claude]\ncommand = [\"no-such-agent\"]\n");
    let request = Request { agents: vec!["claude".to_owned()], ..Request::default() };
    let wanted = ["`no-such-agent` was not found", "npm install -g @anthropic-ai/claude-code"];
    refused(&desk, request, &wanted).await;
}

#[tokio::test]
async fn a_folder_that_is_no_repository_is_refused_with_the_fix() {
    let desk = Desk::new("");
    let agent = desk.project.read("towline.toml");
    std::fs::write(desk.home.path().join("towline.toml"), agent).expect("a configuration");
    let context = towline_app::Context { directory: desk.home.path(), ..desk.context() };
    let file = towline_app::widening_file(&context, &context.directory).expect("readable").expect("agents");
    towline_app::accept(&context, &file, jiff::Timestamp::UNIX_EPOCH).expect("recorded");
    let request = Request { prompt: Some("work".to_owned()), ..Request::default() };
    let error = towline_app::draft(&context, &request, jiff::Timestamp::UNIX_EPOCH).await.err();
    let Some(error @ Error::Workspace(_)) = error else { panic!("a refusal") };
    assert!(error.kind() == ErrorKind::Usage && error.message().contains("git init"), "{error}");
}

#[tokio::test]
async fn a_file_that_cannot_be_used_is_refused() {
    let desk = Desk::new("[agents.plain]\nkind = \"command\"\ncommand = [\"true\"]\n");
    let request = |file: &str| Request { file: Some(PathBuf::from(file)), ..Request::default() };
    for (name, text, wanted) in [
        (
            "a.md",
            "---\nmodle: x\n---\nDo it.",
            vec!["unknown key `modle` in a.md (line 2, column 1)", "`model`"],
        ),
        ("a.toml", "title = \"x\"", vec!["a.toml has no prompt", "prompt ="]),
        ("a.md", "---\ntemplate: true\n---\nDo {{ it }}.", vec!["uses `it`", "line 1 of the prompt"]),
        ("a.md", "---\nprotect: {paths: ['a[']}\n---\nDo it.", vec!["a["]),
        ("a.md", "---\nworkspace: {base: mian}\n---\nDo it.", vec!["mian", "main"]),
        ("a.md", "---\nred_first: true\n---\nDo it.", vec!["needs a check"]),
        (
            "a.md",
            "---\nmcp: {towline: {command: [x]}}\n---\nDo it.",
            vec!["the name of Towline's own", "a.md"],
        ),
        (
            "a.md",
            "---\nagents: [plain]\npermission: ask\n---\nDo it.",
            vec!["`agents.plain.permission` does not go with the kind `command`", "a.md"],
        ),
    ] {
        desk.project.write(name, text);
        refused(&desk, request(name), &wanted).await;
    }
    desk.project.write("b.md", "Do it.");
    let twice = Request { prompt: Some("Do that.".to_owned()), ..request("b.md") };
    refused(&desk, twice, &["the prompt is given twice", "b.md"]).await;
    desk.project.write("b.md", [0xff, 0xfe]);
    refused(&desk, request("b.md"), &["no text in UTF-8"]).await;
    desk.project.write("b.md", "x".repeat(2 * 1024 * 1024));
    refused(&desk, request("b.md"), &["more than 1048576 bytes"]).await;
    refused(&desk, request("c.md"), &["cannot read c.md: there is no such file"]).await;
    refused(&desk, request("."), &["cannot read ."]).await;
}

#[tokio::test]
async fn a_sandbox_that_is_required_and_does_not_work_is_refused_with_the_fix() {
    // No sandbox can start the program of this desk as Towline.
    let desk = Desk::new("[sandbox]\nmode = \"required\"\n");
    let wanted = ["`mode = \"required\"` in [sandbox], and none works here: bubblewrap: ", "Advice(\""];
    refused(&desk, Request::default(), &wanted).await;
}
