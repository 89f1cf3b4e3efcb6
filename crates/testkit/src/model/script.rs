//! Which reply a request gets: rules in order, and the state that makes a rule go on where it was.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::{Reply, Request};

/// What a turn that no rule wants is answered, and every side request.
const BLAND_ANSWER: &str = "Nothing more to do.";

/// A test on a request.
#[derive(Clone)]
pub struct Matcher(Arc<dyn Fn(&Request) -> bool + Send + Sync>);

impl Matcher {
    /// Whatever the function returns.
    pub fn new(test: impl Fn(&Request) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(test))
    }

    /// Matches every request.
    pub fn any() -> Self {
        Self::new(|_| true)
    }

    /// The last user message holds this text.
    pub fn prompt_contains(text: impl Into<String>) -> Self {
        let text = text.into();
        Self::new(move |request| request.prompt_text().contains(&text))
    }

    /// Some message, of any role, or some tool result holds this text.
    pub fn any_text_contains(text: impl Into<String>) -> Self {
        let text = text.into();
        Self::new(move |request| request.all_text().contains(&text))
    }

    /// The `n`th request of a real turn, counted from 1. A client's retry counts too.
    pub fn nth_turn(n: usize) -> Self {
        Self::new(move |request| request.turn == Some(n))
    }

    /// The last user message brings the result of a tool.
    pub fn after_tool_result() -> Self {
        Self::new(|request| !request.tool_results().is_empty())
    }

    /// The model may call tools. Rules look at such requests only, unless [`Rule::also_side_requests`] was called.
    pub fn has_tools() -> Self {
        Self::new(Request::has_tools)
    }

    /// Matches when both match.
    pub fn and(self, other: Self) -> Self {
        Self::new(move |request| self.holds(request) && other.holds(request))
    }

    /// At least one holds.
    pub fn or(self, other: Self) -> Self {
        Self::new(move |request| self.holds(request) || other.holds(request))
    }

    /// It does not hold.
    pub fn negated(self) -> Self {
        Self::new(move |request| !self.holds(request))
    }

    fn holds(&self, request: &Request) -> bool {
        (self.0)(request)
    }
}

impl fmt::Debug for Matcher {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Matcher")
    }
}

/// Replies for the requests that match: the first for the first one, then the next; the last one repeats.
///
/// A request that brings the result of a tool call which this rule made gets the rule's next reply, whether it
/// matches or not, as long as one is left.
#[derive(Debug, Clone)]
pub struct Rule {
    matcher: Matcher,
    replies: Vec<Reply>,
    /// Whether it answers side requests as well as turns.
    has_side_requests: bool,
}

impl Rule {
    /// A rule for the turns that match. It needs at least one reply.
    pub fn when(matcher: Matcher) -> Self {
        Self { matcher, replies: Vec::new(), has_side_requests: false }
    }

    /// A rule for every turn.
    pub fn always() -> Self {
        Self::when(Matcher::any())
    }

    /// Adds a reply after those it has.
    pub fn reply(mut self, reply: Reply) -> Self {
        self.replies.push(reply);
        self
    }

    /// The same as [`Rule::reply`], for scripts that read better so.
    pub fn then(self, reply: Reply) -> Self {
        self.reply(reply)
    }

    /// Lets the rule answer side requests as well, such as those for a title.
    pub fn also_side_requests(mut self) -> Self {
        self.has_side_requests = true;
        self
    }

    fn wants(&self, request: &Request) -> bool {
        (self.has_side_requests || request.has_tools()) && self.matcher.holds(request)
    }
}

/// Rules in order: the first that matches answers.
#[derive(Debug, Clone, Default)]
pub struct Script {
    rules: Vec<Rule>,
}

impl Script {
    /// A script without rules: every turn gets a short text that ends it.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a rule after those it has.
    pub fn rule(mut self, rule: Rule) -> Self {
        assert!(
            !rule.replies.is_empty(),
            "a rule without a reply: call Rule::reply before the script takes it"
        );
        self.rules.push(rule);
        self
    }
}

impl From<Rule> for Script {
    fn from(rule: Rule) -> Self {
        Self::new().rule(rule)
    }
}

impl<const N: usize> From<[Rule; N]> for Script {
    fn from(rules: [Rule; N]) -> Self {
        rules.into_iter().fold(Self::new(), Self::rule)
    }
}

impl From<Vec<Rule>> for Script {
    fn from(rules: Vec<Rule>) -> Self {
        rules.into_iter().fold(Self::new(), Self::rule)
    }
}

/// A script that is being played.
#[derive(Debug)]
pub(super) struct Playing {
    rules: Vec<Rule>,
    /// How many replies each rule has given.
    given: Vec<usize>,
    /// Which rule made which tool call.
    callers: HashMap<String, usize>,
}

/// The reply to send, and the rule it belongs to.
pub(super) struct Chosen {
    pub(super) reply: Reply,
    rule: Option<usize>,
}

impl Playing {
    pub(super) fn new(script: Script) -> Self {
        let given = vec![0; script.rules.len()];
        Self { rules: script.rules, given, callers: HashMap::new() }
    }

    pub(super) fn choose(&mut self, request: &Request) -> Chosen {
        let rule =
            self.rule_awaiting(request).or_else(|| self.rules.iter().position(|rule| rule.wants(request)));
        let Some(rule) = rule else {
            return Chosen { reply: Reply::text(BLAND_ANSWER), rule: None };
        };
        let replies = &self.rules[rule].replies;
        let reply = replies[self.given[rule].min(replies.len() - 1)].clone();
        self.given[rule] += 1;
        Chosen { reply, rule: Some(rule) }
    }

    /// Remembers that the tool calls with these ids were made by the rule of `chosen`.
    pub(super) fn made_calls(&mut self, chosen: &Chosen, ids: &[String]) {
        if let Some(rule) = chosen.rule {
            self.callers.extend(ids.iter().map(|id| (id.clone(), rule)));
        }
    }

    fn rule_awaiting(&self, request: &Request) -> Option<usize> {
        let results = request.tool_results();
        let rule = results.iter().find_map(|result| self.callers.get(&result.tool_use_id)).copied()?;
        (self.given[rule] < self.rules[rule].replies.len()).then_some(rule)
    }
}
