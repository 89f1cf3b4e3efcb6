//! Agents inside the binary: one that uses the APIs of models, a scripted one, and the sample project that the
//! scripted one repairs in the demo.
//!
//! Neighbours: the CLI starts [`acp::main`] and [`script::main`] as separate processes, supervised like any agent.
//! Nothing here knows the engine, the store or the checks.

pub mod acp;
mod child;
pub mod demo;
mod lock;
mod mcp;
pub mod script;
#[cfg(test)]
mod test_waits;
mod tools;
