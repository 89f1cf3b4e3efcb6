//! Drives goals: selects what happened, lets the core decide, records it, and only then acts.
//!
//! [`Engine`] starts and resumes goals; each has a driver with three beats (select, handle, react) and one executor per
//! effect. Neighbours: the store records decisions, the agent crate knows what bytes mean, the process crate owns process
//! trees. Nothing here parses an agent's output or speaks HTTP.

mod attempt;
mod authority;
mod baseline;
mod checkouts;
mod checks;
mod clock;
mod control;
mod copied;
mod driver;
mod engine;
mod error;
mod executors;
mod feed;
mod following;
mod gc;
mod goal_command;
mod handle;
mod home;
mod interrupted;
mod lease_guard;
mod live;
mod news;
mod opening;
mod place;
mod pool;
mod prepare;
mod presence;
mod publish;
mod question_file;
mod reading;
mod removal;
pub mod replay;
mod resolver;
mod runs;
mod secrecy;
mod sent;
mod slots;
mod supervisors;
mod sweep;
#[cfg(test)]
mod tests;
mod token;
mod watch;

pub use authority::{SUPERVISOR, is_supervised, supervisor_arguments};
pub use checkouts::StoredCheckouts;
pub use clock::{Alarm, Clock, SystemClock};
pub use control::{AgentWord, Reply, Request, ask, is_driven, speak_for_agent};
pub use copied::{CopiedSecrets, copied_secrets};
pub use driver::{AgentInTrouble, StoreTrouble};
pub use engine::{Engine, EngineSettings};
pub use error::EngineError;
pub use feed::Events;
pub use following::{Following, follow};
pub use gc::{Findings, Spared, Waste, WasteKind, look, workspaces_size};
pub use goal_command::GoalCommand;
pub use handle::{Handle, Steerer, Stopper};
pub use home::Home;
pub use lease_guard::{LeaseGuard, Recheck};
pub use live::{Live, LiveMessage};
pub use place::{is_at_work, must_be_alone, repository_of, workspace_of};
pub use presence::running_engines;
pub use removal::{RemovalError, Removed, UnmergedWork};
pub use resolver::{Resolved, Resolver, Unresolved};
pub use runs::GOAL_VARIABLE;
pub use secrecy::{attempt_tokens, known_secrets};
