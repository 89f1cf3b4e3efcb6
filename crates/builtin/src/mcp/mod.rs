//! The MCP servers of a session, as tools for the model.
//!
//! Each is a child process that speaks JSON-RPC, one message per line, on its standard input and output. Only its
//! tools are used. A server that does not start, or dies, is reported as a problem and never ends the session.

mod connection;
mod content;
mod lines;
mod names;
mod servers;
#[cfg(test)]
mod tests;

pub(crate) use self::servers::{Limits, McpServer, McpServers};
