//! Notices as people read them, on standard error.

use towline_agent::Restriction;
use towline_app::{Notice, notices_about};
use towline_config::Warning;
use towline_core::{Goal, GoalId, WorkspaceMode};

use crate::output;

/// Prints them in their order.
pub(crate) fn print(notices: &[Notice]) {
    notices.iter().for_each(|notice| output::eprint(format_args!("{}", text(notice))));
}

/// Prints which settings have no effect.
pub(crate) fn settings(warnings: &[Warning]) {
    warnings.iter().for_each(|warning| output::eprint(format_args!("warning: {warning}")));
}

/// One notice; it may have several lines.
pub(crate) fn text(notice: &Notice) -> String {
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
        Notice::Uncommitted(paths) => format!(
            "note: uncommitted changes are not part of the work: {}\n      (--include-dirty starts from them)",
            few(paths)
        ),
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
        Notice::Unrestricted { agent, restriction, mode } => {
            unrestricted(agent.as_str(), *restriction, *mode)
        }
        Notice::ChangedHooks(names) => {
            let names: Vec<String> = names.iter().map(|name| output::brief(name)).collect();
            format!(
                "warning: git runs no hooks for this merge, because it changes them; look at them before your next git command: {}",
                names.join(", ")
            )
        }
    }
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

fn unrestricted(name: &str, restriction: Restriction, mode: WorkspaceMode) -> String {
    let place = if mode.is_in_place() {
        "It works in your own folder, and nothing confines it to that folder."
    } else {
        "Its private clone separates its work from yours, but does not confine it."
    };
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
        "note: `{name}` runs with permission = \"bypass\": it may do all that you may,\n      \
               without asking: run any command, read your files and keys, use the network.\n      \
               {place}\n\
         {restrict}\n      \
               (shown once per project)"
    )
}

/// What to print about a goal that leaves the tests to the agent.
pub(crate) fn note_unprotected(goal: &Goal) -> Option<String> {
    notices_about(goal).iter().find(|notice| **notice == Notice::UnprotectedTests).map(text)
}

/// The first names of a list.
pub(crate) fn few(names: &[String]) -> String {
    let named = names.iter().take(5).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > 5 { format!("{named} and {} more", names.len() - 5) } else { named }
}
