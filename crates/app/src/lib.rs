//! What a user can do with Towline, as functions over values.
//!
//! A surface, such as the command line, gives a [`Context`] and a request, and gets values, [`Notice`]s and [`Error`]s. Nothing
//! here prints, parses arguments or looks at the process; which command line a [`Hint`] means is the surface's business.

mod accounts;
mod add;
mod agents;
mod compact;
mod context;
mod continuing;
mod cost;
mod diff;
mod divergence;
mod draft;
mod enter;
mod error;
pub mod find;
mod gc;
mod goal_file;
mod hidden;
mod holds;
mod in_place;
pub mod init;
pub mod inspect;
mod keys;
mod mcp;
mod mcp_file;
mod merge;
mod next_steps;
mod notice;
mod notify;
mod operator;
mod projects;
mod proof;
mod proof_check;
mod proof_run;
mod queue;
mod raw_output;
mod recheck;
mod remove;
mod replay;
pub mod report;
mod restore;
mod resume;
mod rules;
mod sandbox;
mod scheduling;
mod server;
mod service;
mod steady;
mod steer;
mod submit;
mod title;
mod trust;
mod unended;
mod upgrade;

pub use self::accounts::{accounts, open_account};
pub use self::add::{Added, add, goal_requests};
pub use self::agents::{GoalAgents, agents_of, first_notices};
pub use self::compact::compact;
pub use self::context::{Context, EngineInUse, Host, LayerFile, State};
pub use self::continuing::{draft_continuing, hand_over};
pub use self::cost::{CostBy, cost, since};
pub use self::diff::{Change, Detail, diff};
pub use self::divergence::divergence;
pub use self::draft::{CHANNEL, Draft, Request, draft, new_goal_id, notices_about, start_goal};
pub use self::enter::{SessionCommand, Visit, enter, quoted, session_command, typed};
pub use self::error::{Action, Error, Hint};
pub use self::gc::{Leftovers, remove_leftovers, why_spared};
pub use self::holds::{Holds, hold_report};
pub use self::keys::{keys, rotate_keys};
pub use self::mcp::McpBridge;
pub use self::merge::{Merge, Merged, merge, push};
pub use self::next_steps::{NextStep, hint_about_end, next_steps, way_to_continue, way_to_resume};
pub use self::notice::Notice;
pub use self::notify::{
    NOTIFY_COMMAND, Notifier, missing_webhook_secret, notification, require_webhook_secret,
    run_notify_command,
};
pub use self::operator::require_operator;
pub use self::proof::{Proof, prove};
pub use self::proof_check::{ProofRequest, verify_proof};
pub use self::queue::queue;
pub use self::raw_output::{Until, raw_output};
pub use self::recheck::{RecheckStep, Verified, verify};
pub use self::remove::{Removal, remove};
pub use self::replay::{ReplayOutcome, replay};
pub use self::restore::{Restored, restore};
pub use self::resume::{Resumption, reopen, resume, runs_elsewhere};
pub use self::rules::Rules;
pub use self::sandbox::sandbox_of;
pub use self::scheduling::must_not_wait;
pub use self::server::{
    ServerPlace, Stopped, VERSION, await_suspended, queue_goal, server_here, server_of, server_place,
    stop_server, working,
};
pub use self::service::{UNIT, credentials_of_shell, unit, unit_path};
pub use self::steady::Steady;
pub use self::steer::{Answered, Arrival, Steering, Taken, answer, follow, halt, send_message};
pub use self::submit::submit;
pub use self::trust::{
    HeldGoal, WideningFile, accept, continue_held, revoke_trust, trusted_repositories, widening_file,
};
pub use self::upgrade::ShowUpgrade;
pub use towline_workspace::MergeStyle;
