//! What a person can do about a goal as it is now.

use towline_agent::{AgentSettings, agent};
use towline_core::{End, EscalationReason, FailureReason, GoalId, Phase, harmless};
use towline_engine::{Home, is_driven, last_server, running_server};
use towline_store::{GoalRecord, Lease};

use crate::error::{Action, Hint};

/// What something is for, and how it is done.
pub type NextStep = (String, Hint);

/// What a person can do now. `settings` are those of the goal's first agent.
pub fn next_steps(record: &GoalRecord, home: &Home, settings: Option<&AgentSettings>) -> Vec<NextStep> {
    let goal = record.goal.id;
    let mut steps: Vec<NextStep> = Vec::new();
    let open = record.state.open_questions().count();
    if record.state.phase.takes_answers() && open > 0 {
        steps.push(step("answer it", Action::Answer(goal, 1)));
        if open > 1 {
            steps.push(step(&format!("see all {open} questions"), Action::Questions));
        }
    }
    match &record.state.phase {
        phase if !phase.is_settled() => {
            steps.push(match way_to_resume(home, goal, phase, record.lease.as_ref()) {
                Some(action) => step("no engine is running it; resume it", action),
                None => step("follow it", Action::Follow(goal)),
            });
        }
        phase @ Phase::Failed { reason: FailureReason::GreenBefore } => {
            return vec![step("give a check that fails today", way_to_continue(goal, phase))];
        }
        Phase::Failed { reason: FailureReason::MissingProgram(missing) } => {
            let install = format!("install `{}`, then", harmless(&missing.program));
            return vec![
                step("run it again", [(install.as_str(), Action::Retry(goal))]),
                step("or correct the check", Action::RetryWithChecks(goal)),
            ];
        }
        Phase::Escalated { reason } => {
            steps.extend(way_out_of(record, reason, settings));
            let go_on = match reason {
                EscalationReason::Unanswered { .. } if open > 0 => Action::Continue(goal),
                _ => Action::Retry(goal),
            };
            steps.push(step("then continue it", go_on));
        }
        phase @ Phase::Paused { .. } => steps.push(step("resume it", way_to_continue(goal, phase))),
        phase @ (Phase::Failed { .. } | Phase::Cancelled | Phase::Unproven) => {
            steps.push(step("continue it", way_to_continue(goal, phase)));
        }
        _ => {}
    }
    steps.extend(about_the_work(record));
    steps.push(step("see the log", Action::Log(goal)));
    steps
}

/// How a goal in this phase continues when no engine runs it. One that is done has nothing to continue.
pub fn way_to_continue(goal: GoalId, phase: &Phase) -> Action {
    match phase {
        Phase::Paused { .. } => Action::Resume(Some(goal)),
        phase if phase.is_pausing() => Action::Resume(Some(goal)),
        Phase::Failed { reason: FailureReason::GreenBefore } => Action::RetryWithChecks(goal),
        Phase::Failed { reason: FailureReason::Budget { axis } } => Action::RaiseBudget(goal, *axis),
        Phase::Failed { .. } | Phase::Cancelled | Phase::Unproven | Phase::Escalated { .. } => {
            Action::Retry(goal)
        }
        Phase::Done => Action::Show(goal),
        _ => Action::Continue(goal),
    }
}

/// How a goal continues that is under way, although no engine runs it and no server will.
pub fn way_to_resume(home: &Home, goal: GoalId, phase: &Phase, lease: Option<&Lease>) -> Option<Action> {
    let is_left = !phase.is_settled() && !is_driven(home, lease) && running_server(home).is_none();
    // Only a pool lets a goal wait without a lease.
    let of_pool = lease.is_none_or(|lease| last_server(home).is_some_and(|last| last.worker == lease.worker));
    is_left.then(|| match way_to_continue(goal, phase) {
        Action::Continue(_) if of_pool => Action::Up,
        other => other,
    })
}

