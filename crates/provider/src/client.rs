//! HTTP: sends a question to an endpoint and feeds what comes back to the format's decoder.
//!
//! One call is one request. It follows no redirect, since that could carry the key to another host, and it never tries
//! again: that is for the caller, who knows what it is worth. Dropping the future ends the request.

use std::error::Error;
use std::sync::OnceLock;
use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::{Response, Url};

use crate::complaint::Complaint;
use crate::reader::Reader;
use crate::wire::{self, OnDelta, Posted, Trouble};
use crate::{Answer, Delta, Endpoint, ErrorClass, ProviderError, Question, WireFormat, retry};

/// How much of the body of an error is read.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// How long to wait, after the end of an answer, for the end of its body: a connection that was read to its end can be
/// used again.
const LAST_BYTES: Duration = Duration::from_millis(300);

/// How long to wait for a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Until there is a connection.
    pub connect: Duration,
    /// For the next byte of an answer, the first one included. Models think for minutes before they speak.
    pub silence: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect: Duration::from_secs(20), silence: Duration::from_secs(300) }
    }
}

/// Asks the models of one endpoint. Connections stay open between questions.
#[derive(Debug)]
pub struct Client {
    endpoint: Endpoint,
    timeouts: Timeouts,
    /// Made with the first question: to load the certificates of the system takes time.
    http: OnceLock<Result<reqwest::Client, String>>,
}

impl Client {
    /// A client of `endpoint`. Nothing is sent, loaded or checked yet.
    #[must_use]
    pub fn new(endpoint: Endpoint, timeouts: Timeouts) -> Self {
        Self { endpoint, timeouts, http: OnceLock::new() }
    }

    /// Sends `question` and reads the answer, handing on its pieces as they come.
    ///
    /// # Errors
    /// When there is no whole answer, for one of the reasons of [`ErrorClass`].
    pub async fn ask(
        &self,
        question: &Question<'_>,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Answer, ProviderError> {
        let asked = self.ask_unredacted(question, on_delta).await;
        // Servers repeat what they were sent, so no message leaves here before the key is out of it.
        asked.map_err(|error| match &self.endpoint.key {
            Some(key) => ProviderError { message: key.remove_from(&error.message), ..error },
            None => error,
        })
    }

    async fn ask_unredacted(
        &self,
        question: &Question<'_>,
        on_delta: OnDelta<'_>,
    ) -> Result<Answer, ProviderError> {
        let posted = wire::encode(self.endpoint.format, question);
        let url = url(&self.endpoint.base_url, &posted)?;
        let host = host(&url);
        let http = self.http(&url)?;
        let request = http.post(url.clone()).headers(self.headers()?).body(posted.body.to_string());
        let patience = self.timeouts.connect.saturating_add(self.timeouts.silence);
        let response = match tokio::time::timeout(patience, request.send()).await {
            Err(_) => return Err(self.silent(&host)),
            Ok(Err(error)) => return Err(no_connection(&host, error)),
            Ok(Ok(response)) => response,
        };
        let status = response.status();
        if !status.is_success() {
            return Err(self.refusal(&host, &url, response).await);
        }
        self.read(question, response, &host, on_delta).await
    }

    fn http(&self, url: &Url) -> Result<&reqwest::Client, ProviderError> {
        let http = self.http.get_or_init(|| http_client(url, self.timeouts.connect));
        http.as_ref().map_err(|cause| {
            let message = format!(
                "no connection can be made ready ({cause}); where the system's certificates are missing, install them \
                 (the package is often called ca-certificates) or name them with SSL_CERT_FILE"
            );
            plain_error(ErrorClass::Invalid, message)
        })
    }

