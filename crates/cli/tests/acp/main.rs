//! `towline acp`, the program itself, over a scripted model in all four wire formats: what an ACP client sees.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod agent;
mod sessions;
mod tools;
mod trouble;
mod words;
