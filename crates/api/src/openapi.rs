//! The committed OpenAPI document is the one that the types and the table of routes have.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::routes::{Body, PREFIX, ROUTES, Route};
use crate::*;

fn add<T: JsonSchema>(generator: &mut SchemaGenerator) {
    generator.subschema_for::<T>();
}

fn schemas() -> Map<String, Value> {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
    });
    let mut generator = SchemaGenerator::new(settings);
    let generator = &mut generator;
    add::<NewGoal>(generator);
    add::<NewAnswer>(generator);
    add::<NewMessage>(generator);
    add::<NewRetry>(generator);
    add::<NewMerge>(generator);
    add::<NewSignIn>(generator);
    add::<PageSession>(generator);
    add::<EndedSessions>(generator);
    add::<GoalPage>(generator);
    add::<GoalReport>(generator);
    add::<EventPage>(generator);
    add::<DivergenceReport>(generator);
    add::<MergeReport>(generator);
    add::<QuestionLine>(generator);
    add::<ProjectLine>(generator);
    add::<QueueReport>(generator);
    add::<AgentLine>(generator);
    add::<AccountLine>(generator);
    add::<OpenedAccount>(generator);
    add::<CostReport>(generator);
    add::<HealthReport>(generator);
    add::<Problem>(generator);
    generator.take_definitions(true)
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

fn content(body: Body) -> Value {
    let text = json!({ "schema": { "type": "string" } });
    match body {
        Body::Json(name) => json!({ "application/json": { "schema": reference(name) } }),
        Body::List(name) => {
            json!({ "application/json": { "schema": { "type": "array", "items": reference(name) } } })
        }
        Body::JsonOrEvents(name) => {
            json!({ "application/json": { "schema": reference(name) }, "text/event-stream": text })
        }
        Body::Other("application/json") => json!({ "application/json": { "schema": {} } }),
        Body::Other(media) => json!({ media: text }),
    }
}

/// What a parameter takes.
fn schema_of(route: &Route, name: &str) -> Value {
    let place = json!({ "type": "integer", "format": "uint64", "minimum": 0, "maximum": u64::MAX });
    // An empty one is the beginning.
    let place = json!({ "anyOf": [place, { "type": "string", "maxLength": 0 }] });
    match name {
        "id" => json!({ "type": "string", "format": "uuid" }),
        "n" => json!({ "type": "integer", "format": "uint32", "minimum": 1, "maximum": u32::MAX }),
        "name" => json!({ "type": "string", "minLength": 1 }),
        "limit" => json!({ "type": "integer", "minimum": 1, "maximum": 500, "default": 50 }),
        // A place in a log is a number; one in a list is what the page before it gave.
        "cursor" if route.path.ends_with("/events") => place,
        "Last-Event-ID" => place,
        "by" => {
            let by = ["day", "project", "account", "agent", "model", "goal"];
            json!({ "type": "string", "enum": by, "default": "day" })
        }
        "Idempotency-Key" => json!({ "type": "string", "minLength": 1, "maxLength": 255 }),
        _ => json!({ "type": "string" }),
    }
}

fn parameters(route: &Route) -> Vec<Value> {
    let names = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let parameter = |name: &str, place: &str| json!({ "name": name, "in": place, "required": place == "path", "schema": schema_of(route, name) });
    let of_path = names.map(|name| parameter(name, "path"));
    let of_query = route.query.iter().map(|name| parameter(name, "query"));
    let of_head = route.headers.iter().map(|name| parameter(name, "header"));
    let key = (route.method == "post").then(|| parameter("Idempotency-Key", "header"));
    of_path.chain(of_query).chain(of_head).chain(key).collect()
}

/// The statuses of failures. A store that fails is the same everywhere.
fn failures(route: &Route) -> Vec<u16> {
    if route.path == "/healthz" {
        return vec![403, 421, 503];
    }
    let mut statuses = vec![401, 403, 421, 429, 500, 503];
    if route.method == "post" {
        statuses.extend([400, 408, 409, 413, 415, 422]);
    }
    if route.path.contains('{') {
        statuses.extend([400, 404]);
    }
    if !route.query.is_empty() {
        statuses.push(400);
    }
    // A beginning of an id that several goals share.
    if route.path.contains("{id}") {
        statuses.push(422);
    }
    match route.path {
        // A time that makes no sense.
        "/cost" => statuses.push(422),
        // A prerequisite that is not there.
        "/goals" if route.method == "post" => statuses.push(404),
        // A goal without work has none.
        "/goals/{id}/diff" => statuses.push(409),
        "/goals/{id}/attempts/{n}/log" => statuses.push(416),
        _ => {}
    }
    statuses.sort_unstable();
    statuses.dedup();
    statuses
}

fn responses(route: &Route) -> Value {
    let mut responses = Map::new();
    let mut add = |status: u16, reply: Value| responses.insert(status.to_string(), reply);
    add(route.status, json!({ "description": "Success", "content": content(route.reply) }));
    match route.path {
        "/mcp" => drop(add(202, json!({ "description": "A message that needs no answer was taken" }))),
        "/goals/{id}" => drop(add(304, json!({ "description": "The goal has not changed" }))),
        "/goals/{id}/attempts/{n}/log" => {
            drop(add(206, json!({ "description": "A part of the output", "content": content(route.reply) })));
        }
        _ => {}
    }
    for status in failures(route) {
        add(status, json!({ "$ref": "#/components/responses/Problem" }));
    }
    Value::Object(responses)
}

fn operation(route: &Route) -> Value {
    let mut operation = json!({
        "summary": route.summary,
        "parameters": parameters(route),
        "responses": responses(route),
    });
    let schema = match route.request {
        Some(name) => Some(reference(name)),
        None if route.path == "/mcp" => Some(json!({ "description": "A message of JSON-RPC 2.0." })),
        None => None,
    };
    if let Some(schema) = schema {
        // What can be left out altogether has defaults.
        let required = !matches!(route.request, Some("NewRetry" | "NewMerge"));
        operation["requestBody"] =
            json!({ "required": required, "content": { "application/json": { "schema": schema } } });
    }
    if matches!(route.path, "/healthz" | "/sign-in") {
        operation["security"] = json!([]);
    }
    operation
}

fn document() -> Value {
    let mut paths = Map::new();
    for route in ROUTES {
        let path = paths.entry(format!("{PREFIX}{}", route.path)).or_insert_with(|| json!({}));
        path[route.method] = operation(route);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Towline",
            "version": "1",
            "description": "Goals, what happens to them, and how to steer them.",
        },
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "responses": { "Problem": {
                "description": "The request failed",
                "content": { "application/problem+json": { "schema": reference("Problem") } },
            } },
            "schemas": schemas(),
        },
    })
}

#[test]
fn the_committed_document_describes_the_routes_and_their_types() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");
    let document = format!("{}\n", serde_json::to_string_pretty(&document()).expect("a document"));
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(path, &document).expect("the file is written");
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        committed == document,
        "crates/api/openapi.json does not match; write it with UPDATE_SCHEMA=1 cargo test -p towline-api"
    );
}

#[test]
fn every_type_that_a_route_names_is_in_the_document() {
    let schemas = schemas();
    for route in ROUTES {
        let reply = match route.reply {
            Body::Json(name) | Body::List(name) | Body::JsonOrEvents(name) => Some(name),
            Body::Other(_) => None,
        };
        for name in route.request.into_iter().chain(reply) {
            assert!(schemas.contains_key(name), "{} {}: {name}", route.method, route.path);
        }
    }
}
