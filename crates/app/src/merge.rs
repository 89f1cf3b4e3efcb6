//! Taking a goal's proven work into a branch of the user's, or to a remote.

use std::path::PathBuf;
use std::sync::Arc;

use towline_api::{MergeReport, PushReport, VerdictReport};
use towline_core::{Checked, Commit, Event, Goal, GoalId, Phase, Verdict};
use towline_engine::{Home, LeaseGuard, Recheck, must_be_alone, workspace_of};
use towline_store::{GoalRecord, Store};
use towline_workspace::{
    MergeError, MergePlan, MergeRequest, MergeStyle, MergeWay, MergedFiles, Protect, Repository, Stop,
    WorkspaceError,
};

use crate::context::Context;
use crate::draft::identity_notice;
use crate::error::{Action, Error, Hint};
use crate::find;
use crate::next_steps::way_to_continue;
use crate::notice::Notice;
use crate::recheck::{RecheckStep, recheck};

/// How a goal's work is to be merged.
#[derive(Debug, Clone)]
pub struct Merge {
    /// The branch that gets the work; without one, the branch that is checked out.
    pub into: Option<String>,
    /// The commit that is expected to be merged, as a plan has named it.
    pub candidate: Option<String>,
    /// The message of the commit.
    pub message: Option<String>,
    /// Whether the user edits the message.
    pub edit: bool,
    /// What kind of commit is made.
    pub style: MergeStyle,
    /// Whether work without checks is merged.
    pub unproven: bool,
    /// Whether the checks run on a merge with other commits.
    pub verify: bool,
    /// Whether nothing is to be changed.
    pub dry_run: bool,
}

/// A merge that was made, or would be.
pub struct Merged {
    pub goal: GoalId,
    /// The kind of merge.
    pub way: MergeWay,
    /// The goal's commit.
    pub candidate: Commit,
    /// The branch's commit afterwards.
    pub commit: Option<Commit>,
    /// The user's repository.
    pub root: PathBuf,
    /// Whether a dry run has found that the checks would run on the merge first.
    pub needs_checks: bool,
    /// As programs read it.
    pub report: MergeReport,
    /// What the user should know about it.
    pub notices: Vec<Notice>,
}

/// A goal's work, and where it is seen.
struct Work {
    /// Towline's own repository of the goal.
    own: Repository,
    /// The user's, in which the work is seen.
    repository: Repository,
    candidate: Commit,
}

/// Merges a goal's work; none when `stop` came to its end while the checks ran.
pub async fn merge(
    context: &Context,
    id: &str,
    request: &Merge,
    stop: impl Future<Output = ()>,
    show: impl FnMut(RecheckStep),
) -> Result<Option<Merged>, Error> {
    let found = find::goal(context, id).await?;
    refuse_unfinished(&found.record, request.unproven, Taking::Merge)?;
    if request.dry_run {
        let work = Work::of(&found.state.home, &found.record)?;
        work.must_be_expected(&found.record, request)?;
        let start = started_from(found.state.store.as_ref(), &found.record.goal).await;
        let plan = work.plan(&found.record, &start, request)?;
        return Ok(Some(outcome(request, &found.record, &work, &plan, None)));
    }
    let goal = found.record.goal.id;
    let place = Place { home: found.state.home.clone(), store: Arc::clone(&found.state.store) };
    let engine = context.engine(found.state)?;
    let merged = match engine.hold(goal).await {
        Ok(mut guard) => {
            let merged = merge_held(context, request, &place, &mut guard, stop, show).await;
            guard.give_back().await;
            merged
        }
        Err(error) => Err(error.into()),
    };
    engine.close().await;
    merged
}

