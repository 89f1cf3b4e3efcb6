//! Who starts, and why the others wait.

use std::collections::BTreeMap;

use jiff::Timestamp;
use proptest::prelude::*;

use super::{
    Cap, Caps, HoldReason, Lane, Need, Plan, PoolGoal, Purse, PurseScope, Scheduling, Situation, rank,
    schedule,
};
use crate::fixtures::{at, goal};
use crate::{
    Account, AccountStatus, AgentName, Attempt, AttemptNo, Goal, GoalId, GoalState, MicroUsd, Unavailable,
};

fn id(number: u8) -> GoalId {
    format!("01932f6e-7c00-7abc-8def-0123456789{number:02x}").parse().expect("an id")
}

fn lane(project: &str) -> Lane {
    Lane {
        project: project.into(),
        agent: AgentName::new("claude"),
        account: "claude".into(),
        others: Vec::new(),
        labels: Vec::new(),
        touches: Vec::new(),
        has_begun: false,
        unavailable: BTreeMap::new(),
    }
}

/// A goal that was queued at this second.
fn queued(number: u8, second: i64, lane: Lane) -> PoolGoal {
    PoolGoal { goal: id(number), lane, rank: at(second), left: None, spent: MicroUsd::default() }
}

fn caps(pool: usize) -> Situation {
    Situation { caps: Caps { pool, ..Caps::default() }, ..Situation::default() }
}

fn account(status: AccountStatus) -> Account {
    Account { name: "claude".into(), agent: AgentName::new("claude"), status, updated_at: at(0) }
}

fn started(plan: &Plan) -> Vec<GoalId> {
    plan.dispatched.iter().map(|dispatch| dispatch.goal).collect()
}

/// Why the only goal that waits does so, in words.
fn why(plan: &Plan) -> String {
    assert_eq!(plan.held.len(), 1, "{plan:?}");
    plan.held[0].1.text(|time| format!("+{}s", time.duration_since(at(0)).as_secs()))
}

#[test]
fn the_goals_that_wait_longest_start_as_far_as_there_is_room() {
    let queue: Vec<PoolGoal> = (0..5).map(|n| queued(n, 50 - i64::from(n), lane("a"))).collect();
    let plan = schedule(&queue, &[], &caps(3), at(60));
    assert_eq!(started(&plan), [id(4), id(3), id(2)]);
    assert_eq!(plan.held.len(), 2);
    assert!(plan.held.iter().all(|(_, reason)| *reason == HoldReason::Slot { cap: Cap::Pool { most: 3 } }));
}

#[test]
fn a_step_of_priority_counts_as_an_hour_of_waiting() {
    let urgent = PoolGoal { rank: rank(at(3_000), 1), ..queued(1, 0, lane("a")) };
    let older = PoolGoal { rank: rank(at(0), 0), ..queued(2, 0, lane("a")) };
    assert_eq!(started(&schedule(&[older.clone(), urgent.clone()], &[], &caps(1), at(4_000))), [id(1)]);
    let late = PoolGoal { rank: rank(at(3_601), 1), ..urgent };
    assert_eq!(started(&schedule(&[older, late], &[], &caps(1), at(4_000))), [id(2)]);
    assert_eq!(rank(Timestamp::MIN, i32::MAX), Timestamp::MIN);
}

#[test]
fn among_equals_the_project_with_fewer_running_goals_is_first() {
    let working = [queued(9, 0, lane("a"))];
    let queue = [queued(1, 5, lane("a")), queued(2, 5, lane("b")), queued(3, 5, lane("b"))];
    assert_eq!(started(&schedule(&queue, &working, &caps(3), at(6))), [id(2), id(1)]);
}

