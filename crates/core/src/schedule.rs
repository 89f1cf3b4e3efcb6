//! Which queued goals start now, and why each of the others waits. Pure: the engine asks again whenever something has changed.
//!
//! Goals of one [`Lane`] compete for the same room, so it is enough to look at the first few of each lane: picking the next goal
//! costs the same however many wait behind them.

#[cfg(test)]
mod fallback;
mod hold;
mod lane;
mod overlap;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

pub use self::hold::{Cap, HoldReason, Purse, PurseScope};
pub use self::lane::Lane;
use crate::names::{name_of, value_named};
use crate::{Account, AccountStatus, AgentName, Goal, GoalId, GoalState, MicroUsd, Phase, Policy};

/// How much earlier a goal is queued for each step of its priority.
const PRIORITY_STEP: SignedDuration = SignedDuration::from_hours(1);

/// How a goal takes part in a pool. The defaults are those of a goal that runs alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Scheduling {
    /// Each step counts as an hour of waiting.
    #[serde(skip_serializing_if = "is_zero")]
    pub priority: i32,
    /// Goals that must have come to their end first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<Prerequisite>,
    /// Globs of the files that it changes. Goals of one project whose globs overlap do not run at the same time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub touches: Vec<String>,
    /// Whether the work starts from the candidate of its single prerequisite.
    #[serde(skip_serializing_if = "is_false")]
    pub base_is_prerequisite: bool,
    /// The values of a prompt that is filled in when the prerequisites have ended; none for one that is complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<BTreeMap<String, serde_json::Value>>,
    /// Where programs are looked up, as in the environment of whoever added the goal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search_path: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(priority: &i32) -> bool {
    *priority == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

/// A goal that must have come to its end first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Prerequisite {
    pub goal: GoalId,
    pub need: Need,
}

/// What a prerequisite must have come to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Need {
    #[default]
    Done,
    /// Its work is in a branch of the user's.
    Merged,
}

impl Need {
    /// Everything that can be needed.
    pub const ALL: [Self; 2] = [Self::Done, Self::Merged];

    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        name_of(&self)
    }

    /// The need with this name.
    pub fn named(name: &str) -> Option<Self> {
        value_named(name)
    }

    /// Whether a goal in this state has come to it.
    pub fn is_met(self, state: &GoalState) -> bool {
        match self {
            Self::Done => state.phase == Phase::Done,
            Self::Merged => state.merged.is_some(),
        }
    }
}

/// The place of a goal in the queue: earlier ones go first. It does not change while the goal waits, so nothing starves.
pub fn rank(queued_at: Timestamp, priority: i32) -> Timestamp {
    let earlier = PRIORITY_STEP.checked_mul(priority).unwrap_or(SignedDuration::ZERO);
    queued_at.checked_sub(earlier).unwrap_or(queued_at)
}

/// A goal that runs or could run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolGoal {
    pub goal: GoalId,
    pub lane: Lane,
    /// Its place in the queue.
    pub rank: Timestamp,
    /// What is left of its own limit in dollars.
    pub left: Option<MicroUsd>,
    /// What its running attempt has spent.
    pub spent: MicroUsd,
}

impl PoolGoal {
    /// The goal as it takes part in a pool in this state.
    pub fn of(goal: &Goal, state: &GoalState) -> Self {
        Self {
            goal: goal.id,
            lane: Lane::of(goal, state),
            rank: rank(state.queued_at.unwrap_or(goal.created_at), goal.scheduling.priority),
            left: state.usd_left(),
            spent: state.spent_by_running_agent(),
        }
    }
}

/// How many goals may run at once; what is not limited is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caps {
    pub pool: usize,
    /// In each project.
    pub project: Option<usize>,
    pub agents: BTreeMap<AgentName, usize>,
    pub accounts: BTreeMap<String, usize>,
    pub labels: BTreeMap<String, usize>,
}

impl Default for Caps {
    fn default() -> Self {
        Self {
            pool: 4,
            project: None,
            agents: BTreeMap::new(),
            accounts: BTreeMap::new(),
            labels: BTreeMap::new(),
        }
    }
}

