//! Drives goals: selects what happened, lets the core decide, records it, and only then acts.
//!
//! [`Engine`] starts and resumes goals; each has a driver with three beats (select, handle, react) and one executor per
//! effect. Neighbours: the store records decisions, the agent crate knows what bytes mean, the process crate owns process
//! trees. Nothing here parses an agent's output or speaks HTTP.

mod announcement;
mod attempt;
mod authority;
mod baseline;
mod checkouts;
mod checks;
mod claiming;
mod clock;
mod confinement;
mod contained;
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
mod held;
mod home;
mod interrupted;
mod judge;
mod lease_guard;
mod lending;
mod live;
mod neighbours;
mod news;
mod opening;
mod place;
mod pool;
mod prepare;
mod presence;
mod publish;
mod question_file;
mod reading;
mod reads;
mod rehearsal;
mod removal;
pub mod replay;
mod resolver;
mod rule_files;
mod rules;
mod runs;
mod scheduler;
mod secrecy;
mod sent;
mod sign_in;
mod signals;
mod situation;
mod slots;
mod supervisors;
mod sweep;
mod tail;
#[cfg(test)]
mod tests;
mod token;
mod watch;
mod writes;

pub use announcement::{
    Announcement, ServerInfo, ServerStart, engine_ended, last_server, leases_end, running_server,
    take_place_of,
};
pub use authority::{SUPERVISOR, is_supervised, refusal, supervisor_arguments};
pub use checkouts::checkouts_size;
pub use clock::{Alarm, Clock, SystemClock};
pub use confinement::{demanded, machine, must_hide};
pub use contained::{contained, contained_future, is_panic_contained};
pub use control::{AgentWord, Reply, Request, ask, ask_engine, is_driven, speak_for_agent};
pub use copied::{CopiedSecrets, copied_secrets};
pub use driver::{AgentInTrouble, StoreTrouble};
pub use engine::{Dispatching, Engine, EngineSettings};
pub use error::EngineError;
pub use feed::Events;
pub use following::{Following, follow};
pub use gc::{Findings, SpareReason, Spared, Waste, WasteKind, look, workspaces_size};
pub use goal_command::GoalCommand;
pub use handle::{Handle, Steerer};
pub use held::{PoolState, pool_state};
pub use home::Home;
pub use lease_guard::{LeaseGuard, Recheck};
pub use live::{Live, LiveMessage};
pub use place::{AddingLock, is_at_work, must_be_alone, repository_of, workspace_of};
pub use presence::running_engines;
pub use reads::{NoAnswer, Reads};
pub use rehearsal::Rehearsal;
pub use removal::{RemovalError, Removed, UnmergedWork};
pub use resolver::{Resolved, Resolver, Unresolved};
pub use rules::{Limits, PoolRules, ProjectRules};
pub use runs::GOAL_VARIABLE;
pub use secrecy::{attempt_of_token, attempt_tokens, known_secrets};
pub use sign_in::{CODE_LIFE, is_signed_in, new_sign_in_code, sign_in, sign_out, sign_out_all};
pub use situation::situation;
pub use tail::{Placed, PoolEvents};
pub use token::operator_token;
pub use towline_sandbox::{Hindrance, Machine, NoSandbox, Obstacle};
