//! Finds sessions, costs and limits in a program's output, by patterns from the settings.

use regex::Regex;
use towline_core::MicroUsd;

use crate::settings::CliSettings;

/// The patterns of one conversation.
#[derive(Debug)]
pub(super) struct Patterns {
    session: Option<Regex>,
    cost: Option<Regex>,
    limit: Option<Regex>,
}

impl Patterns {
    /// The configuration refuses invalid patterns, so a pattern that does not compile is ignored.
    pub(super) fn of(settings: &CliSettings) -> Self {
        let compiled = |pattern: &Option<String>| Regex::new(pattern.as_deref()?).ok();
        Self {
            session: compiled(&settings.session_pattern),
            cost: compiled(&settings.cost_pattern),
            limit: compiled(&settings.limit_pattern),
        }
    }

    /// Whether the program's own id of the conversation can be found at all.
    pub(super) fn find_sessions(&self) -> bool {
        self.session.is_some()
    }

    /// The program's own id of the conversation.
    pub(super) fn session(&self, line: &str) -> Option<String> {
        let id = self.session.as_ref()?.captures(line)?.get(1)?.as_str().trim();
        (!id.is_empty()).then(|| id.to_owned())
    }

    /// What pieces of the work cost, in all. Commas may separate thousands.
    pub(super) fn cost(&self, line: &str) -> Option<MicroUsd> {
        let amounts = self.cost.as_ref()?.captures_iter(line).filter_map(|found| {
            let amount = found.get(1)?.as_str().trim().trim_start_matches('$').replace(',', "");
            MicroUsd::from_dollars(amount.parse().ok()?)
        });
        amounts.reduce(|all, amount| all + amount)
    }

    /// Whether the program reports that its quota is used up.
    pub(super) fn is_limit(&self, line: &str) -> bool {
        self.limit.as_ref().is_some_and(|limit| limit.is_match(line))
    }
}
