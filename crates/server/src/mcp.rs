//! Tools for the agent of an attempt, as MCP over HTTP: each message is a POST, and its answer the reply.
//!
//! The same as `towline mcp` gives on standard input and output. There is no session and nothing is streamed: no call waits.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Extension, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::value::RawValue;
use towline_app::McpBridge;

use crate::app::App;
use crate::authority::Authority;
use crate::problem::Problem;
use crate::query;
use crate::reply::{self, Handled};

pub(crate) async fn call(
    State(app): State<Arc<App>>,
    Extension(authority): Extension<Authority>,
    body: Bytes,
) -> Handled {
    let Authority::Agent { goal, token } = authority else {
        return Err(Problem::new(StatusCode::FORBIDDEN, "these tools are for the agent of an attempt")
            .hint("use the token that the attempt was given"));
    };
    // A message that is JSON and makes no sense is answered in JSON-RPC. Anything else is no message.
    let message: Box<RawValue> = query::json(&body)?;
    let bridge = McpBridge::to(Arc::clone(&app.engine), goal, token);
    // What needs no answer is accepted.
    let Some(answer) = bridge.answer(message.get()).await else {
        return Ok(StatusCode::ACCEPTED.into_response()) as Result<Response, _>;
    };
    Ok(reply::text_of("application/json", answer))
}
