//! Errors as `application/problem+json`, made here alone.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use towline_api::ErrorKind;
use towline_app::{Action, Error, Hint};
use towline_engine::EngineError;
use towline_store::StoreError;

/// The media type of errors.
pub(crate) const MEDIA_TYPE: &str = "application/problem+json";

/// Why a request fails.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    status: StatusCode,
    detail: String,
    hint: Option<String>,
    /// Whether the store failed.
    is_of_store: bool,
}

/// Marks a reply to a request that failed because of the store.
#[derive(Clone, Copy)]
pub(crate) struct StoreFailed;

impl Problem {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), hint: None, is_of_store: false }
    }

    /// The request cannot be read.
    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// The request can be read and makes no sense.
    pub(crate) fn unprocessable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    }

    pub(crate) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    pub(crate) fn internal(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
    }

    /// What the status alone says.
    pub(crate) fn of_status(status: StatusCode) -> Self {
        Self::new(status, status.canonical_reason().unwrap_or("the request failed"))
    }

    #[must_use]
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// The body of the reply.
    pub(crate) fn json(&self) -> String {
        let title = self.status.canonical_reason().unwrap_or("Error").to_owned();
        let kind = format!("urn:towline:problem:{}", title.to_ascii_lowercase().replace([' ', '\''], "-"));
        let (detail, hint) = (self.detail.clone(), self.hint.clone());
        let problem = towline_api::Problem { kind, title, status: self.status.as_u16(), detail, hint };
        serde_json::to_string(&problem).unwrap_or_default()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut reply = Response::new(Body::from(self.json()));
        *reply.status_mut() = self.status;
        reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        if self.status == StatusCode::UNAUTHORIZED {
            reply.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if matches!(self.status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS) {
            reply.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
        }
        if self.is_of_store {
            reply.extensions_mut().insert(StoreFailed);
        }
        reply
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let hint = error.way_out().and_then(|hint| words(&hint));
        let is_of_store = error.kind() == ErrorKind::Internal
            && matches!(error, Error::Store(_) | Error::Engine(EngineError::Store(_)));
        Self { status: status(&error), detail: error.message(), hint, is_of_store }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Error::from(error).into()
    }
}

impl From<EngineError> for Problem {
    fn from(error: EngineError) -> Self {
        Error::from(error).into()
    }
}

fn status(error: &Error) -> StatusCode {
    if let Error::Store(error) | Error::Engine(EngineError::Store(error)) = error
        && error.is_passing()
    {
        return StatusCode::SERVICE_UNAVAILABLE;
    }
    match (error.kind(), error) {
        (ErrorKind::NotFound, _) => StatusCode::NOT_FOUND,
        // It makes sense, but not now.
        (ErrorKind::Usage, Error::Engine(_)) | (ErrorKind::Person | ErrorKind::Failed, _) => {
            StatusCode::CONFLICT
        }
        (ErrorKind::Usage, _) => StatusCode::UNPROCESSABLE_ENTITY,
        (ErrorKind::Cancelled | ErrorKind::Paused, _) => StatusCode::SERVICE_UNAVAILABLE,
        (ErrorKind::Internal, _) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// A hint for a client of HTTP.
fn words(hint: &Hint) -> Option<String> {
    let actions = match hint {
        Hint::Advice(advice) => return Some(advice.clone()),
        Hint::Actions(actions) => actions,
    };
    let described = actions.iter().filter_map(|(purpose, action)| {
        let route = route(action)?;
        Some(if purpose.is_empty() { route } else { format!("{purpose}: {route}") })
    });
    let described: Vec<String> = described.collect();
    (!described.is_empty()).then(|| described.join("; "))
}

/// The request that does this; none where HTTP has no such thing.
fn route(action: &Action) -> Option<String> {
    let get = |path: String| Some(format!("GET {}{path}", towline_api::routes::PREFIX));
    let post = |path: String| Some(format!("POST {}{path}", towline_api::routes::PREFIX));
    // What differs from the request that was refused.
    let with = |route: Option<String>, body: Value| route.map(|route| format!("{route} with {body}"));
    match action {
        Action::List => get("/goals".to_owned()),
        Action::Questions => get("/questions".to_owned()),
        Action::Run => post("/goals".to_owned()),
        Action::Show(goal) => get(format!("/goals/{goal}")),
        Action::Follow(goal) | Action::Log(goal) => get(format!("/goals/{goal}/events")),
        Action::Diff(goal) => get(format!("/goals/{goal}/diff")),
        Action::Answer(goal, _) => post(format!("/goals/{goal}/answer")),
        Action::Tell(goal) => post(format!("/goals/{goal}/tell")),
        Action::Cancel(goal) => post(format!("/goals/{goal}/cancel")),
        Action::Continue(goal) | Action::Resume(Some(goal)) => post(format!("/goals/{goal}/resume")),
        Action::Merge(goal) => post(format!("/goals/{goal}/merge")),
        Action::MergeUnproven(goal) => with(post(format!("/goals/{goal}/merge")), json!({"unproven": true})),
        Action::Retry(goal) => post(format!("/goals/{goal}/retry")),
        Action::RetryWithChecks(goal) => with(post(format!("/goals/{goal}/retry")), json!({"checks": ["…"]})),
        Action::RaiseBudget(goal, axis) => {
            let more = axis.suggestion().rsplit('=').next();
            with(post(format!("/goals/{goal}/retry")), json!({"budget": {axis.name(): more}}))
        }
        Action::RetryFresh(goal) => with(post(format!("/goals/{goal}/retry")), json!({"fresh": true})),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use towline_core::{Axis, GoalId};

    use super::*;

    #[test]
    fn a_hint_names_a_request_that_is_not_refused_again() {
        let goal: GoalId = "01932f6e-7c00-7abc-8def-0123456789ab".parse().expect("an id");
        let hint = route(&Action::RaiseBudget(goal, Axis::Attempts));
        let expected = format!("POST /api/v1/goals/{goal}/retry with {{\"budget\":{{\"attempts\":\"+5\"}}}}");
        assert_eq!(hint, Some(expected));
    }
}
