//! Turns named, ordered layers of text into one checked configuration.
//!
//! Neighbours: the command line finds the layers (files, environment, flags) and shows what is wrong with them; the
//! words a configuration is made of are those of `towline-core` and `towline-agent`. Nothing here reads a file, the
//! environment or a home directory: layers arrive as values.
//!
//! One table of known keys (`schema`) drives everything: what is known, what a value must look like, and which
//! keys this version does not act on yet. The file of a goal (`goal_file`) is read by the same rules. A layer is walked along that table (`settings`), later layers replace
//! the settings of earlier ones, and what is left is made into a [`Config`] (`convert`).

mod agents;
mod builtin_agents;
mod checks;
mod command_agents;
mod convert;
mod error;
mod goal_agents;
mod goal_file;
mod kind_keys;
mod layer;
mod mcp_file;
mod operator;
mod pool_values;
mod prices;
mod sandbox;
mod schema;
mod settings;
mod suggest;
mod trust;
mod value;

pub use agents::resolve_agent;
pub use checks::check_from_command;
pub use convert::{
    Config, Inspection, Loaded, ShownSetting, WorkspaceSettings, inspect, inspect_without_trust, load,
};
pub use error::{ConfigError, Problem, Warning, WarningKind};
pub use goal_agents::goal_agents_layer;
pub use goal_file::{
    GoalFile, GoalOrigin, LONGEST_GOAL_FILE, PREREQUISITES, fill_in_template, read_goal_file,
};
pub use layer::{ENVIRONMENT_PREFIX, Layer, LayerContent, LayerName, Place, Position};
pub use mcp_file::{MCP_FILE_LIMIT, read_mcp_file};
pub use operator::{Channel, NotifySettings, ServerSettings, SharedBudgets};
pub use pool_values::{NamedPrerequisite, priority_problem};
pub use trust::OwnAgents;