    fn headers(&self) -> Result<HeaderMap, ProviderError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json;q=0.5"));
        if self.endpoint.format == WireFormat::Anthropic {
            headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
        }
        let Some(key) = &self.endpoint.key else { return Ok(headers) };
        let (name, value) = match self.endpoint.format {
            WireFormat::OpenaiResponses | WireFormat::OpenaiChat => {
                (AUTHORIZATION, HeaderValue::try_from(format!("Bearer {}", key.reveal())))
            }
            WireFormat::Gemini => {
                (HeaderName::from_static("x-goog-api-key"), HeaderValue::from_str(key.reveal()))
            }
            WireFormat::Anthropic => {
                (HeaderName::from_static("x-api-key"), HeaderValue::from_str(key.reveal()))
            }
        };
        let mut value = value.map_err(|_| {
            let message =
                "the API key has characters that HTTP does not allow in a header; look where it is set";
            plain_error(ErrorClass::Auth, message.to_owned())
        })?;
        value.set_sensitive(true);
        headers.insert(name, value);
        Ok(headers)
    }

    /// Reads the body of an answer.
    async fn read(
        &self,
        question: &Question<'_>,
        mut response: Response,
        host: &str,
        on_delta: OnDelta<'_>,
    ) -> Result<Answer, ProviderError> {
        let mut reader = self.reader(question, &response, host)?;
        let headers = response.headers().clone();
        let trouble = |trouble| in_stream(host, &headers, trouble);
        while !reader.is_complete() {
            match tokio::time::timeout(self.timeouts.silence, response.chunk()).await {
                Err(_) => return Err(self.silent(host)),
                Ok(Ok(Some(bytes))) => reader.push(&bytes, &mut *on_delta).map_err(trouble)?,
                Ok(Ok(None)) => break,
                Ok(Err(error)) => {
                    let cause = causes(&error.without_url());
                    let message = format!("the answer of {host} broke off ({cause})");
                    return Err(plain_error(ErrorClass::CutOff, message));
                }
            }
        }
        // The answer is whole: what still comes may add to it, and cannot spoil it.
        let rest = async {
            while let Ok(Some(bytes)) = response.chunk().await {
                if reader.push(&bytes, &mut *on_delta).is_err() {
                    break;
                }
            }
        };
        let _ = tokio::time::timeout(LAST_BYTES, rest).await;
        reader.finish(on_delta).map_err(trouble)
    }

    fn reader(
        &self,
        question: &Question<'_>,
        response: &Response,
        host: &str,
    ) -> Result<Reader, ProviderError> {
        let decoder = wire::decoder(self.endpoint.format, question);
        let kind =
            response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind.starts_with("application/json") {
            return Ok(Reader::of_whole(decoder));
        }
        if kind.starts_with("text/html") {
            let message =
                format!("{host} answered with a web page and not with a model's words; check the base URL");
            return Err(plain_error(ErrorClass::Invalid, message));
        }
        Ok(Reader::of_stream(decoder))
    }

    /// What an answer with a status of trouble means.
    async fn refusal(&self, host: &str, url: &Url, mut response: Response) -> ProviderError {
        let mut body = Vec::new();
        // A body that does not end, or breaks off, is good for what came of it.
        let reading = async {
            while let Ok(Some(bytes)) = response.chunk().await {
                body.extend_from_slice(&bytes);
                if body.len() >= MAX_ERROR_BYTES {
                    break;
                }
            }
        };
        let patience = self.timeouts.silence.min(self.timeouts.connect);
        let _ = tokio::time::timeout(patience, reading).await;
        body.truncate(MAX_ERROR_BYTES);

        let body = String::from_utf8_lossy(&body);
        // Before anything is cut from it: half a key would not be known again.
        let body = self.endpoint.key.as_ref().map_or_else(|| body.to_string(), |key| key.remove_from(&body));
        let complaint = Complaint::of_text(&body);
        let status = response.status();
        let moved = response.headers().get(LOCATION).and_then(|place| url.join(place.to_str().ok()?).ok());
        let words = match moved.filter(|_| status.is_redirection()) {
            Some(place) => {
                format!("it has moved to {}; set the base URL to where it is now", self::host(&place))
            }
            None if complaint.message.is_empty() => format!("no reason was given for {}", url.path()),
            None => complaint.message.clone(),
        };
        let message = format!("{host} answered {status}: {words}");
        of_complaint(message, Some(status.as_u16()), response.headers(), &complaint)
    }

    fn silent(&self, host: &str) -> ProviderError {
        let message = format!("{host} sent nothing for {:?}", self.timeouts.silence);
        plain_error(ErrorClass::Network, message)
    }
}

