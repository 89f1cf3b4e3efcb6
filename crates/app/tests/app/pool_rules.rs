//! The rules of a pool out of the files of the operator and of projects, whole and broken.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use towline_app::{Action, Error, Hint, Request, Rules, VERSION, queue, server_of};
use towline_core::{AgentName, GoalId, MicroUsd};
use towline_engine::{PoolRules, ProjectRules};

use crate::desk::Desk;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

impl Desk {
    /// Adds a goal, although the configuration of its project is broken.
    async fn add_prompt_anyway(&self, prompt: &str) -> GoalId {
        let file = self.project.path().join("towline.toml");
        let broken = std::fs::read_to_string(&file).expect("a file");
        std::fs::write(
            &file,
            "[defaults]\nagents = [\"first\"]\n[agents.first]\nkind = \"script\"\ncommand = [\"/bin/sh\"]\n",
        )
        .expect("written");
        self.trust();
        let id = self.add_prompt(prompt, Request::default()).await.goal.id;
        std::fs::write(&file, broken).expect("written");
        id
    }
}

#[tokio::test]
async fn the_rules_follow_the_operators_file_and_use_the_last_good_one_while_it_is_broken() {
    let desk = Desk::new("[budget.project]\nusd = 2\n");
    desk.configure("[caps]\npool = 3\n[budget.day]\nusd = 5\n[retention]\nfree = \"1GB\"\n");
    let rules = Rules::new(&desk.context(), None).expect("rules");
    let limits = rules.limits(NOW);
    assert_eq!(
        (limits.caps.pool, limits.day, limits.free_space),
        (3, Some(MicroUsd(5_000_000)), 1_000_000_000)
    );
    assert!(limits.today.0 <= NOW && NOW < limits.today.1);
    let project = desk.project.path().display().to_string();
    let of_project = |rules: &Rules| rules.project(&project, &BTreeSet::new());
    let two_dollars = ProjectRules { budget: Some(MicroUsd(2_000_000)), ..ProjectRules::default() };
    assert_eq!(of_project(&rules), two_dollars);

    desk.configure("[caps]\npool = 0\n");
    assert_eq!((rules.limits(NOW).caps.pool, rules.limits(NOW).day), (3, Some(MicroUsd(5_000_000))));
    let problem = rules.problem().expect("a problem");
    assert!(problem.contains("`caps.pool` cannot be `0`"), "{problem}");
    assert_eq!(of_project(&rules), two_dollars, "the project is not to blame");
    assert!(Rules::new(&desk.context(), None).is_err());

    desk.configure("[caps]\npool = 2\n");
    assert_eq!((rules.limits(NOW).caps.pool, rules.problem()), (2, None));
    let fixed = Rules::new(&desk.context(), Some(7)).expect("rules");
    assert_eq!(fixed.limits(NOW).caps.pool, 7);
}

#[tokio::test]
async fn a_broken_project_has_a_reason_and_its_last_good_budget_and_no_other_is_concerned() {
    let desk = Desk::new("[budget.project]\nusd = 2\n");
    let other = Desk::new("");
    desk.trust_in(other.project.path());
    let [project, sound] = [&desk, &other].map(|desk| desk.project.path().display().to_string());
    let rules = Rules::new(&desk.context(), None).expect("rules");
    assert_eq!(rules.project(&project, &BTreeSet::new()).problem, None);
    desk.project.write("towline.toml", "agnet = 1\n");
    let broken = rules.project(&project, &BTreeSet::new());
    assert!(broken.problem.expect("a problem").contains("agnet"));
    assert_eq!(broken.budget, Some(MicroUsd(2_000_000)), "what runs is still stopped by it");
    assert_eq!(rules.problem(), None, "the operator's own is sound");
    assert_eq!(rules.project(&sound, &BTreeSet::new()), ProjectRules::default());

    let goal = desk.add_prompt_anyway("held").await;
    let report = queue(&desk.context(), NOW).await.expect("a report");
    let hold = report.waiting[0].hold.clone().expect("a reason");
    assert_eq!((report.waiting[0].id.clone(), hold.reason.as_str()), (goal.to_string(), "configuration"));
    assert!(hold.text.contains("towline.toml") && hold.text.contains("agnet"), "{}", hold.text);
}

#[tokio::test]
async fn a_fifo_in_the_place_of_a_projects_file_is_a_problem_and_is_not_waited_for() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    let desk = Desk::new("");
    let file = desk.project.path().join("towline.toml");
    std::fs::remove_file(&file).expect("removed");
    mknodat(CWD, &file, FileType::Fifo, Mode::RWXU, 0).expect("a FIFO");
    let rules = Rules::new(&desk.context(), None).expect("rules");
    let problem = rules.project(&desk.project.path().display().to_string(), &BTreeSet::new()).problem;
    let why = "it is a FIFO and not a regular file; remove it and try again";
    assert_eq!(problem, Some(format!("cannot read {}: {why}", file.display())));
}

