//! `towline merge`: takes a goal's proven work into a branch of the user's.

use std::process::ExitCode;
use std::sync::Arc;

use serde::Serialize;
use towline_core::{Commit, Event, Phase, Verdict};
use towline_engine::{Custody, Home, Recheck, must_be_alone, workspace_of};
use towline_store::{GoalRecord, Store};
use towline_workspace::{
    MergeError, MergePlan, MergeRequest, MergeStyle, MergeWay, MergedFiles, Protect, Repository, Stop,
};

use crate::commands::STOPPED;
use crate::commands::recheck::{Reader, recheck};
use crate::context::Context;
use crate::failure::Failure;
use crate::report::VerdictReport;
use crate::view::Paint;
use crate::{
    find,
    output::{self, Layout},
};

/// Take a goal's proven work into your branch.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  towline merge 1a2b3c4d --dry-run         say what would happen
  towline merge 1a2b3c4d                   into the branch that is checked out
  towline merge 1a2b3c4d --into release    into another branch
  towline merge 1a2b3c4d --squash --edit   as one commit, with a message of yours

Exit codes: 0 merged, or merged before · 2 there is nothing to merge · 3 the checks fail on the merge · 4 your checkout \
or a conflict is in the way · 130 stopped")]
pub(crate) struct Merge {
    /// The goal's id, or a prefix of it
    id: String,
    /// The branch that gets the work [default: the one that is checked out]
    #[arg(long, value_name = "BRANCH")]
    into: Option<String>,
    /// The message of the commit; its files are the verified ones
    #[arg(long, short, value_name = "TEXT")]
    message: Option<String>,
    /// Edit the message of the commit
    #[arg(long, conflicts_with = "dry_run")]
    edit: bool,
    /// Make one commit of all of the work
    #[arg(long, conflicts_with = "no_ff")]
    squash: bool,
    /// Make a merge commit also where the branch has not moved on
    #[arg(long)]
    no_ff: bool,
    /// Merge the work of a goal without checks, which nobody has proven
    #[arg(long)]
    unproven: bool,
    /// Do not run the checks on a merge with what the branch has got meanwhile
    #[arg(long)]
    no_verify: bool,
    /// Only say what would happen
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What came of it, as JSON.
#[derive(Serialize)]
struct MergeReport {
    id: String,
    into: String,
    way: &'static str,
    before: String,
    /// None for a merge commit that is not made, as nothing is in a dry run.
    commit: Option<String>,
    candidate: String,
    files: usize,
    proven: bool,
    verdict: Option<VerdictReport>,
    dry_run: bool,
}

/// What is to be merged.
pub(super) struct Work {
    /// Towline's own repository of the goal.
    own: Repository,
    /// The user's, in which the work is seen.
    pub(super) repository: Repository,
    pub(super) candidate: Commit,
}

/// What tells who else is at work, and where.
struct Place {
    home: Home,
    store: Arc<dyn Store>,
}

impl Place {
    /// Refuses to change files under the hands of an agent that works in the checkout itself.
    async fn must_be_alone(&self, record: &GoalRecord, plan: &MergePlan) -> Result<(), Failure> {
        let changes = plan.way != MergeWay::AlreadyThere;
        let Some(checkout) = plan.checkout().filter(|_| changes) else { return Ok(()) };
        let checkout = checkout.canonicalize().unwrap_or_else(|_| checkout.to_path_buf());
        Ok(must_be_alone(&self.home, self.store.as_ref(), record.goal.id, &checkout).await?)
    }
}

/// Merges the goal's work, or says why not.
pub(crate) async fn run(context: &Context, args: Merge) -> Result<ExitCode, Failure> {
    let found = find::goal(context, &args.id).await?;
    refuse_unfinished(&found.record, args.unproven)?;
    if args.dry_run {
        let work = Work::of(&found.state.home, &found.record)?;
        let plan = work.plan(&found.record, &args)?;
        tell(context, &args, &found.record, &work, &plan, None);
        return Ok(ExitCode::SUCCESS);
    }
    let goal = found.record.goal.id;
    let place = Place { home: found.state.home.clone(), store: Arc::clone(&found.state.store) };
    let engine = context.engine(found.state)?;
    let merged = match engine.hold(goal).await {
        Ok(mut custody) => {
            let merged = merge(context, &args, &place, &mut custody).await;
            custody.give_back().await;
            merged
        }
        Err(error) => Err(error.into()),
    };
    engine.close().await;
    merged
}

/// Merges the work of a goal that nobody else can touch now.
async fn merge(
    context: &Context,
    args: &Merge,
    place: &Place,
    custody: &mut Custody,
) -> Result<ExitCode, Failure> {
    let record = custody.record.clone();
    refuse_unfinished(&record, args.unproven)?;
    let work = &Work::of(&place.home, &record)?;
    let mut plan = work.plan(&record, args)?;
    place.must_be_alone(&record, &plan).await?;
    work.publish(&record)?;
    if plan.after.is_none() {
        plan.set_message(work.message(&record, args, plan.way)?);
    }
    let commit = plan.commit().map_err(|error| explained(error, &record, work))?;
    let mut verdict = None;
    if needs_checks(args, &record, &plan) {
        say_why(args, &plan);
        let base = &plan.before;
        let candidate = work.own.as_candidate(&commit)?;
        let what = Recheck { repository: &work.own, candidate: &candidate, base };
        let Some(found) = recheck(context, custody, what, Reader::of(args.json)).await? else {
            return Ok(ExitCode::from(STOPPED));
        };
        custody.note(Event::Verified { verdict: found.clone() }).await?;
        if !found.met() {
            return Err(checks_fail(&record, &plan, &found));
        }
        verdict = Some(found);
    }
    // The checks may have run for long.
    place.must_be_alone(&record, &plan).await?;
    warn_of_hooks(&plan, &record, work)?;
    plan.carry_out().map_err(|error| explained(error, &record, work))?;
    if is_news(&record, &plan) {
        let into = plan.into.clone();
        custody.note(Event::Merged { into, commit, candidate: work.candidate.clone() }).await?;
    }
    tell(context, args, &record, work, &plan, verdict.as_ref());
    Ok(ExitCode::SUCCESS)
}

impl Work {
    pub(super) fn of(home: &Home, record: &GoalRecord) -> Result<Self, Failure> {
        let own = find::repository(home, record)?;
        let repository = own.lender().unwrap_or(&own).seeing(&own);
        let candidate = match (&record.state.phase, &record.state.candidate) {
            (Phase::Done, Some(candidate)) => candidate.clone(),
            _ => unproven_candidate(home, record)?,
        };
        Ok(Self { own, repository, candidate })
    }

