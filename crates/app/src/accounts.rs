//! The quota states of accounts.

use std::sync::Arc;

use jiff::Timestamp;
use towline_api::{AccountLine, OpenedAccount, RefusedGoal};
use towline_core::{Account, AccountStatus};
use towline_engine::GoalCommand;
use towline_store::{Listing, Order, load_all};

use crate::context::{Context, State};
use crate::error::Error;
use crate::find::Found;
use crate::steer::steer;

/// All accounts that attempts have used, by name.
pub async fn accounts(context: &Context) -> Result<Vec<AccountLine>, Error> {
    let Some(state) = context.existing_state()? else { return Ok(Vec::new()) };
    Ok(state.store.accounts().await?.iter().map(AccountLine::from).collect())
}

/// Opens an account that is limited or closed: one goal tries it, and its attempt shows whether it can be used. An open one stays
/// as it is. Goals that wait for the account, or ended because it refused their credentials, go on from their old places.
pub async fn open_account(context: &Context, name: &str, now: Timestamp) -> Result<OpenedAccount, Error> {
    let state = context.existing_state()?;
    let known = match &state {
        Some(state) => state.store.accounts().await?,
        None => Vec::new(),
    };
    let (Some(state), Some(account)) = (state, known.iter().find(|account| account.name == name)) else {
        let names: Vec<&str> = known.iter().map(|account| account.name.as_str()).collect();
        let names = if names.is_empty() { "none yet".to_owned() } else { names.join(", ") };
        return Err(Error::not_found(format!("no attempt has used an account `{name}`"))
            .hint(format!("accounts that attempts have used: {names}")));
    };
    // Queue them before the account opens, so that the oldest goal makes the trial.
    let (continued, refused) = continue_goals(context, &state, name).await?;
    let mut opened = account.clone();
    if account.status != AccountStatus::Open {
        opened = Account { status: AccountStatus::Trial, updated_at: now, ..opened };
        state.store.set_account(&opened).await?;
    }
    Ok(OpenedAccount { account: (&opened).into(), continued, refused })
}

/// Queues all goals again that cannot go on because of this account.
async fn continue_goals(
    context: &Context,
    state: &State,
    account: &str,
) -> Result<(Vec<String>, Vec<RefusedGoal>), Error> {
    let listing =
        Listing { phases: vec!["limited", "escalated"], order: Order::OldestFirst, ..Listing::all() };
    let (mut continued, mut refused) = (Vec::new(), Vec::new());
    for record in load_all(state.store.as_ref(), listing).await?.records {
        if !record.state.waits_for_account(&record.goal, account) {
            continue;
        }
        let goal = record.goal.id;
        let state = State { home: state.home.clone(), store: Arc::clone(&state.store) };
        match steer(context, Found { state, record }, GoalCommand::Resume).await {
            Ok(_) => continued.push(goal.to_string()),
            Err(error) => refused.push(RefusedGoal { goal: goal.to_string(), why: error.message() }),
        }
    }
    Ok((continued, refused))
}
