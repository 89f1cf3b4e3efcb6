//! Tool calls: all that is known about each, in texts for people and in the names that rules use.
//!
//! The protocol has kinds of tools, not names. So that the same rules hold for every agent, a command is `Bash`, a
//! file change is `Edit` or `Write`, and so on. Only a tool of no such kind has its own name.

use std::borrow::Cow;

use serde_json::{Map, Value};
use towline_core::{AgentEvent, ToolKind, ToolStatus, ToolUse};

use super::preset::Preset;
use super::wire;
use crate::text;

/// The fields in which the agents' own tools have a file path.
const PATH_FIELDS: [&str; 6] =
    ["file_path", "filePath", "filepath", "absolute_path", "notebook_path", "path"];

/// All that is known about a call.
#[derive(Debug, Clone, Default)]
pub(super) struct AcpCall {
    own_name: String,
    title: String,
    kind: String,
    status: Option<ToolStatus>,
    input: Value,
    locations: Vec<String>,
    /// The new content of files, if the agent shows a diff.
    changes: Vec<(String, String)>,
    /// The end of its output.
    output: String,
    exit_code: Option<i32>,
    reported: Option<(ToolStatus, String)>,
}

/// A call in the terms of the rules.
#[derive(Debug, PartialEq)]
pub(super) struct Ruled {
    pub(super) tool: String,
    /// Further names by which a deny rule may refer to it.
    pub(super) aliases: &'static [&'static str],
    pub(super) input: Value,
    /// The same call for each further file that it touches.
    pub(super) further: Vec<Value>,
}

impl AcpCall {
    /// Merges an update into the call.
    pub(super) fn learn(&mut self, id: &str, preset: Preset, news: &mut wire::Update<'_>) {
        if self.own_name.is_empty() {
            let from_id = id.split_once("__").map(|(name, _)| name).filter(|_| preset == Preset::Gemini);
            self.own_name = from_id.or(news.title.as_deref()).unwrap_or_default().to_owned();
        }
        if let Some(title) = news.title.take().filter(|title| !title.trim().is_empty()) {
            self.title = title.into();
        }
        if let Some(kind) = news.kind.take() {
            self.kind = kind.into();
        }
        if let Some(fields) = news.raw_input.and_then(wire::read::<Map<_, _>>) {
            match &mut self.input {
                Value::Object(known) => known.extend(fields),
                none => *none = Value::Object(fields),
            }
        }
        if let Some(locations) = news.locations.take().filter(|locations| !locations.is_empty()) {
            self.locations = locations.into_iter().map(|location| location.path.into()).collect();
        }
        if let Some(content) = news.content.and_then(wire::read) {
            self.show(content);
        }
        if let Some(raw) = news.raw_output {
            let output: wire::RawOutput<'_> = wire::read(raw).unwrap_or_default();
            let exit_code = output.exit_code.or(output.exit_status).or(output.metadata.exit);
            self.exit_code = exit_code.or(self.exit_code);
            if self.output.is_empty() {
                let words = output.output.or(output.error).or(output.text).unwrap_or(raw);
                self.output = tail(wire::text(&wire::read(words)));
            }
        }
        self.status = news.status.as_deref().and_then(status).or(self.status);
    }

    fn show(&mut self, content: Vec<wire::ToolContent<'_>>) {
        let mut texts = Vec::new();
        self.changes.clear();
        for piece in content {
            if let (Some(path), Some(text)) = (piece.path, piece.new_text) {
                self.changes.push((path.into(), text.into()));
            }
            texts.extend(piece.content.map(|content| content.text).filter(|text| !text.is_empty()));
        }
        self.output = match texts.as_slice() {
            [only] => tail(only),
            several => tail(&several.iter().map(wire::Text::as_str).collect::<Vec<_>>().join("\n")),
        };
    }

    /// Whether it has ended.
    pub(super) fn is_over(&self) -> bool {
        self.status.is_some_and(ToolStatus::is_over)
    }

    /// Whether its beginning was reported.
    pub(super) const fn is_known(&self) -> bool {
        self.reported.is_some()
    }

    /// The call as an event, if that is new. `denied` means that we ended it.
    pub(super) fn event(&mut self, id: &str, servers: &[String], denied: bool) -> Option<AgentEvent> {
        let failed = self.exit_code.is_some_and(|code| code != 0);
        let status = match self.status.unwrap_or(ToolStatus::Pending) {
            ToolStatus::Failed if denied => ToolStatus::Denied,
            ToolStatus::Ok if failed => ToolStatus::Failed,
            status => status,
        };
        let is_known = |(reported, title): &(ToolStatus, String)| *reported == status && *title == self.title;
        if self.reported.as_ref().is_some_and(|reported| is_known(reported) || reported.0.is_over()) {
            return None;
        }
        self.reported = Some((status, self.title.clone()));
        let (tool, _) = self.name(servers);
        let output = status.is_over().then(|| self.output.clone());
        Some(AgentEvent::Tool(ToolUse {
            input: (!self.input.is_null()).then(|| text::clipped(self.input.clone())),
            output,
            exit_code: self.exit_code,
            paths: self.paths(),
            ..text::tool_use(id, self.sort(&tool), &tool, &self.title, status)
        }))
    }

    /// All that a person must know before they permit it: the command, where it is known, because a title may be prose.
    pub(super) fn what_is_wanted(&self, ruled: &Ruled) -> String {
        let command = ruled.input.get("command").and_then(Value::as_str).filter(|_| ruled.tool == "Bash");
        let title = if self.title.is_empty() { &self.own_name } else { &self.title };
        command.unwrap_or(title).trim().to_owned()
    }

