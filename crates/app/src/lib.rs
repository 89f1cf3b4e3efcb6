//! What a user can do with Towline, as functions over values.
//!
//! A surface, such as the command line, gives a [`Context`] and a request, and gets values, [`Notice`]s and [`Error`]s. Nothing
//! here prints, parses arguments or looks at the process; which command line a [`Hint`] means is the surface's business.

mod agents;
mod compact;
mod context;
mod continuing;
mod diff;
mod draft;
mod enter;
mod error;
pub mod find;
mod gc;
mod goal_file;
mod in_place;
pub mod init;
pub mod inspect;
mod mcp;
mod mcp_file;
mod merge;
mod next_steps;
mod notice;
mod notify;
mod operator;
mod projects;
mod recheck;
mod remove;
mod replay;
pub mod report;
mod restore;
mod resume;
mod secrets;
mod steer;
mod upgrade;

pub use self::agents::{GoalAgents, agents_of, permission_notice};
pub use self::compact::compact;
pub use self::context::{Context, LayerFile, State};
pub use self::continuing::{draft_continuing, hand_over};
pub use self::diff::{Change, Detail, diff};
pub use self::draft::{CHANNEL, Draft, Request, draft, notices_about, start_goal};
pub use self::enter::{SessionCommand, Visit, enter, quoted, session_command, typed};
pub use self::error::{Action, Error, Hint};
pub use self::gc::{Leftovers, remove_leftovers};
pub use self::mcp::McpBridge;
pub use self::merge::{Merge, Merged, merge, push};
pub use self::next_steps::{NextStep, next_steps, way_to_continue};
pub use self::notice::Notice;
pub use self::notify::{NOTIFY_COMMAND, Notifier};
pub use self::operator::require_operator;
pub use self::recheck::{RecheckStep, Verified, verify};
pub use self::remove::{Removal, remove};
pub use self::replay::{ReplayOutcome, ReplayViewer, replay};
pub use self::restore::{Restored, restore};
pub use self::resume::{Resumption, resume, runs_elsewhere};
pub use self::secrets::KnownSecrets;
pub use self::steer::{Answered, Arrival, Steering, Taken, answer, halt, send_message, unreachable};
pub use self::upgrade::ShowUpgrade;
