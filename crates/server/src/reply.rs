//! Replies in JSON, without any secret that the request has come across.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde::Serialize;
use towline_app::Context;

use crate::problem::Problem;

/// What a handler gives.
pub(crate) type Handled = Result<Response, Problem>;

/// A reply with this value.
pub(crate) fn json(context: &Context, status: StatusCode, value: &impl Serialize) -> Handled {
    let text = serde_json::to_string(value)
        .map_err(|error| Problem::internal(format!("the reply cannot be written: {error}")))?;
    let mut reply = text_of("application/json", context.secrets.json(&text));
    *reply.status_mut() = status;
    Ok(reply)
}

/// A reply with this text.
pub(crate) fn text_of(kind: &'static str, text: impl Into<Body>) -> Response {
    let mut reply = Response::new(text.into());
    reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    reply
}
