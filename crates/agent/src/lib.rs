//! How Towline drives each agent: what to start, and what the output means.
//!
//! There is one module per agent, in `kinds`. Everything here is sans-IO: lines go in, actions come out, so live
//! runs, replays and tests on recordings run the same code. Neighbours: the engine passes in the output from the
//! supervisor and executes the actions. Nothing here starts a process, sleeps, or reads files or the environment.

mod abilities;
mod api_settings;
mod environment;
mod failures;
mod json;
pub mod jsonrpc;
mod kinds;
mod lines;
mod mcp;
mod own_files;
mod permission;
mod priced;
mod protocol;
mod settings;
mod sign_in;
mod text;
mod unrecognised;
mod usage;
mod version;

pub use abilities::{Abilities, Ability};
pub use api_settings::{ApiSettings, Fetch, OpenaiApi, Provider};
pub use environment::{Environment, is_agents_variable};
pub use kinds::{Kind, agent};
pub use mcp::McpServer;
pub use own_files::OwnFiles;
pub use permission::tool_call;
pub use priced::{Pricing, UnknownPrice, priced};
pub use protocol::{
    Action, Agent, Frame, LaunchContext, LaunchPlan, ProcessEnd, Protocol, RefusedSettings, Restriction,
    Resuming, Stdio, Steer, WindowSize,
};
pub use settings::{AgentSettings, CliSettings, Permission, PromptBy};
pub use sign_in::{SignIn, SignInClue};
pub use version::{Tested, TestedVersions, Version};
