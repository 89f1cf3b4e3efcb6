//! `towline logs`: what happened to a goal, as a story, as events, or as the agent's own bytes.

use std::process::ExitCode;

use towline_app::{Context, Error, Until, follow, raw_output, runs_elsewhere};
use towline_core::{Envelope, Seq};
use towline_engine::{Clock, SystemClock};
use towline_process::Stream;
use towline_terminal::{Detail, Story};
use towline_view::ending;

use crate::args::{Logs, RunFormat};
use crate::commands::attach::{From, attach};
use crate::find;
use crate::output::{self, Layout};

/// Prints the log, and follows it with `--follow`.
pub(crate) async fn run(context: &Context, args: Logs) -> Result<ExitCode, Error> {
    let found = find::goal(context, &args.id).await?;
    if args.raw {
        let stream = if args.stderr { Stream::Stderr } else { Stream::Stdout };
        let until = if args.follow { Until::End } else { Until::Now };
        raw_output(&found, args.attempt, stream, until, output::print_bytes_or_exit).await?;
        return Ok(ExitCode::SUCCESS);
    }
    let is_whole = args.attempt.is_none() && !args.json;
    if args.follow && is_whole && output::is_terminal() && runs_elsewhere(&found) {
        return attach(context, found, RunFormat::default(), From::TheBeginning).await;
    }
    let only = args.attempt.map(|number| find::attempt(&found.record, number)).transpose()?;
    let mut story = Story::new(output::paint(context), Detail::Whole);
    let mut show = |event: &Envelope| {
        // Every event counts, printed or not: questions are numbered from the goal's first on.
        let lines = story.lines(event, SystemClock.now());
        if only.is_some() && event.attempt != only {
            return;
        }
        if args.json {
            output::print_json_or_exit(Layout::Line, event);
        } else {
            output::print_fitted(&lines);
        }
    };
    if is_whole {
        let goal = &found.record.goal;
        output::print_or_exit(format_args!("goal {}  {}", goal.id.short(), output::brief(&goal.title)));
    }
    if args.follow {
        let mut following = follow(&found, Seq(0)).await?;
        while let Some(event) = following.next().await? {
            show(&event);
        }
    } else {
        let mut after = Seq(0);
        loop {
            let page = found.state.store.events(found.record.goal.id, after, 500).await?;
            let Some(last) = page.last() else { break };
            after = last.seq;
            page.iter().for_each(&mut show);
        }
    }
    let record = found.state.store.load(found.record.goal.id).await?;
    if is_whole && record.state.phase.is_settled() {
        output::print_fitted(&ending(output::paint(context), &record, SystemClock.now()));
    }
    Ok(ExitCode::SUCCESS)
}
