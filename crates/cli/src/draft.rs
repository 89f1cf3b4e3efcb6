//! From arguments to a request for a goal, and what is printed about the goal before it starts.

use std::collections::BTreeMap;

use towline_agent::AgentSettings;
pub(crate) use towline_app::CHANNEL;
use towline_app::{Request, notices_about};
use towline_core::{AgentName, Goal};

use crate::args::Run;
use crate::context::Context;
use crate::failure::Failure;
use crate::notices;
use crate::prompt::words;

/// What the arguments ask for. The prompt may come from standard input.
pub(crate) fn request(run: &Run) -> Result<Request, Failure> {
    const EXAMPLE: &str = "describe the task: towline run \"fix the failing test\" --check \"cargo test\"";
    let prompt = match run.prompt.as_slice() {
        [] => None,
        given => Some(words(given, "prompt").map_err(|failure| failure.hint(EXAMPLE))?),
    };
    Ok(Request {
        prompt,
        file: run.file.clone(),
        checks: run.check.clone(),
        agents: run.agent.clone(),
        model: run.model.clone(),
        budget: run.budget.clone(),
        base: run.base.clone(),
        include_dirty: run.include_dirty,
        in_place: run.in_place,
        allow_large: run.allow_large,
        red_first: run.red_first,
        unprotect: run.unprotect.clone(),
    })
}

/// The agents of a goal; prints which of their settings have no effect.
pub(crate) fn agents_of(
    context: &Context,
    goal: &Goal,
) -> Result<BTreeMap<AgentName, AgentSettings>, Failure> {
    let found = towline_app::agents_of(context, goal)?;
    notices::print(&found.notices);
    Ok(found.agents)
}

/// What to print about a goal that leaves the tests to the agent.
pub(crate) fn note_unprotected(goal: &Goal) -> Option<String> {
    let notices = notices_about(goal);
    notices.iter().find(|notice| **notice == towline_app::Notice::UnprotectedTests).map(notices::text)
}

/// The first names of a list.
pub(crate) fn few(names: &[String]) -> String {
    let named = names.iter().take(5).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > 5 { format!("{named} and {} more", names.len() - 5) } else { named }
}
