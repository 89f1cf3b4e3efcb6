//! Runs one verdict on one candidate, in a clean checkout and under supervision.
//!
//! Neighbours: the engine asks for a verdict ([`run`]) and for the setup of a workspace ([`setup`]);
//! `towline-workspace` makes the checkout, `towline-process` owns each command's process tree. Nothing here trusts
//! the agent: its workspace is not looked at beyond the candidate, and its words are not read. What a verdict means for the goal is not
//! decided here either.

mod blocking;
mod command;
mod counts;
mod environment;
mod error;
mod evidence;
mod file;
mod finding;
mod floor;
mod history;
mod integrity;
mod interrupted;
mod judge;
mod judges;
mod leftovers;
mod missing;
mod pattern;
mod probe;
mod program;
mod run_logs;
mod section_values;
mod sections;
mod setup;
mod stop;
mod validate;
mod verdict;

pub use environment::{Confinement, Environment};
pub use error::CheckError;
pub use evidence::EVIDENCE_BYTES;
pub use interrupted::{Interrupted, resume};
pub use judges::{Asking, Judge, JudgeAnswer, JudgeQuestion, Judges};
pub use leftovers::end_runs;
pub use missing::missing_program;
pub use setup::setup;
pub use validate::{validate, validate_all};
pub use verdict::{CheckRun, Progress, run};
