//! The agent inside the binary: its command line, and its messages beyond the protocol.
//!
//! Its other half is `towline acp` (the builtin crate). The names that the two share are here.

use jiff::Timestamp;
use serde_json::value::RawValue;
use towline_core::{AgentEvent, Price, PriceList, SessionPlan, Tokens};

use super::classify::Meaning;
use super::protocol::AcpProtocol;
use super::wire::{Text, read};
use crate::api_settings::Fetch;
use crate::json::lenient_objects;
use crate::jsonrpc::RpcError;
use crate::lines::{Reading, Unknown};
use crate::protocol::{Action, LaunchContext};
use crate::settings::AgentSettings;

/// The mode in which it asks before it changes anything.
pub(super) const ASKS: &str = "ask";
/// The mode in which it asks for nothing.
pub(super) const BYPASSES: &str = "bypass";

/// The arguments after the program. The key is never among them.
pub(super) fn arguments(settings: &AgentSettings, context: &LaunchContext<'_>) -> Vec<String> {
    let api = &settings.api;
    let model = context.model.or(settings.model.as_deref());
    let price = model.and_then(|model| settings.prices.get(model)).map(price);
    let mut arguments = vec!["acp".to_owned()];
    let mut add = |flag: &str, value: Option<String>| {
        arguments.extend(value.into_iter().flat_map(|value| [flag.to_owned(), value]));
    };
    add("--provider", Some(api.provider.name().to_owned()));
    add("--api", api.api.map(|api| api.name().to_owned()));
    add("--base-url", api.base_url.clone());
    add("--key-env", api.key_env.clone());
    add("--model", model.map(str::to_owned));
    add("--context-window", api.context_window.map(|tokens| tokens.to_string()));
    add("--max-output", api.max_output.map(|tokens| tokens.to_string()));
    add("--max-turns", settings.max_turns.map(|turns| turns.to_string()));
    add("--price", price);
    for dir in &settings.dirs {
        add("--dir", Some(dir.clone()));
    }
    if api.fetch == Fetch::On {
        arguments.push("--fetch".to_owned());
    }
    arguments
}

/// Dollars per million tokens, by kind of token.
fn price(price: &Price) -> String {
    let all = [
        ("input", Some(price.input)),
        ("output", Some(price.output)),
        ("cache_read", price.cache_read),
        ("cache_write", price.cache_write),
    ];
    let prices = all.into_iter().filter_map(|(kind, price)| Some(format!("{kind}={}", price?.dollars())));
    prices.collect::<Vec<_>>().join(",")
}

/// What a person should know before the agent works.
pub(super) fn warnings(settings: &AgentSettings, context: &LaunchContext<'_>) -> Vec<String> {
    let model = context.model.or(settings.model.as_deref()).unwrap_or_default();
    // Once per conversation is enough.
    let is_known =
        PriceList::with(&settings.prices).knows(model) || matches!(context.session, SessionPlan::Resume(_));
    let words = || {
        format!(
            "no price is known for the model `{model}`: it is metered in tokens, and a limit in dollars does not \
             stop it; to have its cost counted, set `[prices.{model:?}]`"
        )
    };
    (!is_known).then(words).into_iter().collect()
}

/// The time at which a used-up quota renews, if the error has it.
pub(super) fn until(error: &RpcError) -> Option<Timestamp> {
    error.data.get("until")?.as_str()?.parse().ok()
}

/// The class of an error, if it has one.
pub(super) fn class(error: &RpcError) -> Option<&str> {
    error.data.get("class")?.as_str()
}

/// What a class means. The agent has seen the provider's whole answer, so the class counts more than the status: an
/// account without money is refused with 429, too, and waiting does not help.
pub(super) fn meaning(class: &str) -> Option<Meaning> {
    match class {
        "auth" => Some(Meaning::Auth),
        "limited" => Some(Meaning::Limit),
        "overflow" => Some(Meaning::Overflow),
        "server" | "network" | "cut_off" => Some(Meaning::Server),
        "refused" => Some(Meaning::Refused),
        "invalid" => Some(Meaning::Unknown),
        _ => None,
    }
}

lenient_objects! {
    Retrying<'a> {
        "attempt" => attempt: u32,
        "delayMs" => delay_ms: u64,
        "status" => status: Option<u16>,
        "message" => message: Text<'a>,
    }

    Compacted {
        "before" => before: Option<u64>,
        "after" => after: Option<u64>,
    }

    Problem<'a> {
        "message" => message: Text<'a>,
    }
}

impl AcpProtocol {
    /// Its notifications beyond the protocol.
    pub(super) fn on_own_notification(&mut self, method: &str, params: &RawValue) -> Reading {
        let unknown = || Unknown(method.to_owned());
        let event = match method {
            "_towline/retrying" => {
                let Retrying { attempt, delay_ms, status, message } = read(params).ok_or_else(unknown)?;
                // Text that it wrote before the failure comes first.
                let mut actions = Vec::new();
                self.speech.over(&mut actions);
                let retrying = AgentEvent::Retrying { status, attempt, delay_ms, error: message.into() };
                actions.push(Action::emit(retrying));
                return Ok(actions);
            }
            "_towline/compacted" => {
                let Compacted { before, after } = read(params).ok_or_else(unknown)?;
                AgentEvent::Compacted { before: before.map(Tokens), after: after.map(Tokens) }
            }
            "_towline/problem" => {
                let Problem { message } = read(params).ok_or_else(unknown)?;
                AgentEvent::Notice { text: message.into() }
            }
            _ => return Err(unknown()),
        };
        Ok(vec![Action::emit(event)])
    }
}
