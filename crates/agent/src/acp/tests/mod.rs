//! What is expected of conversations with ACP agents.

mod builtin;
mod classify;
mod conversation;
mod damage;
mod plan;
mod recordings;
mod support;
mod talk;
mod traps;

/// How each recording ends, by its name.
pub(crate) fn recorded_ends() -> Vec<(String, towline_core::End)> {
    let recordings = support::Recording::all();
    recordings.iter().map(|recording| (recording.full_name(), recording.play().1)).collect()
}
