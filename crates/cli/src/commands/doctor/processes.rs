//! How well the system lets Towline keep the processes of an agent together.

use serde::Serialize;
use towline_process::ProcessId;

use crate::inspect::rows::{Mark, Row, Section};

/// The facts about supervision.
#[derive(Debug, Serialize)]
pub(super) struct ProcessesFacts {
    /// `whole-tree` or `process-group`.
    supervision: &'static str,
    /// Whether the processes below a supervisor can be seen.
    visible: bool,
}

/// Looks at the system.
pub(super) fn look() -> Section<ProcessesFacts> {
    let visible = ProcessId::of(std::process::id()).is_some();
    let (supervision, row) = if cfg!(target_os = "linux") {
        let text = "an agent's whole tree is ended, whatever it detaches (subreaper, pidfd)";
        ("whole-tree", Row::new(Mark::Good, "supervision", text))
    } else {
        let text = "by process group only: what an agent starts in a session of its own may outlive it";
        let fix = "look for left-overs after a goal was stopped; on Linux there are none";
        ("process-group", Row::new(Mark::Note, "supervision", text).fix(fix))
    };
    let mut rows = vec![row];
    if !visible {
        let text = "the processes of this system cannot be seen, so agents cannot be supervised";
        rows.push(
            Row::new(Mark::Problem, "visibility", text).fix("mount /proc, as in `mount -t proc proc /proc`"),
        );
    }
    Section { facts: ProcessesFacts { supervision, visible }, rows }
}
