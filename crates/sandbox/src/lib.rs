//! Confines agents and checks: what they can see, change and reach.
//!
//! `room` says what one program is allowed, in words that no tool knows. `bubblewrap` turns that into a command line that the program
//! is started with, `inside` is the part of it that runs in the sandbox before the program does, and `machine` finds out, by trying,
//! what this machine offers. The supervisor stays outside. Nothing here knows goals or agents.

mod bubblewrap;
mod inside;
mod machine;
mod room;
mod tools;

pub use inside::{SUBCOMMAND, enter};
pub use machine::{Machine, NoSandbox};
pub use room::{Private, Room};
