//! MCP servers that a session was given, as tools for the model.
//!
//! Each is a child that speaks JSON-RPC, one message per line, on its standard input and output. Only its tools are
//! used. One that does not come up, or dies, is a problem in words and never the end of the session.

mod connection;
mod content;
mod lines;
mod names;
mod servers;
#[cfg(test)]
mod tests;

pub(crate) use self::servers::{McpServer, McpServers};
