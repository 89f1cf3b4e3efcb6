//! Requests of the app server for permissions and answers. The rules answer at once. A request that only a person can
//! decide stays open until the answer comes or the app server stops waiting.
//!
//! The same notification reports that a request was answered and that it was dropped. So a request counts as dropped
//! when its turn ends before that notification.

use serde_json::value::RawValue;
use serde_json::{Value, json};
use towline_core::{About, AgentEvent, Ask, Decision, Outcome, Part, Reply};

use super::protocol::CodexProtocol;
use super::{shell, tools, wire};
use crate::jsonrpc::{METHOD_NOT_FOUND, RpcError, RpcRequest, answer, refusal};
use crate::lines::{Reading, Unknown, decode};
use crate::permission::{self, NO_ANSWER, Ruling, Verdict};
use crate::protocol::Action;
use crate::text;

/// A request that waits for a person.
#[derive(Debug)]
pub(super) struct PendingApproval {
    id: Box<RawValue>,
    /// The conversation that it belongs to.
    pub(super) thread: String,
    tool: String,
    form: ApprovalForm,
}

/// The form of a request's answer.
#[derive(Debug)]
enum ApprovalForm {
    /// A command or a change of files.
    Decision,
    Elicitation,
    /// Further permissions, which are granted as requested.
    Grant(Value),
    Questions(Vec<String>),
}

impl ApprovalForm {
    fn allowing(&self) -> Value {
        match self {
            Self::Decision => json!({"decision": "accept"}),
            Self::Elicitation => json!({"action": "accept", "content": {}}),
            Self::Grant(permissions) => json!({ "permissions": permissions }),
            Self::Questions(_) => self.answering(&[]),
        }
    }

    fn denying(&self, words: &str) -> Value {
        match self {
            // The turn continues without it.
            Self::Decision => json!({"decision": "decline"}),
            Self::Elicitation => json!({"action": "decline"}),
            Self::Grant(_) => json!({"permissions": {}}),
            Self::Questions(ids) => {
                let words = if words.trim().is_empty() { NO_ANSWER } else { words };
                self.answering(&vec![words.to_owned(); ids.len()])
            }
        }
    }

    fn answering(&self, answers: &[String]) -> Value {
        let Self::Questions(ids) = self else { return self.denying("") };
        let none = String::new();
        let answers = answers.iter().chain(std::iter::repeat(&none));
        let answers: serde_json::Map<_, _> =
            ids.iter().cloned().zip(answers.map(|answer| json!({"answers": [answer]}))).collect();
        json!({ "answers": answers })
    }
}

/// An action that needs permission.
struct Wanted {
    thread: String,
    tool: String,
    /// All of its arguments.
    input: Value,
    title: String,
    form: ApprovalForm,
}

impl CodexProtocol {
    pub(super) fn on_request(&mut self, request: &RpcRequest<'_>) -> Reading {
        let read = match request.method {
            "item/commandExecution/requestApproval" => self.on_command_approval(request),
            "item/fileChange/requestApproval" => self.on_file_approval(request),
            "item/permissions/requestApproval" => self.on_permissions_approval(request),
            "mcpServer/elicitation/request" => self.on_elicitation(request),
            "item/tool/requestUserInput" => self.on_questions(request),
            unknown => Err(Unknown(unknown.to_owned())),
        };
        // A request must always get an answer.
        Ok(read.unwrap_or_else(|Unknown(what)| {
            let words = format!("Towline does not answer {what}");
            let refused = self.lines.write(refusal(request.id, &RpcError::new(METHOD_NOT_FOUND, words)));
            let counted = self.lines.unknown(what, request.params.get());
            refused.into_iter().chain(counted).collect()
        }))
    }

    fn on_command_approval(&mut self, request: &RpcRequest<'_>) -> Reading {
        let wanted: wire::CommandApproval = decode(request.params.get(), request.method)?;
        let shown = wanted.command.unwrap_or_default();
        let (tool, input) = match (&wanted.network_approval_context, wanted.kind.as_deref()) {
            (Some(network), _) => {
                ("WebFetch", json!({"url": format!("{}://{}", network.protocol, network.host)}))
            }
            // Input for a running command is not a command line.
            (None, Some("writeStdin")) => ("Bash", json!({ "stdin": shown })),
            (None, _) => match shell::script(&shown) {
                Some(script) => ("Bash", json!({ "command": script })),
                None => ("Bash", json!({ "shown": shown })),
            },
        };
        let title = input.as_object().and_then(|fields| fields.values().next()).and_then(Value::as_str);
        let title = title.unwrap_or(tool).trim().to_owned();
        let ruling = self.rules.ruling(tool, &input, Some(&self.directory));
        let tool = tool.to_owned();
        let wanted = Wanted { thread: wanted.thread_id, tool, input, title, form: ApprovalForm::Decision };
        Ok(self.settle(request.id, wanted, ruling))
    }

