//! How well the system lets Towline keep the processes of an agent together.

use towline_api::ProcessesFacts;
use towline_process::ProcessId;

use super::rows::{Mark, Row, Section};

/// Looks at the system.
pub(crate) fn look() -> Section<ProcessesFacts> {
    let visible = ProcessId::of(std::process::id()).is_some();
    let (supervision, row) = if cfg!(target_os = "linux") {
        let text = "an agent's whole tree is ended, whatever it detaches (subreaper, pidfd)";
        ("whole_tree", Row::new(Mark::Good, "supervision", text))
    } else {
        let text = "by process group only: what an agent starts in a session of its own may outlive it";
        let fix = "look for left-overs after a goal was stopped; on Linux there are none";
        ("process_group", Row::new(Mark::Note, "supervision", text).fix(fix))
    };
    let mut rows = vec![row];
    if !visible {
        let text = "the processes of this system cannot be seen, so agents cannot be supervised";
        rows.push(
            Row::new(Mark::Problem, "visibility", text).fix("mount /proc, as in `mount -t proc proc /proc`"),
        );
    }
    Section { facts: ProcessesFacts { supervision: supervision.to_owned(), visible }, rows }
}
