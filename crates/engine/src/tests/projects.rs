//! One engine serves goals of several projects.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use towline_core::{AgentName, BaselineMode, End, EscalationReason, Goal, Phase, WorkspaceSpec};

use super::harness::{PlayedEngine, World, attempt_of};
use super::last_words::settings;
use super::values::{ended, goal, notice, prepared, retry, verdict};
use crate::executors::Job;
use crate::resolver::{Resolved, Resolver, Unresolved};

const ERROR: &str = "towline.toml:3: unknown key `agnet`";

/// The configuration of each project, by the path of its repository; one that is not here is broken.
#[derive(Default)]
struct Projects(Mutex<BTreeMap<String, Resolved>>);

impl Projects {
    fn set(&self, repository: &str, token: &str) {
        self.0.lock().expect("unharmed").insert(repository.to_owned(), project(repository, token));
    }

    fn break_all(&self) {
        self.0.lock().expect("unharmed").clear();
    }
}

impl Resolver for Projects {
    fn resolve(&self, goal: &Goal) -> Result<Resolved, Unresolved> {
        let projects = self.0.lock().expect("unharmed");
        projects
            .get(&goal.workspace.repository)
            .cloned()
            .ok_or_else(|| Unresolved { reason: ERROR.to_owned(), known: Resolved::default() })
    }
}

fn project(repository: &str, token: &str) -> Resolved {
    let agent = towline_agent::AgentSettings {
        command: vec![format!("{repository}/agent")],
        model: Some(format!("model of {repository}")),
        ..settings(towline_agent::Kind::Script)
    };
    Resolved {
        sandbox: Arc::default(),
        agents: BTreeMap::from([(AgentName::new("agent"), agent)]),
        environment: BTreeMap::from([("API_TOKEN".to_owned(), token.to_owned())]),
        tools: vec![format!("{repository}/tools")],
    }
}

/// An engine with one project, whose agents get this token.
fn with_project(token: &str) -> (World, Arc<Projects>, PlayedEngine) {
    let (world, projects) = (World::new(), Arc::new(Projects::default()));
    projects.set("/one", token);
    let engine = world.engine_of(Arc::clone(&projects) as Arc<dyn Resolver>);
    (world, projects, engine)
}

/// A goal of the project at this place.
fn goal_of(number: u32, repository: &str) -> Goal {
    let goal = goal(number);
    Goal { workspace: WorkspaceSpec { repository: repository.to_owned(), ..goal.workspace.clone() }, ..goal }
}

fn held() -> Phase {
    Phase::Escalated { reason: EscalationReason::Configuration { error: ERROR.to_owned() } }
}

#[tokio::test(start_paused = true)]
async fn each_goal_has_the_agents_the_environment_and_the_secrets_of_its_own_project() {
    const TOKENS: [&str; 2] = ["first-token-of-24-letters", "other-token-of-24-letters"];
    let (world, projects, mut engine) = with_project(TOKENS[0]);
    projects.set("/two", TOKENS[1]);
    for (number, repository, hidden) in [(1, "/one", 0), (2, "/two", 1)] {
        let _handle = engine.start(goal_of(number, repository)).await;
        let work = engine.first_attempt().await;
        let resolved = &attempt_of(&work).resolved;
        let agent = &resolved.agents[&AgentName::new("agent")];
        assert_eq!(agent.command, [format!("{repository}/agent")]);
        assert_eq!(resolved.tools, [format!("{repository}/tools")]);
        assert_eq!(resolved.environment["API_TOKEN"], TOKENS[hidden]);
        let models = world.record(goal(number).id).await.state.configured_models;
        assert_eq!(models[&AgentName::new("agent")], format!("model of {repository}"));

        work.emit(notice(&TOKENS.join(" "))).await;
        let log = format!("{:?}", world.log(goal(number).id).await);
        assert!(!log.contains(TOKENS[hidden]), "{log}");
        assert!(log.contains(TOKENS[1 - hidden]), "the other project's is no secret here: {log}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_broken_configuration_holds_its_own_goal_until_it_is_fixed() {
    let (_world, projects, mut engine) = with_project("");
    let other = engine.start(goal_of(1, "/one")).await;
    let work = engine.first_attempt().await;

    let broken = engine.start(goal_of(2, "/two")).await;
    let state = engine.end_of(broken).await.state;
    assert_eq!((state.phase, state.attempts.len()), (held(), 0));

    projects.set("/two", "");
    let fixed = engine.engine.resume(goal(2).id, [retry()]).await.expect("it can be retried");
    let retried = engine.first_attempt().await;
    assert_eq!(engine.pass(retried, fixed).await.state.phase, Phase::Done);
    assert_eq!(engine.pass(work, other).await.state.phase, Phase::Done);
}

#[tokio::test(start_paused = true)]
async fn a_configuration_that_breaks_later_costs_no_attempt_and_loses_no_work() {
    let (_world, projects, mut engine) = with_project("");
    let handle = engine.start(goal_of(1, "/one")).await;
    let work = engine.first_attempt().await;
    projects.break_all();
    work.finish(ended(End::Completed)).await;
    assert_eq!(engine.end_of(handle).await.state.phase, held(), "before the checks");

    projects.set("/one", "");
    let handle = engine.engine.resume(goal(1).id, [retry()]).await.expect("it can be retried");
    let work = engine.next().await;
    assert!(matches!(work.job, Job::Check(_)), "the work is checked first");
    projects.break_all();
    work.finish(verdict("t1", false)).await;
    let state = engine.end_of(handle).await.state;
    assert_eq!(state.phase, held(), "before the next attempt");
    assert_eq!(state.attempts_spent(), 1);
}

#[tokio::test(start_paused = true)]
async fn checks_on_a_base_that_cannot_run_are_reported() {
    let (_world, projects, mut engine) = with_project("");
    let goal = Goal { baseline: BaselineMode::Red, ..goal_of(1, "/one") };
    let handle = engine.start(goal).await;
    let preparation = engine.next().await;
    projects.break_all();
    preparation.finish(prepared()).await;
    let state = engine.end_of(handle).await.state;
    let Phase::Escalated { reason } = state.phase else { panic!("{:?}", state.phase) };
    assert!(reason.to_string().contains(ERROR), "{reason}");
}
