//! Settings of a repository's file count when the user has accepted exactly these.

use std::collections::BTreeSet;

use jiff::Timestamp;
use towline_api::TrustedRepository;
use towline_app::inspect::{check_agent, diagnose, list_agents};
use towline_app::{
    Error, Hint, Request, Rules, accept, agents_of, revoke_trust, trusted_repositories, widening_file,
};
use towline_engine::PoolRules;

use crate::desk::Desk;

const AGENT: &str =
    "[defaults]\nagents = [\"mine\"]\n[agents.mine]\nkind = \"script\"\ncommand = [\"/bin/sh\"]\n";

/// A desk whose project has this file, of which the user has accepted nothing.
fn desk(file: &str) -> Desk {
    let desk = Desk::new("");
    assert!(revoke_trust(&desk.context()).expect("revoked").directory.is_some());
    desk.project.write("towline.toml", file);
    desk
}

async fn refusal(desk: &Desk) -> Option<Error> {
    desk.draft(Request::default()).await.err()
}

fn state(desk: &Desk) -> Vec<TrustedRepository> {
    trusted_repositories(&desk.context()).expect("a list")
}

#[tokio::test]
async fn what_widens_is_refused_until_it_is_accepted_and_again_when_that_is_revoked() {
    let desk = desk(AGENT);
    let error = refusal(&desk).await.expect("a refusal");
    assert_eq!(error.kind().exit_code(), 2);
    let what = "this repository's towline.toml sets `agents.mine.command` and `agents.mine.kind`, which need your trust";
    assert_eq!(error.message(), what);
    let file = desk.project.path().join("towline.toml");
    let fix = format!("read {}, then run `towline trust` there", file.display());
    assert_eq!(error.way_out(), Some(Hint::Advice(fix)));
    assert_eq!(state(&desk), []);

    desk.trust();
    assert_eq!(refusal(&desk).await.map(|error| error.message()), None);
    let [trusted] = &state(&desk)[..] else { panic!("one repository") };
    let keys: Vec<&str> = trusted.keys.iter().map(String::as_str).collect();
    assert_eq!((trusted.state.as_str(), keys), ("current", vec!["agents.mine.command", "agents.mine.kind"]));

    let revoked = revoke_trust(&desk.context()).expect("revoked").directory;
    assert_eq!(revoked, Some(desk.project.path().display().to_string()));
    assert!(matches!(refusal(&desk).await, Some(Error::Untrusted { .. })));
    assert_eq!(revoke_trust(&desk.context()).expect("nothing to revoke").directory, None);
}

#[tokio::test]
async fn only_a_change_of_what_widens_asks_again_and_shows_what_has_changed() {
    let desk = desk(AGENT);
    desk.trust();
    desk.project
        .write("towline.toml", format!("# read\nbudget.turns = 3\n{AGENT}\n[[checks]]\nrun = \"true\"\n"));
    assert!(refusal(&desk).await.is_none(), "the same settings in another file");

    let changed = AGENT.replace("/bin/sh", "/bin/true").replace("kind", "args = [\"x\"]\nkind");
    desk.project.write("towline.toml", changed);
    assert!(matches!(refusal(&desk).await, Some(Error::Untrusted { .. })));
    assert_eq!(state(&desk)[0].state, "changed");
    let context = desk.context();
    let file = widening_file(&context, &context.directory).expect("readable").expect("a file");
    let report = file.report();
    let states: Vec<_> =
        report.settings.iter().map(|setting| (setting.key.as_str(), setting.state.as_str())).collect();
    let expected =
        [("agents.mine.args", "new"), ("agents.mine.command", "changed"), ("agents.mine.kind", "accepted")];
    assert_eq!(states, expected);

    desk.project.write("towline.toml", AGENT);
    assert!(refusal(&desk).await.is_none(), "what was accepted is what it sets again");
}

#[tokio::test]
async fn the_users_own_settings_and_a_file_that_widens_nothing_need_no_trust() {
    let desk = desk("[[checks]]\nrun = \"true\"\n[agents.claude]\nmodel = \"x\"\npermission = \"deny\"\n");
    desk.configure(AGENT);
    assert!(refusal(&desk).await.is_none());
    let context = desk.context();
    assert!(widening_file(&context, &context.directory).expect("readable").is_none());
}

#[tokio::test]
async fn what_was_accepted_counts_for_its_directory_alone_by_whatever_name() {
    let (desk, other) = (desk(AGENT), Desk::new(""));
    desk.trust();
    other.project.write("towline.toml", AGENT);
    let elsewhere = towline_app::Context { directory: other.project.path().to_owned(), ..desk.context() };
    assert!(matches!(elsewhere.configuration(other.project.path()), Err(Error::Untrusted { .. })));
    let alias = desk.home.path().join("alias");
    std::os::unix::fs::symlink(desk.project.path(), &alias).expect("a symlink");
    assert!(desk.context().configuration(&alias).is_ok());
    let inner = desk.project.path().join("src");
    std::fs::create_dir(&inner).expect("a folder");
    assert!(desk.context().configuration(&inner).is_ok(), "the same file, found from below");
}

