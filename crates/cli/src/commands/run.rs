//! `towline run`: one goal in the foreground.

use std::process::ExitCode;

use towline_app::{
    Action, Context, Error, Request, State, draft, draft_continuing, first_notices, hand_over, must_not_wait,
    notices_about, queue_goal, server_of,
};
use towline_core::Goal;
use towline_engine::{Clock, SystemClock};
use towline_store::GoalRecord;

use crate::args::Run;
use crate::commands::attach::{From, attach};
use crate::commands::foreground::{Beginning, Foreground};
use crate::commands::retry::resume_goal;
use crate::commands::trust::ask_first;
use crate::find::Found;
use crate::output::Layout;
use crate::prompt::prompt;
use crate::{find, notices, output};

/// Creates or resumes a goal and drives it.
pub(crate) async fn run(context: &Context, args: Run) -> Result<ExitCode, Error> {
    match &args.goal {
        Some(id) => resume_goal(context, id, None, &args.check, args.format).await,
        None => Ok(start(context, &args).await?.1),
    }
}

/// Makes a goal and drives it to its end.
pub(crate) async fn start(context: &Context, args: &Run) -> Result<(GoalRecord, ExitCode), Error> {
    let (request, now) = (request(args)?, SystemClock.now());
    must_find_server(context, args)?;
    ask_first(context, args.format.json || args.format.events)?;
    let earlier = match &args.continues {
        Some(id) => Some(find::goal(context, id).await?),
        None => None,
    };
    let draft = match &earlier {
        Some(earlier) => draft_continuing(context, request, earlier, now).await?,
        None => draft(context, &request, now).await?,
    };
    notices::print(&draft.notices);
    let state = context.state()?;
    if !args.format.json && !args.format.events {
        let title = output::brief(&draft.goal.title);
        output::print(format_args!("goal {}  {title}", draft.goal.id.short()));
        notices::print(&notices_about(&draft.goal));
    }
    notices::print(&first_notices(context, &state.home, &draft));
    if let Some(earlier) = earlier {
        hand_over(context, earlier, draft.goal.id).await?;
    }
    // Work in place begins with the files as they are now, so it cannot wait in a queue.
    if !draft.goal.workspace.mode.is_in_place() && server_of(&state.home)?.is_some() {
        return by_server(context, state, draft.goal, args).await;
    }
    must_not_wait(&draft.goal)?;
    let foreground = Foreground { context, state, agents: draft.agents, format: args.format };
    foreground.drive(Beginning::New(Box::new(draft.goal))).await
}

/// Fails before anything is made if there is a server of another version, or none where one is needed.
fn must_find_server(context: &Context, args: &Run) -> Result<(), Error> {
    let server = match context.existing_state()? {
        Some(state) => server_of(&state.home)?,
        None => None,
    };
    if args.detach && server.is_none() {
        let what = "`--detach` needs a server, and none is running";
        return Err(Error::usage(what).hint([("start one", Action::Up)]));
    }
    Ok(())
}

/// Hands the goal to the server, and shows it unless the person wants to leave at once.
async fn by_server(
    context: &Context,
    state: State,
    goal: Goal,
    args: &Run,
) -> Result<(GoalRecord, ExitCode), Error> {
    let record = queue_goal(context, &state, goal, SystemClock.now()).await?;
    if !args.detach {
        let found = Found { state, record: record.clone() };
        return Ok((record, attach(context, found, args.format, From::Submitted).await?));
    }
    if args.format.json {
        let added = serde_json::json!({"id": record.goal.id, "phase": record.state.phase.name()});
        output::print_json(Layout::Pretty, &added);
    } else {
        let id = record.goal.id.short();
        output::print(format_args!("queued; follow it with: towline attach {id}"));
    }
    Ok((record, ExitCode::SUCCESS))
}

/// What the arguments ask for. The prompt may come from standard input.
fn request(run: &Run) -> Result<Request, Error> {
    const EXAMPLE: &str = "describe the task: towline run \"fix the failing test\" --check \"cargo test\"";
    let task = match run.prompt.as_slice() {
        [] => None,
        given => Some(prompt(given, "run", EXAMPLE)?),
    };
    Ok(Request {
        prompt: task,
        file: run.file.clone(),
        checks: run.check.clone(),
        agents: run.agent.clone(),
        model: run.model.clone(),
        budget: run.budget.clone(),
        base: run.base.clone(),
        include_dirty: run.include_dirty,
        in_place: run.in_place,
        allow_large: run.allow_large,
        red_first: run.red_first,
        unprotect: run.unprotect.clone(),
        ..Request::default()
    })
}
