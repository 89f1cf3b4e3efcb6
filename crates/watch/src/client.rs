//! The server's HTTP interface, as far as the dashboard uses it. Where the server is, is looked up for each request: it may have been
//! started again elsewhere.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, ETAG};
use reqwest::{RequestBuilder, Response, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use towline_api::routes::PREFIX;
use towline_api::{GoalReport, Problem};

/// How long a request may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// The same for a merge, which runs the checks first.
pub(crate) const PATIENCE_WITH_CHECKS: Duration = Duration::from_secs(6 * 60 * 60);
const CONNECT: Duration = Duration::from_secs(5);

/// Where the server listens, and the token of the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub address: String,
    pub token: String,
}

/// Finds the server, or reports why there is none.
pub type Discover = Arc<dyn Fn() -> Result<Place, String> + Send + Sync>;

/// Why a request has no reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The server was not reached, or the connection was lost: the request may have been carried out.
    Lost(String),
    /// The server does not accept the token.
    Unauthorized,
    /// The server does not have it.
    Missing(String),
    /// The server refused the request, or its reply cannot be read.
    Refused(String),
}

impl Failure {
    /// What a person reads.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Lost(why) | Self::Missing(why) | Self::Refused(why) => why.clone(),
            Self::Unauthorized => "the server refuses the operator's token".to_owned(),
        }
    }
}

/// A client of the server.
#[derive(Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    discover: Discover,
}

impl Client {
    /// A client of the server that `discover` finds.
    pub(crate) fn new(discover: Discover) -> Result<Self, String> {
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            // Someone else may have been faster, and theirs is as good.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let http = reqwest::Client::builder()
            .user_agent(concat!("towline/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            // The server is on this machine.
            .no_proxy()
            .tls_certs_only([])
            .connect_timeout(CONNECT)
            .build();
        Ok(Self { http: http.map_err(|error| causes(&error))?, discover })
    }

    fn at(&self, path: &str) -> Result<(String, String), Failure> {
        let Place { address, token } = (self.discover)().map_err(Failure::Lost)?;
        Ok((format!("http://{address}{PREFIX}{path}"), token))
    }

    /// Reads something.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        let (url, token) = self.at(path)?;
        body(send(self.http.get(url).bearer_auth(token).timeout(PATIENCE)).await?).await
    }

    /// Reads a goal, and the place of the last entry of its log.
    pub(crate) async fn goal(&self, id: &str) -> Result<(GoalReport, u64), Failure> {
        let (url, token) = self.at(&format!("/goals/{id}"))?;
        let reply = send(self.http.get(url).bearer_auth(token).timeout(PATIENCE)).await?;
        let tag = reply.headers().get(ETAG).and_then(|tag| tag.to_str().ok()).unwrap_or_default();
        let last = tag.trim_start_matches("W/").trim_matches('"').parse().unwrap_or(0);
        Ok((body(reply).await?, last))
    }

    /// Sends a request that changes something. The same key makes it count once, however often it is sent.
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        sent: &impl Serialize,
        key: &str,
        patience: Duration,
    ) -> Result<T, Failure> {
        let (url, token) = self.at(path)?;
        let sent = serde_json::to_vec(sent).map_err(|error| Failure::Refused(error.to_string()))?;
        let request = self.http.post(url).bearer_auth(token).timeout(patience);
        let request = request.header(CONTENT_TYPE, "application/json").header("idempotency-key", key);
        body(send(request.body(sent)).await?).await
    }

    /// Follows events after the last one that was seen.
    pub(crate) async fn follow(&self, path: &str, last: Option<u64>) -> Result<Response, Failure> {
        let (url, token) = self.at(path)?;
        let request = self.http.get(url).bearer_auth(token).header(ACCEPT, "text/event-stream");
        let request = last.into_iter().fold(request, |request, last| request.header("last-event-id", last));
        send(request).await
    }
}

/// Sends a request, and reads why it is refused if it is.
async fn send(request: RequestBuilder) -> Result<Response, Failure> {
    let reply = request.send().await.map_err(|error| Failure::Lost(causes(&error)))?;
    match reply.status() {
        status if status.is_success() => Ok(reply),
        status => Err(refusal(status, &reply.bytes().await.unwrap_or_default())),
    }
}

fn refusal(status: StatusCode, body: &[u8]) -> Failure {
    let why = match serde_json::from_slice::<Problem>(body) {
        // A hint that names a request is for programs.
        Ok(Problem { detail, hint: Some(hint), .. }) if !hint.contains(PREFIX) => format!("{detail}; {hint}"),
        Ok(Problem { detail, .. }) => detail,
        Err(_) => format!("the server replied with {status}"),
    };
    match status {
        StatusCode::UNAUTHORIZED => Failure::Unauthorized,
        StatusCode::NOT_FOUND => Failure::Missing(why),
        _ => Failure::Refused(why),
    }
}

async fn body<T: DeserializeOwned>(reply: Response) -> Result<T, Failure> {
    let bytes = reply.bytes().await.map_err(|error| Failure::Lost(causes(&error)))?;
    let wrong = |error| Failure::Refused(format!("the server's reply cannot be read: {error}"));
    serde_json::from_slice(&bytes).map_err(wrong)
}

/// The innermost reason: those around it name the address and little else.
fn causes(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    format!("the server does not answer: {cause}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_is_shown_unless_it_is_a_request() {
        for (hint, wanted) in [
            (None, "no"),
            (Some("sign in first"), "no; sign in first"),
            (Some("POST /api/v1/goals/1/retry with {}"), "no"),
        ] {
            let problem = Problem {
                kind: String::new(),
                title: String::new(),
                status: 409,
                detail: "no".to_owned(),
                hint: hint.map(str::to_owned),
            };
            let body = serde_json::to_vec(&problem).expect("JSON");
            assert_eq!(refusal(StatusCode::CONFLICT, &body), Failure::Refused(wanted.to_owned()));
        }
    }

    #[test]
    fn only_what_the_server_does_not_have_is_missing() {
        for (status, wanted) in [
            (StatusCode::NOT_FOUND, Failure::Missing("the server replied with 404 Not Found".to_owned())),
            (StatusCode::UNAUTHORIZED, Failure::Unauthorized),
            (
                StatusCode::SERVICE_UNAVAILABLE,
                Failure::Refused("the server replied with 503 Service Unavailable".to_owned()),
            ),
        ] {
            assert_eq!(refusal(status, b""), wanted);
        }
    }
}