    fn on_file_approval(&mut self, request: &RpcRequest<'_>) -> Reading {
        let wanted: wire::FileApproval = decode(request.params.get(), request.method)?;
        let open = self.calls.get(&wanted.item_id);
        let changes = open.map(|open| open.changes.clone()).unwrap_or_default();
        let title = open.map_or_else(|| "a change of files".to_owned(), |open| open.tool.title.clone());
        let inputs: Vec<_> =
            changes.iter().map(|change| (tools::tool_of(change), tools::change_input(change))).collect();
        let tool = inputs.first().map_or("Edit", |(tool, _)| *tool).to_owned();
        let input = match &inputs[..] {
            [(_, only)] => only.clone(),
            many => many.iter().map(|(_, input)| input.clone()).collect(),
        };
        let mut ruled = inputs;
        ruled.extend(changes.iter().filter_map(|change| Some(("Write", tools::move_input(change)?))));
        let ruling = self.ruling_of_changes(&ruled, &tool, &input);
        let wanted = Wanted { thread: wanted.thread_id, tool, input, title, form: ApprovalForm::Decision };
        Ok(self.settle(request.id, wanted, ruling))
    }

    /// A patch is allowed if all of its changes are, and denied if one of them is. A person permits the patch as a
    /// whole.
    fn ruling_of_changes(&mut self, changes: &[(&str, Value)], tool: &str, whole: &Value) -> Ruling {
        let directory = Some(self.directory.as_str());
        let mut rulings: Vec<_> =
            changes.iter().map(|(tool, input)| self.rules.ruling(tool, input, directory)).collect();
        rulings.sort_by_key(|ruling| match ruling.verdict {
            Verdict::Deny => 0,
            Verdict::Ask => 1,
            Verdict::Allow => 2,
        });
        let denying = changes.iter().find_map(|(tool, input)| self.rules.denying(tool, input, directory));
        if denying.is_none() && self.rules.use_permission(tool, whole) {
            let rule = rulings.into_iter().next().map_or_else(|| tool.to_owned(), |ruling| ruling.rule);
            return Ruling { verdict: Verdict::Allow, by: permission::BY_PERSON, rule };
        }
        rulings.into_iter().next().unwrap_or_else(|| self.rules.ruling(tool, whole, directory))
    }

    fn on_permissions_approval(&mut self, request: &RpcRequest<'_>) -> Reading {
        let wanted: wire::PermissionsApproval = decode(request.params.get(), request.method)?;
        let tool = "Permissions".to_owned();
        let ruling = self.rules.ruling(&tool, &wanted.permissions, Some(&self.directory));
        let title = wanted.permissions.to_string();
        let form = ApprovalForm::Grant(wanted.permissions.clone());
        let wanted = Wanted { thread: wanted.thread_id, tool, input: wanted.permissions, title, form };
        Ok(self.settle(request.id, wanted, ruling))
    }

    fn on_elicitation(&mut self, request: &RpcRequest<'_>) -> Reading {
        let wanted: wire::Elicitation = decode(request.params.get(), request.method)?;
        let server = wanted.server_name;
        let meta = wanted.meta.filter(|meta| meta.codex_approval_kind.as_deref() == Some("mcp_tool_call"));
        let Some(meta) = meta else {
            let refused = self.lines.write(answer(request.id, ApprovalForm::Elicitation.denying("")));
            let notice = self.notice(format!(
                "the MCP server `{server}` asked for input that cannot be shown, and was refused: {}",
                text::one_line(&wanted.message)
            ));
            return Ok(refused.into_iter().chain(notice).collect());
        };
        // The request does not name the tool, but the running call does.
        let tool = self
            .calls
            .values()
            .filter(|open| open.server.as_ref() == Some(&server))
            .find(|open| open.tool.input.as_ref() == Some(&meta.tool_params))
            .map_or_else(|| tools::mcp_name(&server, "unknown"), |open| open.tool.name.clone());
        let ruling = self.rules.ruling(&tool, &meta.tool_params, Some(&self.directory));
        let title = wanted.message.trim().to_owned();
        let form = ApprovalForm::Elicitation;
        let wanted = Wanted { thread: wanted.thread_id, tool, input: meta.tool_params, title, form };
        Ok(self.settle(request.id, wanted, ruling))
    }