    /// Whether this call writes the agent's to-do list.
    pub(super) fn has_plan(&self) -> bool {
        self.input.get("todos").is_some_and(Value::is_array)
    }

    /// The agent's to-do list, when this call writes it.
    pub(super) fn plan(&self) -> Option<AgentEvent> {
        text::todos(&self.input)
    }

    fn field(&self, name: &str) -> Option<&str> {
        self.input.get(name).and_then(Value::as_str)
    }

    fn sort(&self, tool: &str) -> ToolKind {
        match self.kind.as_str() {
            "read" => ToolKind::Read,
            "edit" => ToolKind::Edit,
            "delete" => ToolKind::Delete,
            "move" => ToolKind::Move,
            "search" => ToolKind::Search,
            "execute" => ToolKind::Execute,
            "fetch" => ToolKind::Fetch,
            _ if tool.starts_with("mcp__") => ToolKind::Mcp,
            _ if tool == "Task" => ToolKind::Subagent,
            _ => ToolKind::Other,
        }
    }

    /// The files that it touches. Commands list their directory among the locations, which is no file.
    fn paths(&self) -> Vec<String> {
        if self.kind == "execute" {
            return Vec::new();
        }
        let fields = PATH_FIELDS.iter().filter_map(|field| self.field(field));
        let changed = self.changes.iter().map(|(path, _)| path.as_str());
        let mut paths: Vec<String> = Vec::new();
        for path in self.locations.iter().map(String::as_str).chain(changed).chain(fields) {
            if !path.is_empty() && !paths.iter().any(|known| known == path) {
                paths.push(path.to_owned());
            }
        }
        paths
    }

    fn command(&self, preset: Preset) -> Option<String> {
        match self.input.get("command") {
            Some(Value::String(command)) => Some(command.clone()),
            Some(Value::Array(words)) => {
                let words: Vec<_> = words.iter().filter_map(Value::as_str).collect();
                Some(words.join(" "))
            }
            // It shows no input, but the whole command as the title. Titles of other programs may be prose.
            _ if preset == Preset::Gemini && !self.title.is_empty() => Some(self.title.clone()),
            _ => None,
        }
    }

    /// The call in the terms of the rules; `servers` are the agent's MCP servers. A permission is matched by the
    /// input, so the input holds only what defines the call. Other details may be reported earlier or later.
    pub(super) fn ruled(&self, preset: Preset, servers: &[String]) -> Ruled {
        let (tool, aliases) = self.name(servers);
        let raw = || self.input.as_object().cloned().unwrap_or_default();
        let only = |field: &str, value: Value| Map::from_iter([(field.to_owned(), value)]);
        let changes = || self.changes.iter().map(|(_, text)| Value::from(text.as_str())).collect();
        let input = match &*tool {
            "Bash" => self.command(preset).map(|command| only("command", command.into())),
            "WebFetch" => self.field("url").map(|url| only("url", url.into())),
            "Edit" | "Write" if !self.changes.is_empty() => Some(only("content", changes())),
            _ => None,
        };
        let input = input.unwrap_or_else(raw);
        let field = if matches!(&*tool, "Grep" | "Glob") { "path" } else { "file_path" };
        let mut each = self.paths().into_iter().map(|path| {
            let mut input = input.clone();
            input.insert(field.to_owned(), path.into());
            Value::Object(input)
        });
        let first = each.next();
        let further = each.collect();
        Ruled { tool: tool.into_owned(), aliases, input: first.unwrap_or(Value::Object(input)), further }
    }

    /// Its name, and further ones by which a deny rule may refer to it.
    fn name(&self, servers: &[String]) -> (Cow<'_, str>, &'static [&'static str]) {
        let (tool, aliases): (&str, &'static [&'static str]) = match self.kind.as_str() {
            "execute" => ("Bash", &[]),
            "edit" | "delete" | "move" if self.own_name.starts_with("write") => ("Write", &["Edit"]),
            "edit" | "delete" | "move" => ("Edit", &["Write", "MultiEdit"]),
            "read" => ("Read", &[]),
            "search" if self.own_name.starts_with("glob") => ("Glob", &["Grep"]),
            "search" => ("Grep", &["Glob"]),
            "fetch" => ("WebFetch", &[]),
            _ if self.input.get("subagent_type").is_some() => ("Task", &["Agent"]),
            _ => return (self.other_name(servers), &[]),
        };
        (Cow::Borrowed(tool), aliases)
    }

    /// A tool of an MCP server has the server's name and its own, however the agent combines them.
    fn other_name(&self, servers: &[String]) -> Cow<'_, str> {
        let own = self.own_name.trim();
        let bare = own.strip_prefix("mcp_").map_or(own, |rest| rest.trim_start_matches('_'));
        let tool = servers.iter().find_map(|server| {
            let rest = bare.strip_prefix(server.as_str())?;
            let tool = rest.trim_start_matches(['_', '-', '.', ':', '/']);
            (tool.len() < rest.len() && !tool.is_empty()).then(|| format!("mcp__{server}__{tool}"))
        });
        tool.map_or(Cow::Borrowed(if own.is_empty() { "Other" } else { own }), Cow::Owned)
    }
}

fn status(word: &str) -> Option<ToolStatus> {
    match word {
        "pending" => Some(ToolStatus::Pending),
        "in_progress" => Some(ToolStatus::Running),
        "completed" => Some(ToolStatus::Ok),
        "failed" => Some(ToolStatus::Failed),
        _ => None,
    }
}

fn tail(output: &str) -> String {
    text::tail(output, text::OUTPUT_TAIL).to_owned()
}
