//! Agents inside the binary: the one that works over the APIs of models, the scripted one, and the sample project that
//! the scripted one repairs in the demo.
//!
//! Neighbours: the CLI starts [`acp::main`] and [`script::main`] as processes of their own, under the same supervision as
//! any agent. Nothing here knows the engine, the store or the checks.

pub mod acp;
mod child;
pub mod demo;
mod lock;
mod mcp;
pub mod script;
mod tools;