/// Everything that decides which goals start, besides the goals.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Situation {
    pub caps: Caps,
    pub accounts: Vec<Account>,
    pub purses: Vec<Purse>,
    /// What an attempt of an agent usually costs, for goals without a limit of their own.
    pub usual_cost: BTreeMap<AgentName, MicroUsd>,
    /// Agents of a project that would start without their credentials, with what is missing.
    pub without_credentials: BTreeMap<(String, AgentName), String>,
    /// Projects whose configuration cannot be used, with what is wrong with it.
    pub broken: BTreeMap<String, String>,
    /// Why no goal can start at all.
    pub closed: Option<HoldReason>,
}

/// Who starts, and why the others wait.
#[derive(Debug, Clone, Default, PartialEq)]
#[must_use]
pub struct Plan {
    pub dispatched: Vec<Dispatch>,
    pub held: Vec<(GoalId, HoldReason)>,
    /// When a goal that waits for a time can start.
    pub look_again: Option<Timestamp>,
}

impl Plan {
    /// Whether goals could start that were not among those it was made for: each of these waits for a reason of its own.
    pub fn leaves_room(&self) -> bool {
        self.dispatched.is_empty() && !self.held.iter().any(|(_, reason)| reason.holds_all())
    }
}

/// A goal that starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dispatch {
    pub goal: GoalId,
    /// The agent that there is room and money for.
    pub agent: AgentName,
    /// The agents of the goal that cannot start now and would come first.
    pub passed_over: Vec<PassedOver>,
}

/// An agent that cannot start now, where another one of the goal's does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassedOver {
    pub agent: AgentName,
    /// Its account, if that is what cannot be used.
    pub account: Option<Account>,
    pub reason: HoldReason,
}

/// Decides which of the queued goals start. Those that wait for others are not among them; the queue need only hold the first
/// of each lane, as many as there is room for.
pub fn schedule(queued: &[PoolGoal], working: &[PoolGoal], situation: &Situation, now: Timestamp) -> Plan {
    let mut round = Round { situation, now, working: working.to_vec(), spent_for_now: BTreeSet::new() };
    let mut waiting: Vec<&PoolGoal> = queued.iter().collect();
    // Sorted so that the next goal is taken from the end.
    waiting.sort_by_key(|goal| Reverse((goal.rank, goal.goal)));
    let mut plan = Plan::default();
    while let Some(next) = round.first_of(&waiting) {
        let goal = waiting.remove(next);
        match round.room_for(goal) {
            Ok(Startable { lane, passed_over, .. }) => {
                plan.dispatched.push(Dispatch { goal: goal.goal, agent: lane.agent.clone(), passed_over });
                round.working.push(PoolGoal { lane, ..goal.clone() });
            }
            Err(Held { reason, until }) => {
                plan.look_again = earlier(plan.look_again, until);
                plan.held.push((goal.goal, reason));
            }
        }
    }
    plan
}

fn earlier(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}

/// A goal that can start.
struct Startable {
    /// Its lane with the agent that starts.
    lane: Lane,
    passed_over: Vec<PassedOver>,
    /// When an agent that comes before it can be looked at again.
    until: Option<Timestamp>,
}

/// A goal that cannot start.
struct Held {
    reason: HoldReason,
    /// When one of its agents can be looked at again, whichever the reason is about.
    until: Option<Timestamp>,
}

impl From<HoldReason> for Held {
    fn from(reason: HoldReason) -> Self {
        Self { until: reason.until(), reason }
    }
}

impl Held {
    /// Another agent of the goal cannot start either. The reason stays that of the first one that can start again by itself, unless
    /// the other only waits for a slot, which is free sooner than anything else.
    fn add(&mut self, reason: &HoldReason) {
        self.until = earlier(self.until, reason.until());
        let is_slot = |reason: &HoldReason| matches!(reason, HoldReason::Slot { .. });
        let is_useless = matches!(self.reason, HoldReason::Agent { until: None, .. });
        if is_useless || (is_slot(reason) && !is_slot(&self.reason)) {
            self.reason = reason.clone();
        }
    }
}

