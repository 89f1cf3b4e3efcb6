//! The rules of a pool change while its goals wait for them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use towline_core::{AgentName, Goal, HoldReason, MicroUsd, Phase, WorkspaceSpec};
use towline_store::Store;

use super::harness::{World, attempt_of};
use super::rules::{Rules, TestRules};
use super::values::{goal, prepared};
use crate::rules::PoolRules;
use crate::situation::situation;

const HOUR: Duration = Duration::from_secs(3_600);

/// A file that the rules are read from.
fn file(world: &World) -> PathBuf {
    world.home.root().parent().expect("a directory above").join("config/config.toml")
}

fn change(world: &World) {
    let file = file(world);
    // As editors do it.
    let new = file.with_extension("new");
    std::fs::create_dir_all(file.parent().expect("its directory")).expect("made");
    std::fs::write(&new, "changed").expect("written");
    std::fs::rename(&new, &file).expect("replaced");
}

fn of_project(number: u32, repository: &str) -> Goal {
    let workspace = WorkspaceSpec { repository: repository.into(), ..goal(number).workspace };
    Goal { workspace, ..goal(number) }
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_is_raised_in_a_file_wakes_held_goals_and_nothing_looks_before() {
    let spent = Some(MicroUsd(0));
    let limits: [fn(&mut Rules, Option<MicroUsd>); 4] = [
        |rules, spent| rules.caps.pool = if spent.is_some() { 0 } else { 4 },
        |rules, spent| rules.day = spent,
        |rules, spent| rules.pool = spent,
        |rules, spent| {
            rules.projects = spent.map(|limit| ("/repository".to_owned(), limit)).into_iter().collect()
        },
    ];
    for set in limits {
        let world = World::new();
        let rules = TestRules::capped(4);
        rules.set(|rules| {
            rules.files = [file(&world)].into();
            set(rules, spent);
        });
        let mut server = world.pool(&rules);
        world.add(goal(1)).await;
        world.settle().await;
        let before = world.store.calls();
        tokio::time::sleep(HOUR).await;
        assert!(server.is_idle());
        assert_eq!(world.store.calls(), before, "nothing is looked at meanwhile");

        rules.set(|rules| set(rules, None));
        let begun = world.now();
        // The first time, its directory does not exist either.
        change(&world);
        server.attempt_of(1).await;
        assert!(world.now() < begun + Duration::from_secs(5));
    }
}

#[tokio::test(start_paused = true)]
async fn a_file_that_changes_again_and_again_is_noticed_each_time() {
    let world = World::new();
    let rules = TestRules::capped(0);
    rules.set(|rules| rules.files = [file(&world)].into());
    let mut server = world.pool(&rules);
    let mut running = Vec::new();
    for number in 1..=4 {
        world.add(goal(number)).await;
        world.settle().await;
        assert!(server.is_idle());
        rules.set(|rules| rules.caps.pool += 1);
        change(&world);
        running.push(server.attempt_of(number).await);
    }
}

#[tokio::test(start_paused = true)]
async fn a_broken_configuration_holds_the_goals_of_its_project_alone_until_it_is_mended() {
    let world = World::new();
    let rules = TestRules::capped(4);
    rules.set(|rules| {
        rules.files = [file(&world)].into();
        rules.broken = [("/broken".to_owned(), "unknown key `agnet`".to_owned())].into();
    });
    let mut server = world.pool(&rules);
    world.add(of_project(1, "/broken")).await;
    world.add(of_project(2, "/other")).await;
    let _other = server.attempt_of(2).await;
    world.settle().await;
    assert!(server.is_idle());
    let state = world.record(goal(1).id).await.state;
    assert_eq!((state.phase, state.attempts.len()), (Phase::Queued, 0), "it is neither escalated nor failed");
    rules.set(|rules| rules.broken.clear());
    change(&world);
    server.attempt_of(1).await;
}

/// What a report shows about the projects of waiting and running goals.
async fn broken(world: &World, rules: &Arc<TestRules>) -> BTreeMap<String, String> {
    let rules = Arc::clone(rules) as Arc<dyn PoolRules>;
    let limits = rules.limits(world.now());
    let view = world.store.pool(4).await.expect("the queue");
    let seen = situation(world.store.as_ref(), &world.home, &rules, &limits, &view).await;
    seen.expect("a situation").broken
}

#[tokio::test]
async fn a_project_that_does_not_answer_holds_its_own_goals_alone_until_it_answers_and_is_asked_once() {
    let world = World::new();
    let rules = TestRules::capped(4);
    rules.set(|rules| rules.hung = [("/hung".to_owned(), 0)].into());
    let mut server = world.pool(&rules);
    world.add(of_project(1, "/hung")).await;
    world.add(of_project(2, "/other")).await;
    let _other = server.attempt_of(2).await;
    let why = "cannot read /hung: it does not answer".to_owned();
    for _ in 0..20 {
        assert_eq!(broken(&world, &rules).await, [("/hung".to_owned(), why.clone())].into());
    }
    world.add(of_project(3, "/other")).await;
    let _third = server.attempt_of(3).await;
    assert_eq!(world.record(goal(1).id).await.state.phase, Phase::Queued);
    assert_eq!(rules.get().hung, [("/hung".to_owned(), 1)].into(), "however often it is looked at");
    rules.set(|rules| rules.hung.clear());
    server.attempt_of(1).await;
}

#[tokio::test]
async fn a_goal_that_an_engine_left_in_a_project_that_does_not_answer_holds_up_no_other() {
    let (world, mut engine, handle) = World::with(of_project(1, "/hung")).await;
    engine.first_attempt().await;
    engine.crash(handle).await;
    let rules = TestRules::capped(4);
    rules.set(|rules| rules.hung = [("/hung".to_owned(), 0)].into());
    let mut server = world.pool(&rules);
    world.add(of_project(2, "/other")).await;
    let _other = server.attempt_of(2).await;
    rules.set(|rules| rules.hung.clear());
    let adopted = server.next().await;
    assert_eq!(attempt_of(&adopted).goal.id, goal(1).id);
}

#[tokio::test(start_paused = true)]
async fn another_agent_of_the_goal_starts_where_the_first_has_no_slot_or_no_credentials() {
    let agents: Vec<AgentName> = ["agent", "lacking", "other"].map(AgentName::new).into();
    let world = World::new();
    let rules = TestRules::capped(8);
    rules.set(|rules| {
        rules.caps.agents.extend([(AgentName::new("agent"), 1), (AgentName::new("other"), 2)]);
        rules.missing_credentials = [(AgentName::new("lacking"), "API_KEY".to_owned())].into();
    });
    let mut server = world.pool(&rules);
    let mut running = Vec::new();
    for (number, expected) in [(1, "agent"), (2, "other"), (3, "other")] {
        world.add(Goal { agents: agents.clone(), ..goal(number) }).await;
        let work = server.attempt_of(number).await;
        assert_eq!(attempt_of(&work).launch.agent, AgentName::new(expected));
        running.push(work);
    }
    world.add(Goal { agents, ..goal(4) }).await;
    world.settle().await;
    assert!(server.is_idle(), "no cap is exceeded");
    let first = running.remove(0);
    server.complete(first).await;
    let work = server.attempt_of(4).await;
    assert_eq!(attempt_of(&work).launch.agent, AgentName::new("agent"));
    let log = world.log(goal(2).id).await;
    let reasons: Vec<&str> = log
        .iter()
        .filter_map(|event| match event {
            towline_core::Event::AgentUnavailable { why, .. } => Some(why.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(
        reasons,
        ["waits for a slot (cap 1 of agent agent)", "lacking needs API_KEY, which is not set"]
    );
}

#[tokio::test(start_paused = true)]
async fn the_agent_that_got_the_slot_starts_however_long_its_workspace_takes() {
    let world = World::new();
    let rules = TestRules::capped(4);
    rules.set(|rules| rules.caps.agents.extend([(AgentName::new("agent"), 1)]));
    let mut server = world.pool(&rules);
    world.add(goal(1)).await;
    let _first = server.attempt_of(1).await;
    let agents = ["agent", "other"].map(AgentName::new).into();
    world.add(Goal { agents, ..goal(2) }).await;
    let prepare = server.next().await;
    tokio::time::sleep(HOUR).await;
    prepare.finish(prepared()).await;
    let work = server.attempt_of(2).await;
    assert_eq!(attempt_of(&work).launch.agent, AgentName::new("other"), "the cap of the first is used up");
    let log = world.log(goal(2).id).await;
    let dispatched = towline_core::Event::Dispatched { agent: Some(AgentName::new("other")) };
    assert!(log.contains(&dispatched), "{log:?}");
}

#[tokio::test(start_paused = true)]
async fn the_server_reports_why_goals_wait_that_only_it_knows_about() {
    let world = World::new();
    let folder = tempfile::tempdir().expect("a folder");
    let repository = folder.path().display().to_string();
    let in_place = |number: u32| {
        let mut goal = of_project(number, &repository);
        goal.workspace.mode = towline_core::WorkspaceMode::InFolder;
        goal
    };
    let mut server = world.pool(&TestRules::capped(4));
    world.add(in_place(1)).await;
    let _work = server.attempt_of(1).await;
    world.add(in_place(2)).await;
    world.settle().await;
    let state = || crate::held::pool_state(&world.home, server.engine.worker());
    let taken = HoldReason::Directory { goal: goal(1).id, folder: repository.clone() };
    assert_eq!(state().await.expect("an answer").held, [(goal(2).id, taken.clone())].into());

    world.store.fail(|call| {
        let error = towline_store::StoreError::Database {
            path: "towline.db".into(),
            message: "disk I/O error".into(),
        };
        (call == super::faulty_store::Call::Append).then_some(error)
    });
    world.add(goal(3)).await;
    world.settle().await;
    let held = state().await.expect("an answer").held;
    let Some(HoldReason::Retry { error, until }) = held.get(&goal(3).id) else { panic!("{held:?}") };
    assert!(error.contains("disk I/O error") && *until > world.now(), "{held:?}");
    world.store.heal();

    assert!(!state().await.expect("an answer").is_draining);
    server.engine.shared().signals.drain();
    assert!(state().await.expect("an answer").is_draining);
}
