//! Compares what we read and write with the schema that the app server itself generates. `testdata/codex/README.md`
//! shows how to update the schema.

use std::fs;

use serde_json::{Map, Value, json};
use towline_agent::Steer;
use towline_core::AgentEvent;

use super::support::{HELLO, RECORDED, THREAD, events, feed, fresh, in_turn, protocol, settings, written};
use crate::recording::testdata;

/// Enough to see each alternative of everything once.
const ALTERNATIVES: usize = 24;

struct Schema(Value);

impl Schema {
    fn load(name: &str) -> Self {
        let file = testdata().join("codex/schema").join(format!("{name}.json"));
        let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        Self(serde_json::from_str(&text).expect("a schema is JSON"))
    }

    fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str() {
            Some(name) => {
                let found = self.0.pointer(name.trim_start_matches('#'));
                self.resolve(found.unwrap_or_else(|| panic!("{name} is not there")))
            }
            None => schema,
        }
    }

    /// The alternatives of a message: its method and its parameters.
    fn methods<'a>(&'a self) -> Vec<(&'a str, &'a Value)> {
        let method = |one: &'a Value| {
            let properties = &one["properties"];
            (properties["method"]["enum"][0].as_str().expect("a method"), &properties["params"])
        };
        self.0["oneOf"].as_array().expect("alternatives").iter().map(method).collect()
    }

    /// A value that follows the schema: with all fields or with the required ones, and with one of the alternatives
    /// where there are several.
    fn sample(&self, schema: &Value, fields: Fields, choice: usize) -> Value {
        let schema = self.resolve(schema);
        for alternatives in ["oneOf", "anyOf", "allOf"] {
            if let Some(all) = schema[alternatives].as_array() {
                let mut sample = self.sample(&all[choice % all.len()], fields, choice);
                if let Value::Object(sample) = &mut sample {
                    sample.extend(self.sample_object(schema, fields, choice));
                }
                return sample;
            }
        }
        if let Some(all) = schema["enum"].as_array() {
            return all[choice % all.len()].clone();
        }
        let kind = match &schema["type"] {
            Value::Array(kinds) => kinds[choice % kinds.len()].as_str(),
            kind => kind.as_str(),
        };
        match kind {
            Some("object") => self.sample_object(schema, fields, choice).into(),
            Some("array") => json!([self.sample(&schema["items"], fields, choice)]),
            Some("string") => "t".into(),
            Some("integer" | "number") => 1.into(),
            Some("boolean") => true.into(),
            Some("null") => Value::Null,
            _ => json!({"any": "thing"}),
        }
    }

    fn sample_object(&self, schema: &Value, fields: Fields, choice: usize) -> Map<String, Value> {
        let none = Map::new();
        let properties = schema["properties"].as_object().unwrap_or(&none);
        let required: Vec<_> = schema["required"].as_array().into_iter().flatten().collect();
        let is_wanted =
            |name: &&String| fields == Fields::All || required.iter().any(|one| *one == name.as_str());
        let wanted = properties.iter().filter(|(name, _)| is_wanted(name));
        wanted.map(|(name, schema)| (name.clone(), self.sample(schema, fields, choice))).collect()
    }

    /// What is wrong with a value; `None` if it follows the schema and has no unknown field.
    fn complaint(&self, value: &Value, schema: &Value, at: &str) -> Option<String> {
        let schema = self.resolve(schema);
        for alternatives in ["oneOf", "anyOf", "allOf"] {
            if let Some(all) = schema[alternatives].as_array() {
                let complaints: Vec<_> = all.iter().map(|one| self.complaint(value, one, at)).collect();
                let fits = complaints.iter().any(Option::is_none);
                return if fits { None } else { Some(format!("{at} fits no alternative: {complaints:?}")) };
            }
        }
        if let Some(all) = schema["enum"].as_array() {
            return (!all.contains(value)).then(|| format!("{at} is {value}, not one of {all:?}"));
        }
        let kinds = match &schema["type"] {
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
            kind => kind.as_str().into_iter().collect::<Vec<_>>(),
        };
        if !kinds.is_empty() && !kinds.contains(&kind(value)) {
            return Some(format!("{at} is {value}, not {kinds:?}"));
        }
        match value {
            Value::Object(fields) => self.complaint_of_object(fields, schema, at),
            Value::Array(items) => {
                let complaint = |item| self.complaint(item, &schema["items"], &format!("{at}[]"));
                items.iter().find_map(complaint)
            }
            _ => None,
        }
    }

    fn complaint_of_object(&self, fields: &Map<String, Value>, schema: &Value, at: &str) -> Option<String> {
        let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        if let Some(missing) = required.into_iter().find(|name| !fields.contains_key(*name)) {
            return Some(format!("{at}.{missing} is missing"));
        }
        fields.iter().find_map(|(name, value)| {
            let at = format!("{at}.{name}");
            match (schema["properties"].get(name), &schema["additionalProperties"]) {
                (Some(known), _) => self.complaint(value, known, &at),
                (None, Value::Bool(true)) => None,
                (None, more @ Value::Object(_)) => self.complaint(value, more, &at),
                (None, _) => Some(format!("{at} is not known")),
            }
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fields {
    Required,
    All,
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn samples(schema: &Schema, params: &Value) -> Vec<Value> {
    let sample = |choice| [Fields::Required, Fields::All].map(|fields| schema.sample(params, fields, choice));
    (0..ALTERNATIVES).flat_map(sample).collect()
}

#[test]
fn all_notifications_are_understood_in_each_of_their_forms() {
    let schema = Schema::load("ServerNotification");
    let methods = schema.methods();
    assert!(methods.len() > 60, "{}", methods.len());
    for (method, params) in methods {
        for params in samples(&schema, params) {
            let line = json!({"method": method, "params": params}).to_string();
            let mut reported = events(&feed(&mut *in_turn(&settings()), &line));
            reported.retain(|event| matches!(event, AgentEvent::Unrecognised { .. }));
            assert_eq!(reported, [], "{line}");
        }
    }
}

#[test]
fn known_requests_are_understood_in_each_of_their_forms_and_answered() {
    let schema = Schema::load("ServerRequest");
    let known = [
        ("item/commandExecution/requestApproval", "CommandExecutionRequestApprovalResponse"),
        ("item/fileChange/requestApproval", "FileChangeRequestApprovalResponse"),
        ("item/permissions/requestApproval", "PermissionsRequestApprovalResponse"),
        ("mcpServer/elicitation/request", "McpServerElicitationRequestResponse"),
        ("item/tool/requestUserInput", "ToolRequestUserInputResponse"),
    ];
    let methods = schema.methods();
    for (method, response) in known {
        let (_, params) = methods.iter().find(|(name, _)| *name == method).expect("the request is there");
        let response = Schema::load(response);
        for params in samples(&schema, params) {
            let line = json!({"id": 0, "method": method, "params": params}).to_string();
            let mut protocol = in_turn(&settings());
            let mut actions = feed(&mut *protocol, &line);
            let answer = towline_core::Reply::Chosen { answers: vec!["x".into()] };
            actions.extend(protocol.on_steer(Steer::Answer { request: "0".into(), reply: answer }));
            let [answer] = &written(&actions)[..] else { panic!("{line}: {actions:?}") };
            assert_eq!(response.complaint(&answer["result"], &response.0, method), None, "{line}");
        }
    }
}

#[test]
fn the_answers_to_our_own_requests_are_understood_in_each_of_their_forms() {
    let thread = Schema::load("ThreadStartResponse");
    for sample in samples(&thread, &thread.0) {
        let mut protocol = protocol(&settings(), &fresh());
        protocol.start();
        feed(&mut *protocol, HELLO);
        let reported = events(&feed(&mut *protocol, &json!({"id": "thread", "result": sample}).to_string()));
        assert!(matches!(reported[..], [AgentEvent::SessionStarted(_), ..]), "{reported:?}: {sample}");
    }
    let turn = Schema::load("TurnStartResponse");
    for sample in samples(&turn, &turn.0) {
        let mut protocol = protocol(&settings(), &fresh());
        protocol.start();
        feed(&mut *protocol, HELLO);
        feed(&mut *protocol, THREAD);
        feed(&mut *protocol, &json!({"id": "prompt", "result": sample}).to_string());
        // The turn to interrupt is known.
        let interrupt = written(&protocol.on_steer(Steer::Interrupt));
        assert_eq!(interrupt[0]["params"]["turnId"], sample["turn"]["id"], "{sample}");
    }
}

#[test]
fn our_requests_follow_the_schema() {
    let schemas = [
        ("initialize", "InitializeParams"),
        ("thread/start", "ThreadStartParams"),
        ("thread/resume", "ThreadResumeParams"),
        ("thread/fork", "ThreadForkParams"),
        ("thread/compact/start", "ThreadCompactStartParams"),
        ("turn/start", "TurnStartParams"),
        ("turn/steer", "TurnSteerParams"),
        ("turn/interrupt", "TurnInterruptParams"),
    ]
    .map(|(method, name)| (method, Schema::load(name)));
    let mut compared = [0; 8];
    for recording in RECORDED.all() {
        for line in written(&recording.play().0) {
            let at = schemas.iter().position(|(method, _)| line["method"] == *method);
            let Some(at) = at else { continue };
            let schema = &schemas[at].1;
            assert_eq!(
                schema.complaint(&line["params"], &schema.0, schemas[at].0),
                None,
                "{}",
                recording.name
            );
            compared[at] += 1;
        }
    }
    assert!(compared.iter().all(|count| *count > 0), "{compared:?}");
}