#[tokio::test]
async fn the_files_that_rules_are_read_from_are_those_that_exist_and_those_that_could() {
    let desk = Desk::new("");
    let inner = desk.project.path().join("crates/app");
    std::fs::create_dir_all(&inner).expect("folders");
    let rules = Rules::new(&desk.context(), None).expect("rules");
    let own = desk.home.config().join("towline");
    let project = |folder: &std::path::Path| folder.join("towline.toml");
    let of_inner = [inner.clone(), desk.project.path().join("crates"), desk.project.path().to_owned()];
    let expected: BTreeSet<PathBuf> = [own.join("config.toml"), own.join("env")]
        .into_iter()
        .chain(of_inner.iter().map(|folder| project(folder)))
        .chain([PathBuf::from("/nowhere/towline.toml")])
        .chain(std::fs::read_dir(desk.home.towline().join("trusted")).expect("what is trusted").map(
            // And what the user has accepted of the one that exists.
            |record| record.expect("an entry").path(),
        ))
        .collect();
    let inner = inner.display().to_string();
    let found = [None, Some(inner.as_str()), Some("/nowhere")].map(|project| rules.files(project));
    assert_eq!(found.into_iter().flatten().collect::<BTreeSet<_>>(), expected);
}

#[tokio::test]
async fn the_queue_is_shown_while_the_operators_file_is_broken_with_what_is_wrong() {
    let desk = Desk::new("");
    desk.configure("[caps]\npool = 1\n");
    for prompt in ["first", "second"] {
        desk.add_prompt(prompt, Request::default()).await;
    }
    desk.configure("[caps]\npool = 1\nprojcet = 2\n");
    let report = queue(&desk.context(), NOW).await.expect("a report");
    let problem = report.problem.expect("a problem");
    assert!(problem.contains("projcet"), "{problem}");
    let holds: Vec<String> =
        report.waiting.into_iter().map(|line| line.hold.map(|hold| hold.text).unwrap_or_default()).collect();
    assert_eq!(holds, ["no server is running", "waits for a slot (pool cap 1)"], "what is understood counts");
}

#[tokio::test]
async fn only_an_agent_that_nothing_but_a_variable_signs_in_lacks_credentials() {
    let desk = Desk::new(
        "[agents.api]\nkind = \"builtin\"\nprovider = \"openai\"\nmodel = \"m\"\nkey_env = \"MY_KEY\"\n\
         [agents.own]\nkind = \"builtin\"\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"http://127.0.0.1:9\"\n",
    );
    let agents = ["api", "own", "claude", "first", "nobody"].map(AgentName::new).into();
    let project = desk.project.path().display().to_string();
    let missing = |rules: &Rules| rules.project(&project, &agents).without_credentials;
    let mut context = desk.context();
    let lacks = [(AgentName::new("api"), "MY_KEY".to_owned())].into();
    assert_eq!(missing(&Rules::new(&context, None).expect("rules")), lacks);
    let server = context.for_server().expect("a context");
    let rules = Rules::new(&server, None).expect("rules");
    assert_eq!(missing(&rules), lacks);
    context.environment.insert("MY_KEY".to_owned(), "dummy".to_owned());
    assert_eq!(missing(&Rules::new(&context, None).expect("rules")), [].into());

    // A server also has the variables of its file, as it is now.
    desk.configure("");
    let file = desk.home.config().join("towline/env");
    write_private(&file, "MY_KEY=dummy\n");
    assert_eq!((missing(&rules), rules.problem()), ([].into(), None));
    write_private(&file, "MY_KEY\n");
    assert_eq!(missing(&rules), [].into(), "what was read last counts");
    let problem = rules.problem().expect("a problem");
    assert!(problem.contains("env:1: a line must be NAME=VALUE"), "{problem}");
}

fn write_private(path: &std::path::Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, text).expect("written");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).expect("private");
}

#[tokio::test]
async fn a_server_of_another_version_is_an_error_that_names_how_to_replace_it() {
    let desk = Desk::new("");
    let context = desk.context();
    let state = context.state().expect("a state directory");
    let rules = Rules::new(&context, None).expect("rules");
    let engine = context.pool_engine(state.clone(), Arc::new(rules)).expect("an engine");
    let announce = |version: &str| {
        engine
            .announce("127.0.0.1:1".to_owned(), version.to_owned(), Some(7), Duration::from_secs(1_800))
            .expect("announced")
    };
    {
        let _same = announce(VERSION);
        assert_eq!(server_of(&state.home).expect("the same").and_then(|server| server.slots), Some(7));
    }
    let _other = announce("0.0.1");
    let Err(Error::Refused { message, hint, .. }) = server_of(&state.home) else { panic!("it is refused") };
    assert_eq!(message, format!("the server is Towline 0.0.1, and this is {VERSION}"));
    let expected = Hint::from([("restart it", Action::Down), ("then", Action::Up)]);
    assert_eq!(hint, Some(expected));
}
