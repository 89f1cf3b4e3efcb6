//! The JSON that leaves the process: what `--json` prints, the error that it prints instead, and what HTTP takes and gives.
//! [`KnownSecrets`] hides in it what must not leave.
//!
//! These types are apart from the domain's types, so that a change inside does not change what programs read. They decide
//! nothing: `towline-app` fills them in. `schema.json` beside this crate is their JSON schema; a test keeps it up to date.

mod agents;
mod doctor;
mod error;
mod event;
mod goal;
mod http;
#[cfg(test)]
mod openapi;
mod pool;
mod proof;
mod question;
pub mod routes;
#[cfg(test)]
mod schema;
mod secrets;
mod steps;
mod trust;
mod verdict;

pub use self::agents::{
    Ability, AgentCheck, AgentFacts, AgentLine, Finding, FrameFacts, Level, SignedIn, TestedFacts,
};
pub use self::doctor::{
    CheckoutFacts, ConfigurationFacts, DoctorReport, GitFacts, LayerFacts, LeftGoal, OpenQuestion,
    ProblemFacts, ProcessesFacts, SandboxFacts, SettingFacts, StoreFacts,
};
pub use self::error::{ErrorKind, ErrorReport, ErrorWords};
pub use self::event::{ReplayReport, ReplayedDifference};
pub use self::goal::{
    AttemptExtras, AttemptReport, BaselineReport, BudgetLine, ContextReport, DecisionReport, GoalLine,
    GoalReport, JudgeReport, MergedReport, Notification, OriginReport, TrustReport, UsageReport, budget,
};
pub use self::http::{
    EndedSessions, EventPage, GoalPage, HealthReport, NewAnswer, NewGoal, NewMerge, NewMessage,
    NewPrerequisite, NewRetry, NewSignIn, PageSession, Problem, ProjectLine,
};
pub use self::pool::{
    AccountLine, AddedGoal, CostLine, CostReport, HoldReport, OpenedAccount, PrerequisiteLine, QueueLine,
    QueueReport, RefusedGoal, ServerLine,
};
pub use self::proof::{KeyReport, ProofFinding, ProofVerifyReport};
pub use self::question::{OptionReport, PartReport, QuestionLine, QuestionReport};
pub use self::secrets::KnownSecrets;
pub use self::steps::{
    DivergenceReport, GcReport, InitReport, InstalledAgent, MergeReport, MissingPart, PreservedReport,
    ProposedCheck, PushReport, RmReport, SparedReport, VerifyReport, WasteReport,
};
pub use self::trust::{RepositoryTrust, RevokedTrust, TrustedRepository, WideningSetting};
pub use self::verdict::{BaselineCheckReport, CheckReport, VerdictReport};
