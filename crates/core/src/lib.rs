//! The pure heart of Towline: what a goal is, what can happen to it, and what follows.
//!
//! Neighbours: every other crate speaks in these words. Nothing here does I/O, reads a clock, or looks at the
//! environment: time is an argument, and what is to be done comes back as [`Effect`] values.

mod account;
mod agent_event;
mod baseline;
mod budget;
mod commit_message;
mod deadlines;
mod duration;
mod effect;
mod end;
mod end_kind;
mod event;
#[cfg(test)]
mod fixtures;
mod goal;
mod hexadecimal;
mod ids;
mod judging;
mod model_choice;
mod names;
mod phase;
mod plain_text;
mod policy;
mod price;
mod price_table;
mod prompt;
mod question;
mod sandbox;
mod schedule;
mod state;
mod step;
mod texts;
mod units;
mod verdict;

pub use account::{Account, AccountStatus};
pub use agent_event::{
    AgentEvent, Limit, LimitStatus, Outcome, PlanEntry, Role, SessionStarted, ToolKind, ToolStatus, ToolUse,
    TurnEnd, TurnStop,
};
pub use baseline::{Baseline, BaselineCheck, BaselineMode, MissingProgram, ReplacedChecks};
pub use budget::{Amount, Axis, Budget, BudgetChange, BudgetError};
pub use commit_message::Checked;
pub use deadlines::{Deadlines, Timeout, Timeouts};
pub use duration::{BadDuration, parse_duration, show_duration};
pub use effect::{Delivered, Delivery, Effect, Launch, SessionPlan};
pub use end::{End, LaunchProblem, Refusal};
pub use end_kind::{EndClass, EndKind, Follows};
pub use event::{Decision, Envelope, Event, Exit, Incoming, NextSession, RawRef, Source, Stamp, Words, Work};
pub use goal::{
    Author, Check, CheckKind, Confined, Confirm, Continuation, GitSettings, Goal, Origin, Probe,
    SessionLimits, Visibility, WorkspaceMode, WorkspaceSpec,
};
pub use hexadecimal::hexadecimal;
pub use ids::{
    AgentName, AttemptId, AttemptNo, Commit, Generation, GoalId, InvalidId, MessageNo, PoolSeq, QuestionNo,
    Seq, SessionId,
};
pub use judging::{AbsentJudge, Exhibit, Judging, NoOpinion, Opinion};
pub use model_choice::ModelChoice;
pub use phase::{EscalationReason, FailureReason, PauseReason, Phase, StopWhy, Stopping};
pub use plain_text::{harmless, misleads, misleads_after, plain_line, without_escapes};
pub use policy::Policy;
pub use price::{ListedPrice, Price, PriceList};
pub use price_table::AS_OF as PRICES_AS_OF;
pub use question::{
    About, Answerer, Ask, BadAnswer, BadQuestion, Choice, Closed, DeliveryState, LastWords, OperatorMessage,
    Part, Question, Reply, ToolCall,
};
pub use sandbox::{Network, Sandbox, SandboxMode, SandboxSettings};
pub use schedule::{
    Cap, Caps, Dispatch, HoldReason, Lane, Need, PassedOver, Plan, PoolGoal, Prerequisite, Purse, PurseScope,
    Scheduling, Situation, rank, schedule,
};
pub use state::{
    Attempt, CompactionRequest, ContextState, GoalState, Inherited, Merge, Outage, SessionBinding,
    Unavailable, WorkspaceBinding,
};
pub use step::{Illegal, Moved, Stale, Step, StepOutcome, step};
pub use units::{MicroUsd, Reported, Spent, Tokens, Uncounted, Usage};
pub use verdict::{CheckProcess, CheckResult, Checkout, OutputHashes, Reuse, Verdict};