#[tokio::test]
async fn a_file_of_servers_that_changes_is_a_change_of_what_widens() {
    let desk = desk(&format!("{AGENT}mcp_file = \"mcp.json\"\n").replace("\"script\"", "\"claude\""));
    let servers = |program: &str| format!(r#"{{"mcpServers": {{"docs": {{"command": "{program}"}}}}}}"#);
    desk.project.write("mcp.json", servers("docs-mcp"));
    desk.trust();
    assert!(refusal(&desk).await.is_none());
    desk.project.write("mcp.json", servers("other"));
    assert!(matches!(refusal(&desk).await, Some(Error::Untrusted { .. })));
}

#[tokio::test]
async fn a_record_that_is_damaged_or_of_another_directory_is_none() {
    let desk = desk(AGENT);
    desk.trust();
    let folder = desk.home.towline().join("trusted");
    let record =
        std::fs::read_dir(&folder).expect("a folder").next().expect("a record").expect("readable").path();
    let text = std::fs::read_to_string(&record).expect("a record");
    for planted in [String::new(), text.replace("[\n    47,", "[\n    48,")] {
        assert_ne!(planted, text);
        std::fs::write(&record, planted).expect("written");
        assert!(matches!(refusal(&desk).await, Some(Error::Untrusted { .. })));
        assert_eq!(state(&desk), []);
    }
    std::fs::remove_file(&record).expect("removed");
    std::os::unix::fs::symlink(desk.home.path().join("elsewhere"), &record).expect("a symlink");
    std::fs::write(desk.home.path().join("elsewhere"), text).expect("written");
    assert!(matches!(refusal(&desk).await, Some(Error::Untrusted { .. })), "a symlink is no record");
}

#[tokio::test]
async fn a_project_holds_its_goals_while_its_file_needs_trust_and_the_pool_watches_for_it() {
    let desk = desk(AGENT);
    desk.trust();
    let goal = desk.store_goal().await;
    let project = desk.project.path().display().to_string();
    let rules = Rules::new(&desk.context(), None).expect("rules");
    let problem = || rules.project(&project, &BTreeSet::new()).problem;
    assert_eq!(problem(), None);
    desk.project.write("towline.toml", format!("{AGENT}permission = \"bypass\"\n"));
    let file = desk.project.path().join("towline.toml");
    let expected = format!(
        "this repository's towline.toml sets `agents.mine.command`, `agents.mine.kind` and `agents.mine.permission`, which need \
         your trust; read {}, then run `towline trust` there",
        file.display()
    );
    assert_eq!(problem(), Some(expected));
    assert!(agents_of(&desk.context(), &goal).is_err());
    desk.trust();
    assert_eq!(problem(), None);
    assert!(agents_of(&desk.context(), &goal).is_ok());
    let watched = rules.files(Some(&project));
    assert!(watched.iter().any(|path| path.starts_with(desk.home.towline().join("trusted"))), "{watched:?}");
}

#[tokio::test]
async fn diagnosis_names_what_needs_trust_and_starts_no_program_of_it() {
    let desk = desk(&format!("{AGENT}permission = \"bypass\"\n[workspace]\npass_env = [\"TOKEN\"]\n"));
    let context = desk.context();
    let diagnosis = diagnose(&context).await;
    let facts = &diagnosis.report.configuration;
    let untrusted: Vec<&str> = facts.untrusted.iter().map(|setting| setting.key.as_str()).collect();
    let expected =
        ["agents.mine.command", "agents.mine.kind", "agents.mine.permission", "workspace.pass_env"];
    assert_eq!(untrusted, expected);
    let mut in_force = facts.settings.iter().filter(|setting| setting.layer == "repository");
    assert!(in_force.all(|setting| !expected.contains(&setting.key.as_str())));
    let (_, rows) = diagnosis.sections.iter().find(|(name, _)| *name == "configuration").expect("a section");
    let row = rows.iter().find(|row| row.label == "trust").expect("a row");
    assert!(row.text.ends_with("which need your trust"), "{row:?}");
    assert!(matches!(&row.fix, Some(Hint::Advice(fix)) if fix.contains("`towline trust`")), "{row:?}");
    assert!(
        diagnosis.report.agents.iter().all(|agent| agent.name != "mine"),
        "{:?}",
        diagnosis.report.agents
    );
    assert!(matches!(check_agent(&context, "mine").await, Err(Error::Untrusted { .. })));
    assert!(matches!(list_agents(&context).await, Err(Error::Untrusted { .. })));
    desk.trust();
    assert!(check_agent(&context, "mine").await.is_ok());
    let accepted = diagnose(&context).await.report.configuration;
    assert_eq!(accepted.untrusted, []);
}

#[tokio::test]
async fn what_is_accepted_is_what_was_shown() {
    let desk = desk(AGENT);
    let context = desk.context();
    let shown = widening_file(&context, &context.directory).expect("readable").expect("a file");
    desk.project.write("towline.toml", format!("{AGENT}permission = \"bypass\"\n"));
    accept(&context, &shown, Timestamp::UNIX_EPOCH).expect("recorded");
    assert!(matches!(refusal(&desk).await, Some(Error::Untrusted { .. })));
}
