//! Which values are secret, and how they are hidden in everything that is stored.
//!
//! Neighbours: the mask crate knows how secrets look and hides them; the driver has every event pass through here before
//! it is recorded. Raw logs never do: they are the truth, and for their owner alone.

use std::collections::BTreeMap;

use towline_agent::{AgentSettings, McpServer};
use towline_core::{AttemptId, Event, GoalState, Incoming};
use towline_mask::{Mask, Secrets};

use crate::attempt::TOKEN_VARIABLE;
use crate::home::Home;
use crate::token::Secret;

/// The values that must not be shown: of variables that look secret in this environment or in the settings of agents, of
/// all that are handed on to agents by name, and of the keys of model APIs.
pub fn known_secrets<'a>(
    environment: &BTreeMap<String, String>,
    agents: impl IntoIterator<Item = &'a AgentSettings>,
) -> Secrets {
    let mut secrets = Secrets::default();
    environment.iter().for_each(|(name, value)| secrets.variable(name, value));
    for settings in agents {
        settings.env.iter().for_each(|(name, value)| secrets.variable(name, value));
        let of_servers = settings.mcp.values().flat_map(McpServer::variables);
        for name in settings.pass_env.iter().map(String::as_str).chain(of_servers) {
            if let Some(value) = settings.env.get(name).or_else(|| environment.get(name)) {
                secrets.handed_on(name, value);
            }
        }
        for (name, value) in settings.mcp.values().flat_map(|server| server.headers.iter().chain(&server.env))
        {
            secrets.variable(name, value);
        }
        if let Some(key) = settings.key_variable()
            && let Some(value) = settings.env.get(key).or_else(|| environment.get(key))
        {
            secrets.add(key, value);
        }
    }
    secrets
}

/// The tokens that the attempts of a goal were given, as far as there were any here.
pub fn attempt_tokens(home: &Home, state: &GoalState) -> Secrets {
    let mut secrets = Secrets::default();
    let path = home.secret();
    // Reading leaves nothing behind.
    if let Ok(Some(secret)) = Secret::read(&path) {
        state.attempts.iter().for_each(|attempt| add_token(&mut secrets, &secret, attempt.id));
    }
    secrets
}

/// Whose token this is, among these attempts. Takes as long for a wrong one as for a right one.
pub fn attempt_of_token(
    home: &Home,
    token: &str,
    attempts: impl IntoIterator<Item = AttemptId>,
) -> Option<AttemptId> {
    let secret = Secret::read(&home.secret()).ok()??;
    attempts
        .into_iter()
        .fold(None, |found, attempt| if secret.fits(attempt, token) { Some(attempt) } else { found })
}

/// Adds the token of an attempt.
pub(crate) fn add_token(secrets: &mut Secrets, secret: &Secret, attempt: AttemptId) {
    secrets.add(TOKEN_VARIABLE, &secret.token(attempt));
}

/// Hides secrets in what happened.
pub(crate) fn hide(mask: &Mask, event: &mut Event) {
    event.for_each_text(&mut |text| mask.apply(text));
}

/// Hides secrets in news.
pub(crate) fn hide_in(mask: &Mask, mut incoming: Incoming) -> Incoming {
    hide(mask, &mut incoming.event);
    incoming.parent.iter_mut().for_each(|parent| mask.apply(parent));
    incoming
}
