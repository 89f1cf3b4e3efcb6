//! The server as other people's programs use it: the official client of MCP, a fuzzer that reads the OpenAPI document, and curl.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod below;
mod fuzz;
mod mcp;
mod recipes;
#[path = "../support/mod.rs"]
mod support;
mod workshop;
