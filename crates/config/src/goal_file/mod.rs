//! Goals as files: TOML, or Markdown with front matter in TOML or YAML.
//!
//! `format` takes a file apart, `yaml` makes of YAML what the TOML parser makes of TOML, `read` checks the keys by the
//! table of known ones, and `template` fills the prompt in. Nothing here opens a file: its text arrives as a value.

mod format;
mod read;
mod template;
mod yaml;

pub use format::LONGEST_GOAL_FILE;
pub use read::{GoalFile, GoalOrigin, read_goal_file};
pub use template::{PREREQUISITES, fill_in_template};