/// Merges the work of a goal that this process holds.
async fn merge_held(
    context: &Context,
    request: &Merge,
    place: &Place,
    guard: &mut LeaseGuard,
    stop: impl Future<Output = ()>,
    mut show: impl FnMut(RecheckStep),
) -> Result<Option<Merged>, Error> {
    let record = guard.record.clone();
    let goal = record.goal.id;
    refuse_unfinished(&record, request.unproven, Taking::Merge)?;
    let work = &Work::of(&place.home, &record)?;
    work.must_be_expected(&record, request)?;
    let start = started_from(place.store.as_ref(), &record.goal).await;
    let mut plan = work.plan(&record, &start, request)?;
    place.must_be_alone(&record, &plan).await?;
    work.publish(&record)?;
    if plan.after.is_none() {
        plan.set_message(work.message(&record, request, &plan)?);
    }
    let commit = plan.commit().map_err(|error| match error {
        MergeError::Workspace(error) => refused_by_git(error, "git made no commit", Action::Merge(goal)),
        error => explained(error, &record, work),
    })?;
    let mut verdict = None;
    if needs_checks(request, &record, &plan) {
        show(RecheckStep::MovedOn { into: plan.into.clone() });
        let candidate = work.own.as_candidate(&commit)?;
        let what = Recheck { repository: &work.own, candidate: &candidate, base: &plan.before };
        let Some(found) = recheck(context, guard, what, stop, show).await? else { return Ok(None) };
        guard.note(Event::Verified { verdict: found.clone() }).await?;
        if !found.met() {
            return Err(checks_fail(&record, &plan, &found));
        }
        verdict = Some(found);
    }
    // The checks may have run for long.
    place.must_be_alone(&record, &plan).await?;
    let hooks = plan.changed_hooks().map_err(|error| explained(error, &record, work))?;
    plan.carry_out().map_err(|error| explained(error, &record, work))?;
    if is_news(&record, &plan) {
        let into = plan.into.clone();
        guard.note(Event::Merged { into, commit, candidate: work.candidate.clone() }).await?;
    }
    let mut merged = outcome(request, &record, work, &plan, verdict.as_ref());
    merged.notices.extend(identity_notice(&record.goal).filter(|_| plan.way != MergeWay::AlreadyThere));
    if plan.way != MergeWay::AlreadyThere && !hooks.is_empty() {
        merged.notices.push(Notice::ChangedHooks(hooks));
    }
    Ok(Some(merged))
}

/// Where the goal is stored, to see who else is at work.
struct Place {
    home: Home,
    store: Arc<dyn Store>,
}

impl Place {
    /// Refuses to change files under the hands of an agent that works in the checkout itself.
    async fn must_be_alone(&self, record: &GoalRecord, plan: &MergePlan) -> Result<(), Error> {
        let changes = plan.way != MergeWay::AlreadyThere;
        let Some(checkout) = plan.checkout().filter(|_| changes) else { return Ok(()) };
        let checkout = checkout.canonicalize().unwrap_or_else(|_| checkout.to_path_buf());
        Ok(must_be_alone(&self.home, self.store.as_ref(), record.goal.id, &checkout).await?)
    }
}

impl Work {
    fn of(home: &Home, record: &GoalRecord) -> Result<Self, Error> {
        let own = find::repository(home, record)?;
        let repository = own.lender().unwrap_or(&own).seeing(&own);
        let candidate = match (&record.state.phase, &record.state.candidate) {
            (Phase::Done, Some(candidate)) => candidate.clone(),
            _ => unproven_candidate(home, record)?,
        };
        Ok(Self { own, repository, candidate })
    }

    /// Refuses work that is newer than what the person has decided about.
    fn must_be_expected(&self, record: &GoalRecord, request: &Merge) -> Result<(), Error> {
        let (goal, now) = (record.goal.id, self.candidate.as_str());
        match request.candidate.as_deref() {
            Some(expected) if expected != now => {
                let what =
                    format!("not merged: the work of goal {} is {now} now, not {expected}", goal.short());
                Err(Error::person(what).hint([("look at it first", Action::Diff(goal))]))
            }
            _ => Ok(()),
        }
    }

    /// Brings the work into the user's repository, where no branch has it yet.
    fn publish(&self, record: &GoalRecord) -> Result<(), Error> {
        Ok(self.own.publish(&self.candidate, &format!("refs/towline/{}/published", record.goal.id))?)
    }

    fn plan(&self, record: &GoalRecord, base: &Commit, request: &Merge) -> Result<MergePlan, Error> {
        let into = request.into.as_deref();
        let own = record.state.workspace.as_ref().and_then(|workspace| workspace.branch.as_deref());
        if into.is_some() && into == own {
            return Err(Error::usage("this is the goal's own branch")
                .hint([("name a branch of yours", Action::GiveBranch)]));
        }
        let request =
            MergeRequest { candidate: &self.candidate, base, into, message: "", style: request.style };
        self.repository.plan_merge(&request).map_err(|error| explained(error, record, self))
    }

