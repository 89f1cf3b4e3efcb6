//! Notices as people read them.

use towline_agent::Restriction;
use towline_app::{Notice, notices_about};
use towline_core::{Goal, GoalId, Sandbox, WorkspaceMode};
use towline_terminal::{brief, printable};

/// One notice; it may have several lines.
pub fn notice_text(notice: &Notice) -> String {
    match notice {
        Notice::Setting(warning) => format!("warning: {warning}"),
        Notice::Files(warning) => format!("warning: {warning}"),
        Notice::InPlace { goal, folder, mode } => in_place(*goal, folder, *mode),
        Notice::Continues { goal, agent, base } => format!(
            "continues the conversation of goal {} with {agent}; the work starts from {}",
            goal.short(),
            base.short()
        ),
        Notice::NotInstalled(agent) => {
            format!("note: agent `{agent}` is not installed, so it is skipped")
        }
        Notice::UncommittedConfiguration => {
            "note: towline.toml is not committed; it holds for this run, but the agent does not see it"
                .to_owned()
        }
        Notice::Uncommitted(paths) => uncommitted(paths, "--include-dirty starts from them"),
        Notice::UncommittedInQueue(paths) => uncommitted(paths, "commit them first to start from them"),
        Notice::AddedBefore(goal) => {
            format!("note: goal {} has the same prompt and has not ended yet", goal.short())
        }
        Notice::EmptySubmodules => {
            "note: submodules are not checked out for the agent and the checks\n      \
             (if they are needed: setup = [\"git submodule update --init --recursive\"] in [workspace])"
                .to_owned()
        }
        Notice::UnknownCost(agent) => format!(
            "note: agent `{agent}` does not report its cost, so the budget `usd` does not stop it\n      \
             (limit `turns`, `attempts` or `wall`)"
        ),
        Notice::NoChecks => {
            "note: no checks, so the goal can end as unproven at best (--check CMD)".to_owned()
        }
        Notice::UnprotectedTests => {
            "note: tests are not protected (run towline init, or set [protect] paths)".to_owned()
        }
        Notice::ProtectsNothing(patterns) => format!(
            "note: tests are not protected: no file matches [protect] paths ({})",
            few(patterns)
        ),
        Notice::NoIdentity => "note: git has no user.name and user.email, so the commits are by Towline \
                               <towline@localhost>\n      (git config --global user.name NAME, and user.email)"
            .to_owned(),
        Notice::Unrestricted { agent, restriction, mode, sandbox } => {
            unrestricted(agent.as_str(), *restriction, &reach(*mode, *sandbox))
        }
        Notice::NoSandbox(why) => level_1("without a sandbox", why),
        Notice::WeakSandbox(sandbox, why) => {
            level_1(&format!("in a sandbox of {}", sandbox.name()), &format!("bubblewrap: {why}"))
        }
        Notice::BrokenConfiguration(problem) => {
            format!("warning: your own configuration is broken, and a running server uses what it read last: {problem}")
        }
        Notice::ChangedHooks(names) => changed_hooks(names),
    }
}

fn changed_hooks(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| brief(name)).collect();
    format!(
        "warning: git runs no hooks for this merge, because it changes them; look at them before your next git command: {}",
        names.join(", ")
    )
}

fn level_1(how: &str, why: &str) -> String {
    format!(
        "note: agents and checks run {how}, so verdicts are of level 1\n      ({})\n      \
         (the fix: towline doctor; shown once per project)",
        brief(why)
    )
}

fn uncommitted(paths: &[String], advice: &str) -> String {
    format!("note: uncommitted changes are not part of the work: {}\n      ({advice})", few(paths))
}

fn in_place(goal: GoalId, folder: &str, mode: WorkspaceMode) -> String {
    let id = goal.short();
    let lost = match mode {
        WorkspaceMode::InFolder => {
            "This folder is in no git repository: only Towline has a snapshot of its files. Ignored files are not in it."
        }
        _ => "There is no clone, no branch and nothing to merge. Ignored files are not in the snapshot.",
    };
    format!(
        "warning: the agent works in place: it changes your files in {folder} right away.\n         {lost}\n         \
         To see what it changed: towline diff {id}\n         To undo it: towline restore {id}"
    )
}