    fn on_questions(&mut self, request: &RpcRequest<'_>) -> Reading {
        let wanted: wire::UserInputRequest = decode(request.params.get(), request.method)?;
        if wanted.questions.is_empty() {
            return Err(Unknown(request.method.to_owned()));
        }
        let parts = wanted.questions.iter().map(part).collect();
        let form =
            ApprovalForm::Questions(wanted.questions.into_iter().map(|question| question.id).collect());
        let tool = "AskUserQuestion".to_owned();
        Ok(self.ask(request.id, wanted.thread_id, tool, form, About::Choice { parts }))
    }

    fn settle(&mut self, id: &RawValue, wanted: Wanted, ruling: Ruling) -> Vec<Action> {
        let (result, outcome) = match ruling.verdict {
            Verdict::Allow => (wanted.form.allowing(), Outcome::Allow),
            Verdict::Deny => (wanted.form.denying(""), Outcome::Deny),
            Verdict::Ask => {
                let call = permission::tool_call(&wanted.tool, &wanted.input);
                let about = About::Permission { call, title: wanted.title, rule: ruling.rule };
                return self.ask(id, wanted.thread, wanted.tool, wanted.form, about);
            }
        };
        let written = self.lines.write(answer(id, result));
        let by = ruling.by.to_owned();
        let decision = Decision { tool: wanted.tool, outcome, by, rule: Some(ruling.rule) };
        written.into_iter().chain([Action::emit(AgentEvent::Decided(decision))]).collect()
    }

    /// Leaves a request to a person. It does not wait if the agent no longer accepts input.
    fn ask(
        &mut self,
        id: &RawValue,
        thread: String,
        tool: String,
        form: ApprovalForm,
        about: About,
    ) -> Vec<Action> {
        let request = self.lines.listens().then(|| name(id));
        if let Some(request) = &request {
            let pending = PendingApproval { id: id.to_owned(), thread, tool, form };
            self.pending.insert(request.clone(), pending);
        }
        vec![Action::emit(AgentEvent::Asked(Ask { request, about, default: None, patience: None }))]
    }

    /// Sends a person's answer.
    pub(super) fn on_answer(&mut self, request: &str, reply: Reply) -> Vec<Action> {
        let Some(pending) = self.pending.remove(request) else { return Vec::new() };
        let is_question = matches!(pending.form, ApprovalForm::Questions(_));
        let (result, words) = match reply {
            Reply::Allowed | Reply::Always => (pending.form.allowing(), String::new()),
            Reply::Chosen { answers } if is_question => (pending.form.answering(&answers), String::new()),
            // An answer in words permits nothing.
            Reply::Chosen { answers } => (pending.form.denying(""), answers.join("; ")),
            Reply::Denied { message } => (pending.form.denying(&message), message),
        };
        let written = self.lines.write(answer(&pending.id, result));
        // A refusal has no field for a message, so it is sent beside it.
        let beside = if is_question || words.trim().is_empty() || !self.is_ours(&pending.thread) {
            None
        } else {
            let message = format!("The operator does not permit this use of {}: {words}", pending.tool);
            self.send_message(&format!("refused-{request}"), &message)
        };
        written.into_iter().chain(beside).chain(self.close_if_due()).collect()
    }

    /// A request is settled, with or without our answer.
    pub(super) fn on_resolved(&mut self, news: &wire::Resolved<'_>) -> Vec<Action> {
        self.pending.remove(&name(news.request_id));
        self.close_if_due().into_iter().collect()
    }
}

/// The id of a request for people and the engine.
fn name(id: &RawValue) -> String {
    id.get().trim_matches('"').to_owned()
}

fn part(question: &wire::Question) -> Part {
    let options = question.options.iter().flatten();
    text::part(&question.question, options.map(|option| (&*option.label, &*option.description)), false)
}
