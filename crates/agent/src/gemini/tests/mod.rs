//! What must hold of the conversation with Gemini CLI.

mod classify;
mod conversation;
mod damage;
mod plan;
mod recordings;
mod support;

/// How each recording ends, by its name.
pub(crate) fn recorded_ends() -> Vec<(String, towline_core::End)> {
    let recordings = support::Recording::all();
    recordings.iter().map(|recording| (recording.name.clone(), recording.play().1)).collect()
}
