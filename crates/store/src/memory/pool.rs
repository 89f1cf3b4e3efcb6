//! What concerns all goals at once: sums, accounts, notifications and the queue.

use std::collections::BTreeMap;

use jiff::Timestamp;
use towline_core::{Account, AccountStatus, AgentName, Attempt, Event, GoalId, MicroUsd, PoolGoal};

use super::{LedgerRow, Pool};
use crate::ledger::{
    AccountReport, Amounts, COSTS_COUNTED, COSTS_LOOKED_AT, SpendBy, Spending, SpentByProject,
    account_reports, changed_usage, median, quarter,
};
use crate::pool::{PoolStanding, is_notable};
use crate::{Append, Appended, GoalRecord, NoticeId, PendingNotice, StoreError, Unmet};

impl Pool {
    pub(super) fn append(&mut self, append: Append) -> Result<Appended, StoreError> {
        let (events, at, notifies) = (append.events.clone(), append.at, append.notifies);
        let stored = self.goals.get_mut(&append.goal).ok_or(StoreError::NotFound(append.goal))?;
        let before = stored.record.state.clone();
        let appended = stored.append(append, &mut self.place)?;
        for event in appended.events.iter().filter(|_| notifies) {
            if let Event::PhaseChanged { phase } = &event.event
                && is_notable(phase)
            {
                self.last_notice += 1;
                let id = NoticeId(self.last_notice);
                let (goal, seq, phase) = (event.goal, event.seq, phase.clone());
                self.notices.insert(id, (PendingNotice { id, goal, seq, phase, at, tries: 0 }, at));
            }
        }
        let GoalRecord { goal, state, .. } = &stored.record;
        for AccountReport { agent, account, started_at, status, at } in account_reports(&events, state) {
            let name = account.unwrap_or_else(|| goal.account_of(agent)).to_owned();
            let agent = agent.clone();
            // What began before a limit was known shows nothing about it.
            let is_new = |known: &Account| {
                known.status != status && (status != AccountStatus::Open || started_at >= known.updated_at)
            };
            if self.accounts.get(&name).is_none_or(is_new) {
                self.accounts.insert(name.clone(), Account { name, agent, status, updated_at: at });
            }
        }
        for spender in changed_usage(state, Some(&before)) {
            let number = spender.number;
            let key = (goal.id, number, quarter(at));
            let of_spender = (goal.id, number, Timestamp::MIN)..=(goal.id, number, Timestamp::MAX);
            let rows = self.ledger.range(of_spender.clone());
            let mut others = Amounts::default();
            rows.filter(|(other, _)| **other != key).for_each(|(_, row)| others += row.amounts);
            let account = spender.account.unwrap_or_else(|| goal.account_of(spender.agent)).to_owned();
            let project = goal.workspace.repository.clone();
            let (agent, model) = (spender.agent.to_string(), spender.model.unwrap_or_default().to_owned());
            let amounts = spender.amounts - others;
            self.ledger
                .range_mut(of_spender)
                .for_each(|(_, row)| row.amounts = known_later(row.amounts, amounts));
            self.ledger.insert(key, LedgerRow { project, account, agent, model, amounts });
        }
        Ok(appended)
    }

    pub(super) fn spending(&self, since: Timestamp, by: SpendBy) -> Vec<Spending> {
        let mut sums: BTreeMap<String, Amounts> = BTreeMap::new();
        for ((goal, _, at), LedgerRow { project, account, agent, model, amounts }) in &self.ledger {
            if *at >= quarter(since) {
                let key = match by {
                    SpendBy::Time => format!("{at:.9}"),
                    SpendBy::Project => project.clone(),
                    SpendBy::Account => account.clone(),
                    SpendBy::Agent => agent.clone(),
                    SpendBy::Model => model.clone(),
                    SpendBy::Goal => goal.to_string(),
                };
                *sums.entry(key).or_default() += of_row(*amounts);
            }
        }
        sums.into_iter().map(|(key, amounts)| Spending { key, amounts }).collect()
    }

    pub(super) fn spent(&self, during: Option<(Timestamp, Timestamp)>) -> SpentByProject {
        let mut spent = SpentByProject::default();
        for ((_, _, at), LedgerRow { project, amounts, .. }) in &self.ledger {
            if during.is_none_or(|(from, until)| (quarter(from)..until).contains(at)) {
                spent.add(project.clone(), amounts.cost.unwrap_or_default().saturating_add(amounts.estimate));
            }
        }
        spent
    }

    /// Goals of this standing, in the order of their ranks.
    pub(super) fn standing(&self, standing: PoolStanding) -> Vec<PoolGoal> {
        let records = self.goals.values().map(|stored| &stored.record);
        let mut goals: Vec<PoolGoal> = records
            .filter(|record| PoolStanding::of(&record.state) == Some(standing))
            .map(|GoalRecord { goal, state, .. }| PoolGoal::of(goal, state))
            .collect();
        goals.sort_by_key(|goal| (goal.rank, goal.goal));
        goals
    }

    pub(super) fn unmet(&self, goal: GoalId) -> Vec<Unmet> {
        let Some(stored) = self.goals.get(&goal) else { return Vec::new() };
        let unmet = stored.record.goal.scheduling.after.iter().filter_map(|prerequisite| {
            let needed = self.goals.get(&prerequisite.goal).map(|needed| &needed.record.state);
            let is_met = needed.is_some_and(|state| prerequisite.need.is_met(state));
            let phase = needed.map(|state| state.phase.name().to_owned());
            (!is_met).then_some(Unmet { prerequisite: *prerequisite, phase })
        });
        unmet.collect()
    }

    pub(super) fn usual_costs(&self) -> BTreeMap<AgentName, MicroUsd> {
        let attempts = self.goals.values().flat_map(|stored| &stored.record.state.attempts);
        let mut ended: Vec<&Attempt> = attempts.filter(|attempt| attempt.ended_at.is_some()).collect();
        ended.sort_by_key(|attempt| std::cmp::Reverse(attempt.ended_at));
        let mut costs: BTreeMap<AgentName, Vec<u64>> = BTreeMap::new();
        for attempt in ended {
            let cost = attempt.usage.cost.0 + attempt.usage.estimate.0;
            costs.entry(attempt.agent.clone()).or_default().push(cost);
        }
        let last = |costs: Vec<u64>| {
            costs.into_iter().take(COSTS_LOOKED_AT).filter(|cost| *cost > 0).take(COSTS_COUNTED).collect()
        };
        costs.into_iter().map(|(agent, costs)| (agent, median(last(costs)))).collect()
    }
}

/// The amounts of one row, with what it lacks. Where no tokens are added, no cost is missing.
fn of_row(row: Amounts) -> Amounts {
    let tokens = [row.input, row.output, row.cache_read, row.cache_write];
    let lacks_tokens = row.input.is_none();
    let has_used = lacks_tokens || tokens.into_iter().flatten().any(|amount| amount != 0);
    Amounts { lacks_tokens, lacks_cost: row.cost.is_none() && row.estimate == 0 && has_used, ..row }
}

/// A row of an attempt of which these amounts are known by now: what it did not know was nothing, as the later row has all of it.
fn known_later(row: Amounts, later: Amounts) -> Amounts {
    let nothing = |known: Option<i64>, later: Option<i64>| known.or(later.map(|_| 0));
    Amounts {
        input: nothing(row.input, later.input),
        output: nothing(row.output, later.output),
        cache_read: nothing(row.cache_read, later.cache_read),
        cache_write: nothing(row.cache_write, later.cache_write),
        cost: nothing(row.cost, later.cost),
        ..row
    }
}
