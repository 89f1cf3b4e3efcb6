//! `towline attach`: the live view of a goal that another process runs.

use std::process::ExitCode;
use std::sync::Arc;

use towline_app::{Context, Error, Steering, unreachable};
use towline_core::Seq;
use towline_engine::{Home, follow, is_driven};
use towline_store::Store;

use crate::args::{Attach, RunFormat};
use crate::commands::foreground::{Interrupt, Interrupts, conclude};
use crate::commands::watching::Watching;
use crate::failure::exit_code_of;
use crate::find::{self, Found};
use crate::output;

/// What is shown first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum From {
    /// The present state of the goal.
    Now,
    /// Its whole story.
    TheBeginning,
}

/// Attaches to the goal.
pub(crate) async fn run(context: &Context, args: Attach) -> Result<ExitCode, Error> {
    let found = find::goal(context, &args.id).await?;
    attach(context, found, args.format, From::Now).await
}

/// Shows the goal until it is settled or no engine runs it any more. Ctrl-C leaves the view and nothing else.
pub(super) async fn attach(
    context: &Context,
    found: Found,
    format: RunFormat,
    from: From,
) -> Result<ExitCode, Error> {
    let mut interrupts = Interrupts::listen()?;
    let (home, store, record) = (found.state.home, found.state.store, found.record);
    let goal = record.goal.id;
    let after = if from == From::Now { record.last_seq } else { Seq(0) };
    let mut following = follow(&home, Arc::clone(&store), &record, after).await.map_err(unreachable)?;
    let steering = Steering::Other { home: home.clone(), store: Arc::clone(&store) };
    let mut watching = Watching::new(context, &home, format, goal, Arc::clone(&store), steering, None);
    if from == From::TheBeginning {
        watching.print(&format!("goal {}  {}", goal.short(), output::brief(&record.goal.title)));
    }
    watching.begin(Some(&record).filter(|_| from == From::Now)).await;
    let mut live = following.live();
    loop {
        tokio::select! {
            Some(message) = live.next() => watching.write(message),
            event = following.next() => match event? {
                Some(event) => watching.take(&event).await,
                None => break,
            },
            () = watching.tick() => watching.look().await,
            interrupt = interrupts.next() => match interrupt {
                Interrupt::Suspend => watching.suspend(),
                Interrupt::Stop | Interrupt::Pause | Interrupt::Kill => {
                    watching.finish();
                    return leave(&home, &store, goal).await;
                }
            },
        }
    }
    watching.finish();
    let record = store.load(goal).await?;
    conclude(context, &home, format, &record, None);
    Ok(exit_code_of(&record.state.phase))
}

async fn leave(home: &Home, store: &Arc<dyn Store>, goal: towline_core::GoalId) -> Result<ExitCode, Error> {
    let record = store.load(goal).await?;
    if is_driven(home, record.lease.as_ref()) && !record.state.phase.is_settled() {
        let id = goal.short();
        output::eprint(format_args!(
            "goal {id} keeps running; return to it with: towline attach {id} (to end it: towline cancel {id})"
        ));
    }
    Ok(ExitCode::SUCCESS)
}