#[test]
fn each_cap_holds_and_is_named() {
    let labelled = Lane { labels: vec!["database".into()], ..lane("a") };
    let working = [queued(9, 0, labelled.clone())];
    let full = |caps: Caps| {
        let situation = Situation { caps, ..Situation::default() };
        why(&schedule(&[queued(1, 1, labelled.clone())], &working, &situation, at(2)))
    };
    assert_eq!(full(Caps { pool: 1, ..Caps::default() }), "waits for a slot (pool cap 1)");
    assert_eq!(full(Caps { project: Some(1), ..Caps::default() }), "waits for a slot (project cap 1)");
    let agents = [(AgentName::new("claude"), 1)].into();
    assert_eq!(full(Caps { agents, ..Caps::default() }), "waits for a slot (cap 1 of agent claude)");
    let accounts = [("claude".to_owned(), 1)].into();
    assert_eq!(full(Caps { accounts, ..Caps::default() }), "waits for a slot (cap 1 of account claude)");
    let labels = [("database".to_owned(), 1)].into();
    assert_eq!(full(Caps { labels, ..Caps::default() }), "waits for a slot (cap 1 of label database)");
}

#[test]
fn goals_of_one_project_that_change_the_same_files_do_not_run_together() {
    let touching = |project: &str, glob: &str| Lane { touches: vec![glob.into()], ..lane(project) };
    let working = [queued(9, 0, touching("a", "crates/store/**"))];
    let queue = [
        queued(1, 1, touching("a", "crates/*/src/**")),
        queued(2, 2, touching("a", "docs/**")),
        queued(3, 3, touching("b", "crates/store/**")),
    ];
    let plan = schedule(&queue, &working, &caps(8), at(4));
    assert_eq!(started(&plan), [id(2), id(3)]);
    assert_eq!(plan.held, [(id(1), HoldReason::Touches { goal: id(9) })]);
}

#[test]
fn goals_of_a_limited_account_wait_and_come_back_spread_over_time() {
    let queue: Vec<PoolGoal> = (0..20).map(|n| queued(n, i64::from(n), lane("a"))).collect();
    let limited = account(AccountStatus::Limited { until: Some(at(600)), guessed: false });
    let situation = Situation { accounts: vec![limited], ..caps(20) };
    let plan = schedule(&queue, &[], &situation, at(100));
    assert!(plan.dispatched.is_empty());
    let again = plan.look_again.expect("a time");
    assert!(at(600) <= again && again < at(660), "{again}");
    assert!(schedule(&queue, &[], &situation, at(599)).dispatched.is_empty());
    let halfway = schedule(&queue, &[], &situation, at(615)).dispatched.len();
    assert!((3..18).contains(&halfway), "{halfway} of 20 at once");
    assert_eq!(schedule(&queue, &[], &situation, at(660)).dispatched.len(), 20);
}

#[test]
fn a_closed_account_holds_its_goals_until_one_that_is_tried_succeeds() {
    let queue = [queued(1, 1, lane("a")), queued(2, 2, lane("a"))];
    let with = |status| Situation { accounts: vec![account(status)], ..caps(8) };
    let closed = schedule(&queue[..1], &[], &with(AccountStatus::Closed), at(3));
    assert_eq!(why(&closed), "claude is closed: its credentials were refused");
    let tried = schedule(&queue, &[], &with(AccountStatus::Trial), at(3));
    assert_eq!(started(&tried), [id(1)]);
    assert_eq!(why(&tried), "waits for a slot (cap 1 of account claude)");
    assert_eq!(started(&schedule(&queue, &[], &with(AccountStatus::Open), at(3))), [id(1), id(2)]);
}

#[test]
fn an_agent_without_credentials_is_not_started() {
    let mut situation = caps(8);
    situation.without_credentials.insert(("a".into(), AgentName::new("claude")), "ANTHROPIC_API_KEY".into());
    let plan = schedule(&[queued(1, 1, lane("a"))], &[], &situation, at(2));
    assert_eq!(why(&plan), "claude needs ANTHROPIC_API_KEY, which is not set");
}

fn day(limit: u64, spent: u64) -> Situation {
    let cents = |cents: u64| MicroUsd(cents * 10_000);
    let purse = Purse {
        scope: PurseScope::Day,
        limit: cents(limit),
        spent: cents(spent),
        renews_at: Some(at(1_000)),
    };
    Situation { purses: vec![purse], ..caps(8) }
}

fn costing(number: u8, cents: u64) -> PoolGoal {
    PoolGoal { left: Some(MicroUsd(cents * 10_000)), ..queued(number, i64::from(number), lane("a")) }
}

