//! The server as the other commands see it: whether one runs, and how a goal is handed to it.

use std::time::Duration;

use jiff::Timestamp;
use towline_core::{Envelope, Event, Goal, GoalId, GoalState, Source};
use towline_engine::{
    Clock, Home, ServerInfo, ServerStart, SystemClock, engine_ended, leases_end, running_server,
};
use towline_store::GoalRecord;

use crate::context::{Context, State};
use crate::error::{Action, Error};

/// The version of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The server that runs on this state directory. One of another version is an error: the two might not understand each other.
pub fn server_of(home: &Home) -> Result<Option<ServerInfo>, Error> {
    match running_server(home) {
        Some(server) if server.version != VERSION => {
            let what = format!("the server is Towline {}, and this is {VERSION}", server.version);
            Err(Error::person(what).hint([("restart it", Action::Down), ("then", Action::Up)]))
        }
        server => Ok(server),
    }
}

/// The server that runs on the context's state directory, of whatever version.
pub fn server_here(context: &Context) -> Result<Option<ServerInfo>, Error> {
    let root = context.home_path()?;
    match Home::open(&root) {
        Ok(home) => Ok(running_server(&home)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => {
            Err(Error::internal(format!("cannot use the state directory {}: {error}", root.display())))
        }
    }
}

/// How often it is looked whether a suspended server continues.
const SUSPENDED_PAUSE: Duration = Duration::from_secs(1);

/// How long a write beside a suspended server may take.
const LOCK_PATIENCE: Duration = Duration::from_secs(3);

/// The place of the server on a state directory, of which there is one. No other process takes it as long as the start is held.
pub enum ServerPlace {
    Free(ServerStart),
    Taken(ServerInfo),
    /// The process that has it is suspended.
    Suspended(ServerInfo, ServerStart),
}

/// Who has the place of the server.
pub async fn server_place(state: &State) -> Result<ServerPlace, Error> {
    let start = ServerStart::take(&state.home).await?;
    Ok(match running_server(&state.home) {
        None => ServerPlace::Free(start),
        Some(server) if server.is_suspended() => ServerPlace::Suspended(server, start),
        Some(server) => ServerPlace::Taken(server),
    })
}

/// Who has the place when the leases of a suspended server have expired, or it has continued. If that is still the suspended one, its
/// place may be taken. `report` gets the time of that first.
pub async fn await_suspended(
    state: &State,
    mut server: ServerInfo,
    mut start: ServerStart,
    report: impl Fn(&ServerInfo, Timestamp),
) -> Result<ServerPlace, Error> {
    loop {
        // Others that start meanwhile wait for the same leases, not for this process.
        drop(start);
        let is_abandoned = stays_suspended(state, &server, &report).await?;
        (server, start) = match server_place(state).await? {
            // Another one, or the same again: it has other leases now.
            ServerPlace::Suspended(now, start) if !is_abandoned || now != server => (now, start),
            place => return Ok(place),
        };
    }
}

/// Waits until the leases of a suspended server have expired. False if it continued before that.
async fn stays_suspended(
    state: &State,
    server: &ServerInfo,
    report: &impl Fn(&ServerInfo, Timestamp),
) -> Result<bool, Error> {
    must_not_hold_store(state, server).await?;
    let now = SystemClock.now();
    let end = leases_end(state.store.as_ref(), server, now).await?.unwrap_or(now);
    if end > now {
        report(server, end);
    }
    while let Ok(left) = Duration::try_from(end.duration_since(SystemClock.now())) {
        tokio::time::sleep(left.min(SUSPENDED_PAUSE)).await;
        if !server.is_suspended() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Fails if nothing can be written beside a suspended server. If that one was writing, it has the lock of the store.
async fn must_not_hold_store(state: &State, server: &ServerInfo) -> Result<(), Error> {
    let settled = tokio::time::timeout(LOCK_PATIENCE, state.store.settled()).await;
    if let Ok(settled) = settled {
        return Ok(settled?);
    }
    if !server.is_suspended() {
        return Ok(());
    }
    let pid = server.pid;
    let what = format!("the database is locked, probably by the suspended server (pid {pid})");
    Err(Error::person(what)
        .hint(format!("let it continue with `kill -CONT {pid}`, or end it with `kill -KILL {pid}`")))
}

/// How long a server may take to end after the time that it gives to running turns.
const END_PATIENCE: Duration = Duration::from_secs(600);

/// What a server left that was stopped.
pub struct Stopped {
    /// How many goals still run, without an engine for now.
    pub left: usize,
}

/// Asks the server to end, and waits until it is gone. `asked_about` gets the goals whose turns it waits for, and for how long.
pub async fn stop_server(
    context: &Context,
    asked_about: impl FnOnce(&[GoalId], Duration),
) -> Result<Stopped, Error> {
    let state = context.state()?;
    let server = running_server(&state.home).ok_or_else(|| Error::not_found("no server is running"))?;
    let asked = server.ask_to_end();
    asked
        .map_err(|error| Error::internal(format!("cannot stop the server (pid {}): {error}", server.pid)))?;
    asked_about(&working(&state).await?, server.wait);
    let gone = tokio::time::timeout(patience_with(&server), engine_ended(&state.home, &server.worker)).await;
    if gone.is_err() {
        let what = format!("the server (pid {}) does not end", server.pid);
        return Err(Error::internal(what).hint(format!("end it with: kill -9 {}", server.pid)));
    }
    Ok(Stopped { left: working(&state).await?.len() })
}

fn patience_with(server: &ServerInfo) -> Duration {
    server.wait.saturating_add(END_PATIENCE)
}

/// The goals that hold a slot.
pub async fn working(state: &State) -> Result<Vec<GoalId>, Error> {
    Ok(state.store.pool(1).await?.working.iter().map(|working| working.goal).collect())
}

/// Stores a drafted goal for the server, which starts it when it is its turn. Where programs are looked up is stored with the goal: the
/// server's environment is not the user's.
pub async fn queue_goal(
    context: &Context,
    state: &State,
    goal: Goal,
    now: Timestamp,
) -> Result<GoalRecord, Error> {
    let mut queued = queue_goals(context, state, vec![goal], now).await?;
    queued.pop().ok_or_else(|| Error::internal("the goal was not stored"))
}

/// The same for several goals: all of them, or none.
pub(crate) async fn queue_goals(
    context: &Context,
    state: &State,
    goals: Vec<Goal>,
    now: Timestamp,
) -> Result<Vec<GoalRecord>, Error> {
    let new = goals.into_iter().map(|mut goal| {
        goal.scheduling.search_path = context.variable("PATH").map(str::to_owned);
        let created = Envelope::new(goal.id, now, Source::Operator, Event::Created);
        let state = GoalState::new(&goal);
        (goal, state, created)
    });
    Ok(state.store.create_all(&new.collect::<Vec<_>>()).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_may_take_as_long_to_end_as_it_waits_for_turns() {
        let earlier =
            r#"{"pid":1,"worker":"w","address":"a","version":"1","started_at":"2026-11-18T00:00:00Z"}"#;
        let server: ServerInfo = serde_json::from_str(earlier).expect("that of an earlier version");
        assert_eq!(patience_with(&server), END_PATIENCE);
        let server = ServerInfo { wait: Duration::from_secs(1_800), ..server };
        let read = serde_json::from_str(&serde_json::to_string(&server).expect("JSON")).expect("a server");
        assert_eq!(patience_with(&read), END_PATIENCE + Duration::from_secs(1_800));
    }
}
