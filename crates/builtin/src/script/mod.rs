//! The scripted agent: plays turns from a TOML file instead of asking a model.
//!
//! It serves the demo and tests: its behaviour is known beforehand, costs nothing and needs no network. It reads one
//! line `{"prompt": "…"}` from standard input, plays one turn, and prints one JSON line per
//! [`towline_core::AgentEvent`].
//!
//! ```toml
//! [[turn]]
//! when = "…"                      # optional: only for prompts that contain this
//! step = [
//!     { say = "I will look at it." },
//!     { think = "The name is missing." },
//!     { write = { path = "a.txt", text = "…" } },
//!     { replace = { path = "a.txt", from = "…", to = "…" } },
//!     { run = "sh tests/run.sh" },
//!     { sleep = "250ms" },
//!     { usage = { input = 100, output = 20, cache_read = 0, cache_write = 0, cost_usd = 0.004 } },
//!     { raw = "a line printed as it is" },
//!     { fail = "the turn ends as failed, and the process with 1" },
//!     { exit = 3 },               # ends the process at once, without the end of the turn
//! ]
//! ```

mod command;
mod error;
mod files;
mod format;
mod play;
mod session;

pub use error::{BadScript, ScriptError};
pub use format::Script;
pub use play::{Played, ScriptArgs, main};
