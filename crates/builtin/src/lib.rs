//! Agents inside the binary: the scripted one with the sample project that it repairs in the demo, and the tools of
//! the one over model APIs.
//!
//! Neighbours: the CLI starts [`script::main`] as a process of its own, under the same supervision as any agent.
//! Nothing here knows the engine, the store or the checks.

mod child;
pub mod demo;
#[cfg_attr(not(test), expect(dead_code, reason = "the conversation that uses it is being added"))]
#[expect(unused_imports, reason = "the conversation that uses it is being added")]
mod mcp;
pub mod script;
#[cfg_attr(not(test), expect(dead_code, reason = "the conversation that uses it is being added"))]
#[expect(unused_imports, reason = "the conversation that uses it is being added")]
mod tools;
