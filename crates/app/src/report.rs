//! Goals as reports: what is stored, in the shapes of `towline-api`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use towline_api::{
    AttemptReport, BaselineReport, GoalLine, GoalReport, JudgeReport, MergedReport, QuestionLine,
    TrustReport, budget,
};
use towline_core::{Checkout, GoalState, Phase, Sandbox, Usage};
use towline_engine::Home;
use towline_store::{GoalRecord, GoalSummary, Listed, Listing, UnreadableGoal, load_all};

use crate::context::{Context, State};
use crate::error::Error;

/// The level of trust of what this confined: without a sandbox of namespaces, verdicts are protected from what an agent does to files,
/// git's data and Towline's files, and not from the commands that it runs.
pub const fn trust_level(confined_by: Option<Sandbox>) -> u8 {
    match confined_by {
        Some(Sandbox::Bubblewrap) => 2,
        Some(Sandbox::Landlock) | None => 1,
    }
}

/// The level of trust in words, with what gives it.
pub fn level_words(confined_by: Option<Sandbox>) -> String {
    let level = trust_level(confined_by);
    confined_by
        .map_or_else(|| format!("level {level}"), |sandbox| format!("level {level} ({})", sandbox.name()))
}

/// What protects the verdicts of a goal.
fn trust(GoalRecord { goal, state, .. }: &GoalRecord) -> TrustReport {
    let sandbox = state.confined_by();
    TrustReport {
        level: trust_level(sandbox),
        sandbox: sandbox.map(|sandbox| sandbox.name().to_owned()),
        in_place: goal.workspace.mode.is_in_place(),
        confirmed: confirmed_by(state).map(str::to_owned),
    }
}

/// Instead of a phase, for a goal that cannot be read.
pub const UNREADABLE: &str = "unreadable";

/// A checkout with build output of an earlier verdict.
pub const WARM: &str = "warm";

/// The kind of checkout that proved the work of a goal that is done.
pub fn confirmed_by(state: &GoalState) -> Option<&'static str> {
    let verdict = state.last_verdict().filter(|_| state.phase == Phase::Done)?;
    Some(if verdict.checkout == Checkout::Warm { WARM } else { "clean" })
}

/// All about a goal, but for why it waits in the queue: see [`crate::Holds`].
pub fn goal_report(record: &GoalRecord, home: &Home, now: Timestamp) -> GoalReport {
    let GoalRecord { goal, state, .. } = record;
    let question = state.open_question().filter(|_| state.phase.takes_answers());
    let attempts = state
        .attempts
        .iter()
        .map(|attempt| AttemptReport::of(attempt, home.attempt(goal.id, attempt.n).display().to_string()));
    let judges = state.judges.iter().map(|judge| {
        let logs = home.attempt(goal.id, judge.attempt).join(judge.logs());
        JudgeReport::of(judge, logs.display().to_string())
    });
    GoalReport {
        id: goal.id.to_string(),
        title: goal.title.clone(),
        prompt: goal.prompt.clone(),
        repository: goal.workspace.repository.clone(),
        phase: state.phase.name().to_owned(),
        reason: state.phase.reason(),
        until: state.phase.until(),
        question: question.map(Into::into),
        agent: GoalSummary::of(record).agent.map(|agent| agent.to_string()),
        origin: (&goal.origin).into(),
        metadata: goal.metadata.clone(),
        labels: goal.labels.clone(),
        workspace: state.workspace.as_ref().map(|workspace| workspace.path.clone()),
        branch: state.branch.clone(),
        base: goal.workspace.base.to_string(),
        candidate: state.candidate.as_ref().map(ToString::to_string),
        changed: state.changed(),
        baseline: BaselineReport::of(&state.baseline),
        merged: state.merged.as_ref().map(MergedReport::from),
        checks_hash: goal.checks_hash(),
        checks_replaced_at: state.replaced_checks.as_ref().map(|replaced| replaced.since),
        continues: goal.continues.as_ref().map(|continued| continued.goal.to_string()),
        continued_by: state.continued_by.map(|by| by.to_string()),
        entered_at: state.entered_at,
        protect: goal.protect.clone(),
        unprotect: goal.unprotect.clone(),
        trust: trust(record),
        attempts: attempts.collect(),
        judges: judges.collect(),
        usage: state.usage().into(),
        budget: budget(state, now),
        created_at: goal.created_at,
        updated_at: record.updated_at,
        hold: None,
    }
}

/// Goals in short, but for why they wait in the queue. One that cannot be read has no prompt.
///
/// A prompt may hold a secret of its project, so it is left out if the project does not answer. The tokens of attempts are younger
/// than any prompt.
pub async fn goal_lines(context: &Context, state: &State, listed: &[Listed]) -> Vec<GoalLine> {
    // Most goals of a list share a few projects, and looking for secrets reads files.
    let mut known = BTreeMap::new();
    let mut lines = Vec::new();
    for listed in listed {
        let (mut prompt, mut trusted) = (None, None);
        if let Ok(record) = state.store.load(listed.id()).await {
            trusted = Some(trust(&record));
            let goal = record.goal;
            let files = (goal.workspace.repository.clone(), goal.workspace.copy.clone());
            let is_known = match known.get(&files) {
                Some(is_known) => *is_known,
                None => context.know_secrets_of(&goal).await.is_ok(),
            };
            known.insert(files, is_known);
            prompt = is_known.then_some(goal.prompt);
        }
        lines.push(match listed {
            Listed::Goal(summary) => GoalLine { trust: trusted, ..line_of_summary(summary, prompt) },
            Listed::Unreadable(unreadable) => line_of_unreadable(unreadable),
        });
    }
    lines
}

fn line_of_summary(goal: &GoalSummary, prompt: Option<String>) -> GoalLine {
    GoalLine {
        id: goal.id.to_string(),
        title: goal.title.clone(),
        prompt,
        repository: Some(goal.repository.clone()),
        phase: goal.phase.name().to_owned(),
        reason: goal.phase.reason(),
        until: goal.phase.until(),
        agent: goal.agent.as_ref().map(ToString::to_string),
        merged: goal.merged.as_ref().map(MergedReport::from),
        attempts: goal.attempts,
        usage: goal.usage.into(),
        created_at: goal.created_at,
        updated_at: goal.updated_at,
        hold: None,
        trust: None,
    }
}

fn line_of_unreadable(goal: &UnreadableGoal) -> GoalLine {
    GoalLine {
        id: goal.id.to_string(),
        title: String::new(),
        prompt: None,
        repository: None,
        phase: UNREADABLE.to_owned(),
        reason: Some(goal.why.clone()),
        until: None,
        agent: None,
        merged: None,
        attempts: 0,
        usage: Usage::default().into(),
        created_at: goal.created_at,
        updated_at: goal.created_at,
        hold: None,
        trust: None,
    }
}

/// The goals with open questions, the newest first.
pub async fn asking(context: &Context) -> Result<Vec<GoalRecord>, Error> {
    let Some(state) = context.existing_state()? else { return Ok(Vec::new()) };
    Ok(load_all(state.store.as_ref(), Listing { asks: true, ..Listing::all() }).await?.records)
}

/// All open questions of these goals.
pub fn open_questions(records: &[GoalRecord]) -> Vec<QuestionLine> {
    let open = records.iter().flat_map(|record| {
        record.state.open_questions().map(|question| QuestionLine::of(&record.goal, question))
    });
    open.collect()
}
