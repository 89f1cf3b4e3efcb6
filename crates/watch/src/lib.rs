//! The terminal dashboard: all goals, one goal, and what needs a person. It is a client of the server's HTTP interface and of nothing
//! else: it opens no store and drives no goal.
//!
//! `model` is pure: keys, replies and events in, requests out. `draw` turns it into a screen. `run` is the loop around both.

mod client;
mod draw;
mod feed;
mod keys;
mod model;
mod run;
mod screen;
mod sse;

pub use client::{Discover, Place};
pub use draw::Look;
pub use run::{Dashboard, Left, run};