#[test]
fn goals_wait_for_a_spent_budget_and_for_one_that_is_reserved() {
    let spent = schedule(&[costing(1, 10)], &[], &day(5_000, 5_000), at(2));
    assert_eq!(why(&spent), "today's budget is spent (50.00 of 50.00 USD), until +1000s");
    assert_eq!(spent.look_again, Some(at(1_000)));
    let reserved = schedule(&[costing(1, 600)], &[costing(9, 500)], &day(1_000, 0), at(2));
    assert_eq!(
        why(&reserved),
        "the rest of today's budget is reserved by running goals (0.00 spent and 5.00 reserved of 10.00 USD)"
    );
    assert_eq!(
        started(&schedule(&[costing(1, 600)], &[], &day(500, 0), at(2))),
        [id(1)],
        "alone it may use the rest"
    );
}

#[test]
fn a_smaller_goal_does_not_overtake_one_that_waits_for_money() {
    let plan = schedule(&[costing(1, 600), costing(2, 1)], &[costing(9, 500)], &day(1_000, 0), at(3));
    assert!(plan.dispatched.is_empty(), "{plan:?}");
}

#[test]
fn no_money_is_held_back_for_a_goal_that_something_else_keeps_from_starting() {
    let labelled =
        |goal: PoolGoal| PoolGoal { lane: Lane { labels: vec!["database".into()], ..lane("a") }, ..goal };
    let mut situation = day(1_000, 0);
    situation.caps.labels.insert("database".into(), 1);
    let queue = [labelled(costing(1, 600)), costing(2, 1)];
    let plan = schedule(&queue, &[labelled(costing(9, 500))], &situation, at(3));
    assert_eq!(started(&plan), [id(2)], "{plan:?}");
}

#[test]
fn what_an_agent_usually_costs_is_reserved_for_goals_without_a_limit() {
    let mut situation = day(1_000, 0);
    situation.usual_cost.insert(AgentName::new("claude"), MicroUsd(4_000_000));
    let queue: Vec<PoolGoal> = (1..=4).map(|n| queued(n, i64::from(n), lane("a"))).collect();
    assert_eq!(started(&schedule(&queue, &[], &situation, at(9))).len(), 2);
}

#[test]
fn what_a_running_attempt_has_spent_is_not_reserved_again() {
    let mut situation = day(1_000, 300);
    situation.usual_cost.insert(AgentName::new("claude"), MicroUsd(4_000_000));
    let working = PoolGoal { spent: MicroUsd(3_000_000), ..queued(9, 0, lane("a")) };
    let starts = |working: PoolGoal, limited| {
        started(&schedule(&[costing(1, limited)], &[working], &situation, at(9))).len()
    };
    assert_eq!(
        (starts(working.clone(), 600), starts(working.clone(), 601)),
        (1, 0),
        "1 of 7 dollars is reserved"
    );
    let expensive = PoolGoal { spent: MicroUsd(5_000_000), ..working };
    assert_eq!((starts(expensive.clone(), 700), starts(expensive, 701)), (1, 0), "nothing is reserved");
}

#[test]
fn the_budget_of_a_project_holds_no_other_project() {
    let scope = PurseScope::Project { project: "a".into() };
    let purse = Purse { scope, limit: MicroUsd(1), spent: MicroUsd(1), renews_at: None };
    let situation = Situation { purses: vec![purse], ..caps(8) };
    let queue = [queued(1, 1, lane("a")), queued(2, 2, lane("b"))];
    let plan = schedule(&queue, &[], &situation, at(3));
    assert_eq!(started(&plan), [id(2)]);
    assert_eq!(why(&plan), "today's budget of this project is spent (0.00 of 0.00 USD)");
}

#[test]
fn nothing_starts_in_a_pool_that_is_closed() {
    let closed = Some(HoldReason::Disk { free: 1_500_000_000, needed: 2_000_000_000 });
    let situation = Situation { closed, ..caps(8) };
    let plan = schedule(&[queued(1, 1, lane("a"))], &[], &situation, at(2));
    assert_eq!(why(&plan), "waits for disk space (1500 MB free, 2000 MB needed)");
}

