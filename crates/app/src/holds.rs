//! Why goals wait in the queue: the engine's own decision, asked for without acting on it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use towline_api::HoldReport;
use towline_core::{GoalId, HoldReason, Phase, PoolGoal, Prerequisite, schedule};
use towline_engine::{Home, PoolRules, pool_state, running_server, situation};
use towline_store::{GoalRecord, QueuedGoal, Store, Unmet};

use crate::context::{Context, State};
use crate::error::Error;
use crate::rules::Rules;

/// Phases of a prerequisite in which a person must do something before its dependants can start.
const STUCK: [&str; 6] = ["paused", "escalated", "done", "unproven", "failed", "cancelled"];

/// Why goals wait.
#[derive(Debug, Default)]
pub struct Holds {
    reasons: BTreeMap<GoalId, HoldReason>,
}

impl Holds {
    /// Why those of these goals wait that are queued.
    pub async fn of_records(
        context: &Context,
        state: &State,
        records: &[GoalRecord],
        now: Timestamp,
    ) -> Result<Self, Error> {
        let mut queued = Vec::new();
        for record in records.iter().filter(|record| record.state.phase == Phase::Queued) {
            let unmet = state.store.unmet(record.goal.id).await?;
            queued.push(QueuedGoal { goal: PoolGoal::of(&record.goal, &record.state), unmet });
        }
        if queued.is_empty() {
            return Ok(Self::default());
        }
        let rules = rules_of(context, state);
        Self::of_queue(&state.home, state.store.as_ref(), &rules, &queued, now).await
    }

    /// Why these goals of the queue wait.
    pub(crate) async fn of_queue(
        home: &Home,
        store: &dyn Store,
        rules: &Arc<dyn PoolRules>,
        queued: &[QueuedGoal],
        now: Timestamp,
    ) -> Result<Self, Error> {
        let limits = rules.limits(now);
        let mut view = store.pool(limits.caps.pool.max(1)).await?;
        let known: BTreeSet<GoalId> = view.queued.iter().map(|goal| goal.goal).collect();
        let further =
            queued.iter().filter(|queued| queued.unmet.is_empty() && !known.contains(&queued.goal.goal));
        view.queued.extend(further.map(|queued| queued.goal.clone()));
        let (closed, known) = match running_server(home) {
            None => (Some(HoldReason::NoServer), BTreeMap::new()),
            Some(server) => {
                let state = pool_state(home, &server.worker).await.unwrap_or_default();
                (state.is_draining.then_some(HoldReason::Draining), state.held)
            }
        };
        // Their places go to others.
        view.queued.retain(|goal| !known.contains_key(&goal.goal));
        let situation = situation(store, home, rules, &limits, &view).await?;
        let plan = schedule(&view.queued, &view.working, &situation, now);
        let mut reasons: BTreeMap<GoalId, HoldReason> = known.into_iter().chain(plan.held).collect();
        for dispatch in plan.dispatched {
            reasons.extend(closed.clone().map(|closed| (dispatch.goal, closed)));
        }
        for QueuedGoal { goal, unmet } in queued {
            reasons.extend(decisive(unmet).map(|reason| (goal.goal, reason)));
        }
        Ok(Self { reasons })
    }

    /// Why this goal waits; nothing for one that is about to start or does not wait in the queue.
    pub fn of(&self, goal: GoalId) -> Option<&HoldReason> {
        self.reasons.get(&goal)
    }

    /// The same as a report.
    pub fn report(&self, goal: GoalId, now: Timestamp) -> Option<HoldReport> {
        self.of(goal).map(|reason| hold_report(reason, now))
    }
}

/// The rules that the server follows, for a report.
pub(crate) fn rules_of(context: &Context, state: &State) -> Arc<dyn PoolRules> {
    Arc::new(Rules::for_report(context, running_server(&state.home).and_then(|server| server.slots)))
}

/// The prerequisite that holds a goal: first one that will not come to its end by itself.
fn decisive(unmet: &[Unmet]) -> Option<HoldReason> {
    let is_stuck = |unmet: &&Unmet| unmet.phase.as_deref().is_none_or(|phase| STUCK.contains(&phase));
    let Unmet { prerequisite: Prerequisite { goal, need }, phase } =
        unmet.iter().find(is_stuck).or_else(|| unmet.first())?;
    Some(HoldReason::Prerequisite { goal: *goal, need: *need, phase: phase.clone() })
}

/// A reason with times of the day in the system's time zone.
pub fn hold_report(reason: &HoldReason, now: Timestamp) -> HoldReport {
    HoldReport::of(reason, |at| time_of_day(at, now, &TimeZone::system()))
}

/// The time, with its date on another day.
pub(crate) fn time_of_day(at: Timestamp, now: Timestamp, time_zone: &TimeZone) -> String {
    let [at, now] = [at, now].map(|at| at.to_zoned(time_zone.clone()));
    let form = if at.date() == now.date() { "%H:%M" } else { "%Y-%m-%d %H:%M" };
    at.strftime(form).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_another_day_has_its_date() {
        let at = |text: &str| text.parse::<Timestamp>().expect("a time");
        let shown = |text| time_of_day(at(text), at("2026-11-18T12:00:00Z"), &TimeZone::UTC);
        assert_eq!(shown("2026-11-18T14:05:09Z"), "14:05");
        assert_eq!(shown("2026-11-19T00:00:00Z"), "2026-11-19 00:00");
    }
}
