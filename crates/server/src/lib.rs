//! The HTTP interface of a pool: routes, authority, server-sent events, metrics and tools for agents.
//!
//! Handlers turn a request into a call of `towline-app` or a read of the store, and the result into JSON of `towline-api`. No rule
//! about goals is here. Who may do what is decided in one place, `guard`, before any handler runs.

mod app;
mod authority;
mod courier;
mod cursor;
mod events;
mod goals;
mod guard;
mod health;
mod log;
mod mcp;
mod once;
mod page;
mod peer;
mod places;
mod problem;
mod query;
mod reply;
mod routes;
mod serve;
mod sse;
mod steer;
mod views;
mod work;

pub use self::app::{OperatorToken, ServerSettings};
pub use self::courier::Courier;
pub use self::serve::serve;