/// What an agent that runs any command can do, and what keeps it from more.
fn reach(mode: WorkspaceMode, sandbox: Option<Sandbox>) -> String {
    if sandbox.is_some() {
        let place = if mode.is_in_place() { "your own folder" } else { "its private clone" };
        return format!(
            "it may run any command without asking.\n      \
             Landlock keeps it out of your home, other homes, /tmp and /run, apart from tools, caches and\n      \
             what `read` in [sandbox] names. It can change files only in {place}, in private\n      \
             directories and in those that `write` names. It can still list your processes and, before\n      \
             Linux 7.1, reach sockets such as /run/docker.sock, through which a program can do anything.\n      \
             What your kernel does not enforce: towline doctor"
        );
    }
    let place = if mode.is_in_place() {
        "It works in your own folder, and nothing confines it to that folder."
    } else {
        "Its private clone separates its work from yours, but does not confine it."
    };
    format!(
        "it may do all that you may,\n      \
         without asking: run any command, read your files and keys, use the network.\n      \
         {place}"
    )
}

fn unrestricted(name: &str, restriction: Restriction, reach: &str) -> String {
    let restrict = match restriction {
        Restriction::Otherwise(words) => format!("      {words}"),
        Restriction::BySettings | Restriction::NotNeeded => format!(
            "      To restrict it, in towline.toml:\n        \
               [agents.{name}]\n        \
               permission = \"ask\"  # or \"deny\": what `allow` does not name is refused\n        \
               allow = [\"Edit\", \"Write\", \"Bash(git *)\"]\n        \
               deny = [\"WebFetch\"]"
        ),
    };
    format!(
        "note: `{name}` runs with permission = \"bypass\": {reach}\n\
         {restrict}\n      \
               (shown once per project)"
    )
}

/// What to print about a goal that leaves the tests to the agent.
pub fn note_unprotected(goal: &Goal) -> Option<String> {
    notices_about(goal).iter().find(|notice| **notice == Notice::UnprotectedTests).map(notice_text)
}

/// The first names of a list.
pub fn few(names: &[String]) -> String {
    let named = names.iter().take(5).map(|name| printable(name)).collect::<Vec<_>>().join(", ");
    if names.len() > 5 { format!("{named} and {} more", names.len() - 5) } else { named }
}

#[cfg(test)]
mod tests {
    use towline_core::AgentName;

    use super::*;

    fn about_bypass(mode: WorkspaceMode, sandbox: Option<Sandbox>) -> String {
        let (agent, restriction) = (AgentName::new("claude"), Restriction::BySettings);
        notice_text(&Notice::Unrestricted { agent, restriction, mode, sandbox })
    }

    #[test]
    fn an_agent_that_nothing_confines_may_read_files_and_keys() {
        let text = about_bypass(WorkspaceMode::Clone, None);
        assert!(text.contains("read your files and keys") && text.contains("does not confine it"), "{text}");
        let text = about_bypass(WorkspaceMode::InPlace, None);
        assert!(text.contains("nothing confines it to that folder"), "{text}");
    }

    #[test]
    fn landlock_is_named_with_what_it_keeps_out_and_what_it_does_not() {
        for (mode, place) in
            [(WorkspaceMode::Clone, "its private clone"), (WorkspaceMode::InPlace, "your own folder")]
        {
            let text = about_bypass(mode, Some(Sandbox::Landlock));
            for part in ["Landlock keeps it out", place, "list your processes", "/run/docker.sock"] {
                assert!(text.contains(part), "no {part} in {text}");
            }
            for claim in ["your files and keys", "does not confine", "nothing confines"] {
                assert!(!text.contains(claim), "{text}");
            }
            assert!(text.contains("permission = \"ask\""), "how to restrict it: {text}");
            assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
        }
    }
}
