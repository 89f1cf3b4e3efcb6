//! Agents that misbehave: shell scripts to be run in the place of Claude Code's two-way stream-json CLI.
//!
//! Each function writes one into a folder and returns its path. They take `--session-id`, `--resume` and `--version`
//! as the real one does and ignore other arguments; their frames are the least that the real one's
//! recordings have in common. None of them outlives ten minutes, and none needs more than `sh`, coreutils and
//! `setsid`. What a well-behaved one was sent can be read with [`received`].

mod frames;
mod scripts;

pub use scripts::{
    claims_success_with_error, dies_in_half_a_line, doing, exits_at_once, floods, ignores_signals,
    keeps_stdout_open, prints_garbage, received, well_behaved, with_body,
};
