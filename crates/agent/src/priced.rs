//! Estimates the cost of an agent's tokens while they are used: most agents report their cost at the end of a turn,
//! some never.
//!
//! Neighbours: the protocols report each token once; the core replaces an estimate by the agent's own figure
//! ([`Usage::record`](towline_core::Usage::record)).

use serde::{Deserialize, Serialize};
use towline_core::{AgentEvent, End, MicroUsd, PriceList, Tokens, Usage, Words};

use crate::protocol::{Action, Frame, ProcessEnd, Protocol, Steer};

/// Prices, and whether to report a model without a price.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pricing {
    pub list: PriceList,
    /// What happens when the price of the model is unknown.
    pub unknown: UnknownPrice,
}

/// What happens when the price of a model is unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnknownPrice {
    /// Nothing, because no limit depends on it.
    #[default]
    Ignore,
    /// A notice, once per session.
    Report,
}

/// Wraps a conversation to add estimates. `model` is the requested one, until the agent names its own.
pub fn priced(inner: Box<dyn Protocol>, pricing: Pricing, model: Option<&str>) -> Box<dyn Protocol> {
    let is_reported = pricing.unknown == UnknownPrice::Ignore;
    Box::new(Priced { inner, list: pricing.list, model: model.map(str::to_owned), is_reported })
}

struct Priced {
    inner: Box<dyn Protocol>,
    list: PriceList,
    model: Option<String>,
    /// Whether an unknown price was reported or needs no report.
    is_reported: bool,
}

impl Priced {
    fn with_estimates(&mut self, actions: Vec<Action>) -> Vec<Action> {
        let mut priced = Vec::with_capacity(actions.len());
        for mut action in actions {
            let notice = match &mut action {
                Action::Emit { event, .. } => self.estimate(event),
                _ => None,
            };
            priced.push(action);
            priced.extend(notice.map(|text| Action::emit(AgentEvent::Notice { text })));
        }
        priced
    }

    /// Adds an estimate to the usage, or returns the reason why there is none.
    fn estimate(&mut self, event: &mut AgentEvent) -> Option<String> {
        match event {
            AgentEvent::SessionStarted(session) => {
                self.is_reported |= session.resumed;
                self.model = session.model.clone().or(self.model.take());
                let is_unknown = self.model.as_deref().is_some_and(|model| !self.list.knows(model));
                is_unknown.then(|| self.report(self.model.clone())).flatten()
            }
            AgentEvent::Usage { model, used, context_used, .. } if is_unpriced(used) => {
                let model = model.as_ref().or(self.model.as_ref());
                let all = used.with_uncounted();
                match model.and_then(|model| self.list.cost(model, &all, *context_used)) {
                    Some(cost) => {
                        used.estimate = cost;
                        // What is free by the list has a known cost.
                        used.reported.cost |= cost == MicroUsd(0);
                        None
                    }
                    None => self.report(model.cloned()),
                }
            }
            _ => None,
        }
    }

    fn report(&mut self, model: Option<String>) -> Option<String> {
        if std::mem::replace(&mut self.is_reported, true) {
            return None;
        }
        let (problem, fix) = match model {
            Some(model) => (
                format!("no price is known for the model `{model}`"),
                format!("to have its cost estimated, set `[prices.{model:?}]`"),
            ),
            None => ("the agent does not name its model".to_owned(), "limit `tokens` as well".to_owned()),
        };
        Some(format!(
            "{problem}: its cost counts against the budget `usd` only as far as the agent reports it; {fix}"
        ))
    }
}

/// Whether tokens were used and the agent does not report their cost at the same time.
fn is_unpriced(used: &Usage) -> bool {
    used.cost == MicroUsd(0) && used.with_uncounted().tokens() != Tokens(0)
}

impl Protocol for Priced {
    fn recall(&mut self, sent: &[u8]) {
        self.inner.recall(sent);
    }

    fn used_before(&mut self, used: Usage) {
        self.inner.used_before(used);
    }

    fn start(&mut self) -> Vec<Action> {
        let actions = self.inner.start();
        self.with_estimates(actions)
    }

    fn on_frame(&mut self, frame: Frame<'_>) -> Vec<Action> {
        let actions = self.inner.on_frame(frame);
        self.with_estimates(actions)
    }

