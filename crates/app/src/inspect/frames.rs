//! Frames of agents that were not understood: the first sign that an agent's format has changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use towline_api::FrameFacts;
use towline_core::{AgentEvent, AgentName, Event, Seq};
use towline_store::{GoalRecord, Store};

use crate::context::Context;
use crate::find;

/// Of so many goals with such frames, the newest ones, the kinds are looked up.
const GOALS: usize = 20;
/// So many events of each are read at most.
const EVENTS: usize = 20_000;
const PAGE: usize = 500;

/// What is stored.
#[derive(Default)]
pub(crate) struct Stored {
    /// The goals of this repository, or all of them outside of one, the newest first.
    pub(crate) records: Vec<GoalRecord>,
    /// Where they are; none if there is nothing yet or it cannot be opened.
    pub(crate) store: Option<Arc<dyn Store>>,
}

impl Stored {
    /// These goals, as far as they belong here.
    pub(crate) fn here(context: &Context, mut records: Vec<GoalRecord>, store: Arc<dyn Store>) -> Self {
        if let Some(here) = find::repository_here(context) {
            records.retain(|record| record.goal.workspace.repository == here);
        }
        Self { records, store: Some(store) }
    }
}

/// Counts them by agent.
pub(crate) async fn count(stored: &Stored) -> Vec<FrameFacts> {
    let mut by_agent: BTreeMap<AgentName, FrameFacts> = BTreeMap::new();
    // The newest goal comes first, and of a goal the last attempt.
    for record in &stored.records {
        for attempt in record.state.attempts.iter().rev().filter(|attempt| attempt.unrecognised > 0) {
            let facts = by_agent.entry(attempt.agent.clone()).or_insert_with(|| FrameFacts {
                agent: attempt.agent.to_string(),
                total: 0,
                kinds: BTreeMap::new(),
                goal: record.goal.id.short(),
                attempt: attempt.n.get(),
            });
            facts.total += attempt.unrecognised;
        }
    }
    let with_some = stored.records.iter().filter(|record| has_some(record)).take(GOALS);
    if let Some(store) = &stored.store {
        for record in with_some {
            add_kinds(store, record, &mut by_agent).await;
        }
    }
    by_agent.into_values().collect()
}

fn has_some(record: &GoalRecord) -> bool {
    record.state.attempts.iter().any(|attempt| attempt.unrecognised > 0)
}

async fn add_kinds(
    store: &Arc<dyn Store>,
    record: &GoalRecord,
    by_agent: &mut BTreeMap<AgentName, FrameFacts>,
) {
    let mut after = Seq(0);
    for _ in 0..EVENTS / PAGE {
        // Kinds that cannot be read are missing from the report; the number of frames is known without them.
        let Ok(page) = store.events(record.goal.id, after, PAGE).await else { return };
        let Some(last) = page.last() else { return };
        after = last.seq;
        for envelope in &page {
            let Event::Agent { event: AgentEvent::Unrecognised { what, count, .. }, .. } = &envelope.event
            else {
                continue;
            };
            let attempt = envelope.attempt.and_then(|number| record.state.attempt(number));
            if let Some(facts) = attempt.and_then(|attempt| by_agent.get_mut(&attempt.agent)) {
                *facts.kinds.entry(what.clone()).or_default() += count;
            }
        }
    }
}