#[test]
fn a_lane_has_all_agents_in_order_of_preference_and_when_each_is_available() {
    let goal = Goal {
        agents: ["claude", "codex", "gemini"].map(AgentName::new).into(),
        accounts: BTreeMap::from([(AgentName::new("codex"), "openai".to_owned())]),
        labels: vec!["b".into(), "a".into(), "b".into()],
        scheduling: Scheduling { touches: vec!["src/**".into()], ..Scheduling::default() },
        ..goal()
    };
    let expected = Lane {
        project: "/repository".into(),
        agent: AgentName::new("claude"),
        account: "claude".into(),
        others: vec![(AgentName::new("codex"), "openai".into()), (AgentName::new("gemini"), "gemini".into())],
        labels: vec!["a".into(), "b".into()],
        touches: vec!["src/**".into()],
        has_begun: false,
        unavailable: BTreeMap::new(),
    };
    let mut state = GoalState::new(&goal);
    assert_eq!(Lane::of(&goal, &state), expected);
    let stored = serde_json::to_string(&expected).expect("JSON");
    assert!(!stored.contains("unavailable"), "it is stored as earlier versions stored it");
    let limited = |until| Unavailable { end: "rate_limited".into(), until, guessed: false };
    state.unavailable = [("claude", Some(at(60))), ("codex", None), ("removed", None)]
        .map(|(agent, until)| (AgentName::new(agent), limited(until)))
        .into();
    let unavailable: BTreeMap<_, _> =
        [(AgentName::new("claude"), Some(at(60))), (AgentName::new("codex"), None)].into();
    let lane = Lane::of(&goal, &state);
    assert_eq!(lane, Lane { unavailable: unavailable.clone(), ..expected.clone() });
    let stored = serde_json::to_string(&lane).expect("JSON");
    assert_eq!(serde_json::from_str::<Lane>(&stored).expect("a lane"), lane);

    // Whoever has the slot comes first, and then whoever has begun.
    let n = AttemptNo::FIRST;
    state.attempts.push(Attempt::begun(goal.id, n, AgentName::new("gemini"), None, at(0)));
    let order =
        |lane: Lane| [lane.agent.to_string(), lane.others[0].0.to_string(), lane.others[1].0.to_string()];
    let begun = Lane::of(&goal, &state);
    assert!(begun.has_begun);
    assert_eq!(order(begun), ["gemini", "claude", "codex"]);
    state.dispatched_agent = Some(AgentName::new("codex"));
    let dispatched = Lane::of(&goal, &state);
    assert!(!dispatched.has_begun);
    assert_eq!(order(dispatched), ["codex", "gemini", "claude"]);
}

#[test]
fn a_broken_configuration_holds_the_goals_of_its_project_alone() {
    let broken =
        [("a".to_owned(), "towline.toml:3: unknown key `agnet`\n  did you mean `agent`?".to_owned())];
    let situation = Situation { broken: broken.into(), ..caps(8) };
    let plan = schedule(&[queued(1, 1, lane("a")), queued(2, 2, lane("b"))], &[], &situation, at(3));
    assert_eq!(started(&plan), [id(2)]);
    let expected = "the configuration of its project cannot be used: towline.toml:3: unknown key `agnet`; did you mean `agent`?";
    assert_eq!(why(&plan), expected);
}

#[test]
fn what_a_goal_waits_for_is_one_sentence() {
    let text = |reason: HoldReason| reason.text(|time| format!("+{}s", time.duration_since(at(0)).as_secs()));
    let short = id(7).short();
    let waits = |need, phase: Option<&str>| {
        text(HoldReason::Prerequisite { goal: id(7), need, phase: phase.map(str::to_owned) })
    };
    assert_eq!(waits(Need::Done, Some("running")), format!("waits for {short} (running)"));
    assert_eq!(waits(Need::Merged, Some("done")), format!("waits for {short} to be merged (done)"));
    assert_eq!(waits(Need::Done, None), format!("waits for {short}, which was removed"));
    let directory = HoldReason::Directory { goal: id(7), folder: "/srv/app".into() };
    assert_eq!(text(directory), format!("waits for {short}, which works in /srv/app"));
    let retry = HoldReason::Retry { error: "disk I/O error".into(), until: at(8) };
    assert_eq!(retry.until(), Some(at(8)));
    assert_eq!(text(retry), "could not start; next try at +8s: disk I/O error");
    let scope = PurseScope::Pool;
    let purse = Purse { scope, limit: MicroUsd(5_000_000), spent: MicroUsd(6_000_000), renews_at: None };
    let spent = HoldReason::Budget { purse, reserved: MicroUsd(0) };
    assert_eq!(text(spent), "the budget of the pool is spent (6.00 of 5.00 USD)");
}

