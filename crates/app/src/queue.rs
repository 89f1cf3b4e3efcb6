//! What runs and what waits, and why.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use towline_api::{HoldReport, PrerequisiteLine, QueueLine, QueueReport, ServerLine};
use towline_core::{GoalId, Need, Phase, PoolGoal, Prerequisite};
use towline_engine::{ServerInfo, running_server};
use towline_store::{Listing, QueuedGoal, Store, StoreError};

use crate::context::Context;
use crate::error::Error;
use crate::holds::{Holds, rules_of, time_of_day};

/// How many waiting goals are listed.
const LISTED: usize = 500;

/// What runs, and what waits in the order in which it is to start.
pub async fn queue(context: &Context, now: Timestamp) -> Result<QueueReport, Error> {
    let Some(state) = context.existing_state()? else {
        let (running, waiting, idle) = (Vec::new(), Vec::new(), Vec::new());
        return Ok(QueueReport { server: None, running, waiting, idle, more: false, problem: None });
    };
    let store = state.store.as_ref();
    let mut queued = store.queue(None, LISTED + 1).await?;
    let mut more = queued.len() > LISTED;
    queued.truncate(LISTED);
    let rules = rules_of(context, &state);
    let holds = Holds::of_queue(&state.home, store, &rules, &queued, now).await?;
    let mut running = Vec::new();
    for goal in store.pool(1).await?.working {
        running.extend(line(store, &QueuedGoal { goal, unmet: Vec::new() }).await?);
    }
    let mut waiting = Vec::new();
    for queued in &queued {
        let hold = holds.report(queued.goal.goal, now);
        waiting.extend(line(store, queued).await?.map(|line| QueueLine { hold, ..line }));
    }
    let mut idle = Vec::new();
    let listing = Listing { phases: IDLE.to_vec(), ..Listing::first(LISTED + 1) };
    for listed in store.list(&listing).await? {
        if idle.len() == LISTED {
            more = true;
            break;
        }
        idle.extend(idle_line(store, listed.id(), now).await?);
    }
    let (server, problem) = (running_server(&state.home).map(server_line), rules.problem());
    Ok(QueueReport { server, running, waiting, idle, more, problem })
}

/// Phases of goals that are under way and wait for something else than a slot.
const IDLE: [&str; 5] = ["limited", "sleeping", "blocked", "escalated", "paused"];

/// The line of a goal that waits for a quota, a time or a person, with what that is.
async fn idle_line(store: &dyn Store, id: GoalId, now: Timestamp) -> Result<Option<QueueLine>, StoreError> {
    let record = match store.load(id).await {
        Ok(record) => record,
        Err(StoreError::NotFound(_) | StoreError::Unreadable { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let phase = &record.state.phase;
    let time = |at: Timestamp| time_of_day(at, now, &TimeZone::system());
    let text = match phase {
        Phase::Limited { until, .. } => format!("waits for the provider's quota until {}", time(*until)),
        Phase::Sleeping { until, reason } => format!("sleeps until {}: {reason}", time(*until)),
        Phase::Blocked { .. } => {
            let asked = record.state.open_question().map(|question| question.ask.title());
            let by = phase.until().map(|until| format!(" by {}", time(until))).unwrap_or_default();
            format!("needs an answer{by}: {}", asked.unwrap_or_default())
        }
        Phase::Escalated { .. } => format!("needs you{}", record.state.why(phase)),
        Phase::Paused { .. } => format!("paused{}", record.state.why(phase)),
        // It has moved meanwhile.
        _ => return Ok(None),
    };
    let hold = HoldReport { reason: phase.name().to_owned(), text, until: phase.until() };
    let queued = QueuedGoal { goal: PoolGoal::of(&record.goal, &record.state), unmet: Vec::new() };
    Ok(line(store, &queued).await?.map(|line| QueueLine { hold: Some(hold), ..line }))
}

fn server_line(server: ServerInfo) -> ServerLine {
    ServerLine { address: server.address, pid: server.pid, started_at: server.started_at }
}

/// The line of a goal, unless it was removed a moment ago or cannot be read.
async fn line(store: &dyn Store, queued: &QueuedGoal) -> Result<Option<QueueLine>, StoreError> {
    let QueuedGoal { goal: PoolGoal { goal: id, lane, .. }, unmet } = queued;
    let record = match store.load(*id).await {
        Ok(record) => record,
        Err(StoreError::NotFound(_) | StoreError::Unreadable { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let is_met = |goal: GoalId| unmet.iter().all(|unmet| unmet.prerequisite.goal != goal);
    let after = record.goal.scheduling.after.iter().map(|Prerequisite { goal, need }| PrerequisiteLine {
        goal: goal.to_string(),
        need: match need {
            Need::Done => "done".to_owned(),
            Need::Merged => "merged".to_owned(),
        },
        met: is_met(*goal),
    });
    Ok(Some(QueueLine {
        id: id.to_string(),
        title: record.goal.title.clone(),
        repository: lane.project.clone(),
        phase: record.state.phase.name().to_owned(),
        agent: lane.agent.to_string(),
        account: lane.account.clone(),
        labels: record.goal.labels.clone(),
        priority: record.goal.scheduling.priority,
        after: after.collect(),
        hold: None,
    }))
}
