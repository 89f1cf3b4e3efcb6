//! Hints as command lines of `towline`.

use towline_app::{Action, Hint};
use towline_core::{GoalId, QuestionNo};
use towline_terminal::how_to_answer;

/// A hint as a person reads it.
pub fn words(hint: &Hint) -> String {
    match hint {
        Hint::Advice(advice) => advice.clone(),
        Hint::Actions(actions) => {
            let one = |(purpose, action): &(String, Action)| match purpose.as_str() {
                "" => command_line(action),
                purpose => format!("{purpose}: {}", command_line(action)),
            };
            actions.iter().map(one).collect::<Vec<_>>().join("; ")
        }
    }
}

/// The command that does it.
pub fn command_line(action: &Action) -> String {
    let of = |command: &str, goal: &GoalId| format!("towline {command} {}", goal.short());
    match action {
        Action::Up => "towline up".to_owned(),
        Action::Add => "towline add FILE".to_owned(),
        Action::Down => "towline down".to_owned(),
        Action::List => "towline ls --all".to_owned(),
        Action::Questions => "towline questions".to_owned(),
        Action::Answer(goal, 1) => how_to_answer(*goal, None),
        Action::Answer(goal, number) => how_to_answer(*goal, Some(QuestionNo(*number))),
        Action::Run => "towline run \"fix the failing test\"".to_owned(),
        Action::RunMerge(commit) => {
            format!("towline run \"merge {commit} and resolve the conflicts\" --check …")
        }
        Action::Continue(goal) => of("run --goal", goal),
        Action::Resume(None) => "towline resume ID".to_owned(),
        Action::Resume(Some(goal)) => of("resume", goal),
        Action::Retry(goal) => of("retry", goal),
        Action::RetryWithChecks(goal) => format!("{} --check \"…\"", of("retry", goal)),
        Action::RaiseBudget(goal, axis) => format!("{} --budget {}", of("retry", goal), axis.suggestion()),
        Action::Tell(goal) => format!("{} \"…\"", of("tell", goal)),
        Action::RetryFresh(goal) => format!("{} --fresh", of("retry", goal)),
        Action::Cancel(goal) => of("cancel", goal),
        Action::Show(goal) => of("show", goal),
        Action::Diff(goal) => of("diff", goal),
        Action::Log(goal) => of("logs", goal),
        Action::Follow(goal) => of("logs -f", goal),
        Action::RawLog(goal, attempt) => format!("towline logs {goal} --raw --attempt {attempt}"),
        Action::Restore(goal) => of("restore", goal),
        Action::Merge(goal) => of("merge", goal),
        Action::MergeUnproven(goal) => format!("{} --unproven", of("merge", goal)),
        Action::MergeUnverified(goal) => format!("{} --no-verify", of("merge", goal)),
        Action::Prove(goal) => of("proof", goal),
        Action::Push(goal, remote) => format!("{} {remote}", of("push", goal)),
        Action::PushUnproven(goal) => format!("{} --unproven", of("push", goal)),
        Action::Remove(goal) => of("rm", goal),
        Action::RemoveByForce(goal) => of("rm --force", goal),
        Action::RunInPlace => "towline run --in-place".to_owned(),
        Action::ListSettings => "towline doctor --json".to_owned(),
        Action::RemoveLeftovers => "towline gc".to_owned(),
        Action::Trust => "towline trust".to_owned(),
        Action::Init => "towline init".to_owned(),
        Action::PrintInit => "towline init --print".to_owned(),
        Action::ForceInit => "towline init --force".to_owned(),
        Action::GiveCheck => "--check \"cargo test\"".to_owned(),
        Action::AllowLarge => "--allow-large".to_owned(),
        Action::GiveBranch => "--into BRANCH".to_owned(),
        Action::GiveMessage => "--message TEXT".to_owned(),
        Action::Git(arguments) => format!("git {arguments}"),
    }
}
