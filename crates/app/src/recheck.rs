//! Running a goal's checks once more: on its recorded work, or on a merge.

use towline_api::{VerdictReport, VerifyReport};
use towline_check::{CheckError, Progress};
use towline_core::{Commit, Event, GoalId, Verdict};
use towline_engine::{Home, LeaseGuard, Recheck};
use towline_store::GoalRecord;

use crate::context::Context;
use crate::error::{Action, Error};
use crate::find;

/// How far a recheck is.
pub enum RecheckStep {
    /// The branch has other commits than the goal started from, so the checks run on the merge first.
    MovedOn { into: String },
    /// The recorded work is about to be checked.
    Checking { goal: GoalId, commit: Commit },
    /// A check started or finished.
    Check(Progress, GoalId),
}

/// Both verdicts on a goal's recorded work.
pub struct Verified {
    pub goal: GoalId,
    /// The recorded verdict.
    pub then: Verdict,
    /// The new one.
    pub now: Verdict,
    /// Whether each check ended as recorded.
    pub agrees: bool,
}

impl Verified {
    /// As programs read it.
    pub fn report(&self) -> VerifyReport {
        VerifyReport {
            id: self.goal.to_string(),
            candidate: self.then.candidate.to_string(),
            met: self.now.met(),
            agrees: self.agrees,
            recorded: VerdictReport::from(&self.then),
            now: VerdictReport::from(&self.now),
        }
    }
}

/// Runs a goal's checks in a clean checkout of its recorded work; none when `stop` came to its end first.
pub async fn verify(
    context: &Context,
    id: &str,
    stop: impl Future<Output = ()>,
    show: impl FnMut(RecheckStep),
) -> Result<Option<Verified>, Error> {
    let found = find::goal(context, id).await?;
    recorded(&found.record)?;
    let (goal, home) = (found.record.goal.id, found.state.home.clone());
    let engine = context.engine(found.state)?;
    let verified = match engine.hold(goal).await {
        Ok(mut guard) => {
            let verified = verify_held(context, &home, &mut guard, stop, show).await;
            guard.give_back().await;
            verified
        }
        Err(error) => Err(error.into()),
    };
    engine.close().await;
    verified
}

async fn verify_held(
    context: &Context,
    home: &Home,
    guard: &mut LeaseGuard,
    stop: impl Future<Output = ()>,
    mut show: impl FnMut(RecheckStep),
) -> Result<Option<Verified>, Error> {
    let record = guard.record.clone();
    let (goal, then) = (record.goal.id, recorded(&record)?.clone());
    let repository = find::repository(home, &record)?;
    let candidate = repository.candidate_again(&then.candidate, then.head.as_ref(), &then.restored)?;
    show(RecheckStep::Checking { goal, commit: then.candidate.clone() });
    let what = Recheck { repository: &repository, candidate: &candidate, base: &record.goal.workspace.base };
    let Some(now) = recheck(context, guard, what, stop, show).await? else { return Ok(None) };
    guard.note(Event::Verified { verdict: now.clone() }).await?;
    let agrees = outcomes(&then) == outcomes(&now);
    Ok(Some(Verified { goal, then, now, agrees }))
}

/// Runs the checks; no verdict when `stop` came to its end first.
pub(crate) async fn recheck(
    context: &Context,
    guard: &LeaseGuard,
    what: Recheck<'_>,
    stop: impl Future<Output = ()>,
    mut show: impl FnMut(RecheckStep),
) -> Result<Option<Verdict>, Error> {
    let goal = guard.record.goal.id;
    match guard.check(what, stop, |progress| show(RecheckStep::Check(progress, goal))).await? {
        Ok(mut verdict) => {
            // It is stored by an engine that knows no agents, nor what is secret for them.
            let mask = context.secrets.mask();
            verdict.for_each_text(&mut |text| mask.apply(text));
            Ok(Some(verdict))
        }
        Err(CheckError::Stopped) => Ok(None),
        Err(error) => Err(Error::internal(format!("the checks could not be run: {error}"))),
    }
}

/// The verdict on the goal's recorded work.
fn recorded(record: &GoalRecord) -> Result<&Verdict, Error> {
    let (goal, id) = (record.goal.id, record.goal.id.short());
    if record.goal.checks.is_empty() {
        return Err(Error::usage(format!("goal {id} has no checks: there is nothing to verify"))
            .hint([("see the changes", Action::Diff(goal))]));
    }
    if !record.state.phase.is_settled() {
        let phase = record.state.phase.name();
        return Err(Error::usage(format!("goal {id} is {phase}: Towline checks its work itself"))
            .hint([("follow it", Action::Follow(goal))]));
    }
    record.state.last_verdict().ok_or_else(|| {
        Error::usage(format!("goal {id} has no work that was ever checked"))
            .hint([("see how it ended", Action::Show(goal))])
    })
}

/// Each check with how it went.
fn outcomes(verdict: &Verdict) -> Vec<(&str, bool)> {
    verdict.checks.iter().map(|check| (check.name.as_str(), check.met)).collect()
}
