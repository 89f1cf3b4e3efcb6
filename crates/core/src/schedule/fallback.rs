//! Which of a goal's agents starts where the first one cannot.

use std::collections::BTreeMap;

use super::{
    Caps, Dispatch, HoldReason, Lane, PassedOver, Plan, PoolGoal, Purse, PurseScope, Situation, schedule,
};
use crate::fixtures::at;
use crate::{Account, AccountStatus, AgentName, GoalId, MicroUsd};

fn id(number: u8) -> GoalId {
    format!("01932f6e-7c00-7abc-8def-0123456789{number:02x}").parse().expect("an id")
}

/// A goal whose agents are these, in order, each with an account of the same name.
fn goal(number: u8, agents: &[&str]) -> PoolGoal {
    let pair = |agent: &&str| (AgentName::new(*agent), (*agent).to_owned());
    let (agent, account) = pair(&agents[0]);
    let lane = Lane {
        project: "a".into(),
        agent,
        account,
        others: agents[1..].iter().map(pair).collect(),
        labels: Vec::new(),
        touches: Vec::new(),
        has_begun: false,
        unavailable: BTreeMap::new(),
    };
    PoolGoal { goal: id(number), lane, rank: at(i64::from(number)), left: None, spent: MicroUsd::default() }
}

fn account(name: &str, status: AccountStatus) -> Account {
    Account { name: name.into(), agent: AgentName::new(name), status, updated_at: at(0) }
}

fn limited(name: &str) -> Account {
    account(name, AccountStatus::Limited { until: Some(at(600)), guessed: false })
}

fn pool() -> Situation {
    Situation { caps: Caps { pool: 8, ..Caps::default() }, ..Situation::default() }
}

fn capped(agent: &str, most: usize) -> Situation {
    let mut situation = pool();
    situation.caps.agents.insert(AgentName::new(agent), most);
    situation
}

fn lacking(agents: &[&str]) -> Situation {
    let lacks = |agent: &&str| (("a".to_owned(), AgentName::new(*agent)), "A_KEY".to_owned());
    Situation { without_credentials: agents.iter().map(lacks).collect(), ..pool() }
}

/// Why the agents that come first are passed over, in words.
fn passed_over(plan: &Plan) -> Vec<(String, String, bool)> {
    let [Dispatch { passed_over, .. }] = &plan.dispatched[..] else { panic!("{plan:?}") };
    let shown = |PassedOver { agent, account, reason }: &PassedOver| {
        (agent.to_string(), reason.name().to_owned(), account.is_some())
    };
    passed_over.iter().map(shown).collect()
}

fn why(plan: &Plan) -> String {
    assert_eq!(plan.held.len(), 1, "{plan:?}");
    plan.held[0].1.text(|time| format!("+{}s", time.duration_since(at(0)).as_secs()))
}

#[test]
fn another_agent_starts_where_the_first_one_cannot_whatever_the_reason() {
    let closed = account("claude", AccountStatus::Closed);
    let mut full = pool();
    full.caps.accounts.insert("claude".into(), 0);
    for (situation, reason) in [
        (Situation { accounts: vec![limited("claude")], ..pool() }, ("account", true)),
        (Situation { accounts: vec![closed], ..pool() }, ("account", true)),
        (capped("claude", 0), ("slot", false)),
        (full, ("slot", false)),
        (lacking(&["claude"]), ("credentials", false)),
    ] {
        let plan = schedule(&[goal(1, &["claude", "codex"])], &[], &situation, at(3));
        let expected = ("claude".to_owned(), reason.0.to_owned(), reason.1);
        assert_eq!(passed_over(&plan), [expected]);
        let alone = schedule(&[goal(1, &["claude"])], &[], &situation, at(3));
        assert_eq!(alone.held[0].1.name(), reason.0, "without another one it waits");
    }
}

#[test]
fn every_agent_before_the_one_that_starts_is_passed_over() {
    let situation = Situation { accounts: vec![limited("claude")], ..lacking(&["codex"]) };
    let plan = schedule(&[goal(1, &["claude", "codex", "gemini"])], &[], &situation, at(3));
    let expected = [("claude", "account", true), ("codex", "credentials", false)]
        .map(|(agent, reason, is_account)| (agent.to_owned(), reason.to_owned(), is_account));
    assert_eq!(passed_over(&plan), expected);
}

