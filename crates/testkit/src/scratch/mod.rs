//! Scratch projects and homes, programs under test, waiting with a deadline, and looking for processes left over.
//!
//! Everything lives in temporary folders and is isolated from the user's own configuration.

mod home;
mod processes;
mod programs;
mod project;
mod set_clock;
mod user;
mod wait;

pub use home::{Home, SANDBOX};
pub use processes::{Found, kill_processes_with, processes_with, wait_until_process_tree_gone};
pub use programs::{clean_command, supervisor_program, towline_program};
pub(crate) use programs::{search_path, target_directory};
pub use project::Project;
pub use set_clock::SetClock;
pub use user::become_ordinary_user;
pub use wait::{wait_for, wait_for_some};
