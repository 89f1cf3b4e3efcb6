//! What a pool asks the store: who runs, who is next, who waits for whom, who is to be notified, and what was answered before.

use jiff::Timestamp;
use towline_core::{GoalId, GoalState, Phase, PoolGoal, Prerequisite, Seq, StopWhy, Stopping};

/// The goals that decide who is next.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PoolView {
    /// Goals that hold a slot, whichever engine runs them.
    pub working: Vec<PoolGoal>,
    /// Of each lane the first goals that wait for a slot and for no other goal.
    pub queued: Vec<PoolGoal>,
    /// Behind which place of the queue there are goals of further lanes; none if every lane is here.
    pub rest: Option<(Timestamp, GoalId)>,
}

/// A goal that waits for its start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedGoal {
    pub goal: PoolGoal,
    /// The goals that must come to their end first and have not.
    pub unmet: Vec<Unmet>,
}

/// A prerequisite that has not come to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmet {
    pub prerequisite: Prerequisite,
    /// The name of the phase that it is in; none if it was removed.
    pub phase: Option<String>,
}

/// What a goal in a pool does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PoolStanding {
    Queued,
    /// It holds a slot.
    Working,
}

impl PoolStanding {
    /// None for a goal that neither runs nor could.
    pub(crate) const fn of(state: &GoalState) -> Option<Self> {
        match &state.phase {
            Phase::Queued => Some(Self::Queued),
            phase if phase.holds_slot() => Some(Self::Working),
            _ => None,
        }
    }
}

/// The number of a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct NoticeId(pub u64);

/// A phase of a goal that somebody is to be notified of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingNotice {
    pub id: NoticeId,
    pub goal: GoalId,
    /// The event that reports the phase.
    pub seq: Seq,
    pub phase: Phase,
    pub at: Timestamp,
    /// How often it was tried.
    pub tries: u32,
}

/// What came of a try to notify.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeOutcome {
    /// It was delivered, or nobody wants it.
    Settled,
    /// It is to be tried again at this time.
    Again(Timestamp),
}

/// Whether entering a phase is worth a notification.
pub(crate) const fn is_notable(phase: &Phase) -> bool {
    matches!(
        phase,
        Phase::Blocked { .. }
            | Phase::Escalated { .. }
            | Phase::Limited { .. }
            | Phase::Done
            | Phase::Unproven
            | Phase::Failed { .. }
            | Phase::Stopping(Stopping { why: StopWhy::SharedBudget, .. })
    )
}

/// The answer to a request that must be carried out once, however often it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredReply {
    /// A hash of the request: another one with the same key is refused.
    pub request: String,
    /// The HTTP status; none while the request is being carried out.
    pub status: Option<u16>,
    pub body: String,
    pub at: Timestamp,
}
