//! Use cases in process: no program is started but git.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod agents;
mod desk;
mod draft;
mod errors;
mod pool;
mod pool_rules;
mod refusals;
mod state;
mod steering;
mod trust;