    /// The message of the commit that is made, as the user wants it.
    fn message(&self, record: &GoalRecord, request: &Merge, plan: &MergePlan) -> Result<String, Error> {
        let goal = &record.goal;
        let text = match (&request.message, plan.way) {
            (Some(text), _) => text.clone(),
            (None, MergeWay::MergeCommit) => format!("Merge: {}", goal.subject()),
            (None, _) => {
                let summary = record.state.last_attempt().map_or("", |attempt| attempt.text.as_str());
                format!("{}\n\n{summary}", goal.subject())
            }
        };
        let text = if request.edit {
            let edited = self.repository.edit_message(&text);
            edited.map_err(|error| refused_by_git(error, "the editor failed", Action::Merge(goal.id)))?
        } else {
            Some(text)
        };
        let text = text.filter(|text| !text.trim().is_empty()).ok_or_else(|| {
            Error::usage("nothing was merged: the message is empty")
                .hint([("write one", Action::GiveMessage)])
        })?;
        let is_checked = record.state.phase == Phase::Done
            && (plan.files != MergedFiles::Mixed || needs_checks(request, record, plan));
        let checked = if is_checked { Checked::Yes } else { Checked::No };
        Ok(goal.merge_message(&text, self.candidate.as_str(), checked))
    }
}

/// All of the work of a goal without checks, as a commit.
fn unproven_candidate(home: &Home, record: &GoalRecord) -> Result<Commit, Error> {
    let nothing = || Error::usage(format!("goal {} has no work to merge", record.goal.id.short()));
    let binding = record.state.workspace.as_ref().ok_or_else(nothing)?;
    let last = record.state.last_attempt().ok_or_else(nothing)?;
    let (_, workspace) = workspace_of(home, &record.goal, binding, &Stop::default())?;
    let protect = Protect::of_candidate(&record.goal)?;
    let workspace = workspace.with_message(record.goal.commit_message(&last.text));
    Ok(workspace.candidate(last.n.get(), &protect)?.commit)
}

/// The commit of the user's that the work started from. A goal that continues an unmerged one has that one's work below
/// its own.
pub(crate) async fn started_from(store: &dyn Store, goal: &Goal) -> Commit {
    let (mut base, mut continues) = (goal.workspace.base.clone(), goal.continues.clone());
    while let Some(continued) = continues
        && let Ok(earlier) = store.load(continued.goal).await
        && earlier.state.candidate.as_ref() == Some(&base)
    {
        (base, continues) = (earlier.goal.workspace.base, earlier.goal.continues);
    }
    base
}

/// How the user takes a goal's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taking {
    Merge,
    Push,
}

/// Refuses a goal that has nothing to take, or nothing that anybody should.
fn refuse_unfinished(record: &GoalRecord, unproven: bool, taking: Taking) -> Result<(), Error> {
    let (verb, done, take_unproven): (_, _, fn(GoalId) -> Action) = match taking {
        Taking::Merge => ("merge", "merged", Action::MergeUnproven),
        Taking::Push => ("push", "pushed", Action::PushUnproven),
    };
    let (goal, id) = (record.goal.id, record.goal.id.short());
    if record.goal.workspace.mode.is_in_place() {
        let folder = &record.goal.workspace.repository;
        return Err(Error::usage(format!("goal {id} worked in place: what it did is in {folder} already"))
            .hint([("see it", Action::Diff(goal)), ("undo it", Action::Restore(goal))]));
    }
    let refused = |why: &str| Error::usage(format!("goal {id} is {}: {why}", record.state.phase.name()));
    match &record.state.phase {
        Phase::Done => Ok(()),
        Phase::Unproven if unproven => Ok(()),
        Phase::Unproven => Err(refused("it has no checks, so nobody knows whether its work holds")
            .hint([("see the changes", Action::Diff(goal)), ("then", take_unproven(goal))])),
        phase if !phase.is_settled() => {
            Err(refused(&format!("there is nothing proven to {verb} yet")).hint(Hint::of_unfinished(goal)))
        }
        phase => {
            let actions = [
                ("continue it", way_to_continue(goal, phase)),
                ("look at what is there", Action::Diff(goal)),
            ];
            Err(refused(&format!("its work is not proven, so it is not {done}")).hint(actions))
        }
    }
}

/// Whether the branch would get something that no check has seen.
fn needs_checks(request: &Merge, record: &GoalRecord, plan: &MergePlan) -> bool {
    plan.way != MergeWay::AlreadyThere
        && plan.files == MergedFiles::Mixed
        && record.state.phase == Phase::Done
        && request.verify
}

fn checks_fail(record: &GoalRecord, plan: &MergePlan, verdict: &Verdict) -> Error {
    let failed: Vec<&str> = verdict.failed().map(|check| check.name.as_str()).collect();
    let goal = record.goal.id;
    Error::failed(format!(
        "not merged: together with what is in `{}` now, these fail: {}",
        plan.into,
        failed.join(", ")
    ))
    .hint([
        ("their output", Action::Log(goal)),
        ("to merge and repair by hand", Action::MergeUnverified(goal)),
    ])
}