    /// Brings the work into the user's repository, where no branch has it yet.
    pub(super) fn publish(&self, record: &GoalRecord) -> Result<(), Failure> {
        Ok(self.own.publish(&self.candidate, &format!("refs/towline/{}/published", record.goal.id))?)
    }

    fn plan(&self, record: &GoalRecord, args: &Merge) -> Result<MergePlan, Failure> {
        let into = args.into.as_deref();
        let own = record.state.workspace.as_ref().and_then(|workspace| workspace.branch.as_deref());
        if into.is_some() && into == own {
            return Err(Failure::usage("this is the branch that the goal itself ends as")
                .hint("name a branch of yours: --into BRANCH"));
        }
        let base = &record.goal.workspace.base;
        let request =
            MergeRequest { candidate: &self.candidate, base, into, message: "", style: args.style() };
        self.repository.plan_merge(&request).map_err(|error| explained(error, record, self))
    }

    /// The message of the commit that is made, as the user wants it.
    fn message(&self, record: &GoalRecord, args: &Merge, way: MergeWay) -> Result<String, Failure> {
        let goal = &record.goal;
        let text = match (&args.message, way) {
            (Some(text), _) => text.clone(),
            (None, MergeWay::MergeCommit) => format!("Merge: {}", goal.subject()),
            (None, _) => {
                let summary = record.state.last_attempt().map_or("", |attempt| attempt.text.as_str());
                format!("{}\n\n{summary}", goal.subject())
            }
        };
        let text = if args.edit { self.repository.edit_message(&text)? } else { Some(text) };
        let text = text.filter(|text| !text.trim().is_empty()).ok_or_else(|| {
            Failure::usage("nothing was merged: the message is empty").hint("write one: --message TEXT")
        })?;
        Ok(goal.merge_message(&text, self.candidate.as_str()))
    }
}

impl Merge {
    const fn style(&self) -> MergeStyle {
        match (self.squash, self.no_ff) {
            (true, _) => MergeStyle::Squash,
            (false, true) => MergeStyle::MergeCommit,
            (false, false) if self.message.is_some() || self.edit => MergeStyle::Reword,
            (false, false) => MergeStyle::FastForward,
        }
    }
}

/// All of the work of a goal without checks, as a commit.
fn unproven_candidate(home: &Home, record: &GoalRecord) -> Result<Commit, Failure> {
    let nothing = || Failure::usage(format!("goal {} has no work to merge", record.goal.id.short()));
    let binding = record.state.workspace.as_ref().ok_or_else(nothing)?;
    let last = record.state.last_attempt().ok_or_else(nothing)?;
    let (_, workspace) = workspace_of(home, &record.goal, binding, &Stop::default())?;
    let protect = Protect::of_candidate(&record.goal)?;
    let workspace = workspace.with_message(record.goal.commit_message(&last.text));
    Ok(workspace.candidate(last.n.get(), &protect)?.commit)
}

/// Refuses a goal that has nothing to merge, or nothing that anybody should.
pub(super) fn refuse_unfinished(record: &GoalRecord, unproven: bool) -> Result<(), Failure> {
    let id = record.goal.id.short();
    if record.goal.workspace.mode.is_in_place() {
        let folder = &record.goal.workspace.repository;
        return Err(Failure::usage(format!("goal {id} worked in place: what it did is in {folder} already"))
            .hint(format!("see it: towline diff {id}; undo it: towline restore {id}")));
    }
    let refused = |why: &str| Failure::usage(format!("goal {id} is {}: {why}", record.state.phase.name()));
    match &record.state.phase {
        Phase::Done => Ok(()),
        Phase::Unproven if unproven => Ok(()),
        Phase::Unproven => Err(refused("it has no checks, so nobody knows whether its work holds")
            .hint(format!("look at it (towline diff {id}), then: towline merge {id} --unproven"))),
        phase if !phase.is_settled() => Err(refused("there is nothing proven to merge yet").hint(format!(
            "follow it: towline logs -f {id} (or, when nobody drives it: towline run --goal {id})"
        ))),
        _ => Err(refused("its work is not proven, so it is not merged").hint(format!(
            "go on with it (towline retry {id}), or look at what is there: towline diff {id}"
        ))),
    }
}

/// Names hooks of the project that the merge changes, for which git runs none.
fn warn_of_hooks(plan: &MergePlan, record: &GoalRecord, work: &Work) -> Result<(), Failure> {
    let hooks = plan.changed_hooks().map_err(|error| explained(error, record, work))?;
    if plan.way != MergeWay::AlreadyThere && !hooks.is_empty() {
        let names: Vec<String> = hooks.iter().map(|name| output::brief(name)).collect();
        output::say(format_args!(
            "warning: git runs no hooks for this merge, because it changes them; look at them before your next git command: {}",
            names.join(", ")
        ));
    }
    Ok(())
}

/// Whether the branch would get something that no check has seen.
fn needs_checks(args: &Merge, record: &GoalRecord, plan: &MergePlan) -> bool {
    plan.way != MergeWay::AlreadyThere
        && plan.files == MergedFiles::Mixed
        && record.state.phase == Phase::Done
        && !args.no_verify
}

fn say_why(args: &Merge, plan: &MergePlan) {
    if !args.json {
        output::print(format_args!(
            "`{}` has moved on since the goal began: what was proven is not what would be merged.\n\
             The checks run on the merge first:",
            plan.into
        ));
    }
}

fn checks_fail(record: &GoalRecord, plan: &MergePlan, verdict: &Verdict) -> Failure {
    let failed: Vec<String> = verdict.failed().map(|check| output::brief(&check.name)).collect();
    let id = record.goal.id.short();
    let what = format!(
        "not merged: together with what is in `{}` now, these fail: {}",
        plan.into,
        failed.join(", ")
    );
    Failure::failed(what).hint(format!(
        "their output: towline logs {id}; to merge and repair by hand: towline merge {id} --no-verify"
    ))
}

/// A refusal with the way out that depends on the goal.
fn explained(error: MergeError, record: &GoalRecord, work: &Work) -> Failure {
    let hint = match &error {
        MergeError::Conflicts { .. } => {
            let root = work.repository.root().display();
            let candidate = work.candidate.short();
            Some(format!(
                "nothing was changed; resolve it by hand: git -C {root} merge {candidate}\n  \
                 or have an agent do it: towline run \"merge {candidate} and resolve the conflicts\" --check …"
            ))
        }
        MergeError::InTheWay { .. }
        | MergeError::Detached { .. }
        | MergeError::Unfinished { .. }
        | MergeError::InUse { .. }
        | MergeError::RefusedByHook { .. } => {
            Some(format!("nothing was changed; then: towline merge {}", record.goal.id.short()))
        }
        _ => None,
    };
    let failure = Failure::from(error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// Whether the goal's log does not say so yet.
fn is_news(record: &GoalRecord, plan: &MergePlan) -> bool {
    let known = record.state.merged.as_ref();
    plan.way != MergeWay::AlreadyThere || known.is_none_or(|merged| merged.into != plan.into)
}

/// Says what happened, or would.
fn tell(
    context: &Context,
    args: &Merge,
    record: &GoalRecord,
    work: &Work,
    plan: &MergePlan,
    verdict: Option<&Verdict>,
) {
    if args.json {
        let report = MergeReport {
            id: record.goal.id.to_string(),
            into: plan.into.clone(),
            way: match plan.way {
                MergeWay::AlreadyThere => "already_there",
                MergeWay::FastForward => "fast_forward",
                MergeWay::MergeCommit => "merge_commit",
                MergeWay::Squash => "squash",
                MergeWay::Reworded => "reworded",
            },
            before: plan.before.to_string(),
            commit: plan.after.as_ref().map(ToString::to_string),
            candidate: work.candidate.to_string(),
            files: plan.changed.len(),
            proven: record.state.phase == Phase::Done
                && (plan.files == MergedFiles::AsInCandidate || verdict.is_some_and(Verdict::met)),
            verdict: verdict.map(VerdictReport::of),
            dry_run: args.dry_run,
        };
        return output::tell_json(Layout::Pretty, &report);
    }
    let paint = Paint::for_stdout(context);
    let (into, candidate) = (&plan.into, work.candidate.short());
    let root = output::homely(&work.repository.root().display().to_string());
    let files = match plan.changed.len() {
        1 => "1 file".to_owned(),
        count => format!("{count} files"),
    };
    let how = match plan.way {
        MergeWay::AlreadyThere => {
            return output::tell(format_args!(
                "`{into}` of {root} has the work already (candidate {candidate})"
            ));
        }
        MergeWay::FastForward => format!("{candidate} into `{into}` of {root} (fast-forward, {files})"),
        MergeWay::MergeCommit if args.dry_run => {
            format!("{candidate} into `{into}` of {root} by a merge commit without conflicts ({files})")
        }
        MergeWay::Squash | MergeWay::Reworded if args.dry_run => {
            format!("{candidate} into `{into}` of {root} as one new commit ({files})")
        }
        made => {
            let commit = plan.after.as_ref().map(Commit::short).unwrap_or_default();
            let kind = if made == MergeWay::MergeCommit { "by the merge commit" } else { "as the commit" };
            format!("{candidate} into `{into}` of {root} {kind} {commit} ({files})")
        }
    };
    if !args.dry_run {
        output::tell(paint.good(&format!("✓ merged {how}")));
        return output::tell(format_args!("  tidy up: towline rm {}", record.goal.id.short()));
    }
    output::tell(format_args!("would merge {how}; nothing was changed"));
    if needs_checks(args, record, plan) {
        output::tell(format_args!(
            "  `{into}` has moved on since the goal began, so the checks would run on the merge first"
        ));
    }
}
