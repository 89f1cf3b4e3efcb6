//! The tools of Towline's tests: a scripted model, scratch projects and homes, the pinned agent CLIs, agents
//! that misbehave, and the figures of benchmarks.
//!
//! Other crates name this one under `[dev-dependencies]` only; nothing here ships to users. Every helper panics
//! with what it waited for or missed, since its callers are tests.

pub mod agents;
pub mod figures;
pub mod hostile;
pub mod model;
pub mod scratch;
