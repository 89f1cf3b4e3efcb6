//! Requests of the agent. The rules answer permission requests at once. A request that only a person can decide stays
//! open until the answer comes or the agent stops waiting. We do not serve files and terminals: agents access the
//! workspace themselves.

use serde_json::value::RawValue;
use serde_json::{Value, json};
use towline_core::{About, AgentEvent, Ask, Decision, Outcome, Reply};

use super::elicitation::Form;
use super::protocol::AcpProtocol;
use super::tools::Ruled;
use super::wire::{self, PermissionOption, read};
use crate::jsonrpc::{self, METHOD_NOT_FOUND, RpcError, RpcRequest};
use crate::lines::{Reading, Unknown};
use crate::permission::{self, BY_RULE, Ruling, Verdict};
use crate::protocol::Action;

/// A request that waits for a person.
#[derive(Debug)]
pub(super) struct PendingRequest {
    id: Box<RawValue>,
    what: Waiting,
}

#[derive(Debug)]
enum Waiting {
    Permission {
        /// The id of the tool call.
        call: String,
        /// The answer that permits it.
        allowing: Value,
        /// The answer that denies it.
        denying: Value,
    },
    Form(Form),
}

impl AcpProtocol {
    pub(super) fn on_request(&mut self, request: &RpcRequest<'_>) -> Reading {
        match request.method {
            "session/request_permission" => match read::<wire::PermissionRequest<'_>>(request.params) {
                Some(asked) if !asked.tool_call.tool_call_id.is_empty() => {
                    Ok(self.on_permission(request, asked))
                }
                _ => Ok(self.refuse(request, &RpcError::invalid_params("the tool call cannot be read"))),
            },
            "elicitation/create" => Ok(self.on_elicitation(request)),
            // The answer goes out when everything before it is recorded, and not at all when the budget is spent.
            "_towline/counted" => {
                Ok(self.lines.write(jsonrpc::answer(request.id, json!({}))).into_iter().collect())
            }
            // Known but not offered: an agent that asks anyway must do without.
            "fs/read_text_file"
            | "fs/write_text_file"
            | "terminal/create"
            | "terminal/output"
            | "terminal/release"
            | "terminal/wait_for_exit"
            | "terminal/kill" => {
                let words = format!("Towline does not offer {}", request.method);
                let error = RpcError::new(METHOD_NOT_FOUND, words);
                Ok(self.lines.write(jsonrpc::refusal(request.id, &error)).into_iter().collect())
            }
            unknown => {
                let words = format!("Towline does not know {unknown}");
                Ok(self.refuse(request, &RpcError::new(METHOD_NOT_FOUND, words)))
            }
        }
    }

    /// Refuses a request that is not understood, and counts it.
    fn refuse(&mut self, request: &RpcRequest<'_>, error: &RpcError) -> Vec<Action> {
        let refusal = self.lines.write(jsonrpc::refusal(request.id, error));
        let counted = self.lines.unknown(format!("request {}", request.method), request.params.get());
        refusal.into_iter().chain(counted).collect()
    }

    fn on_permission(
        &mut self,
        request: &RpcRequest<'_>,
        mut asked: wire::PermissionRequest<'_>,
    ) -> Vec<Action> {
        let id = String::from(asked.tool_call.tool_call_id.clone());
        let mut actions = self.work_is_seen();
        self.speech.over(&mut actions);
        let call = self.calls.entry(id.clone()).or_default();
        let was_known = call.is_known();
        // A call that needs permission has not begun, whatever was reported before.
        asked.tool_call.status = None;
        call.learn(&id, self.preset, &mut asked.tool_call);
        let ruled = call.ruled(self.preset, &self.servers);
        let title = call.what_is_wanted(&ruled);
        if !was_known {
            let denied = self.denied.contains(&id);
            actions.extend(call.event(&id, &self.servers, denied).map(Action::emit));
        }
        let Ruling { verdict, by, rule } = self.ruling(&ruled);
        let outcome = match verdict {
            Verdict::Allow => Outcome::Allow,
            Verdict::Deny => Outcome::Deny,
            Verdict::Ask => {
                let about =
                    About::Permission { call: permission::tool_call(&ruled.tool, &ruled.input), title, rule };
                let what = Waiting::Permission {
                    call: id,
                    allowing: chosen(&asked.options, Outcome::Allow),
                    denying: chosen(&asked.options, Outcome::Deny),
                };
                actions.push(self.ask(request.id, about, what));
                return actions;
            }
        };
        if outcome == Outcome::Deny {
            self.denied.insert(id);
        }
        actions.extend(self.lines.write(jsonrpc::answer(request.id, chosen(&asked.options, outcome))));
        let decision = Decision { tool: ruled.tool, outcome, by: by.to_owned(), rule: Some(rule) };
        actions.push(Action::emit(AgentEvent::Decided(decision)));
        actions
    }

    /// The ruling about a call: about all files that it touches, and under all of its names.
    fn ruling(&mut self, ruled: &Ruled) -> Ruling {
        let directory = Some(self.directory.as_str());
        let names = [ruled.tool.as_str()].into_iter().chain(ruled.aliases.iter().copied());
        let inputs = || [&ruled.input].into_iter().chain(&ruled.further);
        for name in names {
            if let Some(rule) = inputs().find_map(|input| self.rules.denying(name, input, directory)) {
                return Ruling { verdict: Verdict::Deny, by: BY_RULE, rule };
            }
        }
        let whole = self.rules.ruling(&ruled.tool, &ruled.input, directory);
        if whole.verdict != Verdict::Allow || whole.by != BY_RULE {
            return whole;
        }
        for input in &ruled.further {
            let ruling = self.rules.ruling(&ruled.tool, input, directory);
            if ruling.verdict != Verdict::Allow {
                return ruling;
            }
        }
        whole
    }

    /// Leaves a request to a person. It does not wait if it was answered already, or if the agent no longer accepts
    /// input.
    fn ask(&mut self, id: &RawValue, about: About, what: Waiting) -> Action {
        let key = id.get().to_owned();
        let waits = self.lines.listens();
        if let Some(answer) = self.answered.get(&key) {
            match what {
                Waiting::Permission { call, denying, .. } if *answer == denying => {
                    self.denied.insert(call);
                }
                Waiting::Permission { .. } | Waiting::Form(_) => {}
            }
        } else if waits {
            self.pending.insert(key.clone(), PendingRequest { id: id.to_owned(), what });
        }
        let request = waits.then_some(key);
        Action::emit(AgentEvent::Asked(Ask { request, about, default: None, patience: None }))
    }

    fn on_elicitation(&mut self, request: &RpcRequest<'_>) -> Vec<Action> {
        let asked: wire::Elicitation<'_> = read(request.params).unwrap_or_default();
        match Form::read(&asked) {
            Some(form) => {
                let mut actions = self.work_is_seen();
                self.speech.over(&mut actions);
                let about = About::Choice { parts: form.parts(&asked.message) };
                actions.push(self.ask(request.id, about, Waiting::Form(form)));
                actions
            }
            None => {
                let declined = self.lines.write(jsonrpc::answer(request.id, json!({"action": "decline"})));
                let counted = self.lines.unknown("elicitation/create".to_owned(), request.params.get());
                declined.into_iter().chain(counted).collect()
            }
        }
    }

    /// Sends a person's answer.
    pub(super) fn on_answer(&mut self, id: &str, reply: Reply) -> Vec<Action> {
        let Some(pending) = self.pending.remove(id) else { return Vec::new() };
        let result = match (pending.what, reply) {
            (Waiting::Permission { allowing, .. }, Reply::Allowed | Reply::Always) => allowing,
            // An answer in words permits nothing, and the protocol has no field for it.
            (Waiting::Permission { call, denying, .. }, Reply::Denied { .. } | Reply::Chosen { .. }) => {
                self.denied.insert(call);
                denying
            }
            (Waiting::Form(form), Reply::Chosen { answers }) => {
                json!({"action": "accept", "content": form.filled_in(&answers)})
            }
            (Waiting::Form(_), Reply::Allowed | Reply::Always | Reply::Denied { .. }) => {
                json!({"action": "decline"})
            }
        };
        self.lines.write(jsonrpc::answer(&pending.id, result)).into_iter().collect()
    }

    /// Answers all pending requests as cancelled, as the protocol requires.
    pub(super) fn cancel_requests(&mut self) -> Vec<Action> {
        let pending = std::mem::take(&mut self.pending);
        let mut actions = Vec::new();
        for (request, pending) in pending {
            let result = match pending.what {
                Waiting::Permission { .. } => json!({"outcome": {"outcome": "cancelled"}}),
                Waiting::Form(_) => json!({"action": "cancel"}),
            };
            actions.push(Action::emit(AgentEvent::Withdrawn { request }));
            actions.extend(self.lines.write(jsonrpc::answer(&pending.id, result)));
        }
        actions
    }

    /// The turn is over, so its requests are withdrawn.
    pub(super) fn withdraw_requests(&mut self) -> Vec<Action> {
        let pending = std::mem::take(&mut self.pending);
        let withdrawn = pending.into_keys().map(|request| AgentEvent::Withdrawn { request });
        withdrawn.map(Action::emit).collect()
    }

    /// A call with a result waits for no answer. When a conversation is read again, the result is in the log but the
    /// answer before it is not.
    pub(super) fn forget_requests_of(&mut self, id: &str) {
        self.pending.retain(
            |_, pending| !matches!(&pending.what, Waiting::Permission { call, .. } if call.as_str() == id),
        );
    }

    /// The agent no longer waits for our answer.
    pub(super) fn on_cancelled_request(&mut self, params: &RawValue) -> Reading {
        let cancelled: Value =
            serde_json::from_str(params.get()).map_err(|_| Unknown("$/cancel_request".to_owned()))?;
        let request = cancelled.get("requestId").map(Value::to_string).unwrap_or_default();
        let withdrawn = self.pending.remove(&request);
        Ok(withdrawn.map(|_| Action::emit(AgentEvent::Withdrawn { request })).into_iter().collect())
    }
}

/// The option that allows or denies once, or else the one that denies for good. If there is neither, the answer is
/// that nothing was chosen.
fn chosen(options: &[PermissionOption<'_>], outcome: Outcome) -> Value {
    let kinds: &[&str] = match outcome {
        Outcome::Allow => &["allow_once", "allow_always"],
        Outcome::Deny => &["reject_once", "reject_always"],
    };
    let option = kinds.iter().find_map(|kind| options.iter().find(|option| option.kind.as_str() == *kind));
    match option {
        Some(option) => json!({"outcome": {"outcome": "selected", "optionId": option.option_id.as_str()}}),
        None => json!({"outcome": {"outcome": "cancelled"}}),
    }
}