/// What can be done about the end of an attempt that the goal suffers from, with the placeholders filled in.
pub fn hint_about_end(record: &GoalRecord) -> Option<String> {
    let last = record.state.last_attempt();
    let kind = match &record.state.phase {
        Phase::Escalated { reason } => reason.end(),
        Phase::Sleeping { .. } | Phase::Limited { .. } | Phase::Failed { .. } => {
            last?.end.as_ref().filter(|end| end.is_bad()).map(End::kind)
        }
        _ => None,
    };
    let mut hint = kind?.class().hint.replace(" ID", &format!(" {}", record.goal.id.short()));
    if let Some(last) = last {
        hint = hint.replace("--attempt N", &format!("--attempt {}", last.n));
        hint = hint.replace("check NAME", &format!("check {}", last.agent));
    }
    Some(hint)
}

fn step(purpose: &str, hint: impl Into<Hint>) -> NextStep {
    (purpose.to_owned(), hint.into())
}

/// What must be done before the goal can continue.
fn way_out_of(
    record: &GoalRecord,
    reason: &EscalationReason,
    settings: Option<&AgentSettings>,
) -> Option<NextStep> {
    match reason {
        EscalationReason::Auth { .. } => {
            settings.map(|settings| step("sign in", agent(settings.kind).sign_in_hint(settings)))
        }
        EscalationReason::PermissionDenied { rule, .. } => {
            let agent = record.goal.agents.first().map(ToString::to_string).unwrap_or_default();
            let rule = harmless(rule);
            let permit = format!("add {rule:?} to `allow` of [agents.{agent}], or take it out of `deny`");
            Some(step("permit it", permit))
        }
        EscalationReason::NoProgress { .. } => {
            Some(step("give the agent a hint", Action::Tell(record.goal.id)))
        }
        _ => None,
    }
}

fn about_the_work(record: &GoalRecord) -> Vec<NextStep> {
    let goal = record.goal.id;
    let Some(workspace) = &record.state.workspace else { return Vec::new() };
    let is_done = record.state.phase == Phase::Done;
    // The workspace of a goal that is not done may have changes that no candidate has.
    if is_done && record.state.changed() == Some(false) && !record.goal.workspace.mode.is_in_place() {
        return Vec::new();
    }
    let mut steps = vec![step("see the changes", Action::Diff(goal))];
    let path = workspace.path.clone();
    match (&record.state.phase, &record.state.merged) {
        _ if record.goal.workspace.mode.is_in_place() => {
            steps.push(step("the work is in", path));
            steps.extend((!record.state.restored).then(|| step("undo it", Action::Restore(goal))));
        }
        (Phase::Done | Phase::Unproven, Some(_)) => steps.push(step("remove the goal", Action::Remove(goal))),
        (Phase::Done, None) => steps.push(step("merge it", Action::Merge(goal))),
        (Phase::Unproven, None) => steps.push(step("merge it unproven", Action::MergeUnproven(goal))),
        _ => steps.push(step("the work is in", path)),
    }
    // The commit of work in place is in no other repository.
    if is_done && !record.goal.workspace.mode.is_in_place() {
        steps.push(step("prove it to others", Action::Prove(goal)));
    }
    steps
}

#[cfg(test)]
mod tests {
    use towline_core::{Axis, PauseReason, StopWhy, Stopping};

    use super::*;

    #[test]
    fn each_phase_is_continued_by_a_command_that_it_accepts() {
        let goal = GoalId::from_uuid(uuid::Uuid::from_u128(7));
        let reason = PauseReason::Operator;
        let pausing = Phase::Stopping(Stopping { attempt: None, why: StopWhy::Pause { reason } });
        let cancelling = Phase::Stopping(Stopping { attempt: None, why: StopWhy::Cancel });
        let failed = |reason| Phase::Failed { reason };
        let escalated = Phase::Escalated { reason: EscalationReason::NoAgent };
        for (phase, action) in [
            (Phase::Queued, Action::Continue(goal)),
            (cancelling, Action::Continue(goal)),
            (Phase::Paused { reason }, Action::Resume(Some(goal))),
            (pausing, Action::Resume(Some(goal))),
            (failed(FailureReason::GreenBefore), Action::RetryWithChecks(goal)),
            (failed(FailureReason::Budget { axis: Axis::Usd }), Action::RaiseBudget(goal, Axis::Usd)),
            (Phase::Cancelled, Action::Retry(goal)),
            (Phase::Unproven, Action::Retry(goal)),
            (escalated, Action::Retry(goal)),
            (Phase::Done, Action::Show(goal)),
        ] {
            assert_eq!(way_to_continue(goal, &phase), action, "{phase:?}");
        }
    }
}
