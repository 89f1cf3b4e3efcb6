//! What must hold of the conversation with Claude Code, on recordings of the real thing and on damaged ones.

mod classify;
mod compaction;
mod conversation;
mod damage;
mod plan;
mod recordings;
mod support;
mod talk;

/// How each recording ends, by its name.
pub(crate) fn recorded_ends() -> Vec<(String, towline_core::End)> {
    let recordings = support::Recording::all();
    recordings.iter().map(|recording| (recording.name.clone(), recording.play().1)).collect()
}
