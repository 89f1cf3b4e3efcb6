//! The cases. Each is what a user may expect of any agent; where one holds in another way, that is a fact about the agent.

mod people;
mod trouble;
mod work;

pub(crate) use people::*;
pub(crate) use trouble::*;
pub(crate) use work::*;