/// What git refuses with the user's own settings, such as a key, an editor or a remote, is theirs to mend.
fn refused_by_git(error: WorkspaceError, what: &str, again: Action) -> Error {
    match error {
        WorkspaceError::Git { detail, .. } => {
            Error::person(format!("{what}: {detail}")).hint([("then", again)])
        }
        error => error.into(),
    }
}

/// A refusal with the way out that depends on the goal.
fn explained(error: MergeError, record: &GoalRecord, work: &Work) -> Error {
    let goal = record.goal.id;
    match error {
        MergeError::Workspace(error) => error.into(),
        MergeError::NoSuchBranch { .. } => Error::usage(error.to_string()),
        MergeError::Conflicts { .. } => {
            let (root, candidate) = (work.repository.root().display(), work.candidate.short());
            Error::person(error.to_string()).hint([
                (
                    "nothing was changed; resolve it by hand",
                    Action::Git(format!("-C {root} merge {candidate}")),
                ),
                ("or have an agent do it", Action::RunMerge(candidate.to_owned())),
            ])
        }
        MergeError::InTheWay { .. }
        | MergeError::Detached { .. }
        | MergeError::Unfinished { .. }
        | MergeError::InUse { .. }
        | MergeError::RefusedByHook { .. } => {
            Error::person(error.to_string()).hint([("nothing was changed; then", Action::Merge(goal))])
        }
        MergeError::OtherBranch { .. } => {
            Error::person(error.to_string()).hint([("name the branch", Action::GiveBranch)])
        }
        error => Error::person(error.to_string()),
    }
}

/// Whether the goal's log does not have it yet.
fn is_news(record: &GoalRecord, plan: &MergePlan) -> bool {
    let known = record.state.merged.as_ref();
    plan.way != MergeWay::AlreadyThere || known.is_none_or(|merged| merged.into != plan.into)
}

fn outcome(
    request: &Merge,
    record: &GoalRecord,
    work: &Work,
    plan: &MergePlan,
    verdict: Option<&Verdict>,
) -> Merged {
    let report = MergeReport {
        id: record.goal.id.to_string(),
        into: plan.into.clone(),
        way: match plan.way {
            MergeWay::AlreadyThere => "already_there".to_owned(),
            MergeWay::FastForward => "fast_forward".to_owned(),
            MergeWay::MergeCommit => "merge_commit".to_owned(),
            MergeWay::Squash => "squash".to_owned(),
            MergeWay::Reworded => "reworded".to_owned(),
        },
        before: plan.before.to_string(),
        commit: plan.after.as_ref().map(ToString::to_string),
        candidate: work.candidate.to_string(),
        files: plan.changed.len(),
        proven: record.state.phase == Phase::Done
            && (plan.files == MergedFiles::AsInCandidate || verdict.is_some_and(Verdict::met)),
        verdict: verdict.map(VerdictReport::from),
        dry_run: request.dry_run,
    };
    Merged {
        goal: record.goal.id,
        way: plan.way,
        candidate: work.candidate.clone(),
        commit: plan.after.clone(),
        root: work.repository.root().to_path_buf(),
        needs_checks: needs_checks(request, record, plan),
        report,
        notices: Vec::new(),
    }
}

/// Pushes a goal's verified commit as its branch to a remote; without one, to where `git push` would.
pub async fn push(
    context: &Context,
    id: &str,
    remote: Option<String>,
    unproven: bool,
) -> Result<PushReport, Error> {
    let found = find::goal(context, id).await?;
    let record = &found.record;
    refuse_unfinished(record, unproven, Taking::Push)?;
    let (goal, id) = (record.goal.id, record.goal.id.short());
    let work = Work::of(&found.state.home, record)?;
    let remote = match remote {
        Some(remote) => remote,
        None => work.repository.push_remote()?.ok_or_else(|| {
            Error::usage(format!("{} has no remote to push to", work.repository.root().display())).hint([
                ("add one", Action::Git("remote add origin URL".to_owned())),
                ("or name it", Action::Push(goal, "REMOTE".to_owned())),
            ])
        })?,
    };
    let branch = record.state.workspace.as_ref().and_then(|workspace| workspace.branch.clone());
    let branch = branch.ok_or_else(|| Error::usage(format!("goal {id} has no branch")))?;
    work.publish(record)?;
    let answer = work.repository.push(&work.candidate, &branch, &remote).map_err(|error| {
        let what = format!("`{remote}` was not changed");
        refused_by_git(error, &what, Action::Push(goal, remote.clone()))
    })?;
    Ok(PushReport {
        id: goal.to_string(),
        remote,
        branch,
        commit: work.candidate.to_string(),
        proven: record.state.phase == Phase::Done,
        answer: answer.lines().map(str::to_owned).collect(),
    })
}
