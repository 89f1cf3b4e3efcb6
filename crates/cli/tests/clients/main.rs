//! The server and proofs as other people's programs use them: the official client of MCP, a fuzzer that reads the OpenAPI document, curl,
//! and packages of in-toto.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod below;
mod fuzz;
mod mcp;
mod proof;
mod recipes;
#[path = "../support/mod.rs"]
mod support;
mod workshop;
