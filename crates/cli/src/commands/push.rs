//! `towline push`: sends a goal's verified commit to a remote.

use std::process::ExitCode;

use serde::Serialize;
use towline_core::Phase;
use towline_workspace::WorkspaceError;

use crate::commands::merge::{Work, refuse_unfinished};
use crate::context::Context;
use crate::failure::Failure;
use crate::view::Paint;
use crate::{
    find,
    output::{self, Layout},
};

/// Push a goal's verified commit to a remote.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  towline push 1a2b3c4d               to the remote that `git push` would use
  towline push 1a2b3c4d upstream      to another one

Exit codes: 0 pushed · 2 there is nothing to push, or no remote · 4 the remote or a hook refused")]
pub(crate) struct Push {
    /// The goal's id, or a prefix of it
    id: String,
    /// The remote [default: the one that `git push` would use]
    remote: Option<String>,
    /// Push work that no check has proven, of a goal without checks
    #[arg(long)]
    unproven: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What was pushed, as JSON.
#[derive(Serialize)]
struct PushReport {
    id: String,
    remote: String,
    branch: String,
    commit: String,
    proven: bool,
    /// What the remote answered, in lines.
    answer: Vec<String>,
}

/// Pushes the goal's work, or reports why not.
pub(crate) async fn run(context: &Context, args: Push) -> Result<ExitCode, Failure> {
    let found = find::goal(context, &args.id).await?;
    let record = &found.record;
    refuse_unfinished(record, args.unproven)?;
    let id = record.goal.id.short();
    let work = Work::of(&found.state.home, record)?;
    let remote = match args.remote {
        Some(remote) => remote,
        None => work.repository.push_remote()?.ok_or_else(|| {
            Failure::usage(format!("{} has no remote to push to", work.repository.root().display()))
                .hint(format!("add one (git remote add origin URL), or name it: towline push {id} REMOTE"))
        })?,
    };
    let branch = record.state.workspace.as_ref().and_then(|workspace| workspace.branch.clone());
    let branch = branch.ok_or_else(|| Failure::usage(format!("goal {id} has no branch")))?;
    work.publish(record)?;
    let answer = work.repository.push(&work.candidate, &branch, &remote).map_err(|error| match error {
        WorkspaceError::Git { detail, .. } => {
            Failure::person(format!("`{remote}` was not changed: {detail}"))
                .hint(format!("then: towline push {id} {remote}"))
        }
        error => error.into(),
    })?;
    let answer: Vec<String> = answer.lines().map(output::printable).collect();
    if args.json {
        let report = PushReport {
            id: record.goal.id.to_string(),
            remote,
            branch,
            commit: work.candidate.to_string(),
            proven: record.state.phase == Phase::Done,
            answer,
        };
        output::tell_json(Layout::Pretty, &report);
        return Ok(ExitCode::SUCCESS);
    }
    for line in answer.iter().filter(|line| !line.trim().is_empty()) {
        output::tell(format_args!("{line}"));
    }
    let pushed = format!("✓ pushed {} to `{remote}` as {branch}", work.candidate.short());
    output::tell(Paint::for_stdout(context).good(&pushed));
    Ok(ExitCode::SUCCESS)
}
