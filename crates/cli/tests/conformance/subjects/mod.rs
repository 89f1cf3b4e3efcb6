//! The agents of the suite. What one of them cannot do, and what holds for it in another way, is said in `exceptions`.

mod builtin;
mod cli;
mod plain;

pub(crate) use builtin::{builtin_anthropic, builtin_chat, builtin_gemini, builtin_responses};
pub(crate) use cli::{claude, claude_older, codex, gemini, gemini_stream, opencode};
pub(crate) use plain::plain;
