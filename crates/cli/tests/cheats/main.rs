//! The cheat matrix: hostile agents, one small script per trick, against the real program.
//!
//! `trick` defines what a trick is, `tricks` lists them by cause, `projects` holds the projects that they attack, `ground` runs
//! one, `promises` measures what it achieved, and `page` renders `docs/cheats.md`. `controls` shows that honest work passes.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

#[path = "../support/mod.rs"]
mod support;

mod controls;
mod gains;
mod ground;
mod honest;
mod page;
mod projects;
mod promises;
mod repository;
mod trick;
mod tricks;
