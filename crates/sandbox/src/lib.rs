//! Confines agents and checks: what they can see, change and reach.
//!
//! `room` says what one program is allowed, in words that no tool knows. `bubblewrap` turns that into a command line that the program
//! is started with, and so does `landlock` where bubblewrap cannot work; `inside` is the part of it that runs in the sandbox before the
//! program does. `machine` finds out, by trying, what this machine offers, and `obstacle` why it is not more. The supervisor stays
//! outside. Nothing here knows goals or agents.

mod bubblewrap;
mod calls;
mod inside;
mod landlock;
mod machine;
mod obstacle;
mod private;
mod room;
#[cfg(test)]
mod tests;
mod tools;

pub use self::landlock::Gap;
pub use inside::{SUBCOMMAND, enter};
pub use machine::{Machine, Places};
pub use obstacle::{Hindrance, NoSandbox, Obstacle};
pub use private::{LAYERS, Private};
pub use room::{PrivatePath, Room, Signals};