#[test]
fn ten_thousand_goals_are_decided_at_once() {
    // Each with files of its own, and all of them waiting for the same slot.
    let touching = |n: u32| Lane { touches: vec![format!("src/{n}/**")], ..lane("a") };
    let goal = |n: u32| {
        let goal: GoalId = format!("01932f6e-7c00-7abc-8def-{n:012x}").parse().expect("an id");
        PoolGoal { goal, rank: at(i64::from(n)), lane: touching(n), left: None, spent: MicroUsd::default() }
    };
    let queue: Vec<PoolGoal> = (0..10_000).map(goal).collect();
    let begun = std::time::Instant::now();
    let plan = schedule(&queue, &[], &caps(4), at(20_000));
    assert_eq!((plan.dispatched.len(), plan.held.len()), (4, 9_996));
    assert!(begun.elapsed() < std::time::Duration::from_secs(5), "{:?}", begun.elapsed());
}

proptest! {
    /// No cap is ever exceeded, nothing starts twice, and every goal starts or has a reason.
    #[test]
    fn caps_hold_and_every_goal_is_decided(
        goals in proptest::collection::vec((0..200_i64, 0..3_u8, 0..2_u8), 0..40),
        working in proptest::collection::vec((0..3_u8, 0..2_u8), 0..6),
        pool in 0..8_usize,
        project in 0..4_usize,
    ) {
        let lane_of = |project: u8, agent: u8| Lane {
            agent: AgentName::new(format!("agent{agent}")),
            account: format!("account{agent}"),
            ..lane(&format!("project{project}"))
        };
        let working: Vec<PoolGoal> = working
            .iter().enumerate().map(|(n, (project, agent))| queued(200 + n as u8, 0, lane_of(*project, *agent))).collect();
        let goals: Vec<PoolGoal> = goals
            .iter().enumerate().map(|(n, (second, project, agent))| queued(n as u8, *second, lane_of(*project, *agent))).collect();
        let agents = BTreeMap::from([(AgentName::new("agent0"), 2)]);
        let situation = Situation {
            caps: Caps { pool, project: Some(project), agents, ..Caps::default() },
            ..Situation::default()
        };
        let plan = schedule(&goals, &working, &situation, at(300));
        prop_assert_eq!(plan.dispatched.len() + plan.held.len(), goals.len());
        let ids = started(&plan);
        let new: Vec<&PoolGoal> = goals.iter().filter(|goal| ids.contains(&goal.goal)).collect();
        prop_assert_eq!(new.len(), ids.len());
        let all = || new.iter().copied().chain(&working);
        prop_assert!(new.is_empty() || all().count() <= pool);
        for goal in &new {
            let same = |other: &&PoolGoal| other.lane.project == goal.lane.project;
            prop_assert!(all().filter(same).count() <= project);
            let agent = |other: &&PoolGoal| other.lane.agent == goal.lane.agent;
            prop_assert!(goal.lane.agent.as_str() != "agent0" || all().filter(agent).count() <= 2);
        }
    }
}

#[test]
fn a_prerequisite_that_ended_otherwise_is_named_with_what_can_be_done() {
    let text = |phase: &str| {
        let (goal, need) = (id(7), Need::Done);
        HoldReason::Prerequisite { goal, need, phase: Some(phase.to_owned()) }.text(|at| at.to_string())
    };
    assert!(text("running").ends_with(" (running)"), "{}", text("running"));
    for phase in ["failed", "cancelled", "unproven"] {
        let advice = format!(" ({phase}); retry it, or cancel this goal");
        assert!(text(phase).ends_with(&advice), "{}", text(phase));
    }
}
