//! `towline attach`: the live view of a goal that another process runs.

use std::process::ExitCode;
use std::sync::Arc;

use towline_app::{Context, Error, Steering, follow, halt};
use towline_core::{GoalId, Phase, Seq};
use towline_engine::{EngineError, Following, GoalCommand, is_driven, running_server};
use towline_store::GoalRecord;

use crate::args::{Attach, RunFormat};
use crate::commands::foreground::{Interrupt, Interrupts, conclude};
use crate::commands::watching::Watching;
use crate::failure::exit_code_of;
use crate::find::{self, Found};
use crate::output;

/// The exit code of a view that SIGTERM has ended. Its goal may continue.
pub(super) const TERMINATED: u8 = 143;

/// What is shown first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum From {
    /// The present state of the goal.
    Now,
    /// Its whole story.
    TheBeginning,
    /// The same of a goal that was just handed to the server: leaving the view is a decision about the goal.
    Submitted,
}

/// Attaches to the goal.
pub(crate) async fn run(context: &Context, args: Attach) -> Result<ExitCode, Error> {
    let found = find::goal(context, &args.id).await?;
    attach(context, found, args.format, From::Now).await
}

/// Why a view ends.
enum Left {
    /// The goal is settled, or no engine runs it any more.
    Goal,
    /// The person wants to leave it.
    Person,
    /// SIGTERM ends this process.
    Terminated,
}

/// Shows the goal until it is settled or no engine runs it any more. Ctrl-C leaves the view and nothing else.
pub(super) async fn attach(
    context: &Context,
    mut found: Found,
    format: RunFormat,
    from: From,
) -> Result<ExitCode, Error> {
    let interrupts = Interrupts::listen()?;
    let home = found.state.home.clone();
    let store = Arc::clone(&found.state.store);
    let after = if from == From::Now { found.record.last_seq } else { Seq(0) };
    let following = follow(&found, after).await?;
    let steering = Steering::Other { context: Box::new(context.clone()), state: found.state.clone() };
    let (record, goal) = (&found.record, found.record.goal.id);
    let mut watching = Watching::new(context, &home, format, goal, store, steering, None);
    if from == From::TheBeginning {
        watching.print(&format!("goal {}  {}", goal.short(), output::brief(&record.goal.title)));
    }
    watching.begin(Some(record).filter(|_| from == From::Now)).await;
    let was_run = is_driven(&home, record.lease.as_ref()) || running_server(&home).is_some();
    let left = watch(context, &mut found, (following, after), from, interrupts, &mut watching).await?;
    watching.finish();
    match left {
        Left::Person => leave(&found).await.map(|()| ExitCode::SUCCESS),
        Left::Terminated => leave(&found).await.map(|()| ExitCode::from(TERMINATED)),
        Left::Goal => {
            let record = &found.record;
            if was_run && !record.state.phase.is_settled() {
                output::eprint(format_args!("the process that ran goal {} has ended", goal.short()));
            }
            conclude(context, &home, format, record, None);
            Ok(exit_code_of(&record.state.phase))
        }
    }
}

/// Shows what happens, whichever engine runs the goal, and passes on what the person wants.
async fn watch(
    context: &Context,
    found: &mut Found,
    (mut following, mut last): (Following, Seq),
    from: From,
    mut interrupts: Interrupts,
    watching: &mut Watching,
) -> Result<Left, Error> {
    let goal = found.record.goal.id;
    let mut live = following.live();
    let mut is_asked = false;
    loop {
        tokio::select! {
            Some(message) = live.next() => watching.write(message),
            event = following.next() => match event? {
                Some(event) => {
                    last = event.seq;
                    watching.take(&event).await;
                }
                None if is_taken_over(found).await? => {
                    following = follow(found, last).await?;
                    live = following.live();
                }
                None => return Ok(Left::Goal),
            },
            () = watching.tick() => match is_asked.then(|| watching.typed()).flatten().as_deref() {
                None if is_asked => {}
                None => watching.look().await,
                Some("c" | "cancel") => {
                    is_asked = false;
                    cancel(context, goal).await?;
                }
                Some("d" | "detach") => return Ok(Left::Person),
                Some(_) => watching.print(&question(goal)),
            },
            interrupt = interrupts.next() => match interrupt {
                Interrupt::Suspend => watching.suspend(),
                Interrupt::Stop if from == From::Submitted && output::is_terminal() => {
                    is_asked = true;
                    watching.print(&question(goal));
                }
                // There is nobody to ask, so Ctrl-C cancels, as for a goal that runs here.
                Interrupt::Stop if from == From::Submitted => cancel(context, goal).await?,
                Interrupt::Stop | Interrupt::Kill => return Ok(Left::Person),
                Interrupt::Pause => return Ok(Left::Terminated),
            },
        }
    }
}

/// Loads the goal again. Returns whether another engine has taken it over meanwhile, for example a server that was started again.
async fn is_taken_over(found: &mut Found) -> Result<bool, Error> {
    let generation = |record: &GoalRecord| record.lease.as_ref().map(|lease| lease.generation);
    let before = generation(&found.record);
    found.record = found.state.store.load(found.record.goal.id).await?;
    let (record, home) = (&found.record, &found.state.home);
    Ok(generation(record) > before && is_driven(home, record.lease.as_ref()))
}

/// Asks whether a goal that the server runs is cancelled or left running.
fn question(goal: GoalId) -> String {
    let id = goal.short();
    format!(
        "cancel goal {id} (c), or leave it running on the server (d)? Type c or d and press Enter; Ctrl-C again leaves it running"
    )
}

/// Cancels the goal, whether it runs or waits. Its end is shown like every other; one that has ended meanwhile stays as it is.
async fn cancel(context: &Context, goal: GoalId) -> Result<(), Error> {
    match halt(context, &goal.to_string(), GoalCommand::Cancel).await {
        Err(Error::Engine(EngineError::Illegal { .. })) | Ok(_) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Prints that the goal does not need its view.
async fn leave(found: &Found) -> Result<(), Error> {
    let (home, goal) = (&found.state.home, found.record.goal.id);
    let record = found.state.store.load(goal).await?;
    let runs = is_driven(home, record.lease.as_ref()) || running_server(home).is_some();
    if runs && !record.state.phase.is_settled() {
        let id = goal.short();
        let does = if record.state.phase == Phase::Queued { "stays in the queue" } else { "keeps running" };
        output::eprint(format_args!(
            "goal {id} {does}; return to it with: towline attach {id} (to end it: towline cancel {id})"
        ));
    }
    Ok(())
}
