//! Looking at what Towline works with, for the commands that tell people about it: facts for programs, rows for people.
//!
//! Neighbours: `towline doctor` and `towline agents`. Nothing here creates, changes or asks anything over the network.

pub(crate) mod agents;
pub(crate) mod frames;
pub(crate) mod lines;
pub(crate) mod probe;
pub(crate) mod rows;
pub(crate) mod sign_in;
