//! Agents inside the binary: the scripted one, and the sample project that it repairs in the demo.
//!
//! Neighbours: the CLI starts [`script::main`] as a process of its own, under the same supervision as any agent.
//! Nothing here knows the engine, the store or the checks.

pub mod demo;
pub mod script;