/// A decision under way.
struct Round<'a> {
    situation: &'a Situation,
    now: Timestamp,
    working: Vec<PoolGoal>,
    /// Purses that a goal waits for: what comes after it does not overtake it there.
    spent_for_now: BTreeSet<PurseScope>,
}

impl Round<'_> {
    /// Who is next of those that wait, the first one last: by rank, among equals the one whose project runs fewer goals.
    fn first_of(&self, waiting: &[&PoolGoal]) -> Option<usize> {
        let rank = waiting.last()?.rank;
        let equals = waiting.iter().enumerate().rev().take_while(|(_, goal)| goal.rank == rank);
        let key = |goal: &PoolGoal| (self.count(|lane| lane.project == goal.lane.project), goal.goal);
        equals.min_by_key(|(_, goal)| key(goal)).map(|(index, _)| index)
    }

    fn count(&self, is_counted: impl Fn(&Lane) -> bool) -> usize {
        self.working.iter().filter(|goal| is_counted(&goal.lane)).count()
    }

    fn room_for(&mut self, goal: &PoolGoal) -> Result<Startable, Held> {
        if let Some(reason) = &self.situation.closed {
            return Err(reason.clone().into());
        }
        if let Some(error) = self.situation.broken.get(&goal.lane.project) {
            return Err(HoldReason::Configuration { error: error.clone() }.into());
        }
        let choice = self.usable_agent(goal)?;
        let (lane, until) = (choice.lane.clone(), choice.until);
        let held = |reason: HoldReason| Held { until: earlier(until, reason.until()), reason };
        self.room_in(&PoolGoal { lane, ..goal.clone() }).map_err(held)?;
        Ok(choice)
    }

    /// Whether nothing else keeps a goal with a usable agent from starting.
    fn room_in(&mut self, goal: &PoolGoal) -> Result<(), HoldReason> {
        if let Some(cap) = self.full_cap(&goal.lane) {
            return Err(HoldReason::Slot { cap });
        }
        if let Some(other) = self.working.iter().find(|other| other.lane.collides(&goal.lane)) {
            return Err(HoldReason::Touches { goal: other.goal });
        }
        // Last of all: money is held back for a goal that nothing else keeps from starting.
        self.money_for(goal)
    }

    /// The lane as it is, or with the first other agent that can start where the lane's own cannot. An agent that has begun is
    /// not replaced for want of a slot.
    fn usable_agent(&self, goal: &PoolGoal) -> Result<Startable, Held> {
        let own = goal.lane.clone();
        let mut passed_over = Vec::new();
        // A goal that no agent can continue has to report that.
        if own.is_without_agents() {
            return Ok(Startable { lane: own, passed_over, until: None });
        }
        let Err(reason) = self.usable(goal, &own) else {
            return Ok(Startable { lane: own, passed_over, until: None });
        };
        let mut held = Held::from(reason.clone());
        if own.has_begun && matches!(reason, HoldReason::Slot { .. }) {
            return Err(held);
        }
        passed_over.extend(self.passed_over(&own, reason));
        for (agent, account) in &own.others {
            let lane = Lane { agent: agent.clone(), account: account.clone(), ..own.clone() };
            let Err(reason) = self.usable(goal, &lane) else {
                return Ok(Startable { lane, passed_over, until: held.until });
            };
            held.add(&reason);
            passed_over.extend(self.passed_over(&lane, reason));
        }
        Err(held)
    }

    /// What the goal has to know about an agent that another one starts instead of.
    fn passed_over(&self, lane: &Lane, reason: HoldReason) -> Option<PassedOver> {
        let is_account = matches!(reason, HoldReason::Account { .. });
        let account = self.account(&lane.account).filter(|_| is_account).cloned();
        let is_known = matches!(reason, HoldReason::Agent { .. });
        (!is_known).then(|| PassedOver { agent: lane.agent.clone(), account, reason })
    }

    /// Whether the agent of this lane can start, as far as it differs from the goal's other agents.
    fn usable(&self, goal: &PoolGoal, lane: &Lane) -> Result<(), HoldReason> {
        if let Some(reason) = lane.left_alone(self.now) {
            return Err(reason);
        }
        let of_project = (lane.project.clone(), lane.agent.clone());
        if let Some(missing) = self.situation.without_credentials.get(&of_project) {
            return Err(HoldReason::Credentials { agent: lane.agent.clone(), missing: missing.clone() });
        }
        self.account_is_open(goal, &lane.account)?;
        let is_own = |cap: &Cap| matches!(cap, Cap::Agent { .. } | Cap::Account { .. });
        match self.full_cap(lane).filter(is_own) {
            Some(cap) => Err(HoldReason::Slot { cap }),
            None => Ok(()),
        }
    }

    fn account_is_open(&self, goal: &PoolGoal, account: &str) -> Result<(), HoldReason> {
        let Some(known) = self.account(account) else { return Ok(()) };
        let held = |until| HoldReason::Account { name: account.to_owned(), until };
        match known.status {
            AccountStatus::Open => Ok(()),
            AccountStatus::Limited { until, .. } => {
                // A limit without an end is over when an attempt finds out, so one is let through after a while.
                let until = until.unwrap_or_else(|| known.tried_again_at());
                let until = Policy::wakes_at(known.updated_at, until, goal.goal.seed(0));
                if until <= self.now { Ok(()) } else { Err(held(Some(until))) }
            }
            AccountStatus::Closed => Err(held(None)),
            AccountStatus::Trial if self.count(|lane| lane.account == account) == 0 => Ok(()),
            AccountStatus::Trial => {
                Err(HoldReason::Slot { cap: Cap::Account { name: account.to_owned(), most: 1 } })
            }
        }
    }

    fn account(&self, name: &str) -> Option<&Account> {
        self.situation.accounts.iter().find(|account| account.name == name)
    }

    /// The first cap that leaves no room in this lane.
    fn full_cap(&self, lane: &Lane) -> Option<Cap> {
        let caps = &self.situation.caps;
        let project = caps.project.map(|most| Cap::Project { most });
        let agent =
            caps.agents.get(&lane.agent).map(|most| Cap::Agent { name: lane.agent.clone(), most: *most });
        let account = caps
            .accounts
            .get(&lane.account)
            .map(|most| Cap::Account { name: lane.account.clone(), most: *most });
        let label = |name: &String| Some(Cap::Label { name: name.clone(), most: *caps.labels.get(name)? });
        let labels = lane.labels.iter().filter_map(label);
        let caps = [Some(Cap::Pool { most: caps.pool }), project, agent, account];
        caps.into_iter()
            .flatten()
            .chain(labels)
            .find(|cap| self.count(|other| cap.counts(other, lane)) >= cap.most())
    }

    /// Whether every purse has enough for the goal. The last goal that runs may use what is left.
    fn money_for(&mut self, goal: &PoolGoal) -> Result<(), HoldReason> {
        for purse in self.situation.purses.iter().filter(|purse| purse.scope.covers(&goal.lane)) {
            let working = self.working.iter().filter(|other| purse.scope.covers(&other.lane));
            let each: Vec<MicroUsd> = working.map(|other| self.reserve(other)).collect();
            let reserved = MicroUsd(each.iter().fold(0, |sum, amount| amount.0.saturating_add(sum)));
            let left = purse.limit.0.saturating_sub(purse.spent.0);
            let fits = self.reserve(goal).0 <= left.saturating_sub(reserved.0) || each.is_empty();
            if left == 0 || !fits || self.spent_for_now.contains(&purse.scope) {
                self.spent_for_now.insert(purse.scope.clone());
                return Err(HoldReason::Budget { purse: purse.clone(), reserved });
            }
        }
        Ok(())
    }

    /// What the goal may spend from now on.
    fn reserve(&self, goal: &PoolGoal) -> MicroUsd {
        // What the attempt has spent already is among what is spent of the purse.
        let usual = || Some(self.situation.usual_cost.get(&goal.lane.agent)?.saturating_sub(goal.spent));
        goal.left.or_else(usual).unwrap_or_default()
    }
}