#[test]
fn agents_that_start_instead_of_others_count_for_their_own_caps() {
    let situation = Situation { accounts: vec![limited("claude")], ..capped("codex", 1) };
    let queue = [goal(1, &["claude", "codex"]), goal(2, &["claude", "codex"])];
    let plan = schedule(&queue, &[], &situation, at(3));
    assert_eq!(plan.dispatched.iter().map(|dispatch| dispatch.goal).collect::<Vec<_>>(), [id(1)]);
    assert_eq!(why(&plan), "waits for a slot (cap 1 of agent codex)");
    let again = plan.look_again.expect("the account opens before a slot is free, perhaps");
    assert!(at(600) <= again && again < at(660), "{again}");
}

#[test]
fn a_goal_that_has_begun_waits_for_a_slot_of_its_agent_and_not_for_its_account() {
    let mut begun = goal(1, &["claude", "codex"]);
    begun.lane.has_begun = true;
    let held = schedule(std::slice::from_ref(&begun), &[], &capped("claude", 0), at(3));
    assert_eq!(why(&held), "waits for a slot (cap 0 of agent claude)");
    let situation = Situation { accounts: vec![limited("claude")], ..pool() };
    assert_eq!(schedule(&[begun], &[], &situation, at(3)).dispatched.len(), 1);
}

#[test]
fn a_goal_none_of_whose_agents_can_start_has_the_reason_that_ends_first() {
    let queue = [goal(1, &["claude", "codex"])];
    let situation = Situation { accounts: vec![limited("claude")], ..capped("codex", 0) };
    assert_eq!(why(&schedule(&queue, &[], &situation, at(3))), "waits for a slot (cap 0 of agent codex)");
    let situation = Situation { accounts: vec![limited("claude")], ..lacking(&["codex"]) };
    assert!(why(&schedule(&queue, &[], &situation, at(3))).starts_with("claude is limited until +6"));
    let full = Situation { caps: Caps { pool: 0, ..Caps::default() }, ..pool() };
    let pool = schedule(&queue, &[], &full, at(3));
    assert_eq!(why(&pool), "waits for a slot (pool cap 0)");
    assert!(!matches!(pool.held[0].1, HoldReason::Account { .. }));
}

/// A goal that cannot use these agents until then.
fn without(goal: PoolGoal, agents: &[(&str, Option<i64>)]) -> PoolGoal {
    let until = |(agent, second): &(&str, Option<i64>)| (AgentName::new(*agent), second.map(at));
    let unavailable = agents.iter().map(until).collect();
    PoolGoal { lane: Lane { unavailable, ..goal.lane }, ..goal }
}

#[test]
fn the_first_agent_that_the_goal_can_use_now_starts() {
    let limited = without(goal(1, &["claude", "codex"]), &[("claude", Some(60))]);
    for (second, expected) in [(59, "codex"), (60, "claude")] {
        let plan = schedule(std::slice::from_ref(&limited), &[], &pool(), at(second));
        let (goal, agent) = (id(1), AgentName::new(expected));
        // The goal knows already that it cannot use the other one.
        assert_eq!(plan.dispatched, [Dispatch { goal, agent, passed_over: Vec::new() }]);
    }
}

#[test]
fn an_agent_that_becomes_available_is_looked_at_again_at_that_time() {
    let queue = [without(goal(1, &["claude", "codex"]), &[("claude", Some(60))])];
    let plan = schedule(&queue, &[], &capped("codex", 0), at(3));
    assert_eq!(why(&plan), "waits for a slot (cap 0 of agent codex)");
    assert_eq!(plan.look_again, Some(at(60)));
    // The other agent has a slot, but there is too little money for it.
    let purse = Purse { scope: PurseScope::Pool, limit: MicroUsd(5), spent: MicroUsd(5), renews_at: None };
    let plan = schedule(&queue, &[], &Situation { purses: vec![purse], ..pool() }, at(3));
    assert_eq!((plan.held[0].1.name(), plan.look_again), ("budget", Some(at(60))));
    let both = [without(goal(1, &["claude", "codex"]), &[("claude", Some(60)), ("codex", Some(30))])];
    let plan = schedule(&both, &[], &pool(), at(3));
    assert_eq!(why(&plan), "claude failed or was limited; this goal can use it again at +60s");
    assert_eq!(plan.look_again, Some(at(30)));
}

#[test]
fn an_agent_that_time_alone_does_not_bring_back_is_no_reason_to_wait() {
    let refused = without(goal(1, &["claude", "codex"]), &[("claude", None)]);
    let situation = Situation { accounts: vec![limited("codex")], ..pool() };
    assert!(why(&schedule(&[refused], &[], &situation, at(3))).starts_with("codex is limited until +6"));
    // Nobody would ever see why it does not go on.
    let both = without(goal(1, &["claude", "codex"]), &[("claude", None), ("codex", None)]);
    let plan = schedule(&[both], &[], &pool(), at(3));
    assert_eq!(plan.dispatched.len(), 1);
}
