//! What is found out about agents: their programs, their permissions, and which of them a new configuration names.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use towline_app::init::{Writing, init};
use towline_app::inspect::{Mark, Row, check_agent, diagnose};
use towline_app::{Context, Hint, Notice, Request, first_notices};

use crate::desk::Desk;

fn row<'a>(rows: &'a [Row], label: &str) -> &'a Row {
    rows.iter().find(|row| row.label == label).expect("a row")
}

fn advice(row: &Row) -> &str {
    let Some(Hint::Advice(advice)) = &row.fix else { panic!("advice: {row:?}") };
    advice
}

#[tokio::test]
async fn the_fix_for_a_plain_program_is_not_a_permission_that_its_kind_refuses() {
    let desk = Desk::new("[agents.mine]\nkind = \"command\"\ncommand = [\"/bin/sh\"]\n");
    let details = check_agent(&desk.context(), "mine").await.expect("an agent");
    let fix = advice(row(&details.rows, "permission"));
    assert!(fix.contains("container") && !fix.contains("permission ="), "{fix}");
}

#[tokio::test]
async fn an_agent_whose_settings_are_refused_is_not_missing() {
    let desk = Desk::new("");
    let settings = "kind = \"command\"\ncommand = [\"/bin/sh\"]\npermission = \"ask\"\n";
    let config = format!("[defaults]\nagents = [\"mine\"]\n[agents.mine]\n{settings}");
    desk.project.write("towline.toml", config);
    let diagnosis = diagnose(&desk.context()).await;
    let (_, rows) = diagnosis.sections.iter().find(|(name, _)| *name == "agents").expect("a section");
    let row = row(rows, "agents");
    assert_eq!(row.text, "no agent can be used: the configuration has errors");
}

#[tokio::test]
async fn a_file_of_servers_that_is_missing_is_a_problem_of_its_agent_alone() {
    let desk =
        Desk::new("[agents.mine]\nkind = \"claude\"\ncommand = [\"/bin/sh\"]\nmcp_file = \"mcp.json\"\n");
    let mine = || Request { agents: vec!["mine".to_owned()], ..Request::default() };
    desk.draft(Request::default()).await.expect("another agent");
    let refused = desk.draft(mine()).await.err().expect("a refusal").to_string();
    assert!(refused.contains("mcp.json, the `mcp_file` of agent `mine`"), "{refused}");
    let details = check_agent(&desk.context(), "mine").await.expect("an agent");
    assert_eq!(row(&details.rows, "mcp").text, refused);

    let servers = r#"{"mcpServers": {"docs": {"url": "http://x", "headers": {"A": "${DOCS_TOKEN}"}}}}"#;
    desk.project.write("mcp.json", servers);
    desk.trust();
    desk.draft(mine()).await.expect("its file is there");
    let details = check_agent(&desk.context(), "mine").await.expect("an agent");
    let wanted = "the MCP server `docs` needs the variable DOCS_TOKEN, which is not set";
    assert_eq!(row(&details.rows, "mcp").text, wanted);
}

#[tokio::test]
async fn a_program_that_is_not_executable_is_not_called_missing() {
    let desk = Desk::new("[agents.mine]\nkind = \"command\"\ncommand = [\"./agent.sh\"]\n");
    desk.project.write("agent.sh", "#!/bin/sh\n");
    let path = desk.project.path().join("agent.sh");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("changed");
    let details = check_agent(&desk.context(), "mine").await.expect("an agent");
    let program = row(&details.rows, "program");
    assert!(program.text.contains("agent.sh` is not executable"), "{program:?}");
    assert!(advice(program).starts_with("make it executable: chmod +x "), "{program:?}");
    let run = Request { agents: vec!["mine".to_owned()], ..Request::default() };
    let refused = desk.draft(run).await.err().expect("a refusal").to_string();
    assert!(refused.ends_with("agent.sh` is not executable"), "{refused}");
}

#[test]
fn a_new_configuration_names_the_agents_that_are_signed_in() {
    let desk = Desk::new("");
    fs::remove_file(desk.project.path().join("towline.toml")).expect("removed");
    let programs = desk.home.path().join("programs");
    fs::create_dir(&programs).expect("a folder");
    for name in ["claude", "codex"] {
        let program = programs.join(name);
        fs::write(&program, "#!/bin/sh\n").expect("written");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("changed");
    }
    let names = |key: Option<&str>| {
        let mut environment: BTreeMap<String, String> = desk.home.env().into_iter().collect();
        let path = environment.get("PATH").cloned().unwrap_or_default();
        environment.insert("PATH".to_owned(), format!("{}:{path}", programs.display()));
        environment.extend(key.map(|key| (key.to_owned(), "dummy".to_owned())));
        let folder = desk.project.path().to_path_buf();
        let context = Context::new(environment, folder, PathBuf::from("/bin/true"));
        let text = init(&context, Writing::No).expect("a proposal").report.text;
        let line = text.lines().find(|line| line.starts_with("agents = ")).expect("agents").to_owned();
        ["claude", "codex"].map(|name| line.contains(&format!("\"{name}\"")))
    };
    assert_eq!(names(Some("ANTHROPIC_API_KEY")), [true, false]);
    assert_eq!(names(None), [true, true]);
}

#[tokio::test]
async fn that_no_sandbox_works_is_noted_once_per_project_unless_it_was_turned_off() {
    for (mode, noted) in [("auto", 1), ("off", 0)] {
        // No sandbox can start the program of this desk as Towline.
        let desk = Desk::new(&format!("[sandbox]\nmode = \"{mode}\"\n"));
        let (context, draft) = (desk.context(), desk.draft(Request::default()).await.expect("a draft"));
        let home = context.state().expect("a state directory").home;
        let about_it = || {
            let notices = first_notices(&context, &home, &draft).into_iter();
            notices.filter(|notice| matches!(notice, Notice::NoSandbox(_))).count()
        };
        assert_eq!((about_it(), about_it()), (noted, 0), "{mode}");
    }
}

#[tokio::test]
async fn the_diagnosis_has_why_no_sandbox_works_and_weighs_it_by_the_mode() {
    for (mode, mark) in [("auto", Mark::Note), ("required", Mark::Problem), ("off", Mark::Plain)] {
        let desk = Desk::new(&format!("[sandbox]\nmode = \"{mode}\"\n"));
        let diagnosis = diagnose(&desk.context()).await;
        let facts = &diagnosis.report.sandbox;
        assert_eq!((facts.mode.as_str(), facts.level, &facts.works), (mode, 1, &None));
        assert!(facts.bubblewrap.is_some() && facts.landlock.is_some(), "{facts:?}");
        let (_, rows) = diagnosis.sections.iter().find(|(name, _)| *name == "sandbox").expect("a section");
        let [row] = &rows[..] else { panic!("one row: {rows:?}") };
        assert_eq!((row.mark, row.fix.is_some()), (mark, mark != Mark::Plain), "{row:?}");
    }
}
