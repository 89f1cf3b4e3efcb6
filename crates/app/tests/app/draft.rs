//! Drafting goals: what wins, what is refused, and what the user should know.

use std::path::PathBuf;

use towline_api::ErrorKind;
use towline_app::{Action, Draft, Error, Hint, Notice, Request, find};
use towline_core::{AgentName, BaselineMode};

use crate::desk::Desk;

fn names(draft: &Draft) -> Vec<String> {
    draft.goal.agents.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn a_request_wins_over_the_goals_file_and_the_file_over_the_configuration() {
    let desk = Desk::new("[baseline]\nmode = \"off\"\n[[checks]]\nname = \"c\"\nrun = \"true\"\n");
    let configured = desk.draft(Request::default()).await.expect("a draft");
    assert_eq!((names(&configured), configured.goal.baseline), (vec!["first".to_owned()], BaselineMode::Off));

    desk.project.write("goal.toml", "prompt = \"p\"\nagents = [\"second\"]\nbaseline = \"auto\"\n");
    let file = Some(PathBuf::from("goal.toml"));
    let from_file = desk.draft(Request { file: file.clone(), ..Request::default() }).await.expect("a draft");
    assert_eq!((names(&from_file), from_file.goal.baseline), (vec!["second".to_owned()], BaselineMode::Auto));

    let flags = Request { file, agents: vec!["first".to_owned()], red_first: true, ..Request::default() };
    let flagged = desk.draft(flags).await.expect("a draft");
    assert_eq!((names(&flagged), flagged.goal.baseline), (vec!["first".to_owned()], BaselineMode::Red));
}

#[tokio::test]
async fn a_flag_that_is_wrong_is_an_error_of_the_command_line() {
    let desk = Desk::new("");
    let error = desk.draft(Request { agents: vec!["frist".to_owned()], ..Request::default() }).await.err();
    let words = error.expect("an error").to_string();
    assert!(words.contains("unknown agent `frist`") && words.contains("the command line"), "{words}");
    let red = desk.draft(Request { red_first: true, ..Request::default() }).await.err();
    let Some(Error::Refused { kind: ErrorKind::Usage, hint: Some(Hint::Actions(actions)), .. }) = red else {
        panic!("a refusal with a hint")
    };
    assert_eq!(actions[0].1, Action::GiveCheck);
}

#[tokio::test]
async fn changes_that_are_no_part_of_the_work_are_named() {
    let desk = Desk::new("");
    desk.project.write("new.txt", "new");
    let draft = desk.draft(Request::default()).await.expect("a draft");
    assert_eq!(draft.notices, [Notice::Uncommitted(vec!["new.txt".to_owned()])]);
    let with = Request { include_dirty: true, ..Request::default() };
    assert_eq!(desk.draft(with).await.expect("a draft").notices, []);
}

#[tokio::test]
async fn a_limit_in_dollars_that_cannot_stop_an_agent_is_named() {
    let silent = "[agents.third]\nkind = \"command\"\ncommand = [\"/bin/sh\"]\n";
    let priced =
        "[agents.third]\nkind = \"command\"\ncommand = [\"/bin/sh\"]\ncost_pattern = \"cost (.*)\"\n";
    let limit = "[budget]\nusd = 5.0\n";
    for (configuration, wanted) in [
        (format!("{silent}{limit}"), vec![Notice::UnknownCost(AgentName::new("third"))]),
        (silent.to_owned(), vec![]),
        (format!("{priced}{limit}"), vec![]),
    ] {
        let desk = Desk::new(&configuration);
        let request = Request { agents: vec!["third".to_owned()], ..Request::default() };
        assert_eq!(desk.draft(request).await.expect("a draft").notices, wanted, "{configuration}");
    }
}

#[tokio::test]
async fn a_goal_that_does_not_exist_is_not_found_and_nothing_is_created() {
    let desk = Desk::new("");
    let error = find::goal(&desk.context(), "1a2b").await.err();
    let Some(Error::Refused { kind: ErrorKind::NotFound, hint, .. }) = error else { panic!("a refusal") };
    assert_eq!(hint, Some([("list them", Action::List)].into()));
    assert!(!desk.home.towline().join("towline.db").exists());
}
