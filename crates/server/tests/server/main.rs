//! The server in process, on a free port of the loopback interface. No agent starts: the pool has no room.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod bounds;
mod changes;
mod client;
mod escapes;
mod goals;
mod metrics;
mod notifications;
mod once;
mod page;
mod prefixes;
mod refusals;
mod server;
mod steering;
mod strangers;
mod streams;
mod views;
