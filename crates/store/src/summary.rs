//! Goals in short, and which of them to list.

use jiff::Timestamp;
use towline_core::{AgentName, FailureReason, GoalId, GoalState, Merge, Phase, Usage};

use crate::{GoalRecord, Lease, Store, StoreError};

/// How many goals a page of [`Listing::all`] has.
const BATCH: usize = 500;

/// What a list shows of a goal.
#[derive(Debug, Clone, PartialEq)]
pub struct GoalSummary {
    /// The goal's id.
    pub id: GoalId,
    pub title: String,
    /// The repository that it belongs to.
    pub repository: String,
    /// Whether it works in the user's own checkout.
    pub in_place: bool,
    pub phase: Phase,
    /// The agent that works on it, or would first.
    pub agent: Option<AgentName>,
    /// The budget that ended it, in words.
    pub spent: Option<String>,
    /// The number of attempts so far.
    pub attempts: usize,
    /// The usage of all attempts.
    pub usage: Usage,
    /// Where its work was merged last.
    pub merged: Option<Merge>,
    /// Whether it has a question that can be answered.
    pub asks: bool,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last moved.
    pub updated_at: Timestamp,
    /// Its lease, which may have run out.
    pub lease: Option<Lease>,
}

impl GoalSummary {
    /// The summary of a whole record.
    pub fn of(record: &GoalRecord) -> Self {
        let GoalRecord { goal, state, .. } = record;
        let working = state.last_attempt().map(|attempt| &attempt.agent);
        Self {
            id: goal.id,
            title: goal.title.clone(),
            repository: goal.workspace.repository.clone(),
            in_place: goal.workspace.mode.is_in_place(),
            phase: state.phase.clone(),
            agent: working.or_else(|| goal.agents.first()).cloned(),
            spent: spent(state),
            attempts: state.attempts.len(),
            usage: state.usage(),
            merged: state.merged.clone(),
            asks: asks(state),
            created_at: goal.created_at,
            updated_at: record.updated_at,
            lease: record.lease.clone(),
        }
    }
}

/// Whether a goal in this state has a question that can be answered.
pub(crate) fn asks(state: &GoalState) -> bool {
    state.phase.takes_answers() && state.open_question().is_some()
}

/// The budget that ended the goal, in words.
pub(crate) fn spent(state: &GoalState) -> Option<String> {
    match &state.phase {
        Phase::Failed { reason: FailureReason::Budget { axis } } => state.spent_budget(*axis),
        _ => None,
    }
}

/// A goal whose stored data cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableGoal {
    pub id: GoalId,
    /// When it was created.
    pub created_at: Timestamp,
    /// What cannot be read, and why.
    pub why: String,
}

/// One row of a list. A row that cannot be read hides no other.
#[derive(Debug, Clone, PartialEq)]
pub enum Listed {
    /// A goal in short.
    Goal(Box<GoalSummary>),
    /// A goal that cannot be read.
    Unreadable(UnreadableGoal),
}

impl Listed {
    /// The goal's id.
    pub fn id(&self) -> GoalId {
        match self {
            Self::Goal(summary) => summary.id,
            Self::Unreadable(unreadable) => unreadable.id,
        }
    }

    /// Where a list goes on after this row.
    pub fn cursor(&self) -> Cursor {
        match self {
            Self::Goal(summary) => Cursor { created_at: summary.created_at, id: summary.id },
            Self::Unreadable(unreadable) => Cursor { created_at: unreadable.created_at, id: unreadable.id },
        }
    }

    /// The summary, if it can be read.
    pub fn readable(self) -> Option<GoalSummary> {
        match self {
            Self::Goal(summary) => Some(*summary),
            Self::Unreadable(_) => None,
        }
    }
}

/// A place in the order of goals: by creation, and by id among those of one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    /// When the goal was created.
    pub created_at: Timestamp,
    pub id: GoalId,
}

/// Which end of the list comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    #[default]
    NewestFirst,
    OldestFirst,
}

/// Which goals to list. Filters that are given all apply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// Only goals of this repository.
    pub repository: Option<String>,
    /// Only goals in these phases, named as [`Phase::name`] does; all if there are none.
    pub phases: Vec<&'static str>,
    /// Only goals that are settled, or only those that are not.
    pub settled: Option<bool>,
    /// Only goals that go on by themselves at this time or an earlier one: see [`GoalState::wakes_at`].
    pub due: Option<Timestamp>,
    /// Only goals with a lease, in force or not.
    pub held: bool,
    /// Only goals with a question that can be answered.
    pub asks: bool,
    pub order: Order,
    /// Only goals that come after this place.
    pub after: Option<Cursor>,
    /// At most so many.
    pub limit: usize,
}

impl Listing {
    /// The first `limit` of all goals, the newest first.
    pub fn first(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }

    /// All goals, for [`list_all`] and [`load_all`].
    pub fn all() -> Self {
        Self::first(BATCH)
    }

    /// Goals that wait for nothing but a worker.
    pub fn runnable(limit: usize) -> Self {
        let phases = vec![Phase::Queued.name()];
        Self { phases, order: Order::OldestFirst, ..Self::first(limit) }
    }

    /// Goals whose wait is over.
    pub fn due(now: Timestamp, limit: usize) -> Self {
        Self { due: Some(now), order: Order::OldestFirst, ..Self::first(limit) }
    }
}

/// Every goal that a listing names, page by page; its limit is the size of a page.
pub async fn list_all(store: &dyn Store, mut listing: Listing) -> Result<Vec<Listed>, StoreError> {
    let mut all = Vec::new();
    loop {
        let page = store.list(&listing).await?;
        let Some(last) = page.last() else { return Ok(all) };
        listing.after = Some(last.cursor());
        all.extend(page);
    }
}

/// Whole goals, with those that cannot be read apart.
#[derive(Debug, Default)]
pub struct Loaded {
    /// Goals that can be read, the newest first.
    pub records: Vec<GoalRecord>,
    pub unreadable: Vec<UnreadableGoal>,
}

/// Loads every goal whole. For work that looks at all of them; whoever needs a few lists them.
pub async fn load_all(store: &dyn Store, listing: Listing) -> Result<Loaded, StoreError> {
    let mut loaded = Loaded::default();
    for listed in list_all(store, listing).await? {
        match store.load(listed.id()).await {
            Ok(record) => loaded.records.push(record),
            // It was removed a moment ago.
            Err(StoreError::NotFound(_)) => {}
            Err(StoreError::Unreadable { goal, why, .. }) => {
                let created_at = listed.cursor().created_at;
                loaded.unreadable.push(UnreadableGoal { id: goal, created_at, why });
            }
            Err(error) => return Err(error),
        }
    }
    Ok(loaded)
}