/// Loads certificates only where they can be needed, and asks a loopback address without a proxy.
fn http_client(url: &Url, connect: Duration) -> Result<reqwest::Client, String> {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Someone else may have been faster, and theirs is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("towline/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .connect_timeout(connect);
    if is_loopback(url) {
        builder = builder.no_proxy();
        if url.scheme() == "http" {
            builder = builder.tls_certs_only([]);
        }
    }
    builder.build().map_err(|error| causes(&error))
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

fn url(base: &str, posted: &Posted) -> Result<Url, ProviderError> {
    let wrong = |why: &str| {
        let message = format!("the base URL {why}; it should look like https://api.example.com/v1");
        plain_error(ErrorClass::Invalid, message)
    };
    let mut url = Url::parse(base.trim()).map_err(|error| wrong(&format!("cannot be read ({error})")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong("is none of http or https"));
    }
    let Ok(mut path) = url.path_segments_mut() else { return Err(wrong("has no path")) };
    path.pop_if_empty().extend(&posted.segments);
    drop(path);
    if let Some((name, value)) = posted.query {
        url.query_pairs_mut().append_pair(name, value);
    }
    Ok(url)
}

/// The host with its port, and nothing else that a URL may hold.
fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

fn no_connection(host: &str, error: reqwest::Error) -> ProviderError {
    let what = if error.is_connect() { "cannot be reached" } else { "broke the connection off" };
    let message = format!("{host} {what} ({})", causes(&error.without_url()));
    plain_error(ErrorClass::Network, message)
}

fn in_stream(host: &str, headers: &HeaderMap, trouble: Trouble) -> ProviderError {
    match trouble {
        Trouble::Unreadable(why) => {
            plain_error(ErrorClass::CutOff, format!("the answer of {host} cannot be used: {why}"))
        }
        Trouble::Complaint(complaint) => {
            let reason =
                if complaint.message.is_empty() { "no reason was given" } else { &complaint.message };
            of_complaint(format!("{host} gave up on its answer: {reason}"), None, headers, &complaint)
        }
    }
}

fn of_complaint(
    message: String,
    status: Option<u16>,
    headers: &HeaderMap,
    complaint: &Complaint,
) -> ProviderError {
    let class = complaint.class(status);
    let waits = matches!(class, ErrorClass::Limited | ErrorClass::Server);
    let until = waits.then(|| retry::until(headers, complaint, now())).flatten();
    ProviderError { class, status, until, message }
}

fn plain_error(class: ErrorClass, message: String) -> ProviderError {
    ProviderError { class, status: None, until: None, message }
}

/// An error with all its causes, each once.
fn causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

#[expect(clippy::disallowed_methods, reason = "the one place where an answer's arrival meets the clock")]
fn now() -> Timestamp {
    Timestamp::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_put_behind_the_base_url() {
        let posted = |segments: &[&str], query| Posted {
            segments: segments.iter().map(|segment| (*segment).to_owned()).collect(),
            query,
            body: serde_json::Value::Null,
        };
        let table = [
            ("http://h/v1", posted(&["messages"], None), "http://h/v1/messages"),
            ("http://h/v1/", posted(&["chat", "completions"], None), "http://h/v1/chat/completions"),
            (" http://h ", posted(&["responses"], None), "http://h/responses"),
            ("http://h/v1?version=2", posted(&["responses"], None), "http://h/v1/responses?version=2"),
            (
                "https://h/v",
                posted(&["models", "a/b?c:x"], Some(("alt", "sse"))),
                "https://h/v/models/a%2Fb%3Fc:x?alt=sse",
            ),
        ];
        for (base, posted, expected) in table {
            assert_eq!(url(base, &posted).map(String::from).as_deref(), Ok(expected), "{base}");
        }
    }

    #[test]
    fn loopback_is_known_by_its_addresses() {
        let table = [
            ("http://127.0.0.1:1/v1", true),
            ("http://127.8.0.1", true),
            ("http://[::1]:8080", true),
            ("http://localhost", true),
            ("http://localhost.example.com", false),
            ("https://api.example.com", false),
            ("http://192.168.0.1", false),
        ];
        for (base, expected) in table {
            assert_eq!(is_loopback(&Url::parse(base).expect("a URL")), expected, "{base}");
        }
    }
}