    fn on_steer(&mut self, steer: Steer) -> Vec<Action> {
        let actions = self.inner.on_steer(steer);
        self.with_estimates(actions)
    }

    fn refusal_words(&self) -> Words {
        self.inner.refusal_words()
    }

    fn on_exit(&mut self, exit: &ProcessEnd) -> (Vec<Action>, End) {
        let (actions, end) = self.inner.on_exit(exit);
        (self.with_estimates(actions), end)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use towline_core::{SessionId, SessionStarted};

    use super::*;

    /// A protocol that emits these events.
    struct Emits(Vec<AgentEvent>);

    impl Protocol for Emits {
        fn start(&mut self) -> Vec<Action> {
            self.0.drain(..).map(Action::emit).collect()
        }

        fn on_frame(&mut self, _frame: Frame<'_>) -> Vec<Action> {
            Vec::new()
        }

        fn refusal_words(&self) -> Words {
            Words::Dropped
        }

        fn on_exit(&mut self, _exit: &ProcessEnd) -> (Vec<Action>, End) {
            (Vec::new(), End::Completed)
        }
    }

    fn session(model: &str, resumed: bool) -> AgentEvent {
        let native_id = SessionId::new("s");
        AgentEvent::SessionStarted(SessionStarted {
            native_id,
            resumed,
            model: Some(model.to_owned()),
            agent_version: None,
        })
    }

    fn usage(model: Option<&str>, tokens: u64, cost: u64) -> AgentEvent {
        AgentEvent::Usage {
            model: model.map(str::to_owned),
            used: Usage { input: Tokens(tokens), cost: MicroUsd(cost), ..Usage::default() },
            context_used: None,
            context_size: None,
        }
    }

    /// The estimates, and short notices.
    fn heard(unknown: UnknownPrice, asked: Option<&str>, events: Vec<AgentEvent>) -> Vec<String> {
        let list = PriceList::with(&BTreeMap::new());
        let actions = priced(Box::new(Emits(events)), Pricing { list, unknown }, asked).start();
        let shown = actions.into_iter().filter_map(|action| match action {
            Action::Emit { event: AgentEvent::Usage { used, .. }, .. } => Some(used.estimate.0.to_string()),
            Action::Emit { event: AgentEvent::Notice { text }, .. } => {
                text.split(':').next().map(str::to_owned)
            }
            _ => None,
        });
        shown.collect()
    }

    #[test]
    fn tokens_are_estimated_by_their_model_or_the_one_of_the_session() {
        let events = vec![
            session("claude-opus-4-8[1m]", false),
            usage(None, 1_000, 0),
            usage(Some("claude-haiku-4-5-20251001"), 1_000, 0),
            usage(None, 1_000, 7),
            usage(None, 0, 0),
        ];
        assert_eq!(heard(UnknownPrice::Report, None, events), ["5000", "1000", "0", "0"]);
        assert_eq!(heard(UnknownPrice::Report, Some("gpt-5"), vec![usage(None, 1_000, 0)]), ["1250"]);
    }

    #[test]
    fn the_wrapped_protocol_decides_about_refusal_messages() {
        let pricing = Pricing { list: PriceList::with(&BTreeMap::new()), unknown: UnknownPrice::Ignore };
        assert_eq!(priced(Box::new(Emits(Vec::new())), pricing, None).refusal_words(), Words::Dropped);
    }

    #[test]
    fn a_model_without_a_price_is_reported_once_where_a_limit_depends_on_it() {
        let events = || vec![session("qwen3", false), usage(None, 9, 0), usage(Some("other"), 9, 0)];
        let notice = "no price is known for the model `qwen3`";
        assert_eq!(heard(UnknownPrice::Report, None, events()), [notice, "0", "0"]);
        assert_eq!(heard(UnknownPrice::Ignore, None, events()), ["0", "0"]);
        let resumed = vec![session("qwen3", true), usage(None, 9, 0)];
        assert_eq!(heard(UnknownPrice::Report, None, resumed), ["0"], "it was reported before");
        let unnamed = vec![usage(None, 9, 0)];
        assert_eq!(heard(UnknownPrice::Report, None, unnamed), ["0", "the agent does not name its model"]);
    }
}
